"""A party that runs maxapi-python, and the suite of this folder's cells.

Most cells play scenarios of the folder StockClient. These scenarios check more than the table needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from cells import Party, Room, Suite
from harness import Device, World
from pymax import ApiError, Client


class MaxapiParty(Party):
    """A second stock client of the witness's account."""

    def __init__(self, witness: Device, device: Device) -> None:
        super().__init__(witness)
        self.device, self.client = device, device.client
        # Share one list, so that the party receives every event of the device.
        self._events, self._arrived = device._events, device._arrived
        app = self.client._app
        invoke = app.invoke

        async def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                return await invoke(*args, **kwargs)
            except ApiError as error:
                self.refusals.append((int(error.opcode), error.error or ""))
                raise

        app.invoke = watched  # type: ignore[method-assign]

    async def fence(self) -> None:
        await self.device.fence()

    async def close(self) -> None:
        await self.device.close()


async def log_in(room: Room, witness: Device) -> MaxapiParty:
    return MaxapiParty(witness, await room.world.another(witness, f"{witness.session.stem}-too"))


SUITE = Suite("maxapi-python", (Client,), log_in)
cell = SUITE.cell


def scenario_cell(
    row: str, *plays: Callable[[World], Awaitable[None]], short: bool = False, last: bool = False
) -> None:
    """A cell that is one or more scenarios of the stock client."""

    @cell(row, short=short, last=last)
    async def play(room: Room) -> None:
        for each in plays:
            world = room.another_world()
            try:
                await each(world)
            finally:
                await world.close()
