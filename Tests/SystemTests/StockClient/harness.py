"""What the scenarios use: people with devices, events to wait for, facts to print.

A `Device` is one stock `pymax.Client` with its own session file. Everything the server pushes to it lands
in one list through the library's own event decorators; `next` takes an event out of that list, and
waits for the event if necessary. `silence` proves with a round trip of PING that the list contains no such
event. Nothing here sleeps: every wait ends with an event or at a deadline.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pymax import ApiError, AuthFlow, Client, ExtraConfig, RegistrationConfig, SmsAuthFlow, SyncOverrides
from pymax.protocol import Command, Opcode

#: Seconds until an expected event counts as missing. The limit is generous, because the machine may be busy.
DEADLINE = float(os.environ.get("TAMBOUR_STOCK_DEADLINE", "120"))

#: Seconds that the library waits for a reply.
REQUEST_TIMEOUT = 60

#: Seconds after which a client that was refused a login counts as stuck; see `Device.past_refusal`.
STUCK = 3


#: Every scenario by its name, in the order of the files that `scenarios.py` imports.
SCENARIOS: dict[str, Callable[[World], Awaitable[None]]] = {}


def scenario(function: Callable[[World], Awaitable[None]]) -> Callable[[World], Awaitable[None]]:
    SCENARIOS[function.__name__] = function
    return function


class Failure(Exception):
    """A fact that does not hold."""


def check(holds: object, otherwise: str) -> None:
    if not holds:
        raise Failure(otherwise)


def same(found: object, wanted: object, what: str) -> None:
    check(found == wanted, f"{what}: found {found!r}, wanted {wanted!r}")


def fact(text: str) -> None:
    print(f"  ok  {text}", flush=True)


def signal_runner(order: str) -> None:
    """Asks the program that started the scenario to `restart` or `kill` the server."""
    print(f"@{order}", flush=True)


def now_ms() -> int:
    return int(time.time() * 1000)


async def refused(call: Awaitable[Any], *codes: str) -> ApiError:
    """Awaits the call, which the server must refuse with one of these codes."""
    try:
        result = await call
    except ApiError as error:
        check(error.error in codes, f"refused with {error.error!r} ({error.message!r}), wanted {codes}")
        check(error.message, f"{error.error} came without a message")
        return error
    raise Failure(f"answered {result!r}, wanted one of the errors {codes}")


class LoginCodes:
    """The file to which `tambourd --login-codes file:PATH` appends lines `PHONE CODE`. Each is used once."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._used = {phone: len(codes) for phone, codes in self._codes().items()}

    async def get_code(self, phone: str) -> str:
        wanted = "".join(filter(str.isdigit, phone))
        ends = time.monotonic() + DEADLINE
        while time.monotonic() < ends:
            codes = self._codes().get(wanted, [])
            used = self._used.get(wanted, 0)
            if len(codes) > used:
                self._used[wanted] = used + 1
                return codes[used]
            await asyncio.sleep(0.01)  # a file has no event to wait for
        raise Failure(f"no new code for {phone} in {self.path}")

    def _codes(self) -> dict[str, list[str]]:
        codes: dict[str, list[str]] = {}
        with suppress(FileNotFoundError):
            text = self.path.read_text()
            for line in text[: text.rfind("\n") + 1].splitlines():  # ignore a line that is still being written
                phone, code = line.split()
                codes.setdefault("".join(filter(str.isdigit, phone)), []).append(code)
        return codes


