"""RAT: rate limits, and how long to wait."""

from __future__ import annotations

from tambour_conformance.connection import Connection, Error, Reply
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer, message
from tambour_conformance.people import Device
from tambour_conformance.talk import BURST, LESS, PATIENCE, SAVED, dialog, say
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: A case that must reach a limit of requests or dialogs is skipped if the limit is higher than these.
MOST_REQUESTS, MOST_DIALOGS = 2000, 60
HOUR_MS = 3_600_000
#: How often a case repeats a check that may fail because of timing.
FEW = 10
#: A search query without results.
NOBODY = {"phone": "+99912345"}


def wait_ms(refusal: Frame) -> int:
    """The `retryAfter` of a refusal."""
    wait = refusal.get("retryAfter")
    check(type(wait) is int and wait > 0, "a retryAfter", refusal.value)
    return wait


def wait_out(device: Device, refusal: Frame, rate: str, limits: Limits) -> None:
    """Waits as long as a refusal says; skips the case if that is too long."""
    wait = wait_ms(refusal)
    if wait > PATIENCE * 1000:
        skip(f"{rate} is {limits[rate]}, too long to wait for: {LESS}")
    # A foreign server's clock cannot be moved.
    device.stall(wait)


def search_too_often(device: Device, most: int) -> Frame:
    """Searches until the server refuses; skips the case if that takes too long."""
    if most > MOST_REQUESTS:
        skip(f"searchBurst is {most}: {LESS}")
    for _ in range(2 * most):
        seq = device.send("CONTACT_INFO_BY_PHONE", NOBODY)
        frame = device.either(Error("user.not.found", seq), Error("too.many.requests", seq))
        if frame["error"] == "too.many.requests":
            return frame
    check(False, f"a refusal after at most {2 * most} searches", "none")
    raise AssertionError


