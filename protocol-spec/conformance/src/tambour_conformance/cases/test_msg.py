"""MSG: sending, retrying, editing, deleting, looking up, reading."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance import wire
from tambour_conformance.cases.test_pol import CLOSED, MULTIPLE, poll, vote
from tambour_conformance.cases.test_pol import edit as edit_poll
from tambour_conformance.cases.test_pol import of as poll_of
from tambour_conformance.connection import Error, Reply
from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer, message, new_group
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    DAY_MS,
    LESS,
    NOBODY,
    SAVED,
    begin,
    burst,
    chat_of,
    dialog,
    history,
    ids,
    login_again,
    marks,
    newest,
    only,
    rise,
    same,
    same_refusal,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: A case that must fill a group with new users is skipped if the group needs more than this.
MOST_MEMBERS = 40
#: A case that must reach a limit of messages is skipped if the limit is higher; this many fit a page.
MOST_DELETED = 150
SHARE = {"_type": "SHARE", "url": "https://example.org/a?b#c", "title": "a page"}


def told(device: Device, message_ids: list[int]) -> list[Frame]:
    """Checks that a device got one push of each message; call it after all answers. Returns the pushes."""
    device.fence()
    pushes = device.pushes("NOTIF_MESSAGE")
    equal([each["message"]["id"] for each in pushes], message_ids, f"messages pushed to {device.name}")
    return pushes


def told_once(device: Device, message_id: int) -> Frame:
    return told(device, [message_id])[0]


def with_cid(device: Device, chat: int, cid: int) -> list[int]:
    """The ids of those among the newest messages of a chat that have this cid."""
    return [each["id"] for each in history(device, chat, backward=20) if each.get("cid") == cid]


# Sending.


@case("MSG-01")
@pytest.mark.parametrize("where", ["group", "dialog", "user", "saved", "oneself"])
def test_stored(login: LogIn, group: Group, cid: Cid, where: str) -> None:
    """The reply has the message as all members see it, however the request names the chat."""
    alice, bob = login("alice"), login("bob")
    chat, target = {
        "group": lambda: (made := group(alice, bob), {"chatId": made}),
        "dialog": lambda: (dialog(alice, bob), {"chatId": dialog(alice, bob)}),
        "user": lambda: (dialog(alice, bob), {"userId": bob.user_id}),
        "saved": lambda: (SAVED, {"chatId": SAVED}),
        "oneself": lambda: (SAVED, {"userId": alice.user_id}),
    }[where]()
    number = cid()
    reply = alice.call("MSG_SEND", {**target, "message": message(number, "hello 😀")})
    stored = reply["message"]
    equal(reply["chatId"], chat, "chatId")
    equal(stored["cid"], number, "cid")
    equal(stored["sender"], alice.user_id, "sender")
    equal(stored["text"], "hello 😀", "text")
    check(stored["id"] > 0 and stored["time"] > 0, "id and time", stored)
    same(history(alice, chat, backward=1), [stored], "the newest message")
    if chat != SAVED:
        same(bob.push("NOTIF_MESSAGE")["message"], stored, "the message pushed")
        same(history(bob, chat, backward=1), [stored], "the newest message of the other member")


@case("MSG-01")
def test_stored_with_attachments(login: LogIn, group: Group, cid: Cid) -> None:
    """A contact, a place and a link come back as they were sent; the server may add fields."""
    alice, bob = login("alice"), login("bob")
    attaches = [
        {"_type": "CONTACT", "contactId": bob.user_id},
        {"_type": "LOCATION", "latitude": 55.75, "longitude": -37.5, "zoom": 12.0},
        SHARE,
    ]
    elements = [{"type": "STRONG", "from": 0, "length": 2}]
    chat = group(alice, bob)
    stored = say(alice, chat, cid(), "text", attaches=attaches, elements=elements)
    equal(len(stored["attaches"]), len(attaches), "attachments")
    for got, sent in zip(stored["attaches"], attaches, strict=True):
        equal({key: got.get(key) for key in sent}, sent, "an attachment")
    for got, wanted in zip(stored["elements"], elements, strict=True):
        equal({key: got.get(key) for key in wanted}, wanted, "formatting")
    same(history(bob, chat, backward=1), [stored], "the message that the other member finds")


@case("MSG-02")
def test_times_rise(login: LogIn, group: Group, cid: Cid) -> None:
    """Times and ids in a chat increase, for messages sent in a burst or singly, by any sender."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = burst(alice, chat, [cid() for _ in range(50)])
    for _ in range(20):
        sent += [say(bob, chat, cid()), say(alice, chat, cid())]
    rise([each["time"] for each in sent], "times")
    rise(ids(sent), "ids")


# Retrying.


@case("MSG-03")
@pytest.mark.parametrize("times", [2, 20])
def test_same_cid_in_one_write(login: LogIn, group: Group, cid: Cid, times: int) -> None:
    """Several equal requests in one write create one message, and one push to each device."""
    alice, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat, number = group(alice, laptop, bob), cid()
    packets = [alice.packet("MSG_SEND", {"chatId": chat, "message": message(number)}) for _ in range(times)]
    alice.coalesce(*(packet for _, packet in packets))
    stored = [alice.reply(seq)["message"] for seq, _ in packets]
    equal(stored, [stored[0]] * times, "the message of each reply")
    told_once(bob, stored[0]["id"])
    told_once(laptop, stored[0]["id"])
    equal(with_cid(bob, chat, number), [stored[0]["id"]], "messages of the cid")
    alice.silence_by_fence()


@case("MSG-03")
def test_same_cid_from_two_connections(login: LogIn, group: Group, cid: Cid) -> None:
    """The same request on the old and the new connection of a device creates one message."""
    old, new, bob = login("alice"), login("alice"), login("bob")
    chat, number = group(old, new, bob), cid()
    seqs = [(each, begin(each, chat, number)) for each in (old, new)]
    first, second = (each.reply(seq)["message"]["id"] for each, seq in seqs)
    equal(second, first, "the message of the other connection")
    told_once(bob, first)
    equal(with_cid(bob, chat, number), [first], "messages of the cid")


