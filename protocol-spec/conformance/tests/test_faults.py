"""Checks that the suite notices faults: each fault must fail its case."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from faults import FAULTS, LaterRelease
from proxy import Fault, proxy
from run import Tambourd

noticed: set[str] = set()


def verdicts(server: Tambourd, fault: type[Fault], cases: list[str], out: Path) -> dict[str, str]:
    """The verdicts of cases that run through a proxy with a fault."""
    with proxy(server.address, fault) as address:
        run = subprocess.run(
            [sys.executable, "-m", "tambour_conformance", address, *server.arguments[1:], *cases]
            + ["--timeout", "2", "--out", str(out)],
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    results = json.loads((out / "results.json").read_text())["cases"]
    return {name: result["verdict"] for name, result in results.items()}


def test_a_proxy_without_fault(server: Tambourd, tmp_path: Path) -> None:
    """The cases that notice the faults pass if the proxy changes nothing."""
    found = verdicts(server, Fault, [fault.notices for fault in FAULTS], tmp_path)
    assert set(found.values()) == {"PASS"}, found


#: Requirements whose cases compare payloads, or check that a payload is empty.
COMPARING = [
    "FRM-01",
    "MSP-20",
    "SES-04",
    "AUT-07",
    "AUT-13",
    "SYN-03",
    "SYN-12",
    "SYN-13",
    "SYN-14",
    "MSG-01",
]
COMPARING += [
    "MSG-03",
    "MSG-09",
    "MSG-10",
    "MSG-17",
    "MSG-22",
    "MSG-23",
    "MSG-25",
    "PSH-01",
    "PSH-03",
    "PSH-05",
]
COMPARING += ["PSH-09", "PSH-13"]


def test_a_later_release(server: Tambourd, tmp_path: Path) -> None:
    """A server passes if its packets and objects have fields that are not in the specification."""
    found = verdicts(server, LaterRelease, COMPARING, tmp_path)
    assert set(found.values()) == {"PASS"}, {name for name in found if found[name] != "PASS"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_fault_is_noticed(server: Tambourd, fault: type[Fault], tmp_path: Path) -> None:
    """The case that must notice the fault gets FAIL; the verdict ERROR is not enough."""
    found = verdicts(server, fault, [fault.notices], tmp_path)
    assert "FAIL" in found.values() and "ERROR" not in found.values(), found
    noticed.add(fault.__name__)


def test_all_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    """Checks that all faults were noticed, and prints how many."""
    # pytest must not capture this output, so that a passing run also shows the number.
    with capsys.disabled():
        print(f" faults noticed: {len(noticed)} of {len(FAULTS)} ", end="")
    assert len(noticed) == len(FAULTS)
