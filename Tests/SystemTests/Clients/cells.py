"""Cells of the table. A cell shows what one library does for one feature, and proves its mark:

W: the scenario ran to its end, and the cell checked both sides.
L: the library itself is at fault. The cell names the line of the library's source. The cell fails if the call
does not reach that line, or if the source no longer contains it.
U: the server refuses the request, and `protocol-spec/prose/unserved.md` says why. The cell names the
opcodes. It fails if the server serves one of them, or if `unserved.md` does not list one of them.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import inspect
import re
import sys
import sysconfig
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import DEADLINE, Device, Events, Failure, World, check, signal_runner

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
UNSERVED = ROOT / "protocol-spec/prose/unserved.md"
LIBRARIES = Path(sysconfig.get_paths()["purelib"])


@dataclass(frozen=True)
class Line:
    """A line of a library's source: the file below the folder of libraries, the number, and some text."""

    file: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"

    @property
    def _place(self) -> tuple[Path, int]:
        return LIBRARIES / self.file, self.number

    def must_exist(self) -> None:
        lines = (LIBRARIES / self.file).read_text(encoding="utf-8").splitlines()
        found = lines[self.number - 1] if self.number <= len(lines) else ""
        check(self.text in found, f"{self} is {found.strip()!r}, not {self.text!r}")

    def was_reached(self, error: BaseException) -> bool:
        seen: BaseException | None = error
        while seen is not None:
            if self._place in _places(seen.__traceback__):
                return True
            seen = seen.__cause__ or seen.__context__
        return False

    def is_waited_at(self) -> bool:
        """Whether some task is suspended at this line."""
        for task in asyncio.all_tasks():
            waiting: Any = task.get_coro()
            while waiting is not None:
                frame = getattr(waiting, "cr_frame", None)
                if frame and (Path(frame.f_code.co_filename), frame.f_lineno) == self._place:
                    return True
                waiting = getattr(waiting, "cr_await", None)
        return False


def _places(traceback: TracebackType | None) -> Iterator[tuple[Path, int]]:
    while traceback is not None:
        yield Path(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno
        traceback = traceback.tb_next


class Party(Events, ABC):
    """A user's device that runs the library under test.

    `witness` is another device of the same user, with the stock client. Cells use it for actions that the
    library has no method for.
    """

    def __init__(self, witness: Device) -> None:
        super().__init__()
        self.witness = witness
        #: Opcode and error code of every refused request so far.
        self.refusals: list[tuple[int, str]] = []

    @property
    def id(self) -> int:
        return self.witness.id

    @property
    def phone(self) -> str:
        return self.witness.phone

    def dialog(self, other: Party) -> int:
        return self.id ^ other.id

    @abstractmethod
    async def close(self) -> None: ...

    def __repr__(self) -> str:
        return f"{self.witness.session.stem} ({self.phone})"


@dataclass(frozen=True)
class Cell:
    """What a library does for the feature `row`.

    `make test` plays only the `short` cells. A `last` cell is played after all others, because it ends all
    connections.
    """

    row: str
    play: Callable[[Room], Awaitable[None]]
    short: bool
    last: bool
    fault: Line | None
    unserved: tuple[int, ...]

    @property
    def mark(self) -> str:
        return "L" if self.fault else "U" if self.unserved else "W"

    @property
    def reason(self) -> str:
        if self.fault:
            return f"`{self.fault}`"
        return ", ".join(map(str, self.unserved))


@dataclass
class Suite:
    """The cells of one library, in the order in which they are played."""

    #: The library's name in the registry of Python packages.
    distribution: str
    #: The classes whose public methods the cells must play.
    api: tuple[type, ...]
    #: Logs a person in on one more device, by a code.
    login: Callable[[Room, Device], Awaitable[Party]]
    #: Public methods that a client on TCP does not use, each with the reason.
    outside: dict[str, str] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.distribution)

    def cell(
        self,
        row: str,
        *,
        short: bool = False,
        last: bool = False,
        fault: Line | None = None,
        unserved: tuple[int, ...] = (),
    ) -> Callable[[Callable[[Room], Awaitable[None]]], Callable[[Room], Awaitable[None]]]:
        check(row not in self.cells, f"{self.distribution} has two cells {row!r}")
        check(not (fault and unserved), f"{row!r} is at most one of L and U")

        def register(play: Callable[[Room], Awaitable[None]]) -> Callable[[Room], Awaitable[None]]:
            self.cells[row] = Cell(row, play, short, last, fault, unserved)
            return play

        return register


