"""SET: settings of users and their chats, and the effect of privacy settings."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance import wire
from tambour_conformance.cases.test_grp import change
from tambour_conformance.cases.test_grp_channels import channel
from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    LESS,
    NOBODY,
    SAVED,
    chat_of,
    dialog,
    login_again,
    marks,
    only,
    say,
    settled,
    time_out,
)
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: The most users that a case registers to make a large group.
MOST_MEMBERS = 40


def put(device: Device, **settings: Any) -> Frame:
    """Sends CONFIG with settings of the user."""
    return device.call("CONFIG", {"settings": {"user": settings}})


def put_chat(device: Device, chat: int, **settings: Any) -> Frame:
    """Sends CONFIG with settings of one chat."""
    return device.call("CONFIG", {"settings": {"chats": {str(chat): settings}}})


def add(device: Device, user: int) -> dict[str, Any]:
    return device.call("CONTACT_UPDATE", {"contactId": user, "action": "ADD"})["contact"]


def phone_of(device: Device, user: int) -> Any:
    """The phone of a user from CONTACT_INFO."""
    return only(device.call("CONTACT_INFO", {"contactIds": [user]})["contacts"], "user").get("phone")


# Storing settings.


@case("SET-01")
def test_settings_changed(login: LogIn, newcomer: Newcomer) -> None:
    """The reply has all settings, and so has the next login unless it names the current hash."""
    account = newcomer("owner")
    owner, laptop = login(account), login(account, "laptop")
    held = login_again(owner)["config"]
    before, defaults = held["hash"], held["user"]
    check(
        defaults["PUSH_DETAILS"] is True and defaults["HIDDEN"] is False,
        "what clients do by default",
        defaults,
    )
    put(owner, VIBR=False, LED=65535, PUSH_SOUND="DEFAULT")
    reply = put(owner, VIBR=None, DOUBLE_TAP_REACTION_VALUE="🔥")
    settings = defaults | {"DOUBLE_TAP_REACTION_VALUE": "🔥", "LED": 65535, "PUSH_SOUND": "DEFAULT"}
    equal(reply["user"], settings, "settings")
    check(reply["hash"] != before, "another hash", reply["hash"])
    config = login_again(owner, configHash=before)["config"]
    equal((config["hash"], config["user"]), (reply["hash"], settings), "hash and settings at LOGIN")
    held = login_again(owner, configHash=reply["hash"])
    check("config" not in held.value, "no settings for who holds them", held.value.get("config"))
    laptop.fence()
    pushed = laptop.pushes("NOTIF_CONFIG")
    equal(len(pushed), 2, "NOTIF_CONFIG for the other device")
    equal(pushed[-1]["config"]["user"], settings, "settings pushed")


@case("SET-10")
def test_settings_as_they_are(login: LogIn, newcomer: Newcomer) -> None:
    """A change without effect keeps the hash and causes no push."""
    account = newcomer("owner")
    owner, laptop = login(account), login(account, "laptop")
    first = put(owner, VIBR=False)
    laptop.fence()
    laptop.pushes("NOTIF_CONFIG")
    for again in (put(owner, VIBR=False), put(owner), put(owner, LED=None), owner.call("CONFIG", {})):
        equal((again["hash"], again["user"]), (first["hash"], first["user"]), "hash and settings")
    equal(owner.call("CONFIG", {"pushToken": "abc", "pushOptions": {}})["hash"], first["hash"], "hash")
    laptop.silence_by_fence(of=["NOTIF_CONFIG"])


@case("SET-02")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEARCH_BY_PHONE", "SOME"),
        ("CHATS_INVITE", True),
        ("PHONE_NUMBER_PRIVACY", 1),
        ("HIDDEN", "true"),
        ("SHOW_READ_MARK", "false"),
    ],
)
def test_what_cannot_be_obeyed(login: LogIn, newcomer: Newcomer, name: str, value: Any) -> None:
    """A request with an invalid privacy value is refused as a whole; the refusal names the setting."""
    owner = login(newcomer("owner"))
    before = put(owner, LED=1)
    refusal = owner.refused("proto.payload", "CONFIG", {"settings": {"user": {"LED": 2, name: value}}})
    check(name in refusal["message"], "the name of the setting", refusal["message"])
    equal(put(owner)["user"], before["user"], "settings")


@case("SET-03")
def test_too_much(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """A setting is refused if its name or value is too long, its value is nested, or there are too many."""
    owner = login(newcomer("owner"))
    for value in ({}, [], {"a": 1}, "x" * (limits["maxSettingBytes"] + 1)):
        owner.refused("proto.payload", "CONFIG", {"settings": {"user": {"LED": value}}})
        owner.refused("proto.payload", "CONFIG", {"settings": {"chats": {str(SAVED): {"led": value}}}})
    long = "x" * (limits["maxSettingBytes"] + 1)
    for name in ("", long):
        owner.refused("proto.payload", "CONFIG", {"settings": {"user": {name: 1}}})
    defaults = put(owner)["user"]
    most = {f"S{number}": number for number in range(limits["maxSettings"])}
    equal(put(owner, **most)["user"], defaults | most, "settings")
    owner.refused("proto.payload", "CONFIG", {"settings": {"user": {"ONE_MORE": 1}}})
    equal(put(owner)["user"], defaults | most, "settings after one too many")


@case("SET-04")
def test_muted(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """Each user has their own settings of a chat, even of a dialog that has not begun."""
    account, nina = newcomer("owner"), login(newcomer("nina"))
    owner, laptop = login(account), login(account, "laptop")
    chats = [group(owner, nina), dialog(owner, nina), SAVED]
    for number, chat in enumerate(chats):
        put_chat(owner, chat, dontDisturbUntil=-1)
        reply = put_chat(owner, chat, favIndex=number)
        equal(
            reply["chats"], {str(chat): {"dontDisturbUntil": -1, "favIndex": number}}, "settings of the chat"
        )
    shown = login_again(owner)["config"]["chats"]
    equal(
        {int(chat): value["favIndex"] for chat, value in shown.items()},
        {c: n for n, c in enumerate(chats)},
        "all",
    )
    put_chat(owner, chats[0], dontDisturbUntil=None, favIndex=None)
    shown = login_again(owner)["config"]["chats"]
    equal(set(shown), {str(chat) for chat in chats[1:]}, "chats with settings")
    laptop.fence()
    equal(laptop.pushes("NOTIF_CONFIG")[-1]["config"]["chats"], {str(chats[0]): {}}, "settings pushed")
    equal(login_again(nina)["config"].get("chats"), None, "settings of chats of the other member")


@case("SET-13")
def test_a_change_of_nothing(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """A request with an empty change returns the current settings of the chat."""
    account = newcomer("owner")
    owner = login(account)
    chat, quiet = group(owner), group(owner)
    put_chat(owner, chat, dontDisturbUntil=-1, favIndex=3)
    laptop = login(account, "laptop")
    for device in (owner, laptop):
        muted = {"dontDisturbUntil": -1, "favIndex": 3}
        equal(put_chat(device, chat)["chats"], {str(chat): muted}, f"what {device.name} gets")
    equal(put_chat(owner, quiet)["chats"], {str(quiet): {}}, "those of a chat without any")
    laptop.silence_by_fence()


@case("SET-14")
def test_chat_named_twice(login: LogIn, newcomer: Newcomer) -> None:
    """If a request names a chat twice, as a string and as an integer, the later values count."""
    account = newcomer("owner")
    owner, laptop = login(account), login(account, "laptop")
    chats = {str(SAVED): {"led": 1, "vibr": True}, SAVED: {"led": 2, "vibr": None}}
    reply = owner.call("CONFIG", {"settings": {"chats": chats}})
    equal(reply["chats"], {str(SAVED): {"led": 2}}, "settings of the chat")
    laptop.fence()
    equal(laptop.pushes("NOTIF_CONFIG")[-1]["config"]["chats"], {str(SAVED): {"led": 2}}, "settings pushed")


@case("SET-15")
def test_more_than_a_reply(login: LogIn, newcomer: Newcomer, group: Group, limits: Limits) -> None:
    """A request is refused if the reply with all settings of its chats would be too large."""
    account, nina = newcomer("owner"), login(newcomer("nina"))
    owner = login(account)
    value = "x" * (limits["maxSettingBytes"] - 8)
    many = {f"{number}": value for number in range(limits["maxSettings"])}
    each = len(wire.encode(many))
    chats = [SAVED, dialog(owner, nina)]
    while each * len(chats) <= limits["maxConfigReplyBytes"]:
        chats.append(group(owner, nina))
    owner.refused("proto.payload", "CONFIG", {"settings": {"chats": {str(chat): many for chat in chats}}})
    check("chats" not in login_again(owner)["config"], "no settings of chats", chats)
    put_chat(owner, SAVED, **many)


@case("SET-05")
def test_chat_of_others(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """A request with settings for a chat that the caller does not see is refused as a whole."""
    owner, nina, olga = login(newcomer("owner")), login(newcomer("nina")), login(newcomer("olga"))
    foreign = group(nina, olga)
    defaults = put(owner)["user"]
    for chat in (foreign, owner.user_id ^ NOBODY):
        change = {"settings": {"user": {"LED": 1}, "chats": {str(chat): {"favIndex": 1}}}}
        owner.refused("chat.not.found", "CONFIG", change)
    equal(put(owner)["user"], defaults, "settings")


@case("SET-16")
def test_chat_that_was_left(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """After leaving a chat, a user can remove its stored settings, but not change them."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chat = group(nina, owner)

    def change(value: int | None) -> dict[str, Any]:
        return {"settings": {"chats": {str(chat): {"favIndex": value}}}}

    owner.call("CONFIG", change(1))
    owner.call("CHAT_LEAVE", {"chatId": chat})
    owner.refused("chat.not.found", "CONFIG", change(2))
    equal(owner.call("CONFIG", change(None))["chats"], {str(chat): {}}, "settings of the chat")
    owner.refused("chat.not.found", "CONFIG", change(None))


