"""AUT: login codes, registration, tokens and their end."""

from __future__ import annotations

import random

import pytest

from tambour_conformance import wire
from tambour_conformance.connection import Connection, Error, Reply
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer, Phone
from tambour_conformance.people import Account, People
from tambour_conformance.settings import Settings
from tambour_conformance.talk import BURST, LESS, SAVED, only, say, time_out
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: Cases that would have to use up a higher limit of codes or connections are skipped.
MOST_CODES, MOST_CONNECTIONS = 1000, 100


def ask(connection: Connection, phone: str) -> Frame:
    """Sends AUTH_REQUEST; skips the case if the server sends no more codes to this address."""
    seq = connection.send("AUTH_REQUEST", {"phone": phone, "type": "START_AUTH"})
    answer = connection.either(Reply(seq), Error("auth.blocked", seq))
    if answer.command == wire.ERROR:
        skip("no more codes for this address: wait an hour, or raise maxCodesPerAddressPerHour")
    return answer


def try_code(connection: Connection, token: str, code: str) -> int:
    """AUTH without waiting; returns the seq of the request."""
    return connection.send("AUTH", {"token": token, "verifyCode": code, "authTokenType": "CHECK_CODE"})


def wrong(code: str) -> str:
    """A wrong code of the same length."""
    return f"{(int(code) + 1) % 10 ** len(code):0{len(code)}}"


def tokens(checked: Frame) -> list[str]:
    """The kinds of tokens in the reply to AUTH; a later release may have more."""
    return [kind for kind in ("LOGIN", "REGISTER") if kind in checked["tokenAttrs"]]


def register_token(connection: Connection, accounts: People, account: Account) -> str:
    """A REGISTER token of a new phone."""
    token = ask(connection, account.phone)["token"]
    checked = connection.reply(try_code(connection, token, accounts.code(account)))
    check("REGISTER" in checked["tokenAttrs"], "a REGISTER token for a phone nobody has", checked.value)
    return checked["tokenAttrs"]["REGISTER"]["token"]


# Codes.


@case("AUT-01")
def test_code_request(client: Connection, accounts: People, newcomer: Newcomer) -> None:
    """The reply holds a token for AUTH and the length of the code that is sent."""
    somebody = newcomer()
    reply = ask(client, somebody.phone)
    check(isinstance(reply["token"], str) and reply["token"], "a token", reply.value)
    code = accounts.code(somebody)
    equal(reply["codeLength"], len(code), "codeLength")
    for key in ("requestMaxDuration", "requestCountLeft", "altActionDuration"):
        check(type(reply.get(key)) is int, f"{key}, a number", reply.value)
    client.reply(try_code(client, reply["token"], code))


@case("AUT-01")
def test_how_phones_are_written(
    client: Connection, accounts: People, newcomer: Newcomer, login: LogIn
) -> None:
    """A phone with separators, and without the plus, is the same phone."""
    nina = newcomer("nina")
    device = login(nina)
    digits = nina.phone.removeprefix("+")
    token = ask(client, f"+{digits[:3]} ({digits[3:6]}) {digits[6:9]}-{digits[9:]}")["token"]
    checked = client.reply(try_code(client, token, accounts.code(nina)))
    equal(checked["profile"]["contact"]["id"], device.user_id, "the user of the phone with separators")
    token = ask(client, digits)["token"]
    checked = client.reply(try_code(client, token, accounts.code(nina)))
    equal(checked["profile"]["contact"]["id"], device.user_id, "the user of the phone without plus")


