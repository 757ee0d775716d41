"""Requests made from the specification's examples and field types, which a server must accept or refuse."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tambour_conformance.bundle import Bundle, Opcode
from tambour_conformance.forms import Raw, pack

#: 2^63, the least integer that a signed 64-bit integer cannot hold.
TOO_LARGE = Raw(b"\xcf\x80\x00\x00\x00\x00\x00\x00\x00")

INTEGERS = ("int", "ms")
IDS = ("chatId", "userId", "messageId")
STRINGS = ("text", "string")

#: For each type, values that a field of this type must not hold.
WRONG: dict[str, list[Any]] = {
    "bool": [1, "true", [], {}],
    "double": ["1.5", True, [], {}],
    "bytes": [1, True, []],
    **dict.fromkeys(INTEGERS, [1.5, 1.0, True, [], {}]),
    **dict.fromkeys(IDS, [1.5, True, [], {}, "", "12x", "1.5"]),
    **dict.fromkeys(STRINGS, [1, 1.5, True, [], {}]),
}


@dataclass(frozen=True)
class Mutation:
    """An example request with one changed field."""

    path: str  #: a JSON pointer
    what: str
    payload: bytes


def value_of(example: Any) -> Any:
    """The value of an example, which has byte strings in the form {"$bytes": "…"}."""
    match example:
        case {"$bytes": str(digits)}:
            return bytes.fromhex(digits)
        case dict():
            return {key: value_of(each) for key, each in example.items()}
        case list():
            return [value_of(each) for each in example]
    return example


def request_values(protocol: Bundle, opcode: Opcode) -> list[dict[str, Any]]:
    """The values of an opcode's example requests."""
    return [
        value_of(each.value)
        for each in protocol.examples
        if each.opcode == opcode.number and each.role == "request"
    ]


def without_required(protocol: Bundle, opcode: Opcode) -> list[Mutation]:
    """The example requests without one required field, for each required field at any depth."""
    return _mutations(
        protocol, opcode, lambda field, _: [("missing", _ABSENT)] if field.get("required") else []
    )


def nil_for_required(protocol: Bundle, opcode: Opcode) -> list[Mutation]:
    """The example requests with nil in one required field, for each required field at any depth."""
    return _mutations(protocol, opcode, lambda field, _: [("nil", None)] if field.get("required") else [])


def nil_for_optional(protocol: Bundle, opcode: Opcode) -> list[Mutation]:
    """The example requests with nil in one optional field, for each optional field at any depth."""
    return _mutations(protocol, opcode, lambda field, _: [] if field.get("required") else [("nil", None)])


def without_optional(protocol: Bundle, opcode: Opcode) -> list[Mutation]:
    """The example requests without one optional field, in the order of `nil_for_optional`."""
    return _mutations(
        protocol, opcode, lambda field, _: [] if field.get("required") else [("missing", _ABSENT)]
    )


def wrong_types(protocol: Bundle, opcode: Opcode) -> list[Mutation]:
    """The example requests with a value of another type, or an unknown enumeration name, in one field."""

    def wrong(field: dict[str, Any], _: Any) -> list[tuple[str, Any]]:
        return [(f"{each!r}", each) for each in _wrong_values(protocol, field["type"])]

    return _mutations(protocol, opcode, wrong)


def too_large_integers(protocol: Bundle, opcode: Opcode) -> list[Mutation]:
    """The example requests with one integer or id, at any depth, above the range of signed 64 bits."""

    def large(field: dict[str, Any], _: Any) -> list[tuple[str, Any]]:
        if field["type"] in INTEGERS + IDS:
            return [("2^63", TOO_LARGE)]
        if _item(field["type"]) in INTEGERS + IDS:
            return [("[2^63]", [TOO_LARGE])]
        return []

    return _mutations(protocol, opcode, large)


