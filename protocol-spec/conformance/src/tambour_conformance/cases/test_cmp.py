"""CMP: payloads compressed as LZ4 blocks, in both directions."""

from __future__ import annotations

import random
import time

import pytest

from tambour_conformance import bundle, wire
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Note, message
from tambour_conformance.people import Device
from tambour_conformance.verdict import case, check, equal
from tambour_conformance.wire import Frame

#: `81 ab "interactive" c3` as a block: one token of 14 literals.
PING_BLOCK = bytes.fromhex("e0" "81ab696e746572616374697665c3")  # fmt: skip


@case("CMP-01")
def test_compressed_request(alice: Device, group: Group, cid: Cid) -> None:
    """A compressed message is stored like a plain one."""
    chat = group(alice)
    text = "compressed " * 200
    sent = alice.call("MSG_SEND", {"chatId": chat, "message": message(cid(), text)}, compress=True)
    equal(sent["message"]["text"], text, "the text stored")


@case("CMP-01")
def test_compressed_handshake(stranger: Connection) -> None:
    """A client may compress before login too."""
    value = {"deviceId": "conformance " * 20, "capabilities": bundle.load().capabilities}
    reply = stranger.call("SESSION_INIT", value, compress=True)
    equal(reply["capabilities"], list(bundle.load().capabilities), "capabilities")


@case("CMP-02")
def test_every_factor(stranger: Connection) -> None:
    """A valid block is read with each factor from 1 to 254, even if it inflates by more than the factor."""
    payload = wire.encode({"interactive": True, "unknown": "a" * 1000})
    for factor in range(1, wire.ZSTD):
        stranger.call("PING", payload=wire.deflate(payload), flags=factor)
    stranger.silence_by_fence()


@case("CMP-03")
def test_zstd(stranger: Connection) -> None:
    """Flags 255 are refused, whatever the payload is."""
    stranger.refused("proto.payload", "PING", payload=bytes.fromhex("28b52ffd0400"), flags=wire.ZSTD)
    stranger.refused("proto.payload", "PING", payload=PING_BLOCK, flags=wire.ZSTD)
    stranger.silence_by_fence()


def refused_block(connection: Connection, block: bytes, flags: int = 2) -> None:
    connection.refused("proto.payload", "PING", payload=block, flags=flags)
    connection.alive()


@case("CMP-04")
def test_truncated_block(login: LogIn) -> None:
    """A block that lacks its last bytes is refused, wherever it is cut."""
    payload = wire.encode({"interactive": True, "unknown": "abcdefgh" * 40 + "end"})
    block = wire.deflate(payload)
    connection = login("alice")
    for count, length in enumerate(range(1, len(block))):
        if count % 12 == 11:
            connection = login("alice")
        refused_block(connection, block[:length])


@case("CMP-04")
def test_no_block_at_all(stranger: Connection) -> None:
    """Flags with an empty payload are refused, and so are blocks that end within a length."""
    for block in (b"", b"\xf0", b"\xf0\xff", b"\x1f", b"\x1fa\x01"):
        refused_block(stranger, block)


@case("CMP-05")
@pytest.mark.parametrize("offset", [2, 15, 255, 4096, 65_535])
def test_offset_before_the_beginning(stranger: Connection, offset: int) -> None:
    """A match that begins before the first byte is refused."""
    block = b"\x10\x81" + offset.to_bytes(2, "little") + b"\x50aaaaa"
    refused_block(stranger, block, 10)


@case("CMP-06")
def test_offset_zero(stranger: Connection) -> None:
    """A match at offset 0, which refers to bytes not written yet, is refused."""
    refused_block(stranger, b"\x10\x81\x00\x00\x50aaaaa", 10)


@case("CMP-07")
def test_bomb(alice: Device, note: Note) -> None:
    """65,803 bytes that inflate to 16 MiB are refused."""
    block = wire.deflate(bytes(16 << 20))
    began = time.monotonic()
    alice.refused("proto.payload", "PING", payload=block, flags=254)
    note(f"{len(block)} bytes refused after {(time.monotonic() - began) * 1000:.0f} ms")
    alice.silence_by_fence()


