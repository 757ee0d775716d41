"""The fixtures of cases. Only accounts and their tokens outlive a case."""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tambour_conformance import bundle, people
from tambour_conformance.bundle import Bundle
from tambour_conformance.connection import CaseLog, Connection, Target
from tambour_conformance.people import Account, Device, People
from tambour_conformance.plugin import LOG, PEOPLE, SETTINGS
from tambour_conformance.settings import Settings
from tambour_conformance.verdict import skip

Connect = Callable[..., Connection]
LogIn = Callable[..., Device]
Phone = Callable[[], str]
Newcomer = Callable[..., Account]
Group = Callable[..., int]
Cid = Callable[[], int]
Note = Callable[[str], None]
Limits = dict[str, int]


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return request.config.stash[SETTINGS]


@pytest.fixture
def protocol() -> Bundle:
    """The specification."""
    return bundle.load()


@pytest.fixture
def limits(settings: Settings, protocol: Bundle) -> Limits:
    """The server's limits by name: those of the specification, unless `--limits` overrides them."""
    return {**protocol.limits, **settings.limits}


@pytest.fixture
def log(request: pytest.FixtureRequest) -> CaseLog:
    return request.node.stash[LOG]


@pytest.fixture
def note(log: CaseLog) -> Note:
    """Adds a line to the report of this case."""
    return log.notes.append


@pytest.fixture
def rng(settings: Settings, request: pytest.FixtureRequest) -> random.Random:
    """A random generator that depends only on the seed of the run and the name of the case."""
    return random.Random(f"{settings.seed} {request.node.name}")


@pytest.fixture
def cid() -> Cid:
    """Returns a new client id at each call, greater than the previous one.

    The ids do not depend on the seed, because a second run on the same server must not repeat them.
    """
    last = secrets.randbits(40) << 12

    def following() -> int:
        nonlocal last
        last += 1
        return last

    return following


def hello(device: str, capabilities: list[str] | None, features: list[str] | None) -> dict[str, Any]:
    """The value of a SESSION_INIT. If both lists are None, it is the value that a classic client sends."""
    value: dict[str, Any] = {
        "userAgent": {"deviceType": "DESKTOP", "appVersion": "1.0", "deviceName": "conformance"},
        "deviceId": f"conformance-{device}",
    }
    if capabilities is not None:
        value["capabilities"] = capabilities
    if features is not None:
        value["features"] = features
    return value


@pytest.fixture
def connect(settings: Settings, log: CaseLog) -> Iterator[Connect]:
    """Opens a connection, and sends SESSION_INIT unless `init=False`.

    `connect(name="", *, init=True, capabilities=None, features=None, receive_buffer=None, source=None,
    target=None, kind=Connection)`. `source` is the address to connect from. `target` is another server than
    the one under test.
    """
    opened: list[Connection] = []

    def connect(
        name: str = "",
        *,
        init: bool = True,
        capabilities: list[str] | None = None,
        features: list[str] | None = None,
        receive_buffer: int | None = None,
        source: str | None = None,
        target: Target | None = None,
        kind: type[Connection] = Connection,
    ) -> Connection:
        connection = kind(
            target or settings.target,
            log,
            name or f"connection {len(opened) + 1}",
            receive_buffer=receive_buffer,
            source=source,
        )
        opened.append(connection)
        if init:
            connection.lz4_large = "lz4-large" in (capabilities or ())
            request = hello(connection.name, capabilities, features)
            connection.greeting = connection.call("SESSION_INIT", request)
        return connection

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def stranger(connect: Connect) -> Connection:
    """A connection that has not sent anything yet."""
    return connect("stranger", init=False)


@pytest.fixture
def client(connect: Connect) -> Connection:
    """A connection after SESSION_INIT, not logged in."""
    return connect("client")


@pytest.fixture
def accounts(request: pytest.FixtureRequest) -> People:
    """The accounts of the run, for cases that sign in themselves."""
    return request.config.stash[PEOPLE]