def limited(
    protocol: Bundle, opcode: Opcode, limits: Mapping[str, int], kinds: Sequence[str], excess: int = 0
) -> list[Mutation]:
    """The example requests in which one field, at any depth, has the size of its limit plus `excess`.

    The kinds of limits are `limit` (UTF-16 units), `limitBytes` and `limitItems`. A field with a limit of
    units is not tested for bytes, because an ASCII text within the limit never has too many bytes.
    """

    def long(field: dict[str, Any], present: Any) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        item = _item(field["type"])
        for kind in kinds:
            if kind not in field or (kind == "limitBytes" and "limit" in field):
                continue
            # A map of maps has a list of limits, one for each level, the outermost first.
            limit = field[kind] if isinstance(field[kind], str) else field[kind][0]
            count = limits[limit] + excess
            what = f"{count} {UNITS[kind]}"
            if kind != "limitItems":
                if field["type"].startswith(("map<", "names<")):
                    continue
                length = count - (_header(count) if (item or field["type"]) == "any" else 0)
                found.append((what, ["a" * length] if item else "a" * length))
            elif isinstance(present, dict):
                if present:
                    value = next(iter(present.values()))
                    found.append((what, {str(number): value for number in range(1, count + 1)}))
            elif present:
                found.append((what, [present[0]] * count))
            elif item in IDS:
                found.append((what, [1] * count))
        return found

    return _mutations(protocol, opcode, long)


def _header(count: int) -> int:
    """The size of the MessagePack header of a string that takes `count` bytes in all."""
    return 1 if count <= 32 else 2 if count <= 257 else 3


#: The unit of each kind of limit.
UNITS = {"limit": "units", "limitBytes": "bytes", "limitItems": "items"}


def harmless(value: Any, users: Sequence[int], nowhere: int, cid: int, phone: str) -> Any:
    """The example request, changed so that it notifies nobody outside the run.

    It replaces chats and dialog partners by the unused id `nowhere`, invited and shown users by `users`,
    phones by `phone`, and client ids of messages by `cid`.
    """

    def change(key: str, each: Any) -> Any:
        match key, each:
            case _, None:
                return None
            case "chatId" | "userId", _:
                return nowhere
            case "userIds", [_, *_]:
                return (list(users) * len(each))[: len(each)]
            case "contactId", _:
                return users[0]
            case "cid", _:
                return cid
            case "phone", str() if len(each) < 20:
                return phone
        return harmless(each, users, nowhere, cid, phone)

    match value:
        case dict():
            return {key: change(key, each) for key, each in value.items()}
        case list():
            return [harmless(each, users, nowhere, cid, phone) for each in value]
    return value


_ABSENT = object()


def _wrong_values(protocol: Bundle, kind: str) -> list[Any]:
    if kind in WRONG:
        return WRONG[kind]
    if item := _item(kind):
        return [1, "a", True, {}, *([each] for each in _wrong_values(protocol, item)[:2])]
    if kind in protocol.structs:
        return [1, "a", True, []]
    if kind in protocol.enums:
        return [1, True, [], *([] if protocol.enums[kind]["open"] else ["NONSENSE"])]
    return []


def _item(kind: str) -> str | None:
    """The T of a type `list<T>`; None for other types."""
    found = re.fullmatch(r"list<(.*)>", kind)
    return found[1] if found else None


def _mutations(protocol: Bundle, opcode: Opcode, variants: Any) -> list[Mutation]:
    """The example requests of the opcode, each with one change of one field; equal changes come once."""
    found: dict[tuple[str, str], Mutation] = {}
    for example in request_values(protocol, opcode):
        for path, field in _fields(protocol, opcode.fields.get("request") or [], example, ()):
            for what, value in variants(field, _at(example, path)):
                changed = copy.deepcopy(example)
                target = changed
                for step in path[:-1]:
                    target = target[step]
                if value is _ABSENT:
                    target.pop(path[-1], None)
                else:
                    target[path[-1]] = value
                pointer = "".join(f"/{step}" for step in path)
                found.setdefault((pointer, what), Mutation(pointer, what, pack(changed)))
    return list(found.values())


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    """The value of an example at a path, or None."""
    for step in path[:-1]:
        value = value[step]
    return value.get(path[-1])


def _fields(
    protocol: Bundle, fields: list[dict[str, Any]], value: dict[str, Any], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """The fields of a type, and those of the nested objects that the value has."""
    for field in fields:
        here = (*path, field["key"])
        yield here, field
        kind, inner = field["type"], value.get(field["key"])
        if kind in protocol.structs and isinstance(inner, dict):
            yield from _fields(protocol, protocol.structs[kind]["fields"], inner, here)
        item = _item(kind)
        if item in protocol.structs and isinstance(inner, list) and inner:
            yield from _fields(protocol, protocol.structs[item]["fields"], inner[0], (*here, 0))