class Room:
    """The people with whom one library's cells are played: alice and bob, and more if a cell needs them."""

    def __init__(self, suite: Suite, world: World) -> None:
        self.suite, self.world = suite, world
        self.cell: Cell | None = None
        self._faulted = False
        self._refused: set[int] = set()
        self._parties: list[Party] = []
        self._worlds = self._markers = 0

    async def enter(self) -> None:
        self.alice, self.bob = await self.person("alice"), await self.person("bob")
        self.chat = self.alice.dialog(self.bob)

    def another_world(self) -> World:
        """Returns new people for a scenario of the stock client; they know nobody in the room."""
        self._worlds += 1
        world, number = self.world, 600 + self._worlds
        directory = world.directory / str(number)
        directory.mkdir()
        return World(f"{world.host}:{world.port}", world.codes, str(directory), number)

    async def person(self, name: str) -> Party:
        """A new account, logged in with the library."""
        return await self.again(await self.world.register(name))

    async def again(self, witness: Device) -> Party:
        """Logs an existing account in on another device, with the library."""
        party = await self.suite.login(self, witness)
        self._parties.append(party)
        return party

    async def leave(self) -> None:
        for party in self._parties:
            await party.close()

    def restart_server(self) -> None:
        signal_runner("restart")

    # Playing

    async def play(self, cell: Cell) -> None:
        """Plays a cell.

        Raises:
            Failure: The cell's mark is not true.
        """
        self.cell, self._faulted, self._refused = cell, False, set()
        await self._settle()
        for party in self._parties:
            party.forget()
            party.witness.forget()
            party.refusals.clear()
        await cell.play(self)
        check(not cell.fault or self._faulted, f"{cell.row} is not L: nothing showed the fault")
        check(
            self._refused == set(cell.unserved),
            f"{cell.row} is U for {cell.unserved}, refused were {sorted(self._refused)}",
        )

    async def _settle(self) -> None:
        """Waits for all pushes of the previous cell: a marker, sent to both people, arrives after them."""
        if not self._parties:
            return
        self._markers += 1
        marker = f"marker {self._markers}"
        for one, other in ((self.alice, self.bob), (self.bob, self.alice)):
            await one.witness.client.send_message(self.chat, marker)
            await other.next("message", lambda message: message.text == marker)
            await other.witness.next("message", lambda message: message.text == marker)

    @contextmanager
    def fault(self, *errors: type[BaseException]) -> Iterator[None]:
        """Requires the body of the `with` statement to fail at the library's line that the cell names.

        If the library does the wrong thing without an error, the body itself raises `Failure`. Then the line
        must only be unchanged.
        """
        assert self.cell and self.cell.fault, "the cell names no line"
        line = self.cell.fault
        line.must_exist()
        try:
            yield
        except errors as error:
            check(
                isinstance(error, Failure) or line.was_reached(error),
                f"{type(error).__name__} ({error}) did not come from {line}",
            )
            self._faulted = True
        else:
            raise Failure(f"{self.cell.row} works now; it was L because of {line}")

    @contextmanager
    def unserved(self, party: Party, code: str | None = "proto.opcode") -> Iterator[None]:
        """Requires the server to refuse a request of the body with an opcode that the cell names.

        If `code` is None, the server answers, but the answer lacks data that the library needs. So the
        library must raise an error.
        """
        assert self.cell and self.cell.unserved, "the cell names no opcode"
        before = len(party.refusals)
        # Most libraries raise an error; some return None or an empty object.
        error: Exception | None = None
        try:
            yield
        except Failure:
            raise
        except Exception as raised:  # noqa: BLE001
            error = raised
        refused = {opcode for opcode, found in party.refusals[before:] if found == code}
        named = (refused if code or not error else set(self.cell.unserved)) & set(self.cell.unserved)
        check(
            named,
            f"none of {self.cell.unserved} was refused with {code}: {party.refusals[before:]}, {error!r}",
        )
        listed = unserved_opcodes()
        check(named <= listed, f"{sorted(named - listed)} are not in {UNSERVED.name}")
        self._refused |= named


async def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition that no event reports."""
    ends = time.monotonic() + DEADLINE
    while not condition():
        check(time.monotonic() < ends, f"waited in vain until {what}")
        await asyncio.sleep(0.01)


@functools.cache
def unserved_opcodes() -> set[int]:
    """The opcodes of the table in unserved.md; a range gives each of its opcodes."""
    found: set[int] = set()
    for row in re.findall(r"^\| ([^|]*\d[^|]*) \|", UNSERVED.read_text(encoding="utf-8"), re.MULTILINE):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", row):
            found |= set(range(int(first), int(last or first) + 1))
    return found


class Coverage:
    """Which public methods of a library the cells call.

    Only calls from the scenarios count: a call by the library itself does not show that the method works.
    """

    def __init__(self, suite: Suite, room: Room) -> None:
        self.suite, self.room = suite, room
        #: The cells in which each method was called, keyed by `Class.method`.
        self.called: dict[str, set[str]] = {}
        self._names = {
            f"{cls.__name__}.{name}": function for cls in suite.api for name, function in methods(cls)
        }
        for cls in suite.api:
            for name, function in methods(cls):
                self._watch(cls, name, function)

    def _watch(self, cls: type, name: str, function: Any) -> None:
        label = f"{cls.__name__}.{name}"

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if Path(sys._getframe(1).f_code.co_filename).is_relative_to(HERE.parent):
                row = self.room.cell.row if self.room.cell else ""
                self.called.setdefault(label, set()).add(row)
            return function(*args, **kwargs)

        static = inspect.getattr_static(cls, name)
        setattr(
            cls, name, staticmethod(watched) if isinstance(static, classmethod | staticmethod) else watched
        )

    def missing(self) -> list[str]:
        """The methods that no cell calls. A method with several names counts if a cell calls one of them."""
        done = {_unwrapped(self._names[label]) for label in self.called if label in self._names}
        return sorted(
            label
            for label, function in self._names.items()
            if _unwrapped(function) not in done and label not in self.suite.outside
        )

    def superfluous(self) -> list[str]:
        """The entries of `outside` that the library does not have, or that a cell calls."""
        return sorted(
            label for label in self.suite.outside if label not in self._names or label in self.called
        )


def methods(cls: type) -> list[tuple[str, Any]]:
    """The public methods of a library's class, also if inherited from other classes of the library."""
    package = cls.__module__.partition(".")[0]
    return [
        (name, member)
        for name, member in inspect.getmembers(cls, callable)
        if not name.startswith("_") and (member.__module__ or "").partition(".")[0] == package
    ]


def _unwrapped(function: Any) -> Any:
    return inspect.unwrap(getattr(function, "__func__", function))
