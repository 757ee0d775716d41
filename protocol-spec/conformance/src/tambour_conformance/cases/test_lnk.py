"""LNK: link previews, made by a program of the operator."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Limits, LogIn
from tambour_conformance.people import Device
from tambour_conformance.settings import Settings
from tambour_conformance.talk import NOBODY, SAVED, history, say, time_out
from tambour_conformance.verdict import case, check, equal, skip

#: The host of the links for which the suite's `previews.py` has a preview.
HOST = "https://preview.test"
#: The preview of the link `{HOST}/page`.
PAGE = {"url": f"{HOST}/page", "title": "A page", "description": "What it says."}
PICTURE = {"url": f"{HOST}/picture.jpg", "width": 600, "height": 400}


@pytest.fixture
def program(settings: Settings) -> None:
    """Skips the case unless the server makes its previews with the suite's program."""
    if not settings.link_previews:
        skip("needs --link-previews")


def previews(device: Device, text: str, **fields: Any) -> list[dict[str, Any]]:
    """Requests a preview; returns the attachments of the reply, one SHARE or none."""
    attachments = device.call("MSG_SHARE_PREVIEW", {"text": text, **fields})["attachments"]
    check(type(attachments) is list and len(attachments) <= 1, "one attachment or none", attachments)
    for each in attachments:
        equal(each["_type"], "SHARE", "kind of the attachment")
        check(type(each["url"]) is str and type(each["shareId"]) is int, "url and shareId", each)
    return attachments


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


@case("LNK-01")
@pytest.mark.parametrize(
    "text",
    ["", "no link", "ftp://preview.test/page", "preview.test/page", "xhttps://preview.test/page", "https://"],
    ids=["nothing", "words", "another-scheme", "no-scheme", "within-a-word", "no-host"],
)
def test_no_link(alice: Device, text: str) -> None:
    """A text without a link gets an empty reply, not an error."""
    equal(previews(alice, text), [], "attachments")


@case("LNK-02")
@pytest.mark.parametrize(
    "text",
    [
        f"{HOST}/page",
        f"see {HOST}/page, please",
        f"({HOST}/page)",
        f"«{HOST}/page»",
        f"{HOST}/page {HOST}/long",
        f"[a page]({HOST}/page)",
    ],
    ids=["alone", "in-a-sentence", "in-brackets", "in-quotes", "two", "in-markup"],
)
def test_first_link(alice: Device, settings: Settings, text: str) -> None:
    """The reply has a preview of the first link in a text, without the characters around the link."""
    found = previews(alice, text, chatId=SAVED)
    if not settings.link_previews:
        skip("whether there are previews is known with --link-previews")
    equal(len(found), 1, "previews")
    equal({key: found[0][key] for key in PAGE}, PAGE, "the preview")
    equal(found[0]["image"], PICTURE, "the picture")


@case("LNK-03")
@pytest.mark.parametrize("path", ["nothing", "fails", "nonsense", "wrong", "hangs"])
def test_nothing_found(alice: Device, limits: Limits, settings: Settings, path: str) -> None:
    """If the page or the program fails in any way, the client gets an empty list."""
    within = time_out(limits, "linkPreviewTimeoutMs") if path == "hangs" else 0
    seq = alice.send("MSG_SHARE_PREVIEW", {"text": f"{HOST}/{path}"})
    reply = alice.reply(seq, within=within + settings.target.timeout)
    equal(reply["attachments"], [], "attachments")
    alice.alive()


@case("LNK-04")
@pytest.mark.usefixtures("program")
def test_long_words(alice: Device, limits: Limits) -> None:
    """Long titles and descriptions are cut at the limit, or one unit before it to keep a character whole."""
    preview = previews(alice, f"{HOST}/long")[0]
    for key, limit in (("title", "maxTitleUnits"), ("description", "maxDescriptionUnits")):
        most = limits[limit]
        check(most - 2 < units(preview[key]) <= most, f"{key} of {most} units or one less", preview[key])


@case("LNK-05")
@pytest.mark.usefixtures("program")
def test_nobody_waits(alice: Device, cid: Cid, limits: Limits) -> None:
    """Later requests of the client are answered while the program for a preview hangs."""
    within = time_out(limits, "linkPreviewTimeoutMs")
    # Each run uses a different link, because the server does not retry a link that has just failed.
    slow = alice.send("MSG_SHARE_PREVIEW", {"text": f"{HOST}/hangs?{cid()}"})
    say(alice, SAVED, cid())
    history(alice, SAVED, backward=1)
    alice.call("PING", {"interactive": True})
    check(alice.take(lambda frame: frame.seq == slow) is None, "no preview yet", "one")
    equal(alice.reply(slow, within=within + 5)["attachments"], [], "attachments")


@case("LNK-06")
@pytest.mark.usefixtures("program")
def test_preview_is_sent(login: LogIn, cid: Cid) -> None:
    """A message with a preview's id carries the server's preview, whatever other fields it has."""
    alice, laptop = login("alice"), login("alice", "laptop")
    preview = previews(alice, f"{HOST}/page")[0]
    others = {"url": "https://example.org/", "title": "another title", "description": "another one"}
    for fields in ({}, {"url": preview["url"]}, others):
        number = cid()
        attach = {"_type": "SHARE", "shareId": preview["shareId"], **fields}
        sent = say(alice, SAVED, number, attaches=[attach])
        equal(sent["attaches"], [preview], "attachments of the reply")
        push = laptop.push("NOTIF_MESSAGE", lambda push, number=number: push["message"].get("cid") == number)
        equal(push["message"]["attaches"], [preview], "attachments of the push")
        equal(history(laptop, SAVED, backward=1)[-1]["attaches"], [preview], "attachments in the history")


@case("LNK-07")
def test_unknown_preview(alice: Device, cid: Cid) -> None:
    """A message with an unknown preview id is accepted if it has an address, and refused otherwise."""
    attach: dict[str, Any] = {"_type": "SHARE", "shareId": NOBODY}
    message = {"cid": cid(), "text": "hello", "attaches": [attach]}
    alice.refused("error.message.invalid", "MSG_SEND", {"chatId": SAVED, "message": message})
    attach |= {"url": "https://example.org/a", "title": "a page"}
    sent = say(alice, SAVED, cid(), attaches=[attach])["attaches"][0]
    equal({key: sent[key] for key in attach}, attach, "the attachment")
