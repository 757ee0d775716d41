"""TFA: the password in addition to the code."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Connect, Limits, LogIn, Newcomer
from tambour_conformance.people import Account, Device, People
from tambour_conformance.talk import LESS
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

PASSWORD, OTHER = "correct horse", "battery staple"
#: Invalid e-mail addresses.
NO_ADDRESSES = ("", "nina", "nina@", "@example.org", "a b@example.org", "a@b@example.org")
#: The values of `profileOptions`, and in the next line those of `expectedCapabilities`.
HAS_PASSWORD, HAS_EMAIL, HAS_HINT = 2, 3, 4
SET, UPDATE, RESTORE, HINT, EMAIL, REMOVE = range(6)
#: A case that must reach a limit of tracks, codes or attempts is skipped if the limit is higher.
MOST = 100


def track_of(device: Device) -> str:
    """Opens a track and returns its id."""
    return device.call("AUTH_CREATE_TRACK", {"type": 0})["trackId"]


def checked_track(device: Device, password: str = PASSWORD) -> str:
    """Opens a track, checks the current password on it, and returns its id."""
    track = track_of(device)
    device.call("AUTH_CHECK_PASSWORD", {"trackId": track, "password": password})
    return track


def set_password(device: Device, password: str = PASSWORD, **fields: Any) -> None:
    """Sets the first password of a user."""
    expected = [SET] + ([HINT] if "hint" in fields else [])
    value = {"trackId": track_of(device), "password": password, "expectedCapabilities": expected, **fields}
    device.call("AUTH_SET_2FA", value)


def after_code(connection: Connection, accounts: People, account: Account) -> Frame:
    """Requests a code and sends it; returns the reply to AUTH."""
    token = connection.call("AUTH_REQUEST", {"phone": account.phone, "type": "START_AUTH"})["token"]
    value = {"token": token, "verifyCode": accounts.code(account), "authTokenType": "CHECK_CODE"}
    return connection.call("AUTH", value)


def challenge(connection: Connection, accounts: People, account: Account) -> str:
    """Requests a code and sends it; returns the track of the `passwordChallenge`."""
    return after_code(connection, accounts, account)["passwordChallenge"]["trackId"]


def address_of(account: Account) -> str:
    """An e-mail address made from the account's phone, so that no other run uses it."""
    return f"n{account.phone.removeprefix('+')}@example.org"


def check_address(device: Device, accounts: People, track: str, address: str) -> None:
    """Confirms an e-mail address on a track with the code sent to it."""
    device.call("AUTH_VERIFY_EMAIL", {"trackId": track, "email": address})
    code = accounts.code(Account(address))
    reply = device.call("AUTH_CHECK_EMAIL", {"trackId": track, "verifyCode": code})
    equal(reply["email"], address, "the address that is known")


def nothing(reply: Frame) -> None:
    """Checks that an empty reply is the byte 80; a reply with fields of a later release passes too."""
    check(reply.value or reply.wire == b"\x80", "the payload 80", reply.wire.hex())


def options(frame: Frame) -> list[int]:
    return frame["profile"].get("profileOptions", [])


@case("TFA-01")
def test_tracks_belong_to_a_session(login: LogIn, newcomer: Newcomer, bob: Device) -> None:
    """Neither another user nor another session can use a track."""
    nina = newcomer("nina")
    phone, laptop = login(nina), login(nina, "laptop")
    track = track_of(phone)
    for each in (bob, laptop):
        each.refused("track.not.found", "AUTH_VALIDATE_HINT", {"trackId": track, "hint": "x"})
        value = {"trackId": track, "password": PASSWORD}
        each.refused("track.not.found", "AUTH_SET_2FA", value)
    phone.call("AUTH_VALIDATE_HINT", {"trackId": track, "hint": "x"})


