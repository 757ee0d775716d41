"""FRM: how packets are cut out of a stream of bytes, and how they are written into one."""

from __future__ import annotations

import pytest

from tambour_conformance import wire
from tambour_conformance.connection import Connection, all_answered
from tambour_conformance.fixtures import LogIn
from tambour_conformance.verdict import case, equal

#: A request of 57 bytes: long enough to have interesting places, short enough to be split in all of them.
LONG_PING = {"interactive": True, "unknown": "a" * 24}


@case("FRM-01")
def test_minimal_ping(stranger: Connection) -> None:
    """A PING of eleven bytes is answered with its number and opcode, and an empty map."""
    seq, packet = stranger.packet("PING", {}, seq=0x0102)
    equal(packet.hex(), "0a00010200010000000180", "the request")
    stranger.raw(packet)
    answer = stranger.reply(seq)
    equal(answer.packet.hex(), "0a01010200010000000180", "the reply")


@case("FRM-02")
def test_header_in_single_bytes(stranger: Connection) -> None:
    """A header of ten segments, 20 ms apart."""
    seq, packet = stranger.packet("PING", {"interactive": True})
    stranger.chop(packet[: wire.HEADER_SIZE], pause_ms=20)
    stranger.raw(packet[wire.HEADER_SIZE :])
    all_answered(stranger, [seq])


@case("FRM-03")
def test_payload_in_single_bytes(stranger: Connection) -> None:
    """A payload in segments of one byte."""
    seq, packet = stranger.packet("PING", {"interactive": True})
    stranger.raw(packet[: wire.HEADER_SIZE])
    stranger.chop(packet[wire.HEADER_SIZE :], pause_ms=5)
    all_answered(stranger, [seq])


@case("FRM-04")
def test_fifty_packets_in_one_write(stranger: Connection) -> None:
    """Fifty packets in one write have fifty replies, each number once."""
    packets = [stranger.packet("PING", {"interactive": True}) for _ in range(50)]
    stranger.coalesce(*(packet for _, packet in packets))
    all_answered(stranger, [seq for seq, _ in packets])


@case("FRM-05")
@pytest.mark.parametrize("rest", [1, 9, 10, 11, 20])
def test_packet_and_part_of_the_next(stranger: Connection, rest: int) -> None:
    """A whole packet and the first bytes of another: the first is answered before the second is whole."""
    first, whole = stranger.packet("PING", {})
    second, other = stranger.packet("PING", {"interactive": False})
    stranger.coalesce(whole, other[:rest])
    stranger.reply(first)
    stranger.raw(other[rest:])
    all_answered(stranger, [second])


@case("FRM-06")
def test_split_at_every_offset(stranger: Connection) -> None:
    """A packet of 57 bytes split in two at each of its 56 offsets."""
    for offset in range(1, 57):
        seq, packet = stranger.packet("PING", LONG_PING)
        equal(len(packet), 57, "bytes of the request")
        stranger.raw(packet[:offset])
        stranger.stall(2)
        stranger.raw(packet[offset:])
        stranger.reply(seq)
    stranger.silence_by_fence()


@case("FRM-07")
def test_no_payload(stranger: Connection) -> None:
    """A payload of zero bytes where every field is optional."""
    stranger.call("PING", payload=b"")
    stranger.call("SESSION_INIT", payload=b"")


def padded(value: dict[str, object], size: int) -> bytes:
    """The payload of `value` and an unknown key that makes it `size` bytes long."""
    empty = len(wire.encode({**value, "padding": b""}))
    for header in (2, 3, 5):
        payload = wire.encode({**value, "padding": bytes(max(size - empty + 2 - header, 0))})
        if len(payload) == size:
            return payload
    raise ValueError(f"no payload of {size} bytes")


@case("FRM-08")
def test_longest_packet(login: LogIn, limits: dict[str, int]) -> None:
    """A payload of exactly maxFrameBytes is read."""
    alice = login("alice")
    alice.call("PING", payload=padded({}, limits["maxFrameBytes"]))
    alice.alive()