# Settings with an effect for other users.


@case("SET-06")
def test_found_by_phone(login: LogIn, newcomer: Newcomer) -> None:
    """A lookup of the phone of a user who does not want to be found is refused like an unknown phone."""
    nina, friend, stranger = login(newcomer("nina")), login(newcomer("friend")), login(newcomer("stranger"))
    add(nina, friend.user_id)
    phone = nina.account.phone

    def finds(device: Device, found: bool) -> None:
        book = device.call("SYNC", {"contactList": {phone: {"firstName": "Nina"}}})["contacts"]
        equal(len(book), int(found), f"contacts that {device.name} gets from the phone book")
        for opcode, value in (
            ("CONTACT_INFO_BY_PHONE", {"phone": phone}),
            ("CONTACT_CREATE", {"phone": phone}),
        ):
            if found:
                equal(device.call(opcode, value)["contact"]["id"], nina.user_id, f"user of {opcode}")
            else:
                device.refused("user.not.found", opcode, value)
        results = device.call("PUBLIC_SEARCH", {"query": phone})["result"]
        people = [each["contact"]["id"] for each in results if "contact" in each]
        equal(people, [nina.user_id] if found else [], f"people that {device.name} finds")

    put(nina, SEARCH_BY_PHONE="CONTACTS")
    finds(friend, True)
    finds(stranger, False)
    put(nina, SEARCH_BY_PHONE="NONE")
    finds(friend, False)
    put(nina, SEARCH_BY_PHONE="ALL")
    finds(stranger, True)


