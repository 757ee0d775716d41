"""The codec of the suite agrees with the specification's bytes, and detects wrong server packets."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance import bundle, wire
from tambour_conformance.rules import broken_rules
from tambour_conformance.vectors import value_of
from tambour_conformance.wire import BadPacket, Frame

PROTOCOL = bundle.load()
COMMANDS = {"request": wire.REQUEST, "push": wire.REQUEST, "reply": wire.OK, "error": wire.ERROR}


@pytest.mark.parametrize(
    "example", PROTOCOL.examples, ids=lambda each: f"{each.opcode_name}-{each.role}-{each.name}"
)
def test_examples_agree(example: bundle.Example) -> None:
    """Decoding a generated example gives its value, and encoding the value gives the same bytes."""
    frame = wire.cut(example.packet)
    assert frame is not None
    assert len(example.packet) == wire.HEADER_SIZE + len(frame.wire)
    assert (frame.opcode, frame.command) == (example.opcode, COMMANDS[example.role])
    value = value_of(example.value)
    assert frame.value == value
    # Encode the decoded packet, not the bundle's value: the bundle sorts its keys.
    assert wire.packet(frame.opcode, frame.seq, frame.value, command=frame.command) == example.packet


def reply(
    value: Any = None, *, opcode: str = "PING", seq: int = 1, command: int = wire.OK, **header: Any
) -> Frame:
    frame = wire.cut(wire.packet(PROTOCOL.opcode(opcode), seq, value, command=command, **header))
    assert frame is not None
    return frame


LONG = {"text": "tambour " * 100}
HUGE = {"text": "".join(f"{number:05d}" for number in range(25_000))}


@pytest.mark.parametrize(
    ("frame", "requirement"),
    [
        (reply(version=11), "HDR-01"),
        (reply(command=2), "FRM-01"),
        (reply(payload=b""), "MSP-20"),
        (reply(payload=b"\xc0"), "MSP-20"),
        (reply(payload=b"\x90"), "MSP-20"),
        (reply(payload=b"\x80\x00"), "FRM-13"),
        (reply(payload=b"\x81\xa1a"), "FRM-13"),
        (reply(payload=b"\x82\xa1a\x01\xa1a\x01"), "FRM-13"),
        (reply(payload=b"\xde\x00\x00"), "MSP-18"),
        (reply(payload=b"\x81\xa1a\xcc\x01"), "MSP-18"),
        (reply(payload=b"\x81\xd9\x01a\x01"), "MSP-18"),
        (reply(payload=b"\x81\xa1a\xdc\x00\x01\x01"), "MSP-18"),
        (reply(payload=b"\x81\xa1a\x91\x81\xa1b\xd1\x00\x80"), "MSP-18"),
        (reply(payload=b"\x81\xa6config\x81\xa4hash\xd9\x01a", opcode="LOGIN"), "MSP-18"),
        (reply(payload=b"\xff", flags=255), "CMP-13"),
        (reply(payload=b"\xf0", flags=1), "CMP-13"),
        (reply(LONG, compress=True, flags=99), "CMP-13"),
        (reply(payload=b"\x10\x80", flags=1), "CMP-10"),
        (reply(HUGE, compress=True), "CMP-11"),
        (reply({"text": "a" * 40_000}, compress=True), "CMP-11"),
        (reply(command=wire.ERROR), "MSP-22"),
        (reply({"error": "proto.state", "message": None}, command=wire.ERROR), "MSP-22"),
        (reply({"error": "no.such.code", "message": "No"}, command=wire.ERROR), "MSP-22"),
        (reply(seq=256, command=wire.REQUEST), "SEQ-08"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.packet.hex()[:24],
)
def test_rule_is_broken(frame: Frame, requirement: str) -> None:
    assert requirement in [rule for rule, _ in broken_rules(frame, PROTOCOL, lz4_large=False)]


@pytest.mark.parametrize(
    "frame",
    [
        reply(),
        reply({"a": [1, 300, -5, 1.5, "text", None, True, {"b": {}}]}),
        reply(LONG, compress=True),
        reply({"error": "proto.state", "message": "No"}, command=wire.ERROR),
        reply(seq=255, command=wire.REQUEST),
        # The form is correct although the float has 32 bits, and values of type `any` have long forms.
        reply(payload=b"\x81\xa1a\xca\x3f\xc0\x00\x00"),
        reply(
            payload=b"\x81\xa6config\x82\xa4user\xde\x00\x01\xd9\x01a\xcd\x00\x01\xa4hash\xa1a",
            opcode="LOGIN",
        ),
        reply(payload=b"\x81\xa5calls\x91\xd1\x00\x01", opcode="LOGIN"),
        reply(payload=b"\x81\xa6config\x81\xa5chats\x81\xa11\xd1\x00\x01", opcode="LOGIN"),
        reply({"b": b"\x00" * 300, "f": [2**63, -(2**63), 1 << 32], "s": "s" * 70_000, "l": [None] * 20}),
    ],
    ids=lambda each: each.packet.hex()[:24],
)
def test_no_rule_is_broken(frame: Frame) -> None:
    assert broken_rules(frame, PROTOCOL, lz4_large=False) == []


def test_lz4_large_lifts_the_bounds() -> None:
    for value in (HUGE, {"text": "a" * 40_000}):
        assert broken_rules(reply(value, compress=True), PROTOCOL, lz4_large=True) == []


def test_a_packet_is_cut_when_it_is_whole() -> None:
    packet = wire.packet(0x0110, 0xABCD, {"a": 1}, command=wire.OK)
    for size in range(len(packet)):
        assert wire.cut(packet[:size]) is None
    frame = wire.cut(packet + b"rest")
    assert frame is not None
    assert (frame.version, frame.command, frame.seq, frame.opcode) == (10, 1, 0xABCD, 0x0110)
    assert frame.packet == packet


def test_the_factor_bounds_what_is_inflated() -> None:
    block = wire.deflate(bytes(1000))
    assert wire.inflate(block, 254) == bytes(1000)
    with pytest.raises(BadPacket):
        wire.inflate(block, 2)
