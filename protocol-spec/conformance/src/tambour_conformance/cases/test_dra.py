"""DRA: drafts on their author's devices."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    LESS,
    NOBODY,
    SAVED,
    dialog,
    login_again,
    marks,
    only,
    same_refusal,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal, skip

#: A case that must reach the limit of drafts is skipped if the limit is higher than this.
MOST_DRAFTS = 20


def save(device: Device, text: str, **place: int) -> int:
    """Sends DRAFT_SAVE; returns the time in the reply."""
    return device.call("DRAFT_SAVE", {**place, "draft": {"text": text}})["time"]


def discard(device: Device, **fields: int) -> None:
    device.call("DRAFT_DISCARD", fields)


def drafts(device: Device, kind: str = "chats", **fields: Any) -> tuple[dict[str, str], set[str]]:
    """The drafts of a LOGIN: the texts of saved drafts by id, and the ids of discarded drafts."""
    found = login_again(device, **fields).get("drafts") or {}
    part = found.get(kind) or {}
    saved = {key: draft["text"] for key, draft in part.get("saved", {}).items()}
    return saved, set(part.get("discarded", {}))


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes("NOTIF_DRAFT", "NOTIF_DRAFT_DISCARD", "NOTIF_MESSAGE", "NOTIF_CHAT")


@pytest.fixture
def phone_and_laptop(login: LogIn, newcomer: Newcomer) -> tuple[Device, Device]:
    """Two devices of a user without drafts."""
    nina = newcomer("nina")
    return login(nina, "phone", interactive=False), login(nina, "laptop", interactive=False)


Pair = tuple[Device, Device]


@case("DRA-01")
def test_draft(phone_and_laptop: Pair, login: LogIn, group: Group) -> None:
    """A draft reaches the user's other device unchanged, and nobody else."""
    phone, laptop = phone_and_laptop
    bob = login("bob")
    chat = group(phone, laptop, bob)
    forget(phone, laptop, bob)
    draft = {"text": "see you", "elements": [{"type": "STRONG", "from": 0, "length": 3}], "replyTo": 77}
    time = phone.call("DRAFT_SAVE", {"chatId": chat, "draft": draft})["time"]
    laptop.fence()
    push = only(laptop.pushes("NOTIF_DRAFT"), "NOTIF_DRAFT")
    equal(push["chatId"], chat, "chat of the push")
    told = {key: push["draft"].get(key) for key in ("text", "replyTo", "time", "saveTime")}
    equal(told, {"text": "see you", "replyTo": 77, "time": time, "saveTime": time}, "the draft")
    equal(push["draft"]["elements"][0]["length"], 3, "its formatting")
    for device in (phone, laptop, bob):
        device.silence_by_fence()
    equal(drafts(bob)[0].get(str(chat)), None, "somebody else's login")


@case("DRA-02")
def test_drafts_that_changed(phone_and_laptop: Pair, group: Group) -> None:
    """A delta has exactly the drafts that were saved or discarded after the mark."""
    phone, laptop = phone_and_laptop
    same, changed, gone = (group(phone, laptop) for _ in range(3))
    for chat in (same, changed, gone):
        save(phone, "one", chatId=chat)
    known = marks(settled(laptop))
    save(phone, "two", chatId=changed)
    discard(phone, chatId=gone)
    equal(drafts(laptop, **known), ({str(changed): "two"}, {str(gone)}), "drafts of the delta")
    equal(drafts(laptop), ({str(same): "one", str(changed): "two"}, set()), "drafts of a login in full")
    known = marks(settled(laptop))
    equal(login_again(laptop, **known).get("drafts"), None, "drafts when nothing changed")


@case("DRA-03")
def test_last_draft(phone_and_laptop: Pair, group: Group) -> None:
    """After two saves for one chat, a login returns the second draft and its time."""
    phone, laptop = phone_and_laptop
    chat = group(phone, laptop)
    save(phone, "one", chatId=chat)
    time = save(laptop, "two", chatId=chat)
    saved = login_again(phone)["drafts"]["chats"]["saved"]
    equal(
        {key: (each["text"], each["time"]) for key, each in saved.items()},
        {str(chat): ("two", time)},
        "drafts",
    )


