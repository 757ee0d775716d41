"""MSP: reading, writing and refusing MessagePack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tambour_conformance import bundle, forms, vectors, wire
from tambour_conformance.bundle import Bundle, Opcode, Vector
from tambour_conformance.connection import Connection, error_code
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer, Phone, hello, message
from tambour_conformance.forms import Raw, pack
from tambour_conformance.people import Device, People
from tambour_conformance.vectors import Mutation
from tambour_conformance.verdict import Failed, case, check, equal
from tambour_conformance.wire import Frame

PROTOCOL = bundle.load()
REQUESTS = [each for each in PROTOCOL.served.values() if each.from_client and each.fields.get("request")]

Refuse = Callable[[str | int, Iterable[tuple[str, bytes]]], None]


@pytest.fixture
def refuse(login: LogIn, limits: Limits) -> Refuse:
    """Sends payloads as alice; checks that the server refuses each with proto.payload and sends no more.

    Too many refusals close a connection, so the fixture opens a new connection before that.
    """
    connection: Connection | None = None
    used = 0

    def refuse(opcode: str | int, payloads: Iterable[tuple[str, bytes]]) -> None:
        nonlocal connection, used
        for what, payload in payloads:
            if connection is None or used >= limits["maxSoftErrors"] - 2:
                if connection is not None:
                    connection.silence_by_fence()
                    connection.close()
                connection, used = login("alice"), 0
            used += 1
            try:
                connection.refused("proto.payload", opcode, payload=payload)
                connection.silence_by_fence(grace=False)
            except Failed as failure:
                raise Failed(f"{failure.expected} for {what}", failure.actual) from None
        if connection is not None:
            connection.silence_by_fence()

    return refuse


def refuse_mutations(refuse: Refuse, opcode: Opcode, mutations: list[Mutation]) -> None:
    refuse(opcode.number, ((f"{each.path}: {each.what}", each.payload) for each in mutations))


def with_mutations(make: Callable[[Bundle, Opcode], list[Mutation]]) -> Any:
    """Runs a case for each opcode for which `make` returns mutations."""
    found = [each for each in REQUESTS if make(PROTOCOL, each)]
    return pytest.mark.parametrize("opcode", found, ids=[each.name for each in found])


# Reading.


@case("MSP-01")
def test_integers_in_every_width(alice: Device, group: Group, cid: Cid) -> None:
    """Integers (a count, a chat id, a client id) are read in every width that can hold them."""
    chat = group(alice)
    for number in (cid(), 127, -32, -33, 1 << 31):
        for _, form in forms.integers(number):
            value = {"chatId": chat, "message": {"cid": form, "text": "wide"}}
            sent = alice.call("MSG_SEND", payload=pack(value))
            equal(sent["message"]["cid"], number, "the cid stored")
    for count in (0, 1, 5):
        for name, form in forms.integers(count):
            page = alice.call("CHAT_HISTORY", payload=pack({"chatId": chat, "backward": form}))
            equal(len(page["messages"]), count, f"messages of a page of {count} as {name}")
    for name, form in forms.integers(chat):
        found = alice.call("CHAT_INFO", payload=pack({"chatIds": [form]}))
        equal([each["id"] for each in found["chats"]], [chat], f"chats found by an id as {name}")


@case("MSP-02")
@pytest.mark.parametrize("length", [0, 1, 31, 32, 255, 256])
def test_strings_with_every_header(
    stranger: Connection, alice: Device, group: Group, cid: Cid, length: int
) -> None:
    """A text and a key are read with every header that can hold their length."""
    chat = group(alice)
    for _, form in forms.strings("s" * length):
        stranger.call("SESSION_INIT", payload=pack({"deviceId": form}))
        # The server refuses an empty message, so an empty text is replaced by one character.
        text = Raw(form) if length else next(forms.strings("s"))[1]
        sent = alice.call("MSG_SEND", payload=pack({"chatId": chat, "message": {"cid": cid(), "text": text}}))
        equal(len(sent["message"]["text"]), max(length, 1), "length of the text stored")
    for name, key in forms.strings("contactIds"):
        found = alice.call("CONTACT_INFO", payload=pack({key: [alice.user_id]}))
        equal(len(found["contacts"]), 1, f"contacts found with a key as {name}")


@case("MSP-02")
@pytest.mark.parametrize("length", [65_535, 65_536])
def test_long_strings(alice: Device, length: int) -> None:
    """A long string under an unknown key is skipped."""
    for _, form in forms.strings("s" * length):
        alice.call("PING", payload=pack({"unknown": form, "interactive": True}))
    alice.silence_by_fence()


@case("MSP-03")
def test_maps_with_every_header(alice: Device, group: Group, cid: Cid) -> None:
    """Maps, and the lists in them, are read with every header that can hold their size."""
    chat = group(alice)
    for name, inner in forms.maps({"cid": cid(), "text": "wide"}):
        for _, outer in forms.maps({"chatId": chat, "message": inner}):
            sent = alice.call("MSG_SEND", payload=outer)
            equal(sent["message"]["text"], "wide", f"text of a message as {name}")
    for name, ids in forms.arrays([alice.user_id]):
        found = alice.call("CONTACT_INFO", payload=pack({"contactIds": ids}))
        equal(len(found["contacts"]), 1, f"contacts of a list as {name}")


@case("MSP-04")
@pytest.mark.parametrize("kind", forms.ANYTHING)
def test_unknown_key(stranger: Connection, alice: Device, group: Group, cid: Cid, kind: str) -> None:
    """An unknown key is skipped, whatever its value, before, after and inside known fields."""
    anything = forms.ANYTHING[kind]
    stranger.call("SESSION_INIT", payload=pack({"what": anything, "userAgent": {"what": anything}}))
    chat = group(alice)
    value = {
        "what": anything,
        "chatId": chat,
        "message": {"what": anything, "cid": cid(), "text": "known", "ever": anything},
        "ever": anything,
    }
    sent = alice.call("MSG_SEND", payload=pack(value))
    equal(sent["message"]["text"], "known", "the text stored")


@case("MSP-04")
@pytest.mark.parametrize("key", [7, -1, None, True, 1.5, b"bin"], ids=str)
def test_unknown_key_that_is_no_string(stranger: Connection, key: object) -> None:
    """A key that is not a string counts as unknown."""
    stranger.call("PING", payload=pack({key: [1, 2], "interactive": True}))
    stranger.silence_by_fence()


@case("MSP-04")
def test_thousand_unknown_keys(alice: Device) -> None:
    """A thousand unknown keys are skipped, more than one byte can count."""
    alice.call("PING", {f"unknown {number}": number for number in range(1000)})
    alice.silence_by_fence()


@case("MSP-15")
def test_nil_is_absent(alice: Device, group: Group, cid: Cid) -> None:
    """A request with nil in its optional fields gets the same reply as a request without those fields."""
    chat = group(alice)
    alice.call("MSG_SEND", {"chatId": chat, "message": message(cid())})
    request = {"chatId": chat, "backward": 10}
    nil = {"forward": None, "from": None, "getChat": None, "getMessages": None, "itemType": None}
    plain, other = alice.call("CHAT_HISTORY", request), alice.call("CHAT_HISTORY", request | nil)
    equal(other.value, plain.value, "the history")
    alice.call("SESSION_INIT", dict.fromkeys(("userAgent", "deviceId", "capabilities", "features")))
    alice.silence_by_fence()


#: Requests whose examples can be sent to any server when their chats are replaced by an unknown chat.
NEEDS_NO_CARE = [
    each
    for each in REQUESTS
    if each.name not in ("AUTH_REQUEST", "AUTH", "AUTH_CONFIRM", "LOGIN", "PROFILE_DELETE")
    and vectors.nil_for_optional(PROTOCOL, each)
]


Tame = Callable[[Mutation], Any]


@pytest.fixture
def tame(alice: Device, login: LogIn, cid: Cid, phone: Phone) -> Tame:
    """Returns the payload of a changed example, made safe to send to any server."""
    others = [login(name, interactive=False).user_id for name in ("bob", "carol")]

    def tame(mutation: Mutation) -> Any:
        number = cid()
        return vectors.harmless(wire.decode(mutation.payload), others, -(1 << 52) - number, number, phone())

    return tame


@case("MSP-15")
@pytest.mark.parametrize("opcode", NEEDS_NO_CARE, ids=[each.name for each in NEEDS_NO_CARE])
def test_nil_for_optional(alice: Device, opcode: Opcode, tame: Tame) -> None:
    """Nil in an optional field gets the same answer as a missing field: a reply, or the same refusal."""

    def code(mutation: Mutation) -> str:
        return error_code(alice.answer(alice.send(opcode.number, tame(mutation))))

    nil = vectors.nil_for_optional(PROTOCOL, opcode)
    absent = vectors.without_optional(PROTOCOL, opcode)
    for one, other in zip(nil, absent, strict=True):
        equal(code(one), code(other), f"the refusal, if any, of nil in {one.path}")
    check(alice.ended is None, "the connection stays", alice.ended)


@case("MSP-19")
def test_ids_as_integers_and_digits(alice: Device, group: Group, cid: Cid) -> None:
    """Ids of users, chats and messages are read as integers and as strings of digits, alone and in lists.

    The case does not check maps of ids, because no request has one yet.
    """
    chat = group(alice)
    sent = alice.call("MSG_SEND", {"chatId": str(chat), "message": message(cid(), "by digits")})
    number = sent["message"]["id"]
    for where in (chat, str(chat)):
        page = alice.call("CHAT_HISTORY", {"chatId": where, "backward": 1})
        equal(page["messages"][0]["text"], "by digits", f"the history of {where!r}")
        found = alice.call("MSG_GET", {"chatId": where, "messageIds": [str(number), number]})
        equal({each["id"] for each in found["messages"]}, {number}, "messages found")
        found = alice.call("CHAT_INFO", {"chatIds": [where]})
        equal([each["id"] for each in found["chats"]], [chat], "chats found")
    for who in (alice.user_id, str(alice.user_id)):
        found = alice.call("CONTACT_INFO", {"contactIds": [who]})
        equal([each["id"] for each in found["contacts"]], [alice.user_id], f"contacts found by {who!r}")


# Refusing.


def nested_maps(levels: int) -> Raw:
    """Nested maps of one item each."""
    return Raw(b"\x81\xa1a" * levels + b"\xc0")


@case("MSP-05")
def test_depth_within_the_limit(stranger: Connection, limits: Limits) -> None:
    """An unknown value is skipped if its nesting is exactly maxDepth levels, counting the payload as one."""
    levels = limits["maxDepth"] - 1
    for nested in (forms.nested(levels), forms.nested(levels - 1, b"\x90"), nested_maps(levels)):
        stranger.call("PING", payload=pack({"unknown": nested}))
    stranger.silence_by_fence()


@case("MSP-05")
@pytest.mark.parametrize("levels", [None, 1000, 100_000, 1_000_000])
def test_too_deep(refuse: Refuse, limits: Limits, levels: int | None) -> None:
    """Deeper nesting than maxDepth is refused, by one level as well as by a million."""
    depth = limits["maxDepth"] if levels is None else levels
    payloads = [("arrays", pack({"unknown": forms.nested(depth)}))]
    if levels is None:
        payloads += [("the last one empty", pack({"unknown": forms.nested(depth - 1, b"\x90")}))]
        payloads += [("maps", pack({"unknown": nested_maps(depth)}))]
    else:
        payloads += [("maps", pack({"unknown": nested_maps(depth // 3)}))]
        payloads += [("no map around it", forms.nested(depth))]
    refuse("PING", payloads)


@case("MSP-06")
def test_lies_about_sizes(refuse: Refuse) -> None:
    """A container, string or binary of a few bytes that claims a huge size is refused."""
    lies = {
        "array32": b"\xdd\xff\xff\xff\xff",
        "array32 of 2^31": b"\xdd\x80\x00\x00\x00\xc0",
        "map32": b"\xdf\xff\xff\xff\xff\xa1a",
        "array16": b"\xdc\xff\xff\xc0\xc0",
        "str32": b"\xdb\xff\xff\xff\xffabc",
        "bin32": b"\xc6\xff\xff\xff\xffabc",
        "ext32": b"\xc9\xff\xff\xff\xff\x01abc",
    }
    refuse("CONTACT_INFO", ((name, pack({"contactIds": Raw(lie)})) for name, lie in lies.items()))
    refuse("PING", ((f"unknown {name}", pack({"unknown": Raw(lie)})) for name, lie in lies.items()))
    refuse("PING", [("the payload itself, map32", lies["map32"])])


@case("MSP-07")
def test_cut_at_every_byte(refuse: Refuse) -> None:
    """A payload that is cut after any of its bytes is refused."""
    value = {"contactIds": [1, 300, 1 << 40], "unknown": ["text", b"bin", 1.5, {"a": None}]}
    payload = wire.encode(value)
    refuse("CONTACT_INFO", ((f"{size} bytes", payload[:size]) for size in range(1, len(payload))))


@case("MSP-08")
def test_unused_byte(refuse: Refuse) -> None:
    """The byte 0xC1 is refused everywhere: as payload, key, value or item, and inside skipped values."""
    never = Raw(b"\xc1")
    values = [
        ("payload", never),
        ("value", pack({"interactive": never})),
        ("value skipped", pack({"unknown": never})),
        ("item skipped", pack({"unknown": [1, [never]]})),
        ("key", pack({never: 1})),
    ]
    refuse("PING", values)


@case("MSP-09")
def test_bytes_behind_the_map(refuse: Refuse) -> None:
    """A payload with bytes after its map is refused, whatever the bytes are."""
    payload = wire.encode({"interactive": True})
    refuse(
        "PING", ((tail.hex(), payload + tail) for tail in (b"\x00", b"\x80", b"\xc1", b"\xff\xff", payload))
    )


@case("MSP-10")
def test_known_key_twice(refuse: Refuse) -> None:
    """A known key that comes twice is refused, whether the values are equal or not, also in nested maps."""
    key = wire.encode("interactive")
    refuse(
        "PING",
        [("equal", b"\x82" + 2 * (key + b"\xc3")), ("different", b"\x82" + key + b"\xc3" + key + b"\xc2")],
    )
    text = wire.encode("text")
    inner = Raw(b"\x83" + wire.encode("cid") + b"\x01" + text + b"\xa1a" + text + b"\xa1b")
    refuse("MSG_SEND", [("further in", pack({"chatId": -1, "message": inner}))])


@case("MSP-11")
@pytest.mark.parametrize(
    "data",
    [b"\xff", b"\xc3", b"\x80", b"\xc3\x28", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf",
     b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"a" * 40 + b"\xfe", b"\xf0\x9f\x98"],
    ids=lambda data: data[-5:].hex(),
)  # fmt: skip
def test_not_utf8(refuse: Refuse, data: bytes) -> None:
    """A string is refused if it is not UTF-8: stray bytes, overlong forms, surrogates, large code points."""
    bad = forms.string(data)
    refuse(
        "SESSION_INIT", [("deviceId", pack({"deviceId": bad})), ("in a list", pack({"capabilities": [bad]}))]
    )
    refuse("MSG_SEND", [("text", pack({"chatId": -1, "message": {"cid": 1, "text": bad}}))])


@case("MSP-12")
def test_payload_that_is_no_map(refuse: Refuse) -> None:
    """A payload that is neither a map nor nil is refused."""
    values = [[], [{}], 0, -1, 1 << 40, "", "{}", b"\x80", True, 1.5, Raw(b"\xd4\x05\x80")]
    refuse("PING", ((repr(each), pack(each)) for each in values))


@case("MSP-28")
def test_nil_for_a_map(alice: Device) -> None:
    """A client with no fields to send may send nil, or no bytes."""
    for payload in (pack(None), b""):
        equal(alice.call("PING", payload=payload).value, {}, "the reply to PING")
    alice.refused("proto.payload", "CHAT_HISTORY", payload=pack(None))


@case("MSP-13")
@with_mutations(vectors.without_required)
def test_required_key_missing(refuse: Refuse, opcode: Opcode) -> None:
    """An example request is refused if any one of its required keys is missing."""
    refuse_mutations(refuse, opcode, vectors.without_required(PROTOCOL, opcode))


@case("MSP-14")
@with_mutations(vectors.wrong_types)
def test_wrong_type(refuse: Refuse, opcode: Opcode) -> None:
    """An example request is refused if any one of its fields has a value of another type."""
    refuse_mutations(refuse, opcode, vectors.wrong_types(PROTOCOL, opcode))


@case("MSP-15")
@with_mutations(vectors.nil_for_required)
def test_nil_for_required(refuse: Refuse, opcode: Opcode) -> None:
    """An example request is refused if any one of its required fields is nil."""
    refuse_mutations(refuse, opcode, vectors.nil_for_required(PROTOCOL, opcode))


@case("MSP-16")
@with_mutations(vectors.too_large_integers)
def test_integer_above_the_range(refuse: Refuse, opcode: Opcode) -> None:
    """An example request is refused if any one of its integers or ids is 2^63."""
    refuse_mutations(refuse, opcode, vectors.too_large_integers(PROTOCOL, opcode))


@case("MSP-17")
def test_longest_text(alice: Device, group: Group, cid: Cid, limits: Limits) -> None:
    """A text of maxTextUnits is read; a character outside the BMP counts as two units."""
    chat = group(alice)
    most = limits["maxTextUnits"]
    for text in ("a" * most, "é" * most, "€" * most, "😀" * (most // 2), "a" * (most - 2) + "😀"):
        sent = alice.call("MSG_SEND", {"chatId": chat, "message": message(cid(), text)})
        equal(sent["message"]["text"], text, "the text stored")


@case("MSP-17")
def test_text_too_long(refuse: Refuse, cid: Cid, limits: Limits) -> None:
    """A text of one unit over the limit is refused, even if its last character has two units."""
    most = limits["maxTextUnits"]
    texts = ("a" * (most + 1), "€" * (most + 1), "😀" * (most // 2) + "a", "a" * (most - 1) + "😀")
    refuse("MSG_SEND", ((each[-1], pack({"chatId": -1, "message": message(cid(), each)})) for each in texts))


@case("MSP-17")
def test_title_of_a_group(alice: Device, group: Group, cid: Cid, refuse: Refuse, limits: Limits) -> None:
    """The title of a group is accepted up to its own limit, and refused above it."""
    most = limits["maxTitleUnits"]
    group(alice, title="т" * most)
    control = {"_type": "CONTROL", "event": "new", "chatType": "CHAT", "title": "т" * (most + 1)}
    refuse("MSG_SEND", [("title", pack({"message": {"cid": cid(), "attaches": [control]}}))])


Lengths = Callable[[Opcode, list[str]], None]
#: The kinds of limits that count items or bytes, not the units of a text.
SIZES = ["limitBytes", "limitItems"]
#: Fields that the server also checks for other faults at their own path, so a refusal may not be the size's.
JUDGED = {("CONFIG", "/settings/user"), ("OBJ_PUSH", "/ops/0/id"), ("OBJ_PUSH", "/ops/0/parent")}


@pytest.fixture
def lengths(alice: Device, tame: Tame, refuse: Refuse, limits: Limits) -> Lengths:
    """For each field with a limit of these kinds, sends the examples with the field at and over the limit."""

    def lengths(opcode: Opcode, kinds: list[str]) -> None:
        for each in vectors.limited(PROTOCOL, opcode, limits, kinds):
            answer = alice.answer(alice.send(opcode.number, tame(each)))
            # The field at its limit may cause other faults, such as a dozen new groups in one message. The
            # server reports them with another path.
            blamed = error_code(answer) == "proto.payload" and answer["message"].startswith(f"{each.path}:")
            if (opcode.name, each.path) in JUDGED:
                continue
            check(not blamed, f"{each.path} of {each.what}: no refusal because of it", answer.value)
        refuse_mutations(refuse, opcode, vectors.limited(PROTOCOL, opcode, limits, kinds, excess=1))

    return lengths


@case("MSP-17")
@with_mutations(lambda protocol, opcode: vectors.limited(protocol, opcode, protocol.limits, ["limit"]))
def test_every_text_at_its_limit(lengths: Lengths, opcode: Opcode) -> None:
    """Each text of an example request is accepted at its limit, and refused with one unit more."""
    lengths(opcode, ["limit"])


@case("MSP-24")
@with_mutations(lambda protocol, opcode: vectors.limited(protocol, opcode, protocol.limits, SIZES))
def test_every_size_at_its_limit(lengths: Lengths, opcode: Opcode) -> None:
    """Each list and string of an example is accepted at its limit, and refused with one item or byte more."""
    lengths(opcode, SIZES)


@case("MSP-21")
def test_number_of_values(alice: Device, refuse: Refuse, limits: Limits) -> None:
    """Slightly fewer than maxElements unknown values are skipped; more are refused, in one list or two."""
    most = limits["maxElements"]
    alice.call("PING", {"unknown": [None] * (most - 10)})
    half = [None] * (most // 2 + 10)
    refuse(
        "PING",
        [("one list", pack({"unknown": [None] * (most + 1)})), ("two lists", pack({"a": half, "b": half}))],
    )


@case("MSP-25")
def test_size_of_a_map(login: LogIn, newcomer: Newcomer, refuse: Refuse, limits: Limits) -> None:
    """A phone book of exactly the limit is accepted; a phone book with one more entry is refused."""
    most = limits["maxIDsPerRequest"]
    book: dict[str, Any] = {f"nobody-{number}": {} for number in range(most)}
    equal(login(newcomer("owner")).call("SYNC", {"contactList": book})["contacts"], [], "contacts")
    refuse("SYNC", [("one more", pack({"contactList": book | {"one more": {}}}))])


@case("MSP-26")
def test_named_twice(alice: Device, group: Group) -> None:
    """A chat that is requested twice comes once; of a setting that is sent twice, the last value counts."""
    chat, other = group(alice), group(alice)
    asked = [chat, other, chat, Raw(next(forms.integers(chat))[1]), other]
    found = alice.call("CHAT_INFO", payload=pack({"chatIds": asked}))
    equal([each["id"] for each in found["chats"]], [chat, other], "chats")
    values = {"TWICE": 1, "ONCE": 2}
    twice = forms.map_header(3) + b"".join(pack(each) for each in ("TWICE", 3, "ONCE", 2, "TWICE", 1))
    reply = alice.call("CONFIG", payload=pack({"settings": {"user": Raw(twice)}}))
    equal({name: reply["user"].get(name) for name in values}, values, "settings")
    alice.call("CONFIG", {"settings": {"user": {"TWICE": None, "ONCE": None}}})


#: Values that at least one known client cannot decode.
UNDECODABLE = {
    "a list as a key": b"\x81\x91\x01\x01",
    "a map as a key": b"\x81\x80\x01",
    "an integer as a key": b"\x81\x01\x01",
    "a timestamp": b"\xd6\xff\x00\x00\x00\x01",
    "a timestamp with bad nanoseconds": b"\xd7\xff" + b"\xff" * 8,
    "an extension of type 1": b"\x81\xa1a\xc7\x03\x01\xc1\xc1\xc1",
    "an integer above 64 bits": b"\xcf\x80" + b"\x00" * 7,
}


@case("MSP-27")
def test_undecodable(alice: Device, group: Group, cid: Cid, refuse: Refuse, limits: Limits) -> None:
    """The server refuses to store a value of type `any` that at least one client cannot decode."""
    chat, levels = group(alice), limits["maxAnyDepth"]
    values = UNDECODABLE | {"one level too many": b"\x91" * levels + b"\x90"}

    def element(value: bytes) -> dict[str, Any]:
        return {"type": "STRONG", "from": 0, "length": 1, "attributes": Raw(value)}

    for what, value in values.items():
        text = {"text": "hi", "elements": [element(value)]}
        refuse("MSG_SEND", [(what, pack({"chatId": chat, "message": {"cid": cid()} | text}))])
        refuse("DRAFT_SAVE", [(what, pack({"chatId": chat, "draft": text}))])
        refuse("CONFIG", [(what, pack({"settings": {"user": {"ODD": Raw(value)}}}))])
        refuse("FOLDERS_UPDATE", [(what, pack({"id": "odd", "title": "odd", "filters": [Raw(value)]}))])
    deepest = {"cid": cid(), "text": "hi", "elements": [element(b"\x91" * (levels - 1) + b"\x90")]}
    sent = alice.call("MSG_SEND", payload=pack({"chatId": chat, "message": deepest}))
    equal(len(sent["message"]["elements"]), 1, "formatting ranges with the deepest attributes")


# The examples of the specification.

#: Patterns of refusal texts, each with the requirement that such a request violates; the first match counts.
REASONS = {
    r"duplicate key$": "MSP-10",
    r"bytes after the payload$": "MSP-09",
    r": missing$": "MSP-13",
    r"not valid UTF-8$": "MSP-11",
    r": ends after ": "MSP-07",
    r"^expected a map, found ": "MSP-12",
    r"^/\w+: expected .*, found nil$": "MSP-15",
    r"an integer above 9223372036854775807$": "MSP-16",
    r": expected .*, found |: unknown value ": "MSP-14",
}


def examples_refused() -> list[Any]:
    """The encodings of the examples that a server must refuse, except those that need lowered limits."""
    found = []
    for example in PROTOCOL.examples:
        if example.role != "request":
            continue
        for vector in example.reject:
            if not vector.lowered_limits:
                reason = next(each for each in REASONS if re.search(each, vector.error or ""))
                found.append((REASONS[reason], example, vector))
    found.sort(key=lambda each: each[0])
    return [
        pytest.param(
            example.opcode,
            vector,
            id=f"{example.opcode_name}-{example.name}-{vector.name}".replace(" ", "-"),
            marks=pytest.mark.case(requirement),
        )
        for requirement, example, vector in found
    ]


@pytest.mark.parametrize(("opcode", "vector"), examples_refused())
def test_example_refused(refuse: Refuse, opcode: int, vector: Vector) -> None:
    """Every packet that the specification's examples call invalid is refused."""
    refuse(opcode, [(vector.error or "", vector.packet[wire.HEADER_SIZE :])])


