"""TAM: TamTam apps."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, LogIn, Newcomer
from tambour_conformance.people import Account, Device, People
from tambour_conformance.talk import SAVED, history, only, say
from tambour_conformance.verdict import case, check, equal
from tambour_conformance.wire import Frame

NIL = b"\xc0"
#: The user agent of the apps. It has no build and no ids; its `locale` allows refusals with a text.
AGENT = {
    "deviceType": "ANDROID",
    "appVersion": "2.34.1",
    "osVersion": "9",
    "locale": "ru",
    "deviceName": "Redmi 5",
    "screen": "hdpi",
    "timezone": "Europe/Moscow",
}
#: The fields that every user object has.
CONTACT = {"id", "accountStatus", "updateTime", "names", "options"}


def app(connect: Connect, name: str, capabilities: list[str] | None = None) -> Device:
    """Opens a connection as an app and sends SESSION_INIT."""
    connection = connect(name, init=False, kind=Device)
    assert isinstance(connection, Device)
    hello: dict[str, Any] = {"userAgent": AGENT}
    if capabilities is not None:
        hello["capabilities"] = capabilities
    connection.call("SESSION_INIT", hello)
    return connection


def ask(connection: Connection, phone: str, **fields: Any) -> Frame:
    """Sends AUTH_REQUEST."""
    return connection.call("AUTH_REQUEST", {"phone": phone, **fields})


def check_code(connection: Connection, accounts: People, account: Account, kind: str = "PHONE") -> Frame:
    """Sends AUTH_REQUEST and AUTH as an app does; returns the reply to AUTH."""
    token = ask(connection, account.phone, requestType="SMS")["verifyToken"]
    code = {"token": token, "verifyCode": accounts.code(account), "authTokenType": kind}
    return connection.call("AUTH", code)


def enter(connection: Device, accounts: People, account: Account) -> Frame:
    """Signs up with a new phone, or signs in with a known one; returns the reply to AUTH_CONFIRM."""
    kind, token = only(list(check_code(connection, accounts, account)["tokenTypes"].items()), "token")
    value = {"token": token, "tokenType": kind, "deviceType": "ANDROID", "deviceId": "5d1c0c00"}
    if kind == "NEW":
        value["name"] = account.name.capitalize()
    reply = connection.call("AUTH_CONFIRM", value)
    connection.account, connection.token = account, reply["token"]
    connection.user_id = account.user_id = reply["profile"]["id"]
    return reply


def log_in(connection: Device, token: str) -> Frame:
    return connection.call("LOGIN", {"token": token, "interactive": True, "chatsSync": 0})


def in_form(profile: dict[str, Any]) -> None:
    """Checks that a profile has the form that the apps read."""
    check(set(profile) >= CONTACT and "contact" not in profile, "the contact itself", profile)
    name = only(profile["names"], "name")
    check(set(name) == {"name", "type"} and name["type"] == "TT", "a name and the type TT", name)


# Choosing the dialect.


@case("TAM-01")
@pytest.mark.parametrize("clue", ["requestType", "PHONE", "AUTH"])
def test_tamtam_clue(connect: Connect, accounts: People, newcomer: Newcomer, clue: str) -> None:
    """Each kind of clue in a sign-in is enough to select the dialect."""
    tanya = newcomer("tanya")
    enter(app(connect, "first"), accounts, tanya)
    connection = app(connect, "second")
    if clue == "PHONE":
        asked = ask(connection, tanya.phone)
        check("verifyToken" not in asked.value, "nothing of the dialect without a clue", asked.value)
        code = {"token": asked["token"], "verifyCode": accounts.code(tanya), "authTokenType": clue}
        checked = connection.call("AUTH", code)
    else:
        checked = check_code(connection, accounts, tanya)
    equal(set(checked["tokenTypes"]), {"AUTH"}, "the kind of token")
    in_form(checked["profile"])
    if clue == "AUTH":
        connection = app(connect, "third")
    value = {"token": checked["tokenTypes"]["AUTH"], "tokenType": "AUTH"}
    in_form(connection.call("AUTH_CONFIRM", value)["profile"])


@case("TAM-02")
def test_tamtam_first_clue(connect: Connect, accounts: People, newcomer: Newcomer, login: LogIn) -> None:
    """A clue has no effect after an earlier clue or after a login."""
    tanya = newcomer("tanya")
    enter(app(connect, "first"), accounts, tanya)
    other = app(connect, "other")
    token = ask(other, tanya.phone, type="START_AUTH")["token"]
    code = {"token": token, "verifyCode": accounts.code(tanya), "authTokenType": "PHONE"}
    checked = other.call("AUTH", code)
    equal(set(checked["tokenAttrs"]), {"LOGIN"}, "the kind of token")
    check("contact" in checked["profile"], "a profile with a contact", checked["profile"])

    again = app(connect, "again")
    ask(again, tanya.phone, requestType="SMS")
    asked = ask(again, tanya.phone, type="RESEND")
    check("verifyToken" in asked.value, "the dialect after another clue", asked.value)

    alice = login("alice")
    asked = ask(alice, tanya.phone, requestType="SMS")
    check("verifyToken" not in asked.value, "no dialect after a login", asked.value)


@case("TAM-03")
def test_tamtam_token(connect: Connect, accounts: People, newcomer: Newcomer) -> None:
    """LOGIN is answered in the dialect of its token, whatever SESSION_INIT says."""
    tanya = newcomer("tanya")
    token = enter(app(connect, "first"), accounts, tanya)["token"]
    connection = connect("plain", kind=Device)
    assert isinstance(connection, Device)
    in_form(log_in(connection, token)["profile"])


@case("TAM-04")
def test_tamtam_capability(connect: Connect, accounts: People, newcomer: Newcomer) -> None:
    """A client that named a capability is served without the dialect, whatever clues it sends."""
    tanya = newcomer("tanya")
    token = enter(app(connect, "first"), accounts, tanya)["token"]
    connection = app(connect, "modern", capabilities=["history-more"])
    asked = ask(connection, tanya.phone, requestType="SMS")
    check("verifyToken" not in asked.value, "nothing of the dialect", asked.value)
    code = {"token": asked["token"], "verifyCode": accounts.code(tanya), "authTokenType": "PHONE"}
    equal(set(connection.call("AUTH", code)["tokenAttrs"]), {"LOGIN"}, "the kind of token")
    profile = log_in(connection, token)["profile"]
    check("contact" in profile, "a profile with a contact", profile)


# In the dialect.


@case("TAM-05")
def test_tamtam_tokens(connect: Connect, accounts: People, newcomer: Newcomer) -> None:
    """A NEW token creates an account and an AUTH token logs in, each once; LOGIN refuses both."""
    tanya = newcomer("tanya")
    for kind in ("NEW", "AUTH"):
        connection = app(connect, kind)
        checked = check_code(connection, accounts, tanya)
        equal(set(checked["tokenTypes"]), {kind}, "the kind of token")
        token = checked["tokenTypes"][kind]
        equal(checked["tokenAttrs"], {kind: {"token": token}}, "tokenAttrs")
        connection.refused("login.token", "LOGIN", {"token": token})
        value: dict[str, Any] = {"token": token, "tokenType": kind}
        if kind == "NEW":
            connection.refused("proto.payload", "AUTH_CONFIRM", value)
            value["name"] = "Tanya Tam"
        reply = connection.call("AUTH_CONFIRM", value)
        equal(only(reply["profile"]["names"], "name")["name"], "Tanya Tam", "the name")
        equal(reply["tokenType"], "LOGIN", "tokenType")
        connection.refused("error.code.expired", "AUTH_CONFIRM", value)
        log_in(app(connect, f"{kind} again"), reply["token"])


@case("TAM-06")
def test_tamtam_end_of_a_token(connect: Connect, accounts: People, newcomer: Newcomer) -> None:
    """After SESSIONS_CLOSE an AUTH token that was already issued is refused."""
    tanya = newcomer("tanya")
    first = app(connect, "first")
    enter(first, accounts, tanya)
    enter(app(connect, "second"), accounts, tanya)
    third = app(connect, "third")
    token = check_code(third, accounts, tanya)["tokenTypes"]["AUTH"]
    first.call("SESSIONS_CLOSE", {})
    third.refused("error.code.expired", "AUTH_CONFIRM", {"token": token, "tokenType": "AUTH"})


@case("AUT-30")
def test_registration_under_one_name(connect: Connect, accounts: People, newcomer: Newcomer) -> None:
    """Any client can register with `name` in place of first and last name."""
    nina = newcomer("nina")
    client = connect("client")
    token = ask(client, nina.phone, type="START_AUTH")["token"]
    code = {"token": token, "verifyCode": accounts.code(nina), "authTokenType": "CHECK_CODE"}
    new = client.call("AUTH", code)["tokenAttrs"]["REGISTER"]["token"]
    reply = client.call("AUTH_CONFIRM", {"token": new, "tokenType": "REGISTER", "name": "Nina Nin"})
    name = only(reply["profile"]["contact"]["names"], "name")
    equal((name["firstName"], name.get("lastName")), ("Nina Nin", None), "names")


@case("TAM-07", "TAM-08", "TAM-11")
def test_tamtam_conversation(
    connect: Connect, accounts: People, newcomer: Newcomer, login: LogIn, cid: Cid
) -> None:
    """An app signs up, signs in on another device, chats and reconnects; no request is refused."""
    tanya = newcomer("tanya")
    phone = app(connect, "phone")
    phone.call("PING", payload=NIL)
    in_form(enter(phone, accounts, tanya)["profile"])
    in_form(log_in(phone, phone.token)["profile"])
    phone.call("CONTACT_INFO", {"contactIds": [phone.user_id]})

    laptop = app(connect, "laptop")
    laptop.call("PING", payload=NIL)
    in_form(enter(laptop, accounts, tanya)["profile"])
    in_form(log_in(laptop, laptop.token)["profile"])

    bob = login(newcomer("bob"))
    accounts.introduce([bob, phone])
    chat = bob.user_id ^ phone.user_id
    message = {"cid": cid(), "text": "hi", "type": "USER"}
    # Apps send messages without `elements` and `attaches`.
    sent = phone.call("MSG_SEND", {"chatId": chat, "type": "USER", "message": message})["message"]
    equal(bob.push("NOTIF_MESSAGE")["message"]["id"], sent["id"], "the message pushed")
    push = laptop.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
    equal(push["message"]["id"], sent["id"], "the message pushed to the other device")
    answer = say(bob, chat, cid(), "hello")
    equal(phone.push("NOTIF_MESSAGE")["unread"], 1, "unread")
    phone.call("CHAT_MARK", {"chatId": chat, "type": "READ_MESSAGE", "mark": answer["time"]})
    say(phone, SAVED, cid(), "a note")

    back = app(connect, "back")
    there = log_in(back, phone.token)
    in_form(there["profile"])
    equal([each["id"] for each in there["chats"]], [chat], "chats without saved messages")
    for contact in there["contacts"]:
        in_form(contact)
    equal([each["text"] for each in history(back, chat, backward=10)], ["hi", "hello"], "the dialog")
    equal([each["text"] for each in history(back, SAVED, backward=10)], ["a note"], "saved messages")
    in_form(only(back.call("CONTACT_INFO", {"contactIds": [bob.user_id]})["contacts"], "contact"))
    equal(len(back.call("SESSIONS_INFO", payload=NIL)["sessions"]), 2, "sessions")
    profile = back.call("PROFILE", {"name": "Tatyana"})["profile"]
    in_form(profile)
    equal(only(profile["names"], "name")["name"], "Tatyana", "the name")
    in_form(laptop.push("NOTIF_PROFILE")["profile"])
    back.call("CHAT_COMPLAIN", {"chatId": chat, "complaint": "SPAM"})


@case("TAM-09")
def test_tamtam_links(connect: Connect, accounts: People, newcomer: Newcomer, login: LogIn, cid: Cid) -> None:
    """The server writes a chat's link with the address of TamTam, and accepts it with any address."""
    alice = login("alice")
    control = {"_type": "CONTROL", "event": "new", "chatType": "CHAT", "title": "conformance", "userIds": []}
    chat = alice.call("MSG_SEND", {"message": {"cid": cid(), "attaches": [control]}})["chatId"]
    alice.call("CHAT_UPDATE", {"chatId": chat, "options": {"MEMBERS_CAN_SEE_PRIVATE_LINK": True}})
    link = alice.call("CHAT_UPDATE", {"chatId": chat, "revokePrivateLink": True})["chat"]["link"]
    tanya = app(connect, "tanya")
    enter(tanya, accounts, newcomer("tanya"))
    for each in (link, f"tt.me/{link}", f"https://tt.me/{link}", f"https://tamtam.chat/{link}"):
        found = tanya.call("LINK_INFO", {"link": each})["chat"]
        equal(found["id"], chat, "the chat")
    joined = tanya.call("CHAT_JOIN", {"link": f"https://tt.me/{link}"})["chat"]
    equal(joined["link"], f"https://tt.me/{link}", "the link")


