"""Replays recorded sessions: a server must answer every old client as it did when it was recorded.

    python replay.py --tambourd PROGRAM SESSION.json ...

Each session gets its own server, with the limits it was recorded with. The clients' bytes are sent again in the
same order; only tokens, ids, times and codes are replaced by the present ones. Then

- every request is answered by a packet of the same kind, opcode and seq, and every push comes, on the same
  connection;
- every field is there, with the same type and, unless it is marked as different in every run, the same value;
- ids, tokens and hashes that were equal are equal again;
- a new field is part of the present specification, and if it needs a capability, the client named that capability;
- nothing else is pushed except presence, which depends on the clock.

In the recordings, users reached each other by id alone, which the server no longer permits. So each user who logs
in finds the others by phone, and they find that user.

Prints a line for each session, with the session's first mismatch. Exits with 1 if there is any mismatch.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from server import tambourd
from session import PLACEHOLDER, load, marker, unescaped
from wire import (
    ERROR,
    PROTOCOL,
    REPLY,
    REQUEST,
    Packet,
    Specification,
    Type,
    decode,
    encode_like,
    packet,
    plain,
    read_packet,
)

#: Seconds until an expected packet counts as missing. The limit is generous, because the machine may be busy.
DEADLINE = float(os.environ.get("TAMBOUR_REPLAY_DEADLINE", "120"))

#: The replayer's own PING, with a sequence number that no client reaches. Its answer arrives after all earlier pushes.
FENCE = packet(bytes([10, REQUEST, 0xFF, 0xFF, 0, 1, 0]), b"\x80")
FENCE_SEQ = 0xFFFF

SESSION_INIT = 6
LOGIN = 19
CONTACT_INFO_BY_PHONE = 46
NOTIF_PRESENCE = 132


class Mismatch(Exception):
    """The server does not answer as it did."""


class Codes:
    """The file that the server appends login codes to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def get(self, phone: str, number: int) -> str:
        """Waits for the login code with this number, from 1, among the codes of a phone."""
        ends = time.monotonic() + DEADLINE
        while time.monotonic() < ends:
            text = self._path.read_text() if self._path.exists() else ""
            lines = text[: text.rfind("\n") + 1].splitlines()  # ignore a line that is still being written
            found = [code for to, code in map(str.split, lines) if "".join(filter(str.isdigit, to)) == phone]
            if len(found) >= number:
                return found[number - 1]
            await asyncio.sleep(0.01)  # a file has no event to wait for
        raise Mismatch(f"no login code {number} for {phone}")


