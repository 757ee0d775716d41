"""Records sessions: a proxy between clients and a server that writes down what they say, for `replay.py`.

    python record.py --tambourd PROGRAM --out FOLDER [SCENARIO ...]
    python record.py --tambourd PROGRAM --out FOLDER --flows PYTHON

The first command records scenarios of the stock client. The second records the flows of the specification, and
some cases, as the conformance suite plays them; PYTHON is an interpreter with the suite. Each recording gets its
own server and data directory. `make record-sessions` runs both; `session.py` describes the format. Tokens, codes
and ids are replaced by names: a recording contains no secret, and two recordings of one conversation are nearly
the same file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from server import tambourd
from session import dump, escaped
from wire import (
    ERROR,
    PROTOCOL,
    REPLY,
    REQUEST,
    Leaf,
    Packet,
    Specification,
    Type,
    leaves,
    packet,
    plain,
    read_packet,
)

HERE = Path(__file__).parent

#: Keep everybody online, except in the scenario about presence. Otherwise presence would depend on the run's duration.
LIMITS = {"presenceOfflineDelayMs": 3_600_000}
OWN_LIMITS = {"presence": {"presenceOfflineDelayMs": 50}}

#: Scenarios that are recorded only when named. One restarts the server; the rest send hundreds of messages at once,
#: whose times and order differ each time.
LEFT_OUT = {"reconnect", "history", "relogin", "chat_list"}

#: Cases of the suite that are recorded like flows, because no flow has these conversations of apps.
CASES = {"tamtam-conversation": "An app of TamTam signs up, signs in, chats and comes back"}

#: Values in milliseconds from here on are times; smaller values are special, such as 0 or -1.
FIRST_TIME = 10**12
SECOND = 1000
DAY = 86_400_000

#: The proxy's own PING, with a sequence number that no client reaches.
FENCE = packet(bytes([10, REQUEST, 0xFF, 0xFF, 0, 1, 0]), b"\x80")
FENCE_SEQ = 0xFFFF

#: Values that differ from run to run although their type does not say so.
NAMED = {
    "AUTH_CONFIRM reply.userToken": "user",
    "LoginConfig.hash": "hash",
    "SessionInfo.id": "session",
    "Presence.seen": "int",
    "SESSION_INIT reply.callsSeed": "int",
    "Attach.pollId": "poll",
    "SEND_VOTE request.pollId": "poll",
    "VOTERS_LIST_BY_ANSWER request.pollId": "poll",
    "PollReference.pollId": "poll",
    "PasswordChallenge.trackId": "token",
    # Invitation links differ, but a public name stays the same.
    "Chat.link": "token",
}
IDS = {"userId": "user", "chatId": "chat", "messageId": "message"}


class Mark:
    """A time in an answer. It gets a name when a request sends the same time back."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.name: str | None = None


@dataclass
class Codes:
    """The file that the server appends login codes to."""

    path: Path

    def find(self, code: str) -> tuple[str, int] | None:
        """Returns the digits of the phone that got the code, and the code's number among this phone's codes, from 1."""
        seen: dict[str, int] = {}
        with suppress(FileNotFoundError):
            for line in self.path.read_text().splitlines():
                phone, found = line.split()
                digits = "".join(filter(str.isdigit, phone))
                seen[digits] = seen.get(digits, 0) + 1
                if found == code:
                    return digits, seen[digits]
        return None


