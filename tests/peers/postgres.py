"""PostgreSQL 15 of Debian: a primary and two standbys, both synchronous: a commit is acknowledged when both have
flushed it. Everything else is at its default, except what the comments say."""

import os
import pathlib
import signal

from children import Child, PeerError, free_ports, program, run

PACKAGE = "postgresql-15"
FOLDERS = ["/usr/lib/postgresql/15/bin"]
STANDBYS = ["standby_1", "standby_2"]
WARM_UP_S = 0.5
ROWS = 64


class Postgres:
    """The cluster. Its files are made once and used by each start."""

    name = "PostgreSQL, 2 synchronous standbys"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        # It refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        self.bin = {name: program(name, PACKAGE, FOLDERS) for name in ["postgres", "initdb", "pg_basebackup", "pgbench", "psql"]}
        self.ports = dict(zip(["primary", *STANDBYS], free_ports(3)))
        self.children = {}
        self.version = run([self.bin["postgres"], "--version"]).split()[2]
        self._create()

    def _create(self):
        if self.user:
            run(["chown", self.user, str(self.folder)])
        else:
            self.folder.chmod(0o700)
        primary = self.folder / "primary"
        self._run("initdb", "--pgdata", primary, "--auth=trust", "--username=bench", "--encoding=UTF8", "--no-locale", "--no-sync")
        settings = [
            "listen_addresses = '127.0.0.1'",
            f"unix_socket_directories = '{self.folder}'",
            "synchronous_commit = on",
            f"synchronous_standby_names = 'FIRST 2 ({', '.join(STANDBYS)})'",
            # The default of 100 has little room beside 64 clients and two standbys.
            "max_connections = 120",
        ]
        with open(primary / "postgresql.auto.conf", "a") as file:
            file.writelines(f"{line}\n" for line in settings)
        self._start("primary")
        for standby in STANDBYS:
            target = f"host=127.0.0.1 port={self.ports['primary']} user=bench application_name={standby}"
            self._run("pg_basebackup", "--dbname", target, "--pgdata", self.folder / standby, "--write-recovery-conf",
                      "--checkpoint=fast", "--no-sync")
            self._start(standby)
        self._await_standbys()
        # Room in the page, so that an update writes its new version beside the old one and leaves the index alone.
        self._sql("CREATE TABLE acks (id int PRIMARY KEY, n bigint NOT NULL, v text NOT NULL) WITH (fillfactor = 50)")
        self._sql(f"INSERT INTO acks SELECT id, 0, 'a value of thirty-two bytes here' FROM generate_series(1, {ROWS}) id")
        # The statistics that a running system would have.
        self._sql("VACUUM ANALYZE acks")
        self.stop()

    def start(self):
        """Starts all three and waits until both standbys are synchronous."""
        for name in self.ports:
            self._start(name)
        self._await_standbys()

    def stop(self):
        """Stops the primary, then the standbys."""
        for name in list(self.children):
            self.children.pop(name).stop(signal.SIGINT)

    def measure(self, clients, objects, seconds):
        """Updates of one row each: acknowledged per second, p50 and p99."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        if self.user:
            run(["chown", self.user, str(work)])
        for old in work.iterdir():
            old.unlink()
        script = work / "update.sql"
        row = "1" if objects == 1 else f":client_id % {objects} + 1"
        script.write_text(f"\\set id {row}\nUPDATE acks SET n = n + 1 WHERE id = :id;\n")
        before = self._count()
        total_s = int(seconds + 2 * WARM_UP_S)
        out = self._run("pgbench", "--host=127.0.0.1", f"--port={self.ports['primary']}", "--username=bench", "--no-vacuum",
                        "--protocol=prepared", f"--client={clients}", f"--jobs={min(clients, 2)}", f"--time={total_s}",
                        f"--file={script}", "--log", f"--log-prefix={work / 'log'}", "postgres")
        latencies_us, acknowledged = read_logs(work.glob("log.*"), WARM_UP_S, seconds)
        if "number of failed transactions: 0 " not in out:
            raise PeerError(f"pgbench saw failures:\n{out}")
        stored = self._count() - before
        if stored != acknowledged:
            raise PeerError(f"{acknowledged} updates were acknowledged, the rows have seen {stored}")
        latencies_us.sort()
        return {"per_second": len(latencies_us) / seconds, "p50_us": rank(latencies_us, 0.50), "p99_us": rank(latencies_us, 0.99)}

    def _run(self, name, *arguments):
        return run([self.bin[name], *map(str, arguments)], user=self.user)

    def _sql(self, text, port="primary"):
        return self._run("psql", "--host=127.0.0.1", f"--port={self.ports[port]}", "--username=bench", "--dbname=postgres",
                         "--no-psqlrc", "--tuples-only", "--no-align", "--command", text).strip()

    def _count(self):
        return int(self._sql("SELECT sum(n) FROM acks"))

    def _start(self, name):
        command = [self.bin["postgres"], "-D", str(self.folder / name), "-p", str(self.ports[name])]
        child = Child(command, self.folder.parent / f"postgres-{name}.log", user=self.user)
        self.children[name] = child
        child.wait_until("ready", lambda: self._is_ready(name))

    def _is_ready(self, name):
        # No statement: while it is created, the primary could not finish one that writes.
        try:
            self._sql("SELECT 1", name)
        except PeerError:
            return False
        return True

    def _await_standbys(self):
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
        self.children["primary"].wait_until("followed by two synchronous standbys", lambda: self._sql(query) == "2")


def read_logs(paths, warm_up_s, seconds):
    """The latencies of the measured time, and how many transactions there were in all, from pgbench's logs: a line is
    `client transaction latency_us script epoch_s epoch_us`, its time that of the end."""
    ended = []
    for path in paths:
        with open(path) as file:
            for line in file:
                _, _, latency_us, _, epoch_s, epoch_us = line.split()[:6]
                ended.append((int(epoch_s) + int(epoch_us) / 1e6, int(latency_us)))
    if not ended:
        raise PeerError("pgbench has logged no transaction")
    begin = min(end - latency_us / 1e6 for end, latency_us in ended) + warm_up_s
    inside = [latency_us for end, latency_us in ended if end - latency_us / 1e6 >= begin and end < begin + seconds]
    return inside, len(ended)


def rank(ordered, share):
    """The value that so large a share does not exceed."""
    return ordered[max(1, -(-len(ordered) * round(share * 1000) // 1000)) - 1] if ordered else 0
