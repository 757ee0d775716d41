"""CAP: data that depends on capabilities, and features switched on and off."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tambour_conformance import bundle
from tambour_conformance.bundle import Bundle
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, Group, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.settings import Settings
from tambour_conformance.talk import login_again, only, say, settled
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: LOGIN2 omits contacts only if there are thousands; no case can create that number.
OUT_OF_REACH = {("LOGIN2", "more")}

#: (opcode, key, capability) of each field of a reply that needs a capability.
FIELDS = [
    (opcode.name, field["key"], field["capability"])
    for opcode in bundle.load().served.values()
    for field in opcode.fields.get("reply") or ()
    if field.get("capability") and (opcode.name, field["key"]) not in OUT_OF_REACH
]


def request_with(opcode: str, key: str, device: Device, chat: int, settings: Settings) -> dict[str, Any]:
    """A request whose reply has this field. A new field needs a request here."""
    match opcode, key:
        case "CHAT_HISTORY", "more":
            return {"chatId": chat, "backward": 1}
        case "LOGIN", "resync" if settings.before_restore is not None:
            return {"token": device.token, "chatsSync": settings.before_restore}
        case "LOGIN", "resync":
            skip("needs --before-restore")
        case "LOGIN", "more":
            # Both chats of the case have changed since the case began.
            return {"token": device.token, "chatsSync": device.login["time"], "chatsCount": 1}
        case _:
            raise KeyError(opcode, key)


#: A client's own feature; a server only decides who gets it.
OWN = "conformance-feature"
ON: dict[str, Any] = {"rules": [{}]}
OFF: dict[str, Any] = {"rules": []}

Rules = Callable[[dict[str, Any]], None]


@case("CAP-01")
@pytest.mark.parametrize(("opcode", "key", "capability"), FIELDS, ids=str)
def test_fields_of_a_capability(
    login: LogIn, group: Group, cid: Cid, settings: Settings, opcode: str, key: str, capability: str
) -> None:
    """A field is sent to clients that named its capability, and not to other clients."""
    every = list(bundle.load().capabilities)
    devices: list[tuple[Device, bool]] = [
        (login("alice", capabilities=[capability]), True),
        (login("alice", capabilities=every), True),
        (login("alice"), False),
        (login("bob", capabilities=[each for each in every if each != capability]), False),
    ]
    for _ in range(2):
        chat = group(devices[0][0], devices[-1][0])
        say(devices[0][0], chat, cid())
        # The next change needs another millisecond: changes of one millisecond share a page of any size.
        settled(devices[-1][0])
    for device, expected in devices:
        if opcode == "SESSION_INIT":
            reply = device.greeting
        else:
            reply = device.call(opcode, request_with(opcode, key, device, chat, settings))
        check((key in reply.value) == expected, f"{key}: {expected}", reply.value)


# Features.


@pytest.fixture
def rules(settings: Settings) -> Iterator[Rules]:
    """Applies feature rules, and removes them at the end."""
    command = settings.features_command
    if command is None:
        skip("needs --features-cmd")

    def put(features: dict[str, Any]) -> None:
        subprocess.run(
            command,
            shell=True,
            check=True,
            input=json.dumps(features),
            text=True,
            capture_output=True,
            timeout=30,
        )

    yield put
    put({})


def answers(config: dict[str, Any]) -> dict[str, bool]:
    """The server's decisions about features, from settings."""
    return {each["type"]: each["enabled"] for each in config["features"]}


def gated(protocol: Bundle) -> list[tuple[str, str]]:
    """(feature, opcode) of each opcode that a feature gates."""
    return [(each["name"], opcode) for each in protocol.data["features"] for opcode in each["opcodes"]]


@case("CAP-03")
@pytest.mark.parametrize(("feature", "opcode"), gated(bundle.load()), ids=str)
def test_feature_is_off(login: LogIn, rules: Rules, protocol: Bundle, feature: str, opcode: str) -> None:
    """A disabled feature is refused to clients that named it; a killed feature is refused to all."""
    named, other, classic = login("alice", features=[feature]), login("bob", features=[]), login("carol")
    for state, served in (
        (OFF, (False, True, True)),
        (ON, (True, True, True)),
        ({"kill": True}, (False, False, False)),
        (OFF, (False, True, True)),
    ):
        rules({feature: state})
        for device, expected in zip((named, other, classic), served, strict=True):
            answer = device.answer(device.send(opcode, **protocol.request(opcode)))
            refused = answer.get("error") == "proto.opcode"
            equal(not refused, expected, f"{opcode} served for {device.name} with {state}")
            device.alive()
        equal(answers(login_again(named)["config"]), {feature: served[0]}, f"answers of LOGIN with {state}")