@case("MSG-04")
@pytest.mark.parametrize("between", ["nothing", "an edit", "other messages"])
def test_same_cid_with_another_text(login: LogIn, group: Group, cid: Cid, between: str) -> None:
    """A retry with another text changes nothing and is not pushed."""
    alice, bob = login("alice"), login("bob")
    chat, number, text = group(alice, bob), cid(), "first"
    sent = say(alice, chat, number, text)
    if between == "an edit":
        text = "edited"
        alice.call("MSG_EDIT", {"chatId": chat, "messageId": sent["id"], "text": text})
    elif between == "other messages":
        burst(alice, chat, [cid() for _ in range(30)])
        say(bob, chat, cid())
    bob.fence()
    bob.pushes("NOTIF_MESSAGE")
    again = say(alice, chat, number, "second", attaches=[SHARE])
    equal((again["id"], again["text"], again["attaches"]), (sent["id"], text, []), "the first message")
    bob.silence_by_fence()
    found = bob.call("MSG_GET", {"chatId": chat, "messageIds": [sent["id"]]})["messages"]
    equal([each["text"] for each in found], [text], "text of the stored message")


@case("MSG-04")
def test_same_cid_after_deletion(login: LogIn, group: Group, cid: Cid) -> None:
    """A retry does not restore a deleted message."""
    alice, bob = login("alice"), login("bob")
    chat, number = group(alice, bob), cid()
    sent = say(alice, chat, number)
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent["id"]]})
    bob.fence()
    bob.pushes("NOTIF_MESSAGE", "NOTIF_MSG_DELETE")
    equal(say(alice, chat, number)["id"], sent["id"], "the message of the reply")
    bob.silence_by_fence()
    equal(with_cid(bob, chat, number), [], "messages of the cid")


@case("MSG-05")
def test_same_cid_from_another_device(login: LogIn, group: Group, cid: Cid) -> None:
    """Two devices of a user that use the same cid create two messages, even at the same time."""
    phone, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat = group(phone, laptop, bob)
    for number in (cid(), cid(), cid()):
        seqs = [(each, begin(each, chat, number, each.name)) for each in (phone, laptop)]
        stored = [each.reply(seq)["message"] for each, seq in seqs]
        equal([each["text"] for each in stored], [phone.name, laptop.name], "texts of the replies")
        equal(sorted(with_cid(bob, chat, number)), sorted(ids(stored)), "messages of the cid")
        check(stored[0]["id"] != stored[1]["id"], "two messages", ids(stored))


@case("MSG-06")
def test_same_cid_in_another_chat(login: LogIn, group: Group, cid: Cid) -> None:
    """One cid used in several chats creates a message in each."""
    alice, bob = login("alice"), login("bob")
    chats = [group(alice, bob), group(alice, bob), dialog(alice, bob), SAVED]
    number = cid()
    seqs = [begin(alice, chat, number) for chat in chats]
    stored = [alice.reply(seq)["message"] for seq in seqs]
    equal(len(set(ids(stored))), len(chats), "different messages")
    for chat, each in zip(chats, stored, strict=True):
        equal(with_cid(alice, chat, number), [each["id"]], f"messages of the cid in chat {chat}")


@case("MSG-07")
@pytest.mark.parametrize("cut", ["reset", "close", "half-close", "read"])
def test_lost_reply(login: LogIn, group: Group, cid: Cid, cut: str) -> None:
    """A retry on a new connection creates no second message, however the old connection ended."""
    bob = login("bob")
    chat = group(login("alice"), bob)
    expected = []
    for _ in range(10):
        number, alice = cid(), login("alice")
        seq = begin(alice, chat, number)
        if cut == "reset":
            alice.rst()
        elif cut == "close":
            alice.close()
        elif cut == "half-close":
            alice.half_close()
        else:
            alice.reply(seq)
            alice.close()
        again = login("alice")
        stored = say(again, chat, number)
        equal(say(again, chat, number), stored, "the message of a third try")
        equal(with_cid(bob, chat, number), [stored["id"]], "messages of the cid")
        expected.append(stored["id"])
        again.close()
    told(bob, expected)


@case("MSG-07")
def test_send_cut_at_every_byte(login: LogIn, group: Group, cid: Cid) -> None:
    """A request that is cut after any byte and retried on a new connection creates one message."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    expected = []
    offset, size = 1, 2
    while offset < size:
        number = cid()
        _, packet = alice.packet("MSG_SEND", {"chatId": chat, "message": message(number)})
        size = len(packet)
        alice.raw(packet[:offset])
        alice.close()
        alice = login("alice")
        stored = say(alice, chat, number)
        equal(stored["text"], "hello", f"text of the message, cut after {offset} bytes")
        equal(with_cid(bob, chat, number), [stored["id"]], f"messages of the cid, cut after {offset} bytes")
        expected.append(stored["id"])
        offset += 1
    told(bob, expected)


@case("MSG-31")
@pytest.mark.parametrize("gone", ["for all", "for me", "cleared"])
def test_retry_of_what_is_gone(login: LogIn, group: Group, cid: Cid, gone: str) -> None:
    """A retry does not restore a message that was deleted after the lost reply."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    answered = say(alice, chat, cid())
    strong = [{"type": "STRONG", "from": 0, "length": 2}]
    content = {"elements": strong, "link": {"type": "REPLY", "messageId": answered["id"]}}
    request = {"chatId": chat, "message": {**message(cid()), **content}}
    sent = alice.call("MSG_SEND", request)["message"]
    equal("link" in sent and "elements" in sent, True, "whether the first reply has a link and elements")
    reaction = {"reactionType": "EMOJI", "id": "👍"}
    bob.call("MSG_REACTION", {"chatId": chat, "messageId": sent["id"], "reaction": reaction})
    if gone == "cleared":
        alice.call("CHAT_CLEAR", {"chatId": chat, "forAll": False})
    else:
        forme = {"forMe": True} if gone == "for me" else {}
        alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent["id"]], **forme})
    answer = alice.call("MSG_SEND", request)["message"]
    equal((answer["id"], answer.get("status")), (sent["id"], "REMOVED"), "the message of the reply")
    equal((answer["text"], answer["attaches"]), ("", []), "its content")
    equal([key for key in ("elements", "link", "reactionInfo") if key in answer], [], "what else it holds")
    equal(with_cid(alice, chat, request["message"]["cid"]), [], "messages of the cid")
    equal(say(alice, chat, cid()).get("status"), None, "status of another message")