@case("RAT-01")
def test_too_often(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """Requests from an empty bucket are refused until `retryAfter` has passed, and served then."""
    nina = login(newcomer("nina"))
    wait_out(nina, search_too_often(nina, limits["searchBurst"]), "searchesPerMinute", limits)
    nina.refused("user.not.found", "CONTACT_INFO_BY_PHONE", NOBODY)
    nina.alive()


@case("RAT-02")
def test_who_is_kept_from_what(
    login: LogIn, newcomer: Newcomer, bob: Device, cid: Cid, limits: Limits
) -> None:
    """An empty bucket does not affect requests of other buckets or of other users."""
    nina = login(newcomer("nina"))
    search_too_often(nina, limits["searchBurst"])
    say(nina, SAVED, cid())
    bob.refused("user.not.found", "CONTACT_INFO_BY_PHONE", NOBODY)


@case("RAT-03")
def test_one_bucket_for_all_devices(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """All devices and connections of a user share one bucket."""
    nina = newcomer("nina")
    phone, laptop = login(nina), login(nina, "laptop")
    search_too_often(phone, limits["searchBurst"])
    for each in (laptop, login(nina)):
        seq = each.send("CONTACT_INFO_BY_PHONE", NOBODY)
        # The bucket refills a little while the other connections log in.
        frame = each.either(Error("user.not.found", seq), Error("too.many.requests", seq))
        for _ in range(limits["searchBurst"] // 2):
            if frame["error"] == "too.many.requests":
                break
            seq = each.send("CONTACT_INFO_BY_PHONE", NOBODY)
            frame = each.either(Error("user.not.found", seq), Error("too.many.requests", seq))
        equal(frame["error"], "too.many.requests", f"what {each.name} gets")


@case("RAT-04")
def test_each_user_counts(
    login: LogIn, newcomer: Newcomer, bob: Device, group: Group, limits: Limits
) -> None:
    """Each named user costs a unit; a request with more users than the bucket holds also empties it."""
    most = limits["inviteBurst"]
    if most + 1 > limits["maxIDsPerRequest"]:
        skip(f"inviteBurst is {most}: {LESS}")
    for count in (most, most + 1):
        nina = login(newcomer("nina"))
        chat = group(nina)
        # The other users are distinct unknown ids, because a user named twice counts once.
        users = [bob.user_id, *range(1 << 61, (1 << 61) + count - 1)]
        change = {"chatId": chat, "userIds": users, "operation": "add"}
        nina.refused("user.not.found", "CHAT_MEMBERS_UPDATE", change)
        wait_ms(nina.refused("too.many.requests", "CHAT_MEMBERS_UPDATE", change))


@case("RAT-05")
def test_too_many_logins(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """Too many LOGINs of one account are refused with login.flood; its token stays valid."""
    most = limits["loginBurst"]
    if most > MOST_REQUESTS:
        skip(f"loginBurst is {most}: {LESS}")
    nina = login(newcomer("nina"))
    refusal = None
    # Sends many at a time, because single logins on a slow machine may be slower than the bucket refills.
    for _ in range(0, 3 * most, BURST):
        packets = [nina.packet("LOGIN", {"token": nina.token}) for _ in range(BURST)]
        nina.coalesce(*(packet for _, packet in packets))
        frames = [nina.either(Reply(seq), Error("login.flood", seq)) for seq, _ in packets]
        refusal = next((frame for frame in frames if "error" in frame.value), None)
        if refusal is not None:
            break
    check(refusal is not None, f"a refusal after at most {3 * most} logins", "none")
    assert refusal is not None
    login("bob")
    wait_out(nina, refusal, "loginsPerMinute", limits)
    nina.call("LOGIN", {"token": nina.token})


def guess(connection: Connection, behind: bytes = b"") -> list[str]:
    """Tries many codes at a time for an unknown code request; returns the codes of the refusals.

    `behind` is a packet to send right after these requests.
    """
    packets = [connection.packet("AUTH", {"token": "none", "verifyCode": "0"}) for _ in range(BURST)]
    connection.coalesce(*(packet for _, packet in packets), behind)
    return [
        connection.either(Error("error.code.expired", seq), Error("too.many.requests", seq))["error"]
        for seq, _ in packets
    ]


def guess_too_often(connection: Connection, limits: Limits) -> None:
    """Tries codes until the server refuses; skips the case if that takes too long."""
    most = limits["authBurst"]
    if most > MOST_REQUESTS:
        skip(f"authBurst is {most}: {LESS}")
    for _ in range(0, 2 * most + BURST, BURST):
        if guess(connection)[-1] == "too.many.requests":
            return
    check(False, f"a refusal after at most {2 * most + BURST} codes", "none")


def is_kept_waiting(connection: Connection, limits: Limits) -> bool:
    """Whether the bucket of the connection is used up: half of its units, in guesses, get a refusal."""
    rounds = max(1, limits["authBurst"] // 2 // BURST)
    return any("too.many.requests" in guess(connection) for _ in range(rounds))


@case("RAT-07")
def test_bad_tokens(
    connect: Connect, client: Connection, login: LogIn, newcomer: Newcomer, address: str, limits: Limits
) -> None:
    """After too many attempts, an address gets login.flood for bad tokens; a good token still works."""
    nina = login(newcomer("nina"))
    guesser = connect("guesser", source=address)
    guess_too_often(guesser, limits)
    for _ in range(FEW):
        seq, bad_token = guesser.packet("LOGIN", {"token": "none"})
        guess(guesser, bad_token)
        refusal = guesser.either(Error("login.flood", seq), Error("login.token", seq))
        if refusal["error"] == "login.flood":
            break
    equal(refusal["error"], "login.flood", f"what the last of {FEW} bad tokens is refused with")
    wait_ms(refusal)
    guesser.call("LOGIN", {"token": nina.token})
    client.refused("login.token", "LOGIN", {"token": "none"})


@case("RAT-08")
def test_whose_guesses(
    connect: Connect, login: LogIn, newcomer: Newcomer, address: str, limits: Limits
) -> None:
    """Attempts after a login are charged to the user, attempts before a login to the address."""
    nina, otto = login(newcomer("nina")), login(newcomer("otto"))
    here, stranger, other = (connect(name, source=address) for name in ("nina", "stranger", "other"))
    here.call("LOGIN", {"token": nina.token})
    guess_too_often(here, limits)
    check(is_kept_waiting(nina, limits), "a refusal at the user's other address", "none")
    equal(set(guess(stranger)), {"error.code.expired"}, "what others at the address are refused with")
    guess_too_often(stranger, limits)
    check(is_kept_waiting(other, limits), "a refusal of another stranger at the address", "none")
    other.call("LOGIN", {"token": otto.token})
    equal(set(guess(other)), {"error.code.expired"}, "what a user at the address is refused with")


@case("RAT-09")
def test_strangers(client: Connection, login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """Too many PINGs before a LOGIN are refused; other connections, and PINGs after LOGIN, are served."""
    most = limits["strangerBurst"]
    if most > MOST_REQUESTS:
        skip(f"strangerBurst is {most}: {LESS}")
    nina = login(newcomer("nina"))
    refusal = None
    for _ in range(0, 2 * most + BURST, BURST):
        packets = [client.packet("PING", {}) for _ in range(BURST)]
        client.coalesce(*(packet for _, packet in packets))
        for seq, _ in packets:
            frame = client.either(Reply(seq), Error("too.many.requests", seq))
            if "error" in frame.value:
                refusal = frame
        if refusal is not None:
            break
    check(refusal is not None, f"a refusal after at most {2 * most + BURST} requests", "none")
    assert refusal is not None
    wait_ms(refusal)
    nina.alive()
    client.call("LOGIN", {"token": nina.token})
    client.alive()


@case("RAT-06")
def test_too_many_dialogs(login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits) -> None:
    """A new dialog above the limit is refused, unless the other user has written or added the sender."""
    most = limits["maxNewDialogsPerHour"]
    if most > MOST_DIALOGS:
        skip(f"maxNewDialogsPerHour is {most}: {LESS}")
    nina, friend, fan = login(newcomer("nina")), login(newcomer("friend")), login(newcomer("fan"))
    say(friend, dialog(friend, nina), cid())
    fan.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "ADD"})
    begun = [dialog(nina, login(newcomer())) for _ in range(most)]
    for chat in begun:
        say(nina, chat, cid())
    last = dialog(nina, login(newcomer()))
    for chat in (begun[0], dialog(nina, friend), SAVED, dialog(nina, fan)):
        refusal = nina.refused("too.many.requests", "MSG_SEND", {"chatId": last, "message": message(cid())})
        wait = wait_ms(refusal)
        # No case waits for an hour, so only `retryAfter` is checked.
        check(wait <= HOUR_MS, "a retryAfter of an hour at most", wait)
        say(nina, chat, cid())
