"""SRC: messages and people are found by their words, unless they are hidden from the caller."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import begin, dialog, ids, say, settled
from tambour_conformance.verdict import case, check, equal
from tambour_conformance.wire import Frame

#: The id of a chat that does not exist. A dialog's id would not do: a dialog exists before its first message.
NOWHERE = -1


def word() -> str:
    """A random word, because the messages of earlier cases still exist."""
    return "".join(secrets.choice("bcdfghjklmnpqrstvwxz") for _ in range(12))


def search(device: Device, query: str, **fields: Any) -> list[dict[str, Any]]:
    """The results of CHAT_SEARCH, or of MSG_SEARCH if a chat is named."""
    opcode = "MSG_SEARCH" if "chatId" in fields else "CHAT_SEARCH"
    reply = device.call(opcode, {"query": query, **fields})
    for result in reply["result"]:
        equal(result["message"]["chatId"], result["chatId"], "chat of the message found")
    return reply["result"]


def found(device: Device, query: str, **fields: Any) -> list[int]:
    """The ids of the messages found."""
    return [result["message"]["id"] for result in search(device, query, **fields)]


def pages(device: Device, query: str, count: int, **fields: Any) -> list[list[int]]:
    """The ids of the messages on each page of a search."""
    opcode = "MSG_SEARCH" if "chatId" in fields else "CHAT_SEARCH"
    result: list[list[int]] = []
    marker: dict[str, int] = {}
    while len(result) < 100:
        reply = device.call(opcode, {"query": query, "count": count, **fields, **marker}).value
        result.append([each["message"]["id"] for each in reply["result"]])
        if "marker" not in reply:
            break
        marker = {"marker": reply["marker"]}
    return result


@case("SRC-01")
def test_everywhere(login: LogIn, group: Group, cid: Cid) -> None:
    """A word is found in all chats, newest first."""
    alice, bob = login("alice"), login("bob")
    chats = [dialog(alice, bob), group(alice, bob), dialog(alice, alice)]
    key = word()
    said: list[int] = []
    for chat in chats:
        said.append(say(alice, chat, cid(), f"{key} here")["id"])
        # Messages in the same millisecond have no defined order.
        settled(alice)
    results = search(alice, key)
    equal([each["message"]["id"] for each in results], said[::-1], "messages found")
    equal([each["chatId"] for each in results], chats[::-1], "their chats")


@case("SRC-02")
@pytest.mark.parametrize(
    ("text", "query"),
    [("{} Ёжик", "{} ежик"), ("{} ежик", "{} ЁЖИК"), ("{} ТУМАН", "{} туман"), ("{} Fog", "{} fOG")],
    ids=["yo", "ye", "russian", "english"],
)
def test_letters(login: LogIn, cid: Cid, text: str, query: str) -> None:
    """A search ignores case, and does not distinguish е from ё."""
    alice = login("alice")
    key = word()
    said = say(alice, dialog(alice, alice), cid(), text.format(key.upper()))
    equal(found(alice, query.format(key)), [said["id"]], "messages found")


@case("SRC-03")
def test_beginnings(login: LogIn, cid: Cid) -> None:
    """A search finds a message by the beginning of a word, but not by the middle."""
    alice = login("alice")
    key = word()
    said = say(alice, dialog(alice, alice), cid(), f"(before-{key}, after)")
    equal(found(alice, key[:8]), [said["id"]], "found by the beginning")
    equal(found(alice, key[2:]), [], "found by the middle")


@case("SRC-04")
def test_several_words(login: LogIn, cid: Cid) -> None:
    """A message is found if it has all words of the query, in any order."""
    alice = login("alice")
    chat = dialog(alice, alice)
    one, other = word(), word()
    both = say(alice, chat, cid(), f"{one} and {other}")
    say(alice, chat, cid(), one)
    say(alice, chat, cid(), other)
    equal(found(alice, f"{other} {one}"), [both["id"]], "messages found")


@case("SRC-05")
def test_pages(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """The pages together have each message found once."""
    # The user has few chats. In many chats, a search may reach its limit of rows within a page.
    alice, bob = login(newcomer("alice")), login("bob")
    key = word()
    chats = [dialog(alice, alice), dialog(alice, bob)]
    said = [say(alice, chats[number % 2], cid(), f"{key} {number}")["id"] for number in range(7)]
    three = pages(alice, key, 3)
    equal([len(page) for page in three], [3, 3, 1], "sizes of the pages")
    equal(sum(three, []), said[::-1], "all pages")


@case("SRC-23")
def test_long_search(login: LogIn, group: Group, cid: Cid) -> None:
    """A client that reads pages until there is no marker finds all messages with a rare word."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    key = word()
    numbers = [begin(alice, chat, cid(), f"{key} hay" if n % 90 == 7 else f"hay {n}") for n in range(250)]
    said = [alice.reply(number)["message"]["id"] for number in numbers]
    for fields in ({}, {"chatId": chat}):
        result: list[int] = []
        marker: dict[str, int] = {}
        for _ in range(300):
            value = {"query": f"{key} hay", "count": 2, **fields, **marker}
            reply = bob.call("MSG_SEARCH" if fields else "CHAT_SEARCH", value).value
            result += [each["message"]["id"] for each in reply["result"]]
            if "marker" not in reply:
                break
            if marker:
                check(reply["marker"] < marker["marker"], "a marker below the one before", reply)
            marker = {"marker": reply["marker"]}
        equal(result, said[7::90][::-1], "all pages")