# Refusals.


@case("MSG-08")
def test_not_a_member(login: LogIn, group: Group, cid: Cid) -> None:
    """Sending to another user's chat, an unknown chat or an unknown user is refused alike."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    theirs = group(bob, carol)
    request = {"message": message(cid())}
    refusals = [
        alice.refused("chat.not.found", "MSG_SEND", {**target, **request})
        for target in (
            {"chatId": theirs},
            {"chatId": -1},
            {"chatId": alice.user_id ^ NOBODY},
            {"userId": NOBODY},
        )
    ]
    for each in refusals[1:]:
        same_refusal(refusals[0], each, "a chat of others and one nobody has")
    for each in (bob, carol):
        each.silence_by_fence()


@case("MSG-11")
@pytest.mark.parametrize(
    "content",
    [
        {},
        {"text": ""},
        {"text": None, "attaches": []},
        {"text": "", "elements": [{"type": "STRONG", "from": 0, "length": 1}]},
    ],
    ids=["nothing", "empty", "nil", "formatting"],
)
def test_nothing_to_say(login: LogIn, group: Group, cid: Cid, content: dict[str, Any]) -> None:
    """An empty message is refused and not stored; a message with an attachment is not empty."""
    alice, bob = login("alice"), login("bob")
    chat, number = group(alice, bob), cid()
    before = ids(history(alice, chat, backward=5))
    request = {"chatId": chat, "message": {"cid": number, **content}}
    alice.refused("error.message.invalid", "MSG_SEND", request)
    bob.silence_by_fence()
    equal(ids(history(alice, chat, backward=5)), before, "messages of the chat")
    attached = {"cid": number, **content, "attaches": [SHARE]}
    stored = alice.call("MSG_SEND", {"chatId": chat, "message": attached})["message"]
    equal(stored["text"], "", "text of a message that is an attachment")


@case("MSG-11")
def test_reply_with_nothing_to_say(login: LogIn, group: Group, cid: Cid) -> None:
    """An answer without a text counts as empty and is refused; a forward without a text is accepted."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    original = say(bob, chat, cid())["id"]
    bare = {"cid": cid(), "link": {"type": "REPLY", "messageId": original}}
    alice.refused("error.message.invalid", "MSG_SEND", {"chatId": chat, "message": bare})
    bare["link"] = {"type": "FORWARD", "messageId": original, "chatId": chat}
    alice.call("MSG_SEND", {"chatId": chat, "message": bare})


@case("MSG-12")
@pytest.mark.parametrize(
    ("key", "item", "limit"),
    [
        ("attaches", SHARE, "maxAttaches"),
        ("elements", {"type": "STRONG", "from": 0, "length": 1}, "maxElementsPerText"),
    ],
    ids=["attachments", "formatting"],
)
def test_too_many_parts(
    login: LogIn, group: Group, cid: Cid, limits: Limits, key: str, item: dict[str, Any], limit: str
) -> None:
    """A message with as many parts as the limit is stored; a message with one more is refused."""
    alice, bob = login("alice"), login("bob")
    chat, number = group(alice, bob), cid()
    over = message(number, **{key: [item] * (limits[limit] + 1)})
    alice.refused("proto.payload", "MSG_SEND", {"chatId": chat, "message": over})
    bob.silence_by_fence()
    equal(with_cid(alice, chat, number), [], "messages of the cid")
    stored = say(alice, chat, number, **{key: [item] * limits[limit]})
    equal(len(stored[key]), limits[limit], key)


