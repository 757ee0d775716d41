"""A party that runs pyromax, and the suite of this folder's cells."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cells import Party, Room, Suite
from harness import REQUEST_TIMEOUT, Device, Failure, check
from pyromax import Dispatcher, MaxApi
from pyromax.config import (
    CircuitBreakerConfig,
    EnvelopeMapperConfigV11,
    ExtraConfig,
    MappingCircuitBreakersConfig,
    SocketTransportConfig,
)
from pyromax.interaction import AuthCallbacks
from pyromax.models import (
    Chat,
    DeviceType,
    DisconnectEvent,
    EmojiReaction,
    Message,
    MessageDeleteEvent,
    MessageReadEvent,
    PresenceEvent,
    TypingEvent,
)

#: Numbers for the names of session files, so that two sessions share a file only if a cell wants it.
NUMBERS = itertools.count(1)


class PyromaxParty(Party):
    """A `MaxApi` and a `Dispatcher` that reads its updates."""

    client: MaxApi

    def __init__(self, room: Room, witness: Device, name: str | None = None) -> None:
        super().__init__(witness)
        self.room = room
        self.session = name or f"pyromax-{next(NUMBERS)}.db"
        self.dispatcher = Dispatcher(disable_fsm=True, name=self.session)
        self._polling: asyncio.Task[None] | None = None
        self._listen()

    def _listen(self) -> None:
        events = {
            "message": (self.dispatcher.message, Message),
            "edited": (self.dispatcher.edited_message, Message),
            "reply": (self.dispatcher.reply_to_message, Message),
            "forward": (self.dispatcher.forward_message, Message),
            "reaction": (self.dispatcher.message_added_reaction, EmojiReaction),
            "unreaction": (self.dispatcher.message_deleted_reaction, EmojiReaction),
            "read": (self.dispatcher.message_read, MessageReadEvent),
            "typing": (self.dispatcher.typing, TypingEvent),
            "presence": (self.dispatcher.presence, PresenceEvent),
            "delete": (self.dispatcher.message_delete, MessageDeleteEvent),
            "chat": (self.dispatcher.chat_update, Chat),
        }
        events["gone"] = (self.dispatcher.disconnect, DisconnectEvent)
        for kind, (observer, type) in events.items():
            observer()(self._collector(kind, type))

    def _collector(self, kind: str, type: type) -> Callable[..., Any]:
        async def collect(event: Any) -> None:
            self.append(kind, event)

        # The library passes a handler the arguments that the handler's annotations name.
        collect.__annotations__["event"] = type
        return collect

    async def log_in(
        self,
        phone: str | None = None,
        callbacks: AuthCallbacks | None = None,
        polls: bool = True,
        **mapper: Any,
    ) -> PyromaxParty:
        """Logs in from the session file if it exists, otherwise by a code."""
        world = self.room.world
        # Turn off the library's retries, which would resend refused requests for half a minute.
        never = CircuitBreakerConfig(enabled=False)
        options = {
            "device_type": DeviceType.Android,
            # The library stores a session under the number without a plus, so ask for it without one.
            "phone": (phone or self.phone).removeprefix("+"),
            "use_telemetry": False,
            "request_timeout": REQUEST_TIMEOUT,
            "circuit_breakers": MappingCircuitBreakersConfig(transport=never, api=never),
        } | mapper
        self.client = await MaxApi(
            device_type=options["device_type"],
            phone=options["phone"],
            auth_callbacks=callbacks or AuthCallbacks(sms_code=world.codes.get_code),
            extra_config=ExtraConfig(
                transport=SocketTransportConfig(host=world.host, port=world.port, use_ssl=False),
                mapper=EnvelopeMapperConfigV11(**options),
                work_dir=str(world.directory),
                session_name=self.session,
                session_id=self.session,
                reconnect_delay=0.2,
                auto_connect_after_init=False,
            ),
        )
        self._watch_requests()
        await self.client.connect()
        if polls:
            self._polling = asyncio.create_task(self.dispatcher.start_polling(self.client))
        return self

    def _watch_requests(self) -> None:
        send = self.client.protocol.send

        def note(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled() or answer.exception():
                return
            response = answer.result()
            if code := (response.payload or {}).get("error"):
                self.refusals.append((int(response.opcode), code))

        async def watched(*args: Any, **kwargs: Any) -> Any:
            answer = await send(*args, **kwargs)
            answer.add_done_callback(note)
            return answer

        self.client.protocol.send = watched

    async def answered(self, call: Any) -> Any:
        """Awaits the call, and checks that the server refused nothing: the library hides many refusals."""
        before = len(self.refusals)
        result = await call
        check(len(self.refusals) == before, f"refused: {self.refusals[before:]}")
        return result

    async def refused(self, call: Any, code: str) -> None:
        """Awaits the call, which the server must refuse with `code`; ignores what the library raises."""
        before = len(self.refusals)
        with suppress(Exception):
            await call
        found = [refusal for _, refusal in self.refusals[before:]]
        if code not in found:
            raise Failure(f"refused with {found}, wanted {code}")

    async def back(self) -> None:
        """Waits until the library has logged in again by itself."""
        await self.next("gone")
        await self.client.wait_until_ready()

    async def fence(self) -> None:
        await self.client.get_sessions()

    async def close(self) -> None:
        if self._polling:
            self._polling.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._polling
        await self.client.stop()


async def log_in(room: Room, witness: Device) -> PyromaxParty:
    return await PyromaxParty(room, witness).log_in()


SUITE = Suite("pyromax", (MaxApi, Dispatcher), log_in)
cell = SUITE.cell