@case("SRC-06")
def test_not_to_see(login: LogIn, group: Group, cid: Cid) -> None:
    """Only users who see a message find it: not strangers, former or later members, or who hid it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    key = word()
    said = [say(alice, chat, cid(), f"{key} {number}")["id"] for number in range(2)]
    equal(found(carol, key), [], "found by a stranger")
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": said[:1], "forMe": True})
    equal(found(bob, key), said[1:], "found by who hid one")
    value = {"chatId": chat, "userIds": [carol.user_id], "operation": "add", "showHistory": False}
    alice.call("CHAT_MEMBERS_UPDATE", value)
    equal(found(carol, key), [], "found by who came later")
    bob.call("CHAT_LEAVE", {"chatId": chat})
    equal(found(bob, key), [], "found by who left")
    equal(found(alice, key), said[::-1], "found by who stayed")


@case("SRC-07")
def test_removed_is_not_found(login: LogIn, group: Group, cid: Cid) -> None:
    """Nobody finds a message deleted for everybody."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    key = word()
    said = [say(alice, chat, cid(), f"{key} {number}")["id"] for number in range(3)]
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": said[1:2], "forMe": False})
    for device in (alice, bob):
        equal(found(device, key), [said[2], said[0]], "found after one was deleted")
    alice.call("CHAT_CLEAR", {"chatId": chat, "forAll": True})
    for device in (alice, bob):
        equal(found(device, key), [], "found after the history was cleared")


@case("SRC-08")
def test_edited(login: LogIn, cid: Cid) -> None:
    """An edited message is found by its new words."""
    alice = login("alice")
    chat = dialog(alice, alice)
    old, new = word(), word()
    said = say(alice, chat, cid(), old)["id"]
    alice.call("MSG_EDIT", {"chatId": chat, "messageId": said, "text": new})
    equal(found(alice, old), [], "found by the old word")
    equal(found(alice, new), [said], "found by the new word")


@case("SRC-09")
def test_forwarded(login: LogIn, group: Group, cid: Cid) -> None:
    """A forward is found by its forwarded text."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    key = word()
    said = say(alice, dialog(alice, alice), cid(), key)
    link = {"type": "FORWARD", "chatId": dialog(alice, alice), "messageId": said["id"]}
    carried = say(alice, chat, cid(), "", link=link)
    equal(found(bob, key), [carried["id"]], "messages found")


@case("SRC-10")
@pytest.mark.parametrize("query", ["", "  ", "…!?", "-"], ids=["empty", "blanks", "marks", "dash"])
def test_nothing_to_look_for(login: LogIn, cid: Cid, query: str) -> None:
    """A query without a letter or a digit finds nothing."""
    alice = login("alice")
    chat = dialog(alice, alice)
    say(alice, chat, cid(), "… - !?")
    equal(found(alice, query), [], "found everywhere")
    equal(found(alice, query, chatId=chat), [], "found in the chat")


@case("SRC-11")
def test_long_chat(login: LogIn, group: Group, cid: Cid) -> None:
    """One message among several hundred is found."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    key, hay = word(), word()
    numbers = [begin(alice, chat, cid(), f"{key if n == 70 else hay} {n}") for n in range(300)]
    said = [alice.reply(number)["message"]["id"] for number in numbers]
    equal(found(bob, key), [said[70]], "messages found")
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": said[60:70] + said[71:90], "forMe": False})
    equal(found(bob, key), [said[70]], "messages found after others were deleted")
    alice.call("MSG_EDIT", {"chatId": chat, "messageId": said[70], "text": f"{key} again"})
    equal(found(bob, f"agai {key}", chatId=chat), [said[70]], "messages found after an edit")
    rest = sum(pages(bob, hay, 50, chatId=chat), [])
    equal(rest, [each for each in said[:60] + said[90:]][::-1], "all the others")


