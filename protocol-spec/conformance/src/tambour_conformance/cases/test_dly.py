"""DLY: scheduled messages."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance import wire
from tambour_conformance.connection import Frame
from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer, message
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    LESS,
    NOBODY,
    SAVED,
    begin,
    chat_of,
    dialog,
    history,
    ids,
    login_again,
    marks,
    newest,
    only,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal, skip

#: A case that must reach a limit of scheduled messages is skipped if the limit is higher than this.
MOST_DELAYED = 200

#: The most bytes that a message takes on the wire in addition to its text.
MOST_BESIDE_TEXT = 1024

#: The delay, in milliseconds, of a message whose sending a case waits for.
SOON = 400

#: The delay, in milliseconds, of a message whose sending no case waits for.
LATER = 3_600_000

#: How long a case waits for a due message, in seconds.
PATIENCE = 10


def now(device: Device) -> int:
    """The server's time, in milliseconds."""
    return login_again(device)["time"]


def schedule(device: Device, text: str, cid: int, fire: int, **place: int) -> Frame:
    attributes = {"timeToFire": fire, "notifySender": True}
    return device.call("MSG_SEND", {**place, "message": message(cid, text, delayedAttributes=attributes)})


def no_more(device: Device, text: str, cid: int, fire: int, **place: int) -> None:
    """Tries to schedule a message, which must be refused."""
    value = message(cid, text, delayedAttributes={"timeToFire": fire})
    device.refused("proto.payload", "MSG_SEND", {**place, "message": value})


def scheduled(device: Device, chat: int, **fields: Any) -> list[dict[str, Any]]:
    return history(device, chat, itemType="DELAYED", **fields)


def told(device: Device) -> Frame:
    """The only NOTIF_MSG_DELAYED received."""
    device.fence()
    return only(device.pushes("NOTIF_MSG_DELAYED"), "NOTIF_MSG_DELAYED")


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes("NOTIF_MSG_DELAYED", "NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_CONTACT")


@pytest.fixture
def phone_and_laptop(login: LogIn, newcomer: Newcomer) -> tuple[Device, Device]:
    """Two devices of a user without scheduled messages."""
    nina = newcomer("nina")
    return login(nina, "phone", interactive=False), login(nina, "laptop", interactive=False)


Pair = tuple[Device, Device]


@case("DLY-01")
def test_scheduled(phone_and_laptop: Pair, login: LogIn, group: Group, cid: Cid) -> None:
    """A scheduled message is visible only to its sender."""
    phone, laptop = phone_and_laptop
    bob = login("bob")
    chat = group(phone, laptop, bob)
    forget(phone, laptop, bob)
    fire = now(phone) + LATER
    reply = schedule(phone, "later", cid(), fire, chatId=chat)
    equal(reply["chatId"], chat, "chat of the reply")
    sent = reply["message"]
    equal((sent["text"], sent["time"]), ("later", fire), "text and time of the message")
    attributes = {"timeToFire": fire, "notifySender": True, "notifyOpponents": True}
    equal(sent["delayedAttributes"], attributes, "its attributes")
    push = told(laptop)
    equal((push["chatId"], push["message"]["id"]), (chat, sent["id"]), "what the laptop is told")
    for device in (phone, laptop, bob):
        device.silence_by_fence()
    check(newest(phone, chat)["id"] != sent["id"], "no scheduled message in the history", sent["id"])
    equal(ids(scheduled(phone, chat)), [sent["id"]], "what is scheduled")


@case("DLY-02")
def test_its_time_comes(phone_and_laptop: Pair, login: LogIn, group: Group, cid: Cid) -> None:
    """At its time a scheduled message becomes an ordinary message."""
    phone, laptop = phone_and_laptop
    bob = login("bob")
    chat = group(phone, laptop, bob)
    forget(phone, laptop, bob)
    fire = now(phone) + SOON
    waiting = schedule(phone, "now", cid(), fire, chatId=chat)["message"]
    for device in (phone, laptop, bob):
        stored = device.push("NOTIF_MESSAGE", within=PATIENCE)["message"]
        equal((stored["text"], stored["sender"]), ("now", phone.user_id), "text and sender")
        check(stored["time"] >= fire, f"a time from {fire} on", stored["time"])
        check("delayedAttributes" not in stored, "no attributes", stored)
        check(stored["id"] != waiting["id"], "another id", stored["id"])
    equal(newest(bob, chat)["text"], "now", "the newest message")
    equal(scheduled(phone, chat), [], "what is scheduled")