#: Requests that need no account. AUTH_REQUEST would send a code to the phones of its examples each time.
NEEDS_NO_ACCOUNT = [
    each.name for each in REQUESTS if "initialized" in each.states and each.name != "AUTH_REQUEST"
]
EXAMPLES_ACCEPTED = [
    pytest.param(each.opcode, vector, id=f"{each.opcode_name}-{each.name}-{vector.name}".replace(" ", "-"))
    for each in PROTOCOL.examples
    if each.role == "request" and each.opcode_name in NEEDS_NO_ACCOUNT
    for vector in (Vector("as it is written", each.packet), *each.accept)
]


@case("MSP-01", "MSP-02", "MSP-03", "MSP-04", "MSP-15")
@pytest.mark.parametrize(("opcode", "vector"), EXAMPLES_ACCEPTED)
def test_example_accepted(client: Connection, opcode: int, vector: Vector) -> None:
    """An example packet that needs no account is not refused for its payload."""
    client.raw(vector.packet)
    frame = wire.cut(vector.packet)
    assert frame is not None
    answer = client.answer(frame.seq)
    check(not error_code(answer).startswith("proto."), "a reply, or a refusal for what it says", answer.value)


# Writing.


@case("MSP-18")
def test_shortest_forms(alice: Device, bob: Device, group: Group, cid: Cid, limits: Limits) -> None:
    """Replies and pushes of many kinds use the shortest form."""
    chat = group(alice, bob)
    point = {"_type": "LOCATION", "latitude": 52.5, "longitude": 13.4, "zoom": 10}
    for size in (1, 31, 32, 255, 256, limits["maxTextUnits"]):
        alice.call("MSG_SEND", {"chatId": chat, "message": message(cid(), "x" * size, attaches=[point])})
    bob.call("CHAT_MARK", {"chatId": chat, "type": "READ_MESSAGE", "mark": 1 << 50})
    alice.call("CHAT_HISTORY", {"chatId": chat, "backward": 50, "getChat": True})
    alice.call("CHATS_LIST", {})
    alice.call("SESSIONS_INFO", {})
    alice.call("LOGIN2", {"needProfile": True})
    alice.fence()
    bob.fence()


