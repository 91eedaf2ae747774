"""Durable Objects of Holdfast beside those of workerd, side by side in one run: `scripts/bench-objects`.

The same bytes (`tests/peers/objects`) are served by both, each alone on loopback, on the same disk and processors, with the
same load generator; the systems take turns, in another order each round, and the median round counts. Every counter must
hold what was acknowledged, every handler must answer the same on both, and every object must have been where it is said
to have been: in memory, or not."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from children import PeerError, kill_all, run
from served import Fleet, Workerd, memory_of, open_files_of

# Connections, and the counters that they ask.
CASES = [(1, 1), (64, 1), (64, "many")]
WORK = ["json", "string", "map", "loop", "hash"]
# Objects that share the sockets.
ROOMS = 10
# Files that a process needs besides its sockets.
FILES_SPARE = 500
# Of workerd, which duplicates each.
WORKERD_FILES_PER_SOCKET = 2
# workerd takes an object from memory after 10 s without a request.
WORKERD_IDLE_S = 10
# Of the fleets whose objects are to leave memory: an isolate, and then the whole cell.
OBJECT_IDLE_S, CELL_IDLE_S = 2, 8
# Goals.
MEMORY_RATIO_MAX, ACTIVATION_US_MAX, SOCKET_BYTES_MAX = 0.5, 5_000, 8 << 10
# Beyond this load per processor something else is running.
LOAD_MAX = 0.25
FULL = {"seconds": 3, "rounds": 3, "many": 1000, "resident": 2000, "activations": 300, "work_seconds": 2, "work_rounds": 3,
        "sockets": 10_000}
SHORT = {"seconds": 1, "rounds": 1, "many": 100, "resident": 200, "activations": 50, "work_seconds": 0.5, "work_rounds": 1,
         "sockets": 500}


class Bench:
    """What all parts share."""

    def __init__(self, options, folder, memory_folder):
        self.sizes = SHORT if options.short else FULL
        self.folder, self.memory_folder = folder, memory_folder
        self.programs = pathlib.Path(os.environ["HOLDFAST_BIN_DIR"]).absolute()
        self.workerd_program = pathlib.Path(options.workerd).absolute()
        self.prefixes = 0

    def workerd(self, keeps_objects=False):
        return Workerd(self.folder, self.workerd_program, keeps_objects)

    def fleet(self, name, followers=2, node_args=(), bucket_folder=None):
        return Fleet(name, self.folder, self.programs, followers, node_args, bucket_folder)

    def load(self, system, *arguments):
        out = run([str(self.programs / "object_load"), "--address", system.address, *map(str, arguments)])
        return json.loads(out)

    def prefix(self):
        """A beginning of names that no object has yet."""
        self.prefixes += 1
        return f"p{self.prefixes}"

    def each(self, system, prefix, objects, seen, connections=1, writes=True):
        """One request to each object; all of them must be where they are said to be."""
        report = self.load(system, "each", "--prefix", prefix, "--objects", objects, "--seen", seen,
                           "--connections", connections, *(["--writes"] if writes else []))
        if report["unexpected"]:
            where = "not new in memory" if seen == 1 else "no longer in memory"
            raise PeerError(f"{system.name}: {report['unexpected']} of {objects} objects were {where}")
        return report


def running(system):
    """Starts it, and stops it at the end of the `with`; after an error whatever runs is killed at the end of the run."""
    class Running:
        def __enter__(self):
            progress(system.name)
            system.start()
            return system

        def __exit__(self, kind, *_):
            if kind is None:
                system.stop()
    return Running()


def median(rounds, by):
    """The middle one; of an even number the lower."""
    return sorted(rounds, key=by)[(len(rounds) - 1) // 2]


def throughput(bench):
    """Requests per second of counters."""
    workerd, ours = bench.workerd(), bench.fleet("Holdfast, two followers")
    bucket = bench.fleet("Holdfast, bucket", followers=0)
    memory = bench.fleet("Holdfast, bucket in memory", followers=0, bucket_folder=bench.memory_folder)
    systems = [workerd, ours, bucket, memory]
    seen = {}
    for number in range(bench.sizes["rounds"]):
        turn = number % len(systems)
        for system in systems[turn:] + systems[:turn]:
            with running(system):
                # Reads wait for no proof: one fleet is enough for them.
                kinds = ["reads", "writes"] if system in (workerd, ours) else ["writes"]
                for kind in kinds:
                    for connections, objects in CASES:
                        objects = bench.sizes["many"] if objects == "many" else objects
                        report = bench.load(system, "rate", "--prefix", bench.prefix(), "--connections", connections,
                                            "--objects", objects, "--seconds", bench.sizes["seconds"],
                                            *(["--writes"] if kind == "writes" else []))
                        seen.setdefault((kind, connections, objects, system.name), []).append(report)
    rows = [{"what": kind, "connections": connections, "objects": objects, "system": system,
             **median(rounds, lambda report: report["per_second"]),
             "rounds": [round(report["per_second"]) for report in rounds]}
            for (kind, connections, objects, system), rounds in seen.items()]
    rows.sort(key=lambda row: (row["what"], row["connections"], row["objects"]))
    for row in rows:
        peer = next(r for r in rows if r["system"] == workerd.name and case_of(r) == case_of(row))
        row["ratio"] = row["per_second"] / max(peer["per_second"], 0.1)
    return rows


def case_of(row):
    return row["what"], row["connections"], row["objects"]


def memory(bench):
    """Memory of objects that are in memory, one request after they came there."""
    count, rows = bench.sizes["resident"], []
    for system in (bench.workerd(keeps_objects=True), bench.fleet("Holdfast, two followers")):
        with running(system):
            bench.each(system, bench.prefix(), 50, 1, connections=8)
            before = {name: memory_of(child) for name, child in system.children.items()}
            prefix = bench.prefix()
            bench.each(system, prefix, count, 1, connections=64)
            after = {name: memory_of(child) for name, child in system.children.items()}
            bench.each(system, prefix, count, 2, connections=64)
        rows.append({"system": system.name, "objects": count, **per_object(before, after, count)})
    with running(bench.fleet("Holdfast, isolates gone", node_args=idle())) as system:
        bench.each(system, bench.prefix(), 50, 1, connections=8)
        before = {name: memory_of(child) for name, child in system.children.items()}
        prefix = bench.prefix()
        bench.each(system, prefix, count, 1, connections=64)
        wait_until(lambda: system.metric("holdfast_cellnode_isolates_count") == 0, "isolates leave memory")
        after = {name: memory_of(child) for name, child in system.children.items()}
    rows.append({"system": system.name, "objects": count, **per_object(before, after, count)})
    return rows


def per_object(before, after, count):
    """KiB per object: of the processes that keep something of it together, and of each."""
    parts = {name: {kind: round((after[name][kind] - before[name][kind]) / count, 1) for kind in after[name]}
             for name in own_parts(after)}
    return {"resident_kib": sum(part["resident"] for part in parts.values()), "parts": parts}


def own_parts(parts):
    """Without followers: what they hold of a write goes once the bucket has it."""
    return [name for name in parts if not name.startswith("follower")]


def idle(cell_s=None):
    """Flags of a node whose objects leave memory soon."""
    return ["--object-idle", f"{OBJECT_IDLE_S}s", *(["--idle-after", f"{cell_s}s"] if cell_s else [])]


def activation(bench):
    """From the request to the answer of an object that is not in memory: a write to one that is new, a read otherwise."""
    count, rows = bench.sizes["activations"], []

    def measure(system, what, prefix):
        # Routes and threads are there before.
        bench.each(system, bench.prefix(), 8, 1, connections=8)
        report = bench.each(system, prefix, count, 1, writes=what == "new")
        rows.append({"system": system.name, "what": what, **report})

    with running(bench.workerd()) as system:
        prefix = bench.prefix()
        measure(system, "new", prefix)
        time.sleep(WORKERD_IDLE_S + 5)
        measure(system, "left memory", prefix)
    with running(bench.fleet("Holdfast, two followers", node_args=idle(CELL_IDLE_S))) as system:
        prefix = bench.prefix()
        measure(system, "new", prefix)
        wait_until(lambda: system.metric("holdfast_cellnode_isolates_count") == 0, "isolates leave memory")
        measure(system, "left memory, its database open", prefix)
        wait_until(lambda: system.metric("holdfast_cellnode_cells_resident_count") == 0, "cells leave memory")
        measure(system, "left memory", prefix)
    return rows


def work(bench):
    """Handlers that only compute, by one connection: how long an answer takes, beside one that computes nothing."""
    workerd, ours = bench.workerd(), bench.fleet("Holdfast", followers=0)
    seen = {}
    for number in range(bench.sizes["work_rounds"]):
        for system in [workerd, ours] if number % 2 == 0 else [ours, workerd]:
            with running(system):
                for kind in ["nothing", *WORK]:
                    report = bench.load(system, "work", "--path", f"/work/{kind}", "--seconds", bench.sizes["work_seconds"])
                    seen.setdefault((kind, system.name), []).append(report)
    rows = []
    for kind in ["nothing", *WORK]:
        answers = {report["answer"] for name in (workerd.name, ours.name) for report in seen[kind, name]}
        if len(answers) != 1:
            raise PeerError(f"`/work/{kind}` is answered with {' and '.join(sorted(answers))}")
        figures = {name: median(seen[kind, name], lambda report: report["p50_us"])["p50_us"] for name in (workerd.name, ours.name)}
        rows.append({"what": kind, "workerd_us": figures[workerd.name], "holdfast_us": figures[ours.name],
                     "ratio": figures[ours.name] / max(figures[workerd.name], 1)})
    return rows


def sockets(bench):
    """Memory of WebSockets whose objects have left memory."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    rows = []
    fleet = bench.fleet("Holdfast, two followers", node_args=idle())
    for system in (bench.workerd(), fleet):
        files_each = 1 if system is fleet else WORKERD_FILES_PER_SOCKET
        count = min(bench.sizes["sockets"], (limit - FILES_SPARE) // files_each)
        with running(system):
            prefix = bench.prefix()
            # All objects have been in memory before.
            bench.each(system, prefix, ROOMS, 1)
            asleep(system, fleet)
            before = {name: memory_of(child) for name, child in system.children.items()}
            client = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", str(bench.programs / "object_load"), "--address", system.address, "sockets",
                 "--prefix", prefix, "--objects", str(ROOMS), "--sockets", str(count)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                opened = told(client, "opened")
                asleep(system, fleet)
                if system is fleet and (slept := system.metric("holdfast_cellnode_sockets_hibernated_count")) != opened:
                    raise PeerError(f"{slept:.0f} of {opened} sockets sleep")
                after = {name: memory_of(child) for name, child in system.children.items()}
                files = {name: open_files_of(child) for name, child in system.children.items()}
                # They are there still, and wake their objects.
                client.stdin.write("\n")
                client.stdin.flush()
                echoed = told(client, "echoed")
                client.stdin.close()
                client.wait()
            finally:
                client.kill()
                client.wait()
        parts = {name: round((after[name]["resident"] - before[name]["resident"]) * 1024 / opened) for name in own_parts(after)}
        rows.append({"system": system.name, "sockets": opened, "echoed": echoed, "bytes": parts,
                     "open_files": {name: files[name] for name in parts}})
    return {"file_limit": limit, "rows": rows}


def asleep(system, fleet):
    """Waits until no object is in memory."""
    if system is fleet:
        wait_until(lambda: system.metric("holdfast_cellnode_isolates_count") == 0, "isolates leave memory")
    else:
        time.sleep(WORKERD_IDLE_S + 5)


def told(client, what):
    line = client.stdout.readline()
    if not line:
        raise PeerError("object_load ended: its error is above")
    return json.loads(line)[what]


def wait_until(is_so, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise PeerError(f"not after {seconds} s: {what}")
        time.sleep(0.1)


def verdicts_of(result):
    verdicts = []

    def verdict(what, value, wanted, met):
        verdicts.append({"what": what, "value": value, "wanted": wanted, "met": met})

    for row in result.get("throughput", []):
        if row["system"] == "Holdfast, two followers":
            verdict(f"{row['what']}, {row['connections']} connections, objects: {row['objects']}: per second, by workerd's",
                    round(row["ratio"], 2), "more than 1", row["ratio"] > 1)
    if "memory" in result:
        theirs, ours = (row["resident_kib"] for row in result["memory"][:2])
        ratio = ours / max(theirs, 0.1)
        verdict("memory per object in memory, by workerd's", round(ratio, 2), f"at most {MEMORY_RATIO_MAX}",
                ratio <= MEMORY_RATIO_MAX)
    for row in result.get("activation", []):
        if row["system"] != "workerd":
            verdict(f"activation, {row['what']}: median us", row["p50_us"], f"less than {ACTIVATION_US_MAX}",
                    row["p50_us"] < ACTIVATION_US_MAX)
    if "sockets" in result:
        row = next(row for row in result["sockets"]["rows"] if row["system"] != "workerd")
        for name in ("node", "ingress"):
            verdict(f"{row['sockets']} sleeping sockets: bytes of the {name} for each", row["bytes"][name],
                    f"less than {SOCKET_BYTES_MAX}", row["bytes"][name] < SOCKET_BYTES_MAX)
        wanted = result["sizes"]["sockets"]
        verdict("sockets opened", row["sockets"], str(wanted), row["sockets"] == wanted)
    return verdicts


def table(lines):
    widths = [max(len(str(line[column])) for line in lines) for column in range(len(lines[0]))]
    texts = ["  ".join(str(cell).ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join(texts) + "\n"


def text_of(result):
    parts = []
    if "throughput" in result:
        lines = [["COUNTERS", "CONNECTIONS", "OBJECTS", "SYSTEM", "PER SECOND", "P50 US", "P99 US", "BY WORKERD'S", "EACH ROUND"]]
        lines += [[row["what"], row["connections"], row["objects"], row["system"], f"{row['per_second']:.0f}", row["p50_us"],
                   row["p99_us"], f"{row['ratio']:.2f}", " ".join(map(str, row["rounds"]))] for row in result["throughput"]]
        parts.append(table(lines))
    if "memory" in result:
        lines = [["MEMORY OF OBJECTS", "KIB EACH", "OF WHICH, RESIDENT (ANONYMOUS)"]]
        for row in result["memory"]:
            of = ", ".join(f"{name} {part['resident']} ({part['anonymous']})" for name, part in row["parts"].items())
            lines.append([row["system"], f"{row['resident_kib']:.1f}", of])
        parts.append(table(lines))
    if "activation" in result:
        lines = [["ACTIVATION", "SYSTEM", "P50 US", "P99 US", "LONGEST US"]]
        lines += [[row["what"], row["system"], row["p50_us"], row["p99_us"], row["max_us"]] for row in result["activation"]]
        parts.append(table(lines))
    if "work" in result:
        lines = [["WORK", "WORKERD US", "HOLDFAST US", "TIMES WORKERD'S"]]
        lines += [[row["what"], row["workerd_us"], row["holdfast_us"], f"{row['ratio']:.2f}"] for row in result["work"]]
        parts.append(table(lines))
    if "sockets" in result:
        lines = [["SLEEPING SOCKETS", "OPENED", "BYTES EACH", "OPEN FILES"]]
        for row in result["sockets"]["rows"]:
            of = [", ".join(f"{name} {value}" for name, value in row[key].items()) for key in ("bytes", "open_files")]
            lines.append([row["system"], row["sockets"], *of])
        parts.append(table(lines) + f"a process may have {result['sockets']['file_limit']} files open\n")
    parts.append("".join(f"{'met   ' if v['met'] else 'MISSED'} {v['what']}: {v['value']} (wanted: {v['wanted']})\n"
                         for v in result["verdicts"]))
    sizes = result["sizes"]
    parts.append(f"workerd {result['workerd']}, Holdfast {result['holdfast']}; {sizes['rounds']} rounds of {sizes['seconds']} s; "
                 f"{result['processors']} processors, load before {result['load_before']}, {result['file_system']}")
    return "\n".join(parts)


PARTS = {"throughput": throughput, "memory": memory, "activation": activation, "work": work, "sockets": sockets}


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench-objects", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a check that everything works, not a measurement")
    parser.add_argument("--json", action="store_true", help="print one JSON value instead of the table")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this; may be repeated")
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="a folder on the disk to measure (default: the system's temporary one)")
    parser.add_argument("--memory-dir", default="/dev/shm", help="a folder in memory (default /dev/shm)")
    parser.add_argument("--workerd", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def file_system(folder):
    return run(["stat", "--file-system", "--format=%T", str(folder)]).strip()


def progress(text):
    print(f"bench-objects: {text}", file=sys.stderr, flush=True)


def measure(bench, options):
    load = round(os.getloadavg()[0], 2)
    if load > LOAD_MAX * (os.cpu_count() or 1):
        progress(f"the machine is busy (load {load}): what is measured now says little")
    result = {"bench": "objects", "short": options.short, "sizes": bench.sizes, "processors": os.cpu_count(), "load_before": load,
              "file_system": file_system(bench.folder), "workerd": run([str(bench.workerd_program), "--version"]).split()[-1],
              "holdfast": run([str(bench.programs / "holdfast"), "--version"]).split()[1]}
    for name in dict.fromkeys(options.only or PARTS):
        progress(f"== {name}")
        result[name] = PARTS[name](bench)
    result["verdicts"] = verdicts_of(result)
    return result


def main():
    options = arguments()
    # As an error, so that what was made is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-bench-objects-", dir=options.dir))
    memory_folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-bench-objects-", dir=options.memory_dir))
    try:
        for path, is_memory in ((folder, False), (memory_folder, True)):
            if (file_system(path) in ("tmpfs", "ramfs")) != is_memory:
                raise PeerError(f"`{path.parent}` is {'not ' if is_memory else ''}in memory: name another --{'memory-' if is_memory else ''}dir")
        result = measure(Bench(options, folder, memory_folder), options)
    except PeerError as error:
        raise SystemExit(f"bench-objects: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        kill_all()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(memory_folder, ignore_errors=True)
    print(json.dumps(result) if options.json else text_of(result))


if __name__ == "__main__":
    main()
