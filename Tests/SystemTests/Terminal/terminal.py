"""A program in a pseudo-terminal, and the screen that a person would see.

`pyte` is the terminal: it keeps the cells, the cursor and whether it is visible. Nothing here sleeps: `until` reads what
programs write until a condition of a screen holds, and fails with the screen when that takes too long.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable

import pyte

#: Seconds until expected screen content counts as missing. The limit is generous, because the machine may be busy.
DEADLINE = float(os.environ.get("TAMBOUR_TERMINAL_DEADLINE", "30"))

KEYS = {
    "Enter": "\r", "Esc": "\x1b", "Tab": "\t", "Backspace": "\x7f", "Up": "\x1b[A", "Down": "\x1b[B",
    "PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "F1": "\x1bOP", "Alt-End": "\x1b[1;3F",
    "Alt-Up": "\x1b[1;3A", "Alt-Down": "\x1b[1;3B", "Alt-Enter": "\x1b\r",
}


class Failure(Exception):
    """Something that the screen should have shown, and did not."""


def check(holds: object, otherwise: str) -> None:
    if not holds:
        raise Failure(otherwise)


class Screen(pyte.Screen):
    """A screen that also scrolls regions, which `pyte` does not support (ECMA-48: SU and SD)."""

    def scroll_up(self, count: int = 1) -> None:
        self.scroll(self.delete_lines, count)

    def scroll_down(self, count: int = 1) -> None:
        self.scroll(self.insert_lines, count)

    def scroll(self, change: Callable[[int], None], count: int) -> None:
        row, column = self.cursor.y, self.cursor.x
        self.cursor.y = self.margins.top if self.margins else 0
        change(max(1, count))
        self.cursor.y, self.cursor.x = row, column


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, "S": "scroll_up", "T": "scroll_down"}


class Terminal:
    """One terminal, of a size in columns and rows, with a program in it."""

    #: All open terminals. Waiting for one terminal reads the output of all.
    opened: list[Terminal] = []

    def __init__(self, command: list[str], environment: dict[str, str], size: tuple[int, int] = (80, 24)) -> None:
        self.screen = Screen(*size)
        self.stream = Stream(self.screen)
        self.status: int | None = None
        self.process, self.file = pty.fork()
        if self.process == 0:
            try:
                self.tell_size(0, size)
                os.execve(command[0], command, environment)
            finally:
                os._exit(127)
        os.set_blocking(self.file, False)
        Terminal.opened.append(self)

    @staticmethod
    def tell_size(file: int, size: tuple[int, int]) -> None:
        fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    # Reading the screen

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> tuple[int, int] | None:
        """Row and column, from 0; None while it is hidden."""
        return None if self.screen.cursor.hidden else (self.screen.cursor.y, self.screen.cursor.x)

    def __str__(self) -> str:
        size = f"{self.screen.columns}x{self.screen.lines}"
        ended = "" if self.status is None else f", ended with {self.status}"
        lines = "\n".join(f"|{line}" for line in self.lines)
        return f"{size}, cursor {self.cursor}{ended}\n{lines}"

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Waits until `holds` returns true.

        Raises `Failure` with the screen when that takes too long, or when the program has ended before.
        """
        end = time.monotonic() + DEADLINE
        while not holds():
            left = end - time.monotonic()
            if left <= 0 or not Terminal.listen(left, self):
                raise Failure(f"never: {what}\n{self}")

    @property
    def takes_keys(self) -> bool:
        """Whether the program gets each key at once: the terminal is not in canonical mode."""
        return not termios.tcgetattr(self.file)[3] & termios.ICANON

    def shows(self, *texts: str) -> None:
        self.until(" and ".join(map(repr, texts)), lambda: all(text in self.text for text in texts))

    def shows_no_more(self, text: str) -> None:
        self.until(f"without {text!r}", lambda: text not in self.text)

    # Typing

    def type(self, text: str) -> None:
        rest = text.encode()
        while rest:
            try:
                rest = rest[os.write(self.file, rest):]
            except BlockingIOError:
                # The program must first read its input. It may have to write output before it can read.
                select.select([], [self.file], [], 0.01)
                Terminal.listen(0, self)

    def press(self, *keys: str) -> None:
        """Presses keys: a name such as `Enter`, `Alt-g` or `Ctrl-u`, or a single letter."""
        for key in keys:
            if key in KEYS:
                self.type(KEYS[key])
            elif key.startswith("Alt-"):
                self.type("\x1b" + key[4:])
            elif key.startswith("Ctrl-"):
                self.type(chr(ord(key[5:].upper()) & 31))
            else:
                self.type(key)

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self.tell_size(self.file, (columns, rows))
        # Some systems do not signal the program when the size is set from outside.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGWINCH)

    # The end of the program

    def ended(self, what: str = "the program ends") -> int:
        """Waits for the end of the program; its exit status, or 128 and the signal."""
        end = time.monotonic() + DEADLINE
        while self.status is None:
            check(time.monotonic() < end, f"never: {what}\n{self}")
            Terminal.listen(0.1, self)
        return self.status

    def kill(self) -> None:
        """Ends the program as a power cut would."""
        if self.status is None:
            os.kill(self.process, signal.SIGKILL)
            self.ended("killed")

    def close(self) -> None:
        self.kill()
        if self in Terminal.opened:
            Terminal.opened.remove(self)
            os.close(self.file)

    # Reading the output

    @staticmethod
    def listen(seconds: float, waiting: Terminal) -> bool:
        """Reads the pending output of all terminals, once.

        Returns whether the program of `waiting` still runs, or has written something.
        """
        alive = [terminal for terminal in Terminal.opened if terminal.status is None]
        if waiting not in alive:
            return False
        readable, _, _ = select.select([terminal.file for terminal in alive], [], [], seconds)
        for terminal in alive:
            if terminal.file in readable:
                terminal.read()
        return True

    def read(self) -> None:
        try:
            data = os.read(self.file, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        if data:
            self.stream.feed(data)
            return
        status = os.waitpid(self.process, 0)[1]
        self.status = os.waitstatus_to_exitcode(status)
        if self.status < 0:
            self.status = 128 - self.status


def close_all() -> None:
    for terminal in list(Terminal.opened):
        terminal.close()