@case("SRC-12")
def test_in_one_chat(login: LogIn, group: Group, cid: Cid) -> None:
    """MSG_SEARCH searches one chat."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    key = word()
    said = [say(alice, chat, cid(), f"{key} {number}")["id"] for number in range(3)]
    say(alice, dialog(alice, alice), cid(), key)
    equal(found(alice, key, chatId=chat), said[::-1], "messages found")
    equal(pages(alice, key, 2, chatId=chat), [said[:0:-1], said[:1]], "pages")


def strange(device: Device, chat: int, opcode: str, **fields: Any) -> None:
    """Checks that a request for another user's chat is refused like one for an unknown chat."""
    one, other = (
        device.refused("chat.not.found", opcode, {"chatId": id, **fields}) for id in (chat, NOWHERE)
    )
    assert isinstance(one, Frame)
    equal(one["message"], other["message"], "the refusals")


@case("SRC-13")
def test_strange_chat(login: LogIn, group: Group) -> None:
    """MSG_SEARCH in another user's chat is refused."""
    strange(login("carol"), group(login("alice"), login("bob")), "MSG_SEARCH", query="hello")


@case("SRC-25")
def test_without_a_chat(login: LogIn, group: Group, cid: Cid) -> None:
    """MSG_SEARCH without a chat searches all chats of the caller."""
    alice, bob = login("alice"), login("bob")
    key = word()
    said = [say(alice, chat, cid(), key)["id"] for chat in (group(alice, bob), dialog(alice, bob))]
    equal(found(alice, key), said[::-1], "messages found")
    # A page may be empty if the request has reached its limit of rows.
    full = [page for page in pages(alice, key, 1) if page]
    equal(full, [said[:0:-1], said[:1]], "pages with messages")


@case("SRC-14")
def test_media(login: LogIn, group: Group, cid: Cid) -> None:
    """CHAT_MEDIA returns the messages of a chat that have attachments of the requested kinds."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    share = {"_type": "SHARE", "url": "https://example.org/"}
    place = {"_type": "LOCATION", "latitude": 1.5, "longitude": 2.5}
    kinds = [share, None, share, place, share]
    said = [say(alice, chat, cid(), "t", attaches=[kind] if kind else [])["id"] for kind in kinds]

    def media(**fields: Any) -> list[int]:
        return ids(bob.call("CHAT_MEDIA", {"chatId": chat, **fields})["messages"])

    equal(media(attachTypes=["SHARE", "LOCATION"], backward=50), [said[0], *said[2:]], "all of them")
    equal(media(), [said[0], *said[2:]], "without a kind")
    equal(media(type="SHARE", count=2), [said[2], said[4]], "the newest two of one kind")
    equal(
        media(attachTypes=["SHARE"], messageId=said[2], backward=1, forward=1),
        [said[2], said[4]],
        "around a message",
    )
    equal(media(attachTypes=["PHOTO"], backward=50), [], "of a kind that is not there")
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": said[:1], "forMe": True})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": said[4:], "forMe": False})
    equal(media(attachTypes=["SHARE"], backward=50), [said[2]], "after some were deleted")
    link = {"type": "FORWARD", "chatId": chat, "messageId": said[3]}
    carried = say(alice, chat, cid(), "", link=link)["id"]
    equal(media(attachTypes=["LOCATION"], backward=50), [said[3], carried], "with a forward")


@case("SRC-22")
def test_media_pages(login: LogIn, group: Group, cid: Cid) -> None:
    """A client can read all pages of CHAT_MEDIA by their markers, in both directions."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    share = {"_type": "SHARE", "url": "https://example.org/"}
    place = {"_type": "LOCATION", "latitude": 1.5, "longitude": 2.5}
    kinds = [share, *[place] * 20, share, *[place] * 20, share, share]
    said = [say(alice, chat, cid(), "t", attaches=[kind])["id"] for kind in kinds]
    shares = [id for id, kind in zip(said, kinds, strict=True) if kind is share]

    def media(name: str, **fields: Any) -> list[int]:
        result: list[int] = []
        for _ in range(100):
            reply = bob.call("CHAT_MEDIA", {"chatId": chat, "attachTypes": ["SHARE"], **fields})
            page = ids(reply["messages"])
            result = page + result if name == "backwardMarker" else result + page
            if name not in reply.value:
                break
            fields["messageId"] = reply[name]
        return result

    equal(media("backwardMarker", backward=2), shares, "all pages, backward")
    equal(media("forwardMarker", messageId=said[0], forward=2), shares[1:], "all pages, forward")


