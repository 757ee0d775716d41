"""What the scenarios use: a server, people with devices, and the screens of these devices."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from terminal import DEADLINE, Failure, Terminal, check, close_all

#: The login code of every person.
CODE = "111111"

#: High rate limits, because tests are faster than people.
LIMITS = {
    "maxCodesPerPhonePerHour": 1000, "maxCodesPerPhoneFromAllPerHour": 1000, "maxCodesPerAddressPerHour": 1000,
    **{f"{kind}{rate}": 100_000 for kind in ("auth", "login", "send", "create", "profile", "manage", "draft")
       for rate in ("Burst", "sPerMinute")},
}

#: Every scenario by its name.
SCENARIOS: dict[str, Callable[[World], None]] = {}

#: The start time of this process.
STARTED = time.monotonic()

#: Whether to play the long form of a scenario.
IS_LONG = os.environ.get("TAMBOUR_SOAK") == "1"


def scenario(function: Callable[[World], None]) -> Callable[[World], None]:
    SCENARIOS[function.__name__] = function
    return function


def fact(text: str) -> None:
    print(f"  ok  {time.monotonic() - STARTED:6.2f} s  {text}", flush=True)


class Server:
    """`tambourd` on a port of its own, which stays the same over restarts."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder
        (folder / "limits").write_text("".join(f"{name}: {value}\n" for name, value in LIMITS.items()))
        self.port = "0"
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.program, "serve", "--listen", self.address, "--data", self.folder / "server", "--login-codes",
             f"fixed:{CODE}", "--limits", self.folder / "limits"],
            stdout=subprocess.PIPE, stderr=(self.folder / "server.log").open("a"), text=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        check(line.startswith("listening tcp"), f"no server: {line}{(self.folder / 'server.log').read_text()}")
        self.port = line.split(":")[-1].strip()

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(DEADLINE)


class Person:
    """A user with a phone number; each of the user's devices has its own folder."""

    def __init__(self, world: World, name: str, number: int) -> None:
        self.world, self.name = world, name
        self.phone = f"+7999000{number:04}"
        self.writer: subprocess.Popen[str] | None = None

    def home(self, device: str) -> Path:
        return self.world.folder / f"{self.name}-{device}"

    def environment(self, device: str) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name.startswith("TAMBOUR_")},
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.world.folder), "TZ": "UTC",
            "TERM": "xterm-256color", "LANG": "C.UTF-8", "TAMBOUR_HOME": str(self.home(device)), "EDITOR": str(self.world.folder / "editor"),
            "BROWSER": "true",
        }

    def run(self, *arguments: str, device: str = "phone", given: str | None = None, status: int = 0) -> str:
        """Runs a command and returns its output."""
        done = subprocess.run(
            [self.world.tambour, *arguments], input=given, capture_output=True, text=True, timeout=DEADLINE * 2,
            env=self.environment(device),
        )
        check(done.returncode == status, f"tambour {arguments} of {self.name}: {done.stdout}{done.stderr}")
        return done.stdout

    def log_in(self, device: str = "phone") -> None:
        self.run("login", self.world.server.address, self.phone, device=device, given=f"{CODE}\n{self.name}\n")

    def open(self, *arguments: str, device: str = "phone", size: tuple[int, int] = (80, 24)) -> Terminal:
        return Terminal([str(self.world.tambour), *arguments], self.environment(device), size)

    def online(self, device: str = "phone", size: tuple[int, int] = (80, 24)) -> Terminal:
        """Opens a screen and waits until it is online."""
        terminal = self.open(device=device, size=size)
        terminal.shows(" online")
        return terminal

    def write(self, to: str, text: str) -> None:
        """Sends a message by a command that stays connected."""
        if self.writer is None:
            self.writer = subprocess.Popen(
                [self.world.tambour, "send", to, "--lines"], stdin=subprocess.PIPE, text=True,
                env=self.environment("phone"),
            )
        assert self.writer.stdin
        self.writer.stdin.write(f"{text}\n")
        self.writer.stdin.flush()

    def close(self) -> None:
        if self.writer:
            self.writer.kill()
            self.writer.wait()


class World:
    """A server of its own for one scenario."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.tambour = folder, programs / "tambour"
        self.programs = programs
        # This editor keeps a copy of its file and changes nothing.
        editor = folder / "editor"
        editor.write_text(f'#!/bin/sh\ncp "$1" "{folder}/edited.new" && mv "{folder}/edited.new" "{folder}/edited"\n')
        editor.chmod(0o700)
        self.server = Server(programs / "tambourd", folder)
        self.people: list[Person] = []
        self.fences = 0

    def person(self, name: str, *, signed_in: bool = True) -> Person:
        person = Person(self, name, len(self.people) + 1)
        self.people.append(person)
        if signed_in:
            person.log_in()
        return person

    def send_fence(self, sender: Person, receiver: Person) -> None:
        """Makes `sender` send a message, which arrives after everything that has happened before."""
        self.fences += 1
        sender.write(receiver.phone, f"fence {self.fences}.")

    def pass_fence(self, terminal: Terminal) -> None:
        """Waits until the fence and everything sent before it have arrived, and until no task waits."""
        terminal.shows(f"fence {self.fences}.")
        terminal.until("nothing under way", lambda: is_idle(terminal))

    @contextmanager
    def checking(self, name: str) -> Iterator[None]:
        """Names a check: prints the name if the body succeeds, and adds it to a failure."""
        try:
            yield
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure
        fact(name)

    def close(self) -> None:
        close_all()
        for person in self.people:
            person.close()
        self.server.stop(signal.SIGKILL)


def is_idle(terminal: Terminal) -> bool:
    """Whether the screen shows that nothing waits, is updated or is fetched."""
    status = terminal.lines[-1]
    return " waiting" not in status and "updating" not in status and "fetching" not in terminal.text


def select_item(terminal: Terminal, name: str) -> None:
    """Types a name into an open panel, and waits until the item with that name is selected.

    It is not enough to see the name in the line. A panel may open before its items are read. A key then selects
    no item.
    """
    terminal.type(name)
    terminal.until(f"{name} selected", lambda: f"> {name}" in terminal.text and re.search(rf"│▌.*{re.escape(name)}", terminal.text))


def play(name: str, programs: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="tambour-terminal-") as folder:
        world = World(Path(folder), programs)
        try:
            SCENARIOS[name](world)
            return True
        except Failure as failure:
            print(f"FAILED {name}: {failure}", flush=True)
            return False
        finally:
            world.close()
