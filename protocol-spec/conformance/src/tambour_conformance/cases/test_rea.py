"""REA: reactions, their owners, and which ones a chat allows."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    LESS,
    NOBODY,
    chat_of,
    dialog,
    history,
    login_again,
    marks,
    newest,
    only,
    same_refusal,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

CHANGED, YOURS = "NOTIF_MSG_REACTIONS_CHANGED", "NOTIF_MSG_YOU_REACTED"
THUMB, DRUM, FIRE = "👍", "🥁", "🔥"
#: Distinct emojis, for cases with several kinds of reaction.
KINDS = (THUMB, DRUM, FIRE, "🎉", "😮")


def asked(chat: int, message: int, emoji: str, **fields: Any) -> dict[str, Any]:
    """The payload of a MSG_REACTION."""
    reaction = {"reactionType": "EMOJI", "id": emoji}
    return {"chatId": chat, "messageId": message, "reaction": reaction, **fields}


def react(device: Device, chat: int, message: int, emoji: str) -> dict[str, Any]:
    """Sends MSG_REACTION; returns the reactions in the reply."""
    return device.call("MSG_REACTION", asked(chat, message, emoji))["reactionInfo"]


def cancel(device: Device, chat: int, message: int) -> dict[str, Any]:
    """Sends MSG_CANCEL_REACTION; returns the reactions in the reply."""
    return device.call("MSG_CANCEL_REACTION", {"chatId": chat, "messageId": message})["reactionInfo"]


def not_reacted(code: str, device: Device, chat: int, message: int, emoji: str = THUMB) -> Frame:
    return device.refused(code, "MSG_REACTION", asked(chat, message, emoji))


def counts(info: dict[str, Any]) -> dict[str, int]:
    """The counts by emoji; checks that their sum is the total."""
    found = {each["reaction"]: each["count"] for each in info.get("counters", [])}
    equal(info.get("totalCount", 0), sum(found.values()), "totalCount, the sum of the counters")
    return found


def shown(message: dict[str, Any]) -> tuple[dict[str, int], str | None]:
    """The counts by emoji in a message, and the reading user's own reaction."""
    info = message.get("reactionInfo") or {}
    return counts(info), info.get("yourReaction")


def said(group: Group, cid: Cid, *people: Device) -> tuple[int, int]:
    """Makes a group with a message of the first user, reads all pushes about it, and returns both ids."""
    chat = group(people[0], *people[1:])
    message = say(people[0], chat, cid())["id"]
    forget(*people)
    return chat, message


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes(CHANGED, YOURS, "NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_MSG_DELETE")


def told(device: Device, chat: int, message: int) -> dict[str, int]:
    """The counters of the only push about others' reactions."""
    device.fence()
    push = only(device.pushes(CHANGED), f"{CHANGED} for {device.name}")
    equal((push["chatId"], push["messageId"]), (chat, message), "chat and message of the push")
    check("yourReaction" not in push.value, "no yourReaction in it", push.value)
    return counts(push.value)


@case("REA-01")
def test_reaction(login: LogIn, group: Group, cid: Cid) -> None:
    """A reaction is in the reply, in the push to the others, and in every reply with the message."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, message = said(group, cid, alice, bob, carol)
    info = react(bob, chat, message, DRUM)
    equal((counts(info), info.get("yourReaction")), ({DRUM: 1}, DRUM), "the reply")
    for device in (alice, carol):
        equal(told(device, chat, message), {DRUM: 1}, "what others are told")
    for device, own in ((alice, None), (bob, DRUM)):
        login_reply = login_again(device, chatsSync=-1)
        in_login = only([each for each in login_reply["chats"] if each["id"] == chat], "chat")
        views = {
            "page": newest(device, chat),
            "CHAT_INFO": chat_of(device, chat)["lastMessage"],
            "MSG_GET": device.call("MSG_GET", {"chatId": chat, "messageIds": [message]})["messages"][0],
            "LOGIN": in_login["lastMessage"],
        }
        for name, view in views.items():
            equal(shown(view), ({DRUM: 1}, own), f"reactions in {name} for {device.name}")


@case("REA-02")
def test_second_reaction(login: LogIn, group: Group, cid: Cid) -> None:
    """A second reaction replaces the first; a repeated one is not pushed."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    react(bob, chat, message, DRUM)
    equal(counts(react(bob, chat, message, FIRE)), {FIRE: 1}, "after the second")
    forget(alice)
    equal(counts(react(bob, chat, message, FIRE)), {FIRE: 1}, "after the same again")
    alice.silence_by_fence()