class Events:
    """The events that a client has received, in the order of their arrival."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []
        self._arrived = asyncio.Event()

    def append(self, kind: str, event: Any) -> None:
        self._events.append((kind, event))
        self._arrived.set()

    async def next(self, kind: str, where: Callable[[Any], bool] = lambda _: True) -> Any:
        """Takes the first event of this kind that matches; waits for it if it is not there yet."""
        ends = time.monotonic() + DEADLINE
        while True:
            for index, (found, event) in enumerate(self._events):
                if found == kind and where(event):
                    del self._events[index]
                    return event
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), ends - time.monotonic())
            except TimeoutError:
                raise Failure(f"{self} waited for {kind!r}; came instead: {self._summary()}") from None

    async def fence(self) -> None:
        """Sends a request and waits for its reply, which arrives after all earlier pushes."""
        raise NotImplementedError

    async def silence(self, *kinds: str, where: Callable[[Any], bool] = lambda _: True) -> None:
        """Checks that no event of these kinds has arrived; the fence proves that none is on its way."""
        await self.fence()
        found = [(kind, event) for kind, event in self._events if kind in kinds and where(event)]
        check(not found, f"{self} should have heard nothing, heard {found}")

    def forget(self) -> None:
        self._events.clear()

    def _summary(self) -> str:
        return "; ".join(f"{kind} {str(event)[:160]}" for kind, event in self._events[-12:]) or "nothing"


class Device(Events):
    """One stock client: one session file, one connection at a time."""

    def __init__(self, world: World, phone: str, session: Path, **settings: Any) -> None:
        super().__init__()
        self.world, self.phone, self.session = world, phone, session
        auth_flow: AuthFlow | None = settings.pop("auth_flow", None)
        defaults: dict[str, Any] = {
            "host": world.host,
            "port": world.port,
            "use_ssl": False,
            "telemetry": False,
            "reconnect": False,
            "relogin": False,
            "request_timeout": REQUEST_TIMEOUT,
            "log_level": "CRITICAL",
        }
        self.client = Client(
            phone=phone,
            work_dir=str(session.parent),
            session_name=session.name,
            extra_config=ExtraConfig(**(defaults | settings)),
            auth_flow=auth_flow or SmsAuthFlow(world.codes),
        )
        self._running: asyncio.Task[None] | None = None
        self._listen()

    def _listen(self) -> None:
        client = self.client
        events = {
            "message": client.on_message,
            "edit": client.on_message_edit,
            "delete": client.on_message_delete,
            "read": client.on_message_read,
            "typing": client.on_typing,
            "presence": client.on_presence,
            "chat": client.on_chat_update,
            "reaction": client.on_reaction_update,
        }
        for kind, decorator in events.items():
            decorator()(self._collector(kind))

        @client.on_raw()
        async def raw(frame: Any, _: Client) -> None:
            if frame.cmd == Command.REQUEST:
                self.append("push", frame)
            elif frame.opcode == Opcode.LOGIN:
                self.append("login" if frame.cmd == Command.RESPONSE else "refusal", frame.payload)

        @client.on_start()
        async def started(_: Client) -> None:
            self.append("start", None)

    def _collector(self, kind: str) -> Callable[[Any, Client], Awaitable[None]]:
        async def collect(event: Any, _: Client) -> None:
            self.append(kind, event)

        return collect

    # Connecting and closing

    async def connect(self) -> Device:
        """Logs in once: from the session file if there is one, otherwise by code."""
        await self.client.connect()
        return self

    def run(self) -> None:
        """`start()` in the background: the only mode in which the library reconnects and logs in again."""
        self._running = asyncio.create_task(self.client.start())

    async def close(self) -> None:
        if self._running:
            self._running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._running
        with suppress(Exception):
            await self.client.close()

    async def closed_by_server(self) -> None:
        try:
            await asyncio.wait_for(self.client._connection.wait_closed(), DEADLINE)
        except ConnectionError:
            return
        except TimeoutError:
            raise Failure(f"{self}: the server left the connection open") from None

    async def connect_refused(self) -> ApiError:
        """Logs in with the stored token, which the server must refuse as the library expects."""
        outcome = asyncio.ensure_future(self.client.connect())
        await self.past_refusal(outcome)
        error = await refused(outcome, "login.token")
        same((error.error, error.message), ("login.token", "FAIL_LOGIN_TOKEN"), "error pair of a dead token")
        return error

    async def past_refusal(self, outcome: asyncio.Future[Any]) -> None:
        """Helps a client over a refused login, if it needs help.

        On Python before 3.12 the library hangs for ever if the answer to its first PING arrives directly after the
        refusal of LOGIN. It then cancels its PING task and waits for the task, but `asyncio.wait_for` swallows a
        cancellation that coincides with an answer. Usually the server answers PING first and refuses LOGIN later. On a
        busy machine, however, the client may send PING late. Then only the end of the connection frees the client, at
        its next PING after 30 s.
        """
        refusal = asyncio.ensure_future(self.next("refusal"))
        await asyncio.wait([refusal, outcome], return_when=asyncio.FIRST_COMPLETED)
        refusal.cancel()
        await asyncio.wait([outcome], timeout=STUCK)
        if not outcome.done():
            await self.client._connection.fail()

    # Requests for which the library has no method

    async def invoke(self, opcode: int, payload: dict[str, Any]) -> dict[str, Any]:
        return (await self.client._app.invoke(opcode, payload)).payload or {}

    async def fence(self) -> None:
        await self.invoke(Opcode.PING, {"interactive": True})

    # Shorthands

    @property
    def id(self) -> int:
        me = self.client.me
        check(me is not None, f"{self} has no profile")
        return me.contact.id

    def dialog(self, other: Device) -> int:
        return self.client.get_chat_id(self.id, other.id)

    async def stored(self) -> Any:
        """The session as the library keeps it on disk: token, device id, sync marks."""
        return await self.client._app.store.load_session()

    def __repr__(self) -> str:
        return f"{self.session.stem} ({self.phone})"


class World:
    """One scenario's people: their phones, their session files, and their devices to close at the end."""

    def __init__(self, address: str, codes: LoginCodes, directory: str, number: int) -> None:
        host, _, port = address.rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)
        self.codes, self.directory, self.number = codes, Path(directory), number
        self._phones = 0
        self._sessions = 0
        self._devices: list[Device] = []
        self._people: list[Device] = []

    def phone(self) -> str:
        """A number no other scenario uses."""
        self._phones += 1
        return f"+7999{self.number:03}{self._phones:04}"

    def device(self, phone: str, name: str, session: Path | None = None, **settings: Any) -> Device:
        if session is None:
            self._sessions += 1
            session = self.directory / f"{name}-{self._sessions}.db"
        device = Device(self, phone, session, **settings)
        self._devices.append(device)
        return device

    async def register(self, name: str, **settings: Any) -> Device:
        """Registers a user on a first device. All users find each other by phone: an id alone gives no access."""
        registration = RegistrationConfig(first_name=name.capitalize(), last_name="Testova")
        newcomer = await self.device(self.phone(), name, registration_config=registration, **settings).connect()
        for other in self._people:
            for one, found in ((newcomer, other), (other, newcomer)):
                # A person whose connection has ended is not found.
                with suppress(Exception):
                    await asyncio.wait_for(one.invoke(Opcode.CONTACT_INFO_BY_PHONE, {"phone": found.phone}), DEADLINE)
        self._people.append(newcomer)
        return newcomer

    async def another(self, device: Device, name: str, **settings: Any) -> Device:
        """The same person on one more device, logged in by code."""
        return await self.device(device.phone, name, **settings).connect()

    async def later(self, device: Device, **settings: Any) -> Device:
        """The same device later: a new client on the stored session, not yet connected."""
        await device.close()
        return self.device(device.phone, device.session.stem, session=device.session, **settings)

    async def again(self, device: Device, sync: SyncOverrides | None = None) -> Device:
        """The same device later, logged in with its stored token and marks."""
        return await (await self.later(device, **({"sync": sync} if sync else {}))).connect()

    async def close(self) -> None:
        for device in self._devices:
            await device.close()


# Looking at chats


async def chat_info(device: Device, chat: int) -> dict[str, Any]:
    """The chat as the server has it now."""
    chats = (await device.invoke(Opcode.CHAT_INFO, {"chatIds": [chat]}))["chats"]
    same(len(chats), 1, f"chats answered for {chat}")
    return chats[0]


async def history_ids(device: Device, chat: int, newest: Any) -> list[int]:
    page = await device.client.fetch_history(chat, backward=200, from_time=later_than(newest))
    return [message.id for message in page]


def later_than(message: Any) -> int:
    """Returns a time whose page contains this message.

    By default, the library uses its clock. If the server stored more than one message per millisecond, the times of
    the messages are ahead of this clock.
    """
    return max(now_ms(), message.time)


def later_than_id(message_id: int) -> int:
    return max(now_ms(), message_id >> 16)