def nothing(reply: Frame) -> None:
    """Checks that an empty reply is the byte 80; a reply with fields of a later release passes too."""
    check(reply.value or reply.wire == b"\x80", "the payload 80", reply.wire.hex())


EMPTY = [
    each.name
    for each in PROTOCOL.served.values()
    if each.from_client
    and not each.fields.get("reply")
    # These opcodes have their own cases, those about passwords in test_tfa.py. SUSPEND_BOT needs a bot.
    and each.name not in ("LOGOUT", "AUTH_QR_APPROVE", "SUSPEND_BOT")
    and not each.name.startswith(("AUTH_VALIDATE", "AUTH_CHECK", "AUTH_SET"))
]


@case("MSP-20")
@pytest.mark.parametrize("opcode", EMPTY)
def test_empty_reply(alice: Device, bob: Device, group: Group, opcode: str) -> None:
    """An empty reply is the byte 80."""
    value: dict[str, Any] = {}
    if opcode.startswith(("CHAT", "MSG_TYPING", "MSG_DELETE_USER_COMMENTS", "DRAFT")):
        # Bob leaves, because the owner cannot leave.
        chat = group(alice, bob)
        value = {"chatId": chat}
        if opcode == "CHAT_CHECK_LINK":
            updated = alice.call("CHAT_UPDATE", {"chatId": chat, "revokePrivateLink": True})
            value = {"link": updated["chat"]["link"]}
        elif opcode == "CHAT_PIN_SET_VISIBILITY":
            value["show"] = False
        elif opcode == "MSG_DELETE_USER_COMMENTS":
            value["userId"] = bob.user_id
    elif opcode == "COMPLAIN":
        value = {"ids": [alice.user_id]}
    elif opcode == "PROFILE_DELETE":
        value = {"cancel": True}
    nothing(bob.call(opcode, value) if value else alice.call(opcode, value))