@case("AUT-02")
@pytest.mark.parametrize("tries", ["all but one", "all"])
def test_wrong_codes(
    client: Connection, accounts: People, newcomer: Newcomer, limits: Limits, tries: str
) -> None:
    """After loginCodeTries wrong codes the right code is refused; after one less it is accepted."""
    somebody = newcomer()
    token, code = ask(client, somebody.phone)["token"], accounts.code(somebody)
    for _ in range(limits["loginCodeTries"] - (tries == "all but one")):
        client.error("error.code.wrong", try_code(client, token, wrong(code)))
    last = try_code(client, token, code)
    if tries == "all":
        client.error("error.code.expired", last)
        client.error("error.code.expired", try_code(client, token, wrong(code)))
    else:
        client.reply(last)


@case("AUT-02")
def test_wrong_codes_from_everywhere(
    connect: Connect, accounts: People, newcomer: Newcomer, limits: Limits
) -> None:
    """Simultaneous attempts on many connections count together, and only the allowed number is checked."""
    somebody = newcomer()
    first = connect("first")
    token, code = ask(first, somebody.phone)["token"], accounts.code(somebody)
    others = [connect(f"guess {number}") for number in range(limits["loginCodeTries"] + 3)]
    tries = [(each, try_code(each, token, wrong(code))) for each in others]
    codes = sorted(each.answer(seq).get("error", "a token") for each, seq in tries)
    expected = ["error.code.expired"] * 3 + ["error.code.wrong"] * limits["loginCodeTries"]
    equal(codes, expected, "answers to wrong codes")
    first.error("error.code.expired", try_code(first, token, code))


@case("AUT-03")
@pytest.mark.parametrize("known", [False, True], ids=["new phone", "known phone"])
def test_code_twice(
    client: Connection, accounts: People, newcomer: Newcomer, login: LogIn, known: bool
) -> None:
    """A code is accepted only once."""
    somebody = newcomer()
    if known:
        login(somebody)
    token, code = ask(client, somebody.phone)["token"], accounts.code(somebody)
    checked = client.reply(try_code(client, token, code))
    equal(tokens(checked), ["LOGIN" if known else "REGISTER"], "tokens")
    client.error("error.code.expired", try_code(client, token, code))


@case("AUT-03")
def test_code_twice_at_once(connect: Connect, accounts: People, newcomer: Newcomer) -> None:
    """When two connections use one code at the same time, exactly one of them gets a token."""
    somebody = newcomer()
    first, second = connect("first"), connect("second")
    token, code = ask(first, somebody.phone)["token"], accounts.code(somebody)
    uses = [(each, try_code(each, token, code)) for each in (first, second)]
    answers = [each.answer(seq) for each, seq in uses]
    equal(sorted(each.get("error", "a token") for each in answers), ["a token", "error.code.expired"], "uses")


@case("AUT-04")
def test_old_code(client: Connection, accounts: People, newcomer: Newcomer, limits: Limits) -> None:
    """A code older than loginCodeLifetimeMs is refused."""
    seconds = time_out(limits, "loginCodeLifetimeMs")
    somebody = newcomer()
    token, code = ask(client, somebody.phone)["token"], accounts.code(somebody)
    client.stall(seconds * 1000 + 20)
    client.error("error.code.expired", try_code(client, token, code))


@case("AUT-05")
def test_code_of_another_phone(client: Connection, accounts: People, newcomer: Newcomer) -> None:
    """The code of one phone does not match a request for another; each still matches its own."""
    for _ in range(3):
        one, other = newcomer("one"), newcomer("other")
        token, code = ask(client, one.phone)["token"], accounts.code(one)
        foreign, other_code = ask(client, other.phone)["token"], accounts.code(other)
        if code != other_code:
            break
    else:
        skip("this server sends everybody the same code")
    client.error("error.code.wrong", try_code(client, foreign, code))
    client.error("error.code.wrong", try_code(client, token, other_code))
    client.reply(try_code(client, foreign, other_code))
    client.reply(try_code(client, token, code))