class Names:
    """The values in this run that the names of a recording stand for."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise Mismatch(f"the recording never says what {name} is")
        return self._values[name]

    def bound(self) -> dict[str, Any]:
        return dict(self._values)

    def bind(self, values: dict[str, Any]) -> None:
        self._values.update(values)


class Comparison:
    """Compares values with the recorded ones, and collects the values of new names."""

    def __init__(self, names: dict[str, Any], capabilities: set[str]) -> None:
        self.names, self._capabilities = names, capabilities
        #: The latest time seen so far.
        self.latest = 0

    def compare(self, wanted: Any, found: Any, type: Type, path: str = "") -> None:
        if isinstance(wanted, dict) and "$bytes" not in wanted:
            self._compare_maps(wanted, found, type, path)
        elif isinstance(wanted, list):
            if not isinstance(found, list) or len(found) != len(wanted):
                raise Mismatch(f"{path}: {brief(found)} instead of {len(wanted)} items")
            for index, (one, other) in enumerate(zip(wanted, self._in_order(wanted, found), strict=True)):
                self.compare(one, other, type.item, f"{path}/{index}")
        elif name := marker(wanted):
            self._compare_marked(name, found, path)
        elif isinstance(wanted, int) and path.endswith(f"/{found}/id"):
            # The recording contains opaque values unchanged. This value is an id, and equals the map key above it.
            return
        elif not same(unescaped(wanted), plain(found)):
            raise Mismatch(f"{path}: {brief(found)} instead of {brief(wanted)}")

    def _in_order(self, wanted: list[Any], found: list[Any]) -> list[Any]:
        """Returns users in the recorded order: the server sorts by id, and the ids differ in this run."""
        of = {item["userId"]: item for item in found if isinstance(item, dict) and "userId" in item}
        names = [marker(item.get("userId")) for item in wanted if isinstance(item, dict)]
        ids = [self.names.get(name) for name in names if name]
        return [of[id] for id in ids] if len(ids) == len(found) and set(ids) == set(of) else found

    def _compare_maps(self, wanted: dict[str, Any], found: Any, type: Type, path: str) -> None:
        if not isinstance(found, dict):
            raise Mismatch(f"{path}: {brief(found)} instead of a map")
        rest = {str(key): item for key, item in found.items()}
        # Compare unknown names last: such a name can only stand for one of the remaining keys.
        for key in sorted(wanted, key=lambda key: self._key(key) is None):
            here = self._key(key) or next(iter(rest), key)
            if here not in rest:
                raise Mismatch(f"{path}/{here}: is no longer there")
            if name := marker(key):
                # Ids are digits as keys, and integers as values.
                self._compare_marked(name, int(here), f"{path}/{here}")
            self.compare(wanted[key], rest.pop(here), type.field(here), f"{path}/{here}")
        for key in rest:
            self._allow(key, type, path)

    def _key(self, key: str) -> str | None:
        """Returns a recorded key as it is in this run; None for a name without a value yet."""
        name = marker(key)
        if name is None:
            return unescaped(key)
        return str(self.names[name]) if name in self.names else None

    def _compare_marked(self, name: str, found: Any, path: str) -> None:
        if name == "int" or name == "ms" or name.startswith("ms:"):
            if not isinstance(found, int) or isinstance(found, bool):
                raise Mismatch(f"{path}: {brief(found)} instead of an integer")
            if name != "int":
                self.latest = max(self.latest, found)
            if name.startswith("ms:"):
                self.names[name.removeprefix("ms:")] = found
            return
        is_text = name.startswith(("token", "hash"))
        if not isinstance(found, str if is_text else int):
            raise Mismatch(f"{path}: {brief(found)} is no {name.rstrip('0123456789')}")
        if self.names.setdefault(name, found) != found:
            raise Mismatch(f"{path}: {found} instead of {self.names[name]}, which is {name}")

    def _allow(self, key: str, type: Type, path: str) -> None:
        """Checks that a new key is in the present specification, and that the client may get it."""
        if type.fields is None:
            if type.text == "any":
                return
            raise Mismatch(f"{path}/{key}: was not there before")
        field = type.fields.get(key)
        if field is None:
            raise Mismatch(f"{path}/{key}: is new, and the specification does not know it")
        capability = field.get("capability")
        if capability and capability not in self._capabilities:
            raise Mismatch(f"{path}/{key}: is new, and the client did not name {capability}")


def same(wanted: Any, found: Any) -> bool:
    return type(wanted) is type(found) and wanted == found


def brief(value: Any) -> str:
    text = json.dumps(plain(value), ensure_ascii=False)
    return text if len(text) < 80 else f"{text[:80]}…"


class Connection:
    """A client's connection, with the packets that have arrived and were not compared yet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: int) -> None:
        self._reader, self._writer, self._answers = reader, writer, answers
        self.capabilities: set[str] = set()
        self.pushes: deque[Packet] = deque()
        self._replies: dict[int, deque[Packet]] = {}
        self._news = asyncio.Condition()
        self.is_closed = False
        self._task = asyncio.create_task(self._receive())

    async def _receive(self) -> None:
        while came := await read_packet(self._reader):
            async with self._news:
                if came.cmd == REQUEST:
                    self.pushes.append(came)
                else:
                    self._replies.setdefault(came.seq, deque()).append(came)
                self._news.notify_all()
        async with self._news:
            self.is_closed = True
            self._news.notify_all()

    def send(self, raw: bytes) -> None:
        self._writer.write(raw)

    async def close(self) -> None:
        self._writer.close()
        await self._task

    async def wait(self, what: str, condition: Any) -> Any:
        """Waits until `condition` returns a result; tries again after each packet."""
        try:
            async with asyncio.timeout(DEADLINE), self._news:
                while (result := condition()) is None:
                    if self.is_closed:
                        raise Mismatch(f"the server closed the connection instead of {what}")
                    await self._news.wait()
                return result
        except TimeoutError:
            raise Mismatch(f"{what} did not come within {DEADLINE:.0f} s") from None

    async def reply(self, seq: int, what: str) -> Packet:
        def find() -> Packet | None:
            return self._replies[seq].popleft() if self._replies.get(seq) else None

        came = await self.wait(what, find)
        if came.raw[0] != self._answers:
            raise Mismatch(f"the header says version {came.raw[0]} instead of {self._answers}")
        return came

    async def closed(self) -> None:
        try:
            async with asyncio.timeout(DEADLINE):
                await self._task
        except TimeoutError:
            raise Mismatch(f"the server did not close the connection within {DEADLINE:.0f} s") from None