@case("REA-03")
def test_own_device(login: LogIn, group: Group, cid: Cid) -> None:
    """The user's other device gets the reaction; the reacting device gets no push."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat, message = said(group, cid, alice, bob)
    forget(laptop)
    react(bob, chat, message, DRUM)
    laptop.fence()
    push = only(laptop.pushes(YOURS), YOURS)
    equal((push["chatId"], push["messageId"]), (chat, message), "chat and message of the push")
    info = push["reactionInfo"]
    equal((counts(info), info.get("yourReaction")), ({DRUM: 1}, DRUM), "its reactions")
    for device in (bob, laptop):
        device.silence_by_fence()


@case("REA-04")
def test_whose(login: LogIn, group: Group, cid: Cid) -> None:
    """Counters are the same for all members; `yourReaction` is personal, and no push of an edit has it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, message = said(group, cid, alice, bob, carol)
    react(alice, chat, message, THUMB)
    react(bob, chat, message, DRUM)
    both = {THUMB: 1, DRUM: 1}
    for device, own in ((alice, THUMB), (bob, DRUM), (carol, None)):
        equal(shown(newest(device, chat)), (both, own), f"reactions for {device.name}")
    forget(bob, carol)
    edit = {"chatId": chat, "messageId": message, "text": "louder"}
    equal(shown(alice.call("MSG_EDIT", edit)["message"]), (both, THUMB), "reply to the author's edit")
    for device in (bob, carol):
        device.fence()
        equal(
            shown(only(device.pushes("NOTIF_MESSAGE"), "push")["message"]), (both, None), "push of the edit"
        )


@case("REA-05")
def test_message_not_there(login: LogIn, group: Group, cid: Cid) -> None:
    """Reactions to unknown, deleted and hidden messages are refused alike."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    hidden = say(alice, chat, cid())["id"]
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [hidden], "forMe": True})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [message]})
    unknown = not_reacted("not.found", bob, chat, NOBODY)
    for each in (message, hidden):
        same_refusal(not_reacted("not.found", bob, chat, each), unknown, "no message")


@case("REA-06")
@pytest.mark.parametrize(
    "text", ["", "a", "7", "👍👍", "ok", " "], ids=["empty", "letter", "digit", "two", "word", "blank"]
)
def test_no_emoji(login: LogIn, group: Group, cid: Cid, text: str) -> None:
    """A text that is not exactly one emoji is refused."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    not_reacted("error.message.like.unknown.reaction", bob, chat, message, text)
    other = {"chatId": chat, "messageId": message, "reaction": {"reactionType": "SOUND", "id": THUMB}}
    bob.refused("error.message.like.unknown.reaction", "MSG_REACTION", other)
    alice.silence_by_fence()


@case("REA-06")
@pytest.mark.parametrize(
    "text",
    ["👍", "❤️", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "1️⃣"],
    ids=["one", "with a selector", "with a tone", "family", "flag", "key"],
)
def test_emoji(login: LogIn, group: Group, cid: Cid, text: str) -> None:
    """An emoji may consist of several code points."""
    alice = login("alice")
    chat, message = said(group, cid, alice)
    equal(counts(react(alice, chat, message, text)), {text: 1}, "counters")


