"""Plays the flows of the specification: conversations of several devices, step by step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tambour_conformance.connection import Connection
from tambour_conformance.people import NAMES, Device, People
from tambour_conformance.talk import settled
from tambour_conformance.verdict import check, skip
from tambour_conformance.wire import ERROR, Frame

#: The device of a step that names only a user.
FIRST_DEVICE = "phone"


class BadFlow(ValueError):
    """The flow itself is wrong: an unknown step, or a value that was not saved."""


def pointed(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BadFlow(f"{pointer} points at nothing") from error
    return value


def difference(actual: Any, expected: Any, path: str = "") -> str | None:
    """How a payload differs from the flow, or None. Maps may have more keys; lists must have equal length."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        parts = [(key, actual.get(key), value) for key, value in expected.items()]
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(actual) != len(expected):
            return f"{path or '/'}: {len(actual)} items instead of {len(expected)}"
        parts = [(index, *pair) for index, pair in enumerate(zip(actual, expected, strict=True))]
    elif type(actual) is type(expected) and actual == expected:
        return None
    else:
        return f"{path or '/'}: {actual!r} instead of {expected!r}"
    return next(filter(None, (difference(got, want, f"{path}/{key}") for key, got, want in parts)), None)


class Player:
    """Plays one flow with the accounts of a run. Pushes that the flow does not name may come at any time."""

    def __init__(
        self,
        flow: Mapping[str, Any],
        accounts: People,
        login: Callable[..., Device],
        connect: Callable[..., Connection],
        cid: Callable[[], int],
    ) -> None:
        self.steps: list[Mapping[str, Any]] = flow["steps"]
        self.accounts = accounts
        self.login = login
        self.connect = connect
        self.cid = cid
        self.devices: dict[str, Connection] = {}
        self.saved: dict[str, Any] = {}
        #: The opcodes of the pushes that the flow names. Other pushes do not break a silence.
        self.pushes = sorted({step["push"] for step in self.steps if "push" in step})

    def play(self) -> None:
        """Plays all steps. First logs all users in and out, so that deltas have only changes of the flow."""
        for name in self._people():
            device = self.login(name)
            settled(device)
            device.close()
        for number, step in enumerate(self.steps, 1):
            try:
                self._play(step)
            except BadFlow as error:
                raise BadFlow(f"step {number}: {error}") from error

    def _people(self) -> list[str]:
        """The users that the flow mentions."""
        text = str(self.steps)
        return [name for name in NAMES if re.search(rf"\b{name}\b", text)]

    def _play(self, step: Mapping[str, Any]) -> None:
        match step:
            case {"note": _}:
                pass
            case {"login": who}:
                name, device = self._name(who)
                self.devices[f"{name}.{device}"] = self.login(name, device)
            case {"connect": who}:
                name = ".".join(self._name(who))
                self.devices[name] = self.connect(name, init=False)
            case {"disconnect": who}:
                self._device(who).close()
            case {"request": opcode, "from": who}:
                self._request(self._device(who), opcode, step)
            case {"push": opcode, "to": who}:
                self._push(self._device(who), opcode, step)
            case {"silence": who}:
                self._device(who).silence_by_fence(of=self.pushes)
            case _:
                raise BadFlow(f"no known step: {step}")

    def _request(self, device: Connection, opcode: str, step: Mapping[str, Any]) -> None:
        seq = device.send(opcode, self._filled(step.get("value", {})))
        if "error" in step:
            device.error(step["error"], seq)
            return
        answer = device.answer(seq)
        if answer.command == ERROR:
            if answer.get("error") == "auth.blocked":
                skip("no code is to be had for this phone")
            check(False, f"a reply to {opcode}", answer.value)
        wrong = difference(answer.value, self._filled(step.get("reply", {})))
        check(wrong is None, f"the reply to {opcode} as the flow has it", wrong)
        self._save(answer, step)

    def _push(self, device: Connection, opcode: str, step: Mapping[str, Any]) -> None:
        expected = self._filled(step.get("value", {}))
        self._save(device.push(opcode, lambda value: difference(value, expected) is None), step)

    def _save(self, frame: Frame, step: Mapping[str, Any]) -> None:
        for name, pointer in step.get("save", {}).items():
            self.saved[name] = pointed(frame.value, pointer)

    @staticmethod
    def _name(who: str) -> tuple[str, str]:
        name, _, device = who.partition(".")
        return name, device or FIRST_DEVICE

    def _device(self, who: str) -> Connection:
        name = ".".join(self._name(who))
        if name not in self.devices:
            raise BadFlow(f"{who} is not connected")
        return self.devices[name]

    # Values.

    def _filled(self, value: Any) -> Any:
        """The value with every `$name` replaced."""
        match value:
            case {}:
                return {key: self._filled(each) for key, each in value.items()}
            case [*items]:
                return [self._filled(each) for each in items]
            case str() if value.startswith("$"):
                return self._variable(value[1:])
            case _:
                return value

    def _variable(self, name: str) -> Any:
        if name in self.saved:
            return self.saved[name]
        whose, _, what = name.partition(".")
        if whose == "cid":
            return self.saved.setdefault(name, self.cid())
        if whose not in NAMES:
            raise BadFlow(f"nobody saved ${name}")
        account = self.accounts.account(whose)
        match what:
            case "phone":
                return account.phone
            case "id":
                return account.user_id
            case "device":
                return f"conformance-{whose}.{FIRST_DEVICE}"
            case "token":
                return account.devices[FIRST_DEVICE]
            case "code":
                return self.accounts.code(account)
        raise BadFlow(f"nobody saved ${name}")
