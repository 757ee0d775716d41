"""A party that runs maxion, and the suite of this folder's cells."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

from cells import Party, Room, Suite
from harness import REQUEST_TIMEOUT, Device
from maxion import Client
from maxion.raw.client import MaxClient
from maxion.raw.errors import RpcError

Found = TypeVar("Found")

#: Numbers for the names of session files, so that two sessions share a file only if a cell wants it.
NUMBERS = itertools.count(1)


class MaxionParty(Party):
    """Both interfaces of the library on one connection: `raw`, and `client`, which is built on `raw`."""

    def __init__(self, room: Room, witness: Device, name: str | None = None) -> None:
        super().__init__(witness)
        self.room = room
        self.session = name or f"maxion-{next(NUMBERS)}"
        self.client = Client(
            self.session,
            phone_number=self.phone,
            workdir=room.world.directory,
            transport="tcp",
            host=room.world.host,
            port=room.world.port,
            ssl=False,
            request_timeout=REQUEST_TIMEOUT,
        )
        self._watch_requests()
        self._listen()

    @property
    def raw(self) -> MaxClient:
        return self.client.raw

    def _watch_requests(self) -> None:
        invoke = self.raw.invoke

        async def watched(*args: Any, **kwargs: Any) -> dict[str, Any]:
            try:
                return await invoke(*args, **kwargs)
            except RpcError as error:
                self.refusals.append((error.opcode, error.code))
                raise

        self.raw.invoke = watched  # type: ignore[method-assign]
        log_in = self.raw.login_by_token

        async def logged_in(*args: Any, **kwargs: Any) -> dict[str, Any]:
            payload = await log_in(*args, **kwargs)
            self.append("login", payload)
            return payload

        self.raw.login_by_token = logged_in  # type: ignore[method-assign]

    def _listen(self) -> None:
        @self.raw.on("raw")
        async def update(update: Any) -> None:
            self.append(f"raw {update.event}", update)

        @self.client.on_message()
        async def message(_: Client, message: Any) -> None:
            self.append("message", message)

        @self.client.on_edited_message(group=1)
        async def edited(_: Client, message: Any) -> None:
            self.append("edited", message)

        @self.client.on_deleted_messages(group=2)
        async def deleted(_: Client, update: Any) -> None:
            self.append("deleted", update)

        @self.client.on_raw_update(group=3)
        async def anything(_: Client, update: Any) -> None:
            self.append("any", update)

    async def code(self) -> str:
        return await self.room.world.codes.get_code(self.phone)

    async def log_in(self, **settings: Any) -> MaxionParty:
        """Logs in by a code, then with the token, as a second `start` does; this loads the chats."""
        await self.raw.connect()
        await self.raw.start(self.phone, code=self.code, **settings)
        await self.client.start()
        return self

    async def back(self) -> None:
        """Waits until the library has logged in again by itself."""
        await self.next("login")

    async def fence(self) -> None:
        await self.raw.ping()

    async def close(self) -> None:
        await self.client.stop()


async def log_in(room: Room, witness: Device) -> MaxionParty:
    return await MaxionParty(room, witness).log_in()


async def listed(items: AsyncIterator[Found] | Awaitable[Any]) -> list[Found]:
    return [item async for item in items]  # type: ignore[union-attr]


SUITE = Suite(
    "maxion",
    (Client, MaxClient),
    log_in,
    outside={
        "MaxClient.web": "makes a client of the WebSocket",
    },
)
cell = SUITE.cell
