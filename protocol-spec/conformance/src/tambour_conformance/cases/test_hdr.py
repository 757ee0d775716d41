"""HDR: the fields of the header."""

from __future__ import annotations

import random

import pytest

from tambour_conformance import bundle, wire
from tambour_conformance.bundle import Bundle
from tambour_conformance.connection import Connection, error_code
from tambour_conformance.fixtures import Group, LogIn
from tambour_conformance.people import Device
from tambour_conformance.verdict import case, check, equal, skip

PROTOCOL = bundle.load()


@case("HDR-01")
@pytest.mark.parametrize("version", PROTOCOL.versions_read)
def test_version_accepted(stranger: Connection, protocol: Bundle, version: int) -> None:
    """For each accepted version of a request, the server writes its own version in replies and refusals."""
    answers = [
        stranger.call("SESSION_INIT", {}, version=version),
        stranger.call("PING", {}, version=version),
        stranger.refused("proto.opcode", 60_000, {}, version=version),
    ]
    equal({answer.version for answer in answers}, {protocol.version_written}, "versions of the answers")


@case("HDR-01")
def test_version_of_pushes(login: LogIn, group: Group) -> None:
    """The server writes its own version in pushes, whatever version the receiver uses."""
    alice, bob = login("alice"), login("bob")
    bob.call("PING", {}, version=11)
    group(alice, bob)
    equal({frame.version for frame in bob.received}, {bundle.load().version_written}, "versions written")


@case("HDR-02")
@pytest.mark.parametrize("version", [0, 1, 9, 12, 13, 127, 128, 255])
def test_version_refused(stranger: Connection, version: int) -> None:
    """Any other version is refused, and the connection closed."""
    stranger.send("PING", {}, version=version)
    stranger.hard_error("proto.ver")


@case("HDR-02")
def test_version_refused_in_the_middle(client: Connection) -> None:
    """A wrong version after correct packets also closes the connection; earlier requests are answered."""
    seq, good = client.packet("PING", {})
    _, bad = client.packet("PING", {}, version=12)
    client.coalesce(good, bad)
    client.reply(seq)
    client.hard_error("proto.ver")


@case("HDR-03")
@pytest.mark.parametrize("command", [1, 2, 3])
def test_receipts_are_ignored(client: Connection, command: int) -> None:
    """The server ignores a packet of cmd 1, 2 or 3, whatever its opcode, seq and payload."""
    for opcode in ("PING", "NOTIF_MESSAGE", "SESSION_INIT", 60_000):
        client.send(opcode, {"chatId": 1, "messageId": 2}, command=command, seq=130)
    client.send("PING", payload=b"\xc1", command=command)
    client.silence_by_fence()


@case("HDR-04")
@pytest.mark.parametrize("command", [4, 5, 10, 16, 127, 128, 200, 254, 255])
def test_unknown_command(stranger: Connection, command: int) -> None:
    """A cmd above 3 is refused, and the connection closed."""
    stranger.send("PING", {}, command=command)
    stranger.hard_error("proto.frame")


@case("HDR-05")
def test_unknown_opcode(client: Connection, protocol: Bundle, rng: random.Random) -> None:
    """Unknown opcodes, including the ends of the range, are refused; the connection stays open."""
    unknown = [number for number in range(1 << 16) if number not in protocol.names]
    for number in [unknown[0], unknown[-1], 60_000, *rng.sample(unknown, 5)]:
        refusal = client.refused("proto.opcode", number, {})
        equal(refusal.opcode, number, "opcode of the refusal")
    client.silence_by_fence()


@case("HDR-06")
@pytest.mark.parametrize("name", sorted(PROTOCOL.known))
def test_opcode_not_served(client: Connection, protocol: Bundle, name: str) -> None:
    """An opcode that is known and not served is refused."""
    answer = client.answer(client.send(name, {}))
    if answer.command != wire.ERROR or error_code(answer) != "proto.opcode":
        skip(f"{name} is served here")
    client.silence_by_fence(grace=False)


@case("HDR-06")
def test_opcodes_not_served_are_no_soft_errors(client: Connection, protocol: Bundle) -> None:
    """A connection stays open although it sends all unserved opcodes, many more than maxSoftErrors."""
    for name in protocol.known:
        client.answer(client.send(name, {}))
    client.silence_by_fence()


@case("HDR-07")
@pytest.mark.parametrize(
    "name", sorted(each.name for each in PROTOCOL.served.values() if not each.from_client)
)
def test_push_sent_by_a_client(alice: Device, name: str) -> None:
    """A push opcode sent as a request is refused."""
    alice.refused("proto.opcode", name, {})
    alice.silence_by_fence()


@case("HDR-07")
def test_receipt_as_a_request(alice: Device) -> None:
    """The request NOTIF_MESSAGE, which one client sends as a receipt, is answered."""
    alice.call("NOTIF_MESSAGE", {"chatId": 1, "messageId": "2"})
    alice.silence_by_fence()


@case("HDR-08")
def test_high_byte_of_the_opcode(client: Connection, protocol: Bundle) -> None:
    """An opcode that differs from a served one only in its high byte is refused: the server reads both."""
    served = {each.number for each in protocol.served.values()}
    checked = 0
    for low in (protocol.opcode("PING"), protocol.opcode("SESSION_INIT")):
        for high in (1, 2, 16, 128, 255):
            number = high << 8 | low
            if number not in served and checked < 12:
                equal(client.refused("proto.opcode", number, {}).opcode, number, "opcode of the refusal")
                checked += 1
    check(checked, "numbers to try", checked)
    client.silence_by_fence()