@case("TFA-02")
def test_too_many_tracks(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """All devices of a user together can open maxTracksPerHour tracks, and no more."""
    most = limits["maxTracksPerHour"]
    if most > MOST:
        skip(f"maxTracksPerHour is {most}: {LESS}")
    nina = newcomer("nina")
    phone, laptop = login(nina), login(nina, "laptop")
    for number in range(most):
        track_of(laptop if number % 2 else phone)
    for each in (phone, laptop):
        each.refused("auth.blocked", "AUTH_CREATE_TRACK", {"type": 0})


@case("TFA-03")
@pytest.mark.parametrize("which", ["too short", "shortest", "longest", "too long"])
def test_length_of_a_password(login: LogIn, newcomer: Newcomer, limits: Limits, which: str) -> None:
    """Checking and setting a password accept the shortest and longest one, and refuse others."""
    units = {
        "too short": limits["minPasswordUnits"] - 1,
        "shortest": limits["minPasswordUnits"],
        "longest": limits["maxPasswordUnits"],
        "too long": limits["maxPasswordUnits"] + 1,
    }[which]
    nina = login(newcomer("nina"))
    value = {"trackId": track_of(nina), "password": "ж" * units}
    for opcode in ("AUTH_VALIDATE_PASSWORD", "AUTH_SET_2FA"):
        if which.startswith("too"):
            nina.refused("proto.payload", opcode, value)
        else:
            nina.call(opcode, value)


@case("TFA-21")
@pytest.mark.parametrize("character", ["\0", "\n", "\x7f", "\x85"], ids=["NUL", "LF", "DEL", "NEL"])
def test_control_characters(login: LogIn, newcomer: Newcomer, character: str) -> None:
    """Checking and setting a password refuse a control character at any position."""
    nina = login(newcomer("nina"))
    track = track_of(nina)
    for password in (character + PASSWORD, PASSWORD + character):
        for opcode in ("AUTH_VALIDATE_PASSWORD", "AUTH_SET_2FA"):
            nina.refused("proto.payload", opcode, {"trackId": track, "password": password})


@case("TFA-22")
@pytest.mark.parametrize("which", ["address", "account"])
def test_many_codes_by_mail(login: LogIn, newcomer: Newcomer, limits: Limits, which: str) -> None:
    """The limits per address and per account count the codes of all tracks."""
    name = "maxCodesPerEmailPerHour" if which == "address" else "maxEmailCodesPerUserPerHour"
    most = limits[name]
    if most > MOST:
        skip(f"{name} is {most}: {LESS}")
    people = [newcomer(f"nina {number}") for number in range(2 if which == "address" else 1)]
    devices = [login(each) for each in people]
    mailbox = address_of(people[0])

    codes = limits["maxEmailCodesPerTrack"]
    tracks: dict[int, str] = {}

    def ask(number: int) -> tuple[Device, dict[str, Any]]:
        device = devices[number % len(devices)]
        if which == "address":
            return device, {"trackId": track_of(device), "email": mailbox}
        # Sends several codes on each track, because the number of tracks is also limited.
        if number // codes not in tracks:
            tracks[number // codes] = track_of(device)
        return device, {"trackId": tracks[number // codes], "email": f"n{number}-{mailbox}"}

    for number in range(most):
        device, value = ask(number)
        device.call("AUTH_VERIFY_EMAIL", value)
    device, value = ask(most)
    device.refused("auth.blocked", "AUTH_VERIFY_EMAIL", value)


@case("TFA-04")
def test_the_old_password_first(login: LogIn, newcomer: Newcomer) -> None:
    """A user must give the old password before changing or removing it or setting an address."""
    nina = login(newcomer("nina"))
    set_password(nina)
    track = track_of(nina)
    for opcode, fields in (
        ("AUTH_VALIDATE_PASSWORD", {"password": OTHER}),
        ("AUTH_VERIFY_EMAIL", {"email": "nina@example.org"}),
        ("AUTH_SET_2FA", {"password": OTHER}),
        ("AUTH_SET_2FA", {"remove2fa": True}),
    ):
        nina.refused("not.allowed", opcode, {"trackId": track, **fields})
    nina.call("AUTH_CHECK_PASSWORD", {"trackId": track, "password": PASSWORD})
    nina.call("AUTH_VALIDATE_PASSWORD", {"trackId": track, "password": OTHER})
    value = {"trackId": track, "password": OTHER, "hint": None, "expectedCapabilities": [UPDATE]}
    nina.call("AUTH_SET_2FA", value)
    checked_track(nina, OTHER)


@case("TFA-05")
def test_no_address(login: LogIn, newcomer: Newcomer, accounts: People, limits: Limits) -> None:
    """An invalid e-mail address is refused, gets no code, and does not count as a code of the track."""
    most = limits["maxEmailCodesPerTrack"]
    if most > MOST:
        skip(f"maxEmailCodesPerTrack is {most}: {LESS}")
    account = newcomer("nina")
    nina, address = login(account), address_of(account)
    before = {text: accounts.newest_code(text) for text in NO_ADDRESSES}
    track = track_of(nina)
    for text in NO_ADDRESSES:
        nina.refused("proto.payload", "AUTH_VERIFY_EMAIL", {"trackId": track, "email": text})
    for _ in range(most):
        nina.call("AUTH_VERIFY_EMAIL", {"trackId": track, "email": address})
    nina.refused("auth.blocked", "AUTH_VERIFY_EMAIL", {"trackId": track, "email": address})
    # Wait for the last code: codes are sent in the order of their requests.
    accounts.code(Account(address))
    after = {text: accounts.newest_code(text) for text in NO_ADDRESSES}
    equal(after, before, "codes of what is no address")


@case("TFA-06")
def test_too_many_codes_by_email(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """A track sends at most maxEmailCodesPerTrack codes."""
    most = limits["maxEmailCodesPerTrack"]
    if most > MOST:
        skip(f"maxEmailCodesPerTrack is {most}: {LESS}")
    account = newcomer("nina")
    nina = login(account)
    value = {"trackId": track_of(nina), "email": address_of(account)}
    for _ in range(most):
        nina.call("AUTH_VERIFY_EMAIL", value)
    nina.refused("auth.blocked", "AUTH_VERIFY_EMAIL", value)


@case("TFA-07")
def test_wrong_codes_by_email(login: LogIn, newcomer: Newcomer, accounts: People, limits: Limits) -> None:
    """After loginCodeTries wrong codes, the right code is refused too."""
    account = newcomer("nina")
    nina = login(account)
    track, address = track_of(nina), address_of(account)
    nina.call("AUTH_VERIFY_EMAIL", {"trackId": track, "email": address})
    code = accounts.code(Account(address))
    for _ in range(limits["loginCodeTries"]):
        nina.refused("error.code.wrong", "AUTH_CHECK_EMAIL", {"trackId": track, "verifyCode": f"{code}0"})
    nina.refused("error.code.expired", "AUTH_CHECK_EMAIL", {"trackId": track, "verifyCode": code})


@case("TFA-08")
def test_wrong_password(login: LogIn, newcomer: Newcomer, accounts: People, client: Connection) -> None:
    """A nearly correct password is refused; then the correct one is accepted on the same connection."""
    account = newcomer("nina")
    nina = login(account)
    set_password(nina)
    asked = {"trackId": track_of(nina)}
    answered = {"trackId": challenge(client, accounts, account)}
    for wrong in (PASSWORD.upper(), PASSWORD[:-1], f"{PASSWORD} ", f"{PASSWORD}\0", f"{PASSWORD}\0\0\0", ""):
        nina.refused("error.password.wrong", "AUTH_CHECK_PASSWORD", {**asked, "password": wrong})
    wrong = {**answered, "password": OTHER}
    client.refused("error.password.wrong", "AUTH_LOGIN_CHECK_PASSWORD", wrong)
    nina.call("AUTH_CHECK_PASSWORD", {**asked, "password": PASSWORD})
    client.call("AUTH_LOGIN_CHECK_PASSWORD", {**answered, "password": PASSWORD})


@case("TFA-09")
def test_tries_are_bounded(
    login: LogIn, newcomer: Newcomer, accounts: People, client: Connection, limits: Limits
) -> None:
    """Attempts on all tracks count together; after too many, even the right password is refused."""
    most = limits["maxPasswordTriesPerHour"]
    if most > MOST:
        skip(f"maxPasswordTriesPerHour is {most}: {LESS}")
    account = newcomer("nina")
    nina = login(account)
    set_password(nina)
    answered = {"trackId": challenge(client, accounts, account)}
    for number in range(most):
        if number % 2:
            wrong = {**answered, "password": OTHER}
            client.refused("error.password.wrong", "AUTH_LOGIN_CHECK_PASSWORD", wrong)
        else:
            wrong = {"trackId": track_of(nina), "password": OTHER}
            nina.refused("error.password.wrong", "AUTH_CHECK_PASSWORD", wrong)
    right = {"trackId": track_of(nina), "password": PASSWORD}
    refusals = [
        nina.refused("auth.blocked", "AUTH_CHECK_PASSWORD", right),
        client.refused("auth.blocked", "AUTH_LOGIN_CHECK_PASSWORD", {**answered, "password": PASSWORD}),
    ]
    for refusal in refusals:
        check(refusal.get("retryAfter", 0) > 0, "a retryAfter", refusal.value)


@case("TFA-10")
def test_no_password(login: LogIn, newcomer: Newcomer) -> None:
    """AUTH_CHECK_PASSWORD is refused for a user who has no password."""
    nina = login(newcomer("nina"))
    value = {"trackId": track_of(nina), "password": PASSWORD}
    nina.refused("not.allowed", "AUTH_CHECK_PASSWORD", value)


@case("TFA-11")
def test_a_password_is_set(login: LogIn, newcomer: Newcomer, accounts: People, client: Connection) -> None:
    """After a password is set, all connections are told, logins show it, and AUTH requires it."""
    account = newcomer("nina")
    phone, laptop = login(account), login(account, "laptop")
    track, address = track_of(phone), address_of(account)
    phone.call("AUTH_VALIDATE_PASSWORD", {"trackId": track, "password": PASSWORD})
    check_address(phone, accounts, track, address)
    phone.call("AUTH_VALIDATE_HINT", {"trackId": track, "hint": "a horse"})
    value = {"trackId": track, "password": PASSWORD, "hint": "a horse"}
    phone.call("AUTH_SET_2FA", {**value, "expectedCapabilities": [SET, HINT, EMAIL]})
    expected = [HAS_PASSWORD, HAS_EMAIL, HAS_HINT]
    for each in (phone, laptop):
        equal(sorted(options(each.push("NOTIF_PROFILE"))), expected, f"what {each.name} is told")
    equal(sorted(options(login(account).login)), expected, "what a login says")
    equal(after_code(client, accounts, account)["passwordChallenge"]["hint"], "a horse", "hint")


def changes_nothing(device: Device, code: str, **fields: Any) -> None:
    """Checks that an AUTH_SET_2FA is refused and changes nothing."""
    before = device.call("AUTH_2FA_DETAILS", {})["password"]
    device.refused(code, "AUTH_SET_2FA", fields)
    equal(device.call("AUTH_2FA_DETAILS", {})["password"], before, "the second factor")


@case("TFA-12")
@pytest.mark.parametrize(
    "expected", [[UPDATE], [RESTORE], [REMOVE], [SET, HINT], [SET, EMAIL], [SET, UPDATE], [99]]
)
def test_what_is_not_prepared(login: LogIn, newcomer: Newcomer, expected: list[int]) -> None:
    """AUTH_SET_2FA is refused if it expects a change that the track has not prepared."""
    nina = login(newcomer("nina"))
    value = {"trackId": track_of(nina), "password": PASSWORD, "expectedCapabilities": expected}
    changes_nothing(nina, "not.allowed", **value)


@case("TFA-12")
def test_nothing_to_remove(login: LogIn, newcomer: Newcomer) -> None:
    """A user without a password cannot remove one, and cannot set a hint alone."""
    nina = login(newcomer("nina"))
    track = track_of(nina)
    changes_nothing(nina, "not.allowed", trackId=track, remove2fa=True)
    changes_nothing(nina, "not.allowed", trackId=track, hint="x", expectedCapabilities=[SET])


@case("TFA-12")
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"password": OTHER}, [SET]),
        ({"password": OTHER}, [UPDATE, HINT]),
        ({"password": OTHER}, [UPDATE, EMAIL]),
        ({"password": OTHER}, [REMOVE]),
        ({"hint": "a cow"}, [UPDATE]),
        ({"hint": "a cow"}, [RESTORE]),
    ],
    ids=["set", "hint", "address", "remove", "update", "restore"],
)
def test_what_is_not_prepared_beside_a_password(
    login: LogIn, newcomer: Newcomer, fields: dict[str, Any], expected: list[int]
) -> None:
    """For a user with a password, a change is refused if the track has not prepared what it expects."""
    nina = login(newcomer("nina"))
    set_password(nina, hint="a horse")
    track = checked_track(nina)
    changes_nothing(nina, "not.allowed", trackId=track, expectedCapabilities=expected, **fields)
    checked_track(nina)


@case("TFA-19")
@pytest.mark.parametrize("hint", [PASSWORD, f"it is {PASSWORD}!"], ids=["the password", "around it"])
def test_a_hint_that_tells(login: LogIn, newcomer: Newcomer, hint: str) -> None:
    """A hint that contains the password is refused, for a first password and for a changed one."""
    nina = login(newcomer("nina"))
    track = track_of(nina)
    changes_nothing(nina, "proto.payload", trackId=track, password=PASSWORD, hint=hint)
    nina.call("AUTH_SET_2FA", {"trackId": track, "password": OTHER, "hint": "a horse"})
    track = checked_track(nina, OTHER)
    changes_nothing(nina, "proto.payload", trackId=track, password=PASSWORD, hint=hint)
    checked_track(nina, OTHER)


@case("TFA-20")
def test_no_password_to_set(login: LogIn, newcomer: Newcomer) -> None:
    """AUTH_SET_2FA with a hint but without a password is refused."""
    nina = login(newcomer("nina"))
    changes_nothing(nina, "proto.payload", trackId=track_of(nina), hint="a horse")


@case("TFA-13")
def test_a_password_is_removed(
    login: LogIn, newcomer: Newcomer, accounts: People, client: Connection
) -> None:
    """After the password is removed, its hint is gone too, and a login code alone is enough."""
    account = newcomer("nina")
    phone, laptop = login(account), login(account, "laptop")
    set_password(phone, hint="a horse")
    for each in (phone, laptop):
        each.push("NOTIF_PROFILE")
    value = {"trackId": checked_track(phone), "remove2fa": True, "expectedCapabilities": [REMOVE]}
    phone.call("AUTH_SET_2FA", value)
    for each in (phone, laptop):
        equal(options(each.push("NOTIF_PROFILE")), [], f"what {each.name} is told")
    equal(phone.call("AUTH_2FA_DETAILS", {})["password"], {"enabled": False}, "details")
    check("LOGIN" in after_code(client, accounts, account)["tokenAttrs"], "a LOGIN token", "none")


@case("MSP-20")
def test_empty_replies(login: LogIn, newcomer: Newcomer) -> None:
    """Empty replies are the byte 80."""
    nina = login(newcomer("nina"))
    track = track_of(nina)
    for opcode, fields in (
        ("AUTH_VALIDATE_PASSWORD", {"password": PASSWORD}),
        ("AUTH_VALIDATE_HINT", {"hint": "a horse"}),
        ("AUTH_SET_2FA", {"password": PASSWORD}),
    ):
        nothing(nina.call(opcode, {"trackId": track, **fields}))
    nothing(nina.call("AUTH_CHECK_PASSWORD", {"trackId": track_of(nina), "password": PASSWORD}))


@case("TFA-14")
def test_a_track_is_good_once(login: LogIn, newcomer: Newcomer) -> None:
    """A track cannot be used after AUTH_SET_2FA has finished it."""
    nina = login(newcomer("nina"))
    value = {"trackId": track_of(nina), "password": PASSWORD}
    nina.call("AUTH_SET_2FA", value)
    nina.refused("track.not.found", "AUTH_SET_2FA", value)
    nina.refused("track.not.found", "AUTH_VALIDATE_PASSWORD", value)


@case("TFA-23")
@pytest.mark.parametrize("change", ["password", "address", "hint", "removal", "forgotten"])
def test_what_the_old_password_opened(
    login: LogIn, newcomer: Newcomer, accounts: People, client: Connection, change: str
) -> None:
    """A change of the password, the hint or the address ends all open tracks, at whatever step."""
    account = newcomer("nina")
    nina, stolen, address = login(account), login(account, "stolen"), address_of(account)
    first = track_of(nina)
    check_address(nina, accounts, first, address)
    nina.call("AUTH_SET_2FA", {"trackId": first, "password": PASSWORD})
    unchecked, checked = track_of(stolen), checked_track(stolen)
    asked, verified = checked_track(stolen), checked_track(stolen)
    stolen.call("AUTH_VERIFY_EMAIL", {"trackId": asked, "email": f"a{address}"})
    check_address(stolen, accounts, verified, f"b{address}")
    if change == "forgotten":
        opened = challenge(client, accounts, account)
        client.call("AUTH_LOGIN_RESTORE_PASSWORD", {"trackId": opened})
        value = {"trackId": opened, "verifyCode": accounts.code(Account(address))}
        client.call("AUTH_LOGIN_RESTORE_PASSWORD", value)
    else:
        track = checked_track(nina)
        if change == "address":
            check_address(nina, accounts, track, f"c{address}")
        fields: dict[str, dict[str, Any]] = {
            "password": {"password": OTHER},
            "hint": {"hint": "a horse"},
            "removal": {"remove2fa": True},
        }
        nina.call("AUTH_SET_2FA", {"trackId": track, **fields.get(change, {})})
    for old in (checked, asked, verified, unchecked):
        for more in ({"password": "evil word"}, {"remove2fa": True}, {"expectedCapabilities": [EMAIL]}):
            changes_nothing(stolen, "track.not.found", trackId=old, **more)
        value = {"trackId": old, "email": f"d{address}"}
        stolen.refused("track.not.found", "AUTH_VERIFY_EMAIL", value)
        value = {"trackId": old, "verifyCode": "000000"}
        stolen.refused("track.not.found", "AUTH_CHECK_EMAIL", value)
        value = {"trackId": old, "password": PASSWORD}
        stolen.refused("track.not.found", "AUTH_CHECK_PASSWORD", value)


@case("TFA-15")
def test_details(login: LogIn, newcomer: Newcomer, accounts: People) -> None:
    """AUTH_2FA_DETAILS returns the hint and the address with its middle masked."""
    account = newcomer("nina")
    nina = login(account)
    equal(nina.call("AUTH_2FA_DETAILS", {})["password"], {"enabled": False}, "details")
    track, address = track_of(nina), address_of(account)
    check_address(nina, accounts, track, address)
    value = {"trackId": track, "password": PASSWORD, "hint": "a horse"}
    nina.call("AUTH_SET_2FA", {**value, "expectedCapabilities": [SET, HINT, EMAIL]})
    details = nina.call("AUTH_2FA_DETAILS", {"trackId": "any"})["password"]
    equal((details["enabled"], details["hint"]), (True, "a horse"), "details")
    shown = details["email"]
    check(shown.startswith("n") and shown.endswith("@example.org"), "the ends of the address", shown)
    check(address.partition("@")[0] not in shown, "no more than its ends", shown)


@case("TFA-16")
def test_the_second_factor(login: LogIn, newcomer: Newcomer, accounts: People, connect: Connect) -> None:
    """With a password, AUTH returns neither token nor profile; giving the password returns both, once."""
    account = newcomer("nina")
    nina = login(account)
    set_password(nina)
    client = connect("new")
    checked = after_code(client, accounts, account)
    equal((checked["tokenAttrs"], checked.get("profile")), ({}, None), "token and profile")
    value = {"trackId": checked["passwordChallenge"]["trackId"], "password": PASSWORD}
    reply = connect("elsewhere").call("AUTH_LOGIN_CHECK_PASSWORD", value)
    equal(reply["profile"]["contact"]["id"], nina.user_id, "user")
    client.call("LOGIN", {"token": reply["tokenAttrs"]["LOGIN"]["token"]})
    client.refused("track.not.found", "AUTH_LOGIN_CHECK_PASSWORD", value)
    client.refused("track.not.found", "AUTH_LOGIN_CHECK_PASSWORD", {**value, "trackId": "none"})


@case("TFA-17")
def test_a_forgotten_password(login: LogIn, newcomer: Newcomer, accounts: People, connect: Connect) -> None:
    """The right e-mail code removes the password and returns a LOGIN token."""
    account = newcomer("nina")
    nina = login(account)
    track, address = track_of(nina), address_of(account)
    check_address(nina, accounts, track, address)
    nina.call("AUTH_SET_2FA", {"trackId": track, "password": PASSWORD, "expectedCapabilities": [SET, EMAIL]})
    nina.push("NOTIF_PROFILE")
    client = connect("new")
    asked = {"trackId": challenge(client, accounts, account)}
    reply = client.call("AUTH_LOGIN_RESTORE_PASSWORD", asked)
    check(reply["email"].endswith("@example.org"), "where the code went", reply.value)
    code = accounts.code(Account(address))
    wrong = {**asked, "verifyCode": f"{code}0"}
    client.refused("error.code.wrong", "AUTH_LOGIN_RESTORE_PASSWORD", wrong)
    reply = client.call("AUTH_LOGIN_RESTORE_PASSWORD", {**asked, "verifyCode": code})
    client.call("LOGIN", {"token": reply["tokenAttrs"]["LOGIN"]["token"]})
    equal(options(nina.push("NOTIF_PROFILE")), [], "what the other device is told")
    again = after_code(connect("newer"), accounts, account)
    check("LOGIN" in again["tokenAttrs"], "a LOGIN token", again.value)


@case("TFA-18")
def test_no_address_to_restore_by(
    login: LogIn, newcomer: Newcomer, accounts: People, client: Connection
) -> None:
    """Without an e-mail address, restoring is refused, and the password stays valid."""
    account = newcomer("nina")
    set_password(login(account))
    asked = {"trackId": challenge(client, accounts, account)}
    for fields in ({}, {"verifyCode": "000000"}):
        client.refused("not.allowed", "AUTH_LOGIN_RESTORE_PASSWORD", {**asked, **fields})
    client.call("AUTH_LOGIN_CHECK_PASSWORD", {**asked, "password": PASSWORD})
