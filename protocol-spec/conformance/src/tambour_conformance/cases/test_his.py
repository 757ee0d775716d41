"""HIS: pages of history, from any anchor, in both directions, while others write and delete."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer, message
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    DAY_MS,
    NOBODY,
    SAVED,
    begin,
    burst,
    dialog,
    history,
    ids,
    only,
    rise,
    same_refusal,
    say,
)
from tambour_conformance.verdict import case, check, equal, skip

Messages = list[dict[str, Any]]


def page_of(
    messages: Messages,
    start: int,
    backward: int = 0,
    forward: int = 0,
    earliest: int = 0,
    latest: int = 0,
) -> list[int]:
    """The ids, oldest first, that CHAT_HISTORY should return if the chat has these messages."""
    older = [each for each in messages if each["time"] <= start and each["time"] >= earliest]
    newer = [each for each in messages if each["time"] > start and (not latest or each["time"] <= latest)]
    return ids(older[len(older) - min(backward, len(older)) :] + newer[:forward])


def quiet_chat(device: Device, group: Group, cid: Cid, count: int) -> tuple[int, Messages]:
    """Makes a group of one user with `count` messages; returns its id, the first event and the messages."""
    chat = group(device)
    burst(device, chat, [cid() for _ in range(count)])
    messages = history(device, chat, backward=count + 1)
    equal(len(messages), count + 1, "messages of the chat")
    rise([each["time"] for each in messages], "times of a page")
    return chat, messages


# Anchors.


@case("HIS-01")
@pytest.mark.parametrize("start", ["absent", "nil", "in the future", "at the end of time"])
def test_newest(login: LogIn, group: Group, cid: Cid, start: str) -> None:
    """Without an anchor, or with one in the future, the page has the newest messages, oldest first."""
    alice = login("alice")
    chat, messages = quiet_chat(alice, group, cid, 7)
    future = {"in the future": messages[-1]["time"] + DAY_MS, "at the end of time": (1 << 63) - 1}
    fields = {} if start == "absent" else {"from": future.get(start)}
    equal(ids(history(alice, chat, backward=3, **fields)), ids(messages[-3:]), "the newest three")
    equal(history(alice, chat, backward=50, **fields), messages, "more than there are")


@case("HIS-02")
def test_forward(login: LogIn, group: Group, cid: Cid) -> None:
    """A page forward from a time begins after that time, and omits the message at that time."""
    alice = login("alice")
    chat, messages = quiet_chat(alice, group, cid, 7)
    for index in range(len(messages)):
        page = history(alice, chat, forward=3, **{"from": messages[index]["time"]})
        equal(ids(page), ids(messages[index + 1 : index + 4]), f"the three behind message {index}")
    everything = history(alice, chat, forward=50, **{"from": 0})
    equal(ids(everything), ids(messages), "all behind time 0")


@case("HIS-03")
def test_both_ways(login: LogIn, group: Group, cid: Cid) -> None:
    """A page in both directions has the anchor's message once, and its neighbours on both sides."""
    alice = login("alice")
    chat, messages = quiet_chat(alice, group, cid, 7)
    for index in range(1, len(messages)):
        page = history(alice, chat, backward=2, forward=2, **{"from": messages[index]["time"]})
        equal(ids(page), ids(messages[index - 1 : index + 3]), f"the page around message {index}")


@case("HIS-04")
def test_any_anchor(login: LogIn, group: Group, cid: Cid) -> None:
    """A page is right for any counts and for any anchor: before, at, between or after the messages."""
    alice = login("alice")
    chat, messages = quiet_chat(alice, group, cid, 6)
    # The time of a deleted message is an anchor between two messages.
    removed = messages.pop(3)
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [removed["id"]]})
    anchors = [
        0,
        messages[0]["time"] - DAY_MS,
        messages[0]["time"] - 1,
        *(each["time"] for each in messages),
        removed["time"],
        messages[-1]["time"] + 1,
        messages[-1]["time"] + DAY_MS,
    ]
    for anchor in anchors:
        requests = []
        for backward in (0, 1, 2, 10):
            for forward in (0, 1, 2, 10):
                fields = {"from": anchor, "backward": backward, "forward": forward}
                requests.append((fields, alice.send("CHAT_HISTORY", {"chatId": chat, **fields})))
        for fields, seq in requests:
            expected = page_of(messages, anchor, fields["backward"], fields["forward"])
            equal(ids(alice.reply(seq)["messages"]), expected, f"the page for {fields}")


