"""PSH: who gets which pushes, in which order, and who does not."""

from __future__ import annotations

import time
from typing import Any

import msgpack
import pytest

from tambour_conformance import wire
from tambour_conformance.bundle import Bundle
from tambour_conformance.cases.test_grp_channels import channel
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer, Note
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    BURST,
    LESS,
    SAVED,
    begin,
    burst,
    chain,
    dialog,
    history,
    ids,
    newest,
    only,
    previous,
    rise,
    same,
    say,
    time_out,
)
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame


def drained(*devices: Device) -> None:
    """Reads and drops everything that the devices have received so far."""
    for each in devices:
        each.fence()
        each.unread.clear()


def messages_pushed(device: Device) -> list[Frame]:
    device.fence()
    return device.pushes("NOTIF_MESSAGE")


def only_push(device: Device) -> Frame:
    return only(messages_pushed(device), f"message pushed to {device.name}")


# Messages.


@case("PSH-01")
def test_every_member_is_told(login: LogIn, group: Group, cid: Cid) -> None:
    """Every connection of every member gets every message, with the id of the message before it."""
    alice, others = login("alice"), [login("bob"), login("bob", "laptop"), login("carol"), login("dave")]
    chat = group(alice, *others)
    last = newest(alice, chat)["id"]
    for text in ("one", "two", "three"):
        sent = say(alice, chat, cid(), text)
        for each in others:
            push = only_push(each)
            equal(push["chatId"], chat, "chat of the push")
            same(push["message"], sent, "message pushed")
            equal(previous(push), last, "prevMessageId")
        last = sent["id"]


@case("PSH-01")
def test_previous_message_that_is_gone(login: LogIn, group: Group, cid: Cid) -> None:
    """`prevMessageId` names the previous message even if it was deleted or hidden."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    for for_me in (False, True):
        gone = say(alice, chat, cid())["id"]
        alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [gone], "forMe": for_me})
        drained(bob)
        say(alice, chat, cid())
        equal(previous(only_push(bob)), gone, "prevMessageId")


@case("PSH-01")
def test_first_message_of_a_dialog(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """The first message of a dialog has no `prevMessageId`; a push of the new dialog precedes it."""
    alice, nina = login("alice"), login(newcomer("nina"))
    sent = say(nina, dialog(alice, nina), cid())
    alice.fence()
    announced, pushed = alice.push("NOTIF_CHAT"), only_push(alice)
    check(
        alice.received.index(announced) < alice.received.index(pushed), "the chat before the message", "not"
    )
    equal(announced["chat"]["id"], dialog(alice, nina), "the chat announced")
    equal(pushed["message"]["id"], sent["id"], "the message pushed")
    equal(previous(pushed), None, "prevMessageId")


@case("PSH-02")
def test_five_hundred_messages(login: LogIn, group: Group, cid: Cid) -> None:
    """Five hundred messages, sent as fast as possible, come in the order of their ids, without a gap."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = ids(burst(alice, chat, [cid() for _ in range(500)], listeners=[bob]))
    pushes = messages_pushed(bob)
    equal([push["message"]["id"] for push in pushes], sent, "messages pushed")
    rise([push["message"]["id"] for push in pushes], "ids")
    chain(pushes)


