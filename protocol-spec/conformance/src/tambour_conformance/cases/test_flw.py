"""FLW: slow, broken and many connections, and restarts."""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from tambour_conformance import wire
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Note, message
from tambour_conformance.people import Device
from tambour_conformance.settings import Settings
from tambour_conformance.talk import PATIENCE, burst, history, ids, time_out
from tambour_conformance.verdict import Failed, case, check, equal, skip

#: How many bytes of one connection the kernels on both sides may buffer.
KERNEL_BUFFERS = 8 << 20


@case("FLW-01")
def test_reader_that_stalls(
    login: LogIn, group: Group, cid: Cid, limits: Limits, rng: random.Random, note: Note
) -> None:
    """The server holds pushes for a client that does not read, up to a limit, then closes without a gap.

    The number of bytes in kernel buffers is unknown, so the case checks the limit only approximately.
    """
    alice, bob = login("alice"), login("bob", receive_buffer=4096)
    chat = group(alice, bob)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(limits["maxTextUnits"]))
    sent: list[int] = []
    slowest = 0.0
    most = KERNEL_BUFFERS + limits["maxOutboundPushBytes"]
    while len(sent) * len(text.encode()) < most + limits["maxOutboundBytes"]:
        began = time.monotonic()
        seqs = [alice.send("MSG_SEND", {"chatId": chat, "message": message(cid(), text)}) for _ in range(20)]
        sent += [alice.reply(seq)["message"]["id"] for seq in seqs]
        slowest = max(slowest, time.monotonic() - began)
        # Bob does not read, but sends PINGs, so that his connection does not count as idle.
        bob.raw(bob.packet("PING", {})[1], reading=False)
    note(f"{len(sent)} messages; the slowest twenty took {slowest * 1000:.0f} ms")
    end_of_the_deaf(bob)
    pushed = [push["message"]["id"] for push in bob.pushes("NOTIF_MESSAGE")]
    equal(pushed, sent[: len(pushed)], "messages pushed before the end, without a gap")
    check(len(pushed) < len(sent), "fewer pushes than messages", len(pushed))
    alice.alive()


def end_of_the_deaf(connection: Connection) -> str:
    """Waits until the server has closed the connection of a client that reads nothing.

    The client notices this when it can no longer send. It must not read before, because the server
    would then send it the buffered data.
    """
    _, ping = connection.packet("PING", {})
    deadline = time.monotonic() + PATIENCE
    while connection.raw(ping, reading=False) and time.monotonic() < deadline:
        connection.deaf(50)
    return connection.ends(within=PATIENCE)


@case("FLW-01")
def test_replies_that_nobody_reads(
    login: LogIn, group: Group, cid: Cid, limits: Limits, rng: random.Random
) -> None:
    """The server also limits the replies it holds for a client that does not read, and serves others."""
    alice = login("alice", receive_buffer=4096)
    chat = group(alice)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(limits["maxTextUnits"]))
    seqs = [alice.send("MSG_SEND", {"chatId": chat, "message": message(cid(), text)}) for _ in range(20)]
    for seq in seqs:
        alice.reply(seq)
    page = len(alice.call("CHAT_HISTORY", {"chatId": chat, "backward": 20}).wire)
    count = (KERNEL_BUFFERS + 2 * limits["maxOutboundBytes"]) // page
    _, packet = alice.packet("CHAT_HISTORY", {"chatId": chat, "backward": 20})
    alice.raw(packet * count, reading=False)
    # If the server were busy with Alice's requests, Bob would wait here.
    login("bob").alive()
    how = end_of_the_deaf(alice)
    pages = sum("messages" in each.value for each in alice.unread)
    check(pages < count, "fewer replies than requests, then the end", f"{pages} of {count}, {how}")


@case("FLW-10")
def test_pages_that_are_read_later(
    login: LogIn, group: Group, cid: Cid, limits: Limits, rng: random.Random
) -> None:
    """A client requests more pages than the server holds, reads after a while, and gets all of them."""
    alice = login("alice", receive_buffer=4096)
    chat = group(alice)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(limits["maxTextUnits"]))
    for seq in [alice.send("MSG_SEND", {"chatId": chat, "message": message(cid(), text)}) for _ in range(20)]:
        alice.reply(seq)
    page = len(alice.call("CHAT_HISTORY", {"chatId": chat, "backward": 20}).wire)
    count = (KERNEL_BUFFERS + 2 * limits["maxOutboundBytes"]) // page
    packets = [alice.packet("CHAT_HISTORY", {"chatId": chat, "backward": 20}) for _ in range(count)]
    alice.raw(b"".join(packet for _, packet in packets), reading=False)
    alice.deaf(1000)
    for seq, _ in packets:
        equal(len(alice.reply(seq)["messages"]), 20, "messages of a page")


