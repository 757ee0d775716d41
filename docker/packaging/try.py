#!/usr/bin/env python3
"""Installs the Debian package in a plain Debian tree, and uses it there as an operator and two people would.

    docker/packaging/try.py PACKAGE [--before PACKAGE]        as root; needs debootstrap and openssl

Installs the package from before (by default the same one under a lower version), starts the server as the unit
would, lets two `tambour` clients chat over TLS with a private authority, makes backups, upgrades, sees that
everything is still there, removes and purges. Prints the seconds of each step.
"""
import argparse
import configparser
import contextlib
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAME = "chat.example.org"
#: The unit has the capability for it.
PORT = 443
DATA, BACKUPS = "/var/lib/tambour", "/var/backups/tambour"
#: The highest accepted exposure that systemd-analyze finds; 2.5 in its tenths.
MOST_EXPOSURE = 25


class Tree:
    """A Debian tree, in which programs run by chroot."""

    def __init__(self, path):
        self.path = path

    def make(self, mirror):
        path = self.path
        debootstrap = ["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", path, mirror]
        subprocess.run(debootstrap, check=True, stdout=subprocess.DEVNULL)
        path.chmod(0o755)
        for place in ("proc", "dev/pts"):
            (path / place).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "proc", "proc", path / "proc"], check=True)
        shutil.copy("/etc/hosts", path / "etc/hosts")
        with (path / "etc/hosts").open("a") as hosts:
            hosts.write(f"127.0.0.1 {NAME}\n")
        # No service manager runs in the tree, so that maintainer scripts start nothing.
        self.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)

    def close(self):
        subprocess.run(["umount", "--lazy", self.path / "proc"], check=False, stderr=subprocess.DEVNULL)

    def at(self, path):
        return self.path / path.lstrip("/")

    def write(self, path, text, mode=0o644):
        self.at(path).write_text(text)
        self.at(path).chmod(mode)

    def run(self, *command, user="root", check=True, home="/root", text="", **variables):
        as_user = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "DEBIAN_FRONTEND": "noninteractive", **variables}
        result = subprocess.run(["/usr/sbin/chroot", self.path, *as_user, *command], env=environment, input=text, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if check and result.returncode:
            sys.exit(f"FAILED: {shlex.join(map(str, command))}: status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def install(self, package):
        shutil.copy(package, self.at("/tmp/tambour.deb"))
        self.run("apt-get", "install", "--yes", "--no-install-recommends", "/tmp/tambour.deb")

    def owner(self, path):
        return self.run("stat", "--format=%U:%G %a", path).stdout.strip()


class Unit:
    """The service of a unit file, started as systemd would start it, without the sandbox."""

    def __init__(self, tree, name):
        self.tree = tree
        parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
        parser.optionxform = str
        parser.read(tree.at(f"/lib/systemd/system/{name}"))
        self.options = parser["Service"]
        self.process = self.reports = None

    @property
    def environment(self):
        words = shlex.split(self.options.get("Environment", ""))
        variables = dict(word.split("=", 1) for word in words)
        file = self.options.get("EnvironmentFile", "").lstrip("-")
        if file and self.tree.at(file).exists():
            lines = self.tree.at(file).read_text().splitlines()
            variables |= dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **variables}

    @property
    def command(self):
        options = self.options
        words = ["setpriv", f"--reuid={options['User']}", f"--regid={options['Group']}", "--init-groups", "--no-new-privs"]
        bounding = options["CapabilityBoundingSet"].removeprefix("CAP_").lower()
        words += ["--bounding-set", f"-all,+{bounding}" if bounding else "-all"]
        if ambient := options.get("AmbientCapabilities", "").removeprefix("CAP_").lower():
            words += ["--inh-caps", f"-all,+{ambient}", "--ambient-caps", f"-all,+{ambient}"]
        # Only a privileged process may exceed its hard limit.
        limit = min(int(options["LimitNOFILE"]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]) if "LimitNOFILE" in options else None
        if limit:
            words = ["prlimit", f"--nofile={limit}:{limit}", *words]
        return ["/usr/sbin/chroot", self.tree.path, *words, *shlex.split(options["ExecStart"])]

    def run(self):
        """Runs the program of a unit with Type=oneshot."""
        result = subprocess.run(self.command, env=self.environment, text=True, capture_output=True)
        require(result.returncode == 0, f"{self.options['ExecStart']}: {result.stderr}")

    def start(self):
        """Starts the program of a unit with Type=notify, and waits until it reports that it is ready."""
        require(self.options["Type"] == "notify", "the service does not report to systemd")
        path = self.tree.at("/run/notify")
        path.unlink(missing_ok=True)
        self.reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.reports.bind(str(path))
        path.chmod(0o777)
        self.reports.settimeout(60)
        timeout = int(self.options["WatchdogSec"]) * 1_000_000
        # A short timeout, so that the first keep-alive comes soon.
        timeout = min(timeout, 2_000_000)
        environment = self.environment | {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": str(timeout)}
        self.log = self.tree.at("/var/log/tambour-server").open("a")
        self.process = subprocess.Popen(self.command, env=environment, stdout=self.log, stderr=self.log)
        self.wait("READY=1")
        self.wait("WATCHDOG=1")

    def wait(self, report):
        try:
            while not self.reports.recv(4096).decode().startswith(report):
                pass
        except TimeoutError:
            sys.exit(f"FAILED: the server does not report {report}: {self.tree.at('/var/log/tambour-server').read_text()}")

    def reload(self):
        self.process.send_signal(signal.SIGHUP)
        self.wait("RELOADING=1")
        self.wait("READY=1")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.wait("STOPPING=1")
        require(self.process.wait(60) == 0, f"the server exited with {self.process.returncode}")
        self.process = None

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Person:
    """Somebody who uses the terminal client in the tree."""

    def __init__(self, tree, name, phone, invite):
        self.tree, self.name, self.phone = tree, name, phone
        tree.run("useradd", "--create-home", name)
        # The code arrives after the client has asked for it, so it goes through a pipe.
        words = ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups",
                 "tambour", "login", NAME_AND_PORT, phone, "--ca", "/tmp/ca.pem", "--invite", invite]
        login = subprocess.Popen(["/usr/sbin/chroot", tree.path, *words], env=self.environment, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        code = wait_for(lambda: self.code(), f"no code for {phone}")
        output, _ = login.communicate(f"{code}\n{name.capitalize()}\n", timeout=60)
        require(login.returncode == 0, f"{name} cannot sign in: {output}")

    @property
    def environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": f"/home/{self.name}", "TERM": "dumb", "LANG": "C.UTF-8"}

    def code(self):
        found = re.findall(rf"^\{self.phone} (\d+)$", self.tree.at(f"{DATA}/login-codes").read_text(), re.MULTILINE)
        return found[-1] if found else None

    def tambour(self, *words):
        return self.tree.run("tambour", *words, user=self.name, home=f"/home/{self.name}", LANG="C.UTF-8").stdout


NAME_AND_PORT = f"tls://{NAME}:{PORT}"


def require(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def wait_for(body, message, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := body():
            return found
        # The server writes the file some time after the request, and nothing tells when.
        time.sleep(0.05)
    sys.exit(f"FAILED: {message}")


@contextlib.contextmanager
def step(name):
    begin = time.monotonic()
    yield
    print(f"{time.monotonic() - begin:6.1f} s  {name}", flush=True)


def lower(package, scratch):
    """The same package with a lower version."""
    tree = scratch / "lower"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 0.0.1", control.read_text(), flags=re.MULTILINE))
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, scratch / "before.deb"], check=True, stdout=subprocess.DEVNULL)
    return scratch / "before.deb"


def exposure():
    for unit in ("tambour.service", "tambour-backup.service"):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / unit
            file.write_text((HERE / unit).read_text().replace("@PREFIX@", "/usr").replace("@DOC@", "/usr/share/doc/tambour"))
            words = ["systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={MOST_EXPOSURE}", file]
            result = subprocess.run(words, text=True, capture_output=True)
            require(result.returncode == 0, result.stdout + result.stderr)
            print(f"          {re.search('Overall exposure level.*', result.stdout)[0]}")


def certify(tree, scratch):
    """Makes a private authority and lets the hook copy its certificate, as certbot would."""
    subprocess.run([ROOT / "scripts/dev-cert", scratch / "authority", NAME], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(scratch / "authority/ca.pem", tree.at("/tmp/ca.pem"))
    tree.at("/tmp/ca.pem").chmod(0o644)
    lineage = tree.at(f"/etc/letsencrypt/live/{NAME}")
    lineage.mkdir(parents=True)
    shutil.copy(scratch / f"authority/{NAME}.pem", lineage / "fullchain.pem")
    shutil.copy(scratch / f"authority/{NAME}.key", lineage / "privkey.pem")
    hook = "/etc/letsencrypt/renewal-hooks/deploy/tambour"
    tree.run(hook, RENEWED_LINEAGE=f"/etc/letsencrypt/live/{NAME}")
    require(not tree.at("/etc/tambour/tls/fullchain.pem").exists(), "the hook copies a certificate that nobody chose")
    default = tree.at("/etc/default/tambour")
    default.write_text(default.read_text().replace("TAMBOUR_CERTIFICATE=\n", f"TAMBOUR_CERTIFICATE={NAME}\n").replace("BACKUPS=7", "BACKUPS=2"))
    tree.run(hook, RENEWED_LINEAGE=f"/etc/letsencrypt/live/{NAME}")
    require(tree.owner("/etc/tambour/tls/privkey.pem") == "root:tambour 640", "the key has another owner or mode")


def configure(tree):
    file = tree.at("/etc/tambour/tambourd.yaml")
    options = re.sub(r"^listen: .*$", "\n".join([
        f"listen: tls://127.0.0.1:{PORT}", "tlsCertificate: /etc/tambour/tls/fullchain.pem", "tlsKey: /etc/tambour/tls/privkey.pem",
    ]), file.read_text(), flags=re.MULTILINE)
    file.write_text(options)
    return options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    arguments = parser.parse_args()
    require(os.geteuid() == 0, "debootstrap and chroot need root")
    mirror = os.environ.get("MIRROR") or subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)"], check=True, text=True, capture_output=True).stdout.split()[0]
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tambour-package.")))
        scratch.chmod(0o755)
        exposure()
        with step("debootstrap"):
            tree = Tree(scratch / "tree")
            stack.callback(tree.close)
            tree.make(mirror)
        with step("install the package from before"):
            tree.run("apt-get", "update")
            tree.install(arguments.before or lower(arguments.package, scratch))
        require(tree.owner(DATA) == "tambour:tambour 700", f"{DATA} has another owner or mode: {tree.owner(DATA)}")
        missing = [line for program in ("tambourd", "tambour") for line in
                   tree.run("ldd", f"/usr/bin/{program}").stdout.splitlines() if "not found" in line]
        require(not missing, f"libraries are missing: {missing}")
        with step("a certificate, and the server with TLS"):
            certify(tree, scratch)
            options = configure(tree)
            server = Unit(tree, "tambour.service")
            stack.callback(server.close)
            server.start()
        with step("two people sign in with an invitation, and chat"):
            admin = ["tambourd", "admin", "invites", "create", "--data", DATA, "--uses", "2"]
            invite = tree.run(*admin, user="tambour").stdout.split()[1]
            alice = Person(tree, "alice", "+79990000001", invite)
            bob = Person(tree, "bob", "+79990000002", invite)
            alice.tambour("send", bob.phone, "Hello, Bob")
            require("Hello, Bob" in bob.tambour("history", "Alice"), "Bob has no message")
            bob.tambour("send", "Alice", "Hello, Alice")
            require("Hello, Alice" in alice.tambour("history", "Bob"), "Alice has no answer")
        with step("three backups, of which two are kept"):
            backup = Unit(tree, "tambour-backup.service")
            for _ in range(3):
                backup.run()
                second = int(time.time())
                while int(time.time()) == second:
                    time.sleep(0.05)  # A name lasts a second.
            require(len(list(tree.at(BACKUPS).iterdir())) == 2, f"other backups: {list(tree.at(BACKUPS).iterdir())}")
        with step("root is refused in the directory of the server's user"):
            server.reload()
            server.stop()
            refused = tree.run("tambourd", "admin", "users", "list", "--data", DATA, check=False)
            require(refused.returncode != 0 and "sudo -u 'tambour'" in refused.stderr, f"root may write: {refused}")
        with step("upgrade, and everything is there"):
            tree.install(arguments.package)
            require(tree.at("/etc/tambour/tambourd.yaml").read_text() == options, "the upgrade changed the configuration")
            server = Unit(tree, "tambour.service")
            stack.callback(server.close)
            server.start()
            alice.tambour("send", "Bob", "After the upgrade")
            history = bob.tambour("history", "Alice")
            require("Hello, Bob" in history and "After the upgrade" in history, f"Bob misses a message: {history}")
            server.stop()
        with step("remove and purge, which keep the messages"):
            tree.run("apt-get", "remove", "--yes", "tambour")
            require(not tree.at("/usr/bin/tambourd").exists(), "the program is still there")
            require(tree.at("/etc/tambour/tambourd.yaml").exists(), "the configuration is gone")
            purged = tree.run("apt-get", "purge", "--yes", "tambour")
            require("are kept" in purged.stdout + purged.stderr, "the purge does not say what it keeps")
            require(not tree.at("/etc/tambour/tambourd.yaml").exists(), "the configuration is still there")
            require(tree.at(f"{DATA}/tambour.db").exists(), "the messages are gone")
        print("The package works.")


if __name__ == "__main__":
    main()