@case("MSP-20")
def test_empty_reply_to_logout(accounts: People, connect: Connect) -> None:
    """The empty reply to LOGOUT is the byte 80 too, in a session opened for this case."""
    connection = connect("alice.short")
    token = accounts.sign_in(accounts.account("alice"), connection)
    connection.call("LOGIN", {"token": token})
    nothing(connection.call("LOGOUT", {}))


@case("MSP-22")
def test_errors(stranger: Connection, client: Connection, alice: Device, group: Group, cid: Cid) -> None:
    """Refusals of every kind have a message and a code that the specification lists."""
    chat = group(alice)
    codes = [
        error_code(stranger.refused("proto.state", "LOGIN", {"token": "x"})),
        error_code(client.refused("proto.state", "CHATS_LIST", {})),
        error_code(client.refused("proto.opcode", 60_000, {})),
        error_code(client.refused("login.token", "LOGIN", {"token": "x"})),
        error_code(client.refused("error.", "AUTH_REQUEST", {"phone": "12"})),
        error_code(alice.refused("proto.payload", "CONTACT_INFO", {})),
        error_code(alice.refused("chat.not.found", "MSG_GET", {"chatId": -1, "messageIds": []})),
        error_code(
            alice.refused("error.message.invalid", "MSG_SEND", {"chatId": chat, "message": {"cid": cid()}})
        ),
    ]
    stranger.raw(b"\xff" * 10)
    codes.append(error_code(stranger.hard_error("proto.ver")))
    check(all(each in PROTOCOL.errors for each in codes), "codes of the list", codes)