@case("DRA-04")
def test_same_draft(phone_and_laptop: Pair, group: Group) -> None:
    """Saving an unchanged draft keeps its time and causes no push."""
    phone, laptop = phone_and_laptop
    chat = group(phone, laptop)
    time = save(phone, "one", chatId=chat)
    forget(phone, laptop)
    equal(save(phone, "one", chatId=chat), time, "time of the same draft")
    equal(phone.call("DRAFT_SAVE", {"chatId": chat, "text": "one"})["time"], time, "its text alone")
    laptop.silence_by_fence()


@case("DRA-05")
@pytest.mark.parametrize("draft", [{"text": ""}, {}, None], ids=["empty", "nothing", "absent"])
def test_empty_draft(phone_and_laptop: Pair, group: Group, draft: dict[str, Any] | None) -> None:
    """Saving an empty draft discards the chat's draft."""
    phone, laptop = phone_and_laptop
    chat = group(phone, laptop)
    save(phone, "one", chatId=chat)
    forget(phone, laptop)
    phone.call("DRAFT_SAVE", {"chatId": chat} if draft is None else {"chatId": chat, "draft": draft})
    laptop.fence()
    equal(only(laptop.pushes("NOTIF_DRAFT_DISCARD"), "NOTIF_DRAFT_DISCARD")["chatId"], chat, "chat")
    laptop.silence_by_fence()
    equal(drafts(phone)[0], {}, "drafts")


@case("DRA-06")
def test_draft_for_others(login: LogIn, group: Group, phone_and_laptop: Pair) -> None:
    """A draft is refused for another user's chat, an unknown chat, or an unknown user."""
    phone, laptop = phone_and_laptop
    chat = group(login("alice"))
    for opcode in ("DRAFT_SAVE", "DRAFT_DISCARD"):
        value = {"draft": {"text": "x"}, "time": 1}
        same_refusal(
            phone.refused("chat.not.found", opcode, {"chatId": chat, **value}),
            phone.refused("chat.not.found", opcode, {"chatId": -NOBODY, **value}),
            "a chat of others, and none",
        )
        phone.refused("user.not.found", opcode, {"userId": NOBODY, **value})
        phone.refused("proto.payload", opcode, value)
    equal(drafts(phone), ({}, set()), "drafts")
    laptop.silence_by_fence()


@case("DRA-07")
@pytest.mark.parametrize("named", ["userId", "chatId"])
def test_dialog_begins(
    phone_and_laptop: Pair, login: LogIn, newcomer: Newcomer, cid: Cid, named: str
) -> None:
    """A draft to a user is listed by user before the dialog begins, and by chat afterwards."""
    phone, laptop = phone_and_laptop
    other = login(newcomer("other"), interactive=False)
    chat, user = str(dialog(phone, other)), str(other.user_id)
    save(phone, "dear", **{named: other.user_id if named == "userId" else int(chat)})
    laptop.fence()
    push = only(laptop.pushes("NOTIF_DRAFT"), "NOTIF_DRAFT")
    equal((push.value.get("userId"), push.value.get("chatId")), (int(user), None), "whose draft is pushed")
    equal((drafts(phone), drafts(phone, "users")), (({}, set()), ({user: "dear"}, set())), "before")
    known = marks(settled(phone))
    say(other, int(chat), cid())
    delta = drafts(phone, **known), drafts(phone, "users", **known)
    equal(delta, (({chat: "dear"}, set()), ({}, {user})), "the delta")
    equal((drafts(phone), drafts(phone, "users")), (({chat: "dear"}, set()), ({}, set())), "after")