@case("PSH-02")
def test_messages_of_three_senders(login: LogIn, group: Group, cid: Cid) -> None:
    """Three users send at once; two others get all messages in the same order, as an unbroken chain."""
    senders = [login("alice"), login("bob"), login("carol")]
    listeners = [login("dave"), login("alice", "laptop")]
    chat = group(senders[0], *senders[1:], *listeners)
    sent: set[int] = set()
    for _ in range(10):
        under_way = [(each, begin(each, chat, cid())) for _ in range(BURST // 6) for each in senders]
        sent |= {each.reply(seq)["message"]["id"] for each, seq in under_way}
        for each in (*senders, *listeners):
            each.fence(grace=False)
    for each in listeners:
        pushes = messages_pushed(each)
        equal([push["message"]["id"] for push in pushes], sorted(sent), f"messages pushed to {each.name}")
        chain(pushes)


@case("PSH-03")
@pytest.mark.parametrize("where", ["group", "dialog", "saved"])
def test_own_devices(login: LogIn, group: Group, cid: Cid, where: str) -> None:
    """The sender's other device gets the message with its cid; the sending device gets no push."""
    phone, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat = {
        "group": lambda: group(phone, laptop, bob),
        "dialog": lambda: dialog(phone, bob),
        "saved": lambda: SAVED,
    }[where]()
    say(phone, chat, cid())
    drained(phone, laptop, bob)
    number = cid()
    sent = say(phone, chat, number)
    push = only_push(laptop)
    equal(push["chatId"], chat, "chat of the push")
    same(push["message"], sent, "message pushed")
    equal(push["message"]["cid"], number, "its cid")
    phone.silence_by_fence()
    say(laptop, chat, number)
    push = only_push(phone)
    equal(push["message"]["cid"], number, "cid of the laptop's message")
    laptop.silence_by_fence()


@case("PSH-03")
def test_two_connections_of_one_device(login: LogIn, group: Group, cid: Cid) -> None:
    """Another connection with the sender's token also gets the push."""
    one, other, bob = login("alice"), login("alice"), login("bob")
    chat = group(one, other, bob)
    sent = say(one, chat, cid())
    equal([each["message"]["id"] for each in messages_pushed(other)], [sent["id"]], "messages pushed")
    one.silence_by_fence()


@case("PSH-04")
@pytest.mark.parametrize("how", ["history", "by id"])
def test_pushed_means_stored(login: LogIn, group: Group, cid: Cid, how: str) -> None:
    """A client can read a message as soon as it gets the push, even while more are being sent."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    for _ in range(30):
        seqs = [begin(alice, chat, cid()) for _ in range(5)]
        for _ in range(5):
            pushed = bob.push("NOTIF_MESSAGE")["message"]
            if how == "history":
                found = history(bob, chat, backward=10, **{"from": pushed["time"]})
            else:
                found = bob.call("MSG_GET", {"chatId": chat, "messageIds": [pushed["id"]]})["messages"]
            check(pushed["id"] in ids(found), f"message {pushed['id']} among those found", ids(found))
        for seq in seqs:
            alice.reply(seq)


@case("PSH-04")
def test_pushed_changes_are_stored(login: LogIn, group: Group, cid: Cid) -> None:
    """Edits, deletions and marks are already stored when their pushes arrive."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    for number in range(10):
        sent = say(alice, chat, cid())["id"]
        one = {"chatId": chat, "messageIds": [sent]}
        edit = alice.send("MSG_EDIT", {"chatId": chat, "messageId": sent, "text": f"edit {number}"})
        bob.push("NOTIF_MESSAGE", lambda push: push["message"].get("status") == "EDITED")
        equal([each["text"] for each in bob.call("MSG_GET", one)["messages"]], [f"edit {number}"], "text")
        alice.reply(edit)
        removal = alice.send("MSG_DELETE", one)
        bob.push("NOTIF_MSG_DELETE")
        equal(bob.call("MSG_GET", one)["messages"], [], "messages found")
        alice.reply(removal)


def ours(device: Device) -> None:
    """Skips the case for foreign servers, whose PING need not be a fence for pushes."""
    if device.target.foreign:
        skip("a promise of Tambour's own, on which clients of other servers do not rely")


@case("PSH-10")
def test_pushed_before_a_ping(login: LogIn, group: Group, cid: Cid) -> None:
    """If a request is answered before a PING is sent, its pushes come before the answer to the PING."""
    alice, bob = login("alice"), login("bob")
    ours(alice)
    chat = group(alice, bob)
    for _ in range(200):
        sent = say(alice, chat, cid())
        ping = bob.send("PING", {})
        answer = bob.reply(ping)
        before = bob.received[: bob.received.index(answer)]
        pushed = [each["message"]["id"] for each in before if each.is_push and "message" in each.value]
        check(sent["id"] in pushed, f"message {sent['id']} before the answer to PING", pushed[-3:])
        bob.unread.clear()


@case("PSH-10")
def test_pushed_before_a_ping_while_busy(login: LogIn, group: Group, cid: Cid) -> None:
    """A PING is also a fence under load: others send long requests, and the client sends two PINGs."""
    alice, bob = login("alice"), login("bob")
    ours(alice)
    busy = [login("carol"), login("dave"), login("carol"), login("dave"), login("carol"), login("dave")]
    chat = group(alice, bob)
    _, long = alice.packet("PING", {"padding": ["x" * 8] * 50_000}, seq=0, compress=True)
    for _ in range(40):
        for each in busy:
            each.raw(long)
        bob.send("PING", {})
        sent = say(alice, chat, cid())
        answer = bob.reply(bob.send("PING", {}))
        before = bob.received[: bob.received.index(answer)]
        pushed = [each["message"]["id"] for each in before if each.is_push and "message" in each.value]
        check(sent["id"] in pushed, f"message {sent['id']} before the answer to PING", pushed[-3:])
        bob.unread.clear()
        for each in busy:
            each.reply(0)


# Typing and marks.


@case("PSH-05")
@pytest.mark.parametrize("where", ["group", "dialog"])
def test_typing(login: LogIn, group: Group, cid: Cid, where: str) -> None:
    """Typing is pushed to all connections of the other members, and to none of the typing user."""
    alice, laptop = login("alice"), login("alice", "laptop")
    bob, bobs_laptop, carol = login("bob"), login("bob", "laptop"), login("carol")
    if where == "group":
        chat = group(alice, laptop, bob, bobs_laptop)
    else:
        chat = dialog(alice, bob)
        say(alice, chat, cid())
    drained(alice, laptop, bob, bobs_laptop, carol)
    for kind in ("TEXT", "AUDIO", None):
        alice.call("MSG_TYPING", {"chatId": chat, "type": kind})
        for each in (bob, bobs_laptop):
            push = each.push("NOTIF_TYPING")
            equal((push["chatId"], push["userId"], push.get("type")), (chat, alice.user_id, kind), "the push")
    for each in (alice, laptop, bob, bobs_laptop, carol):
        each.silence_by_fence()


@case("PSH-05")
def test_typing_to_oneself(login: LogIn) -> None:
    """Typing in saved messages causes no push, not even to the user's other devices."""
    alice, laptop = login("alice"), login("alice", "laptop")
    alice.call("MSG_TYPING", {"chatId": SAVED, "type": "TEXT"})
    laptop.silence_by_fence()
    alice.silence_by_fence()


@case("PSH-05")
def test_typing_in_a_channel(login: LogIn, cid: Cid) -> None:
    """Typing in a channel causes no push, to readers or to the owner."""
    alice, bob = login("alice"), login("bob")
    chat = channel(cid, alice, bob)
    for one, other in ((alice, bob), (bob, alice)):
        one.call("MSG_TYPING", {"chatId": chat, "type": "TEXT"})
        other.silence_by_fence()


@case("PSH-06")
@pytest.mark.parametrize("where", ["group", "dialog"])
def test_marks(login: LogIn, group: Group, cid: Cid, where: str) -> None:
    """A read mark is pushed to the other members and to the reader's other device."""
    alice, bob, laptop, carol = login("alice"), login("bob"), login("bob", "laptop"), login("carol")
    chat = group(alice, bob, laptop) if where == "group" else dialog(alice, bob)
    for _ in range(2):
        sent = say(alice, chat, cid())
        drained(alice, bob, laptop, carol)
        bob.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": sent["id"]})
        for each in (alice, laptop):
            push = each.push("NOTIF_MARK")
            equal((push["chatId"], push["userId"]), (chat, bob.user_id), "chat and reader")
            equal((push["mark"], push["setAsUnread"]), (sent["time"], False), "mark")
        for each in (alice, bob, laptop, carol):
            each.silence_by_fence()


@case("PSH-06")
def test_marks_of_a_channel(login: LogIn, cid: Cid) -> None:
    """A read mark in a channel is pushed only to the reader's other device."""
    alice, bob, laptop, carol = login("alice"), login("bob"), login("bob", "laptop"), login("carol")
    chat = channel(cid, alice, bob, laptop, carol)
    post = say(alice, chat, cid())
    drained(alice, bob, laptop, carol)
    bob.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": post["id"]})
    push = laptop.push("NOTIF_MARK")
    equal((push["chatId"], push["userId"], push["mark"]), (chat, bob.user_id, post["time"]), "the push")
    for each in (alice, bob, laptop, carol):
        each.silence_by_fence()


@case("PSH-06")
def test_marks_of_a_large_group(
    login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, limits: Limits
) -> None:
    """In a group above fanOutMembers, the reader's other device still gets the read mark."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    others = [login(newcomer(), interactive=False) for _ in range(limits["fanOutMembers"] - 1)]
    chat = group(alice, bob, laptop, *others)
    sent = say(alice, chat, cid())
    bob.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": sent["id"]})
    push = laptop.push("NOTIF_MARK")
    equal((push["chatId"], push["userId"], push["mark"]), (chat, bob.user_id, sent["time"]), "the push")


# Receipts.


@case("PSH-07")
@pytest.mark.parametrize("receipt", ["none", "cmd 1", "NOTIF_MESSAGE", "both, twice", "of something else"])
def test_receipts(login: LogIn, group: Group, cid: Cid, receipt: str) -> None:
    """Each push comes once, whatever receipts the client sends, and without receipts."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    for _ in range(5):
        sent = say(alice, chat, cid())
        push = only_push(bob)
        equal(push["message"]["id"], sent["id"], "the message pushed")
        value = {"chatId": chat, "messageId": str(sent["id"])}
        for _ in range(2 if receipt == "both, twice" else 1):
            if receipt in ("cmd 1", "both, twice"):
                bob.send("NOTIF_MESSAGE", value, seq=push.seq, command=wire.OK)
            if receipt in ("NOTIF_MESSAGE", "both, twice"):
                bob.call("NOTIF_MESSAGE", value)
            if receipt == "of something else":
                other = {"chatId": -1, "messageId": 1}
                bob.call("NOTIF_MESSAGE", other)
                bob.send("NOTIF_TYPING", {}, seq=(push.seq + 7) % 256, command=wire.OK)
        bob.silence_by_fence()
    alice.silence_by_fence()


@case("PSH-13")
@pytest.mark.parametrize(
    "value",
    [
        {},
        {"chatId": 1, "messageId": 1},
        {"messageIds": ["1", 2, None], "status": {"a": [1.5]}, "x": msgpack.ExtType(1, b"")},
    ],
    ids=["empty", "usual", "strange"],
)
def test_delivery(login: LogIn, value: dict[str, Any]) -> None:
    """MSG_DELIVERY is answered, whatever it contains."""
    alice = login("alice")
    alice.call("MSG_DELIVERY", value)
    alice.silence_by_fence()


# Connections that get no pushes.


def everything(device: Device, chat: int, cid: Cid) -> None:
    """Makes every change to a chat that is pushed to others."""
    sent = say(device, chat, cid())
    device.call("MSG_TYPING", {"chatId": chat, "type": "TEXT"})
    device.call("MSG_EDIT", {"chatId": chat, "messageId": sent["id"], "text": "edited"})
    device.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, "messageId": sent["id"]})
    device.call("CHAT_MARK", {"type": "SET_AS_UNREAD", "chatId": chat, "messageId": sent["id"]})
    device.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent["id"]]})


