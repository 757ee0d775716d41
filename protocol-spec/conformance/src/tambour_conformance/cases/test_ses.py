"""SES: what a connection may do before and after login, and when it is closed."""

from __future__ import annotations

import time
from typing import Any

import msgpack
import pytest

from tambour_conformance import bundle
from tambour_conformance.bundle import Bundle
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer, hello, message
from tambour_conformance.people import Device, People
from tambour_conformance.talk import SAVED, dialog, history, ids, login_again, say, time_out
from tambour_conformance.verdict import case, check, equal, skip

PROTOCOL = bundle.load()


def needing(state: str) -> list[str]:
    """The opcodes that a client may not send in this state, by name."""
    return [each.name for each in PROTOCOL.served.values() if each.from_client and state not in each.states]


# Legal requests by state.


@case("SES-01")
@pytest.mark.parametrize("opcode", needing("connected"))
def test_before_hello(stranger: Connection, opcode: str) -> None:
    """A valid request before SESSION_INIT is refused, and SESSION_INIT is still accepted."""
    stranger.refused("proto.state", opcode, **PROTOCOL.request(opcode))
    stranger.alive()
    stranger.call("SESSION_INIT", hello("stranger", None, None))


@case("SES-01")
@pytest.mark.parametrize("opcode", needing("initialized"))
def test_before_login(client: Connection, opcode: str) -> None:
    """A valid request before LOGIN is refused, and the connection stays open."""
    client.refused("proto.state", opcode, **PROTOCOL.request(opcode))
    client.alive()


@case("SES-02")
def test_hello_again(login: LogIn, group: Group, cid: Cid) -> None:
    """After a repeated SESSION_INIT the connection is still logged in, and a push comes once."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    bob.call("SESSION_INIT", hello("bob.phone", None, None))
    bob.call("SESSION_INIT", {})
    sent = say(alice, chat, cid())
    equal(bob.push("NOTIF_MESSAGE")["message"]["id"], sent["id"], "the message pushed")
    equal(say(bob, chat, cid())["sender"], bob.user_id, "sender of a message after SESSION_INIT")
    bob.silence_by_fence()


@case("SES-02")
def test_hello_twice(stranger: Connection, accounts: People, login: LogIn) -> None:
    """Two SESSION_INIT and a LOGIN in one write are answered; one known client sends them so."""
    login("alice").close()
    token = accounts.account("alice").devices["phone"]
    requests = [
        stranger.packet("SESSION_INIT", hello("alice.phone", None, None)),
        stranger.packet("SESSION_INIT", hello("alice.phone", None, None)),
        stranger.packet("LOGIN", {"token": token}),
    ]
    stranger.coalesce(*(packet for _, packet in requests))
    for seq, _ in requests:
        stranger.reply(seq)
    stranger.silence_by_fence()


@case("SES-02")
def test_login_again(login: LogIn, group: Group, cid: Cid) -> None:
    """After a repeated LOGIN with the same token, the user is the same, and a push comes once."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    for _ in range(2):
        again = login_again(bob)
        equal(again["profile"]["contact"]["id"], bob.user_id, "the user of a second LOGIN")
    sent = say(alice, chat, cid())
    equal(bob.push("NOTIF_MESSAGE")["message"]["id"], sent["id"], "the message pushed")
    bob.silence_by_fence()


# Capabilities and features.


@case("SES-03")
def test_unknown_names(connect: Connect, protocol: Bundle) -> None:
    """Unknown names, even strange ones, are ignored; the reply has the known names."""
    stranger = connect("stranger", init=False)
    unknown = ["no-such-thing", "", "Ж" * 20, "HISTORY-MORE", "history-more "]
    features = [each["name"] for each in protocol.data["features"]]
    reply = stranger.call(
        "SESSION_INIT",
        hello("stranger", [*unknown, *protocol.capabilities], [*unknown, *features]),
    )
    equal(sorted(reply["capabilities"]), sorted(protocol.capabilities), "capabilities answered")
    equal(sorted(each["type"] for each in reply["features"]), sorted(features), "features answered")
    only_unknown = stranger.call("SESSION_INIT", hello("stranger", unknown, unknown))
    equal((only_unknown["capabilities"], only_unknown["features"]), ([], []), "lists of unknown names alone")


