#!/usr/bin/env python3
"""Traces a send and a login in a debug build and compares them with docs/journey.md.

    Tests/journey/trace.py [--program TAMBOURD] [--list]

Every function of the program reports its calls (trace.c). Each table of the page names functions. The operation must call these functions
in the order of the table. Prints the number of hand-written functions and files that an operation goes through. With --list, also prints
the functions. Exits with 1 if page and trace differ.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/compare"))

from server import Server  # noqa: E402
from wire import NOTIF_MESSAGE, Client  # noqa: E402

SCRATCH = ROOT / ".build/trace"
PAGE = ROOT / "docs/journey.md"
TABLES = {"send": '## "alice sends hello"', "login": '## "bob is back"'}


def build():
    """Makes a debug build whose functions report their calls. Returns the path of the program."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    trace = SCRATCH / "trace.o"
    source = pathlib.Path(__file__).with_name("trace.c")
    subprocess.run(["clang", "-c", "-O1", "-fPIC", "-Wall", "-Wextra", str(source), "-o", str(trace)], check=True)
    subprocess.run(
        ["swift", "build", "--scratch-path", str(SCRATCH), "--product", "tambourd", "--sanitize", "address"]
        + ["-Xswiftc", "-sanitize-coverage=func,trace-pc-guard", "-Xlinker", str(trace)],
        check=True, cwd=ROOT, stdout=sys.stderr,
    )
    return SCRATCH / "debug/tambourd"


class Call:
    """A call of a function in Sources/."""

    def __init__(self, file, function, is_plain):
        self.file, self.function, self.is_plain = file, function, is_plain

    def __repr__(self):
        return f"{self.file} {self.function}"


class Symbols:
    """The functions of a program, by their addresses."""

    def __init__(self, program):
        self.program, self.known = program, {}

    def look_up(self, addresses):
        missing = sorted(set(addresses) - set(self.known))
        if not missing:
            return
        found = subprocess.run(
            ["llvm-symbolizer", f"--obj={self.program}", "--output-style=JSON", "--no-demangle", "--no-inlines"],
            input="".join(f"0x{address:x}\n" for address in missing), capture_output=True, text=True, check=True,
        )
        symbols = [json.loads(line)["Symbol"] for line in found.stdout.splitlines() if line.strip()]
        frames = [symbol[0] if symbol else {} for symbol in symbols]
        names = subprocess.run(
            ["swift", "demangle", "--compact", "--simplified"],
            input="".join(frame.get("FunctionName", "") + "\n" for frame in frames),
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for address, frame, name in zip(missing, frames, names):
            self.known[address] = self.call(frame.get("FileName", ""), name)

    @staticmethod
    def call(file, name):
        """Returns the call of a function; None if the function belongs to a library or is a thunk."""
        sources = f"{ROOT}/Sources/"
        if not file.startswith(sources):
            return None
        file = file.removeprefix(sources)
        if "thunk" in name or "witness" in name or "outlined" in name or "autoclosure" in name:
            return None
        plain = re.match(r"(?:static |specialized )*(?:[^()#]*\.)?(\w+)(?:<.*>)?\(", name)
        is_plain = bool(plain) and "closure #" not in name
        return Call(file, plain[1] if is_plain else name, is_plain)


class TracedServer(Server):
    def __init__(self, program, directory):
        self.trace = pathlib.Path(directory) / "trace"
        os.environ["TAMBOUR_TRACE"] = str(self.trace)
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
        super().__init__(program, ROOT, directory)

    def traced(self, body):
        """Returns the addresses of the functions that are called while `body` runs."""
        self.settle()
        self.process.send_signal(signal.SIGRTMIN)
        wait(self.trace.with_suffix(".begun").exists)
        body()
        self.settle()
        self.process.send_signal(signal.SIGRTMIN + 1)
        wait(self.trace.exists)
        calls = [offset for _, offset in struct.iter_unpack("<II", self.trace.read_bytes())]
        self.trace.unlink()
        self.trace.with_suffix(".begun").unlink()
        return calls

    def settle(self):
        """Waits until the server is idle. The work that it does later belongs to no operation."""
        used = []

        def is_quiet():
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            used.append(int(fields[11]) + int(fields[12]))
            return len(used) > 10 and used[-10] == used[-1]

        wait(is_quiet)


def wait(condition):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("the server is never quiet, or answers no signal")
        # The traced program does not report when it is idle or has written its trace, so poll.
        time.sleep(0.05)


def record(program):
    """Returns the addresses of the functions that a send and a login call, in order."""
    with tempfile.TemporaryDirectory() as scratch:
        server = TracedServer(program, scratch)
        try:
            (_, token), (bob, bobs_token) = server.accounts(2)
            alice, receiver = Client(server.address), Client(server.address)
            alice.log_in(token)
            receiver.log_in(bobs_token)
            # The first message creates the chat, so send it before the trace.
            alice.send(bob, "hello")
            receiver.wait_for_push(NOTIF_MESSAGE)

            def send():
                alice.send(bob, "hello")
                receiver.wait_for_push(NOTIF_MESSAGE)

            calls = {"send": server.traced(send)}
            receiver.close()
            alice.send(bob, "hello again")
            receiver = Client(server.address)
            calls["login"] = server.traced(lambda: receiver.log_in(bobs_token))
            return calls
        finally:
            server.stop()


def named(heading):
    """Yields what a table of the page names: pairs of file and function, in the order of the table."""
    _, _, text = PAGE.read_text().partition(heading)
    section = text.split("\n## ")[0]
    for row in section.splitlines():
        if re.match(r"\| \d+ \|", row):
            file = None
            for word in re.findall(r"`([^`]+)`", row.split("|")[2]):
                if "/" in word:
                    file = word
                else:
                    yield file, word


def compare(name, calls):
    """Yields the complaints about one table of the page."""
    position = 0
    for file, function in named(TABLES[name]):
        matching = (
            index for index in range(position, len(calls))
            if calls[index].file == file and calls[index].function == function
        )
        index = next(matching, None)
        if index is None:
            called = any(call.file == file and call.function == function for call in calls)
            yield f"{name}: {file} {function} {'comes too late on the page' if called else 'was not called'}"
        else:
            position = index + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, help="a traced build that exists already")
    parser.add_argument("--list", action="store_true", help="print the functions called")
    options = parser.parse_args()
    program = options.program or build()
    symbols, complaints = Symbols(program), []
    for name, addresses in record(program).items():
        symbols.look_up(addresses)
        calls = [call for call in map(symbols.known.get, addresses) if call]
        complaints += compare(name, calls)
        calls = [call for call in calls if "/Generated/" not in call.file]
        functions = dict.fromkeys((call.file, call.function) for call in calls if call.is_plain)
        files = dict.fromkeys(file for file, _ in functions)
        print(f"{name}: {len(calls)} calls of {len(functions)} functions in {len(files)} files")
        if options.list:
            for file, function in functions:
                print(f"    {file} {function}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
