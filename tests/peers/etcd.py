"""etcd of Debian: three members on loopback, every option at its default, so that each entry is fsynced by a majority
before its put is acknowledged."""

import json
import os
import pathlib
import signal

from children import Child, PeerError, free_ports, program, run

MEMBERS = ["m1", "m2", "m3"]


class Etcd:
    """The cluster. Its files stay between starts."""

    name = "etcd, 3 members"

    def __init__(self, folder, load):
        self.folder = pathlib.Path(folder)
        self.load = load
        self.etcd = program("etcd", "etcd-server")
        self.etcdctl = program("etcdctl", "etcd-client")
        ports = free_ports(2 * len(MEMBERS))
        self.clients = {name: f"http://127.0.0.1:{port}" for name, port in zip(MEMBERS, ports)}
        self.peers = {name: f"http://127.0.0.1:{port}" for name, port in zip(MEMBERS, ports[len(MEMBERS):])}
        self.children = {}
        self.version = run([self.etcd, "--version"], env=environment()).split()[2]

    def start(self):
        """Starts all members and waits until each follows one leader."""
        cluster = ",".join(f"{name}={url}" for name, url in self.peers.items())
        for name in MEMBERS:
            command = [
                self.etcd, "--name", name, "--data-dir", str(self.folder / name),
                "--listen-client-urls", self.clients[name], "--advertise-client-urls", self.clients[name],
                "--listen-peer-urls", self.peers[name], "--initial-advertise-peer-urls", self.peers[name],
                "--initial-cluster", cluster, "--initial-cluster-state", "new",
            ]
            self.children[name] = Child(command, self.folder.parent / f"etcd-{name}.log", env=environment())
        self.children[MEMBERS[0]].wait_until("a cluster with one leader", lambda: self._leader() is not None)

    def stop(self):
        """Stops all members."""
        for name in list(self.children):
            self.children.pop(name).stop(signal.SIGTERM)

    def measure(self, clients, objects, seconds):
        """Puts: acknowledged per second, p50 and p99."""
        # Through the leader, where a put has the fewest hops, and over as many connections as serve etcd best.
        leader = self._leader()
        if leader is None:
            raise PeerError("etcd has lost its leader")
        command = [self.load, "--endpoints", leader, "--connections", str(connections(clients)), "--clients", str(clients),
                   "--keys", str(objects), "--seconds", str(seconds)]
        return json.loads(run(command))

    def _leader(self):
        """The leader's address, once all members name the same."""
        try:
            out = run([self.etcdctl, "--endpoints", ",".join(self.clients.values()), "endpoint", "status", "--write-out=json"],
                      env=environment())
        except PeerError:
            return None
        members = json.loads(out)
        leaders = {member["Status"].get("leader", 0) for member in members}
        if len(members) < len(MEMBERS) or len(leaders) != 1 or leaders == {0}:
            return None
        (leader,) = leaders
        return next((m["Endpoint"] for m in members if m["Status"]["header"]["member_id"] == leader), None)


def connections(clients):
    """HTTP/2 connections for so many clients."""
    return min(clients, 8)


def environment():
    """Without options for another etcd."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(("ETCD_", "ETCDCTL_"))}, "ETCDCTL_API": "3"}