@case("AUT-09")
def test_many_codes(client: Connection, connect: Connect, phone: Phone, limits: Limits) -> None:
    """maxCodesPerPhonePerHour requests are served; the next is refused on any connection."""
    number = phone()
    left = []
    for _ in range(limits["maxCodesPerPhonePerHour"]):
        left.append(ask(client, number)["requestCountLeft"])
    equal(left, list(range(len(left)))[::-1], "requestCountLeft")
    for connection in (client, connect("elsewhere")):
        connection.refused("auth.blocked", "AUTH_REQUEST", {"phone": number, "type": "RESEND"})
    ask(client, phone())


@case("AUT-09")
def test_codes_from_elsewhere(
    client: Connection, connect: Connect, address: str, phone: Phone, limits: Limits
) -> None:
    """When one address has used up the codes of a phone, another address can still request codes for it."""
    most = limits["maxCodesPerPhonePerHour"]
    if most >= limits["maxCodesPerPhoneFromAllPerHour"]:
        skip(f"maxCodesPerPhoneFromAllPerHour is not above maxCodesPerPhonePerHour, {most}: {LESS}")
    number = phone()
    greedy = connect("greedy", source=address)
    for _ in range(most):
        greedy.call("AUTH_REQUEST", {"phone": number, "type": "START_AUTH"})
    greedy.refused("auth.blocked", "AUTH_REQUEST", {"phone": number, "type": "START_AUTH"})
    equal(ask(client, number)["requestCountLeft"], most - 1, "requestCountLeft elsewhere")


@case("AUT-20")
@pytest.mark.parametrize("known", [False, True], ids=["no account", "logged in"])
def test_many_codes_for_one_phone(
    client: Connection,
    connect: Connect,
    address: str,
    newcomer: Newcomer,
    login: LogIn,
    limits: Limits,
    known: bool,
) -> None:
    """maxCodesPerPhoneFromAllPerHour requests are served; later ones only from a known address."""
    most, each = limits["maxCodesPerPhoneFromAllPerHour"], limits["maxCodesPerPhonePerHour"]
    if not each < most <= 2 * each - 2 or most > MOST_CODES:
        skip(f"needs more than two addresses for maxCodesPerPhoneFromAllPerHour, {most}: {LESS}")
    somebody = newcomer()
    if known:
        login(somebody)
    request = {"phone": somebody.phone, "type": "START_AUTH"}
    elsewhere = connect("elsewhere", source=address)
    for _ in range(each):
        elsewhere.call("AUTH_REQUEST", request)
    # A user with a login has already used one of these requests.
    for _ in range(most - each - known):
        ask(client, somebody.phone)
    if known:
        ask(client, somebody.phone)
    else:
        client.refused("auth.blocked", "AUTH_REQUEST", request)
    elsewhere.refused("auth.blocked", "AUTH_REQUEST", request)