@case("CMP-07")
def test_largest_inflated_payload(alice: Device, limits: Limits) -> None:
    """A block that inflates to maxInflatedBytes is read, one byte more is refused."""
    most = limits["maxInflatedBytes"]
    header = len(wire.encode({"padding": bytes(1 << 16)})) - (1 << 16)
    fitting = wire.encode({"padding": bytes(most - header)})
    equal(len(fitting), most, "bytes of the payload")
    alice.call("PING", payload=wire.deflate(fitting), flags=254)
    too_long = wire.encode({"padding": bytes(most - header + 1)})
    alice.refused("proto.payload", "PING", payload=wire.deflate(too_long), flags=254)
    alice.silence_by_fence()


@case("CMP-20")
def test_largest_inflated_payload_of_a_stranger(stranger: Connection, limits: Limits) -> None:
    """Before login a block may inflate to the limit of a plain frame, and not to one byte more."""
    most = limits["maxFrameBytesBeforeLogin"]
    header = len(wire.encode({"padding": bytes(1 << 10)})) - (1 << 10)
    fitting = wire.encode({"padding": bytes(most - header)})
    equal(len(fitting), most, "bytes of the payload")
    stranger.call("PING", payload=wire.deflate(fitting), flags=254)
    too_long = wire.encode({"padding": bytes(most - header + 1)})
    stranger.refused("proto.payload", "PING", payload=wire.deflate(too_long), flags=254)
    stranger.silence_by_fence()


@case("CMP-08")
def test_compressed_empty_map(stranger: Connection) -> None:
    """The empty map is read as a block of one literal."""
    stranger.call("PING", payload=b"\x10\x80", flags=1)
    stranger.silence_by_fence()


def sequence(literals: bytes, offset: int = 0, match: int = 0) -> bytes:
    """A sequence of an LZ4 block: literals and, except in the last sequence, a match of at least 4 bytes."""

    def length(value: int) -> bytes:
        return b"" if value < 15 else b"\xff" * ((value - 15) // 255) + bytes([(value - 15) % 255])

    copied = match - 4 if match else 0
    token = bytes([min(len(literals), 15) << 4 | min(copied, 15)])
    tail = offset.to_bytes(2, "little") + length(copied) if match else b""
    return token + length(len(literals)) + literals + tail


@case("CMP-12")
def test_block_of_literals(alice: Device, group: Group, cid: Cid) -> None:
    """A block of only literals is read, with literal lengths of one byte and of several bytes."""
    chat = group(alice)
    for size in (1, 14, 15, 270, 600):
        text = "a" * size
        payload = wire.encode({"chatId": chat, "message": message(cid(), text)})
        sent = alice.call("MSG_SEND", payload=sequence(payload), flags=1)
        equal(sent["message"]["text"], text, "the text stored")


@case("CMP-12")
@pytest.mark.parametrize("period", [1, 2, 3, 7, 8, 16])
def test_overlapping_match(alice: Device, group: Group, cid: Cid, period: int) -> None:
    """A match that reads its own output is inflated: a short pattern is repeated."""
    chat = group(alice)
    text = ("abcdefghijklmnop"[:period] * 1000)[:999]
    payload = wire.encode({"message": message(cid(), text), "chatId": chat})
    first = payload.index(text.encode()) + period
    match = len(text) - period
    block = sequence(payload[:first], period, match) + sequence(payload[first + match :])
    sent = alice.call("MSG_SEND", payload=block, flags=254)
    equal(sent["message"]["text"], text, "the text stored")


def send_all(device: Device, chat: int, cid: Cid, texts: list[str]) -> list[int]:
    """Sends messages, and returns their ids in order."""
    seqs = [device.send("MSG_SEND", {"chatId": chat, "message": message(cid(), text)}) for text in texts]
    return [device.reply(seq)["message"]["id"] for seq in seqs]


def fetch(device: Device, chat: int, ids: list[int]) -> Frame:
    return device.call("MSG_GET", {"chatId": chat, "messageIds": ids})


@case("CMP-09")
@pytest.mark.parametrize("capabilities", [None, ["lz4-large"]], ids=["classic", "lz4-large"])
def test_what_is_compressed(
    login: LogIn, group: Group, cid: Cid, limits: Limits, capabilities: list[str] | None
) -> None:
    """Replies around compressFromBytes: the shorter ones are plain, the others compressed."""
    alice = login("alice", capabilities=capabilities)
    chat = group(alice)
    edge = limits["compressFromBytes"]
    for reply in [
        fetch(alice, chat, [each])
        for each in send_all(alice, chat, cid, ["a" * size for size in range(edge - 160, edge + 40, 10)])
    ]:
        raw = len(reply.payload)
        equal(reply.flags != 0, raw >= edge, f"whether a reply of {raw} bytes is compressed")


@case("CMP-10")
def test_what_does_not_shrink(
    alice: Device, group: Group, cid: Cid, limits: Limits, rng: random.Random
) -> None:
    """Replies with random text are compressed only if compression makes them shorter."""
    chat, sizes = group(alice), (200, 1000, limits["maxTextUnits"])
    texts = ["".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(size)) for size in sizes]
    for each, text in zip(send_all(alice, chat, cid, texts), texts, strict=True):
        reply = fetch(alice, chat, [each])
        equal(reply["messages"][0]["text"], text, "the text")