@case("SES-04")
@pytest.mark.parametrize("lists", ["absent", "nil", "nothing at all"])
def test_neither_list(connect: Connect, login: LogIn, group: Group, lists: str) -> None:
    """A client that sends no lists gets no lists back, and no field that needs a capability."""
    client = connect("classic", init=False)
    value = {} if lists == "nothing at all" else hello("classic", None, None)
    if lists == "nil":
        value |= {"capabilities": None, "features": None}
    reply = client.call("SESSION_INIT", value)
    equal({"capabilities", "features"} & set(reply.value), set(), "lists in the reply")
    alice, bob = login("alice"), login("bob")
    page = alice.call("CHAT_HISTORY", {"chatId": group(alice, bob), "backward": 1})
    needing = {
        each["key"] for each in PROTOCOL.served["CHAT_HISTORY"].fields["reply"] if each.get("capability")
    }
    equal(needing & set(page.value), set(), "fields that need a capability")


@case("SES-12")
@pytest.mark.parametrize("value", [{}, hello("classic", None, None)], ids=["empty", "usual"])
def test_classic_reply(stranger: Connection, value: dict[str, Any]) -> None:
    """The reply to a SESSION_INIT without lists has the number `callsSeed`."""
    reply = stranger.call("SESSION_INIT", value)
    check(type(reply.get("callsSeed")) is int, "callsSeed, a number", reply.value)


@case("SES-09")
def test_features_are_stable(connect: Connect, protocol: Bundle) -> None:
    """Two connections of one device that name the same features get the same decisions."""
    value = hello("stable", [], [each["name"] for each in protocol.data["features"]])
    first, second = connect("first", init=False), connect("second", init=False)
    answers = [each.call("SESSION_INIT", value)["features"] for each in (first, second, first)]
    if not any(answers):
        skip("the server knows none of the features of the specification")
    equal(answers[1:], [answers[0]] * 2, "features of the other connection, and of the first one again")


@case("SES-11")
@pytest.mark.parametrize(
    "events",
    [
        None,
        [],
        [{"type": "NAV", "event": "open"}],
        [{"type": "NAV", "event": "open", "params": {"a": [1, None, 2.5, b"\x00"]}, "time": 1 << 62}],
        [{"when": msgpack.ExtType(5, b"123"), "who": {"name": ["x"] * 20}}, {}, {"type": "X" * 64}],
    ],
    ids=["absent", "none", "plain", "rich", "strange"],
)
def test_telemetry(client: Connection, events: Any) -> None:
    """LOG is accepted, whatever its events contain."""
    client.call("LOG", {} if events is None else {"events": events})
    client.alive()


@case("SES-15")
@pytest.mark.parametrize(
    "params",
    [
        [1, 2],
        "spans",
        {"spans": 7},
        {"spans": [3, None, [], {}]},
        {"spans": [{"name": 5, "duration": "long"}]},
        {"spans": [{"name": "no such span", "duration": 5}]},
        {"spans": [{"name": "messages_render", "duration": value} for value in (-1, 1 << 62, 2.5, None)]},
        {"spans": [{"name": "messages_render", "duration": 83, "more": [1]}], "properties": {"class": 2}},
    ],
    ids=["list", "string", "number", "items", "types", "name", "durations", "right"],
)
def test_timings(client: Connection, params: Any) -> None:
    """LOG is accepted, whatever values stand in place of timings."""
    events = [{"type": "PERF", "event": "open_chat_to_render", "params": params}, {"type": "NAV"}]
    equal(client.call("LOG", {"events": events}).value, {}, "the reply")
    client.alive()


# Requests sent without waiting.


