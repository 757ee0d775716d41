"""Proves that `replay.py` notices when a server no longer answers as it did.

    python faults.py --tambourd PROGRAM SESSION.json

Each fault changes one thing in the recording, so that the answers of the unchanged server differ from it.
The replay cannot tell whether the recording or the server has changed.
SESSION.json must be the session of a dialog, `dialog.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import replay
from session import load
from wire import PROTOCOL, Specification

Document = dict[str, Any]
#: Changes the events of a recording and the specification.
Change = Callable[[list[Document], Document], None]


@dataclass(frozen=True)
class Fault:
    """A mistake of the server, the change of a recording that simulates it, and the replay's message."""

    name: str
    #: The expected message; None for a change that clients survive.
    says: str | None
    #: Seconds that the replay waits. The value is small when the awaited packet never comes.
    deadline: float
    change: Change


FAULTS: list[Fault] = []
NEVER = "did not come within"
SOON = 2


def fault(name: str, says: str | None, deadline: float = replay.DEADLINE) -> Callable[[Change], Change]:
    def register(change: Change) -> Change:
        FAULTS.append(Fault(name, says, deadline, change))
        return change

    return register


def first(events: list[Document], kind: str, name: str) -> Document:
    """The first event of this kind and opcode."""
    return next(event for event in events if event.get(kind) == name)


def field(protocol: Document, struct: str, key: str) -> Document:
    fields = next(entry["fields"] for entry in protocol["structs"] if entry["name"] == struct)
    return next(entry for entry in fields if entry["key"] == key)


@fault("nothing", None)
def nothing(events: list[Document], protocol: Document) -> None:
    pass


@fault("a field vanished", "/message/flags: is no longer there")
def vanished(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "MSG_SEND")["value"]["message"]["flags"] = 1


@fault("a field of a push vanished", "/message/flags: is no longer there", SOON)
def vanished_from_push(events: list[Document], protocol: Document) -> None:
    first(events, "push", "NOTIF_MESSAGE")["value"]["message"]["flags"] = 1


@fault("an integer became a string", '/codeLength: 6 instead of "6"')
def other_type(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "AUTH_REQUEST")["value"]["codeLength"] = "6"


@fault("a boolean became an integer", "/app-update-type: 0 instead of false")
def boolean(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "SESSION_INIT")["value"]["app-update-type"] = False


@fault("a time became a string", "instead of a map")
def other_form(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "LOGIN")["value"]["time"] = {}


@fault("another value", "/codeLength: 6 instead of 5")
def other_value(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "AUTH_REQUEST")["value"]["codeLength"] = 5


@fault("a shorter list", "instead of 2 items")
def shorter(events: list[Document], protocol: Document) -> None:
    names = first(events, "reply", "LOGIN")["value"]["profile"]["contact"]["names"]
    names += copy.deepcopy(names)


@fault("another user", "which is user")
def other_id(events: list[Document], protocol: Document) -> None:
    users = [event["value"]["userToken"] for event in events if event.get("reply") == "AUTH_CONFIRM"]
    logins = [event["value"] for event in events if event.get("reply") == "LOGIN"]
    logins[1]["profile"]["contact"]["id"] = users[0]


@fault("a token that is an integer", "is no token")
def integer_token(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "AUTH_CONFIRM")["value"]["userToken"] = "$token9"


@fault("an error instead of a reply", "cmd 1 of opcode 64 instead of cmd 3 of 64")
def refused(events: list[Document], protocol: Document) -> None:
    reply = first(events, "reply", "MSG_SEND")
    reply["error"] = reply.pop("reply")
    events[events.index(reply)] = {"error": reply.pop("error")} | reply


@fault("another error", "/error: ")
def other_error(events: list[Document], protocol: Document) -> None:
    next(event for event in events if "error" in event)["value"]["error"] = "not.allowed"


@fault("an answer under another opcode", "cmd 1 of opcode 64 instead of cmd 1 of 67")
def other_opcode(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "MSG_SEND")["opcode"] = 67


@fault("an answer with another number", NEVER, SOON)
def other_number(events: list[Document], protocol: Document) -> None:
    first(events, "reply", "MSG_SEND")["seq"] += 1000


@fault("a push no longer sent", NEVER, SOON)
def silent(events: list[Document], protocol: Document) -> None:
    push = first(events, "push", "NOTIF_MESSAGE")
    events.insert(events.index(push), push | {"opcode": 135})


@fault("a push that nobody asked for", "that did not come before")
def talkative(events: list[Document], protocol: Document) -> None:
    pushes = [event for event in events if event.get("push") == "NOTIF_MESSAGE"]
    events.remove(pushes[-1])


@fault("a connection closed", "the server closed the connection")
def closed(events: list[Document], protocol: Document) -> None:
    # The server closes the connection after a packet of an unknown version.
    request = first(events, "request", "PING")
    events.insert(events.index(request), request | {"head": "7f00fff0000100", "payload": "80"})


@fault("another version in the header", "version 10 instead of 11")
def other_version(events: list[Document], protocol: Document) -> None:
    protocol["framing"]["written"] = 11


@fault("a new optional field", None)
def new_field(events: list[Document], protocol: Document) -> None:
    del first(events, "reply", "MSG_SEND")["value"]["message"]["text"]


@fault("a new field nobody specified", "/message/text: is new, and the specification does not know it")
def unspecified(events: list[Document], protocol: Document) -> None:
    new_field(events, protocol)
    field(protocol, "Message", "text")["key"] = "words"


@fault("a new field for others", "/message/text: is new, and the client did not name polls")
def for_others(events: list[Document], protocol: Document) -> None:
    new_field(events, protocol)
    field(protocol, "Message", "text")["capability"] = "polls"


async def notice(fault: Fault, session: Path, program: str) -> bool:
    """Returns whether the replay gives the expected message."""
    recording, protocol = load(session), json.loads(PROTOCOL.read_text())
    fault.change(recording["events"], protocol)
    with tempfile.TemporaryDirectory(prefix="tambour-faults-") as place:
        changed, specification = Path(place) / "session.json", Path(place) / "protocol.json"
        changed.write_text(json.dumps(recording))
        specification.write_text(json.dumps(protocol))
        replay.DEADLINE = fault.deadline
        try:
            await replay.replay(changed, program, Specification(specification))
            said = None
        except replay.Mismatch as mismatch:
            said = str(mismatch)
    holds = said is None if fault.says is None else said is not None and fault.says in said
    print(f"  {'ok' if holds else 'NOT NOTICED'}  {fault.name}: {said or 'accepted'}", flush=True)
    return holds


async def notice_all(session: Path, program: str) -> int:
    noticed = [await notice(fault, session, program) for fault in FAULTS]
    print(f"{sum(noticed)} of {len(noticed)}")
    return 0 if all(noticed) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("session", type=Path, metavar="SESSION.json")
    parser.add_argument("--tambourd", required=True, metavar="PROGRAM", help="the server to try")
    arguments = parser.parse_args()
    return asyncio.run(notice_all(arguments.session, arguments.tambourd))


if __name__ == "__main__":
    sys.exit(main())