@case("PSH-08")
def test_no_member(login: LogIn, group: Group, cid: Cid) -> None:
    """A user outside a group or dialog gets no pushes from it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    # Carol also tries to subscribe to the chat, and is refused.
    mine, chat = group(carol, alice, bob), group(alice, bob)
    carol.refused("chat.not.found", "CHAT_SUBSCRIBE", {"chatId": chat})
    say(carol, mine, cid())
    for each in (chat, dialog(alice, bob), SAVED):
        everything(alice, each, cid)
    carol.silence_by_fence()


@case("PSH-08")
@pytest.mark.parametrize("state", ["connected", "initialized", "refused"])
def test_no_login(login: LogIn, connect: Connect, group: Group, cid: Cid, state: str) -> None:
    """A member's connection without a login gets no pushes, whatever else it sent."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    client = connect("bob.phone", init=state != "connected")
    if state == "refused":
        client.refused("login.token", "LOGIN", {"token": bob.token + "x"})
    everything(alice, chat, cid)
    client.fence()
    equal([each for each in client.received if each.is_push], [], "pushes")


@case("PSH-08")
@pytest.mark.parametrize("how", ["LOGOUT", "SESSIONS_CLOSE"])
def test_after_the_session(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, how: str) -> None:
    """A connection gets no pushes after its session has ended."""
    alice, nina = login("alice"), newcomer("nina")
    phone, laptop = login(nina), login(nina, "laptop")
    chat = group(alice, phone, laptop)
    (phone if how == "LOGOUT" else laptop).call(how)
    everything(alice, chat, cid)
    phone.ends()
    phone.closed()
    pushes = [each for each in phone.received if each.is_push and each.get("chatId") == chat]
    check(len(pushes) <= 1, "no push but that of the group's first message", len(pushes))


