"""A recorded session: the format of its file, and the placeholders for what differs from run to run.

The file is JSON with one event per line, in the order in which a proxy between clients and server saw them:

    {"connect": "c1"}                                a client connects; connections are numbered
    {"request": NAME, "on": "c1", "head": HEX, "payload": HEX}
                                                     a client sends these bytes, the length between the two
    {"reply": NAME, "on": "c1", "opcode": 64, "seq": 7, "value": {...}}
    {"error": NAME, "on": "c1", "opcode": 64, "seq": 7, "value": {...}}
    {"push": NAME, "on": "c2", "opcode": 128, "value": {...}}
    {"close": "c1"}                                  the client closes
    {"closed": "c1"}                                 the server closes
    {"let": "chat1", "xor": ["user1", "user2"]}      a client computes the id of a dialog

In a value, a string that begins with `$` is a placeholder; a real string that begins with `$` has `$$`:

    $user1 $chat1 $message1 $poll1 $session1 $token1 $hash1
                                                      the same value at each place, but another one in each run
    $ms                                               some time, in milliseconds
    $ms:time1                                         a time that a later request sends back
    $int                                              some integer

In a payload, `{message1:d3}` is a placeholder that is sent as MessagePack, in the form with the given first
byte if the value fits.
There are also `{time1:cf}`, `{now:cf}` and `{now-3600000:cf}` (the client's clock when it is sent, in
milliseconds; it is never earlier than a time that the server has sent), and `{code79990000001.2:a6}` (the second
login code of a phone).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

#: A placeholder in a payload.
PLACEHOLDER = re.compile(r"\{([a-z]+[0-9.+-]*):([0-9a-f]{2})\}")


def dump(head: dict[str, Any], events: list[dict[str, Any]]) -> str:
    """The text of a file."""
    lines = [json.dumps(event, ensure_ascii=False) for event in events]
    start = json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
    return f'{start},\n  "events": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}\n"


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def escaped(value: Any) -> Any:
    """Returns a scalar as a recorded value contains it, with a leading `$` doubled."""
    return "$" + value if isinstance(value, str) and value.startswith("$") else value


def unescaped(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and value.startswith("$$") else value


def marker(value: Any) -> str | None:
    """Returns the name of a placeholder without the `$`; None for a scalar that is no placeholder."""
    is_marked = isinstance(value, str) and value.startswith("$") and not value.startswith("$$")
    return value[1:] if is_marked else None