class Recorder:
    """Turns packets into events."""

    def __init__(self, specification: Specification, codes: Codes) -> None:
        self.specification, self.codes = specification, codes
        self.events: list[dict[str, Any]] = []
        self._names: dict[tuple[str, Any], str] = {}
        self._marks: list[Mark] = []
        self._users: dict[str, int] = {}

    # Packets from clients

    def request(self, connection: str, sent: Packet) -> None:
        if sent.is_compressed:
            raise ValueError("a compressed request cannot be recorded")
        if sent.cmd != REQUEST:
            raise ValueError(f"a packet of cmd {sent.cmd} from a client cannot be recorded")
        payload = sent.payload
        type = self.specification.payload(sent.opcode, "request")
        text, done = "", 0
        for leaf in leaves(payload, type):
            name = self._name_of_sent(connection, leaf)
            if name:
                text += f"{payload[done : leaf.start].hex()}{{{name}:{payload[leaf.start]:02x}}}"
                done = leaf.end
        self.events.append(
            {
                "request": self.specification.name(sent.opcode),
                "on": connection,
                "head": sent.raw[:7].hex(),
                "payload": text + payload[done:].hex(),
            }
        )

    def _name_of_sent(self, connection: str, leaf: Leaf) -> str | None:
        """Returns the placeholder for a scalar of a request; None if the scalar is the same in every run."""
        value = leaf.value
        if leaf.type == "ms":
            return self._name_of_time(value)
        if kind := NAMED.get(leaf.field) or IDS.get(leaf.type):
            number = int(value)
            return self._names.get((kind, number)) or (
                self._dialog(connection, number) if kind == "chat" else None
            )
        if not isinstance(value, str):
            return None
        if leaf.field == "AUTH request.verifyCode":
            found = self.codes.find(value)
            return f"code{found[0]}.{found[1]}" if found else None
        return self._names.get(("token", value)) or self._names.get(("hash", value))

    def _name_of_time(self, value: int) -> str | None:
        if value < FIRST_TIME:
            return None
        for mark in reversed(self._marks):
            if mark.value == value:
                mark.name = mark.name or f"time{sum(1 for other in self._marks if other.name) + 1}"
                return mark.name
        ahead = value - now()
        if abs(ahead) < SECOND:
            return "now"  # the current time, when the client read its clock
        return f"now{ahead:+}" if abs(ahead) < DAY else None

    def _dialog(self, connection: str, chat: int) -> str | None:
        """Names a dialog whose id a client computed from two users; tries the client's own user first."""
        users = {value: name for (kind, value), name in self._names.items() if kind == "user"}
        own = self._users.get(connection)
        for one in ([own] if own in users else []) + list(users):
            if one is not None and chat != 0 and one ^ chat in users:
                name = self._new("chat", chat)
                self.events.append({"let": name, "xor": [users[one], users[one ^ chat]]})
                return name
        return None

    # Packets from the server

    def answer(self, connection: str, came: Packet) -> None:
        kind = {REQUEST: "push", REPLY: "reply", ERROR: "error"}[came.cmd]
        value = came.value
        if kind == "reply" and self.specification.name(came.opcode) == "LOGIN":
            profile = value["profile"]
            self._users[connection] = profile.get("contact", profile)["id"]
        event: dict[str, Any] = {kind: self.specification.name(came.opcode), "on": connection}
        event["opcode"] = came.opcode
        if kind != "push":
            event["seq"] = came.seq
        event["value"] = self._marked(value, self.specification.payload(came.opcode, kind), "", False)
        self.events.append(event)

    def _marked(self, value: Any, type: Type, field: str, is_sensitive: bool) -> Any:
        """Returns a value with placeholders for what differs from run to run."""
        if isinstance(value, dict):
            fields = type.fields or {}
            return {
                self._marked_key(key, type): self._marked(
                    item,
                    type.field(str(key)),
                    f"{type.text}.{key}" if fields else field,
                    bool(fields.get(key, {}).get("sensitive")),
                )
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._marked(item, type.item, field, is_sensitive) for item in value]
        kind = NAMED.get(field) or IDS.get(type.text)
        if is_sensitive and isinstance(value, str):
            kind = "token"
        if type.text == "ms" and value >= FIRST_TIME:
            self._marks.append(Mark(value))
            return self._marks[-1]
        if kind == "int":
            return "$int"
        if kind is None or value == 0:
            return escaped(plain(value))
        return f"${self._new(kind, value)}"

    def _marked_key(self, key: Any, type: Type) -> str:
        kind = IDS.get(type.key or "")
        return f"${self._new(kind, int(key))}" if kind else str(key)

    def _new(self, kind: str, value: Any) -> str:
        count = sum(1 for other, _ in self._names if other == kind)
        return self._names.setdefault((kind, value), f"{kind}{count + 1}")

    # The recording's text

    def text(self, head: dict[str, Any]) -> str:
        def resolved(value: Any) -> Any:
            match value:
                case Mark():
                    return f"$ms:{value.name}" if value.name else "$ms"
                case dict():
                    return {key: resolved(item) for key, item in value.items()}
                case list():
                    return [resolved(item) for item in value]
                case _:
                    return value

        return dump(head, resolved(self.events))