class Replay:
    """Plays one recording."""

    def __init__(self, address: str, codes: Codes, specification: Specification) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._codes, self._specification = codes, specification
        self._names = Names()
        #: The latest time that the server has sent, in milliseconds.
        self._latest = 0
        self._connections: dict[str, Connection] = {}
        #: Id and phone of the user who is logged in on each connection.
        self._people: dict[str, tuple[int, int]] = {}
        self.counts = {"request": 0, "reply": 0, "error": 0, "push": 0}

    async def play(self, events: list[dict[str, Any]]) -> None:
        for number, event in enumerate(events, 1):
            kind, subject = next(iter(event.items()))
            if kind in self.counts:
                self.counts[kind] += 1
            try:
                await getattr(self, f"_{kind}")(event)
            except Mismatch as mismatch:
                raise Mismatch(f"event {number}, {kind} {subject}: {mismatch}") from None
        for name in [name for name, connection in self._connections.items() if not connection.is_closed]:
            await self._close({"close": name})

    async def hang_up(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            await connection.close()

    async def _connect(self, event: dict[str, Any]) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        self._connections[event["connect"]] = Connection(reader, writer, self._specification.answers)

    async def _let(self, event: dict[str, Any]) -> None:
        one, other = event["xor"]
        self._names.bind({event["let"]: self._names[one] ^ self._names[other]})

    async def _request(self, event: dict[str, Any]) -> None:
        connection = self._connections[event["on"]]
        text, payload, done = event["payload"], b"", 0
        for match in PLACEHOLDER.finditer(text):
            payload += bytes.fromhex(text[done : match.start()])
            payload += encode_like(await self._value(match[1]), int(match[2], 16))
            done = match.end()
        payload += bytes.fromhex(text[done:])
        head = bytes.fromhex(event["head"])
        if Packet(head).opcode == SESSION_INIT:
            connection.capabilities = set(decode(payload).get("capabilities") or [])
        connection.send(packet(head, payload))

    async def _value(self, name: str) -> Any:
        if name.startswith("now"):
            # Messages sent within one millisecond have times ahead of the clock.
            clock = max(time.time_ns() // 1_000_000, self._latest)
            return clock + int(name.removeprefix("now") or 0)
        if name.startswith("code"):
            phone, number = name.removeprefix("code").split(".")
            return await self._codes.get(phone, int(number))
        return self._names[name]

    async def _reply(self, event: dict[str, Any]) -> None:
        await self._answer(event, REPLY, "reply")

    async def _error(self, event: dict[str, Any]) -> None:
        await self._answer(event, ERROR, "error")

    async def _answer(self, event: dict[str, Any], cmd: int, role: str) -> None:
        connection = self._connections[event["on"]]
        came = await connection.reply(event["seq"], f"the answer {event['seq']}")
        if (came.cmd, came.opcode) != (cmd, event["opcode"]):
            found = f"cmd {came.cmd} of opcode {came.opcode}"
            raise Mismatch(f"{found} instead of cmd {cmd} of {event['opcode']}: {brief(came.value)}")
        self._names.bind(self._compared(event, came, role, connection))
        if came.opcode == LOGIN and cmd == REPLY:
            profile = came.value["profile"]
            contact = profile.get("contact", profile)
            self._people[event["on"]] = (contact["id"], contact["phone"])
            await self._introduce(event["on"])

    async def _introduce(self, newcomer: str) -> None:
        """Makes the newcomer and the other users find each other by phone."""
        for name, (user, phone) in self._people.items():
            if user != self._people[newcomer][0]:
                await self._find(newcomer, phone)
                await self._find(name, self._people[newcomer][1])

    async def _find(self, name: str, phone: int) -> None:
        connection, text = self._connections[name], f"+{phone}".encode()
        if connection.is_closed:
            return
        head = bytes([10, REQUEST, 0xFF, 0xFF, 0, CONTACT_INFO_BY_PHONE, 0])
        connection.send(packet(head, b"\x81\xa5phone" + bytes([0xA0 | len(text)]) + text))
        await connection.reply(FENCE_SEQ, "the answer to CONTACT_INFO_BY_PHONE")

    async def _push(self, event: dict[str, Any]) -> None:
        connection = self._connections[event["on"]]
        closest: Mismatch | None = None

        def find() -> dict[str, Any] | None:
            nonlocal closest
            for came in connection.pushes:
                if came.opcode == event["opcode"]:
                    try:
                        names = self._compared(event, came, "push", connection)
                    except Mismatch as mismatch:
                        closest = closest or mismatch
                        continue
                    connection.pushes.remove(came)
                    return names
            return None

        try:
            self._names.bind(await connection.wait("the push", find))
        except Mismatch as mismatch:
            raise closest or mismatch from None

    def _compared(
        self, event: dict[str, Any], came: Packet, role: str, connection: Connection
    ) -> dict[str, Any]:
        comparison = Comparison(self._names.bound(), connection.capabilities)
        comparison.compare(event["value"], came.value, self._specification.payload(event["opcode"], role))
        self._latest = max(self._latest, comparison.latest)
        return comparison.names

    async def _closed(self, event: dict[str, Any]) -> None:
        connection = self._connections[event["closed"]]
        await connection.closed()
        self._expect_nothing_else(connection)

    async def _close(self, event: dict[str, Any]) -> None:
        connection = self._connections[event["close"]]
        connection.send(FENCE)
        await connection.reply(FENCE_SEQ, "the answer to PING")
        self._expect_nothing_else(connection)
        await connection.close()

    def _expect_nothing_else(self, connection: Connection) -> None:
        for came in connection.pushes:
            if came.opcode != NOTIF_PRESENCE:
                name = self._specification.name(came.opcode)
                raise Mismatch(f"a push {name} that did not come before: {brief(came.value)}")


async def replay(session: Path, program: str, specification: Specification) -> str:
    """Replays a session against its own server.

    Returns the number of packets by kind, as a text; raises `Mismatch`.
    """
    recording = load(session)
    async with tambourd(program, recording["limits"]) as server:
        play = Replay(server.address, Codes(server.codes), specification)
        try:
            await play.play(recording["events"])
        finally:
            await play.hang_up()
    return ", ".join(f"{count} {kind}" for kind, count in play.counts.items())


async def replay_all(arguments: argparse.Namespace) -> int:
    specification = Specification(arguments.protocol)
    status = 0
    for session in arguments.session:
        recording = load(session)
        name = f"{recording['session']} of release {recording['release']}"
        try:
            said = await replay(session, arguments.tambourd, specification)
            print(f"  ok  {name}: {said}", flush=True)
        except Mismatch as mismatch:
            print(f"FAILED {name}: {mismatch}", flush=True)
            status = 1
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("session", nargs="+", type=Path, metavar="SESSION.json")
    parser.add_argument("--tambourd", required=True, metavar="PROGRAM", help="the server to try")
    parser.add_argument("--protocol", type=Path, default=PROTOCOL, help="the specification as it is now")
    return asyncio.run(replay_all(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