@case("SES-05")
@pytest.mark.parametrize(
    "text", ["hi", "長" * PROTOCOL.limits["maxTextUnits"]], ids=["short", "longer than a stranger's limit"]
)
def test_everything_in_one_write(
    stranger: Connection, accounts: People, connect: Connect, cid: Cid, text: str
) -> None:
    """In one write, a client can initialize, log in, send a message and read it in the history."""
    token, number = accounts.token("alice", "phone", connect), cid()
    requests = [
        stranger.packet("SESSION_INIT", hello("alice.phone", None, None)),
        stranger.packet("LOGIN", {"token": token, "interactive": False}),
        stranger.packet("MSG_SEND", {"chatId": SAVED, "message": message(number, text)}),
        stranger.packet("CHAT_HISTORY", {"chatId": SAVED, "backward": 1}),
        stranger.packet("MSG_SEND", {"chatId": SAVED, "message": message(number, text)}),
    ]
    stranger.coalesce(*(packet for _, packet in requests))
    _, user, sent, page, again = (stranger.reply(seq) for seq, _ in requests)
    equal(sent["message"]["sender"], user["profile"]["contact"]["id"], "sender of the message")
    equal(ids(page["messages"]), [sent["message"]["id"]], "the history behind it")
    equal(again["message"]["id"], sent["message"]["id"], "the message of the same cid")
    stranger.silence_by_fence()


@case("SES-05")
@pytest.mark.parametrize(
    "before",
    [("GET_QR_STATUS", {"trackId": "x"}), ("AUTH_REQUEST", {"phone": "x"})],
    ids=["query", "command"],
)
def test_behind_a_login_that_waits(
    stranger: Connection, accounts: People, connect: Connect, cid: Cid, before: tuple[str, Any]
) -> None:
    """Requests in one write after a LOGIN are served, even if a sign-in request precedes the LOGIN."""
    token, number = accounts.token("alice", "phone", connect), cid()
    requests = [
        stranger.packet("SESSION_INIT", hello("alice.phone", None, None)),
        stranger.packet(*before),
        stranger.packet("LOGIN", {"token": token, "interactive": False}),
        stranger.packet("MSG_SEND", {"chatId": SAVED, "message": message(number)}),
        stranger.packet("SESSIONS_INFO", {}),
    ]
    stranger.coalesce(*(packet for _, packet in requests))
    for seq, _ in requests[2:]:
        stranger.reply(seq)
    stranger.alive()


@case("SES-06")
def test_behind_a_refused_login(client: Connection, accounts: People, connect: Connect, cid: Cid) -> None:
    """Requests in one write after a LOGIN that is refused are also refused; a later LOGIN is accepted."""
    token = accounts.token("alice", "phone", connect)
    requests = [
        client.packet("LOGIN", {"token": "notatoken"}),
        client.packet("MSG_SEND", {"chatId": SAVED, "message": message(cid())}),
        client.packet("CHATS_LIST", {}),
        client.packet("SESSIONS_CLOSE", {}),
    ]
    client.coalesce(*(packet for _, packet in requests))
    client.error("login.token", requests[0][0])
    for seq, _ in requests[1:]:
        client.error("proto.state", seq)
    client.call("LOGIN", {"token": token})
    client.silence_by_fence()


@case("SES-06")
def test_between_two_logins(client: Connection, accounts: People, connect: Connect, cid: Cid) -> None:
    """A message between a refused LOGIN and a good one is not stored for anybody."""
    token, number = accounts.token("alice", "phone", connect), cid()
    requests = [
        client.packet("LOGIN", {"token": "notatoken"}),
        client.packet("MSG_SEND", {"chatId": SAVED, "message": message(number, "nobody's")}),
        client.packet("LOGIN", {"token": token}),
        client.packet("CHAT_HISTORY", {"chatId": SAVED, "backward": 5}),
    ]
    client.coalesce(*(packet for _, packet in requests))
    client.error("login.token", requests[0][0])
    client.error("proto.state", requests[1][0])
    client.reply(requests[2][0])
    page = client.reply(requests[3][0])
    check(number not in [each.get("cid") for each in page["messages"]], "no message of nobody", page.value)


