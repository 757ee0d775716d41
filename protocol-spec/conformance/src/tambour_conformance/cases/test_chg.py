"""CHG: changes to messages that a client has stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, Limits, LogIn
from tambour_conformance.people import Device
from tambour_conformance.settings import Settings
from tambour_conformance.talk import NOBODY, burst, dialog, history, ids, same, say, settled
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame


def changes(device: Device, chat: int, since: int, **fields: Any) -> Frame:
    return device.call("CHAT_CHANGES", {"chatId": chat, "since": since, **fields})


def walk(device: Device, chat: int, since: int, count: int) -> tuple[list[dict[str, Any]], list[int], int]:
    """Reads all pages after a mark; returns the messages, the ids of deleted messages, and the next mark."""
    messages: list[dict[str, Any]] = []
    removed: list[int] = []
    fields: dict[str, Any] = {}
    while True:
        page = changes(device, chat, since, count=count, **fields)
        found = len(page["messages"]) + len(page["removedIds"])
        check(found <= count, f"at most {count} changes", found)
        messages += page["messages"]
        removed += page["removedIds"]
        if "messageId" not in page.value:
            return messages, removed, page["time"]
        check(found > 0, "a page that goes on", "an empty one")
        since, fields = page["time"], {"messageId": page["messageId"]}


def said(group: Group, cid: Cid, *people: Device, count: int = 5) -> tuple[int, list[int]]:
    chat = group(*people)
    return chat, ids(burst(people[0], chat, [cid() for _ in range(count)]))


def edit(device: Device, chat: int, message: int, text: str = "edited") -> None:
    device.call("MSG_EDIT", {"chatId": chat, "messageId": message, "text": text})


def delete(device: Device, chat: int, messages: list[int], for_me: bool = False) -> None:
    device.call("MSG_DELETE", {"chatId": chat, "messageIds": messages, "forMe": for_me})


def react(device: Device, chat: int, message: int) -> None:
    reaction = {"reactionType": "EMOJI", "id": "🔥"}
    device.call("MSG_REACTION", {"chatId": chat, "messageId": message, "reaction": reaction})


@case("CHG-01")
@pytest.mark.parametrize("change", [edit, react], ids=["edit", "reaction"])
def test_edit_or_reaction(
    login: LogIn, group: Group, cid: Cid, change: Callable[[Device, int, int], None]
) -> None:
    """The reply contains the changed message once, as in the history, and no other message."""
    alice, bob = login("alice"), login("bob")
    chat, sent = said(group, cid, alice, bob)
    mark = settled(bob)["time"]
    equal(changes(bob, chat, mark)["messages"], [], "changes before there are any")
    change(alice, chat, sent[2])
    change(alice, chat, sent[2])
    say(alice, chat, cid())
    page = changes(bob, chat, mark)
    equal(ids(page["messages"]), [sent[2]], "messages that have changed")
    equal(page["removedIds"], [], "removedIds")
    same(
        page["messages"],
        [each for each in history(bob, chat, backward=10) if each["id"] == sent[2]],
        "the message as history has it",
    )


@case("CHG-01")
def test_vote_is_a_change(login: LogIn, group: Group, cid: Cid) -> None:
    """A vote changes the message with the poll."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    poll = {"_type": "POLL", "title": "?", "answers": [{"text": "a"}, {"text": "b"}], "settings": 0}
    asked = say(alice, chat, cid(), "", attaches=[poll])
    mark = settled(bob)["time"]
    name = {"chatId": chat, "messageId": asked["id"], "pollId": asked["attaches"][0]["pollId"]}
    alice.call("SEND_VOTE", {**name, "answersIds": [1]})
    changed = changes(bob, chat, mark)["messages"]
    equal(ids(changed), [asked["id"]], "messages that have changed")
    equal(changed[0]["attaches"][0]["state"]["total"], 1, "votes")


@case("CHG-02")
def test_deletion(login: LogIn, group: Group, cid: Cid) -> None:
    """A message deleted for all is reported to all members; deleted for oneself, only to own devices."""
    alice, bob = login("alice"), login("bob")
    chat, sent = said(group, cid, alice, bob)
    edit(alice, chat, sent[3])
    mark = settled(bob)["time"]
    delete(alice, chat, [sent[1]])
    delete(bob, chat, [sent[2]], for_me=True)
    edit(alice, chat, sent[4], "last words")
    delete(alice, chat, [sent[4]])
    for device, expected in [(bob, [sent[1], sent[2], sent[4]]), (alice, [sent[1], sent[4]])]:
        page = changes(device, chat, mark)
        equal(sorted(page["removedIds"]), expected, f"removedIds of {device.name}")
        equal(page["messages"], [], f"messages of {device.name}")


