"""Verdicts, exit status and reports of a run, tested with complete runs of small cases."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from scripted import Script, serving
from tambour_conformance import wire
from tambour_conformance.cli import LOST_SERVER
from tambour_conformance.plugin import LOST_CASES

HEAD = """
import pytest
from tambour_conformance.verdict import *
from tambour_conformance.connection import *
"""

CASES = {
    "PASS": """
@case("FRM-01")
def test_x(stranger): stranger.call("PING")
""",
    "FAIL": """
@case("FRM-01")
def test_x(stranger): stranger.refused("proto.state", "PING")
""",
    "NON-STRICT": """
@case("FRM-12")
def test_x(stranger): stranger.refused("proto.state", "PING")
""",
    "UNCLEAN": """
@case("FRM-01")
def test_x(stranger):
    stranger.call("PING")
    stranger.closed(within=0.05)
""",
    "SKIP": """
@case("FRM-01")
def test_x(carol): pass
""",
    "INFO": """
@case("FRM-01", info=True)
def test_x(note):
    note("measured")
    check(False, "whatever", "else")
""",
    "ERROR": """
@case("FRM-01")
def test_x(stranger): stranger.call("PING") / 0
""",
}
#: A case with a wrong answer and a wrong close. Its verdict must be that of the answer.
WRONG_ANSWER_AND_CLOSE = """
@case("FRM-01")
def test_x(stranger):
    stranger.closed(within=0.05)
    stranger.refused("proto.state", "PING")
"""
#: Two cases. A packet that breaks a rule must change only the verdict of the case that names the rule.
NIL = """
@case("MSP-20")
def test_x(stranger): stranger.call("SESSION_INIT")
@case("FRM-01")
def test_y(stranger): stranger.call("SESSION_INIT")
"""

RUN = """
import json, sys
from pathlib import Path
from tambour_conformance import cli
settings = cli.settings_of(cli.parser().parse_intermixed_args(sys.argv[2:]))
sys.exit(cli.run(settings, Path(sys.argv[1])))
"""


class Outcome:
    def __init__(self, status: int, out: Path, printed: str) -> None:
        self.status = status
        self.out = out
        self.printed = printed
        results = out / "results.json"
        self.cases = json.loads(results.read_text())["cases"] if results.exists() else {}

    @property
    def verdict(self) -> str:
        return self.cases["x"]["verdict"]


def answers(script: Script) -> None:
    """Answers SESSION_INIT with nil, and every other request with an empty map."""
    while (frame := script.read()) is not None:
        script.reply(frame, payload=b"\xc0" if frame.opcode == 6 else None)


def run(cases: str, directory: Path, *arguments: str, script: Callable[[Script], None] = answers) -> Outcome:
    """Runs cases against a server."""
    folder, out = directory / "cases", directory / "out"
    folder.mkdir(exist_ok=True)
    (folder / "test_x.py").write_text(HEAD + cases)
    with serving(script) as address:
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(folder), address, "--timeout", "1", "--out", str(out)]
            + list(arguments),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    return Outcome(done.returncode, out, done.stdout + done.stderr)


@pytest.mark.parametrize("verdict", CASES)
def test_verdict(verdict: str, tmp_path: Path) -> None:
    outcome = run(CASES[verdict], tmp_path)
    assert outcome.verdict == verdict, outcome.printed
    assert outcome.status == (verdict in ("FAIL", "UNCLEAN", "ERROR"))
    page = (outcome.out / "report.html").read_text()
    assert f'class="verdict {verdict}"' in page and "MUST be answered exactly once" in page
    suite = xml.etree.ElementTree.parse(outcome.out / "junit.xml").getroot()[0]
    assert suite.get("failures") == str(int(outcome.status == 1))


def test_strict(tmp_path: Path) -> None:
    outcome = run(CASES["NON-STRICT"], tmp_path, "--strict")
    assert (outcome.verdict, outcome.status) == ("NON-STRICT", 1)


def test_answer_goes_before_close(tmp_path: Path) -> None:
    outcome = run(WRONG_ANSWER_AND_CLOSE, tmp_path)
    case = outcome.cases["x"]
    assert (case["verdict"], case["behaviour"], case["close"]) == ("FAIL", "FAIL", "unclean")
    assert "still open" in case["closeFaults"][0]
    assert "Answers FAIL, close unclean" in (outcome.out / "report.html").read_text()


@pytest.mark.parametrize(
    ("case", "expected"),
    [("UNCLEAN", ("PASS", "unclean")), ("PASS", ("PASS", None)), ("FAIL", ("FAIL", None))],
)
def test_close_stands_apart(case: str, expected: tuple[str, str | None], tmp_path: Path) -> None:
    found = run(CASES[case], tmp_path).cases["x"]
    assert (found["behaviour"], found["close"]) == expected


#: A long case that passes. It sends two packets in two pieces; the first piece ends in the second header.
LONG = """
@case("FRM-01")
def test_x(stranger):
    packets = [stranger.packet("PING", {"unknown": "a" * 5000}) for _ in range(2)]
    data = b"".join(packet for _, packet in packets)
    first = len(packets[0][1])
    for piece in (data[:first + 5], data[first + 5:]): stranger.raw(piece)
    for seq, _ in packets: stranger.reply(seq)