def formatting(content_bytes: int) -> list[dict[str, Any]]:
    """Formatting that takes almost this many bytes together with the text "x", but not more."""
    each = {"type": "T" * 500, "from": 0, "length": 1}
    return [each] * ((content_bytes - 8) // len(wire.encode(each)))


@case("MSG-33")
def test_too_large(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """A message, an edit or a draft with too much formatting is refused and not stored."""
    alice, bob = login("alice"), login("bob")
    chat, number = group(alice, bob), cid()
    over = formatting(limits["maxMessageContentBytes"] + 1000)
    large = message(number, "x", elements=over)
    alice.refused("proto.payload", "MSG_SEND", {"chatId": chat, "message": large})
    bob.silence_by_fence()
    equal(with_cid(alice, chat, number), [], "messages of the cid")
    edit = {"chatId": chat, "messageId": say(alice, chat, cid())["id"], "text": "x", "elements": over}
    alice.refused("proto.payload", "MSG_EDIT", edit)
    draft = {"chatId": chat, "draft": {"text": "x", "elements": over}}
    alice.refused("proto.payload", "DRAFT_SAVE", draft)


@case("MSG-34")
def test_as_large_as_can_be(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """The largest possible message can be pushed, paged, and sent with a member's login."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    elements = formatting(limits["maxMessageContentBytes"])
    first = say(alice, chat, cid(), "x", elements=elements)
    link = {"type": "REPLY", "messageId": first["id"]}
    answer = say(alice, chat, cid(), "x", elements=elements, link=link)
    told(bob, [first["id"], answer["id"]])
    page = history(bob, chat, backward=2)
    equal([each["id"] for each in page], [first["id"], answer["id"]], "messages of the page")
    check(
        len(page[1]["link"]["message"]["elements"]) == len(elements), "the message answered", page[1]["link"]
    )
    shown = next(each for each in login_again(bob)["chats"] if each["id"] == chat)["lastMessage"]
    equal(shown["id"], answer["id"], "last message")


@case("MSG-40")
def test_what_comes_later(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """Votes, a reaction, a pin and the closing of the poll do not change the rest of a message."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    answers = [str(number) for number in range(1, limits["maxPollAnswers"] + 1)]
    most = limits["maxMessageContentBytes"]
    for room in range(most, most // 2, -1000):
        elements = formatting(room)
        value = message(cid(), "x", elements=elements, attaches=[poll(MULTIPLE, answers)])
        seq = alice.send("MSG_SEND", {"chatId": chat, "message": value})
        answer = alice.either(Reply(seq), Error("proto.payload", seq))
        if answer.command != wire.ERROR:
            break
    stored = answer["message"]
    name = {"chatId": chat, "messageId": stored["id"], "pollId": poll_of(stored)["pollId"]}
    for device in (alice, bob):
        vote(device, name, *range(1, len(answers) + 1))
    reaction = {"reactionType": "EMOJI", "id": "👍"}
    bob.call("MSG_REACTION", {"chatId": chat, "messageId": stored["id"], "reaction": reaction})
    alice.call("CHAT_UPDATE", {"chatId": chat, "pinMessageId": stored["id"]})
    edit_poll(alice, name, poll(MULTIPLE | CLOSED, answers))
    for device in (alice, bob):
        value = {"chatId": chat, "messageIds": [stored["id"]]}
        seen = only(device.call("MSG_GET", value)["messages"], "message")
        equal(seen["elements"], stored["elements"], "formatting")
        equal(poll_of(seen)["state"]["total"], 2, "voters")


@case("MSG-13")
@pytest.mark.parametrize("original", ["unknown", "of another chat", "deleted", "hidden"])
def test_link_to_nothing(login: LogIn, group: Group, cid: Cid, original: str) -> None:
    """A link to a message that the caller does not see in the named chat is refused."""
    alice, bob = login("alice"), login("bob")
    chat, other = group(alice, bob), group(alice, bob)
    if original == "unknown":
        target = NOBODY
    elif original == "of another chat":
        target = say(alice, other, cid())["id"]
    else:
        target = say(alice, chat, cid())["id"]
        gone = {"chatId": chat, "messageIds": [target], "forMe": original == "hidden"}
        alice.call("MSG_DELETE", gone)
    bob.fence()
    bob.pushes("NOTIF_MESSAGE", "NOTIF_MSG_DELETE")
    for link in (
        {"type": "REPLY", "messageId": target},
        {"type": "REPLY", "messageId": target, "chatId": chat},
        {"type": "REPLY", "messageId": target, "chatId": other},
        {"type": "FORWARD", "messageId": target, "chatId": chat},
    ):
        alice.refused("not.found", "MSG_SEND", {"chatId": chat, "message": message(cid(), link=link)})
    bob.silence_by_fence()


@case("MSG-25")
@pytest.mark.parametrize("change", ["nothing", "edited", "deleted"])
def test_reply_to_a_message(login: LogIn, group: Group, cid: Cid, change: str) -> None:
    """An answer contains the original as it is now; after the original is deleted, it has no link."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    original = say(bob, chat, cid(), "a question")
    link = {"type": "REPLY", "messageId": str(original["id"]), "chatId": chat}
    stored = say(alice, chat, cid(), "an answer", link=link)
    same(told_once(bob, stored["id"])["message"], stored, "the message pushed")
    equal((stored["link"]["type"], stored["link"]["chatId"]), ("REPLY", chat), "the link")
    same(stored["link"]["message"], original, "the message answered")
    expected = {**original}
    if change == "edited":
        edit = {"chatId": chat, "messageId": original["id"], "text": "another question"}
        expected = bob.call("MSG_EDIT", edit)["message"]
    elif change == "deleted":
        bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [original["id"]]})
    found = newest(alice, chat)
    equal(found["id"], stored["id"], "the newest message")
    if change == "deleted":
        check("link" not in found, "no link", found)
    else:
        same(found["link"]["message"], expected, "the message answered, as it is now")


@case("MSG-25")
@pytest.mark.parametrize("way", ["cleared", "deleted for oneself"])
def test_reply_to_a_message_that_is_not_seen(login: LogIn, group: Group, cid: Cid, way: str) -> None:
    """A user who no longer sees the original gets an answer without the link; others get the link."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    original = say(bob, chat, cid(), "a question")
    told_once(carol, original["id"])
    if way == "cleared":
        carol.call("CHAT_CLEAR", {"chatId": chat})
    else:
        carol.call("MSG_DELETE", {"chatId": chat, "messageIds": [original["id"]], "forMe": True})
    link = {"type": "REPLY", "messageId": str(original["id"]), "chatId": chat}
    stored = say(alice, chat, cid(), "an answer", link=link)
    same(told_once(bob, stored["id"])["message"], stored, "the message pushed to who sees both")
    for seen in (told_once(carol, stored["id"])["message"], newest(carol, chat)):
        equal((seen["id"], seen["text"]), (stored["id"], "an answer"), "the answer")
        check("link" not in seen, "no link", seen)


@case("MSG-22")
@pytest.mark.parametrize("text", ["hello", "a😀bc"], ids=["plain", "outside the basic plane"])
def test_ranges_that_do_not_fit(login: LogIn, group: Group, cid: Cid, text: str) -> None:
    """Formatting beyond the text is clipped or left out, never refused."""
    alice, bob = login("alice"), login("bob")
    chat, units = group(alice, bob), len(text.encode("utf-16-le")) // 2
    fit = [(0, units), (1, 2)]
    unfit = [(3, 100), (4, 1 << 40), (0, None), (units, 1), (100, 5), (-2, 3), (0, 0), (0, -4)]
    elements = [{"type": "STRONG", "from": start, "length": length} for start, length in fit + unfit]
    stored = say(alice, chat, cid(), text, elements=elements)
    kept = [(each["from"], each["length"]) for each in stored["elements"]]
    equal(kept[:2], fit, "ranges that fit")
    for start, length in kept:
        fits = start >= 0 and length > 0 and start + length <= units
        check(fits, f"a range in {units} units", (start, length))
    same(told_once(bob, stored["id"])["message"], stored, "the message pushed")


# Groups and forwards.


@case("MSG-14")
def test_new_group(login: LogIn, cid: Cid) -> None:
    """Every invited user is told of the group and its first message; nobody else is told."""
    alice, laptop = login("alice"), login("alice", "laptop")
    bob, carol = login("bob"), login("carol")
    reply = alice.call("MSG_SEND", new_group(cid(), bob.user_id, bob.user_id, title="Picnic"))
    chat = reply["chat"]
    equal((chat["id"], chat["type"], chat["title"]), (reply["chatId"], "CHAT", "Picnic"), "the chat")
    equal((chat["owner"], chat["participantsCount"]), (alice.user_id, 2), "owner and members")
    for each in (bob, laptop):
        push = each.push("NOTIF_CHAT")
        equal((push["chat"]["id"], push["chat"]["title"]), (chat["id"], "Picnic"), "the chat pushed")
        told_once(each, reply["message"]["id"])
        members = chat_of(each, chat["id"])["participants"]
        equal(set(members), {str(alice.user_id), str(bob.user_id)}, "members")
    carol.silence_by_fence()


@case("MSG-14")
@pytest.mark.parametrize("how", ["in one write", "later", "on a new connection"])
def test_same_group_again(login: LogIn, cid: Cid, how: str) -> None:
    """A repeated request creates no second group and notifies nobody again."""
    alice, bob = login("alice"), login("bob")
    request = new_group(cid(), bob.user_id)
    packets = [alice.packet("MSG_SEND", request) for _ in range(2)]
    alice.raw(packets[0][1])
    if how == "in one write":
        alice.raw(packets[1][1])
        first, second = (alice.reply(seq) for seq, _ in packets)
    elif how == "later":
        first = alice.reply(packets[0][0])
        say(bob, first["chatId"], cid())
        alice.raw(packets[1][1])
        second = alice.reply(packets[1][0])
    else:
        alice.close()
        alice = login("alice")
        first, second = (alice.call("MSG_SEND", request) for _ in range(2))
    equal((second["chatId"], second["message"]["id"]), (first["chatId"], first["message"]["id"]), "the group")
    equal(second["chat"]["id"], first["chatId"], "the chat of the second reply")
    bob.fence()
    equal([push["chat"]["id"] for push in bob.pushes("NOTIF_CHAT")], [first["chatId"]], "groups pushed")


@case("MSG-14")
@pytest.mark.parametrize("others", [False, True], ids=["alone", "among others"])
def test_group_with_nobody(login: LogIn, cid: Cid, others: bool) -> None:
    """If one invited user is unknown, the request is refused; no chat is created, and nobody is told."""
    alice, bob = login("alice"), login("bob")
    known = marks(settled(alice))
    invited = [bob.user_id, NOBODY] if others else [NOBODY]
    number = cid()
    alice.refused("user.not.found", "MSG_SEND", new_group(number, *invited))
    bob.silence_by_fence()
    equal(login_again(alice, **known)["chats"], [], "chats that changed")
    reply = alice.call("MSG_SEND", new_group(number, bob.user_id))
    equal(reply["chat"]["participantsCount"], 2, "members of the group of the same cid")


@case("MSG-26")
def test_too_large_a_group(login: LogIn, newcomer: Newcomer, cid: Cid, limits: Limits) -> None:
    """A new group can have maxGroupMembers members, including the caller; one more is refused."""
    most = limits["maxGroupMembers"]
    if most > MOST_MEMBERS:
        skip(f"maxGroupMembers is {most}, too many to register: {LESS}")
    alice, bob = login("alice"), login("bob")
    others = [login(newcomer(), interactive=False) for _ in range(most - 1)]
    users = [each.user_id for each in others]
    alice.refused("proto.payload", "MSG_SEND", new_group(cid(), bob.user_id, *users))
    for each in (bob, *others):
        each.silence_by_fence()
    reply = alice.call("MSG_SEND", new_group(cid(), *users))
    equal(reply["chat"]["participantsCount"], most, "members")
    # A user named twice counts once, and so does the caller.
    reply = alice.call("MSG_SEND", new_group(cid(), alice.user_id, *users[1:], users[-1]))
    equal(reply["chat"]["participantsCount"], most - 1, "members of a group of one less")


@case("MSG-23")
@pytest.mark.parametrize("source", ["group", "dialog"])
def test_forward(login: LogIn, group: Group, cid: Cid, source: str) -> None:
    """A forward is a copy that outsiders of the original's chat can read; it stays unchanged."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob) if source == "group" else dialog(alice, bob)
    attaches = [SHARE]
    original = say(bob, chat, cid(), "by bob", attaches=attaches)
    link = {"type": "FORWARD", "messageId": str(original["id"]), "chatId": chat}
    target = group(alice, carol)
    stored = say(alice, target, cid(), "", link=link)
    same(told_once(carol, stored["id"])["message"], stored, "the message pushed")
    bob.call("MSG_EDIT", {"chatId": chat, "messageId": original["id"], "text": "changed"})
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [original["id"]]})
    found = newest(carol, target)
    equal((found["id"], found["sender"]), (stored["id"], alice.user_id), "the newest message")
    equal(found["link"]["type"], "FORWARD", "its link")
    copy = found["link"]["message"]
    equal((copy["text"], copy["sender"], copy["id"]), ("by bob", bob.user_id, original["id"]), "the copy")
    equal(copy["attaches"], original["attaches"], "attachments of the copy")


@case("MSG-23")
def test_forward_from_a_strangers_chat(login: LogIn, group: Group, cid: Cid) -> None:
    """A user cannot forward a message that they cannot read."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    original = say(bob, group(bob, carol), cid(), "a secret")
    for source in (original["chatId"], dialog(bob, carol), -1):
        link = {"type": "FORWARD", "messageId": original["id"], "chatId": source}
        request = {"chatId": SAVED, "message": message(cid(), "look", link=link)}
        alice.refused("not.found", "MSG_SEND", request)


# Editing.


@case("MSG-09")
def test_edit_own_message(login: LogIn, group: Group, cid: Cid) -> None:
    """An edit of one's own message changes text, status and `updateTime`; all other sessions are told."""
    alice, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat = group(alice, laptop, bob)
    sent = say(alice, chat, cid(), "first")
    say(bob, chat, cid(), "something else")
    for each in (alice, laptop, bob):
        each.fence()
        each.pushes("NOTIF_MESSAGE")
    edit = {"chatId": chat, "messageId": sent["id"], "text": "second"}
    edited = alice.call("MSG_EDIT", edit)["message"]
    unchanged = ("id", "time", "sender", "cid")
    equal([edited[key] for key in unchanged], [sent[key] for key in unchanged], "what stays")
    equal((edited["text"], edited["status"]), ("second", "EDITED"), "what changes")
    check(edited["updateTime"] >= sent["time"], "updateTime", edited)
    for each in (laptop, bob):
        same(told_once(each, sent["id"])["message"], edited, "the message pushed")
    alice.silence_by_fence()
    found = bob.call("MSG_GET", {"chatId": chat, "messageIds": [sent["id"]]})["messages"]
    same(found, [edited], "the message that is stored")
    equal(alice.call("MSG_EDIT", edit)["message"]["text"], "second", "text after the edit is repeated")


@case("MSG-32")
def test_edits_at_once(login: LogIn, group: Group, cid: Cid) -> None:
    """Edits in one write have distinct times, and the last one stays."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = say(alice, chat, cid(), "0")["id"]
    texts = [str(number) for number in range(1, 9)]
    edits = [{"chatId": chat, "messageId": sent, "text": text} for text in texts]
    packets = [alice.packet("MSG_EDIT", edit) for edit in edits]
    alice.coalesce(*(packet for _, packet in packets))
    edited = [alice.reply(seq)["message"] for seq, _ in packets]
    equal([each["text"] for each in edited], texts, "the texts, in order")
    times = [each["updateTime"] for each in edited]
    equal(times, sorted(set(times)), "the times, each later than the one before")
    same(history(bob, chat, backward=1), [edited[-1]], "the message that is stored")


@case("MSG-09")
def test_edit_others_message(login: LogIn, group: Group, cid: Cid) -> None:
    """A user cannot edit another user's message, even as the owner of the group."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    sent = say(bob, chat, cid(), "by bob")
    told_once(alice, sent["id"])
    edit = {"chatId": chat, "messageId": sent["id"], "text": "not by bob"}
    alice.refused("not.allowed", "MSG_EDIT", edit)
    carol.refused("chat.not.found", "MSG_EDIT", edit)
    alice.refused("not.found", "MSG_EDIT", {**edit, "messageId": NOBODY})
    bob.silence_by_fence()
    same(history(alice, chat, backward=1), [sent], "the newest message")


@case("MSG-15")
@pytest.mark.parametrize("text", ["absent", "nil", "empty"])
def test_edit_without_a_text(login: LogIn, group: Group, cid: Cid, text: str) -> None:
    """An edit whose text is absent or nil keeps the text; an empty text clears it."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = say(alice, chat, cid(), "a text")
    edit: dict[str, Any] = {"chatId": chat, "messageId": sent["id"], "attaches": [SHARE]}
    if text != "absent":
        edit["text"] = None if text == "nil" else ""
    edited = alice.call("MSG_EDIT", edit)["message"]
    equal(edited["text"], "" if text == "empty" else "a text", "text")
    equal([each["url"] for each in edited["attaches"]], [SHARE["url"]], "attachments")
    same(history(bob, chat, backward=1), [edited], "the message that is stored")


@case("MSG-15")
@pytest.mark.parametrize("key", ["attaches", "attachments"])
def test_edit_without_attachments(login: LogIn, group: Group, cid: Cid, key: str) -> None:
    """An edit with an empty list keeps the attachments: known clients send it with every text edit."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = say(alice, chat, cid(), "a text", attaches=[SHARE])
    edit = {"chatId": chat, "messageId": sent["id"], "text": "another text", key: []}
    edited = alice.call("MSG_EDIT", edit)["message"]
    equal((edited["text"], edited["attaches"]), ("another text", sent["attaches"]), "text and attachments")


# Deleting.


@case("MSG-10")
@pytest.mark.parametrize("how", ["later", "in one write", "from another device", "by another member"])
def test_delete_twice(login: LogIn, group: Group, cid: Cid, how: str) -> None:
    """A repeated deletion gets the same reply and causes no second push."""
    alice, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat = group(alice, laptop, bob)
    sent = say(alice, chat, cid())["id"]
    say(alice, chat, cid())
    request = {"chatId": chat, "messageIds": [sent]}
    packets = [alice.packet("MSG_DELETE", request) for _ in range(2)]
    if how == "in one write":
        alice.coalesce(*(packet for _, packet in packets))
        first, second = (alice.reply(seq) for seq, _ in packets)
    else:
        alice.raw(packets[0][1])
        first = alice.reply(packets[0][0])
        second = {"later": alice, "from another device": laptop, "by another member": bob}[how].call(
            "MSG_DELETE", request
        )
    equal((first["chatId"], first["messageIds"]), (chat, [sent]), "the first reply")
    equal(second.value, first.value, "the second reply")
    for each in (bob, laptop):
        each.fence()
        equal([push["messageIds"] for push in each.pushes("NOTIF_MSG_DELETE")], [[sent]], "deletions pushed")
        each.pushes("NOTIF_MESSAGE")
    alice.silence_by_fence()
    check(sent not in ids(history(bob, chat, backward=5)), "the message is gone", "it is there")


@case("MSG-16")
def test_delete_for_oneself(login: LogIn, group: Group, cid: Cid) -> None:
    """A user no longer sees a message that they deleted for themselves, in any reply; others still see it."""
    alice, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat = group(alice, laptop, bob)
    first, second = say(bob, chat, cid()), say(bob, chat, cid())
    for each in (alice, laptop):
        each.fence()
        each.pushes("NOTIF_MESSAGE")
    equal(chat_of(alice, chat)["newMessages"], 2, "unread messages")
    request = {"chatId": chat, "messageIds": [second["id"]], "forMe": True}
    equal(alice.call("MSG_DELETE", request)["messageIds"], [second["id"]], "messages that are gone")
    equal(laptop.push("NOTIF_MSG_DELETE")["messageIds"], [second["id"]], "the deletion pushed")
    bob.silence_by_fence()
    for each in (alice, laptop):
        check(second["id"] not in ids(history(each, chat, backward=5)), "no such message", each.name)
        found = each.call("MSG_GET", {"chatId": chat, "messageIds": [second["id"]]})
        equal(found["messages"], [], "messages looked up")
        shown = chat_of(each, chat)
        equal(shown["lastMessage"]["id"], first["id"], "last message")
        equal(shown["newMessages"], 1, "unread messages")
    equal(ids(history(bob, chat, backward=2)), [first["id"], second["id"]], "messages of the other member")
    equal(chat_of(bob, chat)["lastMessage"]["id"], second["id"], "last message of the other member")


@case("MSG-42")
@pytest.mark.parametrize("way", ["named", "a range"])
def test_deleted_and_withheld(login: LogIn, group: Group, cid: Cid, way: str) -> None:
    """Members are told of a deletion only for messages that they could see."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    old = say(alice, chat, cid())
    bob.call("CHAT_CLEAR", {"chatId": chat, "lastEventTime": old["time"]})
    value = {"chatId": chat, "userIds": [carol.user_id], "operation": "add", "showHistory": False}
    alice.call("CHAT_MEMBERS_UPDATE", value)
    new = say(alice, chat, cid())
    for device in (bob, carol):
        device.fence()
        device.pushes("NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_MSG_DELETE")
    if way == "named":
        alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [old["id"], new["id"]]})
    else:
        value = {"chatId": chat, "startTime": old["time"], "endTime": new["time"]}
        alice.call("MSG_DELETE_RANGE", value)
    for device in (bob, carol):
        device.fence()
        deleted = [each for push in device.pushes("NOTIF_MSG_DELETE") for each in push["messageIds"]]
        check(old["id"] not in deleted, "not the id of what was withheld", deleted)
        check(new["id"] in deleted, "the id of what was there", deleted)


@case("MSG-24")
@pytest.mark.parametrize("where", ["dialog", "group"])
def test_delete_others_message(login: LogIn, group: Group, cid: Cid, where: str) -> None:
    """A request deletes the caller's own message and reports other users' and unknown ids as failed."""
    alice, bob = login("alice"), login("bob")
    chat = dialog(alice, bob) if where == "dialog" else group(alice, bob)
    theirs, mine = say(alice, chat, cid())["id"], say(bob, chat, cid())["id"]
    for each in (alice, bob):
        each.fence()
        each.pushes("NOTIF_MESSAGE", "NOTIF_CHAT")
    reply = bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [theirs, mine, NOBODY]})
    equal(reply["messageIds"], [mine], "messages that are gone")
    equal(reply["failedMessageIds"], [theirs, NOBODY], "messages that are not")
    equal(alice.push("NOTIF_MSG_DELETE")["messageIds"], [mine], "the deletion pushed")
    equal(ids(history(bob, chat, backward=1)), [theirs], "the newest message")
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [theirs]})
    alice.silence_by_fence()


@case("MSG-24")
def test_owner_deletes_others_message(login: LogIn, group: Group, cid: Cid) -> None:
    """The owner of a group can delete messages of others, but not the event that created it."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    event = newest(alice, chat)["id"]
    sent = say(bob, chat, cid())["id"]
    reply = alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent, event]})
    equal((reply["messageIds"], reply["failedMessageIds"]), ([sent], [event]), "gone, and not")
    equal(bob.push("NOTIF_MSG_DELETE")["messageIds"], [sent], "the deletion pushed")
    equal(ids(history(bob, chat, backward=5)), [event], "messages left")


def range_of(first: dict[str, Any], last: dict[str, Any]) -> dict[str, int]:
    return {"startTime": first["time"], "endTime": last["time"]}


@case("MSG-28")
def test_delete_range_of_a_group(login: LogIn, group: Group, cid: Cid) -> None:
    """The owner of a group deletes all members' messages in a time range, and no others."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    sent = [say(each, chat, cid()) for each in (alice, bob, alice, bob)]
    for each in (alice, bob):
        each.fence()
        each.pushes("NOTIF_MESSAGE", "NOTIF_CHAT")
    request = {"chatId": chat, **range_of(sent[1], sent[2])}
    reply = alice.call("MSG_DELETE_RANGE", request)
    equal(reply["chat"]["id"], chat, "the chat of the reply")
    push = bob.push("NOTIF_MSG_DELETE_RANGE")
    equal({key: push[key] for key in request}, request, "the range pushed")
    equal(bob.push("NOTIF_MSG_DELETE")["messageIds"], ids(sent[1:3]), "the messages pushed")
    equal(ids(history(bob, chat, backward=2)), [sent[0]["id"], sent[3]["id"]], "messages left")
    alice.call("MSG_DELETE_RANGE", request)
    for each in (alice, bob):
        each.silence_by_fence()


@case("MSG-29")
def test_delete_range_of_a_dialog(login: LogIn, cid: Cid) -> None:
    """In a dialog, a range deletes only the caller's own messages."""
    alice, bob = login("alice"), login("bob")
    chat = dialog(alice, bob)
    sent = [say(each, chat, cid()) for each in (alice, bob, alice)]
    for each in (alice, bob):
        each.fence()
        each.pushes("NOTIF_MESSAGE", "NOTIF_CHAT")
    alice.call("MSG_DELETE_RANGE", {"chatId": chat, **range_of(sent[0], sent[2])})
    equal(bob.push("NOTIF_MSG_DELETE")["messageIds"], [sent[0]["id"], sent[2]["id"]], "the messages pushed")
    bob.silence_by_fence()
    equal(newest(bob, chat)["id"], sent[1]["id"], "the newest message left")


@case("MSG-30")
@pytest.mark.parametrize(("start", "end"), [(0, 2), (-1, 2), (2, 1)], ids=["zero", "negative", "backwards"])
def test_no_range(alice: Device, cid: Cid, start: int, end: int) -> None:
    """A range that begins at 0 or below, or that ends before it begins, is refused."""
    sent = say(alice, SAVED, cid())["id"]
    value = {"chatId": SAVED, "startTime": start, "endTime": end}
    alice.refused("proto.payload", "MSG_DELETE_RANGE", value)
    alice.refused("chat.not.found", "MSG_DELETE_RANGE", {"chatId": -NOBODY, "startTime": 1, "endTime": 2})
    equal(newest(alice, SAVED)["id"], sent, "the newest message")


@case("MSG-30")
def test_too_long_a_range(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """A range with more than maxDeletedRange messages is refused as a whole."""
    most = limits["maxDeletedRange"]
    if most > MOST_DELETED:
        skip(f"maxDeletedRange is {most}: {LESS}")
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    first = say(alice, chat, cid())
    rest = burst(alice, chat, [cid() for _ in range(most)], listeners=[bob])
    bob.fence()
    bob.pushes("NOTIF_MESSAGE")
    for device in (alice, bob):
        too_long = {"chatId": chat, **range_of(first, rest[-1])}
        device.refused("proto.payload", "MSG_DELETE_RANGE", too_long)
    bob.silence_by_fence()
    equal(ids(history(bob, chat, backward=most + 1)), ids([first, *rest]), "messages after the refusal")
    alice.call("MSG_DELETE_RANGE", {"chatId": chat, **range_of(rest[0], rest[-1])})
    equal(newest(bob, chat)["id"], first["id"], "the newest message left")


# Looking up, typing, reading.


@case("MSG-17")
def test_messages_by_id(login: LogIn, group: Group, cid: Cid) -> None:
    """MSG_GET returns the visible messages of the named chat once, in the order of their ids."""
    alice, bob = login("alice"), login("bob")
    chat, other = group(alice, bob), group(alice, bob)
    sent = ids(burst(bob, chat, [cid() for _ in range(6)]))
    elsewhere = say(bob, other, cid())["id"]
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent[1]]})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [sent[3]], "forMe": True})
    asked = [sent[5], NOBODY, elsewhere, sent[0], sent[3], sent[1], sent[4], sent[5], str(sent[2])]
    reply = alice.call("MSG_GET", {"chatId": chat, "messageIds": asked})
    equal(ids(reply["messages"]), [sent[0], sent[2], sent[4], sent[5]], "messages")
    reply = bob.call("MSG_GET", {"chatId": chat, "messageIds": asked})
    equal(ids(reply["messages"]), sent[:1] + sent[2:], "messages of the other member")
    reply = alice.call("MSG_GET", {"chatId": chat, "messageIds": [NOBODY]})
    equal(reply["messages"], [], "messages when there is none")