@case("TAM-10")
@pytest.mark.parametrize("number", [78, 84, 94, 256])
def test_tamtam_moved_number(connect: Connect, accounts: People, newcomer: Newcomer, number: int) -> None:
    """An opcode number with a new meaning is refused without a text, and the connection stays open."""
    tanya = app(connect, "tanya")
    enter(tanya, accounts, newcomer("tanya"))
    refusal = tanya.refused("proto.opcode", number, {"chatId": 1})
    check("localizedMessage" not in refusal.value, "no text for people", refusal.value)
    tanya.call("PING", {})


@case("TAM-10")
@pytest.mark.parametrize("number", [78, 84, 94, 256])
def test_tamtam_moved_number_behind_login(
    connect: Connect, accounts: People, newcomer: Newcomer, number: int
) -> None:
    """The number is also refused in one write with LOGIN, and with a payload of the apps' own meaning."""
    tanya = app(connect, "tanya")
    enter(tanya, accounts, newcomer("tanya"))
    again = app(connect, "tanya")
    requests = [
        again.packet("LOGIN", {"token": tanya.token}),
        again.packet(number, {"chatId": "x", "ids": {}}),
    ]
    again.coalesce(*(packet for _, packet in requests))
    again.reply(requests[0][0])
    again.error("proto.opcode", requests[1][0])
    again.alive()
