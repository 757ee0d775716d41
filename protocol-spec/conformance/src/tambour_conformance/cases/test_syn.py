"""SYN: what LOGIN returns to a new device and to a device that was offline, and how to read the rest."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tambour_conformance import wire
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer, Phone, new_group
from tambour_conformance.people import Device
from tambour_conformance.settings import Settings
from tambour_conformance.talk import (
    DAY_MS,
    NOBODY,
    SAVED,
    begin,
    chat_of,
    dialog,
    ids,
    login_again,
    marks,
    same,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame


def by_id(chats: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found = {each["id"]: each for each in chats}
    equal(len(found), len(chats), "chats, each once")
    return found


def newest_first(chats: list[dict[str, Any]]) -> None:
    times = [each["lastEventTime"] for each in chats]
    equal(times, sorted(times, reverse=True), "lastEventTime, newest first")


def make_chats(owner: Device, cid: Cid, count: int) -> list[int]:
    """Makes groups whose last events are in different milliseconds; returns their ids, the oldest first."""
    chats, last = [], 0
    for _ in range(count):
        made = owner.call("MSG_SEND", new_group(cid()))
        time = made["message"]["time"]
        while time <= last:
            time = say(owner, made["chatId"], cid())["time"]
        chats.append(made["chatId"])
        last = time
    return chats


# Full logins.


@case("SYN-01")
def test_everything(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """Without marks, or with marks of 0 or -1, LOGIN returns every chat, newest first."""
    nina = newcomer("nina")
    phone, bob = login(nina), login("bob")
    user = phone.user_id
    say(phone, dialog(phone, bob), cid())
    mine = group(phone, bob)
    theirs = group(bob, phone)
    say(phone, SAVED, cid())
    expected = {dialog(phone, bob), mine, theirs, SAVED}

    keys = ("chatsSync", "contactsSync", "draftsSync", "presenceSync")
    replies = [login_again(phone, **dict.fromkeys(keys, mark)) for mark in (None, 0, -1)]
    replies += [login_again(phone), login(nina).login, login(nina, "laptop", chatsSync=0).login]
    for reply in replies:
        equal(set(by_id(reply["chats"])), expected, "chats")
        newest_first(reply["chats"])
        equal(reply["chats"], replies[0]["chats"], "chats, with other marks")
        equal(ids(reply["contacts"]), [bob.user_id], "contacts")
        equal(reply["profile"]["contact"]["id"], user, "the caller")
        equal(reply.get("chatMarker", 0), 0, "chatMarker when there is no more")


@case("SYN-01")
def test_page_of_chats(login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits) -> None:
    """LOGIN returns the newest chats, at most as many as requested, and a marker for the others."""
    nina = login(newcomer("nina"))
    newest = make_chats(nina, cid, limits["chatsPageSize"] + 3)[::-1]
    for fields, count in (({}, limits["chatsPageSize"]), ({"chatsCount": 4}, 4), ({"chatsCount": 1}, 1)):
        for mark in (None, 0, -1):
            reply = login_again(nina, chatsSync=mark, contactsSync=mark, **fields)
            equal(ids(reply["chats"]), newest[:count], f"chats with mark {mark} and {fields}")
            check(reply.get("chatMarker", 0) > 0, "chatMarker when there is more", reply.get("chatMarker"))


@case("SYN-18")
def test_partners_of_later_pages(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """LOGIN has the partners of the dialogs on its first page; CONTACT_INFO returns the other partners."""
    nina = login(newcomer("nina"))
    partners = [login(newcomer(f"partner {number}")) for number in range(3)]
    for partner in partners:
        say(partner, dialog(partner, nina), cid())
    reply = login_again(nina, chatsCount=1)
    equal(ids(reply["chats"]), [dialog(nina, partners[2])], "chats of the first page")
    held = {each["id"]: each for each in reply["contacts"]}
    check(partners[2].user_id in held, "the partner of the first page", sorted(held))
    equal(len(all_chats(nina, 1)), 3, "chats of all pages")
    users = [each.user_id for each in partners]
    known = nina.call("CONTACT_INFO", {"contactIds": users})["contacts"]
    equal(sorted(ids(known)), sorted(users), "partners that CONTACT_INFO knows")
    check(all(each["names"] for each in known), "names of the partners", known)


@case("SYN-08")
@pytest.mark.parametrize("count", [None, 1, 7, 50])
def test_rest_of_the_list(
    login: LogIn, newcomer: Newcomer, cid: Cid, count: int | None, limits: Limits
) -> None:
    """The chats of the login and of the following pages are all chats, each once, newest first."""
    nina = login(newcomer("nina"))
    made = make_chats(nina, cid, limits["chatsPageSize"] + 5 if count in (None, 50) else 20)
    found = all_chats(nina, count)
    equal(ids(found), made[::-1], "chats of all pages")


@case("SYN-08")
@pytest.mark.parametrize("count", [1, 4])
def test_chats_of_one_millisecond(login: LogIn, newcomer: Newcomer, cid: Cid, count: int) -> None:
    """Paging loses no chat, even if the last events of several chats share a millisecond."""
    nina = login(newcomer("nina"))
    packets = [nina.packet("MSG_SEND", new_group(cid())) for _ in range(30)]
    nina.coalesce(*(packet for _, packet in packets))
    made = {nina.reply(seq)["chatId"] for seq, _ in packets}
    equal(len(made), len(packets), "groups made")
    found = all_chats(nina, count)
    equal(set(by_id(found)), made, "chats of all pages")
    newest_first(found)


def all_chats(device: Device, count: int | None) -> list[dict[str, Any]]:
    """The chats of a full LOGIN and of all pages of CHATS_LIST after it."""
    reply = login_again(device, chatsCount=count)
    chats, marker = list(reply["chats"]), reply.get("chatMarker", 0)
    while marker:
        page = device.call("CHATS_LIST", {"marker": marker, "count": count})
        check(page["marker"] < marker, f"a marker below {marker}", page["marker"])
        chats += page["chats"]
        marker = page["marker"]
    return chats


# Deltas.


@case("SYN-02")
def test_nothing_changed(login: LogIn) -> None:
    """The reply to a LOGIN with settled marks and the current configHash is small."""
    alice = login("alice")
    known = {**marks(settled(alice)), "configHash": alice.login["config"]["hash"]}
    for reply in (login_again(alice, **known), login("alice", **known).login):
        for key in ("chats", "contacts", "messages"):
            check(not reply[key], f"no {key}", reply[key])
        rest = len(reply.payload) - len(wire.encode(reply["profile"]))
        check(rest <= 400, "at most 400 bytes beside the profile", f"{rest} bytes")


def message_of_bob(login: LogIn, chat: int, cid: Cid, last: int) -> None:
    say(login("bob"), chat, cid())


def message_of_laptop(login: LogIn, chat: int, cid: Cid, last: int) -> None:
    say(login("alice", "laptop"), chat, cid())


def edit(login: LogIn, chat: int, cid: Cid, last: int) -> None:
    login("bob").call("MSG_EDIT", {"chatId": chat, "messageId": last, "text": "edited"})


def deletion(login: LogIn, chat: int, cid: Cid, last: int) -> None:
    login("bob").call("MSG_DELETE", {"chatId": chat, "messageIds": [last]})


def deletion_for_me(login: LogIn, chat: int, cid: Cid, last: int) -> None:
    login("alice", "laptop").call("MSG_DELETE", {"chatId": chat, "messageIds": [last], "forMe": True})


def mark_of_laptop(login: LogIn, chat: int, cid: Cid, last: int) -> None:
    login("alice", "laptop").call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": last})


CHANGES = (message_of_bob, message_of_laptop, edit, deletion, deletion_for_me, mark_of_laptop)


@case("SYN-03")
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.replace("_", " "))
def test_one_chat_of_many(login: LogIn, group: Group, cid: Cid, change: Any) -> None:
    """After a change in one of many chats, a delta has only that chat, in its current state."""
    alice, bob = login("alice"), login("bob")
    chats = [group(alice, bob) for _ in range(8)]
    say(bob, chats[3], cid(), "first")
    last = say(bob, chats[3], cid(), "last")
    known = marks(settled(alice))
    change(login, chats[3], cid, last["id"])
    delta = login("alice", **known).login
    equal(ids(delta["chats"]), [chats[3]], "chats of the delta")
    same(delta["chats"], [chat_of(alice, chats[3])], "the chat, as CHAT_INFO has it", "Chat")


@case("SYN-03")
def test_one_new_chat(login: LogIn, group: Group) -> None:
    """A delta has a new group that includes the user."""
    alice, bob = login("alice"), login("bob")
    known = marks(settled(alice))
    made = group(bob, alice)
    equal(ids(login("alice", **known).login["chats"]), [made], "chats of the delta")


@case("SYN-03")
def test_one_new_dialog(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """A delta has a dialog that a stranger began, and the stranger among the contacts."""
    alice, nina = login("alice"), login(newcomer("nina"), interactive=False)
    known = marks(settled(alice))
    say(nina, dialog(alice, nina), cid())
    delta = login("alice", **known).login
    equal(ids(delta["chats"]), [dialog(alice, nina)], "chats of the delta")
    equal(ids(delta["contacts"]), [nina.user_id], "contacts of the delta")


@case("SYN-03")
def test_one_large_chat(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, limits: Limits) -> None:
    """A delta also has a changed group above fanOutMembers; a server may track such groups differently."""
    alice, bob = login("alice"), login("bob")
    others = [login(newcomer(), interactive=False) for _ in range(limits["fanOutMembers"] - 1)]
    chats = [group(alice, bob, *others), group(alice, bob, *others), group(alice, bob)]
    known = marks(settled(alice))
    sent = say(bob, chats[0], cid())
    delta = login("alice", **known).login
    equal(ids(delta["chats"]), [chats[0]], "chats of the delta")
    equal(delta["chats"][0]["lastMessage"]["id"], sent["id"], "last message")
    known = marks(settled(alice))
    mark_of_laptop(login, chats[0], cid, sent["id"])
    equal(ids(login("alice", **known).login["chats"]), [chats[0]], "chats of the delta after an own mark")


@case("SYN-05")
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_edit_is_a_change(login: LogIn, group: Group, cid: Cid, twice: bool) -> None:
    """After each edit of the last message, a delta has the chat with the new text."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = say(bob, chat, cid(), "first text")
    known = marks(settled(alice))
    for text in ("second text", "third text")[: 1 + twice]:
        bob.call("MSG_EDIT", {"chatId": chat, "messageId": sent["id"], "text": text})
        delta = login_again(alice, **known)
        equal(ids(delta["chats"]), [chat], "chats of the delta")
        last = delta["chats"][0]["lastMessage"]
        equal((last["id"], last["text"], last["status"]), (sent["id"], text, "EDITED"), "last message")
        known = marks(settled(alice))


