"""AUT: registration on a server that takes only invited people."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tambour_conformance import wire
from tambour_conformance.cases.test_aut import ask, tokens, try_code
from tambour_conformance.connection import Connection, Error, Reply
from tambour_conformance.fixtures import Connect, Newcomer
from tambour_conformance.people import Account, Device, People
from tambour_conformance.settings import Settings
from tambour_conformance.verdict import case, equal, skip
from tambour_conformance.wire import Frame

Invite = Callable[[str], str]

#: A code that no server has made.
UNKNOWN = "ZZZZ-ZZZZ-ZZZZ-ZZZZ"


@pytest.fixture
def invite(settings: Settings) -> Invite:
    """Invites a phone, or makes an invitation for one person and returns its code when the phone is empty."""
    if settings.invite_only is None or settings.invite_command is None:
        skip("needs --invite-only and --invite-cmd")
    command = settings.invite_command

    def invite(phone: str) -> str:
        text = command.replace("{phone}", phone)
        return subprocess.run(
            text, shell=True, check=True, capture_output=True, text=True, timeout=30
        ).stdout.strip()

    return invite


@pytest.fixture
def guest(settings: Settings, connect: Connect, invite: Invite) -> Connection:
    """A connection to the server that takes only invited people."""
    return connect("guest", target=settings.invite_only)


def ask_with(connection: Connection, phone: str, invitation: str) -> Frame:
    """AUTH_REQUEST with an invitation."""
    return connection.call("AUTH_REQUEST", {"phone": phone, "type": "START_AUTH", "invitation": invitation})


def register(connection: Connection, accounts: People, account: Account, token: str) -> str:
    """Enters the code of a request; returns the REGISTER token."""
    checked = connection.reply(try_code(connection, token, accounts.code(account)))
    equal(tokens(checked), ["REGISTER"], "tokens of a new phone")
    return checked["tokenAttrs"]["REGISTER"]["token"]


@case("AUT-31")
@pytest.mark.parametrize("how", ["phone", "code", "code in small letters without dashes"])
def test_invited(guest: Connection, accounts: People, newcomer: Newcomer, invite: Invite, how: str) -> None:
    """An invited phone gets a code and registers, and so does a phone that comes with an invitation."""
    somebody = newcomer()
    if how == "phone":
        invite(somebody.phone)
        asked = ask(guest, somebody.phone)
    else:
        code = invite("")
        if how != "code":
            code = code.replace("-", "").lower()
        asked = ask_with(guest, somebody.phone, code)
    token = register(guest, accounts, somebody, asked["token"])
    guest.call("AUTH_CONFIRM", {"token": token, "tokenType": "REGISTER", "firstName": "Guest"})
    # The account needs no invitation any more.
    again = ask(guest, somebody.phone)
    checked = guest.reply(try_code(guest, again["token"], accounts.code(somebody)))
    equal(tokens(checked), ["LOGIN"], "tokens of an account")


@case("AUT-32")
@pytest.mark.parametrize("invitation", ["", UNKNOWN, "nonsense"])
def test_not_invited(
    guest: Connection, accounts: People, newcomer: Newcomer, invite: Invite, invitation: str
) -> None:
    """A phone that may not register gets the reply of an invited phone, but no code is sent or accepted."""
    invited, stranger = newcomer(), newcomer()
    invite(invited.phone)
    replies = [ask_with(guest, each.phone, invitation) for each in (stranger, invited)]
    shown = [{key: value for key, value in each.value.items() if key != "token"} for each in replies]
    equal(shown[0], shown[1], "the reply to a phone that may not register")
    equal(*(len(each["token"]) for each in replies), "length of the token")
    # The code of the second request is a fence: a code for the first request would have come before it.
    accounts.code(invited)
    equal(accounts.newest_code(stranger.phone), "", "code of a phone that may not register")
    seqs = [try_code(guest, replies[0]["token"], f"{digit}" * replies[0]["codeLength"]) for digit in (0, 1)]
    for seq in seqs:
        guest.error("error.code.wrong", seq)


@case("AUT-33")
def test_one_invitation_for_two(
    guest: Connection,
    connect: Connect,
    settings: Settings,
    accounts: People,
    newcomer: Newcomer,
    invite: Invite,
) -> None:
    """Of two registrations with an invitation for one person, one is served and one refused."""
    code = invite("")
    guests = [guest, connect("second", target=settings.invite_only)]
    found = []
    for each in guests:
        somebody = newcomer()
        asked = ask_with(each, somebody.phone, code)
        found.append(register(each, accounts, somebody, asked["token"]))
    seqs = [
        each.send("AUTH_CONFIRM", {"token": token, "tokenType": "REGISTER", "firstName": "Guest"})
        for each, token in zip(guests, found, strict=True)
    ]
    answers = [
        each.either(Reply(seq), Error("registration.closed", seq))
        for each, seq in zip(guests, seqs, strict=True)
    ]
    equal(sorted(each.command for each in answers), sorted([wire.OK, wire.ERROR]), "answers to both")


def sign_up(guest: Connection, accounts: People, somebody: Account, invite: Invite) -> None:
    """Registers an invited phone, which logs the connection in."""
    invite(somebody.phone)
    token = register(guest, accounts, somebody, ask(guest, somebody.phone)["token"])
    made = guest.call("AUTH_CONFIRM", {"token": token, "tokenType": "REGISTER", "firstName": "Host"})
    guest.call("LOGIN", {"token": made["token"]})


@case("AUT-34", "AUT-35")
def test_user_invites(
    guest: Connection,
    connect: Connect,
    settings: Settings,
    accounts: People,
    newcomer: Newcomer,
    invite: Invite,
) -> None:
    """A user makes as many invitations as the operator allows, and each lets a new phone in."""
    sign_up(guest, accounts, newcomer(), invite)
    made = [guest.call("INVITATION_CREATE")]
    while made[-1]["left"] > 0:
        made.append(guest.call("INVITATION_CREATE"))
        equal(made[-1]["left"], made[-2]["left"] - 1, "invitations that are left")
    guest.refused("too.many.requests", "INVITATION_CREATE", {})
    for each in made:
        other, somebody = connect("invited", target=settings.invite_only), newcomer()
        asked = ask_with(other, somebody.phone, each["invitation"])
        register(other, accounts, somebody, asked["token"])


@case("AUT-36")
def test_no_invitations(alice: Device) -> None:
    """A server that is open to everybody makes no invitations."""
    alice.refused("not.allowed", "INVITATION_CREATE", {})