@case("PSH-08")
def test_empty_handed_strangers(client: Connection, login: LogIn, group: Group, cid: Cid) -> None:
    """A message that was sent before a login comes with the login, not as a push."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    token = bob.token
    bob.close()
    sent = say(alice, chat, cid())
    reply = client.call("LOGIN", {"token": token})
    equal(reply["chats"][0]["lastMessage"]["id"], sent["id"], "the last message of the newest chat")
    client.silence_by_fence()


@case("PSH-09")
def test_classic_pushes(
    login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, protocol: Bundle, note: Note
) -> None:
    """A client without capabilities gets pushes only of the classic surface.

    The case accepts unknown fields, which a later release may add. It accepts no unknown push opcodes,
    because a later release must not send them to this client.
    """
    alice, nina = login("alice"), login(newcomer("nina"))
    say(nina, dialog(nina, alice), cid())
    for chat in (group(alice, nina), dialog(nina, alice)):
        everything(alice, chat, cid)
    nina.fence()
    served = {each.number: each.fields for each in protocol.served.values() if each.fields.get("push")}
    classic = {number for number, fields in served.items() if not fields.get("capability")}
    if not any(each.get("capability") for fields in served.values() for each in (fields, *fields["push"])):
        note("no push of this release needs a capability: only opcodes that nobody knows could be wrong")
    pushes = [each for each in nina.received if each.is_push]
    check(len(pushes) >= 8, "pushes of all that happened", len(pushes))
    for each in pushes:
        check(each.opcode in classic, "a push that every client knows", f"opcode {each.opcode}")
        needing = {field["key"] for field in served[each.opcode]["push"] if field.get("capability")}
        equal(
            needing & set(each.value), set(), f"fields of {protocol.name(each.opcode)} that need a capability"
        )


@case("PSH-11")
@pytest.mark.parametrize("subscribe", [None, True, False], ids=["never", "opened", "closed"])
def test_hint_only(login: LogIn, group: Group, cid: Cid, subscribe: bool | None) -> None:
    """Pushes come once, whether the client has said that the chat is open, or closed, or nothing."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    if subscribe is not None:
        bob.call("CHAT_SUBSCRIBE", {"chatId": chat, "subscribe": subscribe})
    sent = say(alice, chat, cid())
    equal([each["message"]["id"] for each in messages_pushed(bob)], [sent["id"]], "messages pushed")
    alice.call("MSG_TYPING", {"chatId": chat})
    bob.push("NOTIF_TYPING")
    bob.silence_by_fence()