@case("SES-06")
def test_behind_somebody_elses_login(login: LogIn, cid: Cid) -> None:
    """If a logged-in client sends another user's token, LOGIN is refused; the session stays the same."""
    alice, bob = login("alice"), login("bob")
    requests = [
        alice.packet("LOGIN", {"token": bob.token}),
        alice.packet("MSG_SEND", {"chatId": SAVED, "message": message(cid(), "whose?")}),
        alice.packet("SESSIONS_INFO", {}),
    ]
    alice.coalesce(*(packet for _, packet in requests))
    alice.error("proto.state", requests[0][0])
    sent = alice.reply(requests[1][0])
    equal(sent["message"]["sender"], alice.user_id, "sender of the message")
    alice.reply(requests[2][0])
    found = [each["id"] for each in history(bob, SAVED, backward=1)]
    check(sent["message"]["id"] not in found, "nothing in the other's saved messages", found)


# When a connection ends.


@case("SES-07")
def test_idle(login: LogIn, limits: Limits) -> None:
    """A silent connection is closed; a connection that sends PINGs stays open."""
    seconds = time_out(limits, "idleTimeoutMs")
    silent, pinging = login("alice"), login("bob")
    until = time.monotonic() + seconds * 1.25
    while time.monotonic() < until:
        pinging.alive()
        pinging.stall(seconds * 1000 / 8)
    silent.ends()
    silent.closed()
    pinging.alive()


@case("SES-08")
def test_no_hello(connect: Connect, limits: Limits) -> None:
    """A connection without SESSION_INIT is closed, even if it sends PINGs; another one stays open."""
    seconds = time_out(limits, "sessionInitTimeoutMs")
    silent, pinging, polite = connect("silent", init=False), connect("pinging", init=False), connect("polite")
    pinging.alive()
    for each in (silent, pinging):
        each.ends(within=seconds + each.target.timeout)
        each.closed()
    polite.alive()


@case("SES-13")
def test_never_logged_in(connect: Connect, login: LogIn, limits: Limits) -> None:
    """A connection without LOGIN is closed, even if it is not idle; a logged-in connection stays open."""
    seconds = time_out(limits, "loginTimeoutMs")
    began = time.monotonic()
    polite, alice = connect("polite"), login("alice")
    while not polite.ended:
        open_for = time.monotonic() - began
        check(
            open_for < seconds * 1.25 + 1,
            f"the end after {seconds:g} s",
            f"still open after {open_for:.1f} s",
        )
        polite.send("PING")
        alice.alive()
        polite.stall(seconds * 1000 / 10)
    check(time.monotonic() - began > seconds * 0.9, f"no end before {seconds:g} s", f"{open_for:.1f} s")
    polite.closed()
    alice.alive()


@case("SES-10")
@pytest.mark.parametrize("kind", ["payload", "state", "opcode", "mixed"])
def test_nonsense(client: Connection, limits: Limits, kind: str) -> None:
    """Exactly maxSoftErrors refusals are tolerated, and one more closes the connection."""
    kinds = {
        "payload": ("PING", {"payload": b"\xc1"}, "proto.payload"),
        "state": ("CHATS_LIST", {}, "proto.state"),
        "opcode": (60_000, {}, "proto.opcode"),
    }
    chosen = list(kinds.values()) if kind == "mixed" else [kinds[kind]]
    for number in range(limits["maxSoftErrors"]):
        opcode, request, code = chosen[number % len(chosen)]
        client.refused(code, opcode, **request)
    client.alive()
    opcode, request, code = chosen[0]
    client.send(opcode, **request)
    # The PING shows that the refusal was the reason: a timeout would close only after an answer to it.
    ping = client.send("PING", {})
    client.ends()
    check(all(each.seq != ping for each in client.unread), "no answer behind the last", client.unread)
    client.closed()


