"""Packets as bytes, in code of its own. So it finds mistakes that a server's encoder and decoder share.

A packet is ten bytes, big-endian, and a payload: version u8, cmd u8, seq u16, opcode u16, flags u8,
length u24.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import lz4.block
import msgpack

from tambour_conformance.verdict import Failed

HEADER_SIZE = 10
#: The longest payload that the header can announce.
MAX_LENGTH = 0xFFFFFF
#: The largest inflated payload that a reader of replies must accept, in bytes.
MAX_RAW = 16 << 20

REQUEST, OK, NOT_FOUND, ERROR = 0, 1, 2, 3
ZSTD = 255

_HEADER = struct.Struct(">BBHHI")


class BadPacket(ValueError):
    """Bytes that no reader of this protocol can decode."""


class Payload(dict[Any, Any]):
    """A received map. A case that reads a missing key fails, because the server did not write the key."""

    def __missing__(self, key: Any) -> NoReturn:
        raise Failed(f"a key {key!r}", f"only {sorted(map(str, self))}")


@dataclass(frozen=True)
class Frame:
    """A packet as sent or received."""

    version: int
    command: int
    seq: int
    opcode: int
    flags: int
    wire: bytes  #: the payload before inflation

    @property
    def packet(self) -> bytes:
        return (
            header(self.opcode, self.seq, len(self.wire), self.command, self.version, self.flags) + self.wire
        )

    @cached_property
    def payload(self) -> bytes:
        """The payload after inflation. Raises BadPacket."""
        return inflate(self.wire, self.flags)

    @cached_property
    def value(self) -> Any:
        """The decoded payload. Raises BadPacket unless it is one MessagePack value with unique keys."""
        return decode(self.payload)

    @property
    def is_push(self) -> bool:
        return self.command == REQUEST

    @property
    def is_answer(self) -> bool:
        return self.command != REQUEST

    @property
    def _fields(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise BadPacket(f"not a map: {self.value!r:.80}")
        return self.value

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self._fields.get(key, default)


def header(
    opcode: int, seq: int, length: int, command: int = REQUEST, version: int = 10, flags: int = 0
) -> bytes:
    return _HEADER.pack(version, command, seq, opcode, flags << 24 | length)


def packet(
    opcode: int,
    seq: int,
    value: Any = None,
    *,
    payload: bytes | None = None,
    command: int = REQUEST,
    version: int = 10,
    compress: bool = False,
    flags: int | None = None,
) -> bytes:
    """A whole packet.

    The payload is `payload` if given, otherwise `value` encoded. `compress` makes it an LZ4 block and writes
    its factor into the byte `flags` of the header. The argument `flags` overrides this byte.
    """
    raw = encode({} if value is None else value) if payload is None else payload
    factor = 0
    if compress:
        block = deflate(raw)
        factor = min(len(raw) // len(block) + 1, 254)
        raw = block
    return header(opcode, seq, len(raw), command, version, factor if flags is None else flags) + raw


def encode(value: Any) -> bytes:
    return msgpack.packb(value, use_bin_type=True)


def decode(payload: bytes) -> Any:
    """Decodes one value with nothing after it. Raises BadPacket."""
    try:
        return msgpack.unpackb(
            payload,
            raw=False,
            strict_map_key=False,
            object_pairs_hook=_unique,
        )
    except BadPacket:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise BadPacket(f"not one MessagePack value: {type(error).__name__}: {error}") from error


def _unique(pairs: list[tuple[Any, Any]]) -> Payload:
    value = Payload(pairs)
    if len(value) != len(pairs):
        raise BadPacket(f"a key comes twice among {[key for key, _ in pairs]}")
    return value


def deflate(raw: bytes) -> bytes:
    return lz4.block.compress(raw, store_size=False)


def inflate(wire: bytes, flags: int) -> bytes:
    """The payload `wire` after inflation. Raises BadPacket.

    `flags` is the factor in the header: the payload inflates to at most `len(wire) * flags` bytes.
    """
    if flags == 0:
        return wire
    if flags == ZSTD:
        raise BadPacket("flags 255: zstd")
    bound = min(len(wire) * flags, MAX_RAW)
    try:
        return lz4.block.decompress(wire, uncompressed_size=bound)
    except lz4.block.LZ4BlockError as error:
        raise BadPacket(f"not an LZ4 block of at most {bound} bytes raw: {error}") from error


def cut(data: bytes | bytearray, begin: int = 0) -> Frame | None:
    """The packet that begins at `begin`; None if it is incomplete."""
    if len(data) - begin < HEADER_SIZE:
        return None
    version, command, seq, opcode, word = _HEADER.unpack_from(data, begin)
    length = word & MAX_LENGTH
    start = begin + HEADER_SIZE
    if len(data) - start < length:
        return None
    return Frame(version, command, seq, opcode, word >> 24, bytes(data[start : start + length]))
