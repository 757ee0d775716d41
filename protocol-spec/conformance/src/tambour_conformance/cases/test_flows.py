"""One case for each flow of the specification. A flow is a complete conversation of several devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tambour_conformance import bundle
from tambour_conformance.fixtures import Cid, Connect, LogIn
from tambour_conformance.flows import Player
from tambour_conformance.people import People
from tambour_conformance.verdict import case


def test_of(flow: Mapping[str, Any]) -> Callable[..., None]:
    """The test function that plays a flow."""

    @case(group="flow")
    def play(accounts: People, login: LogIn, connect: Connect, cid: Cid) -> None:
        Player(flow, accounts, login, connect, cid).play()

    play.__doc__ = flow["title"]
    return play


test_of.__test__ = False  # type: ignore[attr-defined]
for each in bundle.load().data["flows"]:
    globals()[f"test_flow_{each['flow'].replace('-', '_')}"] = test_of(each)