class Proxy:
    """A proxy between clients and a server that records each packet before it passes the packet on."""

    def __init__(self, server: str, recorder: Recorder) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._recorder = recorder
        self._count = 0
        #: The lock that is held while a request is passed on, and while a connection is being closed. So each request
        #: is recorded clearly before or after a close.
        self._turn = asyncio.Lock()
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Starts to listen; returns the address for clients."""
        listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"

    async def finish(self) -> None:
        """Waits until all connections are gone."""
        await asyncio.gather(*self._open)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._open.add(task)
        self._count += 1
        name = f"c{self._count}"
        self._recorder.events.append({"connect": name})
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        fenced = asyncio.Event()
        back = asyncio.create_task(self._pass_back(name, server_reader, writer, fenced))
        while sent := await read_packet(reader):
            async with self._turn:
                self._recorder.request(name, sent)
                server_writer.write(sent.raw)
        async with self._turn:
            await self._close(name, back, server_writer, fenced)

    async def _close(
        self, name: str, back: asyncio.Task[None], writer: asyncio.StreamWriter, fenced: asyncio.Event
    ) -> None:
        """Closes the server's side after the client has closed its side, when all pending packets have arrived."""
        if not back.done():
            with suppress(ConnectionError):
                writer.write(FENCE)
                fence = asyncio.create_task(fenced.wait())
                await asyncio.wait([back, fence], return_when=asyncio.FIRST_COMPLETED)
                fence.cancel()
        if not back.done():
            self._recorder.events.append({"close": name})
            back.cancel()
        writer.close()
        with suppress(asyncio.CancelledError):
            await back

    async def _pass_back(
        self,
        name: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        fenced: asyncio.Event,
    ) -> None:
        while came := await read_packet(reader):
            if came.seq == FENCE_SEQ and came.cmd == REPLY:
                fenced.set()
                continue
            self._recorder.answer(name, came)
            with suppress(ConnectionError):
                writer.write(came.raw)
        self._recorder.events.append({"closed": name})
        writer.close()


def now() -> int:
    return time.time_ns() // 1_000_000


async def record(
    name: str, title: str, client: str, command: list[str], arguments: argparse.Namespace
) -> None:
    """Runs a command against its own server and writes the conversation to `<name>.json`.

    In the command, `{address}` is the address for clients and `{codes}` the file of login codes.
    """
    limits = OWN_LIMITS.get(name, LIMITS)
    specification = Specification(arguments.protocol)
    async with tambourd(arguments.tambourd, limits) as server:
        recorder = Recorder(specification, Codes(server.codes))
        proxy = Proxy(server.address, recorder)
        address = await proxy.start()
        process = await asyncio.create_subprocess_exec(
            *[part.replace("{address}", address).replace("{codes}", str(server.codes)) for part in command]
        )
        if status := await process.wait():
            raise SystemExit(f"{name} ended with {status}")
        await proxy.finish()
    head = {
        "release": specification.version,
        "session": name,
        "title": title,
        "client": client,
        "limits": limits,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / f"{name}.json"
    file.write_text(recorder.text(head))
    print(f"wrote {file}: {len(recorder.events)} events", flush=True)


async def record_scenarios(arguments: argparse.Namespace) -> None:
    """Records scenarios of the stock client."""
    script = str(HERE.parent / "StockClient/scenarios.py")
    sys.path.insert(0, str(HERE.parent / "StockClient"))
    from scenarios import SCENARIOS

    client = f"maxapi-python {version('maxapi-python')}"
    for name in arguments.scenario or [name for name in SCENARIOS if name not in LEFT_OUT]:
        title = (SCENARIOS[name].__doc__ or "").strip()
        command = [sys.executable, script, "{address}", "{codes}", name]
        await record(name, title, client, command, arguments)


async def record_flows(arguments: argparse.Namespace) -> None:
    """Records every flow of the specification, and CASES; all participants register first."""
    accounts = [part for number in range(1, 5) for part in ("--account", f"+7999000000{number}")]
    codes = """awk '$1 == "{phone}" {code = $2} END {print code}' {codes}"""
    flows = json.loads(arguments.protocol.read_text())["flows"]
    titles = {f"flow-{flow['flow']}": flow["title"] for flow in flows} | CASES
    for case in arguments.scenario or titles:
        command = [arguments.flows, "-m", "tambour_conformance", "{address}", case, *accounts]
        command += ["--code-cmd", codes, "--seed", "1"]
        await record(case, titles[case], "tambour-conformance", command, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", nargs="*", help="scenarios, or flows by their cases; nearly all unless named")
    parser.add_argument("--flows", metavar="PYTHON", help="record the flows instead, with this Python")
    parser.add_argument("--tambourd", required=True, help="the server to record")
    parser.add_argument("--out", required=True, type=Path, help="the folder for the recordings")
    parser.add_argument("--protocol", type=Path, default=PROTOCOL, help="what the server speaks")
    arguments = parser.parse_args()
    asyncio.run(record_flows(arguments) if arguments.flows else record_scenarios(arguments))


if __name__ == "__main__":
    main()