@case("REA-07")
def test_too_many_kinds(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """A new kind above maxReactionKinds is refused, until a replaced reaction frees a kind."""
    most = limits["maxReactionKinds"]
    if most > 3:
        skip(f"maxReactionKinds is {most}, more than there are people: {LESS}")
    people = [login(each) for each in ("alice", "bob", "carol", "dave")][: most + 1]
    chat, message = said(group, cid, *people)
    for person, emoji in zip(people[:most], KINDS, strict=False):
        react(person, chat, message, emoji)
    forget(people[0])
    not_reacted("error.too-many-likes", people[most], chat, message, KINDS[most])
    people[0].silence_by_fence()
    react(people[0], chat, message, KINDS[most])
    react(people[most], chat, message, KINDS[most])
    equal(len(shown(newest(people[0], chat))[0]), most, "kinds")


@case("REA-08")
def test_reaction_of_a_stranger(login: LogIn, group: Group, cid: Cid) -> None:
    """Requests about reactions in another user's chat are refused like requests for an unknown chat."""
    alice, carol = login("alice"), login("carol")
    chat, message = said(group, cid, alice)
    same_refusal(
        not_reacted("chat.not.found", carol, chat, message),
        not_reacted("chat.not.found", carol, -NOBODY, message),
        "a chat of others, and none",
    )
    one, several = {"messageId": message}, {"messageIds": [message]}
    requests = {
        "MSG_CANCEL_REACTION": one,
        "MSG_GET_REACTIONS": several,
        "MSG_GET_DETAILED_REACTIONS": one,
        "CHAT_REACTIONS_SETTINGS_SET": {"isActive": False},
    }
    for opcode, value in requests.items():
        carol.refused("chat.not.found", opcode, {"chatId": chat, **value})
    equal(shown(newest(alice, chat)), ({}, None), "reactions")


@case("REA-09")
def test_while_away(login: LogIn, group: Group, cid: Cid) -> None:
    """After a reaction, and after its withdrawal, a delta has the chat with the current reactions."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, message = said(group, cid, alice, bob, carol)
    for change, expected in ((lambda: react(bob, chat, message, DRUM), {DRUM: 1}), (None, {})):
        known = marks(settled(carol))
        if change is not None:
            change()
        else:
            cancel(bob, chat, message)
        changed = only(login_again(carol, **known)["chats"], "chat that changed")
        equal(changed["id"], chat, "the chat")
        equal(shown(changed["lastMessage"]), (expected, None), "reactions of its last message")


@case("REA-18")
def test_reaction_after_a_block(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """In a dialog, neither user can react after one has blocked the other; unblocking allows it again."""
    alice, nina = login("alice"), login(newcomer(), interactive=False)
    chat = dialog(alice, nina)
    message = say(alice, chat, cid())["id"]
    alice.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "BLOCK"})
    forget(alice, nina)
    not_reacted("chat.not.found", nina, chat, message)
    not_reacted("not.allowed", alice, chat, message)
    for device in (alice, nina):
        device.fence()
        equal(device.pushes(CHANGED, YOURS), [], "pushes about reactions")
    alice.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "UNBLOCK"})
    equal(counts(react(nina, chat, message, THUMB)), {THUMB: 1}, "after the block")


@case("REA-10")
def test_taken_back(login: LogIn, group: Group, cid: Cid) -> None:
    """A reaction taken back is gone for everybody."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat, message = said(group, cid, alice, bob)
    react(alice, chat, message, THUMB)
    react(bob, chat, message, THUMB)
    forget(alice, bob, laptop)
    info = cancel(bob, chat, message)
    equal((counts(info), info.get("yourReaction")), ({THUMB: 1}, None), "the reply")
    equal(told(alice, chat, message), {THUMB: 1}, "what others are told")
    laptop.fence()
    equal(only(laptop.pushes(YOURS), YOURS)["reactionInfo"].get("yourReaction"), None, "own device")
    equal(shown(newest(bob, chat)), ({THUMB: 1}, None), "what is left")


@case("REA-11")
def test_nothing_to_take_back(login: LogIn, group: Group, cid: Cid) -> None:
    """Taking back a reaction that does not exist returns the current reactions and causes no push."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    react(alice, chat, message, THUMB)
    forget(alice, bob)
    equal(counts(cancel(bob, chat, message)), {THUMB: 1}, "the reply")
    alice.silence_by_fence()
    bob.refused("not.found", "MSG_CANCEL_REACTION", {"chatId": chat, "messageId": NOBODY})


@case("REA-12")
def test_reactions_by_id(login: LogIn, group: Group, cid: Cid) -> None:
    """MSG_GET_REACTIONS returns the reactions to exactly those messages that the caller sees."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    plain, hidden, gone = (say(alice, chat, cid())["id"] for _ in range(3))
    for each in (message, hidden, gone):
        react(alice, chat, each, FIRE)
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [hidden], "forMe": True})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [gone]})
    several = {"chatId": chat, "messageIds": [gone, hidden, plain, message, NOBODY]}
    found = bob.call("MSG_GET_REACTIONS", several)["messagesReactions"]
    equal(set(found), {str(message), str(plain)}, "messages")
    equal(counts(found[str(message)]), {FIRE: 1}, "counters")
    equal(counts(found[str(plain)]), {}, "counters of one without")