def drip(connection: Connection, data: bytes, patience: float) -> float:
    """Sends a byte every quarter of `patience` until the server closes; returns how long that took.

    Both are in seconds. No other timeout can be the reason: bytes keep coming, and the client is logged in.
    """
    began = time.monotonic()
    for byte in data:
        connection.raw(bytes([byte]))
        connection.stall(patience / 4 * 1000)
        if connection.ended:
            return time.monotonic() - began
    raise Failed(f"the end after {patience:g} s", f"still open after {time.monotonic() - began:.1f} s")


@case("FLW-02")
def test_header_that_does_not_end(alice: Device, limits: Limits) -> None:
    """The server closes a connection whose header comes too slowly, byte by byte."""
    patience = time_out(limits, "partialFrameTimeoutMs")
    took = drip(alice, wire.header(1, 0, 20)[:-1], patience)
    check(took > patience * 0.8, f"at least {patience:g} s", f"{took:.1f} s")


@case("FLW-02")
def test_payload_that_does_not_end(alice: Device, limits: Limits) -> None:
    """The server closes a connection whose payload comes too slowly, without an answer."""
    patience = time_out(limits, "partialFrameTimeoutMs")
    _, packet = alice.packet("PING", {"interactive": True})
    alice.raw(packet[: wire.HEADER_SIZE])
    took = drip(alice, packet[wire.HEADER_SIZE : -1], patience)
    check(took > patience * 0.8, f"at least {patience:g} s", f"{took:.1f} s")
    equal(len(alice.unread), 0, "answers")


@case("FLW-02")
def test_slow_but_in_time(client: Connection, limits: Limits) -> None:
    """A packet that takes a third of partialFrameTimeoutMs is served, and so is the next one."""
    patience = time_out(limits, "partialFrameTimeoutMs")
    for _ in range(2):
        seq, packet = client.packet("PING", {"interactive": True})
        client.chop(packet, size=6, pause_ms=patience / 3 / (len(packet) / 6) * 1000)
        client.reply(seq)


@case("FLW-03")
def test_half_close(alice: Device, group: Group, cid: Cid) -> None:
    """The server answers all requests that came before the client stopped sending, then closes."""
    chat = group(alice)
    requests = [
        ("MSG_SEND", {"chatId": chat, "message": message(cid())}),
        ("CHAT_HISTORY", {"chatId": chat, "backward": 10}),
        ("CONTACT_INFO", {"contactIds": [alice.user_id]}),
        ("PING", {}),
    ] * 10
    requests = [
        (opcode, value if opcode != "MSG_SEND" else {"chatId": chat, "message": message(cid())})
        for opcode, value in requests
    ]
    packets = [alice.packet(opcode, value) for opcode, value in requests]
    alice.coalesce(*(packet for _, packet in packets))
    alice.half_close()
    for seq, _ in packets:
        alice.reply(seq)
    alice.closed()


@case("FLW-03")
def test_half_close_of_a_stranger(stranger: Connection) -> None:
    """The same holds before SESSION_INIT: a request is answered after the client stopped sending."""
    seq, packet = stranger.packet("PING", {})
    stranger.raw(packet)
    stranger.half_close()
    stranger.reply(seq)
    stranger.closed()


@case("FLW-04")
def test_resets(connect: Connect, login: LogIn, rng: random.Random) -> None:
    """Fifty connections are reset in the middle of a packet; another connection is not affected."""
    witness = login("alice")
    for number in range(50):
        connection = connect(f"reset {number}", init=False)
        _, packet = connection.packet("PING", {"unknown": "a" * 500})
        connection.raw(packet[: rng.randrange(len(packet))])
        connection.rst()
        if number % 10 == 0:
            witness.alive()
    witness.silence_by_fence()


@case("FLW-05")
@pytest.mark.parametrize("how", ["close", "half_close", "rst"])
def test_packet_cut_by_the_end(login: LogIn, bob: Device, group: Group, cid: Cid, how: str) -> None:
    """A message whose last byte never arrived is neither stored nor pushed."""
    alice = login("alice")
    chat = group(alice, bob)
    _, packet = alice.packet("MSG_SEND", {"chatId": chat, "message": message(cid(), "cut")})
    alice.raw(packet[:-1])
    getattr(alice, how)()
    again = login("alice")
    page = again.call("CHAT_HISTORY", {"chatId": chat, "backward": 10})
    equal(len(page["messages"]), 1, "messages: only that of the group's creation")
    bob.silence_by_fence()


