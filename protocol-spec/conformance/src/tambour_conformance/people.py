"""Accounts of the server under test, and their devices."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tambour_conformance import wire
from tambour_conformance.connection import Connection, Error, Reply
from tambour_conformance.verdict import Failed, skip
from tambour_conformance.wire import Frame

#: The names of the accounts in cases. The first account of the command line gets the first name.
NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")
#: How long a login code may take to arrive, in seconds.
CODE_DEADLINE = 2.0


@dataclass
class Account:
    """A phone, and what is needed to sign in with it."""

    phone: str
    name: str = ""  #: its name in cases
    code: str | None = None
    tokens: list[str] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)  #: the token of each device that was signed in
    user_id: int | None = None

    @classmethod
    def parse(cls, text: str) -> Account:
        """Reads `+79990000001[:token=…][:code=…]`. Each token belongs to another device."""
        phone, *parts = text.split(":")
        if not re.fullmatch(r"\+?\d{5,15}", phone):
            raise ValueError(f"no phone: {phone!r}")
        account = cls(phone)
        for part in parts:
            key, _, value = part.partition("=")
            if key == "token" and value:
                account.tokens.append(value)
            elif key == "code" and value:
                account.code = value
            else:
                raise ValueError(f"neither token= nor code=: {part!r}")
        return account


class Device(Connection):
    """A user's connection that has logged in, or is about to log in."""

    account: Account
    token: str
    user_id: int
    #: The reply to LOGIN.
    login: Frame


class People:
    """Signs accounts in. Tokens are kept for the whole run, connections for a case."""

    def __init__(self, accounts: list[Account], code_command: str | None) -> None:
        self.accounts = dict(zip(NAMES, accounts, strict=False))
        for name, account in self.accounts.items():
            account.name = name
        self.code_command = code_command
        self._last_codes: dict[str, str] = {}
        self._met: set[tuple[int, int]] = set()

    def account(self, who: str | Account) -> Account:
        """The account with this name; skips the case if the run has too few accounts."""
        if isinstance(who, Account):
            return who
        if who not in self.accounts:
            skip(f"needs {NAMES.index(who) + 1} accounts, {len(self.accounts)} given")
        return self.accounts[who]

    def token(self, who: str | Account, device: str, connect: Callable[..., Connection]) -> str:
        """The token of a device: one given on the command line, or from a new sign-in."""
        account = self.account(who)
        if device not in account.devices:
            if account.tokens:
                account.devices[device] = account.tokens.pop(0)
            else:
                account.devices[device] = self.sign_in(account, connect(f"{account.name}.{device} signs in"))
        return account.devices[device]

    def code(self, account: Account) -> str:
        """Waits for a login code that was just requested, and returns it.

        The command may still print the previous code, because the new one is on its way. If no other code
        arrives in time, the new code equals the previous one.
        """
        if account.code is not None:
            return account.code
        last = self._last_codes.get(account.phone, "")
        deadline = time.monotonic() + CODE_DEADLINE
        while True:
            code = self.newest_code(account.phone)
            if code != last or code and time.monotonic() > deadline:
                self._last_codes[account.phone] = code
                return code
            if time.monotonic() > deadline:
                raise RuntimeError(f"--code-cmd printed no code of {account.phone}")

    def newest_code(self, phone: str) -> str:
        """The last code that has arrived at a phone or another address; empty before the first."""
        if self.code_command is None:
            skip(f"needs a code of {phone}: give a token= for each device, a code=, or --code-cmd")
        command = self.code_command.replace("{phone}", phone)
        return subprocess.run(
            command, shell=True, check=True, capture_output=True, text=True, timeout=30
        ).stdout.strip()

    def sign_in(self, account: Account, connection: Connection) -> str:
        """Gets a LOGIN token by a code; registers an unknown phone. SESSION_INIT must have been sent."""
        if account.code is None and self.code_command is None:
            self.code(account)
        seq = connection.send("AUTH_REQUEST", {"phone": account.phone, "type": "START_AUTH"})
        asked = connection.either(Reply(seq), Error("auth.blocked", seq))
        if asked.command == wire.ERROR:
            skip(f"{account.phone} gets no more codes: give a token= for each device, or wait an hour")
        checked = connection.call(
            "AUTH",
            {
                "token": asked["token"],
                "verifyCode": self.code(account),
                "authTokenType": "CHECK_CODE",
            },
        )
        tokens = checked["tokenAttrs"]
        if "LOGIN" in tokens:
            return tokens["LOGIN"]["token"]
        if "REGISTER" not in tokens:
            raise Failed("a LOGIN or a REGISTER token", repr(tokens))
        registered = connection.call(
            "AUTH_CONFIRM",
            {
                "token": tokens["REGISTER"]["token"],
                "tokenType": "REGISTER",
                "firstName": account.name.capitalize() or f"Conformance {account.phone[-2:]}",
            },
        )
        return registered["token"]

    def introduce(self, devices: list[Device]) -> None:
        """Lets these users find each other by phone, each pair once a run: an id alone gives no access.

        If the server refuses a search, the two users stay strangers.
        """
        for one in devices:
            for other in devices:
                pair = (one.user_id, other.user_id)
                if one.user_id == other.user_id or pair in self._met or not one.is_open:
                    continue
                self._met.add(pair)
                one.answer(one.send("CONTACT_INFO_BY_PHONE", {"phone": other.account.phone}))


def log_in(device: Device, token: str, fields: dict[str, Any]) -> Device:
    """Sends LOGIN. An invalid token is a mistake on the command line, so the error names the account."""
    seq = device.send("LOGIN", {"token": token, "interactive": True, **fields})
    answer = device.either(Reply(seq), Error("", seq))
    if answer.command == wire.ERROR:
        raise Failed(f"{device.name} logs in", f"{answer.get('error')}: {answer.get('message')}")
    device.token = token
    device.login = answer
    device.user_id = answer["profile"]["contact"]["id"]
    device.account.user_id = device.user_id
    return device
