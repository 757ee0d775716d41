"""Helpers for many cases: they send common requests and read the answers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from tambour_conformance import bundle
from tambour_conformance.fixtures import Limits, message
from tambour_conformance.people import Device
from tambour_conformance.verdict import Failed, check, equal, skip
from tambour_conformance.wire import Frame

#: The longest server timeout that a case waits for, in seconds.
PATIENCE = 16.0
#: The advice in the reason of a skipped case whose limit is too high.
LESS = "start the server with less, and give --limits"
#: The chat id of everybody's saved messages.
SAVED = 0
#: An id that belongs to no user and no message.
NOBODY = (1 << 61) + 1
DAY_MS = 86_400_000
#: How many requests a helper sends before it reads the first reply. This is far below the server's limit of
#: requests in flight, and the pushes of these requests are far below its limit for a slow reader.
BURST = 60


def time_out(limits: Limits, name: str) -> float:
    """The timeout with this name, in seconds; skips the case if it is too long to wait for."""
    seconds = limits[name] / 1000
    if seconds > PATIENCE:
        skip(f"{name} is {seconds:g} s, too long to wait for: {LESS}")
    return seconds


def dialog(one: Device, other: Device) -> int:
    """The chat id of the dialog of two users; for one user with themselves 0, their saved messages."""
    return one.user_id ^ other.user_id


def say(device: Device, chat: int, cid: int, text: str = "hello", **fields: Any) -> dict[str, Any]:
    """Sends a message and returns it as stored."""
    return device.call("MSG_SEND", {"chatId": chat, "message": message(cid, text, **fields)})["message"]


def begin(device: Device, chat: int, cid: int, text: str = "hello", **fields: Any) -> int:
    """Sends a message without waiting; returns the seq of the request."""
    return device.send("MSG_SEND", {"chatId": chat, "message": message(cid, text, **fields)})


def burst(
    device: Device, chat: int, cids: Iterable[int], text: str = "hello", listeners: Sequence[Device] = ()
) -> list[dict[str, Any]]:
    """Sends a message for each cid, many at a time, and returns them as stored.

    `listeners` read their pushes meanwhile.
    """
    stored: list[dict[str, Any]] = []
    cids = list(cids)
    for start in range(0, len(cids), BURST):
        packets = [
            device.packet("MSG_SEND", {"chatId": chat, "message": message(cid, text)})
            for cid in cids[start : start + BURST]
        ]
        device.coalesce(*(packet for _, packet in packets))
        stored += [device.reply(seq)["message"] for seq, _ in packets]
        for each in listeners:
            each.fence(grace=False)
    return stored


def history(device: Device, chat: int, **fields: Any) -> list[dict[str, Any]]:
    """The messages from CHAT_HISTORY; an empty list if the reply omits the field."""
    return device.call("CHAT_HISTORY", {"chatId": chat, **fields}).get("messages", [])


def newest(device: Device, chat: int) -> dict[str, Any]:
    """The newest message of a chat."""
    return only(history(device, chat, backward=1), "message")


def only(items: Sequence[Any], what: str) -> Any:
    """The only item of a list that should have exactly one."""
    check(len(items) == 1, f"one {what}", f"{len(items)}: {items!r:.200}")
    return items[0]


def ids(messages: Iterable[dict[str, Any]]) -> list[int]:
    return [each["id"] for each in messages]


def chat_of(device: Device, chat: int) -> dict[str, Any]:
    """The chat with this id, from CHAT_INFO."""
    return only(device.call("CHAT_INFO", {"chatIds": [chat]})["chats"], f"chat {chat} of {device.name}")


def login_again(device: Device, **fields: Any) -> Frame:
    """Sends LOGIN with the same token again, on a connection that has logged in."""
    return device.call("LOGIN", {"token": device.token, "interactive": True, **fields})


def marks(reply: Frame) -> dict[str, Any]:
    """The marks for the next LOGIN, to get the changes after this reply."""
    keys = ("chatsSync", "contactsSync", "draftsSync", "presenceSync")
    return dict.fromkeys(keys, reply["time"])


def settled(device: Device) -> Frame:
    """Repeats LOGIN until a delta is empty, and returns it; its `time` is at or above all earlier changes.

    One LOGIN is not enough, because the next delta may repeat changes of the last millisecond.
    """
    deadline = time.monotonic() + device.target.timeout
    reply = device.login
    while True:
        following = login_again(device, **marks(reply))
        if not any(following.get(each) for each in ("chats", "contacts", "presence", "drafts")):
            return following
        if time.monotonic() > deadline:
            raise Failed(
                "in the end a LOGIN with the `time` of the one before, and nothing between them, is empty",
                f"{len(following['chats'])} chats, {len(following['contacts'])} contacts, "
                f"{len(following['presence'])} presences",
            )
        reply = following


def rise(numbers: Sequence[int], what: str) -> None:
    """Checks that each number is greater than the previous one."""
    for before, after in zip(numbers, numbers[1:], strict=False):
        check(before < after, f"{what} that rise", f"{after} behind {before}")


def chain(pushes: Sequence[Frame]) -> None:
    """Checks that each NOTIF_MESSAGE names the previous push's message as its previous message."""
    for before, after in zip(pushes, pushes[1:], strict=False):
        check(
            previous(after) == before["message"]["id"],
            f"prevMessageId {before['message']['id']}, the id pushed before",
            f"{previous(after)} with message {after['message']['id']}",
        )


def previous(push: Frame) -> Any:
    """The `prevMessageId` of a NOTIF_MESSAGE. If the push has `unread`, this field is in `message`."""
    return (push["message"] if "unread" in push.value else push.value).get("prevMessageId")


def known(value: Any, kind: str) -> Any:
    """The value, or the list of values, without the fields that the specification's type does not have."""
    protocol = bundle.load()
    if isinstance(value, list):
        return [known(each, kind) for each in value]
    kind = re.sub(r"^(?:(?:list|packed)<)*([^<>]*)>*$", r"\1", kind)
    if not isinstance(value, dict) or kind not in protocol.structs:
        return value
    types = {field["key"]: field["type"] for field in protocol.structs[kind]["fields"]}
    return {key: known(each, types[key]) for key, each in value.items() if key in types}


def same(actual: Any, expected: Any, what: str, kind: str = "Message") -> None:
    """Checks that two views of an object are equal.

    Ignores fields of a later release, which may be in only one view. Also ignores `prevMessageId`, which a
    message has only in pushes to classic clients.
    """
    equal(_without_previous(known(actual, kind)), _without_previous(known(expected, kind)), what)


def _without_previous(value: Any) -> Any:
    """The value without every `prevMessageId`."""
    match value:
        case dict():
            return {key: _without_previous(each) for key, each in value.items() if key != "prevMessageId"}
        case list():
            return [_without_previous(each) for each in value]
    return value


def same_refusal(one: Frame, other: Frame, what: str) -> None:
    """Checks that two refusals cannot be distinguished: their payloads are equal."""
    check(one.value == other.value, f"{what}: one refusal", f"{one.value} and {other.value}")