@case("CHG-03")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_pages_of_changes(login: LogIn, group: Group, cid: Cid, count: int) -> None:
    """Over all pages each change comes once, also if one request changed many messages."""
    alice, bob = login("alice"), login("bob")
    chat, sent = said(group, cid, alice, bob, count=20)
    mark = settled(bob)["time"]
    for message in sent[:6]:
        edit(alice, chat, message)
    delete(alice, chat, sent[8:])
    # Changes of a past millisecond do not come twice.
    settled(bob)
    messages, removed, _ = walk(bob, chat, mark, count)
    equal(sorted(ids(messages)), sent[:6], "messages that have changed, each once")
    equal(sorted(removed), sent[8:], "those that are no more, each once")


@case("CHG-03")
def test_pages_that_are_full(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """Changes that do not fit one reply come in several replies, each change once."""
    alice, bob = login("alice"), login("bob")
    text = "€" * limits["maxTextUnits"]
    count = limits["maxReplyBytes"] // len(text.encode()) + 2
    if count > limits["maxHistoryPage"]:
        skip("maxReplyBytes is more than a page of the longest messages")
    chat, sent = said(group, cid, alice, bob, count=count)
    mark = settled(bob)["time"]
    for message in sent:
        edit(alice, chat, message, text)
    settled(bob)
    check("messageId" in changes(bob, chat, mark).value, "a page that goes on", "all in one reply")
    messages, removed, _ = walk(bob, chat, mark, count)
    equal((ids(messages), removed), (sent, []), "messages that have changed")


@case("CHG-07")
@pytest.mark.parametrize(
    "fields", [{"count": 0}, {"count": -1}, {"since": -1}], ids=["count 0", "count -1", "since"]
)
def test_odd_mark_or_count(login: LogIn, group: Group, fields: dict[str, int]) -> None:
    """A count of 0 and a negative mark are refused."""
    alice = login("alice")
    request = {"chatId": group(alice), "since": 0, **fields}
    alice.refused("proto.payload", "CHAT_CHANGES", request)


@case("CHG-04")
def test_next_mark(login: LogIn, group: Group, cid: Cid) -> None:
    """A request with the mark of a reply returns every later change, however soon it happens."""
    alice, bob = login("alice"), login("bob")
    chat, sent = said(group, cid, alice, bob, count=10)
    mark = settled(bob)["time"]
    for message in sent:
        edit(alice, chat, message)
        page = changes(bob, chat, mark)
        check(message in ids(page["messages"]), "the change after the mark", ids(page["messages"]))
        check(page["time"] >= mark, "a mark that does not fall", page["time"])
        mark = page["time"]


@case("CHG-05")
def test_behind_the_floor(login: LogIn, group: Group, cid: Cid) -> None:
    """A member who was added without the history, or cleared it, gets no changes of hidden messages."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, sent = said(group, cid, alice, bob)
    joining = {"chatId": chat, "userIds": [carol.user_id], "operation": "add", "showHistory": False}
    alice.call("CHAT_MEMBERS_UPDATE", joining)
    bob.call("CHAT_CLEAR", {"chatId": chat, "forAll": False})
    after = say(alice, chat, cid())["id"]
    marks = {each: settled(each)["time"] for each in (bob, carol)}
    edit(alice, chat, sent[0])
    delete(alice, chat, [sent[1]])
    edit(alice, chat, after)
    for device, mark in marks.items():
        page = changes(device, chat, mark)
        equal(ids(page["messages"]), [after], f"messages that have changed for {device.name}")
        equal(page["removedIds"], [], f"removedIds of {device.name}")
        cleared = page.value.get("clearedId", 0)
        check(sent[-1] <= cleared < after, f"a clearedId from {sent[-1]} to {after}", cleared)
    page = changes(alice, chat, marks[bob])
    check("clearedId" not in page.value, "no clearedId for who has all", page.value)


@case("CHG-05")
def test_changes_of_others(login: LogIn, group: Group) -> None:
    """Chats of others and unknown chats get the same refusal; a dialog that has not begun has no changes."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    for chat in (group(bob), -NOBODY):
        alice.refused("chat.not.found", "CHAT_CHANGES", {"chatId": chat, "since": 0})
    page = changes(alice, dialog(alice, carol), 1 << 60)
    equal((page["messages"], page["removedIds"]), ([], []), "changes from a mark in the future")


@case("CHG-06")
def test_mark_before_a_restore(login: LogIn, group: Group, cid: Cid, settings: Settings) -> None:
    """A mark from before a restore returns no changes, only the request to start over."""
    if settings.before_restore is None:
        skip("needs --before-restore")
    alice, bob = login("alice"), login("bob")
    chat, sent = said(group, cid, alice, bob)
    edit(alice, chat, sent[0])
    for place in (chat, dialog(bob, bob)):
        page = changes(bob, place, settings.before_restore)
        equal(page.value.get("resync"), True, "resync")
        equal((page["messages"], page["removedIds"]), ([], []), "changes")
        later = changes(bob, place, page["time"])
        check("resync" not in later.value, "no resync with the mark of that reply", later.value)
