"""Packets, and the specification of their payloads: the code that recording and replaying share.

Shares no code with the server: MessagePack and LZ4 come from PyPI.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lz4.block
import msgpack

#: The whole specification as JSON, for programs that do not read YAML.
PROTOCOL = Path(__file__).parents[3] / "protocol-spec/conformance/src/tambour_conformance/protocol.json"

#: The number of bytes before a payload: ver, cmd, seq, opcode, flags and length.
HEADER = 10

REQUEST, REPLY, ERROR = 0, 1, 3

#: More bytes than any payload inflates to.
MOST_INFLATED = 16 << 20


@dataclass(frozen=True)
class Packet:
    """A packet, with its bytes as they were sent."""

    raw: bytes

    @property
    def cmd(self) -> int:
        return self.raw[1]

    @property
    def seq(self) -> int:
        return int.from_bytes(self.raw[2:4], "big")

    @property
    def opcode(self) -> int:
        return int.from_bytes(self.raw[4:6], "big")

    @property
    def is_compressed(self) -> bool:
        return self.raw[6] != 0

    @property
    def payload(self) -> bytes:
        """The MessagePack value, inflated if need be."""
        body = self.raw[HEADER:]
        return lz4.block.decompress(body, uncompressed_size=MOST_INFLATED) if self.is_compressed else body

    @property
    def value(self) -> Any:
        return decode(self.payload)


def decode(payload: bytes) -> Any:
    """Decodes a payload; an empty payload stands for the empty map."""
    return msgpack.unpackb(payload, raw=False, strict_map_key=False) if payload else {}


async def read_packet(reader: asyncio.StreamReader) -> Packet | None:
    """The next packet; None if the stream ends, even in the middle of a packet."""
    try:
        header = await reader.readexactly(HEADER)
        return Packet(header + await reader.readexactly(int.from_bytes(header[7:10], "big")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def packet(head: bytes, payload: bytes) -> bytes:
    """A packet from its first seven bytes and its payload."""
    return head + len(payload).to_bytes(3, "big") + payload


def plain(value: Any) -> Any:
    """A value as JSON can hold it: bytes as `{"$bytes": hex}`, keys as strings."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case bytes():
            return {"$bytes": value.hex()}
        case _:
            return value


# The specification


class Specification:
    """The content of `protocol.json`."""

    def __init__(self, path: Path) -> None:
        document = json.loads(path.read_text())
        self.version: int = document["version"]
        self.answers: int = document["framing"]["written"]
        self.structs = {entry["name"]: entry["fields"] for entry in document["structs"]}
        opcodes = [entry for family in document["families"] for entry in family["opcodes"]]
        self._opcodes = {entry["opcode"]: entry for entry in opcodes}

    def name(self, opcode: int) -> str:
        return self._opcodes[opcode]["name"] if opcode in self._opcodes else str(opcode)

    def payload(self, opcode: int, role: str) -> Type:
        """The type of a request, reply, push or error; `any` for an unknown opcode."""
        if role == "error":
            return self.type("ErrorReply")
        fields = self._opcodes.get(opcode, {}).get(role)
        return self.type("any") if fields is None else Type(f"{self.name(opcode)} {role}", self, fields)

    def type(self, text: str) -> Type:
        """The type of an expression; a packed value is encoded like its content."""
        return self.type(text[len("packed<") : -1]) if text.startswith("packed<") else Type(text, self)


@dataclass(frozen=True)
class Type:
    """A type expression of the specification, and its fields if it is a map with known keys."""

    text: str
    specification: Specification
    own_fields: list[dict[str, Any]] | None = None

    @property
    def fields(self) -> dict[str, dict[str, Any]] | None:
        fields = self.specification.structs.get(self.text) if self.own_fields is None else self.own_fields
        return None if fields is None else {field["key"]: field for field in fields}

    def field(self, key: str) -> Type:
        """The type of a field; `any` for an unknown key."""
        fields = self.fields
        if fields is None:
            return self.specification.type(self._inner)
        return self.specification.type(fields[key]["type"] if key in fields else "any")

    @property
    def item(self) -> Type:
        return self.specification.type(self._inner)

    @property
    def key(self) -> str | None:
        """The type of a map's keys if they are ids, otherwise None."""
        return self.text.removeprefix("map<").split(",")[0] if self.text.startswith("map<") else None

    @property
    def _inner(self) -> str:
        """The type of the items of a list or map; `any` for other types."""
        head, _, rest = self.text.partition("<")
        inner = rest.removesuffix(">")
        match head:
            case "list" | "names":
                return inner
            case "map":
                return inner.split(",", 1)[1].strip()
            case _:
                return "any"


# Walking over payloads


@dataclass(frozen=True)
class Leaf:
    """A scalar inside a payload, and where its bytes are."""

    value: Any
    type: str
    #: The field that contains the scalar, such as `LOGIN request.token`.
    field: str
    start: int
    end: int


def leaves(payload: bytes, type: Type) -> Iterator[Leaf]:
    """Every scalar of a payload, including map keys that are ids, in the order of the bytes."""
    if payload:
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        unpacker.feed(payload)
        yield from _leaves(unpacker, payload, type, "")


def _leaves(unpacker: Any, payload: bytes, type: Type, field: str) -> Iterator[Leaf]:
    start = unpacker.tell()
    first = payload[start]
    if first >> 4 == 0x8 or first in (0xDE, 0xDF):
        for _ in range(unpacker.read_map_header()):
            at = unpacker.tell()
            key = unpacker.unpack()
            if type.key:
                yield Leaf(key, type.key, field, at, unpacker.tell())
            inner = f"{type.text}.{key}" if type.fields else field
            yield from _leaves(unpacker, payload, type.field(str(key)), inner)
    elif first >> 4 == 0x9 or first in (0xDC, 0xDD):
        for _ in range(unpacker.read_array_header()):
            yield from _leaves(unpacker, payload, type.item, field)
    else:
        value = unpacker.unpack()
        yield Leaf(value, type.text, field, start, unpacker.tell())


# Scalars in a given form


def encode_like(value: Any, first: int) -> bytes:
    """Encodes a scalar in the MessagePack form with this first byte if it fits, else in the shortest form.

    An id that was recorded as a string is encoded as digits.
    """
    if isinstance(value, int) and (first >> 5 == 0x5 or first in (0xD9, 0xDA, 0xDB)):
        value = str(value)
    widths = {0xCC: (1, False), 0xCD: (2, False), 0xCE: (4, False), 0xCF: (8, False)}
    widths |= {0xD0: (1, True), 0xD1: (2, True), 0xD2: (4, True), 0xD3: (8, True)}
    if isinstance(value, int) and first in widths:
        width, signed = widths[first]
        try:
            return bytes([first]) + value.to_bytes(width, "big", signed=signed)
        except OverflowError:
            pass
    if isinstance(value, str) and first in (0xD9, 0xDA, 0xDB):
        body = value.encode()
        width = 1 << (first - 0xD9)
        if len(body) < 1 << 8 * width:
            return bytes([first]) + len(body).to_bytes(width, "big") + body
    return msgpack.packb(value)
