"""MessagePack in forms that an encoder does not write: wider than needed, malformed, with false lengths."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from tambour_conformance import wire


class Raw(bytes):
    """Bytes that `pack` inserts unchanged in place of a value."""


def pack(value: Any) -> bytes:
    """Like `wire.encode`, but allows Raw inside maps and arrays."""
    match value:
        case Raw():
            return bytes(value)
        case dict():
            return map_header(len(value)) + b"".join(pack(each) for pair in value.items() for each in pair)
        case list():
            return array_header(len(value)) + b"".join(map(pack, value))
    return wire.encode(value)


def map_header(count: int) -> bytes:
    if count < 16:
        return bytes([0x80 | count])
    return struct.pack(">BH", 0xDE, count) if count < 1 << 16 else struct.pack(">BI", 0xDF, count)


def array_header(count: int) -> bytes:
    if count < 16:
        return bytes([0x90 | count])
    return struct.pack(">BH", 0xDC, count) if count < 1 << 16 else struct.pack(">BI", 0xDD, count)


def integers(value: int) -> Iterator[tuple[str, Raw]]:
    """An integer in every form that can hold it."""
    if 0 <= value < 1 << 7:
        yield "fixint", Raw([value])
    if -32 <= value < 0:
        yield "fixint", Raw(struct.pack(">b", value))
    for bits, code, letter in ((8, 0xCC, "B"), (16, 0xCD, "H"), (32, 0xCE, "I"), (64, 0xCF, "Q")):
        if 0 <= value < 1 << bits:
            yield f"u{bits}", Raw(struct.pack(f">B{letter}", code, value))
    for bits, code, letter in ((8, 0xD0, "b"), (16, 0xD1, "h"), (32, 0xD2, "i"), (64, 0xD3, "q")):
        if -1 << bits - 1 <= value < 1 << bits - 1:
            yield f"i{bits}", Raw(struct.pack(f">B{letter}", code, value))


def strings(text: str | bytes) -> Iterator[tuple[str, Raw]]:
    """A string with every header that can hold its length; bytes need not be UTF-8."""
    data = text.encode() if isinstance(text, str) else text
    if len(data) < 32:
        yield "fixstr", Raw(bytes([0xA0 | len(data)]) + data)
    for bits, code, letter in ((8, 0xD9, "B"), (16, 0xDA, "H"), (32, 0xDB, "I")):
        if len(data) < 1 << bits:
            yield f"str{bits}", Raw(struct.pack(f">B{letter}", code, len(data)) + data)


def string(data: bytes) -> Raw:
    """A string whose bytes need not be UTF-8, with the shortest header."""
    return next(strings(data))[1]


def maps(value: dict[Any, Any]) -> Iterator[tuple[str, Raw]]:
    """A map with every header that can hold its size."""
    body = b"".join(pack(each) for pair in value.items() for each in pair)
    if len(value) < 16:
        yield "fixmap", Raw(bytes([0x80 | len(value)]) + body)
    yield "map16", Raw(struct.pack(">BH", 0xDE, len(value)) + body)
    yield "map32", Raw(struct.pack(">BI", 0xDF, len(value)) + body)


def arrays(value: list[Any]) -> Iterator[tuple[str, Raw]]:
    """An array with every header that can hold its size."""
    body = b"".join(map(pack, value))
    if len(value) < 16:
        yield "fixarray", Raw(bytes([0x90 | len(value)]) + body)
    yield "array16", Raw(struct.pack(">BH", 0xDC, len(value)) + body)
    yield "array32", Raw(struct.pack(">BI", 0xDD, len(value)) + body)


def nested(levels: int, inner: bytes = b"\xc0") -> Raw:
    """Nested arrays of one item each."""
    return Raw(b"\x91" * levels + inner)


def padded(value: dict[str, Any], size: int) -> bytes:
    """The payload of `value` with an additional unknown key, so that it is `size` bytes long."""
    empty = len(wire.encode({**value, "padding": b""}))
    for header in (2, 3, 5):
        payload = wire.encode({**value, "padding": bytes(max(size - empty + 2 - header, 0))})
        if len(payload) == size:
            return payload
    raise ValueError(f"no payload of {size} bytes")


#: Values of all types, by name. An unknown key may have any of them.
ANYTHING: dict[str, Any] = {
    "nil": None,
    "true": True,
    "integer": -(1 << 63),
    "u64": (1 << 64) - 1,
    "float": Raw(struct.pack(">Bf", 0xCA, 1.5)),
    "double": 1.5,
    "nan": float("nan"),
    "string": "каждый",
    "long string": "x" * 300,
    "bin": b"\x00\xff",
    "bin16": bytes(300),
    "array": [1, [2, [3, {"a": [None, True]}]]],
    "map": {"a": {"b": {"c": {}}}},
    "map with other keys": {1: 2, None: True, -5: [0]},
    "fixext1": Raw(b"\xd4\x05\x01"),
    "fixext16": Raw(b"\xd8\x05" + bytes(16)),
    "ext8": Raw(b"\xc7\x03\x7f\x01\x02\x03"),
    "ext16": Raw(b"\xc8\x00\x02\x7f\x01\x02"),
    "ext32": Raw(b"\xc9\x00\x00\x00\x01\x7f\x01"),
    "timestamp": Raw(b"\xd6\xff\x00\x00\x00\x01"),
}
