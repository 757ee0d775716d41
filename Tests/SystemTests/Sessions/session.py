"""A recorded session: how its file looks, and what stands in it for what differs from run to run.

The file is JSON with one event a line, in the order in which a proxy between clients and server saw them:

    {"connect": "c1"}                                a client connects; connections are numbered
    {"request": NAME, "on": "c1", "head": HEX, "payload": HEX}
                                                     a client sends these bytes, the length between the two
    {"reply": NAME, "on": "c1", "opcode": 64, "seq": 7, "value": {...}}
    {"error": NAME, "on": "c1", "opcode": 64, "seq": 7, "value": {...}}
    {"push": NAME, "on": "c2", "opcode": 128, "value": {...}}
    {"close": "c1"}                                  the client closes
    {"closed": "c1"}                                 the server closes
    {"let": "chat1", "xor": ["user1", "user2"]}      a client makes up the id of a dialog

In a value a string that begins with `$` stands for something else; one that really begins so has `$$`:

    $user1 $chat1 $message1 $poll1 $session1 $token1 $hash1
                                                      the same wherever it stands, whatever it is this time
    $ms                                               some time, in milliseconds
    $ms:time1                                         the same, and a later request sends it back
    $int                                              some integer

In a payload `{message1:d3}` is such a thing as MessagePack, in the form whose first byte is given if it fits.
There are also `{time1:cf}`, `{now:cf}` and `{now-3600000:cf}` (the client's clock when it is sent, in
milliseconds; it is never behind a time that the server has told), and `{code79990000001.2:a6}` (the second
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
    """A scalar as it stands in a value."""
    return "$" + value if isinstance(value, str) and value.startswith("$") else value


def unescaped(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and value.startswith("$$") else value


def marker(value: Any) -> str | None:
    """What a scalar of a value stands for, without the `$`; None for a scalar that stands for itself."""
    is_marked = isinstance(value, str) and value.startswith("$") and not value.startswith("$$")
    return value[1:] if is_marked else None