@case("SYN-05")
def test_deletion_is_a_change(login: LogIn, group: Group, cid: Cid) -> None:
    """After each deletion of the last message, a delta has the chat with the message before it."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = [say(bob, chat, cid(), text) for text in ("one", "two", "three")]
    for index in (2, 1):
        known = marks(settled(alice))
        bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent[index]["id"]]})
        delta = login_again(alice, **known)
        equal(ids(delta["chats"]), [chat], "chats of the delta")
        equal(delta["chats"][0]["lastMessage"]["id"], sent[index - 1]["id"], "last message")


@case("SYN-06")
@pytest.mark.parametrize("ahead", [DAY_MS, 1 << 53, (1 << 62)], ids=["a day", "2^53", "2^62"])
def test_future_mark(login: LogIn, group: Group, cid: Cid, settings: Settings, ahead: int) -> None:
    """A mark in the future counts as now: the reply has no chats, and the next one has later changes.

    A restored server may instead treat the mark as from before the restore, and then sends `resync`.
    """
    alice, bob = login("alice", capabilities=["resync"]), login("bob")
    chat = group(alice, bob)
    before = settled(alice)
    future = {key: mark + ahead for key, mark in marks(before).items()}
    reply = login_again(alice, **future)
    if settings.before_restore is None or "CHATS" not in reply.value.get("resync", []):
        check(not reply["chats"], "no chats", reply["chats"])
    check(before["time"] <= reply["time"] < before["time"] + DAY_MS // 2, "the server's time", reply["time"])
    say(bob, chat, cid())
    equal(ids(login_again(alice, **marks(reply))["chats"]), [chat], "chats of the delta behind it")


@case("SYN-16")
@pytest.mark.parametrize("capabilities", [["resync"], ["history-more"]], ids=["resync", "without"])
def test_mark_before_a_restore(
    login: LogIn, group: Group, cid: Cid, settings: Settings, capabilities: list[str]
) -> None:
    """For a mark from before a restore, LOGIN returns all data, with `resync` if the client can read it."""
    if settings.before_restore is None:
        skip("needs --before-restore")
    alice, bob = login("alice", capabilities=capabilities), login("bob")
    chat = group(alice, bob)
    say(bob, dialog(alice, bob), cid())
    alice.call("DRAFT_SAVE", {"chatId": chat, "draft": {"text": "later"}})
    everything = login_again(alice, chatsSync=0, contactsSync=0, draftsSync=0)
    check("resync" not in everything.value, "no resync where everything is asked for", everything.value)
    now = settled(alice)["time"]
    for kind, mark, field in [
        ("CHATS", "chatsSync", "chats"),
        ("CONTACTS", "contactsSync", "contacts"),
        ("DRAFTS", "draftsSync", "drafts"),
    ]:
        known = {"chatsSync": now, "contactsSync": now, "draftsSync": now}
        nothing = login_again(alice, **known)
        check("resync" not in nothing.value, "no resync of marks from later", nothing.value)
        reply = login_again(alice, **(known | {mark: settings.before_restore}))
        equal(reply[field], everything[field], f"{field} of a mark from before")
        check(reply[field] != nothing.value.get(field), f"more than a delta of {field}", reply[field])
        expected = [kind] if "resync" in capabilities else None
        equal(reply.value.get("resync"), expected, "resync")


@case("SYN-09")
def test_config_hash(login: LogIn) -> None:
    """LOGIN returns the settings unless the client names their current hash."""
    alice = login("alice")
    config = alice.login["config"]
    for hash in (None, "", "other", config["hash"] + "x"):
        equal(login_again(alice, configHash=hash).get("config"), config, f"settings with hash {hash!r}")
    check("config" not in login_again(alice, configHash=config["hash"]).value, "no settings", "settings")
    check("config" not in login("alice", configHash=config["hash"]).login.value, "no settings", "settings")


@case("SYN-10")
def test_marks_are_independent(login: LogIn, cid: Cid) -> None:
    """Marks are independent: with a mark for chats only, LOGIN returns all contacts, and vice versa."""
    alice, bob = login("alice"), login("bob")
    say(alice, dialog(alice, bob), cid())
    time = settled(alice)["time"]
    for nothing in (0, -1, None):
        contacts_only = login_again(alice, chatsSync=time, contactsSync=nothing)
        check(not contacts_only["chats"], "no chats", contacts_only["chats"])
        check(bob.user_id in ids(contacts_only["contacts"]), "all contacts", contacts_only["contacts"])
        chats_only = login_again(alice, chatsSync=nothing, contactsSync=time)
        check(not chats_only["contacts"], "no contacts", chats_only["contacts"])
        check(dialog(alice, bob) in ids(chats_only["chats"]), "all chats", ids(chats_only["chats"]))


# What happens while a login runs.


@case("SYN-04")
def test_changes_that_race_with_logins(login: LogIn, group: Group, cid: Cid, rng: random.Random) -> None:
    """A message that is sent while a login runs is in the delta of that login or of the next."""
    alice, bob = login("alice"), login("bob")
    chats = [group(alice, bob) for _ in range(3)]
    known = marks(settled(alice))
    for _ in range(100):
        first = rng.randrange(4)
        sends = [begin(bob, chat, cid()) for chat in chats[:first]]
        racing = alice.send("LOGIN", {"token": alice.token, **known})
        sends += [begin(bob, chat, cid()) for chat in chats[first:]]
        sent = [bob.reply(seq)["message"] for seq in sends]
        delta = alice.reply(racing)
        following = login_again(alice, **marks(delta))
        for chat, each in zip(chats, sent, strict=True):
            newest = max(newest_of(delta, chat), newest_of(following, chat))
            check(
                newest >= each["id"],
                f"message {each['id']} in the delta up to {delta['time']}, or in the next",
                f"the newest one of its chat is {newest}",
            )
        known = marks(following)


def newest_of(reply: Frame, chat: int) -> int:
    """The id of a chat's last message in the reply to LOGIN; 0 if the reply does not have the chat."""
    return max((each["lastMessage"]["id"] for each in reply["chats"] if each["id"] == chat), default=0)


