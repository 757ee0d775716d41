"""The player of flows: if the server behaves differently from a flow, the flow fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from run import Tambourd
from tambour_conformance.flows import BadFlow, difference, pointed
from test_verdicts import RUN

HELLO = {
    "request": "MSG_SEND",
    "from": "alice",
    "value": {"userId": "$bob.id", "message": {"cid": "$cid.1", "text": "hello"}},
    "reply": {"message": {"sender": "$alice.id", "cid": "$cid.1", "attaches": []}},
    "save": {"message": "/message/id", "chat": "/chatId"},
}
HEARD = {"push": "NOTIF_MESSAGE", "to": "bob", "value": {"chatId": "$chat", "message": {"id": "$message"}}}
BEGIN = [{"login": "alice"}, {"login": "bob"}]
WRONG_TOKEN = {"request": "LOGIN", "from": "alice", "value": {"token": "notatoken"}}

STEPS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "as it is": ("PASS", [*BEGIN, HELLO, HEARD, {"silence": "bob"}]),
    "a reply of another value": ("FAIL", [*BEGIN, HELLO | {"reply": {"message": {"text": "bye"}}}]),
    "a reply with a longer list": ("FAIL", [*BEGIN, HELLO | {"reply": {"message": {"attaches": [{}]}}}]),
    "a reply that is a refusal": ("FAIL", [*BEGIN, HELLO | {"value": {"userId": 0}}]),
    "a push of another value": ("FAIL", [*BEGIN, HELLO, HEARD | {"value": {"chatId": 1}}]),
    "a push to another device": ("FAIL", [*BEGIN, HELLO, HEARD | {"to": "alice"}]),
    "no silence": ("FAIL", [*BEGIN, HELLO, {"silence": "bob"}, HEARD]),
    "an error": ("PASS", [*BEGIN, {"connect": "alice"}, WRONG_TOKEN | {"error": "proto.state"}]),
    "another error": ("FAIL", [*BEGIN, {"connect": "alice"}, WRONG_TOKEN | {"error": "login.token"}]),
    "who is gone hears nothing": ("FAIL", [*BEGIN, {"disconnect": "bob"}, HELLO, {"login": "bob"}, HEARD]),
    "a name nobody saved": ("ERROR", [*BEGIN, HEARD]),
    "a step of no kind": ("ERROR", [{"logon": "alice"}]),
    "somebody who is not connected": ("ERROR", [{"login": "alice"}, {"silence": "bob"}]),
    "somebody who is nobody": ("SKIP", [{"login": "heidi"}]),
}
CASE = """
from tambour_conformance.flows import Player
from tambour_conformance.verdict import case
@case(group="flow")
def test_x(accounts, login, connect, cid):
    Player({{"steps": {steps!r}}}, accounts, login, connect, cid).play()
"""


@pytest.mark.parametrize("name", STEPS)
def test_steps(server: Tambourd, name: str, tmp_path: Path) -> None:
    expected, steps = STEPS[name]
    folder, out = tmp_path / "cases", tmp_path / "out"
    folder.mkdir()
    (folder / "test_x.py").write_text(CASE.format(steps=steps))
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), *server.arguments, "--timeout", "1", "--out", str(out)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert json.loads((out / "results.json").read_text())["cases"]["x"]["verdict"] == expected, run.stdout


def test_difference() -> None:
    """A map may have more items than expected, but a list may not; a number does not equal a boolean."""
    assert difference({"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"c": 2}]}) is None
    for actual, expected, path in (
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "/a/b"),
        ({"a": [1, 2]}, {"a": [1]}, "/a"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "/a/1"),
        ({}, {"a": 1}, "/a"),
        ({"a": 1}, {"a": True}, "/a"),
        ([], {}, "/"),
    ):
        assert (difference(actual, expected) or "").startswith(f"{path}: ")


def test_pointers() -> None:
    value = {"a": [{"b/c": 1, "d~": 2}]}
    assert (pointed(value, ""), pointed(value, "/a/0/b~1c"), pointed(value, "/a/0/d~0")) == (value, 1, 2)
    for pointer in ("/b", "/a/1", "/a/x", "/a/0/b~1c/d"):
        with pytest.raises(BadFlow):
            pointed(value, pointer)
