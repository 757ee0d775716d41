"""CAP: what only clients get that named a capability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tambour_conformance import bundle
from tambour_conformance.fixtures import Cid, Group, LogIn
from tambour_conformance.people import Device
from tambour_conformance.talk import say
from tambour_conformance.verdict import case, check

#: (opcode, key, capability) of each field of a reply that needs a capability.
FIELDS = [
    (opcode.name, field["key"], field["capability"])
    for opcode in bundle.load().served.values()
    for field in opcode.fields.get("reply") or ()
    if field.get("capability")
]
#: Requests whose reply has such a field, by the chat they are about. A new field needs one here.
REQUESTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "CHAT_HISTORY": lambda chat: {"chatId": chat, "backward": 1},
}


@case("CAP-01")
@pytest.mark.parametrize(("opcode", "key", "capability"), FIELDS, ids=str)
def test_fields_of_a_capability(
    login: LogIn, group: Group, cid: Cid, opcode: str, key: str, capability: str
) -> None:
    """A field is there for a client that named its capability, and not for one that named none or others."""
    every = list(bundle.load().capabilities)
    devices: list[tuple[Device, bool]] = [
        (login("alice", capabilities=[capability]), True),
        (login("alice", capabilities=every), True),
        (login("alice"), False),
        (login("bob", capabilities=[each for each in every if each != capability]), False),
    ]
    chat = group(devices[0][0], devices[-1][0])
    say(devices[0][0], chat, cid())
    for device, expected in devices:
        reply = device.call(opcode, REQUESTS[opcode](chat))
        check((key in reply.value) == expected, f"{key}: {expected}", reply.value)
