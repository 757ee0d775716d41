"""If the server is missing or speaks another protocol, the run prints a line and has its own exit status."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from scripted import Script, serving
from tambour_conformance import wire
from tambour_conformance.cli import NO_SERVER
from tambour_conformance.connection import Target
from tambour_conformance.probe import Unreachable, probe


def target(address: str) -> Target:
    host, port = address.split(":")
    return Target(host, int(port), timeout=0.3)


def closes(script: Script) -> None:
    script.read()


def is_silent(script: Script) -> None:
    while script.read() is not None:
        pass


def writes(data: bytes) -> Callable[[Script], None]:
    def write(script: Script) -> None:
        script.read()
        script.write(data)

    return write


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (closes, "closes without an answer when SESSION_INIT is sent"),
        (is_silent, "is silent for 0.3 s when SESSION_INIT is sent"),
        (
            writes(b"HTTP/1.1 400 Bad Request\r\n"),
            "does not speak this protocol: its answer begins with 48 54",
        ),
        (writes(b"\x15\x03\x01\x00\x02\x02\x0a"), "speaks TLS: give --tls"),
        (
            writes(bytes.fromhex("0a010000")),
            "does not speak this protocol: its answer begins with 0a 01 00 00",
        ),
        (writes(bytes.fromhex("0a090000000600000001")), "does not speak this protocol"),
    ],
    ids=["closes", "silent", "HTTP", "TLS", "half a header", "another cmd"],
)
def test_nobody_to_judge(script: Callable[[Script], None], said: str) -> None:
    with serving(script) as address, pytest.raises(Unreachable, match=said):
        probe(target(address))


@pytest.mark.parametrize("command", [wire.OK, wire.ERROR, wire.REQUEST], ids=["reply", "refusal", "push"])
def test_somebody_to_judge(command: int) -> None:
    """The probe accepts any packet; the cases judge whether it is correct."""

    def answer(script: Script) -> None:
        script.read()
        script.write(wire.packet(6, 99, {}, command=command))

    with serving(answer) as address:
        probe(target(address))


def test_closed_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-m", "tambour_conformance", f"127.0.0.1:{port}"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (NO_SERVER, "")
    assert done.stderr.startswith(f"tambour-conformance: no connection to 127.0.0.1:{port}: ")
    assert done.stderr.count("\n") == 1