@case("DRA-08")
def test_too_many_drafts(phone_and_laptop: Pair, group: Group, limits: Limits) -> None:
    """A new draft above maxDrafts is refused; existing drafts can still change."""
    most = limits["maxDrafts"]
    if most > MOST_DRAFTS:
        skip(f"maxDrafts is {most}, too many to save: {LESS}")
    phone, laptop = phone_and_laptop
    chats = [group(phone) for _ in range(most + 1)]
    for chat in chats[:most]:
        save(phone, "one", chatId=chat)
    forget(laptop)
    phone.refused("proto.payload", "DRAFT_SAVE", {"chatId": chats[most], "draft": {"text": "one"}})
    laptop.silence_by_fence()
    save(phone, "two", chatId=chats[0])
    discard(phone, chatId=chats[1])
    save(phone, "one", chatId=chats[most])
    equal(len(drafts(phone)[0]), most, "drafts")


@case("DRA-09")
def test_draft_of_a_chat_left(phone_and_laptop: Pair, login: LogIn, group: Group) -> None:
    """Leaving a chat discards its draft permanently."""
    phone, laptop = phone_and_laptop
    alice = login("alice")
    chat = group(alice, phone, laptop)
    save(phone, "well", chatId=chat)
    known = marks(settled(laptop))
    phone.call("CHAT_LEAVE", {"chatId": chat})
    equal(drafts(laptop, **known), ({}, {str(chat)}), "drafts of the delta")
    equal(drafts(laptop), ({}, set()), "drafts of a login in full")
    back = {"chatId": chat, "userIds": [phone.user_id], "operation": "add"}
    alice.call("CHAT_MEMBERS_UPDATE", back)
    equal(drafts(laptop), ({}, set()), "drafts of who came back")


@case("DRA-10")
def test_discarded(phone_and_laptop: Pair) -> None:
    """A discarded draft is gone, and its discard is pushed once."""
    phone, laptop = phone_and_laptop
    time = save(phone, "milk", chatId=SAVED)
    equal(drafts(laptop)[0], {str(SAVED): "milk"}, "drafts")
    forget(phone, laptop)
    discard(phone, chatId=SAVED, time=time)
    laptop.fence()
    push = only(laptop.pushes("NOTIF_DRAFT_DISCARD"), "NOTIF_DRAFT_DISCARD")
    equal(push["chatId"], SAVED, "chat of the push")
    check(push["time"] >= time, "a time behind that of the draft", push["time"])
    discard(phone, chatId=SAVED, time=time)
    for device in (phone, laptop):
        device.silence_by_fence()
    equal(drafts(laptop), ({}, set()), "drafts of a login in full")


@case("DRA-11")
def test_newer_draft(phone_and_laptop: Pair) -> None:
    """A discard with an older time keeps the newer draft."""
    phone, laptop = phone_and_laptop
    time = save(laptop, "milk", chatId=SAVED)
    forget(phone, laptop)
    discard(phone, chatId=SAVED, time=time - 1)
    laptop.silence_by_fence()
    equal(drafts(phone)[0], {str(SAVED): "milk"}, "drafts")
    discard(phone, chatId=SAVED, time=0)
    equal(drafts(phone)[0], {}, "drafts in the end")


@case("DRA-12")
@pytest.mark.parametrize("empty", [False, True], ids=["DRAFT_DISCARD", "DRAFT_SAVE"])
def test_out_of_reach(login: LogIn, newcomer: Newcomer, empty: bool) -> None:
    """A draft to a user who has blocked its author can be discarded, but not saved again."""
    nina, olga = login(newcomer("nina")), login(newcomer("olga"))
    save(nina, "milk", userId=olga.user_id)
    olga.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "BLOCK"})
    nina.refused("user.not.found", "DRAFT_SAVE", {"userId": olga.user_id, "draft": {"text": "bread"}})
    if empty:
        save(nina, "", userId=olga.user_id)
    else:
        discard(nina, userId=olga.user_id)
    equal(drafts(nina, "users"), ({}, set()), "drafts of a login in full")