@case("SET-07")
def test_added_to_groups(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """CHATS_INVITE decides who can add a user to groups."""
    nina, friend, stranger = login(newcomer("nina")), login(newcomer("friend")), login(newcomer("stranger"))
    add(nina, friend.user_id)

    def adds(device: Device, may: bool) -> None:
        chat = group(device, login(newcomer("somebody")))
        change = {"chatId": chat, "userIds": [nina.user_id], "operation": "add"}
        control = {"_type": "CONTROL", "event": "new", "title": "Club", "userIds": [nina.user_id]}
        creation = {"message": {"cid": cid(), "attaches": [control]}}
        for opcode, value in (("CHAT_MEMBERS_UPDATE", change), ("MSG_SEND", creation)):
            if may:
                device.call(opcode, value)
            else:
                device.refused("not.allowed", opcode, value)

    put(nina, CHATS_INVITE="CONTACTS")
    adds(friend, True)
    adds(stranger, False)
    put(nina, CHATS_INVITE="NONE")
    adds(friend, False)
    put(nina, CHATS_INVITE="ALL")
    adds(stranger, True)


@case("SET-08")
def test_phone_shown(login: LogIn, newcomer: Newcomer) -> None:
    """PHONE_NUMBER_PRIVACY hides the phone even from users who saw it before, also at their next login."""
    nina, friend, stranger = login(newcomer("nina")), login(newcomer("friend")), login(newcomer("stranger"))
    for device in (friend, stranger):
        equal(f"+{add(device, nina.user_id)['phone']}", nina.account.phone, "phone while all may see it")
    mark = marks(settled(stranger))
    add(nina, friend.user_id)
    put(nina, PHONE_NUMBER_PRIVACY="CONTACTS")
    equal(f"+{phone_of(friend, nina.user_id)}", nina.account.phone, "phone for whom she added")
    equal(phone_of(stranger, nina.user_id), None, "phone for a stranger")
    changed = only(login_again(stranger, **mark)["contacts"], "contact")
    equal((changed["id"], changed.get("phone")), (nina.user_id, None), "the contact at a stranger's login")
    mark = marks(settled(stranger))
    add(nina, stranger.user_id)
    changed = only(login_again(stranger, **mark)["contacts"], "contact")
    check("phone" in changed, "a phone once she added the stranger", changed)
    put(nina, PHONE_NUMBER_PRIVACY="NONE")
    by_phone = stranger.call("CONTACT_INFO_BY_PHONE", {"phone": nina.account.phone})["contact"]
    equal((phone_of(friend, nina.user_id), by_phone.get("phone")), (None, None), "phone for nobody")


@case("SET-09")
def test_hidden(login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits) -> None:
    """With HIDDEN a user goes offline for others, and stays offline until HIDDEN is false again."""
    delay = time_out(limits, "presenceOfflineDelayMs")
    owner, account = login(newcomer("owner")), newcomer("nina")
    nina = login(account)
    say(nina, dialog(owner, nina), cid())
    equal(login_again(owner)["presence"][str(nina.user_id)]["status"], 1, "status before")
    put(nina, HIDDEN=True)
    gone = owner.push(
        "NOTIF_PRESENCE", lambda push: push["userId"] == nina.user_id, delay + owner.target.timeout
    )
    equal(gone["presence"].get("status"), 0, "status pushed")
    login(account, "laptop")
    asked = {"contactIds": [nina.user_id]}
    equal(owner.call("CONTACT_PRESENCE", asked)["presence"], {}, "presence of who hides it")
    equal(login_again(owner)["presence"], {}, "presence at LOGIN")
    owner.silence_by_fence(of=["NOTIF_PRESENCE"])
    put(nina, HIDDEN=False)
    equal(owner.call("CONTACT_PRESENCE", asked)["presence"][str(nina.user_id)]["status"], 1, "status after")


def read(device: Device, chat: int, message: int) -> int:
    """Marks a message as read; returns the stored mark."""
    reply = device.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": message})
    return int(reply["mark"])


def mark_of(user: int, device: Device, chat: int) -> int:
    """The read mark of `user` as `device` sees it; checks that CHAT_INFO and CHAT_MEMBERS agree."""
    mark = chat_of(device, chat)["participants"][str(user)]
    members = device.call("CHAT_MEMBERS", {"chatId": chat})["members"]
    member = only([each for each in members if each["contact"]["id"] == user], "member")
    equal(member["readMark"], mark, "readMark of CHAT_MEMBERS, and the mark of CHAT_INFO")
    return int(mark)


def views(device: Device, chat: int, message: int) -> int:
    stats = device.call("MSG_GET_STAT", {"chatId": chat, "messageIds": [message]})["stats"]
    return int(stats[str(message)]["views"])


@case("SET-11")
@pytest.mark.parametrize("grouped", [False, True], ids=["dialog", "group"])
def test_read_marks_hidden(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, grouped: bool) -> None:
    """A hidden mark is pushed only to the reader's own devices."""
    owner, account = login(newcomer("owner")), newcomer("nina")
    nina, laptop = login(account), login(account, "laptop")
    chat = group(owner, nina) if grouped else dialog(owner, nina)
    sent = [say(owner, chat, cid()) for _ in range(2)]
    shown = read(nina, chat, sent[0]["id"])
    put(nina, SHOW_READ_MARK=False)
    held, own = marks(settled(owner)), marks(settled(laptop))
    for device in (owner, laptop):
        device.fence()
        device.unread.clear()
    hidden = read(nina, chat, sent[1]["id"])
    equal(hidden, sent[1]["time"], "mark of who reads")
    equal(laptop.push("NOTIF_MARK")["mark"], hidden, "mark pushed to the other device")
    owner.silence_by_fence(of=["NOTIF_MARK", "NOTIF_CHAT"])
    equal(login_again(owner, **held)["chats"], [], "chats that have changed for the other member")
    changed = only(login_again(laptop, **own)["chats"], "chat that has changed for the other device")
    equal(changed["participants"][str(nina.user_id)], hidden, "own mark at LOGIN")
    equal(mark_of(nina.user_id, owner, chat), shown, "mark that the other member sees")
    equal(mark_of(nina.user_id, nina, chat), hidden, "own mark")
    counted = [views(device, chat, sent[1]["id"]) for device in (owner, nina)]
    equal(counted, [0, 1], "views for the other member and for who has read")


@case("SET-11")
@pytest.mark.parametrize("shrunk", [False, True], ids=["channel", "shrunk group"])
def test_read_marks_hidden_from_few(
    login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, limits: Limits, shrunk: bool
) -> None:
    """In small chats, views do not count hidden marks, because few readers could be identified."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    if shrunk:
        many = limits["fanOutMembers"]
        if many >= min(limits["maxGroupMembers"], MOST_MEMBERS):
            skip(f"fanOutMembers is {many}, too many to invite: {LESS}")
        others = [login(newcomer(f"guest {number}")) for number in range(many - 1)]
        chat = group(owner, nina, *others)
        change(owner, chat, "remove", *(each.user_id for each in others))
    else:
        chat = channel(cid, owner, nina)
    sent = [say(owner, chat, cid()) for _ in range(2)]
    read(nina, chat, sent[0]["id"])
    put(nina, SHOW_READ_MARK=False)
    read(nina, chat, sent[1]["id"])
    for post, expected in zip(sent, ([1, 1], [0, 1]), strict=True):
        counted = [views(device, chat, post["id"]) for device in (owner, nina)]
        equal(counted, expected, "views for the other member and for who has read")


@case("SET-12")
def test_read_marks_shown_again(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """A user who shows marks again does not reveal marks set before; others see only later marks."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chat = group(owner, nina)
    sent = [say(owner, chat, cid()) for _ in range(3)]
    shown = read(nina, chat, sent[0]["id"])
    put(nina, SHOW_READ_MARK=False)
    hidden = read(nina, chat, sent[2]["id"])
    held = marks(settled(owner))
    owner.fence()
    owner.unread.clear()
    put(nina, SHOW_READ_MARK=True)
    owner.silence_by_fence(of=["NOTIF_MARK", "NOTIF_CHAT", "NOTIF_CONFIG"])
    equal(login_again(owner, **held)["chats"], [], "chats that have changed by the setting")
    equal(mark_of(nina.user_id, owner, chat), shown, "mark that the other member sees")
    equal(read(nina, chat, sent[1]["id"]), hidden, "own mark, which only rises")
    pushed = owner.push("NOTIF_MARK")
    equal((pushed["userId"], pushed["mark"]), (nina.user_id, sent[1]["time"]), "mark pushed")
    changed = only(login_again(owner, **held)["chats"], "chat that has changed")
    equal(changed["participants"][str(nina.user_id)], sent[1]["time"], "mark at LOGIN")
    equal(mark_of(nina.user_id, owner, chat), sent[1]["time"], "mark once one was shown")
    put(nina, SHOW_READ_MARK=False)
    own = say(nina, chat, cid())
    equal(mark_of(nina.user_id, owner, chat), own["time"], "mark of who has written")