@case("REA-13")
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_who_reacted(login: LogIn, group: Group, cid: Cid, count: int) -> None:
    """The pages together list each user who reacted exactly once."""
    people = [login(each) for each in ("alice", "bob", "carol")]
    chat, message = said(group, cid, *people)
    for person, emoji in zip(people, (THUMB, DRUM, THUMB), strict=True):
        react(person, chat, message, emoji)
    found: list[tuple[int, str]] = []
    value = {"chatId": chat, "messageId": message, "count": count}
    page = people[1].call("MSG_GET_DETAILED_REACTIONS", value)
    while True:
        check(len(page["reactions"]) <= count, f"at most {count}", len(page["reactions"]))
        found += [(each["userId"], each["reaction"]) for each in page["reactions"]]
        info = page["reactionInfo"]
        equal((counts(info), info.get("yourReaction")), ({THUMB: 2, DRUM: 1}, DRUM), "counters")
        if page.get("marker") is None or len(found) > len(people):
            break
        page = people[1].call("MSG_GET_DETAILED_REACTIONS", {**value, "marker": page["marker"]})
    wanted = [(person.user_id, emoji) for person, emoji in zip(people, (THUMB, DRUM, THUMB), strict=True)]
    equal(sorted(found), sorted(wanted), "who reacted")
    people[1].refused("not.found", "MSG_GET_DETAILED_REACTIONS", {"chatId": chat, "messageId": NOBODY})


def allow(device: Device, chat: int, **fields: Any) -> dict[str, Any]:
    """Sends CHAT_REACTIONS_SETTINGS_SET; returns the settings in the reply."""
    value = {"chatId": chat, **fields}
    return device.call("CHAT_REACTIONS_SETTINGS_SET", value)["chatReactionsSettings"]


@case("REA-14")
@pytest.mark.parametrize("key", ["isActive", "value"])
def test_switched_off(login: LogIn, group: Group, cid: Cid, key: str) -> None:
    """If a chat allows no reactions, new ones are refused; existing ones stay and can be taken back."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    react(bob, chat, message, DRUM)
    equal(allow(alice, chat, **{key: False})["isActive"], False, "isActive")
    not_reacted("error.reactions.not.allowed", alice, chat, message)
    not_reacted("error.reactions.not.allowed", bob, chat, message)
    equal(shown(newest(alice, chat)), ({DRUM: 1}, None), "what is there")
    equal(counts(cancel(bob, chat, message)), {}, "after it is taken back")


@case("REA-15")
def test_only_some(login: LogIn, group: Group, cid: Cid) -> None:
    """The settings of a chat can list the allowed reactions, or the forbidden ones."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    allow(alice, chat, isActive=True, reactionIds=[THUMB, DRUM], included=True)
    react(bob, chat, message, DRUM)
    not_reacted("error.reactions.not.allowed", bob, chat, message, FIRE)
    allow(alice, chat, isActive=True, reactionIds=[THUMB, DRUM], included=False)
    not_reacted("error.reactions.not.allowed", bob, chat, message, THUMB)
    react(bob, chat, message, FIRE)


@case("REA-16")
def test_who_allows(login: LogIn, group: Group, cid: Cid) -> None:
    """A member without the right cannot change the settings; the request causes no push."""
    alice, bob = login("alice"), login("bob")
    chat, message = said(group, cid, alice, bob)
    bob.refused("not.allowed", "CHAT_REACTIONS_SETTINGS_SET", {"chatId": chat, "isActive": False})
    alice.silence_by_fence()
    react(bob, chat, message, THUMB)


@case("REA-17")
def test_settings_of_chats(login: LogIn, group: Group, cid: Cid) -> None:
    """The reply has the settings of exactly those requested chats that the caller is in."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, _ = said(group, cid, alice, bob)
    plain, _ = said(group, cid, alice, bob)
    others, _ = said(group, cid, carol)
    allow(alice, chat, isActive=True, count=2, reactionIds=[FIRE], included=False)
    value = {"chatIds": [plain, others, chat, -NOBODY]}
    reply = bob.call("CHAT_REACTIONS_SETTINGS_GET_BY_CHAT_ID", value)["chatReactionsSettings"]
    equal([each["chatId"] for each in reply], [plain, chat], "chats")
    equal((reply[0]["isActive"], reply[0]["reactionIds"]), (True, []), "those nobody has set")
    set_ones = (reply[1]["isActive"], reply[1]["count"], reply[1]["reactionIds"], reply[1]["included"])
    equal(set_ones, (True, 2, [FIRE], False), "those that were set")
    check(history(bob, plain, backward=1), "a page", "none")
