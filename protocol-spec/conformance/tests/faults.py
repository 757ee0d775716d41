"""Servers with one fault each, and the case or requirement that must notice the fault."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from proxy import Fault
from tambour_conformance import bundle, wire
from tambour_conformance.rules import fields_of
from tambour_conformance.wire import Frame

NAMES = ("PING", "LOGIN", "CONTACT_INFO", "MSG_SEND", "NOTIF_MESSAGE")
NUMBERS = {name: bundle.load().opcode(name) for name in NAMES}
LIMITS = bundle.load().limits


def with_value(frame: Frame, value: Any) -> Frame:
    """The frame with another payload, uncompressed."""
    return dataclasses.replace(frame, flags=0, wire=wire.encode(value))


class WrongNumber(Fault):
    """An answer has only the low byte of the request's seq."""

    notices = "both-bytes-of-the-number"

    def answer(self, frame: Frame) -> list[Frame]:
        return [dataclasses.replace(frame, seq=frame.seq & 0xFF)]


class LostReply(Fault):
    """Every fortieth reply is lost."""

    notices = "many-packets-in-one-write[50]"
    count = 0

    def answer(self, frame: Frame) -> list[Frame]:
        self.count += frame.is_answer
        return [] if frame.is_answer and self.count % 40 == 0 else [frame]


class DoubledReply(Fault):
    """A refusal is sent twice."""

    notices = "refusal-is-the-only-answer"

    def answer(self, frame: Frame) -> list[Frame]:
        return [frame, frame] if frame.command == wire.ERROR else [frame]


class LowByteOfOpcode(Fault):
    """The high byte of the opcode is dropped."""

    notices = "high-byte-of-the-opcode"

    def request(self, frame: Frame) -> list[Frame]:
        return [dataclasses.replace(frame, opcode=frame.opcode & 0xFF)]


class PushNumber(Fault):
    """The seq of a push continues above 255 instead of wrapping to 0."""

    notices = "number-of-a-push[300]"
    last = 0

    def request(self, frame: Frame) -> list[Frame]:
        self.last = frame.seq
        return [frame]

    def answer(self, frame: Frame) -> list[Frame]:
        return [dataclasses.replace(frame, seq=(self.last + 128) & 0xFFFF)] if frame.is_push else [frame]


class NilPayload(Fault):
    """The server writes an empty payload as nil."""

    notices = "empty-reply[PING]"

    def answer(self, frame: Frame) -> list[Frame]:
        return [dataclasses.replace(frame, wire=b"\xc0") if frame.wire == b"\x80" else frame]