# Presence.


def presence(device: Device, user: int, status: int, within: float | None = None) -> Frame:
    push = device.push("NOTIF_PRESENCE", lambda push: push["userId"] == user, within)
    equal(push["presence"].get("status"), status, "status")
    return push


@case("PSH-12")
def test_presence(login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits) -> None:
    """A dialog partner gets a push when a user goes online or offline, and sees the state at LOGIN."""
    delay = time_out(limits, "presenceOfflineDelayMs")
    alice, nina = login("alice"), newcomer("nina")
    first = login(nina, interactive=False)
    user = first.user_id
    say(first, dialog(alice, first), cid())
    first.close()
    drained(alice)
    for _ in range(2):
        online = login(nina)
        presence(alice, user, 1)
        shown = login("alice", "laptop").login["presence"][str(user)]
        equal(shown["status"], 1, "status in the reply to LOGIN")
        online.close()
        gone = presence(alice, user, 0, within=delay + alice.target.timeout)
        check(gone["presence"]["seen"] > 0, "when they were seen", gone.value)
        shown = login("alice", "laptop").login["presence"][str(user)]
        equal(shown.get("status", 0), 0, "status in the reply to LOGIN")


@case("PSH-12")
def test_presence_of_two_devices(login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits) -> None:
    """A user is online while a PING of any device has said that it is in the foreground."""
    delay = time_out(limits, "presenceOfflineDelayMs")
    alice, nina = login("alice"), newcomer("nina")
    phone, laptop = login(nina, interactive=False), login(nina, "laptop", interactive=False)
    user = phone.user_id
    say(phone, dialog(alice, phone), cid())
    drained(alice)
    phone.call("PING", {"interactive": True})
    presence(alice, user, 1)
    laptop.call("PING", {"interactive": True})
    phone.call("PING", {"interactive": False})
    alice.stall(delay * 1000 + 50)
    alice.silence_by_fence(of=["NOTIF_PRESENCE"])
    laptop.close()
    presence(alice, user, 0, within=delay + alice.target.timeout)