def long_page(device: Device, chat: int, cid: Cid, rng: random.Random) -> list[int]:
    """Sends messages of over 100,000 bytes together, which shrink to about a third; returns their ids."""
    words = ["".join(rng.choices("abcdefgh", k=8)) for _ in range(40)]
    texts = ["".join(rng.choices(words, k=500)) for _ in range(26)]
    return send_all(device, chat, cid, texts)


@case("CMP-11")
def test_long_reply_for_a_classic_client(login: LogIn, group: Group, cid: Cid, rng: random.Random) -> None:
    """A page of more than 99,999 raw bytes comes uncompressed, a smaller one compressed."""
    alice = login("alice")
    chat = group(alice)
    ids = long_page(alice, chat, cid, rng)
    long, short = fetch(alice, chat, ids), fetch(alice, chat, ids[:10])
    check(len(long.payload) > 99_999, "a reply of more than 99,999 bytes", len(long.payload))
    equal(long.flags, 0, f"flags of a reply of {len(long.payload)} bytes")
    check(short.flags, f"a compressed reply of {len(short.payload)} bytes", "a plain one")


@case("CMP-11")
def test_high_factor_for_a_classic_client(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """A payload that would shrink more than 32 times comes uncompressed; with lz4-large, compressed."""
    alice = login("alice")
    chat = group(alice)
    ids = send_all(alice, chat, cid, ["€" * limits["maxTextUnits"]] * 8)
    classic = fetch(alice, chat, ids)
    check(len(classic.payload) <= 99_999, "a reply of at most 99,999 bytes", len(classic.payload))
    check(len(classic.payload) // len(wire.deflate(classic.payload)) > 32, "a reply that shrinks", "not")
    equal(classic.flags, 0, "flags of the reply")


@case("CMP-13", "CMP-11")
def test_factor_written(login: LogIn, group: Group, cid: Cid, limits: Limits, rng: random.Random) -> None:
    """Pages of many lengths and factors, with lz4-large: the factor is floor(raw / compressed) + 1."""
    alice = login("alice", capabilities=["lz4-large"])
    chat = group(alice)
    ids = long_page(alice, chat, cid, rng) + send_all(alice, chat, cid, ["€" * limits["maxTextUnits"]] * 8)
    replies = [fetch(alice, chat, ids[first:]) for first in range(0, len(ids), 3)]
    replies += [fetch(alice, chat, ids[:count]) for count in (1, 2, 5, 10)]
    for reply in replies:
        check(reply.flags, f"a compressed reply of {len(reply.payload)} bytes", "a plain one")
        equal(reply.flags, len(reply.payload) // len(reply.wire) + 1, "the factor")


@case("CMP-13")
def test_factor_of_pushes(login: LogIn, group: Group, cid: Cid) -> None:
    """A long message reaches clients with and without lz4-large, compressed for both."""
    alice, bob = login("alice"), login("bob", capabilities=["lz4-large"])
    carol = login("carol", capabilities=["history-more"])
    chat = group(alice, bob, carol)
    text = "tambour " * 400
    alice.call("MSG_SEND", {"chatId": chat, "message": message(cid(), text)})
    for member in (bob, carol):
        push = member.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
        equal(push["message"]["text"], text, "the text pushed")
        equal(push.flags, len(push.payload) // len(push.wire) + 1, "the factor")