@pytest.fixture
def login(accounts: People, connect: Connect) -> LogIn:
    """Logs a user in on a new connection.

    `login("alice", device="phone", *, capabilities=None, features=None, receive_buffer=None, stranger=False,
    **fields)`. `fields` are fields of LOGIN. Unless `stranger=True`, the user and all users who logged in
    before in this case find each other by phone. Each device of an account has its own token, the same in
    every case; if it cannot get one, the case is skipped. For a new user, pass an `Account` from `newcomer`.
    """

    def login(
        who: str | Account = "alice",
        device: str = "phone",
        *,
        capabilities: list[str] | None = None,
        features: list[str] | None = None,
        receive_buffer: int | None = None,
        stranger: bool = False,
        **fields: Any,
    ) -> Device:
        account = accounts.account(who)
        token = accounts.token(account, device, connect)
        connection = connect(
            f"{account.name}.{device}",
            capabilities=capabilities,
            features=features,
            receive_buffer=receive_buffer,
            kind=Device,
        )
        assert isinstance(connection, Device)
        connection.account = account
        somebody = people.log_in(connection, token, fields)
        if not stranger:
            present.append(somebody)
            accounts.introduce(present)
        return somebody

    present: list[Device] = []
    return login


@pytest.fixture
def phone() -> Phone:
    """Returns an unused phone at each call. +999 belongs to no country, so no stranger gets a code.

    The phones do not depend on the seed, because a second run on the same server needs other phones.
    """
    return lambda: f"+999{random.SystemRandom().randrange(10**10):010}"


@pytest.fixture
def address(settings: Settings) -> str:
    """A local address from which no other case connects, for rate limits per address."""
    if not settings.target.host.startswith("127."):
        skip("would use up what this address may do in an hour; on 127.0.0.1 there are others")
    address = f"127.{'.'.join(str(random.SystemRandom().randrange(1, 255)) for _ in range(3))}"
    try:
        with socket.socket() as one:
            one.bind((address, 0))
    except OSError as error:
        skip(f"would use up what this address may do in an hour, and no other can be had: {error}")
    return address


@pytest.fixture
def newcomer(phone: Phone) -> Newcomer:
    """Returns a user who has no account yet; `login(newcomer("nina"))` registers the account.

    For cases that need a new account, or that invalidate its tokens.
    """
    return lambda name="newcomer": Account(phone(), name)


@pytest.fixture
def alice(login: LogIn) -> Device:
    """The first account, logged in on its first device."""
    return login("alice")


@pytest.fixture
def bob(login: LogIn) -> Device:
    """The second account, logged in on its first device."""
    return login("bob")


@pytest.fixture
def carol(login: LogIn) -> Device:
    """The third account, logged in on its first device."""
    return login("carol")


@pytest.fixture
def group(cid: Cid) -> Group:
    """Makes a new group and returns its chat id: in `group(alice, bob, …)` the first user creates it.

    Waits until every given connection has read its pushes about the group, so a case begins in silence.
    """

    def group(creator: Device, *members: Device, title: str = "conformance") -> int:
        others = list(dict.fromkeys(each.user_id for each in members if each.user_id != creator.user_id))
        made = creator.call("MSG_SEND", new_group(cid(), *others, title=title))
        for member in members:
            member.push("NOTIF_MESSAGE", lambda push: push["chatId"] == made["chatId"])
            member.fence()
            member.pushes("NOTIF_MESSAGE", "NOTIF_CHAT")
        return made["chatId"]

    return group


def message(cid: int, text: str = "hello", **fields: Any) -> dict[str, Any]:
    """The `message` of a MSG_SEND."""
    return {"cid": cid, "text": text, **fields}


def new_group(cid: int, *users: int, title: str = "conformance") -> dict[str, Any]:
    """The payload of a MSG_SEND that makes a group of the caller and these users."""
    control = {"_type": "CONTROL", "event": "new", "chatType": "CHAT", "title": title, "userIds": list(users)}
    return {"message": {"cid": cid, "attaches": [control]}}
