"""The application in `objects`, served: by workerd, and by a fleet of Holdfast whose programs are processes of their own.
What serves it can be asked how much memory its processes have."""

import json
import pathlib
import shutil
import signal
import tempfile
import urllib.error
import urllib.request

from children import Child, PeerError, free_ports, run

APPLICATION = pathlib.Path(__file__).resolve().parent / "objects"
# How long one request may take while something starts.
ASK_WAIT_S = 10


def ask(address, path):
    """What is answered, or None where nothing good is."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=ASK_WAIT_S) as answer:
            return answer.read().decode()
    except (OSError, urllib.error.URLError):
        return None


def memory_of(child):
    """KiB of a process: resident, and the part of it that is its own and nobody's file."""
    fields = {}
    for line in pathlib.Path(f"/proc/{child.process.pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split(":")
        fields[name] = int(value.split()[0])
    return {"resident": fields["Rss"], "anonymous": fields["Anonymous"]}


def open_files_of(child):
    return len(list(pathlib.Path(f"/proc/{child.process.pid}/fd").iterdir()))


class Workerd:
    """workerd with its objects' databases on disk. `keeps_objects`: they stay in memory however long nobody asks them."""

    def __init__(self, folder, program, keeps_objects=False):
        self.name, self.program, self.folder = "workerd", program, pathlib.Path(folder)
        self.keeps_objects = keeps_objects
        self.children = {}
        self.address = None

    def start(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="workerd-", dir=self.folder))
        (folder / "objects").mkdir()
        shutil.copyfile(APPLICATION / "src/index.js", folder / "index.js")
        port = free_ports(1)[0]
        config = folder / "config.capnp"
        config.write_text(configuration(folder / "objects", port, self.keeps_objects))
        self.address = f"127.0.0.1:{port}"
        child = Child([str(self.program), "serve", str(config)], folder / "log")
        self.children = {"workerd": child}
        child.wait_until("it serves", lambda: ask(self.address, "/work/nothing") == "0")

    def stop(self):
        for child in self.children.values():
            child.stop(signal.SIGTERM)
        self.children = {}


def configuration(objects, port, keeps_objects):
    date = json.loads(without_comments(APPLICATION / "wrangler.jsonc"))["compatibility_date"]
    return f"""using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .application), (name = "disk", disk = (path = "{objects}", writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:{port}", http = (), service = "main")]);
const application :Workerd.Worker = (
  modules = [(name = "index.js", esModule = embed "index.js")], compatibilityDate = "{date}",
  bindings = [(name = "COUNTERS", durableObjectNamespace = "Counter")],
  durableObjectNamespaces = [(className = "Counter", uniqueKey = "Counter", enableSql = true, preventEviction = {str(keeps_objects).lower()})],
  durableObjectStorage = (localDisk = "disk"));
"""


def without_comments(path):
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))


class Fleet:
    """Holdfast: followers, one node, one ingress, a bucket in a folder."""

    def __init__(self, name, folder, programs, followers, node_args=(), bucket_folder=None):
        self.name, self.folder, self.programs = name, pathlib.Path(folder), programs
        self.followers, self.node_args = followers, list(node_args)
        self.bucket_folder = bucket_folder or folder
        self.children, self.ready = {}, {}
        self.bucket = self.address = None

    def start(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-", dir=self.folder))
        self.bucket = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-bucket-", dir=self.bucket_folder))
        url = f"file://{self.bucket}"
        run([str(self.programs / "holdfast"), "deploy", str(APPLICATION), "--bucket", url])
        for number in range(1, self.followers + 1):
            name = f"follower-{number}"
            self.program(folder, name, "follower", ["--follower", name, "--data-dir", str(folder / name), "--host", name])
        durability = "ensemble" if self.followers else "bucket"
        self.program(folder, "node", "cellnode", ["--node", "node", "--data-dir", str(folder / "node"), "--host", "node",
                                                  "--durability", durability, *self.node_args])
        self.program(folder, "ingress", "ingress", ["--auth", "none"])
        self.address = self.ready["ingress"]["public"]
        # An object is asked too: its node adopts the application by itself.
        self.children["ingress"].wait_until("it serves the Worker", lambda: ask(self.address, "/work/nothing") == "0")
        self.children["ingress"].wait_until("it serves objects", lambda: ask(self.address, "/counter/first") is not None)
        if self.followers:
            self.children["node"].wait_until("followers prove its writes", self.has_ensemble)

    def program(self, folder, name, program, own):
        ready = folder / f"{name}.ready"
        command = [str(self.programs / program), "--bucket", f"file://{self.bucket}", "--listen", "127.0.0.1:0",
                   "--admin-listen", "127.0.0.1:0", "--ready-file", str(ready), "--log", "warn", *own]
        child = Child(command, folder / f"{name}.log")
        self.children[name] = child
        child.wait_until("it is ready", ready.exists)
        self.ready[name] = json.loads(ready.read_text())

    def has_ensemble(self):
        """Whether an ensemble of the followers acknowledges the node's writes."""
        logs = json.loads(run([str(self.programs / "holdfast"), "--json", "log", "list", "--bucket", f"file://{self.bucket}"]))
        return any(log.get("active") and len(log["ensemble"]["members"]) == self.followers for log in logs)

    def metric(self, name):
        """The sum of a metric of the node over its attributes."""
        lines = (ask(self.ready["node"]["admin"], "/metrics") or "").splitlines()
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        if not found:
            raise PeerError(f"the node has no metric `{name}`")
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def stop(self):
        for name in reversed(list(self.children)):
            self.children[name].stop(signal.SIGTERM)
        self.children = {}
        shutil.rmtree(self.bucket, ignore_errors=True)