@case("MSG-18")
def test_typing_in_a_strangers_chat(login: LogIn, group: Group) -> None:
    """Typing in another user's chat is refused like typing in an unknown chat, and nobody is told."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    theirs = group(bob, carol)
    refusals = [
        alice.refused("chat.not.found", "MSG_TYPING", {"chatId": chat})
        for chat in (theirs, -1, alice.user_id ^ NOBODY)
    ]
    for each in refusals[1:]:
        same_refusal(refusals[0], each, "a chat of others and one nobody has")
    for each in (bob, carol):
        each.silence_by_fence()


def read(device: Device, chat: int, **fields: Any) -> Frame:
    return device.call("CHAT_MARK", {"type": "READ_MESSAGE", "chatId": chat, **fields})


@case("MSG-19")
def test_mark_only_rises(login: LogIn, group: Group, cid: Cid) -> None:
    """A read mark only rises: a lower or equal mark changes nothing and is not pushed."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat = group(alice, bob, laptop)
    sent = burst(alice, chat, [cid() for _ in range(4)])
    reply = read(bob, chat, messageId=sent[2]["id"])
    equal((reply["mark"], reply["unread"]), (sent[2]["time"], 1), "mark and unread messages")
    for each in (alice, laptop):
        equal(each.push("NOTIF_MARK")["mark"], sent[2]["time"], "the mark pushed")
        each.pushes("NOTIF_MESSAGE")
    for lower in (
        {"messageId": sent[0]["id"]},
        {"mark": sent[0]["time"]},
        {"mark": 0},
        {"messageId": sent[2]["id"]},
    ):
        again = read(bob, chat, **lower)
        equal((again["mark"], again["unread"]), (sent[2]["time"], 1), f"mark and unread after {lower}")
    for each in (alice, laptop):
        each.silence_by_fence()
    equal(chat_of(bob, chat)["participants"][str(bob.user_id)], sent[2]["time"], "the mark that is stored")