@case("HIS-04")
def test_random_pages(login: LogIn, group: Group, cid: Cid, rng: random.Random) -> None:
    """Two hundred random pages match pages computed from a list, with deleted messages and time bounds."""
    alice = login("alice")
    chat, messages = quiet_chat(alice, group, cid, 60)
    gone = rng.sample(ids(messages[1:]), 15)
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": gone[:10]})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": gone[10:], "forMe": True})
    messages = [each for each in messages if each["id"] not in gone]
    first, last = messages[0]["time"], messages[-1]["time"]
    for _ in range(200):
        anchor = rng.randint(first - 3, last + 3)
        backward, forward = rng.choice([0, 1, 3, 20, 80]), rng.choice([0, 1, 3, 20, 80])
        earliest = rng.choice([0, 0, rng.randint(first - 3, last + 3)])
        latest = rng.choice([0, 0, rng.randint(first - 3, last + 3)])
        fields = {
            "from": anchor,
            "backward": backward,
            "forward": forward,
            "backwardTime": earliest,
            "forwardTime": latest,
        }
        expected = page_of(messages, anchor, backward, forward, earliest, latest)
        equal(ids(history(alice, chat, **fields)), expected, f"the page for {fields}")


# Walking.


@case("HIS-05")
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_walk_back(login: LogIn, group: Group, cid: Cid, rng: random.Random, size: int) -> None:
    """Paging backward returns each message once, even while other users send and delete."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    burst(bob, chat, [cid() for _ in range(40)], listeners=[alice, carol])
    burst(carol, chat, [cid() for _ in range(40)], listeners=[alice, bob])
    before = history(alice, chat, backward=200)
    mine = {
        each.user_id: [one["id"] for one in before[1:] if one["sender"] == each.user_id]
        for each in (bob, carol)
    }
    deleted: set[int] = set()

    walked: Messages = []
    anchor: int | None = None
    while True:
        # These requests are in flight while the page is read. Their answers are read before the next page.
        writer = rng.choice([bob, carol])
        others = [begin(writer, chat, cid())]
        if len(mine[writer.user_id]) > 20:
            victim = mine[writer.user_id].pop(rng.randrange(len(mine[writer.user_id])))
            deleted.add(victim)
            others.append(writer.send("MSG_DELETE", {"chatId": chat, "messageIds": [victim]}))
        page = history(alice, chat, backward=size, **{} if anchor is None else {"from": anchor})
        for seq in others:
            writer.reply(seq)
        for each in (alice, bob, carol):
            each.fence(grace=False)
        if not page:
            break
        check(len(page) <= size, f"at most {size} messages", len(page))
        check(anchor is None or page[-1]["time"] <= anchor, f"messages at or before {anchor}", page[-1])
        walked = page + walked
        anchor = page[0]["time"] - 1
    rise(ids(walked), "ids of the walk, no one twice")
    rise([each["time"] for each in walked], "times of the walk")
    stayed = [each for each in ids(before) if each not in deleted]
    equal(
        [each for each in ids(walked) if each in set(stayed)], stayed, "what was there from beginning to end"
    )


@case("HIS-05")
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_walk_forward(login: LogIn, group: Group, cid: Cid, size: int) -> None:
    """Paging forward returns each message once; messages sent meanwhile come at the end."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    burst(bob, chat, [cid() for _ in range(40)], listeners=[alice])
    sent = ids(history(alice, chat, backward=200))
    walked: Messages = []
    anchor, left = 0, 10
    while True:
        page = history(alice, chat, forward=size, **{"from": anchor})
        if page:
            check(page[0]["time"] > anchor, f"messages behind {anchor}", page[0])
            walked += page
            anchor = page[-1]["time"]
        elif left == 0:
            break
        if left:
            sent.append(say(bob, chat, cid())["id"])
            left -= 1
        alice.fence(grace=False)
    equal(ids(walked), sent, "the walk")


