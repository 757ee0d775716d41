"""Tests of the table itself, without a server: a cell fails if its mark is not true.

python -m unittest test_cells.py
"""

from __future__ import annotations

import json
import sys
import unittest
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "StockClient")]

from cells import Coverage, Line, Room, Suite, unserved_opcodes  # noqa: E402
from harness import Failure  # noqa: E402
from maxion.raw.types import ReactionInfo  # noqa: E402
from maxion.raw.utils import Text  # noqa: E402

#: The line where maxion reads a text as a map.
BROKEN = Line("maxion/raw/types/base.py", 24, "dict(raw or {})")
SERVED, UNSERVED = 1, 80


class CellTests(unittest.IsolatedAsyncioTestCase):
    """Each test plays one cell."""

    async def play(self, play: Callable[[Room], Awaitable[None]], **mark: Any) -> None:
        suite = Suite("maxion", (ReactionInfo,), login=None)  # type: ignore[arg-type]
        suite.cell("a row", **mark)(play)
        self.room = Room(suite, world=None)  # type: ignore[arg-type]
        await self.room.play(suite.cells["a row"])

    async def fails(self, play: Callable[[Room], Awaitable[None]], because: str, **mark: Any) -> None:
        with self.assertRaisesRegex(Failure, because):
            await self.play(play, **mark)

    async def test_a_fault_is_at_the_line_that_is_named(self) -> None:
        async def breaks(room: Room) -> None:
            with room.fault(ValueError):
                _ = ReactionInfo({"yourReaction": "x"}).my_reaction

        await self.play(breaks, fault=BROKEN)
        await self.fails(breaks, "is .*, not", fault=Line(BROKEN.file, BROKEN.number + 1, BROKEN.text))
        other = Line("maxion/raw/types/message.py", 42, "")
        await self.fails(breaks, "did not come from", fault=other)

    async def test_a_library_that_was_mended_is_no_fault(self) -> None:
        async def works(room: Room) -> None:
            with room.fault(ValueError):
                _ = ReactionInfo({}).my_reaction

        await self.fails(works, "works now", fault=BROKEN)

    async def test_what_shows_no_fault_is_not_faulty(self) -> None:
        async def nothing(room: Room) -> None:
            Text("nothing")

        await self.fails(nothing, "nothing showed the fault", fault=BROKEN)
        await self.play(nothing)

    async def test_an_opcode_is_refused_and_listed(self) -> None:
        def asks(*refusals: tuple[int, str]) -> Callable[[Room], Awaitable[None]]:
            async def ask(room: Room) -> None:
                party: Any = SimpleNamespace(refusals=[])
                with room.unserved(party):
                    party.refusals += refusals
                    raise ValueError

            return ask

        await self.play(asks((UNSERVED, "proto.opcode")), unserved=(UNSERVED,))
        await self.fails(asks(), "was refused", unserved=(UNSERVED,))
        await self.fails(asks((UNSERVED, "not.found")), "was refused", unserved=(UNSERVED,))
        await self.fails(asks((SERVED, "proto.opcode")), "are not in", unserved=(SERVED,))
        await self.fails(asks((UNSERVED, "proto.opcode")), "refused were", unserved=(UNSERVED, 82))

    def test_ranges_of_the_list_are_spelt_out(self) -> None:
        self.assertLessEqual({80, 209, 212, 215, 220, 261}, unserved_opcodes())
        self.assertFalse({SERVED, 64} & unserved_opcodes())


LIBRARY = """
class Library:
    def one(self):
        self.two()

    def two(self):
        pass

    again = one
"""


class CoverageTests(unittest.TestCase):
    """Which methods count as played."""

    def test_a_method_counts_when_a_scenario_calls_it(self) -> None:
        names: dict[str, Any] = {"__name__": "library"}
        # Give the compiled code the name of a file in another folder, like code of a library.
        exec(compile(LIBRARY, json.__file__, "exec"), names)
        library = names["Library"]
        suite = Suite("maxion", (library,), login=None, outside={"Library.three": "is gone"})  # type: ignore[arg-type]
        coverage = Coverage(suite, Room(suite, world=None))  # type: ignore[arg-type]
        self.assertEqual(coverage.missing(), ["Library.again", "Library.one", "Library.two"])
        library().again()
        self.assertEqual(coverage.missing(), ["Library.two"])
        library().two()
        self.assertEqual(coverage.missing(), [])
        self.assertEqual(coverage.superfluous(), ["Library.three"])


if __name__ == "__main__":
    unittest.main()