@case("MSG-20")
@pytest.mark.parametrize("ahead", [1, DAY_MS, 1 << 61])
def test_mark_in_the_future(login: LogIn, group: Group, cid: Cid, ahead: int) -> None:
    """A mark in the future counts as now, so the next message is unread."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    last = say(alice, chat, cid())
    reply = read(bob, chat, mark=last["time"] + ahead)
    equal(reply["unread"], 0, "unread messages")
    later = say(alice, chat, cid())
    check(reply["mark"] < later["time"], f"a mark below {later['time']}", reply["mark"])
    equal(chat_of(bob, chat)["newMessages"], 1, "unread messages")
    equal(read(bob, chat, messageId=later["id"])["unread"], 0, "unread messages once it was read")


@case("MSG-21")
def test_back_to_unread(login: LogIn, group: Group, cid: Cid) -> None:
    """SET_AS_UNREAD makes a message and later ones unread; only the caller's other device is told."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat = group(alice, bob, laptop)
    sent = burst(alice, chat, [cid() for _ in range(5)])
    read(bob, chat, messageId=sent[4]["id"])
    for each in (alice, bob, laptop):
        each.fence()
        each.pushes("NOTIF_MESSAGE", "NOTIF_MARK")
    back = {"type": "SET_AS_UNREAD", "chatId": chat, "messageId": sent[2]["id"]}
    reply = bob.call("CHAT_MARK", back)
    equal(reply["unread"], 3, "unread messages")
    check(sent[1]["time"] <= reply["mark"] < sent[2]["time"], "a mark before the message", reply["mark"])
    push = laptop.push("NOTIF_MARK")
    equal((push["userId"], push["mark"], push["setAsUnread"]), (bob.user_id, reply["mark"], True), "the push")
    for each in (alice, bob):
        each.silence_by_fence()
    equal(chat_of(alice, chat)["participants"][str(bob.user_id)], sent[4]["time"], "the mark for others")
    equal(chat_of(laptop, chat)["newMessages"], 3, "unread messages on the other device")
    equal(read(bob, chat, messageId=sent[4]["id"])["unread"], 0, "unread messages once they were read again")