class LargeBlock(Fault):
    """Replies of more than 99,999 bytes are compressed for every client."""

    notices = "long-reply-for-a-classic-client"

    def answer(self, frame: Frame) -> list[Frame]:
        if len(frame.payload) <= 99_999:
            return [frame]
        block = wire.deflate(frame.payload)
        return [dataclasses.replace(frame, flags=len(frame.payload) // len(block) + 1, wire=block)]


class WrongFactor(Fault):
    """The factor is always 100, which is large enough to inflate, but violates the formula."""

    notices = "factor-of-pushes"

    def answer(self, frame: Frame) -> list[Frame]:
        return [dataclasses.replace(frame, flags=100) if frame.flags else frame]


class OneReadOnePacket(Fault):
    """The server treats every read as one packet, and drops further bytes."""

    notices = "packet-and-part-of-the-next[11]"

    def cut(self, data: bytearray) -> Iterator[Frame]:
        frame = wire.cut(data)
        data.clear()
        if frame is not None:
            yield frame


class LatePush(Fault):
    """A push comes after the reply to the next PING, so a fence does not find the push."""

    notices = "PSH-10"

    def __init__(self) -> None:
        self.held: list[Frame] = []

    def answer(self, frame: Frame) -> list[Frame]:
        if frame.is_push:
            self.held.append(frame)
            return []
        if frame.opcode != NUMBERS["PING"]:
            return [frame]
        held, self.held = self.held, []
        return [frame, *held]


class ReorderedMessages(Fault):
    """Of two messages in one write the second is stored first."""

    notices = "order-of-messages"

    def cut(self, data: bytearray) -> Iterator[Frame]:
        frames = list(super().cut(data))
        sent = [index for index, frame in enumerate(frames) if frame.opcode == NUMBERS["MSG_SEND"]]
        if len(sent) > 1:
            first, second = sent[:2]
            frames[first], frames[second] = frames[second], frames[first]
        yield from frames


class WrongPredecessor(Fault):
    """A push names its own message as the previous message."""

    notices = "PSH-01"

    def answer(self, frame: Frame) -> list[Frame]:
        if frame.opcode != NUMBERS["NOTIF_MESSAGE"] or not frame.is_push:
            return [frame]
        before = {"prevMessageId": frame["message"]["id"]}
        return [with_value(frame, frame.value | before | {"message": frame["message"] | before})]


class StoredTwice(Fault):
    """A retry with the same cid stores a second message."""

    notices = "MSG-03"

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def request(self, frame: Frame) -> list[Frame]:
        if frame.opcode != NUMBERS["MSG_SEND"]:
            return [frame]
        value = frame.value
        cid = value["message"]["cid"]
        if cid in self.seen:
            value["message"]["cid"] = cid + (1 << 54)
        self.seen.add(cid)
        return [with_value(frame, value)]


class ClosesOnSoftError(Fault):
    """Every refusal closes the connection."""

    notices = "unknown-opcode"

    def closes(self, frame: Frame) -> bool:
        return frame.command == wire.ERROR


class HalfAPacket(Fault):
    """The last packet before the end of the stream is truncated."""

    notices = "server-that-stops"

    def farewell(self) -> bytes:
        return wire.packet(NUMBERS["NOTIF_MESSAGE"], 0)[:-1]


class TakesLongLists(Fault):
    """The server truncates a list with too many items instead of refusing it."""

    notices = "every-size-at-its-limit[CONTACT_INFO]"

    def request(self, frame: Frame) -> list[Frame]:
        if frame.opcode != NUMBERS["CONTACT_INFO"]:
            return [frame]
        return [with_value(frame, {"contactIds": frame["contactIds"][: LIMITS["maxIDsPerRequest"]]})]


class AnswersNoFeature(Fault):
    """The settings in the reply to LOGIN never have decisions about features."""

    notices = "answers-of-login"

    def answer(self, frame: Frame) -> list[Frame]:
        if frame.opcode != NUMBERS["LOGIN"] or "features" not in frame.value.get("config", {}):
            return [frame]
        value = frame.value
        del value["config"]["features"]
        return [with_value(frame, value)]


class LaterRelease(Fault):
    """No fault: every payload, and every object in it, has an unknown field of a later release."""

    def answer(self, frame: Frame) -> list[Frame]:
        if frame.command == wire.ERROR:
            return [frame]
        fields = fields_of(frame, bundle.load())
        # Pushes and replies have different unknown fields.
        return [with_value(frame, self.later(frame.value, fields, f"later {frame.command}"))]

    def later(self, value: Any, fields: Any, key: str) -> Any:
        types = {field["key"]: field["type"] for field in fields}
        known = {name: self.within(each, types.get(name, ""), key) for name, each in value.items()}
        return {**known, key: 1}

    def within(self, value: Any, kind: str, key: str) -> Any:
        if isinstance(value, list):
            return [self.within(each, kind, key) for each in value]
        name = re.sub(r"^(?:(?:list|packed)<)*([^<>]*)>*$", r"\1", kind)
        struct = bundle.load().structs.get(name)
        return self.later(value, struct["fields"], key) if struct and isinstance(value, dict) else value


FAULTS: tuple[type[Fault], ...] = (
    WrongNumber,
    LostReply,
    DoubledReply,
    LowByteOfOpcode,
    PushNumber,
    NilPayload,
    LargeBlock,
    WrongFactor,
    OneReadOnePacket,
    LatePush,
    ReorderedMessages,
    WrongPredecessor,
    StoredTwice,
    ClosesOnSoftError,
    HalfAPacket,
    TakesLongLists,
    AnswersNoFeature,
)
