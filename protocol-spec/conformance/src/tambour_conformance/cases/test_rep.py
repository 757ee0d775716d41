"""REP: reports of chats, messages and users."""

from __future__ import annotations

import pytest

from tambour_conformance.cases.test_cmt import comment, posted
from tambour_conformance.fixtures import Cid, Group, LogIn
from tambour_conformance.talk import NOBODY, dialog, say
from tambour_conformance.verdict import case, check, equal


@case("REP-01")
def test_chat(login: LogIn, group: Group) -> None:
    """A chat can be reported repeatedly."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    for value in ({"ids": [chat], "reason": 3}, {"chatId": chat, "reasonId": 3}):
        equal(bob.call("CHAT_COMPLAIN", value).value, {}, "the reply")
    alice.silence_by_fence()


@case("REP-02")
def test_report_of_a_strange_chat(login: LogIn, group: Group) -> None:
    """A request that reports a chat of other users is refused as a whole."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    own, strange = group(carol), group(alice, bob)
    for chats in ([strange], [own, strange], [-1]):
        carol.refused("chat.not.found", "CHAT_COMPLAIN", {"ids": chats})


@case("REP-03")
def test_message(login: LogIn, cid: Cid) -> None:
    """A message can be reported; its author is not told."""
    alice, bob = login("alice"), login("bob")
    chat = dialog(alice, bob)
    said = say(bob, chat, cid(), "buy now")
    for fields in ({"reasonId": 7, "typeId": 3}, {"reason": "спам"}):
        value = {"ids": [said["id"]], "parentId": chat, **fields}
        equal(alice.call("COMPLAIN", value).value, {"success": True}, "the reply")
    bob.silence_by_fence()


@case("REP-04")
def test_user(login: LogIn) -> None:
    """A user can be reported, and is not told."""
    alice, bob = login("alice"), login("bob")
    for _ in range(2):
        equal(
            alice.call("COMPLAIN", {"ids": [bob.user_id], "reason": 1}).value, {"success": True}, "the reply"
        )
    bob.silence_by_fence()


@case("REP-05")
def test_unknown(login: LogIn, group: Group, cid: Cid) -> None:
    """An object that the caller does not see cannot be reported."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    said = say(alice, chat, cid())["id"]
    carol.refused("chat.not.found", "COMPLAIN", {"ids": [said], "parentId": chat})
    carol.refused("chat.not.found", "COMPLAIN", {"ids": [chat]})
    bob.refused("not.found", "COMPLAIN", {"ids": [said, 1], "parentId": chat})
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [said], "forMe": True})
    bob.refused("not.found", "COMPLAIN", {"ids": [said], "parentId": chat})
    bob.refused("user.not.found", "COMPLAIN", {"ids": [alice.user_id, NOBODY]})


@case("REP-07")
def test_report_of_a_comment(login: LogIn, cid: Cid) -> None:
    """Users who see a post can report its comments; the author is not told."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    said = comment(bob, chat, post, cid(), "buy now")["id"]
    value = {"ids": [said], "parentId": chat, "reason": 1}
    equal(alice.call("COMPLAIN", {**value, "postId": post}).value, {"success": True}, "the reply")
    bob.silence_by_fence()
    alice.refused("not.found", "COMPLAIN", value)
    alice.refused("not.found", "COMPLAIN", {**value, "postId": said})


@case("REP-06")
@pytest.mark.parametrize("sync", [None, 0, 1_754_255_000_000], ids=["absent", "zero", "time"])
def test_reasons(login: LogIn, sync: int | None) -> None:
    """The server returns reasons for each kind of subject; a client that has them gets an empty list."""
    alice = login("alice")
    reply = alice.call("COMPLAIN_REASONS_GET", {} if sync is None else {"complainSync": sync})
    check(reply["complains"], "reasons", reply.value)
    for each in reply["complains"]:
        check(each["reasons"], f"reasons for type {each['typeId']}", each)
        check(
            all(reason["reasonId"] and reason["reasonTitle"] for reason in each["reasons"]),
            "an id and a title",
            each,
        )
    again = alice.call("COMPLAIN_REASONS_GET", {"complainSync": reply["complainSync"]})
    equal((again["complains"], again["complainSync"]), ([], reply["complainSync"]), "reasons that are held")