@case("CAP-04")
def test_change_is_pushed(login: LogIn, connect: Connect, rules: Rules) -> None:
    """When a feature is switched, only clients that named it are told, with a new hash of settings."""
    rules({OWN: OFF})
    named, laptop = login("alice", features=[OWN]), login("alice", "laptop", features=[OWN, "no-such-thing"])
    others: list[Connection] = [login("bob", features=[]), login("carol"), connect(features=[OWN])]
    last = named.login["config"]
    equal(answers(last), {OWN: False}, "answers of LOGIN")
    for state, expected in ((ON, True), (OFF, False), (ON, True)):
        rules({OWN: state})
        for each in (named, laptop):
            config = told(each)["config"]
            equal(answers(config), {OWN: expected}, f"answers pushed to {each.name}")
            check(config["hash"] != last["hash"], "another hash", config["hash"])
        last = config
        for each in others:
            each.silence_by_fence(of=["NOTIF_CONFIG"])
        # Rules without an effective change are not pushed.
        rules({OWN: state, "another-feature": ON})
        for each in (named, laptop):
            each.silence_by_fence(of=["NOTIF_CONFIG"])
    known = login("alice", features=[OWN], configHash=last["hash"])
    check("config" not in known.login.value, "no settings for who has them", known.login.value)
    old = login("alice", features=[OWN], configHash=named.login["config"]["hash"])
    equal(answers(old.login["config"]), {OWN: True}, "answers for who has older settings")


def told(device: Device) -> Frame:
    device.fence()
    return only(device.pushes("NOTIF_CONFIG"), f"change pushed to {device.name}")


@case("CAP-06")
def test_answers_of_login(login: LogIn, protocol: Bundle) -> None:
    """LOGIN returns one decision for each known feature that the client named, sorted, and no others."""
    known = sorted(each["name"] for each in protocol.data["features"])
    for named in (known, [*reversed(known), "no-such-thing", *known], ["no-such-thing"]):
        config = login("alice", features=named).login["config"]
        found = [each["type"] for each in config["features"]]
        equal(found, [each for each in known if each in named], f"features answered of {named}")
    check("features" not in login("alice").login["config"], "no answers for who names none", "answers")


@case("CAP-05")
def test_rising_share(login: LogIn, newcomer: Newcomer, rules: Rules) -> None:
    """While the percentage rises from 0 to 100, a user who gets the feature keeps it, on every connection."""
    users = [login(newcomer(), features=[OWN]) for _ in range(12)]
    chosen: set[int] = set()
    for percent in (0, 5, 20, 35, 50, 65, 80, 95, 100):
        rules({OWN: {"rules": [{"percent": percent}]}})
        having = {each.user_id for each in users if answers(login_again(each)["config"])[OWN]}
        check(chosen <= having, f"nobody loses it at {percent} percent", chosen - having)
        chosen = having
        again = login(users[0].account, features=[OWN])
        equal(answers(again.login["config"])[OWN], users[0].user_id in having, "answer on another connection")
        again.close()
        if percent == 0:
            equal(having, set(), "users at 0 percent")
    equal(len(chosen), len(users), "users at 100 percent")


@case("CAP-07")
def test_classic_fields(login: LogIn, group: Group) -> None:
    """Fields for classic clients are not sent to others."""
    for device, is_there in ((login("alice"), True), (login("bob", capabilities=["resync"]), False)):
        chat = device.call("CHAT_INFO", {"chatIds": [group(device)]})["chats"][0]
        equal(chat.get("cid"), chat["created"] if is_there else None, "cid of a chat")
        reply = device.call("CONFIG", {})
        equal(reply.value.get("configHash"), reply["hash"] if is_there else None, "configHash")
        profile = device.call("PROFILE", {})["profile"]
        flat = {key: value for key, value in profile.items() if key not in ("contact", "profileOptions")}
        equal(flat, profile["contact"] if is_there else {}, "fields beside the contact")