@case("SES-10")
def test_refusals_that_do_not_count(alice: Device, limits: Limits, cid: Cid) -> None:
    """Refusals of unknown chats and empty messages do not count: many do not close the connection."""
    for _ in range(limits["maxSoftErrors"] + 4):
        alice.refused("chat.not.found", "CHAT_HISTORY", {"chatId": -1, "backward": 1})
        alice.refused("error.message.invalid", "MSG_SEND", {"chatId": SAVED, "message": message(cid(), "")})
    alice.alive()


@case("SES-14")
@pytest.mark.parametrize(
    ("locale", "language"), [("ru", "ru"), ("ru-RU", "ru"), ("en", "en"), ("de_AT", "en"), (None, None)]
)
def test_language_of_refusals(
    connect: Connect, protocol: Bundle, locale: str | None, language: str | None
) -> None:
    """A refusal has a text in the language of the client's `locale`, and no text without a `locale`."""
    client = connect("client", init=False)
    agent = {"deviceType": "DESKTOP", **({"locale": locale} if locale else {})}
    client.call("SESSION_INIT", {"userAgent": agent, "deviceId": "conformance-locale"})
    refusal = client.refused("login.token", "LOGIN", {"token": "notatoken"})
    equal(refusal["message"], "FAIL_LOGIN_TOKEN", "message")
    texts = protocol.errors["login.token"]["texts"]
    equal(refusal.get("localizedMessage"), texts[language] if language else None, "localizedMessage")


@case("SES-10")
def test_numbers_that_no_list_names(alice: Device, limits: Limits) -> None:
    """Some unknown opcodes do not close a connection, because newer apps send them; very many do."""
    each = limits["unknownOpcodesPerSoftError"]
    for number in range(limits["maxSoftErrors"] * 2):
        alice.refused("proto.opcode", 60_000 + number)
    alice.alive()
    if each * limits["maxSoftErrors"] > 2_000:
        skip("too many to send")
    for _ in range(each * (limits["maxSoftErrors"] + 1)):
        alice.send(60_000, {})
    alice.ends()


@case("SES-14")
def test_no_text_for_what_is_not_served(connect: Connect) -> None:
    """Refusals of unserved requests have no text, because apps would show it at every start."""
    client = connect("client", init=False)
    client.call(
        "SESSION_INIT",
        {"userAgent": {"deviceType": "DESKTOP", "locale": "ru"}, "deviceId": "conformance-texts"},
    )
    for opcode in (60_000, "PHOTO_UPLOAD"):
        refusal = client.refused("proto.opcode", opcode)
        check("localizedMessage" not in refusal.value, "no text", refusal.value)


@case("SES-16")
def test_no_banners(alice: Device) -> None:
    """The list of banners is empty."""
    equal(alice.call("BANNERS_GET", {"bannersSync": 0})["banners"], [], "banners")


@case("SES-17")
def test_logged_in_by_a_code(client: Connection, newcomer: Newcomer, login: LogIn, cid: Cid) -> None:
    """A connection that gets a token is logged in without a LOGIN; a later LOGIN is served too."""
    nina, olga = login(newcomer("nina")), login(newcomer("olga"))
    client.refused("proto.state", "CHATS_LIST", {})
    link = client.call("GET_QR", {})
    nina.call("AUTH_QR_APPROVE", {"qrLink": link["qrLink"]})
    token = client.call("LOGIN_BY_QR", {"trackId": link["trackId"]})["tokenAttrs"]["LOGIN"]["token"]
    client.call("CHATS_LIST", {})
    sent = say(olga, dialog(olga, nina), cid(), "hello")
    client.call("PING", {})
    pushed = client.push("NOTIF_MESSAGE")
    equal(pushed["message"]["id"], sent["id"], "the message pushed")
    chats = client.call("LOGIN", {"token": token})["chats"]
    equal([each["id"] for each in chats], [dialog(olga, nina)], "chats of the login")