@case("SYN-11")
@pytest.mark.parametrize("delta", [True, False], ids=["delta", "everything"])
def test_messages_while_logging_in(
    connect: Connect, login: LogIn, group: Group, cid: Cid, rng: random.Random, delta: bool
) -> None:
    """A message that is sent while a login runs is in the reply or comes as a push after it."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    known = marks(settled(alice)) if delta else {}
    alice.close()
    for number in range(25):
        device = connect(f"alice.phone {number}", kind=Device)
        first = rng.randrange(8)
        sends = [begin(bob, chat, cid()) for _ in range(first)]
        racing = device.send("LOGIN", {"token": alice.token, **known})
        sends += [begin(bob, chat, cid()) for _ in range(first, 8)]
        sent = [bob.reply(seq)["message"]["id"] for seq in sends]
        reply = device.reply(racing)
        check(device.received[1] is reply, "no push before the reply", device.received[1])
        device.fence()
        newest = newest_of(reply, chat)
        pushed = {push["message"]["id"] for push in device.pushes("NOTIF_MESSAGE")}
        lost = [each for each in sent if each > newest and each not in pushed]
        check(not lost, f"all of {sent} up to {newest} in the reply or pushed", f"{lost} in neither")
        device.close()
        if delta:
            known = marks(reply)


# The second part of a login, and lookups.


@case("SYN-12")
def test_second_part(login: LogIn, cid: Cid) -> None:
    """LOGIN2 returns the contacts for its mark, the same in `contacts` and in `contactInfos`."""
    alice, bob = login("alice"), login("bob")
    say(alice, dialog(alice, bob), cid())
    time = settled(alice)["time"]
    for mark, expected in ((None, True), (0, True), (-1, False), (time, False)):
        reply = alice.call("LOGIN2", {} if mark is None else {"contactsSync": mark})
        equal(ids(reply["contactInfos"]), ids(reply["contacts"]), "the list under its other name")
        equal(bob.user_id in ids(reply["contacts"]), expected, f"whether a contact comes with mark {mark}")
        if not expected:
            equal(reply["contacts"], [], f"contacts with mark {mark}")


@case("SYN-30")
def test_second_part_names_what_is_left(login: LogIn, cid: Cid) -> None:
    """LOGIN2 and the ranges that it names, read with SYNC_MORE, together have all contacts."""
    alice, bob = login("alice", capabilities=["sync-more"]), login("bob")
    say(alice, dialog(alice, bob), cid())
    reply = alice.call("LOGIN2", {"contactsSync": 0})
    found = ids(reply["contacts"])
    for each in reply.value.get("more", []):
        equal(each["kind"], "CONTACTS", "kind of the range")
        value, up_to = {"kind": "CONTACTS", "since": each["since"]}, each["upTo"]
        while up_to:
            page = alice.call("SYNC_MORE", {**value, "upTo": up_to})
            found += ids(page["contacts"])
            up_to = page.value.get("upTo")
    check(bob.user_id in found, "a contact in the reply or its ranges", found)


@case("SYN-13")
def test_chats_of_others(login: LogIn, group: Group, cid: Cid) -> None:
    """CHAT_INFO returns only chats of the caller; another user's chat is left out like an unknown one."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    mine, theirs = group(alice, bob), group(bob, carol)
    say(alice, dialog(alice, bob), cid())
    asked = [theirs, mine, -1, dialog(alice, bob), alice.user_id ^ NOBODY, SAVED, mine]
    reply = alice.call("CHAT_INFO", {"chatIds": asked})
    equal(set(by_id(reply["chats"])), {mine, dialog(alice, bob), SAVED}, "chats")
    equal(
        alice.call("CHAT_INFO", {"chatIds": [theirs]}).value,
        alice.call("CHAT_INFO", {"chatIds": [-1]}).value,
        "the reply to a stranger's chat",
    )


