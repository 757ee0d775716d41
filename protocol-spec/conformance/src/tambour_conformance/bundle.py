"""The specification as data, from `protocol.json`, which `tambour-spec generate` writes."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tambour_conformance import wire


@dataclass(frozen=True)
class Requirement:
    id: str
    level: str  #: MUST or SHOULD
    text: str
    place: str  #: the chapter or the opcode that contains the requirement


@dataclass(frozen=True)
class Vector:
    """Another encoding of an example: it is either also legal, or refused with `error`."""

    name: str
    packet: bytes
    error: str | None = None
    lowered_limits: bool = False  #: refused only while limits are lower than the defaults


@dataclass(frozen=True)
class Example:
    opcode: int
    opcode_name: str
    name: str
    role: str  #: request, reply, error or push
    value: Any
    packet: bytes
    accept: tuple[Vector, ...]
    reject: tuple[Vector, ...]


@dataclass(frozen=True)
class Opcode:
    number: int
    name: str
    direction: str  #: clientToServer, serverToClient or both
    states: tuple[str, ...]
    errors: tuple[str, ...]
    fields: Mapping[str, Any] = field(repr=False)  #: the unchanged entry of the bundle

    @property
    def from_client(self) -> bool:
        return self.direction != "serverToClient"


class Bundle:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.version: int = data["version"]
        self.versions_read: tuple[int, ...] = tuple(data["framing"]["accepted"])
        self.version_written: int = data["framing"]["written"]
        self.capabilities: tuple[str, ...] = tuple(each["name"] for each in data["capabilities"])
        self.requirements: dict[str, Requirement] = {
            each["id"]: Requirement(
                each["id"], each["level"], each["text"], each.get("chapter") or str(each.get("opcode", ""))
            )
            for each in data["requirements"]
        }
        self.limits: dict[str, int] = {each["name"]: each["value"] for each in data["limits"]}
        self.errors: dict[str, Mapping[str, Any]] = {each["code"]: each for each in data["errors"]}
        self.structs: dict[str, Mapping[str, Any]] = {each["name"]: each for each in data["structs"]}
        self.enums: dict[str, Mapping[str, Any]] = {each["name"]: each for each in data["enums"]}
        self.served: dict[str, Opcode] = {}
        self.known: dict[str, Opcode] = {}
        for family in data["families"]:
            for each in family["opcodes"]:
                self.served[each["name"]] = Opcode(
                    each["opcode"],
                    each["name"],
                    each["direction"],
                    tuple(each.get("states") or ()),
                    tuple(each.get("errors") or ()),
                    each,
                )
            for each in family["known"]:
                self.known[each["name"]] = Opcode(
                    each["opcode"], each["name"], each["direction"], (), (), each
                )
        self.names: dict[int, str] = {
            each.number: each.name for each in (*self.known.values(), *self.served.values())
        }
        self.examples = tuple(self._example(each) for each in data["examples"])

    def opcode(self, name: str | int) -> int:
        """The number of an opcode given by name; a number is returned as it is."""
        if isinstance(name, int):
            return name
        return (self.served.get(name) or self.known[name]).number

    def name(self, opcode: int) -> str:
        return self.names.get(opcode, f"opcode {opcode}")

    def request(self, opcode: str) -> dict[str, Any]:
        """The payload of a valid request, from the first example, as `Connection.send` takes it."""
        examples = (each for each in self.examples if (each.opcode_name, each.role) == (opcode, "request"))
        frame = wire.cut(next(examples).packet)
        assert frame is not None
        return {"payload": frame.wire, "flags": frame.flags}

    def _example(self, entry: Mapping[str, Any]) -> Example:
        return Example(
            self.opcode(entry["opcode"]),
            entry["opcode"],
            entry["name"],
            entry["role"],
            entry["value"],
            bytes.fromhex(entry["hex"]),
            tuple(Vector(each["name"], bytes.fromhex(each["hex"])) for each in entry.get("accept") or ()),
            tuple(
                Vector(each["name"], bytes.fromhex(each["hex"]), each["error"], bool(each.get("limits")))
                for each in entry.get("reject") or ()
            ),
        )


@functools.cache
def load() -> Bundle:
    """The bundle that came with this package."""
    text = importlib.resources.files("tambour_conformance").joinpath("protocol.json").read_text("utf-8")
    return Bundle(json.loads(text))