@case("DLY-03")
def test_its_time_has_passed(login: LogIn, group: Group, cid: Cid) -> None:
    """A message with a past time is sent at once."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    forget(alice, bob)
    sent = schedule(alice, "late", cid(), now(alice) - 60_000, chatId=chat)["message"]
    check("delayedAttributes" not in sent, "no attributes", sent)
    equal(bob.push("NOTIF_MESSAGE")["message"]["id"], sent["id"], "what others are told")
    equal(scheduled(alice, chat), [], "what is scheduled")


@case("DLY-04")
def test_the_same_cid(phone_and_laptop: Pair, group: Group, cid: Cid) -> None:
    """A retry schedules nothing new, even if the message was sent meanwhile."""
    phone, laptop = phone_and_laptop
    chat = group(phone, laptop)
    one, fire = cid(), now(phone) + SOON
    first = schedule(phone, "once", one, fire, chatId=chat)["message"]
    equal(schedule(phone, "once", one, fire, chatId=chat)["message"]["id"], first["id"], "the second")
    equal(len(scheduled(phone, chat)), 1, "scheduled messages")
    sent = laptop.push("NOTIF_MESSAGE", lambda push: push["message"]["text"] == "once", within=PATIENCE)
    again = schedule(phone, "once", one, fire, chatId=chat)["message"]
    equal(again["id"], sent["message"]["id"], "the third")
    texts = [each["text"] for each in history(phone, chat, backward=10)]
    equal(texts.count("once"), 1, "messages")


@case("DLY-05")
def test_schedule_too_late(alice: Device, limits: Limits, cid: Cid) -> None:
    """A time beyond maxDelayMs is refused, also by an edit."""
    time = now(alice)
    attributes = {"timeToFire": time + limits["maxDelayMs"] + LATER, "notifySender": True}
    no_more(alice, "x", cid(), attributes["timeToFire"], chatId=SAVED)
    waiting = schedule(alice, "x", cid(), time + LATER, chatId=SAVED)["message"]["id"]
    edit = {"chatId": SAVED, "messageId": waiting, "delayedAttributes": attributes}
    alice.refused("proto.payload", "MSG_EDIT", edit)
    kept = only([each for each in scheduled(alice, SAVED) if each["id"] == waiting], "scheduled message")
    equal(kept["time"], time + LATER, "its time")
    alice.call("MSG_DELETE", {"chatId": SAVED, "messageIds": [waiting], "itemType": "DELAYED"})


@case("DLY-05")
def test_schedule_too_many(phone_and_laptop: Pair, limits: Limits, cid: Cid) -> None:
    """A chat accepts maxDelayedPerChat scheduled messages and refuses the next one."""
    most = limits["maxDelayedPerChat"]
    if most > MOST_DELAYED:
        skip(f"maxDelayedPerChat is {most}, too many to schedule: {LESS}")
    phone, _ = phone_and_laptop
    fire = now(phone) + LATER
    for _ in range(most):
        schedule(phone, "x", cid(), fire, chatId=SAVED)
    no_more(phone, "x", cid(), fire, chatId=SAVED)
    equal(len(scheduled(phone, SAVED)), most, "scheduled messages")


@case("DLY-05")
def test_schedule_too_many_in_all(phone_and_laptop: Pair, group: Group, limits: Limits, cid: Cid) -> None:
    """A message above maxDelayed is refused even in a chat with room, until another one is deleted."""
    most, of_chat = limits["maxDelayed"], limits["maxDelayedPerChat"]
    if most > MOST_DELAYED:
        skip(f"maxDelayed is {most}, too many to schedule: {LESS}")
    phone, _ = phone_and_laptop
    chats = [group(phone) for _ in range(0, most + 1, of_chat)]
    fire = now(phone) + LATER
    waiting = [
        schedule(phone, "x", cid(), fire, chatId=chats[number // of_chat])["message"]["id"]
        for number in range(most)
    ]
    no_more(phone, "x", cid(), fire, chatId=chats[-1])
    equal(sum(len(scheduled(phone, chat)) for chat in chats), most, "scheduled messages")
    gone = {"chatId": chats[0], "messageIds": waiting[:1], "itemType": "DELAYED"}
    phone.call("MSG_DELETE", gone)
    schedule(phone, "x", cid(), fire, chatId=chats[-1])


@case("DLY-05")
def test_schedule_too_much(phone_and_laptop: Pair, group: Group, limits: Limits, cid: Cid) -> None:
    """The server accepts only as many long messages as fit one reply with the list."""
    text = "語" * limits["maxTextUnits"]
    most, size = limits["maxReplyBytes"] // 2, len(text.encode())
    fewest, too_many = most // (size + MOST_BESIDE_TEXT), most // size + 1
    if too_many > min(MOST_DELAYED, limits["maxDelayedPerChat"], limits["maxDelayed"] - 1):
        skip(f"maxReplyBytes is {2 * most}, the room of {too_many} of the longest texts: {LESS}")
    phone, _ = phone_and_laptop
    chat, other = group(phone), group(phone)
    fire = now(phone) + LATER
    taken = 0
    while taken < too_many:
        seq = begin(phone, chat, cid(), text, delayedAttributes={"timeToFire": fire})
        if phone.answer(seq).command == wire.ERROR:
            break
        taken += 1
    check(fewest <= taken < too_many, f"{fewest} to {too_many - 1} texts of {size} bytes", taken)
    no_more(phone, text, cid(), fire, chatId=chat)
    equal(len(scheduled(phone, chat)), taken, "scheduled messages")
    schedule(phone, text, cid(), fire, chatId=other)
    # A deleted long message makes room for a short one. An edit cannot make the short one long.
    gone = {"chatId": chat, "messageIds": ids(scheduled(phone, chat))[:1], "itemType": "DELAYED"}
    phone.call("MSG_DELETE", gone)
    short = schedule(phone, "x", cid(), fire, chatId=chat)["message"]["id"]
    schedule(phone, text[:-MOST_BESIDE_TEXT], cid(), fire, chatId=chat)
    phone.refused("proto.payload", "MSG_EDIT", {"chatId": chat, "messageId": short, "text": text})


@case("DLY-06")
@pytest.mark.parametrize("named", ["userId", "chatId"])
def test_before_the_dialog(
    login: LogIn, newcomer: Newcomer, phone_and_laptop: Pair, cid: Cid, named: str
) -> None:
    """A dialog begins when the message is sent, not when it is scheduled."""
    phone, _ = phone_and_laptop
    other = login(newcomer("other"), interactive=False)
    chat = dialog(phone, other)
    place = {named: other.user_id if named == "userId" else chat}
    waiting = schedule(phone, "hi", cid(), now(phone) + SOON, **place)
    equal(waiting["chatId"], chat, "chat of the reply")
    equal(ids(scheduled(phone, chat)), [waiting["message"]["id"]], "what is scheduled")
    equal(phone.call("CHAT_INFO", {"chatIds": [chat]})["chats"], [], "the chat before")
    equal(other.push("NOTIF_CHAT", within=PATIENCE)["chat"]["id"], chat, "the chat that begins")
    equal(newest(other, chat)["text"], "hi", "its message")


@case("DLY-07")
def test_it_cannot_be_sent(login: LogIn, newcomer: Newcomer, phone_and_laptop: Pair, cid: Cid) -> None:
    """A message that cannot be sent stays scheduled, with an error; a new time makes the server retry."""
    phone, laptop = phone_and_laptop
    other = login(newcomer("other"), interactive=False)
    chat = dialog(phone, other)
    say(phone, chat, cid())
    forget(phone, laptop, other)
    waiting = schedule(phone, "well", cid(), now(phone) + SOON, chatId=chat)["message"]
    other.call("CONTACT_UPDATE", {"contactId": phone.user_id, "action": "BLOCK"})
    for device in (phone, laptop):
        push = device.push(
            "NOTIF_MSG_DELAYED", lambda push: "lastFireDelayedErrorTime" in push, within=PATIENCE
        )
        equal(push["message"]["id"], waiting["id"], "what could not be sent")
    check(chat_of(phone, chat)["lastFireDelayedErrorTime"] > 0, "a time of the failure", 0)
    equal(ids(scheduled(phone, chat)), [waiting["id"]], "what is scheduled")
    forget(other)
    other.call("CONTACT_UPDATE", {"contactId": phone.user_id, "action": "UNBLOCK"})
    attributes = {"timeToFire": now(phone), "notifySender": True}
    phone.call("MSG_EDIT", {"chatId": chat, "messageId": waiting["id"], "delayedAttributes": attributes})
    equal(other.push("NOTIF_MESSAGE", within=PATIENCE)["message"]["text"], "well", "what is sent then")


@case("DLY-08")
def test_another_device(phone_and_laptop: Pair, login: LogIn, group: Group, cid: Cid) -> None:
    """A delta has the chat when the user's scheduled messages changed; other users' deltas do not."""
    phone, laptop = phone_and_laptop
    bob = login("bob")
    chat, _ = group(phone, laptop, bob), group(phone, bob)
    known, bobs = marks(settled(laptop)), marks(settled(bob))
    schedule(phone, "later", cid(), now(phone) + LATER, chatId=chat)
    changed = only(login_again(laptop, **known)["chats"], "chat of the delta")
    equal(changed["id"], chat, "the chat")
    check(changed["lastDelayedUpdateTime"] > 0, "a time of the change", changed)
    equal(login_again(bob, **bobs).get("chats"), [], "chats of somebody else's delta")


@case("DLY-09")
def test_who_leaves(phone_and_laptop: Pair, login: LogIn, group: Group, cid: Cid) -> None:
    """The scheduled messages of a user who left are not sent, even after the user rejoins."""
    phone, _ = phone_and_laptop
    alice = login("alice")
    chat = group(alice, phone)
    number, fire = cid(), now(phone) + SOON
    waiting = schedule(phone, "well", number, fire, chatId=chat)["message"]["id"]
    phone.call("CHAT_LEAVE", {"chatId": chat})
    alice.call("CHAT_MEMBERS_UPDATE", {"chatId": chat, "userIds": [phone.user_id], "operation": "add"})
    equal(scheduled(phone, chat), [], "what is scheduled")
    # A retry after a lost reply does not send the message either.
    again = schedule(phone, "well", number, fire, chatId=chat)["message"]
    equal((again["id"], again.get("status")), (waiting, "REMOVED"), "the answer to a retry")
    # A message scheduled later is sent, but the earlier one is not.
    forget(alice)
    schedule(phone, "back", cid(), fire + 1, chatId=chat)
    equal(alice.push("NOTIF_MESSAGE", within=PATIENCE)["message"]["text"], "back", "what is sent")
    texts = [each["text"] for each in history(alice, chat, backward=20)]
    check("well" not in texts, "no word of who had left", texts)


@case("DLY-10")
def test_delete_scheduled(phone_and_laptop: Pair, group: Group, cid: Cid) -> None:
    """A deleted scheduled message is never sent."""
    phone, laptop = phone_and_laptop
    chat = group(phone, laptop)
    fire = now(phone) + SOON
    gone, kept = (schedule(phone, text, cid(), fire, chatId=chat)["message"]["id"] for text in ("a", "b"))
    stored = say(phone, chat, cid())["id"]
    forget(phone, laptop)
    value = {"chatId": chat, "messageIds": [gone, stored, NOBODY], "itemType": "DELAYED"}
    reply = phone.call("MSG_DELETE", value)
    equal(reply["messageIds"], [gone], "what is deleted")
    equal(sorted(reply["failedMessageIds"]), sorted([stored, NOBODY]), "what is not")
    equal(told(laptop)["messageIds"], [gone], "what the laptop is told")
    equal(laptop.push("NOTIF_MESSAGE", within=PATIENCE)["message"]["text"], "b", "what is sent")
    laptop.silence_by_fence(of=["NOTIF_MESSAGE"])
    check(kept not in ids(scheduled(phone, chat)), "nothing that is sent", kept)


@case("DLY-14")
@pytest.mark.parametrize("how", ["by the same device", "by another", "edited before", "after its time"])
def test_retry_of_deleted(phone_and_laptop: Pair, login: LogIn, group: Group, cid: Cid, how: str) -> None:
    """A retry after a lost reply does not reschedule a deleted message."""
    phone, laptop = phone_and_laptop
    bob = login("bob")
    chat = group(phone, laptop, bob)
    number, fire = cid(), now(phone) + SOON
    first = schedule(phone, "secret", number, fire, chatId=chat)["message"]["id"]
    if how == "edited before":
        laptop.call("MSG_EDIT", {"chatId": chat, "messageId": first, "text": "changed"})
    device = phone if how == "by the same device" else laptop
    gone = device.call("MSG_DELETE", {"chatId": chat, "messageIds": [first], "itemType": "DELAYED"})
    equal(gone["messageIds"], [first], "what is deleted")
    if how == "after its time":
        phone.stall(SOON)
    forget(phone, laptop, bob)
    again = schedule(phone, "secret", number, fire, chatId=chat)["message"]
    equal((again["id"], again.get("status")), (first, "REMOVED"), "the answer to the retry")
    equal((again.get("text", ""), again.get("attaches", [])), ("", []), "its content")
    check("delayedAttributes" not in again, "no attributes", again)
    equal(scheduled(phone, chat), [], "what is scheduled")
    # A message scheduled later is sent, but the deleted one is not.
    schedule(phone, "fence", cid(), now(phone) + SOON, chatId=chat)
    equal(bob.push("NOTIF_MESSAGE", within=PATIENCE)["message"]["text"], "fence", "what is sent")
    equal(schedule(phone, "secret", number, fire, chatId=chat)["message"]["id"], first, "a later retry")
    equal(say(phone, chat, number, "now")["text"], "now", "the same cid without a time")


@case("DLY-11")
def test_edit_scheduled(phone_and_laptop: Pair, group: Group, cid: Cid) -> None:
    """An edit can change the text or the time of a scheduled message alone."""
    phone, laptop = phone_and_laptop
    chat = group(phone, laptop)
    fire = now(phone) + LATER
    waiting = schedule(phone, "a", cid(), fire, chatId=chat)["message"]["id"]
    forget(phone, laptop)
    edited = phone.call("MSG_EDIT", {"chatId": chat, "messageId": waiting, "text": "b"})["message"]
    equal((edited["id"], edited["text"], edited["time"]), (waiting, "b", fire), "with another text")
    equal(told(laptop)["message"]["text"], "b", "what the laptop is told")
    attributes = {"timeToFire": now(phone) + SOON, "notifySender": False}
    edit = {"chatId": chat, "messageId": waiting, "delayedAttributes": attributes}
    edited = phone.call("MSG_EDIT", edit)["message"]
    equal((edited["text"], edited["time"]), ("b", attributes["timeToFire"]), "with another time")
    equal(laptop.push("NOTIF_MESSAGE", within=PATIENCE)["message"]["text"], "b", "what is sent")


@case("DLY-12")
def test_time_of_a_sent_message(alice: Device, cid: Cid) -> None:
    """An edit cannot change the time of a message that was sent."""
    sent = say(alice, SAVED, cid(), "sent")["id"]
    attributes = {"timeToFire": now(alice) + LATER, "notifySender": True}
    value = {"chatId": SAVED, "messageId": sent, "text": "x", "delayedAttributes": attributes}
    alice.refused("not.found", "MSG_EDIT", value)
    equal(newest(alice, SAVED)["text"], "sent", "the message")


@case("DLY-13")
def test_list(phone_and_laptop: Pair, login: LogIn, group: Group, cid: Cid) -> None:
    """The list has all of the caller's own messages in order of time, whatever page is requested."""
    phone, laptop = phone_and_laptop
    bob = login("bob")
    chat = group(phone, laptop, bob)
    fire = now(phone) + LATER
    last, first = (
        schedule(phone, "x", cid(), fire + late, chatId=chat)["message"]["id"] for late in (2_000, 1_000)
    )
    other = schedule(bob, "x", cid(), fire, chatId=chat)["message"]["id"]
    for fields in ({}, {"from": fire, "backward": 1}, {"from": 1, "forward": 1}, {"backward": 30}):
        equal(ids(scheduled(laptop, chat, **fields)), [first, last], f"what is scheduled, {fields}")
    equal(ids(scheduled(bob, chat)), [other], "what somebody else has scheduled")
