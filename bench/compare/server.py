"""Runs the server of a checkout, natively or under callgrind."""

import pathlib
import re
import subprocess
import time

from wire import PING, Client


def limits_file(checkout, path):
    """Writes a limits file that turns off the rate limits. Finds them in the checkout by the suffixes of their names."""
    lines = []
    text = (checkout / "protocol-spec/limits.yaml").read_text()
    for line in text.splitlines():
        name = re.search(r"name: (\w+)", line)
        if not name or not re.search(r"(Burst|PerMinute|PerHour|PerSecond)$", name[1]):
            continue
        most = re.search(r"max: (\d+)", line)
        lines.append(f"{name[1]}: {most[1] if most else 1_000_000_000}\n")
    # Set long timeouts, because every operation takes fifty times as long under callgrind.
    for name in ("loginTimeoutMs", "idleTimeoutMs", "sessionInitTimeoutMs", "partialFrameTimeoutMs"):
        lines.append(f"{name}: 3600000\n")
    path.write_text("".join(lines))


class Server:
    def __init__(self, program, checkout, directory, valgrind=None):
        self.program, self.directory = program, pathlib.Path(directory)
        self.data = self.directory / "data"
        limits = self.directory / "limits.yaml"
        if not limits.exists():
            limits_file(checkout, limits)
        command = [*(valgrind or []), str(program), "serve", "--listen", "127.0.0.1:0", "--data", str(self.data)]
        command += ["--login-codes", f"file:{self.directory}/codes", "--limits", str(limits), "--lanes", "1"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=(self.directory / "errors").open("a"), text=True, cwd=self.directory
        )
        for line in self.process.stdout:
            if found := re.search(r"listening tcp (\S+)", line):
                self.address = found[1]
                return
        raise RuntimeError(f"{program} did not start: {(self.directory / 'errors').read_text()[-2000:]}")

    def accounts(self, count):
        """Creates accounts and returns their user ids and tokens as pairs."""
        made = subprocess.run(
            [str(self.program), "admin", "users", "create", "--data", str(self.data), "--count", str(count)]
            + ["--first-phone", "+79990000001"],
            capture_output=True, text=True, check=True,
        )
        words = [line.split() for line in made.stdout.splitlines()]
        return [(int(word[1]), word[2]) for word in words if len(word) == 3]

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=600)


class CountedServer(Server):
    """A server under callgrind, which counts the work of an operation."""

    # Each group of functions whose calls are counted.
    CALLS = {
        "statements": {"sqlite3_reset", "PQsendQueryPrepared", "PQexecPrepared"},
        "allocations": {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"},
    }

    def __init__(self, program, checkout, directory):
        out = pathlib.Path(directory) / "callgrind.out"
        for old in out.parent.glob("callgrind.out*"):
            old.unlink()
        # Valgrind cannot read the debug information that these compilers write. It needs only the symbols, which strip keeps.
        stripped = pathlib.Path(directory) / "tambourd"
        subprocess.run(["strip", "--strip-debug", "-o", str(stripped), str(program)], check=True)
        super().__init__(
            stripped, checkout, directory,
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--separate-threads=no", "--quiet"],
        )
        self.out = out
        self.dumps = 0

    def counts(self, work):
        """Returns the instructions, statements and allocations of `work`, including background work that follows."""
        self.settle()
        self.control("--zero")
        work()
        self.settle()
        self.control("--dump")
        self.dumps += 1
        path = self.out.with_name(f"{self.out.name}.{self.dumps}")
        deadline = time.monotonic() + 60
        while not path.exists() or "totals:" not in path.read_text():
            if time.monotonic() > deadline:
                raise RuntimeError(f"callgrind wrote no {path}")
            time.sleep(0.1)
        return parse(path.read_text(), self.CALLS)

    def settle(self):
        """Waits until the server is idle."""
        deadline = time.monotonic() + 300
        quiet = 0
        while quiet < 3 and time.monotonic() < deadline:
            before = self.ticks()
            time.sleep(0.5)
            quiet = quiet + 1 if self.ticks() - before <= 1 else 0

    def ticks(self):
        """Returns the server's processor time so far, in hundredths of a second."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def control(self, what):
        """Sends a command to callgrind. Callgrind only checks for commands while the server executes, so PINGs keep it busy."""
        waker = Client(self.address)
        command = ["callgrind_control", what, str(self.process.pid)]
        control = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while control.poll() is None:
            waker.call(PING, {})
            time.sleep(0.02)
        waker.close()
        if control.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {control.returncode}")


def parse(text, calls):
    """Returns the totals of a dump: instructions, and calls by group of functions."""
    names = {}
    counted = {group: 0 for group in calls}
    callee = None
    instructions = 0
    for line in text.splitlines():
        if match := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line):
            if match[3]:
                names[match[2]] = match[3].split("@")[0].split("'")[0]
            if match[1] == "cfn":
                callee = names.get(match[2], "")
        elif line.startswith("calls=") and callee is not None:
            count = int(line[6:].split()[0])
            for group, functions in calls.items():
                if callee in functions:
                    counted[group] += count
            callee = None
        elif line.startswith("totals:"):
            instructions = int(line.split()[1])
    return {"instructions": instructions} | counted