@case("AUT-19")
def test_many_codes_for_one_address(
    client: Connection, connect: Connect, address: str, phone: Phone, limits: Limits, settings: Settings
) -> None:
    """maxCodesPerAddressPerHour requests are served, for any phone; later ones only from another address."""
    most, each = limits["maxCodesPerAddressPerHour"], limits["maxCodesPerPhonePerHour"]
    # A server that runs for other users would refuse everybody behind the same proxy for an hour.
    if most > MOST_CODES or "maxCodesPerAddressPerHour" not in settings.limits:
        skip(f"would use up maxCodesPerAddressPerHour, {most}: {LESS}")
    numbers = [phone() for _ in range(-(-most // each)) for _ in range(each)][:most]
    greedy = connect("greedy", source=address)
    for start in range(0, most, BURST):
        asked = numbers[start : start + BURST]
        packets = [greedy.packet("AUTH_REQUEST", {"phone": one, "type": "START_AUTH"}) for one in asked]
        greedy.coalesce(*(packet for _, packet in packets))
        for seq, _ in packets:
            greedy.reply(seq)
    for connection in (greedy, connect("greedy again", source=address)):
        connection.refused("auth.blocked", "AUTH_REQUEST", {"phone": phone(), "type": "START_AUTH"})
    ask(client, phone())


@case("AUT-10")
def test_strangers_and_users(client: Connection, newcomer: Newcomer, login: LogIn, phone: Phone) -> None:
    """The replies for phones with and without an account differ only in the token."""
    user = newcomer()
    login(user)
    replies = [ask(client, each) for each in (user.phone, phone())]
    # The account has requested one code more, to register, so the remaining counts differ.
    shown = [
        {key: value for key, value in each.value.items() if key not in ("token", "requestCountLeft")}
        for each in replies
    ]
    equal(shown[1], shown[0], "the reply to a stranger")
    equal(*(len(each["token"]) for each in replies), "length of the token")
    equal(*(sorted(each.value) for each in replies), "keys of the reply")


@case("AUT-12")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "+123",
        "1234",
        "+1234567890123456",
        "12 34",
        "phone",
        "+7999000000x",
        "7+9990000001",
        "++79990000001",
        "7999/000/0001",
        "٠١٢٣٤٥",
    ],
)
def test_no_phone(client: Connection, text: str) -> None:
    """An invalid phone is refused, and the connection stays open."""
    client.refused("error.phone.wrong", "AUTH_REQUEST", {"phone": text})
    client.alive()


@case("AUT-12")
@pytest.mark.parametrize("digits", [5, 15])
def test_shortest_and_longest_phone(client: Connection, rng: random.Random, digits: int) -> None:
    """5 digits are a phone, and so are 15."""
    ask(client, f"+999{rng.randrange(10 ** (digits - 3)):0{digits - 3}}")


@case("AUT-15")
def test_unknown_request(client: Connection, login: LogIn) -> None:
    """AUTH is refused with a token that no AUTH_REQUEST returned, such as a LOGIN token."""
    alice = login("alice")
    for token in ("notatoken", "", alice.token):
        client.error("error.code.expired", try_code(client, token, "123456"))


# Registration.


@case("AUT-13")
def test_registration(
    client: Connection, accounts: People, newcomer: Newcomer, connect: Connect, login: LogIn
) -> None:
    """A new phone gets an account with its names and a token that logs in; from then on it is known."""
    nina = newcomer("nina")
    token = register_token(client, accounts, nina)
    reply = client.call(
        "AUTH_CONFIRM",
        {"token": token, "tokenType": "REGISTER", "firstName": "Нина 😀", "lastName": "van Dyk"},
    )
    user = reply["profile"]["contact"]
    equal(reply["userToken"], user["id"], "userToken, the new user's id")
    check(user["id"] > 0, "a positive id", user["id"])
    equal(reply["tokenType"], "LOGIN", "tokenType")
    equal(f"+{user['phone']}", nina.phone, "phone")
    name = only(user["names"], "name")
    equal((name["firstName"], name["lastName"]), ("Нина 😀", "van Dyk"), "names")

    nina.devices["phone"] = reply["token"]
    equal(login(nina).user_id, user["id"], "the user who logs in")
    again = connect("again")
    checked = again.reply(try_code(again, ask(again, nina.phone)["token"], accounts.code(nina)))
    equal(tokens(checked), ["LOGIN"], "tokens of a phone that has an account")
    equal(checked["profile"]["contact"]["id"], user["id"], "the user of the phone")


@case("AUT-16")
@pytest.mark.parametrize("name", ["", " ", "\t \u00a0"], ids=["empty", "blank", "blanks"])
def test_registration_without_a_name(
    client: Connection, accounts: People, newcomer: Newcomer, name: str
) -> None:
    """A blank first name is refused, and the token stays valid for another attempt."""
    token = register_token(client, accounts, newcomer())
    client.refused("proto.payload", "AUTH_CONFIRM", {"token": token, "firstName": name})
    client.call("AUTH_CONFIRM", {"token": token, "firstName": "Nina"})


@case("MSP-17")
@pytest.mark.parametrize("character", ["n", "Н", "😀"])
def test_longest_name(
    client: Connection, accounts: People, newcomer: Newcomer, limits: Limits, character: str
) -> None:
    """A first or last name one unit over maxNameUnits is refused; one of exactly maxNameUnits is stored."""
    most = limits["maxNameUnits"]
    name = character * (most // len(character.encode("utf-16-le")) * 2)
    token = register_token(client, accounts, newcomer())
    for long in ({"firstName": f"{name}n"}, {"firstName": "n", "lastName": f"{name}n"}):
        client.refused("proto.payload", "AUTH_CONFIRM", {"token": token, **long})
    reply = client.call("AUTH_CONFIRM", {"token": token, "firstName": name, "lastName": name})
    kept = only(reply["profile"]["contact"]["names"], "name")
    equal((kept["firstName"], kept["lastName"]), (name, name), "names")


@case("AUT-17")
def test_registration_twice(client: Connection, accounts: People, newcomer: Newcomer) -> None:
    """A REGISTER token makes one account."""
    token = register_token(client, accounts, newcomer())
    client.call("AUTH_CONFIRM", {"token": token, "firstName": "Nina"})
    client.refused("error.code.expired", "AUTH_CONFIRM", {"token": token, "firstName": "Nora"})
    client.refused("error.code.expired", "AUTH_CONFIRM", {"token": "notatoken", "firstName": "Nora"})


@case("AUT-21")
@pytest.mark.parametrize("how", ["registered", "moved"])
def test_registration_of_a_phone_that_is_taken(
    client: Connection, accounts: People, newcomer: Newcomer, login: LogIn, how: str
) -> None:
    """A REGISTER token becomes useless once its phone has an account."""
    nina = newcomer("nina")
    token = register_token(client, accounts, nina)
    if how == "registered":
        login(nina)
    else:
        moving = login(newcomer("moving"))
        asked = moving.call("PHONE_BIND_REQUEST", {"phone": nina.phone})["token"]
        moving.call("PHONE_BIND_CONFIRM", {"token": asked, "verifyCode": accounts.code(nina)})
    client.refused("error.code.expired", "AUTH_CONFIRM", {"token": token, "firstName": "Nora"})


# Tokens.


def dead_token(connection: Connection, token: str) -> None:
    """LOGIN is refused with the text that clients look for, and the connection stays open."""
    refusal = connection.refused("login.token", "LOGIN", {"token": token})
    equal(refusal["message"], "FAIL_LOGIN_TOKEN", "message")
    connection.alive()


@case("AUT-06")
def test_unknown_token(client: Connection, accounts: People, connect: Connect) -> None:
    """Invalid tokens are refused as clients expect, and the connection can still log in."""
    token = accounts.token("alice", "phone", connect)
    for each in ("", "notatoken", "Ж", token[:-1], token + "x", token.swapcase()):
        if each != token:
            dead_token(client, each)
    client.call("LOGIN", {"token": token})


@case("AUT-06")
def test_request_token_is_no_login_token(client: Connection, accounts: People, newcomer: Newcomer) -> None:
    """Neither the token of a code request nor a REGISTER token logs in."""
    somebody = newcomer()
    token = ask(client, somebody.phone)["token"]
    dead_token(client, token)
    checked = client.reply(try_code(client, token, accounts.code(somebody)))
    dead_token(client, checked["tokenAttrs"]["REGISTER"]["token"])


@case("AUT-07")
def test_logout(login: LogIn, newcomer: Newcomer, connect: Connect) -> None:
    """LOGOUT is answered, then the connection closes; the token is invalid on every connection."""
    nina = newcomer("nina")
    device, twin, laptop = login(nina), login(nina), login(nina, "laptop")
    device.call("LOGOUT")
    device.ends()
    device.closed()
    twin.ends()
    twin.closed()
    later = connect("later")
    dead_token(later, device.token)
    laptop.alive()
    later.call("LOGIN", {"token": laptop.token})


@case("AUT-22")
def test_requests_after_logout(
    login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, connect: Connect
) -> None:
    """Requests that follow a LOGOUT in the same write are refused or not answered, and have no effect."""
    nina = newcomer("nina")
    device, bob = login(nina), login("bob")
    chat = group(bob, device)
    end, first = device.packet("LOGOUT")
    message = {"chatId": chat, "message": {"text": "too late", "cid": cid(), "attaches": []}}
    sent, second = device.packet("MSG_SEND", message)
    asked, third = device.packet("CHAT_HISTORY", {"chatId": chat, "from": 0, "forward": 9, "backward": 0})
    device.coalesce(first, second, third)
    device.reply(end)
    device.ends()
    for number in (sent, asked):
        answers = [each for each in device.unread if each.is_answer and each.seq == number]
        equal([each.get("error") for each in answers], ["proto.state"] * len(answers), "answers")
    bob.silence_by_fence(of=["NOTIF_MESSAGE"])
    dead_token(connect(), device.token)


@case("AUT-08")
def test_close_other_sessions(
    login: LogIn, newcomer: Newcomer, connect: Connect, group: Group, cid: Cid
) -> None:
    """SESSIONS_CLOSE ends the user's other sessions, their connections and tokens, and nobody else's."""
    nina = newcomer("nina")
    phone, laptop, tablet, bob = login(nina), login(nina, "laptop"), login(nina, "tablet"), login("bob")
    reply = phone.call("SESSIONS_CLOSE")
    equal(reply["token"], phone.token, "the caller's token")
    for each in (laptop, tablet):
        each.ends()
        each.closed()
        dead_token(connect(), each.token)
    connect().call("LOGIN", {"token": phone.token})
    equal([each["current"] for each in phone.call("SESSIONS_INFO")["sessions"]], [True], "sessions left")
    say(bob, group(bob, phone), cid())
    phone.push("NOTIF_MESSAGE")


@case("AUT-08")
def test_close_no_other_session(login: LogIn, newcomer: Newcomer) -> None:
    """SESSIONS_CLOSE without other sessions has the same reply."""
    device = login(newcomer())
    for _ in range(2):
        equal(device.call("SESSIONS_CLOSE")["token"], device.token, "the caller's token")
    device.alive()


@case("AUT-37")
def test_close_one_session(login: LogIn, newcomer: Newcomer, connect: Connect) -> None:
    """SESSIONS_CLOSE with an id ends that session; unknown ids and ids of other users change nothing."""
    nina = newcomer("nina")
    phone, laptop, tablet, bob = login(nina), login(nina, "laptop"), login(nina, "tablet"), login("bob")
    own, lost = (device.call("SESSIONS_INFO")["sessions"][0]["id"] for device in (phone, laptop))
    theirs = bob.call("SESSIONS_INFO")["sessions"][0]["id"]
    phone.refused("not.allowed", "SESSIONS_CLOSE", {"id": own})
    for other in (theirs, 1):
        equal(phone.call("SESSIONS_CLOSE", {"id": other})["token"], phone.token, "the caller's token")
    equal(phone.call("SESSIONS_CLOSE", {"id": lost})["token"], phone.token, "the caller's token")
    laptop.ends()
    laptop.closed()
    dead_token(connect(), laptop.token)
    phone.call("SESSIONS_CLOSE", {"id": lost})
    equal(len(phone.call("SESSIONS_INFO")["sessions"]), 2, "sessions left")
    for each in (tablet, bob):
        each.alive()


@case("AUT-28")
@pytest.mark.parametrize("others", [True, False], ids=["another session", "no other session"])
def test_logins_under_way(
    client: Connection, accounts: People, login: LogIn, newcomer: Newcomer, others: bool
) -> None:
    """SESSIONS_CLOSE voids an approved link and, if it closes a session, also a sent code."""
    nina = newcomer("nina")
    phone = login(nina)
    approver = login(nina, "laptop") if others else phone
    link = client.call("GET_QR", {})
    approver.call("AUTH_QR_APPROVE", {"qrLink": link["qrLink"]})
    token = ask(client, nina.phone)["token"]
    code = accounts.code(nina)
    phone.call("SESSIONS_CLOSE")
    client.refused("track.not.found", "LOGIN_BY_QR", {"trackId": link["trackId"]})
    if others:
        client.error("error.code.expired", try_code(client, token, code))
    else:
        # A thief of the only session must not lock its owner out.
        equal(tokens(client.reply(try_code(client, token, code))), ["LOGIN"], "tokens")


@case("AUT-29")
def test_too_many_sessions(client: Connection, login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """A login above the limit is served, and ends a session that is not connected."""
    most = limits["maxSessions"]
    if most > min(MOST_CONNECTIONS, limits["maxQRApprovalsPerHour"]):
        skip(f"maxSessions is {most}, too many to open: {LESS}")
    nina = login(newcomer("nina"))

    def sign_in() -> str:
        link = client.call("GET_QR", {})
        nina.call("AUTH_QR_APPROVE", {"qrLink": link["qrLink"]})
        taken = client.call("LOGIN_BY_QR", {"trackId": link["trackId"]})
        return taken["tokenAttrs"]["LOGIN"]["token"]

    found = [sign_in() for _ in range(most)]
    sessions = nina.call("SESSIONS_INFO")["sessions"]
    equal(len(sessions), most, "sessions")
    check(any(each["current"] for each in sessions), "the session that is connected", sessions)
    # The connection uses the session of the first token. The last login ended the session of the second one.
    dead_token(client, found[1])
    client.call("LOGIN", {"token": found[-1]})


@case("AUT-11")
@pytest.mark.parametrize("whose", ["another user's", "another device's"])
def test_login_as_somebody_else(login: LogIn, cid: Cid, whose: str) -> None:
    """After a login, LOGIN with the token of another session is refused, and the first login holds."""
    alice = login("alice")
    other = login("bob") if whose == "another user's" else login("alice", "laptop")
    alice.refused("proto.state", "LOGIN", {"token": other.token})
    equal(say(alice, SAVED, cid())["sender"], alice.user_id, "sender of a message")
    alice.call("LOGIN", {"token": alice.token})


@case("AUT-18")
def test_too_many_connections(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """A token may have maxConnectionsPerToken connections; one more closes the oldest of this device."""
    most = limits["maxConnectionsPerToken"]
    if most > MOST_CONNECTIONS:
        skip(f"maxConnectionsPerToken is {most}, too many to open: {LESS}")
    nina = newcomer("nina")
    laptop, held = login(nina, "laptop"), [login(nina) for _ in range(most)]
    for each in held:
        each.alive()
    for _ in range(2):
        held.append(login(nina))
        oldest = held.pop(0)
        oldest.ends()
        oldest.closed()
        for each in (laptop, *held):
            each.alive()


@case("AUT-14")
def test_sessions(login: LogIn) -> None:
    """Both devices see both sessions, each with its own first."""
    phone, laptop = login("alice"), login("alice", "laptop")
    lists = [each.call("SESSIONS_INFO")["sessions"] for each in (phone, laptop)]
    for sessions in lists:
        equal([each["current"] for each in sessions], [True] + [False] * (len(sessions) - 1), "current")
        check(all(each["time"] > 0 for each in sessions), "when each was seen", sessions)
    mine, theirs = ({each["id"] for each in sessions} for sessions in lists)
    equal(mine, theirs, "the sessions that the other device sees")
    check(len(mine) >= 2, "both sessions", lists)
    check(lists[0][0]["id"] != lists[1][0]["id"], "each device's own session first", lists)