@case("HIS-06")
def test_odd_counts(login: LogIn, group: Group, cid: Cid) -> None:
    """A request with counts of 0, or without counts, returns nothing; a negative count is refused."""
    alice = login("alice")
    chat, messages = quiet_chat(alice, group, cid, 3)
    for fields in ({}, {"backward": 0}, {"forward": 0}, {"backward": 0, "forward": 0}):
        for anchor in ({}, {"from": messages[1]["time"]}):
            equal(history(alice, chat, **fields, **anchor), [], f"the page for {fields}")
    for fields in (
        {"backward": -1},
        {"forward": -1},
        {"backward": -(1 << 62)},
        {"backward": 3, "forward": -1},
    ):
        alice.refused("proto.payload", "CHAT_HISTORY", {"chatId": chat, **fields})
    alice.alive()


@case("HIS-06")
def test_large_counts(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """A page has at most maxHistoryPage messages, in one direction and in both together."""
    alice, most = login("alice"), limits["maxHistoryPage"]
    chat = group(alice)
    burst(alice, chat, [cid() for _ in range(most + 20)])
    newest = history(alice, chat, backward=most)
    equal(len(newest), most, "messages of the longest page")
    for count in (most + 1, 10_000, 1 << 62):
        equal(ids(history(alice, chat, backward=count)), ids(newest), f"the newest {count}")
        oldest = history(alice, chat, forward=count, **{"from": 0})
        equal(len(oldest), most, f"messages of the oldest {count}")
        middle = newest[len(newest) // 2]
        around = history(alice, chat, backward=count, forward=count, **{"from": middle["time"]})
        check(len(around) <= most, f"at most {most} messages both ways", len(around))
        check(middle["id"] in ids(around), "the anchor among them", ids(around))
        rise(ids(around), "ids")


@case("HIS-07")
def test_empty_chat(login: LogIn, newcomer: Newcomer) -> None:
    """A dialog without messages, and empty saved messages, have empty pages."""
    alice, nina = login("alice"), login(newcomer("nina"))
    for device, chat in ((nina, dialog(alice, nina)), (alice, dialog(alice, nina)), (nina, SAVED)):
        for fields in ({"backward": 10}, {"forward": 10}, {"backward": 10, "forward": 10, "from": 1}):
            equal(history(device, chat, **fields), [], f"the page for {fields}")


@case("HIS-08")
def test_times_differ(login: LogIn, group: Group, cid: Cid) -> None:
    """A thousand messages that four members send at once have distinct times, in the order of their ids."""
    names = ("alice", "bob", "carol", "dave")
    everybody = [login(name) for name in names]
    chat = group(everybody[0], *everybody[1:])
    sent: Messages = []
    for _ in range(10):
        under_way = []
        for each in everybody:
            packets = [
                each.packet("MSG_SEND", {"chatId": chat, "message": message(cid())}) for _ in range(25)
            ]
            each.coalesce(*(packet for _, packet in packets))
            under_way += [(each, seq) for seq, _ in packets]
        sent += [each.reply(seq)["message"] for each, seq in under_way]
        for each in everybody:
            each.fence(grace=False)
            each.pushes("NOTIF_MESSAGE")
    equal(len(set(ids(sent))), 1000, "ids")
    sent.sort(key=lambda each: each["id"])
    rise([each["time"] for each in sent], "times in the order of ids")
    page = history(everybody[0], chat, backward=len(sent[-200:]))
    equal(ids(page), ids(sent[-200:]), "the newest messages")


@case("HIS-11")
@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_page_that_does_not_fit(login: LogIn, group: Group, cid: Cid, limits: Limits, direction: str) -> None:
    """A page above maxReplyBytes has only the messages next to the anchor; later pages have the rest."""
    text = "長" * limits["maxTextUnits"]
    count = limits["maxReplyBytes"] // len(text.encode()) + 20
    if count > limits["maxHistoryPage"]:
        skip("a page of the longest texts fits into maxReplyBytes")
    alice = login("alice", capabilities=["history-more", "lz4-large"])
    chat = group(alice)
    sent = ids(burst(alice, chat, [cid() for _ in range(count)], text))
    whole = [only(history(alice, chat, forward=1, **{"from": 0}), "message")["id"], *sent]

    walked: list[int] = []
    anchor = None if direction == "backward" else 0
    while True:
        reply = alice.call("CHAT_HISTORY", {"chatId": chat, direction: count, "from": anchor})
        page = reply.get("messages", [])
        if not page:
            break
        check(len(walked) + len(page) <= len(whole), "no message twice", len(walked) + len(page))
        check(len(reply.payload) <= limits["maxReplyBytes"], "at most maxReplyBytes", len(reply.payload))
        if not walked:
            check(count // 2 < len(page) < count, f"most of {count} messages, and not all", len(page))
            equal(reply["more"], True, "more")
        if direction == "backward":
            walked = ids(page) + walked
            anchor = page[0]["time"] - 1
            equal(walked, whole[-len(walked) :], "the messages next to the anchor")
        else:
            walked += ids(page)
            anchor = page[-1]["time"]
            equal(walked, whole[: len(walked)], "the messages next to the anchor")
    equal(walked, whole, "the pages together")


@case("HIS-12")
def test_history_of_a_strangers_chat(login: LogIn, group: Group, cid: Cid) -> None:
    """Requests for the content of another user's chat are refused like requests for an unknown chat."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    theirs = group(bob, carol)
    say(bob, theirs, cid())
    refusals = [
        alice.refused("chat.not.found", opcode, {"chatId": chat, **fields})
        for chat in (theirs, -1, alice.user_id ^ NOBODY)
        for opcode, fields in (
            ("CHAT_HISTORY", {"backward": 10}),
            ("MSG_GET", {"messageIds": [1]}),
            ("CHAT_MARK", {"type": "READ_MESSAGE"}),
            ("CHAT_SUBSCRIBE", {}),
            ("MSG_DELETE", {"messageIds": [1]}),
        )
    ]
    for each in refusals[1:]:
        same_refusal(refusals[0], each, "a chat of others and one nobody has")


@case("HIS-13")
def test_more(login: LogIn, group: Group, cid: Cid) -> None:
    """`more` says whether there are further messages in a direction that the page was requested for."""
    alice = login("alice", capabilities=["history-more"])
    chat, messages = quiet_chat(alice, group, cid, 6)
    for anchor in (0, *(each["time"] for each in messages), messages[-1]["time"] + DAY_MS):
        older = [each for each in messages if each["time"] <= anchor]
        newer = [each for each in messages if each["time"] > anchor]
        for backward in (0, 1, 3, 7, 8):
            for forward in (0, 1, 3, 7, 8):
                fields = {"from": anchor, "backward": backward, "forward": forward}
                reply = alice.call("CHAT_HISTORY", {"chatId": chat, **fields})
                expected = 0 < backward < len(older) or 0 < forward < len(newer)
                equal(reply["more"], expected, f"more for {fields}")


@case("HIS-13")
def test_more_behind_what_is_gone(login: LogIn, group: Group, cid: Cid) -> None:
    """`more` is false if only deleted or hidden messages follow."""
    alice = login("alice", capabilities=["history-more"])
    chat, messages = quiet_chat(alice, group, cid, 4)
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": ids(messages[1:3])})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": ids(messages[:1]), "forMe": True})
    reply = alice.call("CHAT_HISTORY", {"chatId": chat, "backward": 2})
    equal(ids(reply["messages"]), ids(messages[3:]), "messages that are left")
    equal(reply["more"], False, "more")
