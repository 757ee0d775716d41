"""Follows the guide as a reader would: word for word, from an empty folder.

    follow.py PAGE FOLDER

The first line of a block says what the block is:

- `python title="FILE"` is written to that file.
- `console` contains commands after `$`, each with its output. A block with a title stands for a terminal of
  that name, in which the command keeps running.
- `text title="NAME"` is what that terminal prints next.

`…` matches anything; alone in a line, it matches any number of lines. The address on the page is replaced by
the server's address.
`tambourd` and `python3` are found in PATH.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

#: Seconds until an expected line counts as missing. The limit is generous, because the machine may be busy.
DEADLINE = 60

#: The server's address on the page.
ADDRESS = "127.0.0.1:7770"


class Block(NamedTuple):
    line: int
    language: str
    title: str
    text: str


class Failure(Exception):
    """The programs do something other than the page says."""


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page in their order."""
    pattern = r"^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```$"
    fences = len(re.findall(r"^```", page, re.M))
    found = list(re.finditer(pattern, page, re.M | re.S))
    if 2 * len(found) != fences:
        raise Failure(f"{fences} fences, but {len(found)} blocks that can be followed")
    for match in found:
        yield Block(page.count("\n", 0, match.start()) + 1, match[1], match[2] or "", match[3])


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console, each with the lines that it prints."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("$ "):
        raise Failure("a console begins with a command")
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start][2:], lines[start + 1 : end]


def matches(expected: str, printed: str) -> bool:
    pattern = ".*".join(map(re.escape, expected.rstrip().split("…")))
    return re.fullmatch(pattern, printed.rstrip()) is not None


class Program:
    """A running command, and its output line by line."""

    def __init__(self, command: str, folder: Path, typed: str = "") -> None:
        self.command = command
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(typed)
        self.process.stdin.close()
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next_line(self) -> str | None:
        try:
            return self.lines.get(timeout=DEADLINE)
        except queue.Empty:
            raise Failure(f"{self.command}: prints nothing more") from None

    def expect(self, expected: list[str]) -> list[str]:
        """Reads the next lines, which must match. A line of `…` alone matches any number of lines."""
        printed = []
        for index, line in enumerate(expected):
            following = expected[index + 1] if index + 1 < len(expected) else None
            while True:
                found = self.next_line()
                if found is None:
                    raise Failure(f"{self.command}: ended before it printed {line!r}")
                printed.append(found)
                if line != "…":
                    break
                if following is not None and matches(following, found):
                    return printed + self.expect(expected[index + 2 :])
            if not matches(line, found):
                raise Failure(f"{self.command}: printed {found!r}, the page says {line!r}\n{self.rest()}")
        return printed

    def rest(self) -> str:
        """Returns the first lines of the remaining output; stops when nothing arrives for a second."""
        lines = []
        try:
            while len(lines) < 40 and (line := self.lines.get(timeout=1)) is not None:
                lines.append(line)
        except queue.Empty:
            pass
        return "".join(lines)

    def end(self, *, silent: bool) -> None:
        """Waits for the end without further output. A `silent` command must succeed."""
        line = self.next_line()
        if line is not None:
            raise Failure(f"{self.command}: printed {line!r}, which is not on the page\n{self.rest()}")
        if (status := self.process.wait(DEADLINE)) and silent:
            raise Failure(f"{self.command}: ended with {status}")

    def stop(self) -> None:
        """Ends the command and whatever it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(DEADLINE)


class Reader:
    """Somebody who follows the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = "127.0.0.1:0"
        self.programs: list[Program] = []
        self.terminals: dict[str, Program] = {}
        #: The terminals whose complete output the page shows.
        self.told: set[str] = set()

    def follow(self, block: Block) -> None:
        if block.language == "python" and block.title:
            (self.folder / block.title).write_text(block.text)
        elif block.language == "console":
            for command, expected in commands(block.text):
                self.run(command, expected, block.title)
        elif block.language == "text" and block.title in self.terminals:
            self.terminals[block.title].expect(block.text.splitlines())
            self.told.add(block.title)
        else:
            raise Failure("nobody knows what to do with this block")

    def run(self, command: str, expected: list[str], terminal: str) -> None:
        started = time.monotonic()
        # The page shows what a person types at a prompt, but a pipe does not echo it.
        typed = ""
        for index, line in enumerate(expected):
            if line.startswith("Code: "):
                typed = line.removeprefix("Code: ") + "\n"
                expected[index : index + 2] = ["Code: " + expected[index + 1]]
                break
        program = Program(command.replace(ADDRESS, self.address), self.folder, typed)
        self.programs.append(program)
        if terminal:
            self.terminals[terminal] = program
        address = "…" if terminal else self.address
        printed = program.expect([line.replace(ADDRESS, address) for line in expected])
        if match := re.search(r"^listening tcp (\S+)", "".join(printed), re.M):
            self.address = match[1]
        if not terminal:
            program.end(silent=not expected)
        print(f"  ok  {time.monotonic() - started:5.2f} s  {command}", flush=True)

    def finish(self) -> None:
        """Checks that no terminal printed more than the page shows."""
        for name in self.told:
            program = self.terminals[name]
            program.stop()
            if rest := program.rest():
                raise Failure(f"{name} printed what is not on the page:\n{rest}")

    def leave(self) -> None:
        for program in reversed(self.programs):
            program.stop()


def main() -> int:
    page, folder = map(Path, sys.argv[1:])
    reader = Reader(folder)
    count = 0
    try:
        for block in blocks(page.read_text("utf-8")):
            try:
                reader.follow(block)
            except Failure as failure:
                raise Failure(f"{page.name}:{block.line}: {failure}") from None
            count += 1
        reader.finish()
    except Failure as failure:
        print(failure, flush=True)
        return 1
    finally:
        reader.leave()
    print(f"  ok  {count} blocks", flush=True)
    return 0


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    sys.exit(main())