@case("PSH-16")
@pytest.mark.parametrize("stays", [True, False], ids=["comes", "goes"])
def test_presence_in_quick_turns(
    login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits, stays: bool
) -> None:
    """Twenty quick changes cause at most one push per delay, and the last push has the final state."""
    delay = time_out(limits, "presenceOfflineDelayMs")
    alice, nina = login("alice"), login(newcomer("nina"))
    user = nina.user_id
    say(nina, dialog(alice, nina), cid())
    nina.call("PING", {"interactive": False})
    presence(alice, user, 0, within=delay + alice.target.timeout)
    began = time.monotonic()
    for _ in range(20):
        nina.call("PING", {"interactive": True})
        nina.call("PING", {"interactive": False})
    if stays:
        nina.call("PING", {"interactive": True})
    alice.stall(3 * delay * 1000)
    alice.fence()
    turns = 1 + (time.monotonic() - began) / delay
    told = [push for push in alice.pushes("NOTIF_PRESENCE") if push["userId"] == user]
    check(len(told) <= turns, f"at most {turns:.1f} pushes", len(told))
    last = told[-1]["presence"].get("status") if told else 0
    equal(last, int(stays), "status told last")


@case("PSH-17")
def test_presence_of_somebody_known_to_many(
    login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits
) -> None:
    """Only the most recent followers get a push of presence, at most presencePushes of them."""
    delay, most = time_out(limits, "presenceOfflineDelayMs"), limits["presencePushes"]
    if most > 20:
        skip(f"presencePushes is {most}, too many to log in: {LESS}")
    nina = login(newcomer("nina"))
    followers = [login(newcomer(f"follower {number}")) for number in range(most + 1)]
    for follower in followers:
        say(follower, dialog(follower, nina), cid())
    drained(*followers)
    nina.call("PING", {"interactive": False})
    for follower in followers[1:]:
        presence(follower, nina.user_id, 0, within=delay + follower.target.timeout)
    followers[0].silence_by_fence(of=["NOTIF_PRESENCE"])
    asked = followers[0].call("CONTACT_PRESENCE", {"contactIds": [nina.user_id]})["presence"]
    equal(asked[str(nina.user_id)].get("status", 0), 0, "status for who asks")


@case("PSH-18")
def test_what_is_unread(login: LogIn, group: Group, cid: Cid) -> None:
    """Pushes have the receiver's unread count only for clients that named no capability."""
    alice, bob, carol = login("alice"), login("bob"), login("carol", capabilities=["history-more"])
    chat = group(alice, bob, carol)
    drained(bob, carol)
    sent = [say(alice, chat, cid()) for _ in range(3)]
    bob.fence()
    carol.fence()
    for push in carol.pushes("NOTIF_MESSAGE"):
        equal({"ttl", "mark", "unread"} & set(push.value), set(), "what is for classic clients")
    pushes = bob.pushes("NOTIF_MESSAGE")
    equal(pushes[-1]["ttl"], False, "ttl")
    seen = bob.call("CHAT_INFO", {"chatIds": [chat]})["chats"][0]
    equal(pushes[-1]["unread"], seen["newMessages"], "unread")
    equal(pushes[-1]["mark"], seen["participants"][str(bob.user_id)], "mark")
    bob.call(
        "CHAT_MARK",
        {"chatId": chat, "messageId": sent[1]["id"], "mark": sent[1]["time"], "type": "READ_MESSAGE"},
    )
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent[2]["id"]], "forMe": False})
    drained(bob)
    say(alice, chat, cid())
    push = only_push(bob)
    equal((push["mark"], push["unread"]), (sent[1]["time"], 1), "mark and unread afterwards")
