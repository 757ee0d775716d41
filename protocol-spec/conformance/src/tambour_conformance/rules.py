"""Rules for every packet of a server. All cases check the rules; a rule fails only cases that name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tambour_conformance import wire
from tambour_conformance.bundle import Bundle
from tambour_conformance.shortest import longer_than_needed
from tambour_conformance.wire import BadPacket, Frame


def broken_rules(frame: Frame, protocol: Bundle, *, lz4_large: bool) -> list[tuple[str, str]]:
    """The requirements that a packet violates by its form, each with a description of the violation."""
    found: list[tuple[str, str]] = []
    if frame.version != protocol.version_written:
        found.append(("HDR-01", f"version {frame.version} written"))
    if frame.command not in (wire.REQUEST, wire.OK, wire.ERROR):
        found.append(("FRM-01", f"cmd {frame.command} written"))
    if frame.is_push and frame.seq > 255:
        found.append(("SEQ-08", f"a push with seq {frame.seq}"))
    if not frame.wire:
        return [*found, ("MSP-20", "no payload at all")]
    if frame.flags == wire.ZSTD:
        return [*found, ("CMP-13", "flags 255, which is zstd")]
    try:
        raw = frame.payload
    except BadPacket as error:
        return [*found, ("CMP-13", str(error))]
    found += _compression(frame, len(raw), lz4_large)
    try:
        value = frame.value
    except BadPacket as error:
        return [*found, ("FRM-13", str(error))]
    if not isinstance(value, dict):
        found.append(("MSP-20", f"a payload that is no map: {value!r:.40}"))
    elif frame.command == wire.ERROR:
        found += _error(value, protocol)
    # A packet that equals an encoder's output is in its shortest form. Only others need a closer look.
    if wire.encode(value) != raw and (place := longer_than_needed(raw, fields_of(frame, protocol), protocol)):
        found.append(("MSP-18", f"a longer form than it needs of {place}"))
    return found


def fields_of(frame: Frame, protocol: Bundle) -> list[Mapping[str, Any]]:
    """The fields of a server packet according to the specification."""
    if frame.command == wire.ERROR:
        return protocol.structs["ErrorReply"]["fields"]
    opcode = next((each for each in protocol.served.values() if each.number == frame.opcode), None)
    role = "push" if frame.is_push else "reply"
    return [] if opcode is None else opcode.fields.get(role) or []


def _compression(frame: Frame, raw: int, lz4_large: bool) -> list[tuple[str, str]]:
    if frame.flags == 0:
        return []
    found = []
    length = len(frame.wire)
    if frame.flags != raw // length + 1:
        found.append(("CMP-13", f"factor {frame.flags} for {raw} bytes in {length}"))
    if length >= raw:
        found.append(("CMP-10", f"{raw} bytes compressed to {length}"))
    if not lz4_large and (frame.flags > 32 or raw > 99_999):
        found.append(("CMP-11", f"factor {frame.flags}, {raw} bytes raw, without lz4-large"))
    return found


def _error(value: dict[str, object], protocol: Bundle) -> list[tuple[str, str]]:
    code, message = value.get("error"), value.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return [("MSP-22", f"an error without code or message: {value!r:.80}")]
    if code not in protocol.errors:
        return [("MSP-22", f"an error of no known code: {code}")]
    return []
