"""SEQ: the seq of requests, replies and pushes, and the order in which the server works."""

from __future__ import annotations

import random

import pytest

from tambour_conformance.connection import Connection, all_answered
from tambour_conformance.fixtures import Cid, Group, Limits, message
from tambour_conformance.people import Device
from tambour_conformance.verdict import case, check, equal


@case("SEQ-01")
def test_number_zero(stranger: Connection) -> None:
    """A request with a seq of 0 gets its reply or refusal like any other."""
    stranger.call("PING", {}, seq=0)
    stranger.refused("proto.state", "CHATS_LIST", {}, seq=0)
    stranger.silence_by_fence()


@case("SEQ-02")
def test_both_bytes_of_the_number(stranger: Connection) -> None:
    """The answer has the seq of the request, whichever of the two bytes are set."""
    seqs = [0x00FF, 0x0100, 0x0101, 0x1200, 0x1234, 0x7FFF, 0x8000, 0xFF00, 0xFFFE]
    packets = [stranger.packet("PING", {}, seq=seq)[1] for seq in seqs]
    stranger.coalesce(*packets)
    all_answered(stranger, seqs)


@case("SEQ-03")
def test_numbers_start_again(stranger: Connection) -> None:
    """The seqs 65,535 and then 0 are both answered."""
    for seq in (0xFFFE, 0xFFFF, 0, 1):
        stranger.call("PING", {}, seq=seq)
    stranger.silence_by_fence()


@case("SEQ-04")
def test_two_requests_of_one_number(alice: Device) -> None:
    """Two requests in flight with the same seq both get their reply."""
    me = alice.user_id
    _, first = alice.packet("CONTACT_INFO", {"contactIds": [me]}, seq=77)
    _, second = alice.packet("CONTACT_INFO", {"contactIds": []}, seq=77)
    alice.coalesce(first, second)
    replies = [alice.reply(77), alice.reply(77)]
    equal(sorted(len(each["contacts"]) for each in replies), [0, 1], "contacts in the replies")
    alice.silence_by_fence()


@case("SEQ-05")
def test_pipelined_requests(alice: Device, bob: Device, group: Group, cid: Cid, rng: random.Random) -> None:
    """Each of two hundred requests in one write gets one answer, the same as if it were sent alone."""
    chat = group(alice, bob)
    kinds = [
        lambda: ("PING", {}),
        lambda: ("MSG_SEND", {"chatId": chat, "message": message(cid())}),
        lambda: ("CHAT_HISTORY", {"chatId": chat, "backward": 5}),
        lambda: ("MSG_TYPING", {"chatId": chat}),
        lambda: ("MSG_SEND", {"chatId": -1, "message": message(cid())}),
        lambda: ("SESSIONS_INFO", {}),
    ]
    requests = [rng.choice(kinds)() for _ in range(200)]
    packets = [alice.packet(*request) for request in requests]
    alice.coalesce(*(packet for _, packet in packets))
    for (_, value), (seq, _) in zip(requests, packets, strict=True):
        if value.get("chatId") == -1:
            alice.error("chat.not.found", seq)
        else:
            alice.reply(seq)
    alice.silence_by_fence()


@case("SEQ-06")
def test_ping_overtakes(client: Connection) -> None:
    """A PING is answered before an earlier, slower LOGIN; here the LOGIN is refused, which takes longest."""
    slow, login = client.packet("LOGIN", {"token": "no such token"})
    fast, ping = client.packet("PING", {})
    client.coalesce(login, ping)
    client.error("login.token", slow)
    client.reply(fast)
    equal([frame.seq for frame in client.received[-2:]], [fast, slow], "order of the answers")


@case("SEQ-07")
def test_order_of_messages(alice: Device, bob: Device, group: Group, cid: Cid) -> None:
    """Fifty messages in one write are stored in the order of the write."""
    chat = group(alice, bob)
    texts = [f"message {number}" for number in range(50)]
    packets = [alice.packet("MSG_SEND", {"chatId": chat, "message": message(cid(), text)}) for text in texts]
    alice.coalesce(*(packet for _, packet in packets))
    ids = [alice.reply(seq)["message"]["id"] for seq, _ in packets]
    check(ids == sorted(set(ids)), "ids that rise in the order of sending", ids)
    page = alice.call("CHAT_HISTORY", {"chatId": chat, "backward": 50})
    equal([each["text"] for each in page["messages"]], texts, "the history")


@case("SEQ-08")
@pytest.mark.parametrize("last", [0, 1, 127, 128, 200, 255, 256, 300, 0x80FF, 0xFFFF])
def test_number_of_a_push(alice: Device, bob: Device, group: Group, cid: Cid, last: int) -> None:
    """The seq of a push is (last seq of the client + 128) mod 256."""
    chat = group(alice, bob)
    bob.call("PING", {}, seq=last)
    alice.call("MSG_SEND", {"chatId": chat, "message": message(cid())})
    push = bob.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
    equal(push.seq, (last + 128) % 256, f"number of a push after request {last}")


@case("SEQ-09")
def test_more_than_may_be_in_flight(alice: Device, limits: Limits) -> None:
    """If one write has four times maxRequestsInFlight requests, the server answers all in the end."""
    packets = [
        alice.packet("CONTACT_INFO", {"contactIds": [alice.user_id]})
        for _ in range(4 * limits["maxRequestsInFlight"])
    ]
    alice.coalesce(*(packet for _, packet in packets))
    all_answered(alice, [seq for seq, _ in packets])