@case("MSP-23")
def test_refused_requests_leave_nothing(
    alice: Device, bob: Device, group: Group, cid: Cid, limits: Limits
) -> None:
    """A message or group that the server refuses, for its payload or its content, is not stored."""
    chat = group(alice, bob)
    before = alice.call("CHATS_LIST", {}).value
    long = "a" * (limits["maxTextUnits"] + 1)
    bad_attach = {"_type": "LOCATION", "latitude": "north"}
    new_group = {
        "_type": "CONTROL",
        "event": "new",
        "chatType": "CHAT",
        "title": "ghosts",
        "userIds": [bob.user_id, 1 << 60],
    }
    for code, refused in (
        ("proto.payload", {"chatId": chat, "message": message(cid(), long)}),
        ("proto.payload", {"chatId": chat, "message": message(cid(), attaches=[bad_attach])}),
        ("proto.payload", {"chatId": chat, "message": {"text": "no cid"}}),
        ("error.message.invalid", {"chatId": chat, "message": {"cid": cid()}}),
        ("not.found", {"chatId": chat, "message": message(cid(), link={"type": "REPLY", "messageId": 1})}),
        ("user.not.found", {"message": {"cid": cid(), "attaches": [new_group]}}),
    ):
        alice.refused(code, "MSG_SEND", refused)
    bob.silence_by_fence()
    page = alice.call("CHAT_HISTORY", {"chatId": chat, "backward": 50})
    equal(len(page["messages"]), 1, "messages: only that of the group's creation")
    equal(alice.call("CHATS_LIST", {}).value, before, "the list of chats")


@case("MSP-14")
def test_hello_again_after_a_refusal(stranger: Connection) -> None:
    """A refused SESSION_INIT does not change the connection; a valid SESSION_INIT is served after it."""
    stranger.refused("proto.payload", "SESSION_INIT", {"deviceId": 5})
    stranger.refused("proto.state", "CHATS_LIST", {})
    stranger.call("SESSION_INIT", hello("again", None, None))