@case("SRC-15")
def test_strange_media(login: LogIn, group: Group) -> None:
    """CHAT_MEDIA in another user's chat is refused."""
    strange(login("carol"), group(login("alice"), login("bob")), "CHAT_MEDIA", backward=1)


def people(device: Device, query: str) -> dict[int, dict[str, Any]]:
    """The users that PUBLIC_SEARCH finds, by id."""
    reply = device.call("PUBLIC_SEARCH", {"query": query, "count": 50, "type": "ALL"})
    users = [each["contact"] for each in reply["result"] if "contact" in each]
    check(reply["total"] >= len(users), "total counts at least those of the page", reply["total"])
    return {user["id"]: user for user in users}


@case("SRC-16")
def test_name(login: LogIn, newcomer: Newcomer) -> None:
    """People are found by the beginnings of the words in their names."""
    alice = login("alice")
    account = newcomer()
    account.name = f"{word()} {word()}"
    other = login(account, interactive=False)
    first, last = account.name.split()
    for query in (first, f"{last[:6]} {first.upper()}", first[:9]):
        result = people(alice, query)
        equal(list(result), [other.user_id], f"found by {query}")
        check("phone" not in result[other.user_id], "no phone", result)
    for query in (first[2:], f"{first} {word()}"):
        equal(list(people(alice, query)), [], f"found by {query}")


@case("SRC-24")
def test_pages_of_people(login: LogIn, newcomer: Newcomer) -> None:
    """The pages together have each person with the same name once."""
    alice = login("alice")
    name = word()
    others = []
    for last in ("one", "two", "three"):
        account = newcomer()
        account.name = f"{name} {name}{last}"
        others.append(login(account, interactive=False).user_id)
    result: list[int] = []
    marker: dict[str, int] = {}
    for _ in range(20):
        reply = alice.call("PUBLIC_SEARCH", {"query": name, "count": 2, **marker}).value
        check(len(reply["result"]) <= 2, "no more than asked for", reply)
        result += [each["contact"]["id"] for each in reply["result"]]
        if "marker" not in reply:
            break
        marker = {"marker": reply["marker"]}
    equal(sorted(result), sorted(others), "all pages")


@case("SRC-17")
def test_phone(login: LogIn, newcomer: Newcomer) -> None:
    """A search for a whole phone number finds its owner; a part of the number does not."""
    alice = login("alice")
    account = newcomer()
    other = login(account, interactive=False)
    result = people(alice, account.phone)
    equal(list(result), [other.user_id], "found by the phone")
    equal(str(result[other.user_id]["phone"]), account.phone.lstrip("+"), "the phone")
    by_part = people(alice, account.phone[:-2])
    check(other.user_id not in by_part, "not found by a part of the phone", by_part)


@case("SRC-18")
def test_touch(login: LogIn) -> None:
    """MSG_SEARCH_TOUCH is accepted whatever it contains."""
    alice = login("alice")
    for value in ({}, {"chatId": 1, "messageId": 2, "feedbackId": "x"}):
        alice.call("MSG_SEARCH_TOUCH", value)


@case("SRC-19")
def test_views(login: LogIn, group: Group, cid: Cid) -> None:
    """The views of a message are the members, without its author, whose read mark has reached it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    said = [say(alice, chat, cid())["id"] for _ in range(2)]

    def views(device: Device) -> dict[int, int]:
        reply = device.call("MSG_GET_STAT", {"chatId": chat, "messageIds": [*said, 1]})
        return {int(id): each["views"] for id, each in reply["stats"].items()}

    equal(views(alice), {said[0]: 0, said[1]: 0}, "views at first")
    bob.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": said[0]})
    equal(views(carol), {said[0]: 1, said[1]: 0}, "views after one has read one")
    carol.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": said[1]})
    equal(views(alice), {said[0]: 2, said[1]: 1}, "views after another has read both")
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": said[:1], "forMe": True})
    equal(views(bob), {said[1]: 1}, "views of what one sees")


@case("SRC-20")
def test_strange_views(login: LogIn, group: Group) -> None:
    """MSG_GET_STAT in another user's chat is refused."""
    strange(login("carol"), group(login("alice"), login("bob")), "MSG_GET_STAT", messageIds=[1])