@case("SYN-14")
def test_unknown_users(login: LogIn) -> None:
    """CONTACT_INFO returns users in the requested order and leaves out unknown ids."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    for asked in (
        [carol.user_id, NOBODY, alice.user_id, bob.user_id],
        [NOBODY, bob.user_id, NOBODY + 1, carol.user_id],
    ):
        expected = [each for each in asked if each < NOBODY]
        equal(ids(alice.call("CONTACT_INFO", {"contactIds": asked})["contacts"]), expected, "users")
    for nobody in ([NOBODY], []):
        equal(alice.call("CONTACT_INFO", {"contactIds": nobody})["contacts"], [], f"users of {nobody}")


@case("SYN-15")
def test_nobody_has_that_phone(login: LogIn, phone: Phone) -> None:
    """A phone with an account is found, however it is written; a phone without one is refused."""
    alice, bob = login("alice"), login("bob")
    alice.refused("user.not.found", "CONTACT_INFO_BY_PHONE", {"phone": phone()})
    digits = bob.account.phone.removeprefix("+")
    for written in (f"+{digits}", digits, f"+{digits[0]} ({digits[1:4]}) {digits[4:7]}-{digits[7:]}"):
        reply = alice.call("CONTACT_INFO_BY_PHONE", {"phone": written})
        equal(reply["contact"]["id"], bob.user_id, f"the user of {written}")


@case("SYN-31")
def test_from_nothing(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """CHATS_LIST with a marker of 0, or without one, begins with the newest chat."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chats = [group(owner, nina) for _ in range(3)]
    for value in ({"marker": 0}, {}):
        equal(
            [each["id"] for each in owner.call("CHATS_LIST", value)["chats"]], chats[::-1], "the newest chats"
        )
