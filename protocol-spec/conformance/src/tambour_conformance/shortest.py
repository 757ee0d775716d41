"""Checks that MessagePack is in its shortest form, except values that a server repeats as received."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tambour_conformance import wire
from tambour_conformance.bundle import Bundle

#: How many bytes follow the first byte of a value of fixed size: an integer, or a float or fixext.
INTEGERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
FIXED = {0xCA: 4, 0xCB: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
#: By first byte: the size, in bytes, of the length or count after it, and the least one that needs this size.
BINARIES = {0xC4: (1, 0), 0xC5: (2, 1 << 8), 0xC6: (4, 1 << 16)}
STRINGS = {0xD9: (1, 32), 0xDA: (2, 1 << 8), 0xDB: (4, 1 << 16)}
EXTENSIONS = {0xC7: (1, 0), 0xC8: (2, 0), 0xC9: (4, 0)}
LISTS = {0xDC: (2, 16), 0xDD: (4, 1 << 16)}
MAPS = {0xDE: (2, 16), 0xDF: (4, 1 << 16)}
SIZED = BINARIES | STRINGS | EXTENSIONS | LISTS | MAPS

#: A type as in the specification ("" if it names none), or the types of a map's values by their keys.
Kind = str | Mapping[str, str]


def longer_than_needed(data: bytes, fields: Sequence[Mapping[str, Any]], protocol: Bundle) -> str | None:
    """A JSON pointer to the first value in the map `data` that has a shorter form, or None.

    Values of type `any` may have any form, and floats may have 32 or 64 bits. `data` must be valid.
    """
    return next(_Reader(data, protocol).value("", _by_key(fields)), None)


def _by_key(fields: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {field["key"]: field["type"] for field in fields}


class _Reader:
    def __init__(self, data: bytes, protocol: Bundle) -> None:
        self.data = data
        self.position = 0
        self.protocol = protocol

    def value(self, place: str, kind: Kind) -> Iterator[str]:
        """Skips a value; yields the place of each value in it that has a shorter form."""
        container, count, is_shortest = self.head()
        if not is_shortest and kind != "any":
            yield place or "/"
        if container == "list":
            for index in range(count):
                yield from self.value(f"{place}/{index}", self.inner(kind, None))
        elif container == "map":
            for _ in range(count):
                begin = self.position
                long_keys = list(self.value(place, "any" if kind == "any" else ""))
                key = wire.decode(self.data[begin : self.position])
                yield from (f"{place}/{key}, the key" for _ in long_keys)
                yield from self.value(f"{place}/{key}", self.inner(kind, key))

    def inner(self, kind: Kind, key: Any) -> Kind:
        """The type of the items of a list (`key` is None), or of a map's value for `key`."""
        if kind == "any":
            return "any"
        if isinstance(kind, str) and (
            found := re.fullmatch(r"(list|packed|map|names)<(?:\w+, )?(.*)>", kind)
        ):
            # A packed value is the object itself.
            return self.inner(found[2], key) if found[1] == "packed" else found[2]
        if isinstance(kind, str):
            kind = _by_key(self.protocol.structs[kind]["fields"]) if kind in self.protocol.structs else {}
        return kind.get(key, "")

    def head(self) -> tuple[str, int, bool]:
        """Skips a value, or only the header of a container.

        Returns three things: the kind of container ("" for another value), its number of items or pairs, and
        whether the form is the shortest.
        """
        code = self.data[self.position]
        self.position += 1
        if 0x80 <= code <= 0x9F:
            return ("map" if code < 0x90 else "list"), code & 15, True
        if 0xA0 <= code <= 0xBF:
            self.position += code & 31
        elif code in INTEGERS:
            begin, self.position = self.position - 1, self.position + INTEGERS[code]
            written = self.data[begin : self.position]
            return "", 0, len(wire.encode(wire.decode(written))) == len(written)
        elif code in FIXED:
            self.position += FIXED[code]
        elif code in SIZED:
            size, least = SIZED[code]
            count = int.from_bytes(self.data[self.position : self.position + size], "big")
            self.position += size
            if code in LISTS or code in MAPS:
                return ("list" if code in LISTS else "map"), count, count >= least
            self.position += count + (code in EXTENSIONS)
            return "", 0, count >= least
        return "", 0, True
