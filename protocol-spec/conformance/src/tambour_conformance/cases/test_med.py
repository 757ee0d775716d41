"""MED: media that is not served yet is empty, without errors."""

from __future__ import annotations

from tambour_conformance.fixtures import LogIn
from tambour_conformance.verdict import case, equal


@case("MED-01")
def test_sticker_sets(login: LogIn) -> None:
    """There are no sticker sets."""
    reply = login("alice").call("ASSETS_GET", {"sectionId": "NEW", "from": 0, "count": 50})
    equal(reply.value, {"stickerSets": [], "marker": 0}, "the reply")


@case("MED-02")
def test_sections(login: LogIn) -> None:
    """There are no sections of stickers, and the mark stays."""
    alice = login("alice")
    for kind in ("STICKER", "FAVORITE_STICKER"):
        equal(alice.call("ASSETS_UPDATE", {"type": kind}).value, {"sections": [], "sync": 0}, "the reply")
        equal(alice.call("ASSETS_UPDATE", {"type": kind, "sync": 7})["sync"], 7, "the mark")


@case("MED-03")
def test_stickers(login: LogIn) -> None:
    """There are no stickers."""
    reply = login("alice").call("ASSETS_GET_BY_IDS", {"type": "STICKER", "ids": [1, 2]})
    equal(reply.value, {"stickers": [], "stickerSets": []}, "the reply")


@case("MED-04")
def test_calls(login: LogIn) -> None:
    """There were no calls."""
    reply = login("alice").call("VIDEO_CHAT_HISTORY", {})
    equal(
        reply.value, {"hasMore": False, "history": [], "backwardMarker": 0, "forwardMarker": 0}, "the reply"
    )


@case("MED-05")
def test_stories(login: LogIn) -> None:
    """There are no stories."""
    reply = login("alice").call("STORIES_FEED", {"cursor": "", "count": 20})
    equal(reply.value, {"storiesPreviews": [], "cursor": ""}, "the reply")