"""


def test_every_byte_is_shown_when_asked_for(tmp_path: Path) -> None:
    a, header = (
        "61 " * 1000,
        '<span class="h0">0a</span> <span class="h1">00</span> <span class="h2">0001</span>',
    )
    short = (run(LONG, tmp_path).out / "report.html").read_text()
    assert a not in short and "more, which --bytes shows" in short
    page = (run(LONG, tmp_path, "--bytes").out / "report.html").read_text()
    # The second header is in both pieces.
    assert a in page and f'{header} <span class="h3">00</span></div>' in page
    assert '<div class="bytes"><span class="h3">01</span> <span class="h4">00</span>' in page


def test_how_packets_are_written(tmp_path: Path) -> None:
    outcome = run(NIL, tmp_path)
    assert {name: each["verdict"] for name, each in outcome.cases.items()} == {"x": "FAIL", "y": "PASS"}
    assert list(outcome.cases["y"]["brokenRules"]) == ["MSP-20"]


def test_known_failing(tmp_path: Path) -> None:
    """A case on the known-failing list may fail but must not pass; an unknown case on it is an error."""
    listed = tmp_path / "listed"
    listed.write_text("# why\nx  # not served\n")
    failing = run(CASES["FAIL"], tmp_path, "--known-failing", str(listed))
    assert (failing.verdict, failing.status) == ("FAIL", 0)
    assert failing.cases["x"]["knownFailing"] == "not served"
    passing = run(CASES["PASS"], tmp_path, "--known-failing", str(listed))
    assert (passing.verdict, passing.status) == ("PASS", 1)
    listed.write_text("no-such-case\n")
    assert run(CASES["PASS"], tmp_path, "--known-failing", str(listed)).status == 4


def test_selection(tmp_path: Path) -> None:
    for words, found in (["x"], {"x"}), (["MSP"], {"x"}), (["FRM-01"], {"y"}), (["FRM", "x"], {"x", "y"}):
        assert set(run(NIL, tmp_path, *words).cases) == found, words
    assert run(NIL, tmp_path, "CAP").status == 4


def test_list_knows_what_lacks(tmp_path: Path) -> None:
    """`--list` reports an unknown requirement, a requirement without a case, and a duplicate id."""
    twice = '@case("FRM-01")\ndef test_x(): pass\n@case("FRM-99")\ndef test_y(): pass\n'
    outcome = run(twice, tmp_path, "--list")
    assert outcome.status == 1
    assert "unknown requirement FRM-99" in outcome.printed and "FRM-02: no case" in outcome.printed


def test_every_requirement_has_a_case() -> None:
    """Every requirement has a packaged case, and every packaged case has a requirement."""
    done = subprocess.run(
        [sys.executable, "-m", "tambour_conformance", "--list"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout[-3000:]


#: Many cases. One of them is skipped, and must count neither as an answer nor as a missing answer.
MANY = """
@case("FRM-01")
@pytest.mark.parametrize("number", range(40))
def test_x(number, connect):
    if number == 5: skip("whatever")
    connect("one", init=False).call("PING")
"""


def is_silent(script: Script) -> None:
    while script.read() is not None:
        pass


def closes(script: Script) -> None:
    script.read()


def is_garbage(script: Script) -> None:
    script.read()
    script.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def floods(data: bytes) -> Callable[[Script], None]:
    def flood(script: Script) -> None:
        script.read()
        with contextlib.suppress(OSError):
            while True:
                script.socket.sendall(data)

    return flood


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (is_silent, "is silent for 0.2 s when SESSION_INIT is sent"),
        (closes, "closes without an answer when SESSION_INIT is sent"),
        (is_garbage, "does not speak this protocol: its answer begins with 48 54"),
        (floods(bytes(1 << 16)), "the server sends more than it is asked for"),
        (floods(wire.packet(1, 99, {}) * 5000), "the server sends more than it is asked for"),
        (floods(wire.packet(1, 99, payload=bytes(1 << 22))), "the server sends more than it is asked for"),
    ],
    ids=["silent", "closes", "garbage", "endless zeros", "endless packets", "endless long packets"],
)
def test_lost_server(script: Callable[[Script], None], said: str, tmp_path: Path) -> None:
    """The run stops after a few cases, prints one line, has its own exit status, and reports these cases."""
    outcome = run(MANY, tmp_path, "--timeout", "2" if "asked" in said else "0.2", script=script)
    assert outcome.status == LOST_SERVER, outcome.printed
    assert len(outcome.cases) == LOST_CASES + 1
    [line] = [each for each in outcome.printed.splitlines() if "given up" in each]
    assert line.startswith(f"  given up after {LOST_CASES} cases in a row: ")
    assert said in line


def test_server_that_fails_is_not_lost(tmp_path: Path) -> None:
    """If the server answers only SESSION_INIT, the run still judges all cases."""

    def answers_init(script: Script) -> None:
        while (frame := script.read()) is not None:
            if frame.opcode == 6:
                script.reply(frame)

    outcome = run(MANY, tmp_path, "--timeout", "0.02", script=answers_init)
    assert (outcome.status, len(outcome.cases)) == (1, 40), outcome.printed
