"""APP: the requests of known apps at start."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tambour_conformance import wire
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, LogIn, Newcomer, message
from tambour_conformance.people import Device
from tambour_conformance.talk import burst, dialog, say
from tambour_conformance.verdict import case, check, equal
from tambour_conformance.wire import Frame

#: The size from which one app compresses payloads, in bytes.
COMPRESSED = 32
#: The user agent of one app, which sends every field, some of them as nil.
KOMET = {
    "userAgent": {
        "deviceType": "ANDROID",
        "appVersion": "26.23.2",
        "osVersion": "Android 14",
        "timezone": "Europe/Moscow",
        "screen": "420dpi 420dpi 1080x2400",
        "pushDeviceType": "GCM",
        "arch": "arm64-v8a",
        "locale": "ru",
        "buildNumber": 6705,
        "deviceName": "Google Pixel 7",
        "deviceLocale": "ru",
        "headerUserAgent": None,
    },
    "clientSessionId": 77,
    "mt_instanceid": "6c9a1b1e-1111-4222-8333-0123456789ab",
}
#: The user agent of the app for Android.
ANDROID = {"userAgent": {**KOMET["userAgent"], "release": 1}, "mt_instanceid": KOMET["mt_instanceid"]}

LOGIN = {
    "interactive": True,
    "chatsSync": -1,
    "contactsSync": -1,
    "presenceSync": -1,
    "draftsSync": -1,
    "configHash": None,
    "exp": {"chatsCountGroups": [0, 50, 100]},
    "chatCacheFingerprint": "0",
}
#: The requests of one app after login, and on opening each of its tabs.
TABS: list[tuple[str, dict[str, Any]]] = [
    ("CHATS_LIST", {"marker": 0}),
    ("LOGIN2", {"contactsSync": 0}),
    ("FOLDERS_GET", {"folderSync": 0}),
    ("BANNERS_GET", {"bannersSync": 0}),
    ("CONFIG", {"pushToken": "c0ffee", "pushOptions": 0}),
    ("STORIES_FEED", {"cursor": "", "count": 20}),
    ("ASSETS_UPDATE", {"sync": 0, "type": "STICKER"}),
    ("ASSETS_UPDATE", {"sync": 0, "type": "FAVORITE_STICKER"}),
    ("ASSETS_GET", {"type": "STICKER", "marker": 0, "count": 100}),
    ("ASSETS_GET_BY_IDS", {"ids": [], "type": "STICKER"}),
    ("VIDEO_CHAT_HISTORY", {}),
    ("COMPLAIN_REASONS_GET", {"complainSync": 0}),
    ("CONTACT_LIST", {"status": "BLOCKED", "count": 40, "from": 0}),
    ("SESSIONS_INFO", {}),
    ("PING", {"interactive": True}),
]
#: Opcodes of other apps that are not served.
UNSERVED = (158, 25, 106, 197, 201, 262, 264, 307)


def ask(client: Connection, opcode: str | int, value: dict[str, Any]) -> Frame:
    """A request in the app's form: an LZ4 block, unless it is short."""
    is_long = len(wire.encode(value)) >= COMPRESSED
    answer = client.answer(client.send(opcode, value, compress=is_long))
    check(
        "localizedMessage" not in answer.value, f"no text for people in the answer to {opcode}", answer.value
    )
    return answer


@case("APP-01")
@pytest.mark.parametrize("hello", [KOMET, ANDROID], ids=["komet", "android"])
def test_start(login: LogIn, newcomer: Newcomer, connect: Connect, cid: Cid, hello: dict[str, Any]) -> None:
    """An app starts, gets answers to its requests, and gets a message with its unread count."""
    account, olga = newcomer("nina"), login(newcomer("olga"))
    nina = login(account)
    chat = dialog(nina, olga)
    sent = burst(olga, chat, [cid() for _ in range(2)])
    app = connect("app", init=False)
    greeted = ask(app, "SESSION_INIT", {**hello, "deviceId": f"conformance-{secrets.token_hex(4)}"})
    check(isinstance(greeted["location"], str), "a location", greeted.value)
    logged_in = ask(app, "LOGIN", {**LOGIN, "token": nina.token})
    check(isinstance(logged_in["time"], int), "the time", logged_in.value)
    shown = next(each for each in logged_in["chats"] if each["id"] == chat)
    equal((shown["newMessages"], shown["lastMessage"]["id"]), (2, sent[1]["id"]), "unread and last message")
    for opcode, value in TABS:
        answer = ask(app, opcode, value)
        equal(answer.command, wire.OK, f"the answer to {opcode}: {answer.value!r:.200}")
    for number in UNSERVED * 3:
        refusal = ask(app, number, {})
        equal(refusal.value.get("error"), "proto.opcode", f"the answer to {number}")
    ask(app, "CHAT_SUBSCRIBE", {"chatId": chat, "subscribe": True})
    page = ask(
        app,
        "CHAT_HISTORY",
        {
            "chatId": chat,
            "from": logged_in["time"] + 86_400_000,
            "forward": 0,
            "backward": 30,
            "getMessages": True,
            "getChat": False,
            "interactive": True,
        },
    )
    equal([each["id"] for each in page["messages"]], [each["id"] for each in sent], "messages of the page")
    for unread in (3, 4):
        said = say(olga, chat, cid())
        push = app.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
        equal((push["message"]["id"], push["unread"], push["ttl"]), (said["id"], unread, False), "the push")
    read = {"type": "READ_MESSAGE", "chatId": chat, "messageId": said["id"], "mark": said["time"]}
    equal(ask(app, "CHAT_MARK", read)["unread"], 0, "unread")
    say(olga, chat, cid())
    equal(app.push("NOTIF_MESSAGE")["unread"], 1, "unread of the next push")
    reply = ask(
        app,
        "MSG_SEND",
        {"userId": olga.user_id, "message": message(cid(), "by the user's id, and long enough")},
    )
    equal(reply["chatId"], chat, "chat of a message to a user")
    app.alive()


@case("APP-02")
def test_nothing_in_the_payload(login: LogIn) -> None:
    """Requests that some apps send without content also work with a nil payload."""
    alice: Device = login("alice")
    for opcode in ("PING", "VIDEO_CHAT_HISTORY", "SESSIONS_INFO"):
        for _ in range(20):
            equal(
                alice.answer(alice.send(opcode, payload=b"\xc0")).command,
                wire.OK,
                f"the answer to a nil {opcode}",
            )
    alice.alive()
