"""MOR: the rest of a long delta, read in parts."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import ids, login_again, marks, say, settled
from tambour_conformance.verdict import case, check, equal
from tambour_conformance.wire import Frame

END_OF_TIME = 1 << 60


def more(device: Device, kind: str, since: int, up_to: int, **fields: Any) -> Frame:
    return device.call("SYNC_MORE", {"kind": kind, "since": since, "upTo": up_to, **fields})


def walk(device: Device, kind: str, since: int, up_to: int, count: int) -> list[list[dict[str, Any]]]:
    """The pages of a range."""
    field = kind.lower()
    pages: list[list[dict[str, Any]]] = []
    while True:
        page = more(device, kind, since, up_to, count=count)
        pages.append(page[field])
        if "upTo" not in page.value:
            return pages
        check(since < page["upTo"] < up_to, f"a place to go on between {since} and {up_to}", page["upTo"])
        check(page[field] != [], "a page that goes on", "an empty one")
        up_to = page["upTo"]


def changed(login: LogIn, group: Group, cid: Cid, count: int) -> tuple[Device, dict[str, Any], list[int]]:
    """Alice with `sync-more`, her marks, and the chats that changed after them, the newest change first."""
    alice, bob = login("alice", capabilities=["sync-more"]), login("bob")
    chats = [group(bob, alice) for _ in range(count)]
    known = marks(settled(alice))
    for chat in chats:
        say(bob, chat, cid())
        # Waits, so that the next change gets a later millisecond.
        settled(bob)
    return alice, known, chats[::-1]


@case("SYN-17")
@pytest.mark.parametrize("count", [1, 3, 9], ids=["one", "some", "more than there are"])
def test_newest_of_a_delta(login: LogIn, group: Group, cid: Cid, count: int) -> None:
    """A delta has the newest changes and the range of the others; without `sync-more` it has all changes."""
    alice, known, chats = changed(login, group, cid, 6)
    delta = login_again(alice, **known, chatsCount=count)
    equal(ids(delta["chats"]), chats[:count], "chats of the delta")
    check("chatMarker" not in delta.value, "a delta, and no list to go on with", delta.value)
    left = [each for each in delta.value.get("more", []) if each["kind"] == "CHATS"]
    equal(bool(left), count < 6, "a range that is left")
    if left:
        equal(left[0]["since"], known["chatsSync"], "the mark of the login")
        pages = walk(alice, "CHATS", left[0]["since"], left[0]["upTo"], count)
        equal([each for page in pages for each in ids(page)], chats[count:], "chats of the range")
    classic = login("alice", "laptop", **known, chatsCount=count).login
    equal(sorted(ids(classic["chats"])), sorted(chats), "chats of a delta that is not cut")
    check("more" not in classic.value, "no ranges", classic.value)


@case("MOR-01")
@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_range(login: LogIn, group: Group, cid: Cid, count: int) -> None:
    """The pages of a range have each change once, the newest first, including chats that were left."""
    alice, known, chats = changed(login, group, cid, 6)
    alice.call("CHAT_LEAVE", {"chatId": chats[5]})
    pages = walk(alice, "CHATS", known["chatsSync"], END_OF_TIME, count)
    found = [each for page in pages for each in page]
    equal(ids(found), [chats[5], *chats[:5]], "chats of the range")
    check(found[0]["status"] != "ACTIVE", "a chat that is no more", found[0]["status"])
    check(max(map(len, pages)) <= count, f"at most {count} on a page", [len(page) for page in pages])


@case("MOR-01")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_range_of_contacts(login: LogIn, newcomer: Newcomer, count: int) -> None:
    """A range of contacts includes removed contacts."""
    owner = login(newcomer("owner"), capabilities=["sync-more"])
    people = [login(newcomer(), interactive=False) for _ in range(4)]
    mark = settled(owner)["time"]
    for each in people:
        owner.call("CONTACT_UPDATE", {"contactId": each.user_id, "action": "ADD", "firstName": "N"})
        settled(owner)
    owner.call("CONTACT_UPDATE", {"contactId": people[1].user_id, "action": "REMOVE"})
    found = [each for page in walk(owner, "CONTACTS", mark, END_OF_TIME, count) for each in page]
    expected = [people[place].user_id for place in (1, 3, 2, 0)]
    equal(ids(found), expected, "contacts of the range")
    equal([each.get("status") for each in found], ["REMOVED", None, None, None], "their status")


@case("MOR-01")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_range_of_drafts(login: LogIn, newcomer: Newcomer, group: Group, count: int) -> None:
    """A range of drafts includes discarded drafts."""
    alice = login(newcomer("writer"), capabilities=["sync-more"])
    chats = [group(alice) for _ in range(3)]
    mark = settled(alice)["time"]
    for chat in chats:
        alice.call("DRAFT_SAVE", {"chatId": chat, "draft": {"text": "later"}})
        settled(alice)
    alice.call("DRAFT_DISCARD", {"chatId": chats[0]})
    seen: list[tuple[str, int]] = []
    up_to: int | None = END_OF_TIME
    while up_to is not None:
        page = more(alice, "DRAFTS", mark, up_to, count=count)
        drafts = page["drafts"]["chats"]
        seen += [(kind, int(chat)) for kind in ("discarded", "saved") for chat in drafts[kind]]
        up_to = page.value.get("upTo")
    equal(seen[0], ("discarded", chats[0]), "the newest change")
    equal(sorted(seen[1:]), sorted(("saved", chat) for chat in chats[1:]), "drafts of the range")


@case("MOR-02")
@pytest.mark.parametrize("count", [1, 2])
def test_one_moment(login: LogIn, newcomer: Newcomer, count: int) -> None:
    """A page never splits a millisecond: it has all contacts of one phone book, however small its count."""
    owner = login(newcomer("owner"), capabilities=["sync-more"])
    people = [login(newcomer(), interactive=False) for _ in range(4)]
    mark = settled(owner)["time"]
    first, *others = people
    owner.call("SYNC", {"contactList": {first.account.phone: {"firstName": "First"}}})
    settled(owner)
    owner.call("SYNC", {"contactList": {each.account.phone: {"firstName": "Other"} for each in others}})
    pages = walk(owner, "CONTACTS", mark, END_OF_TIME, count)
    expected = [sorted(each.user_id for each in others), [first.user_id]]
    equal([sorted(ids(page)) for page in pages], expected, "contacts of each page")


@case("MOR-03")
def test_change_meanwhile(login: LogIn, group: Group, cid: Cid) -> None:
    """An item that changes while the client reads a range leaves the range; the next delta has it."""
    alice, known, chats = changed(login, group, cid, 4)
    delta = login_again(alice, **known, chatsCount=1)
    (left,) = (each for each in delta["more"] if each["kind"] == "CHATS")
    say(login("bob"), chats[2], cid())
    pages = walk(alice, "CHATS", left["since"], left["upTo"], 1)
    equal([each for page in pages for each in ids(page)], [chats[1], chats[3]], "chats of the range")
    check(chats[2] in ids(login_again(alice, **marks(delta))["chats"]), "the change in the next delta", chats)


@case("MOR-06")
def test_since_the_login(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """A device can read the changes after its login without a new login."""
    account = newcomer("owner")
    phone, laptop = login(account), login(account, "laptop")
    other = login(newcomer("other"))
    chat, since = group(phone, other), settled(phone)["time"]

    def found(kind: str) -> Frame:
        return more(phone, kind, since, END_OF_TIME)

    laptop.call("CONTACT_UPDATE", {"contactId": other.user_id, "action": "ADD"})
    equal([each.get("status") for each in found("CONTACTS")["contacts"]], [None], "a contact that was added")
    laptop.call("CONTACT_UPDATE", {"contactId": other.user_id, "action": "REMOVE"})
    equal([each.get("status") for each in found("CONTACTS")["contacts"]], ["REMOVED"], "one that was removed")
    laptop.call("DRAFT_SAVE", {"chatId": chat, "draft": {"text": "a draft"}})
    equal([*found("DRAFTS")["drafts"]["chats"]["saved"]], [str(chat)], "a draft that was saved")
    laptop.call("DRAFT_DISCARD", {"chatId": chat})
    equal([*found("DRAFTS")["drafts"]["chats"]["discarded"]], [str(chat)], "one that was thrown away")
    say(other, chat, cid())
    equal(ids(found("CHATS")["chats"]), [chat], "a chat")


@case("MOR-04")
@pytest.mark.parametrize("kind", ["CHATS", "CONTACTS", "DRAFTS"])
def test_empty_range(login: LogIn, group: Group, kind: str) -> None:
    """An empty range has no changes and no continuation."""
    alice = login("alice")
    group(alice)
    now = settled(alice)["time"]
    for since, up_to in [(now, now), (now, now - 1), (now, 0), (END_OF_TIME, END_OF_TIME)]:
        page = more(alice, kind, since, up_to)
        equal((page["chats"], page["contacts"]), ([], []), "chats and contacts")
        check(not {"drafts", "upTo"} & set(page.value), "neither drafts nor a place to go on", page.value)


@case("MOR-05")
@pytest.mark.parametrize(
    "fields",
    [{"kind": "SECRETS"}, {"count": 0}, {"count": -1}, {"since": -1}, {"upTo": -1}],
    ids=["kind", "count 0", "count -1", "since", "upTo"],
)
def test_odd_range(login: LogIn, fields: dict[str, Any]) -> None:
    """An unknown kind, a count of 0 and a negative mark are refused."""
    request = {"kind": "CHATS", "since": 0, "upTo": END_OF_TIME, **fields}
    login("alice").refused("proto.payload", "SYNC_MORE", request)
