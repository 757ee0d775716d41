"""FRM: how packets are read from a stream of bytes, and how they are written."""

from __future__ import annotations

import random

import pytest

from tambour_conformance import wire
from tambour_conformance.bundle import Bundle
from tambour_conformance.connection import Connection, all_answered, describe
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, message
from tambour_conformance.forms import padded
from tambour_conformance.people import Device
from tambour_conformance.verdict import case, check, equal

#: A request of 57 bytes, which is short enough to split at every offset.
LONG_PING = {"interactive": True, "unknown": "a" * 24}


@case("FRM-01")
def test_minimal_ping(stranger: Connection) -> None:
    """A PING of eleven bytes gets one answer: a map, with the seq and opcode of the request."""
    seq, packet = stranger.packet("PING", {}, seq=0x0102)
    equal(packet.hex(), "0a00010200010000000180", "the request")
    stranger.raw(packet)
    reply = stranger.reply(seq)
    equal(reply.packet[:6].hex(), "0a0101020001", "version, cmd, seq and opcode of the reply")
    check(isinstance(reply.value, dict), "a map", reply.value)
    stranger.silence_by_fence()


@case("FRM-01")
def test_refusal_is_the_only_answer(client: Connection, protocol: Bundle) -> None:
    """A refused request also gets one answer, with its own seq and opcode."""
    seq = client.send("CHATS_LIST", seq=0x0203)
    refusal = client.error("proto.state", seq)
    equal(refusal.opcode, protocol.opcode("CHATS_LIST"), "opcode of the refusal")
    client.silence_by_fence()


@case("FRM-02")
def test_header_in_single_bytes(stranger: Connection) -> None:
    """A header in ten segments, 20 ms apart, is read."""
    seq, packet = stranger.packet("PING", {"interactive": True})
    stranger.chop(packet[: wire.HEADER_SIZE], pause_ms=20)
    stranger.raw(packet[wire.HEADER_SIZE :])
    all_answered(stranger, [seq])


@case("FRM-03")
def test_payload_in_single_bytes(stranger: Connection) -> None:
    """A payload in segments of one byte is read."""
    seq, packet = stranger.packet("PING", {"interactive": True})
    stranger.raw(packet[: wire.HEADER_SIZE])
    stranger.chop(packet[wire.HEADER_SIZE :], pause_ms=5)
    all_answered(stranger, [seq])


@case("FRM-04")
@pytest.mark.parametrize("count", [2, 50, None])
def test_many_packets_in_one_write(stranger: Connection, limits: Limits, count: int | None) -> None:
    """Up to maxRequestsInFlight packets in one write get one reply each."""
    packets = [
        stranger.packet("PING", {"interactive": True}) for _ in range(count or limits["maxRequestsInFlight"])
    ]
    stranger.coalesce(*(packet for _, packet in packets))
    all_answered(stranger, [seq for seq, _ in packets])


@case("FRM-05")
@pytest.mark.parametrize("rest", [1, 9, 10, 11, 20])
def test_packet_and_part_of_the_next(stranger: Connection, rest: int) -> None:
    """A whole packet is answered although the next one has come only in part; then that one is too."""
    first, whole = stranger.packet("PING", {})
    second, other = stranger.packet("PING", {"interactive": False})
    stranger.coalesce(whole, other[:rest])
    stranger.reply(first)
    stranger.raw(other[rest:])
    all_answered(stranger, [second])


@case("FRM-06")
def test_split_at_every_offset(stranger: Connection) -> None:
    """A packet of 57 bytes is read when split in two at any of its 56 offsets."""
    for offset in range(1, 57):
        seq, packet = stranger.packet("PING", LONG_PING)
        equal(len(packet), 57, "bytes of the request")
        stranger.raw(packet[:offset])
        stranger.stall(2)
        stranger.raw(packet[offset:])
        stranger.reply(seq)
    stranger.silence_by_fence()


@case("FRM-06")
def test_pieces_without_regard_to_packets(stranger: Connection, rng: random.Random) -> None:
    """Two hundred packets of different lengths are read in pieces of random lengths."""
    packets = [stranger.packet("PING", {"unknown": "a" * rng.randrange(80)}) for _ in range(200)]
    data = b"".join(packet for _, packet in packets)
    while data:
        size = rng.randrange(1, 120)
        stranger.raw(data[:size])
        data = data[size:]
    all_answered(stranger, [seq for seq, _ in packets])


@case("FRM-07")
@pytest.mark.parametrize("opcode", ["PING", "SESSION_INIT"])
def test_no_payload(stranger: Connection, opcode: str) -> None:
    """A payload of length 0 is accepted if all fields of the request are optional."""
    stranger.call(opcode, payload=b"")
    stranger.silence_by_fence()


@case("FRM-08")
def test_longest_packet_of_a_stranger(stranger: Connection, limits: Limits) -> None:
    """A payload of exactly maxFrameBytesBeforeLogin is read."""
    stranger.call("PING", payload=padded({}, limits["maxFrameBytesBeforeLogin"]))
    stranger.silence_by_fence()


