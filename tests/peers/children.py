"""Child processes of a peer: none outlives this process, and an error shows the end of the log."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import time

START_WAIT_S = 30
STOP_WAIT_S = 30
LOOK_S = 0.02


class PeerError(Exception):
    """A peer cannot be measured; the text says what to do."""


def program(name, package, folders=()):
    """The path of a program, or an error that names the Debian package."""
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=path)
    if not found:
        raise PeerError(f"there is no `{name}`: apt-get install --no-install-recommends {package}")
    return found


def free_ports(count):
    """Ports on loopback that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def as_user(user):
    """The options of setpriv that run a command as another user; none for this one."""
    if not user:
        return []
    entry = pwd.getpwnam(user)
    return [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]


class Child:
    """One program, running in the foreground, its output in a log."""

    running = []

    def __init__(self, command, log, user=None, env=None):
        self.name = pathlib.Path(command[0]).name
        self.log = pathlib.Path(log)
        # The kernel ends it with this process, however that ends.
        wrapped = ["setpriv", "--pdeathsig=KILL", *as_user(user), *command]
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(wrapped, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env)
        Child.running.append(self)

    def wait_until(self, what, is_so):
        """Waits until `is_so()` holds."""
        deadline = time.monotonic() + START_WAIT_S
        while not is_so():
            if self.process.poll() is not None:
                raise PeerError(f"`{self.name}` ended with {self.process.returncode} before {what}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise PeerError(f"`{self.name}`: not {what} after {START_WAIT_S} s:\n{self.tail()}")
            time.sleep(LOOK_S)

    def stop(self, signal):
        """Asks it to end, and waits until it has; kills it after a while."""
        if self.process.poll() is None:
            self.process.send_signal(signal)
        try:
            self.process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        Child.running.remove(self)

    def tail(self):
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


def kill_all():
    """Ends whatever still runs, after a failure."""
    for child in Child.running:
        child.process.kill()
        child.process.wait()


def run(command, user=None, env=None):
    """Runs a command to its end and returns what it printed; an error shows both streams."""
    wrapped = ["setpriv", *as_user(user), *command] if user else command
    done = subprocess.run(wrapped, capture_output=True, text=True, env=env)
    if done.returncode:
        raise PeerError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