def allow_connections(count: int) -> None:
    """Raises the limit of open files by `count` sockets; skips the case if that is impossible."""
    needed = count + 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            skip(f"needs {needed} open files, and ulimit -Hn is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@case("FLW-06")
def test_many_at_once(connect: Connect, note: Note) -> None:
    """Five hundred clients connect and send SESSION_INIT before any of them reads."""
    allow_connections(500)
    began = time.monotonic()
    clients = [connect(f"client {number}", init=False) for number in range(500)]
    seqs = [client.send("SESSION_INIT", {"deviceId": client.name}) for client in clients]
    for client, seq in zip(clients, seqs, strict=True):
        client.reply(seq, within=20)
    note(f"all answered after {(time.monotonic() - began) * 1000:.0f} ms")


Restart = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def restart(settings: Settings) -> Iterator[Restart]:
    """Returns a function that starts a restart and does not wait; skips if there is no command."""
    command = settings.restart_command
    if command is None:
        skip("needs --restart-cmd")
    under_way: list[subprocess.Popen[bytes]] = []

    def restart() -> subprocess.Popen[bytes]:
        under_way.append(subprocess.Popen(command, shell=True))
        return under_way[-1]

    yield restart
    # Later cases need a running server, even if this case failed.
    for each in under_way:
        each.wait(60)


def restarted(restart: subprocess.Popen[bytes]) -> None:
    """Waits until the restart command has succeeded."""
    equal(restart.wait(60), 0, "status of --restart-cmd")


@case("FLW-07")
def test_server_that_stops(
    login: LogIn, group: Group, cid: Cid, limits: Limits, restart: Restart, note: Note
) -> None:
    """The server restarts under load: every packet is whole, and acknowledged messages are kept."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    before = 40
    burst(alice, chat, [cid() for _ in range(before)], "a" * limits["maxTextUnits"])
    sent: set[int] = set()
    restarting, deadline = None, time.monotonic() + PATIENCE
    while not (alice.ended and bob.ended):
        check(time.monotonic() < deadline, f"the end of all connections within {PATIENCE:g} s", "still open")
        sends = [alice.packet("MSG_SEND", {"chatId": chat, "message": message(cid())}) for _ in range(5)]
        sent |= {seq for seq, _ in sends}
        pages = [bob.packet("CHAT_HISTORY", {"chatId": chat, "backward": before}) for _ in range(2)]
        for device, packets in ((alice, sends), (bob, pages)):
            # The server accepts no more bytes, but the client can still read its earlier output.
            if not device.ended and not device.raw(b"".join(packet for _, packet in packets)):
                device.ends()
            device.stall(1)
        if restarting is None and len(alice.received) > 2 * before:
            restarting = restart()
    carol.ends()
    carol.closed()
    # The server may reset a client that still sends, but not in the middle of a packet.
    for each in (alice, bob):
        check(each.rest == 0, f"whole packets for {each.name}", f"{each.rest} bytes of one before the end")
    check(restarting is not None, "an end that the restart brought", "one before it")
    restarted(restarting)
    replies = [each for each in alice.received if each.command == wire.OK and each.seq in sent]
    acknowledged = [each["message"]["id"] for each in replies]
    kept = all_messages(login("alice"), chat)
    missing = [each for each in acknowledged if each not in kept]
    equal(missing, [], "acknowledged messages that are missing")
    note(f"{len(acknowledged)} of {len(sent)} messages answered, {len(kept) - before - 1} kept")


def all_messages(device: Device, chat: int) -> list[int]:
    """The ids of all messages of a chat, page by page."""
    found: list[int] = []
    anchor = 0
    while page := history(device, chat, forward=200, **{"from": anchor}):
        found += ids(page)
        anchor = page[-1]["time"]
    return found


@case("FLW-08")
def test_after_a_restart(login: LogIn, group: Group, cid: Cid, restart: Restart) -> None:
    """After a restart the tokens are still valid, and every acknowledged message is stored."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    seqs = [alice.send("MSG_SEND", {"chatId": chat, "message": message(cid())}) for _ in range(50)]
    acknowledged = [alice.reply(seq)["message"]["id"] for seq in seqs]
    restarted(restart())
    for name in ("alice", "bob"):
        equal(all_messages(login(name), chat)[1:], acknowledged, f"messages {name} reads after the restart")


@case("FLW-09", info=True)
def test_ping_is_quick(client: Connection, note: Note) -> None:
    """Measures the median time to answer a PING; with a delayed acknowledgement it would be 40 ms."""
    times = []
    for _ in range(200):
        began = time.monotonic()
        client.call("PING", {"interactive": True})
        times.append((time.monotonic() - began) * 1000)
    note(f"median {statistics.median(times):.2f} ms")