@case("FRM-08")
def test_longest_packet(alice: Device, limits: Limits) -> None:
    """A payload of exactly maxFrameBytes is read."""
    alice.call("PING", payload=padded({}, limits["maxFrameBytes"]))
    alice.silence_by_fence()


@case("FRM-09")
def test_too_long_for_a_stranger(stranger: Connection, limits: Limits) -> None:
    """A header that announces more than maxFrameBytesBeforeLogin is refused before the payload comes."""
    stranger.raw(wire.header(1, 5, limits["maxFrameBytesBeforeLogin"] + 1))
    stranger.hard_error("proto.frame")


@case("FRM-09")
def test_too_long(alice: Device, limits: Limits) -> None:
    """After LOGIN, a header that announces more than maxFrameBytes is refused in the same way."""
    alice.raw(wire.header(1, 5, limits["maxFrameBytes"] + 1))
    alice.hard_error("proto.frame")


@case("FRM-10")
def test_sixteen_megabytes_announced(connect: Connect) -> None:
    """A hundred headers that announce 16,777,215 bytes are refused, and others are served meanwhile.

    The case cannot measure the server's memory, but a server that reserves 1.6 GB will hardly pass.
    """
    witness = connect("witness")
    greedy = [connect(f"greedy {number}", init=False) for number in range(100)]
    for connection in greedy:
        connection.raw(wire.header(1, 5, wire.MAX_LENGTH))
    witness.alive()
    for connection in greedy:
        connection.hard_error("proto.frame")
    witness.alive()


@case("FRM-11")
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 200_000])
def test_payload_larger_than_a_read(alice: Device, size: int) -> None:
    """A payload of more than 64 KiB arrives whole, and so does the next packet."""
    first, large = alice.packet("PING", payload=padded({"interactive": True}, size))
    second, small = alice.packet("PING", {})
    alice.coalesce(large, small)
    all_answered(alice, [first, second])


@case("FRM-11")
def test_large_message_comes_back_whole(
    alice: Device, group: Group, cid: Cid, limits: Limits, rng: random.Random
) -> None:
    """The content of a large packet is stored unchanged."""
    chat = group(alice)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(limits["maxTextUnits"]))
    link = {"_type": "SHARE", "url": "https://example.org/", "title": "t" * 100}
    value = {"chatId": chat, "message": message(cid(), text, attaches=[link]), "padding": bytes(60_000)}
    sent = alice.call("MSG_SEND", value)
    found = alice.call("MSG_GET", {"chatId": chat, "messageIds": [sent["message"]["id"]]})
    equal([each["text"] for each in found["messages"]], [text], "texts stored")


@case("FRM-12")
def test_garbage_behind_a_packet(stranger: Connection) -> None:
    """A packet is answered although ten bytes of garbage follow it; then the connection ends."""
    seq, packet = stranger.packet("PING", {})
    # If the server skipped the garbage, it would answer the request after it.
    behind, other = stranger.packet("PING", {})
    stranger.coalesce(packet, b"\xc1" * wire.HEADER_SIZE, other)
    stranger.reply(seq)
    stranger.ends()
    answered = [describe(each) for each in stranger.unread if each.command == wire.OK]
    equal(answered, [], f"replies behind the garbage, where request {behind} was")


#: Requests that change nothing, each with a function that makes its random fields.
HARMLESS = (
    ("PING", lambda rng: {"interactive": rng.random() < 0.5}),
    ("CONTACT_INFO", lambda rng: {"contactIds": [rng.randrange(1, 40) for _ in range(rng.randrange(20))]}),
    ("CHAT_INFO", lambda rng: {"chatIds": [rng.randrange(-1 << 40, 1 << 40) for _ in range(4)]}),
    ("CHATS_LIST", lambda rng: {"count": rng.randrange(1, 60), "marker": rng.randrange(1 << 41)}),
    ("CHAT_HISTORY", lambda rng: {"chatId": rng.randrange(1 << 20), "backward": 10}),
    ("SESSIONS_INFO", lambda rng: {}),
    ("LOGIN2", lambda rng: {"contactsSync": rng.randrange(-1, 3)}),
    ("MSG_DELIVERY", lambda rng: {"unknown": rng.randbytes(rng.randrange(600))}),
)


@case("FRM-13")
def test_a_thousand_random_requests(alice: Device, bob: Device, group: Group, rng: random.Random) -> None:
    """A thousand random requests get one answer each, and every answer can be decoded."""
    group(alice, bob)
    for _ in range(20):
        requests = [rng.choice(HARMLESS) for _ in range(50)]
        packets = [alice.packet(opcode, make(rng)) for opcode, make in requests]
        alice.coalesce(*(packet for _, packet in packets))
        for seq, _ in packets:
            alice.answer(seq)
    alice.silence_by_fence()
