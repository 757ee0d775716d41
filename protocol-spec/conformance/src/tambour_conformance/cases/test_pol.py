"""POL: polls, votes, and who sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer, message
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    NOBODY,
    SAVED,
    chat_of,
    dialog,
    login_again,
    marks,
    newest,
    only,
    same_refusal,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal
from tambour_conformance.wire import Frame

ANONYMOUS, MULTIPLE, REVOTE, CLOSED, QUIZ, FORWARD = 1, 2, 4, 8, 16, 32
TITLE = "Who drums?"


def poll(
    settings: int = 0,
    answers: Sequence[str] = ("Alice", "Bob", "Carol"),
    right: Sequence[int] = (),
    **fields: Any,
) -> dict[str, Any]:
    """A POLL as a client sends it; `right` has the numbers, from 1, of the right answers of a quiz."""
    listed = [
        {"text": text, "options": 1} if number in right else {"text": text}
        for number, text in enumerate(answers, start=1)
    ]
    return {"_type": "POLL", "title": TITLE, "answers": listed, "settings": settings, **fields}


def ask(device: Device, chat: int, number: int, attach: dict[str, Any] | None = None) -> dict[str, Any]:
    """Sends a poll; returns the fields by which requests name it."""
    stored = say(device, chat, number, "", attaches=[attach or poll()])
    return {"chatId": chat, "messageId": stored["id"], "pollId": of(stored)["pollId"]}


def of(stored: dict[str, Any]) -> dict[str, Any]:
    """The poll of a message."""
    return only([each for each in stored["attaches"] if each["_type"] == "POLL"], "poll")


def vote(device: Device, name: dict[str, Any], *answers: int) -> dict[str, Any]:
    """Sends SEND_VOTE; returns the state in the reply."""
    return device.call("SEND_VOTE", {**name, "answersIds": list(answers)})["state"]


def not_counted(code: str, device: Device, name: dict[str, Any], *answers: int) -> Frame:
    return device.refused(code, "SEND_VOTE", {**name, "answersIds": list(answers)})


def edit(device: Device, name: dict[str, Any], attach: dict[str, Any]) -> dict[str, Any]:
    """Replaces the attachments by MSG_EDIT; returns the poll in the reply."""
    return of(device.call("MSG_EDIT", edited(name, attach))["message"])


def edited(name: dict[str, Any], attach: dict[str, Any]) -> dict[str, Any]:
    return {"chatId": name["chatId"], "messageId": name["messageId"], "elements": [], "attachments": [attach]}


def counts(state: dict[str, Any]) -> list[int]:
    """The number of voters, followed by the number of votes for each answer."""
    return [state["total"], *(each["voteCount"] for each in state["result"])]


def who(state: dict[str, Any]) -> list[list[int]]:
    """The ids of the voters shown for each answer; the last item has the voters of the preview."""
    votes = [[each["userId"] for each in result["votes"]] for result in state["result"]]
    return [*votes, state["voterPreviewIds"]]


def right(state: dict[str, Any]) -> list[int]:
    """The ids of the answers that are marked as right."""
    return [each["answerId"] for each in state["result"] if each["options"] & 1]


def views(device: Device, chat: int) -> dict[str, dict[str, Any]]:
    """The newest message of a chat as each request returns it, by the request's name."""
    chats = login_again(device, chatsSync=-1)["chats"]
    in_login = only([each for each in chats if each["id"] == chat], "chat")
    page = newest(device, chat)
    by_id = device.call("MSG_GET", {"chatId": chat, "messageIds": [page["id"]]})["messages"]
    return {
        "page": page,
        "CHAT_INFO": chat_of(device, chat)["lastMessage"],
        "MSG_GET": only(by_id, "message"),
        "LOGIN": in_login["lastMessage"],
    }


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes("NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_MSG_DELETE")


def told(device: Device) -> dict[str, Any]:
    """The message of the only NOTIF_MESSAGE received."""
    device.fence()
    return only(device.pushes("NOTIF_MESSAGE"), f"NOTIF_MESSAGE for {device.name}")["message"]


@pytest.fixture
def asked(login: LogIn, group: Group, cid: Cid) -> Callable[..., tuple[list[Device], dict[str, Any]]]:
    """Returns a function that makes a group with a poll by alice, and reads the pushes about it."""

    def begin(attach: dict[str, Any] | None = None) -> tuple[list[Device], dict[str, Any]]:
        people = [login(name) for name in ("alice", "bob", "carol")]
        name = ask(people[0], group(*people), cid(), attach)
        forget(*people)
        return people, name

    return begin


Asked = Callable[..., tuple[list[Device], dict[str, Any]]]


@case("POL-01")
def test_poll(login: LogIn, group: Group, cid: Cid) -> None:
    """A poll has its id, numbered answers and no votes, wherever its message is sent."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    forget(alice, bob)
    sent = of(say(alice, chat, cid(), "", attaches=[poll(REVOTE)]))
    equal((sent["title"], sent["settings"]), (TITLE, REVOTE), "title and settings")
    texts = [(1, "Alice"), (2, "Bob"), (3, "Carol")]
    equal([(each["answerId"], each["text"]) for each in sent["answers"]], texts, "answers")
    equal((counts(sent["state"]), who(sent["state"])), ([0] * 4, [[]] * 4), "votes")
    check(sent["pollId"] > 0 and "version" in sent, "pollId and version", sent)
    equal(of(told(bob)), sent, "the poll of the push")
    for where, view in views(bob, chat).items():
        equal(of(view), sent, f"the poll in {where}")


@case("POL-02")
@pytest.mark.parametrize(
    ("code", "attaches"),
    [
        ("proto.payload", [{key: value for key, value in poll().items() if key != "title"}]),
        ("proto.payload", [poll(title="")]),
        ("proto.payload", [poll(answers=("one",))]),
        ("proto.payload", [poll(answers=("one", ""))]),
        ("proto.payload", [{"_type": "POLL", "title": TITLE}]),
        ("error.message.invalid", [poll(), poll()]),
        ("error.message.invalid", [poll(QUIZ | MULTIPLE)]),
        ("error.message.invalid", [poll(QUIZ | REVOTE)]),
        ("error.message.invalid", [poll(QUIZ, right=(1, 2))]),
    ],
    ids=["no title", "empty title", "one", "empty", "none", "two polls", "several", "revote", "two right"],
)
def test_no_poll(login: LogIn, group: Group, cid: Cid, code: str, attaches: list[dict[str, Any]]) -> None:
    """An invalid poll is refused and not stored."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    forget(alice, bob)
    before = newest(alice, chat)["id"]
    alice.refused(code, "MSG_SEND", {"chatId": chat, "message": message(cid(), "?", attaches=attaches)})
    bob.silence_by_fence()
    equal(newest(alice, chat)["id"], before, "the newest message")


@case("POL-03")
def test_ask_too_much(login: LogIn, group: Group, cid: Cid, limits: Limits) -> None:
    """Answers up to the limits of number and length are accepted; one more or a longer one is refused."""
    alice = login("alice")
    chat = group(alice)
    most, longest = limits["maxPollAnswers"], limits["maxPollAnswerBytes"]
    ask(alice, chat, cid(), poll(answers=[f"{number}" for number in range(most)]))
    ask(alice, chat, cid(), poll(answers=["a", "b" * longest]))
    for answers in ([f"{number}" for number in range(most + 1)], ["a", "b" * (longest + 1)]):
        value = {"chatId": chat, "message": message(cid(), "?", attaches=[poll(answers=answers)])}
        alice.refused("proto.payload", "MSG_SEND", value)


@case("POL-04")
def test_vote(asked: Asked, cid: Cid) -> None:
    """A vote is counted and shown to everybody, everywhere, also in answers to the poll."""
    (alice, bob, carol), name = asked()
    state = vote(bob, name, 2)
    equal((counts(state), who(state)), ([1, 0, 1, 0], [[], [bob.user_id], [], [bob.user_id]]), "the reply")
    state = vote(carol, name, 1)
    equal([each["rate"] for each in state["result"]], [50, 50, 0], "the rates")
    both = [[carol.user_id], [bob.user_id], [], sorted([bob.user_id, carol.user_id])]
    for device in (alice, bob, carol):
        for where, view in views(device, name["chatId"]).items():
            found = of(view)["state"]
            equal((counts(found), who(found)), ([2, 1, 1, 0], both), f"the poll in {where} for {device.name}")
    answer = say(alice, name["chatId"], cid(), "so", link={"type": "REPLY", "messageId": name["messageId"]})
    equal(counts(of(answer["link"]["message"])["state"]), [2, 1, 1, 0], "the poll that is answered")


@case("POL-05")
def test_others_are_told(asked: Asked, login: LogIn) -> None:
    """After a vote, all other sessions get the message with the status EDITED; pages show no status."""
    (alice, bob, carol), name = asked()
    laptop = login("bob", "laptop")
    forget(laptop)
    state = vote(bob, name, 2)
    for device in (alice, carol, laptop):
        pushed = told(device)
        equal((pushed["id"], pushed["status"]), (name["messageId"], "EDITED"), "message and status")
        equal(of(pushed)["state"], state, "the state in the push")
        page = newest(device, name["chatId"])
        equal(page.get("status"), None, "status of the message in a page")
        equal(page["updateTime"], pushed["updateTime"], "updateTime in a page and in the push")
    bob.silence_by_fence()


@case("POL-06")
def test_same_again(asked: Asked) -> None:
    """A repeated vote returns the same state and causes no push."""
    (alice, bob, _), name = asked(poll(MULTIPLE))
    first = vote(bob, name, 1, 3)
    forget(alice)
    for answers in ((1, 3), (3, 1), (3, 3, 1)):
        equal(vote(bob, name, *answers), first, "the state")
    alice.silence_by_fence()


@case("POL-07")
@pytest.mark.parametrize("bits", [0, REVOTE], ids=["for good", "to be changed"])
def test_another_vote(asked: Asked, bits: int) -> None:
    """A second vote replaces the first if the poll allows this; otherwise it is refused."""
    (alice, bob, _), name = asked(poll(bits))
    vote(bob, name, 2)
    forget(alice)
    if bits:
        equal(counts(vote(bob, name, 1)), [1, 1, 0, 0], "after the second")
        equal(counts(of(told(alice))["state"]), [1, 1, 0, 0], "what others are told")
    else:
        not_counted("not.allowed", bob, name, 1)
        alice.silence_by_fence()
        equal(counts(of(newest(bob, name["chatId"]))["state"]), [1, 0, 1, 0], "what is there")


@case("MSG-32")
def test_votes_at_once(asked: Asked) -> None:
    """Several votes in one write each give the message a later `updateTime`."""
    (alice, bob, _), name = asked(poll(REVOTE))
    votes = [{**name, "answersIds": [answer]} for answer in (1, 2, 3, 1, 2, 3)]
    packets = [bob.packet("SEND_VOTE", each) for each in votes]
    bob.coalesce(*(packet for _, packet in packets))
    states = [bob.reply(seq)["state"] for seq, _ in packets]
    alice.fence()
    pushed = [push["message"] for push in alice.pushes("NOTIF_MESSAGE")]
    equal([of(each)["state"] for each in pushed], states, "the states that others are told, in order")
    times = [each["updateTime"] for each in pushed]
    equal(times, sorted(set(times)), "the times, each later than the one before")


@case("POL-08")
@pytest.mark.parametrize("bits", [0, REVOTE], ids=["for good", "to be changed"])
def test_taken_back(asked: Asked, bits: int) -> None:
    """A user can take a vote back if the poll allows this; without a vote nothing happens."""
    (alice, bob, _), name = asked(poll(bits))
    equal(counts(vote(bob, name)), [0] * 4, "before a vote")
    alice.silence_by_fence()
    vote(bob, name, 2)
    forget(alice)
    if bits:
        equal(counts(vote(bob, name)), [0] * 4, "the reply")
        equal(who(of(told(alice))["state"]), [[]] * 4, "what others are told")
    else:
        not_counted("not.allowed", bob, name)
        alice.silence_by_fence()


@case("POL-09")
def test_several(asked: Asked) -> None:
    """Each of several chosen answers counts, and the voter counts once."""
    (_, bob, carol), name = asked(poll(MULTIPLE))
    vote(bob, name, 1, 3)
    state = vote(carol, name, 3)
    equal(counts(state), [2, 1, 0, 2], "counts")
    equal([each["rate"] for each in state["result"]], [50, 0, 100], "rates")


@case("POL-09")
def test_several_where_one_counts(asked: Asked) -> None:
    """Several answers are refused if the poll allows only one."""
    (alice, bob, _), name = asked()
    not_counted("not.allowed", bob, name, 1, 2)
    alice.silence_by_fence()
    equal(counts(vote(bob, name, 1)), [1, 1, 0, 0], "one answer")


@case("POL-10")
def test_anonymous(asked: Asked, login: LogIn) -> None:
    """In an anonymous poll everybody sees the counts, and each user their own vote."""
    (alice, bob, carol), name = asked(poll(ANONYMOUS | REVOTE))
    laptop = login("bob", "laptop")
    forget(laptop)
    state = vote(bob, name, 2)
    own, none = [[], [bob.user_id], [], []], [[]] * 4
    equal((counts(state), who(state)), ([1, 0, 1, 0], own), "the reply")
    for device, seen in ((alice, none), (carol, none), (laptop, own)):
        found = of(told(device))["state"]
        equal((counts(found), who(found)), ([1, 0, 1, 0], seen), f"the push for {device.name}")
        for where, view in views(device, name["chatId"]).items():
            found = of(view)["state"]
            equal((counts(found), who(found)), ([1, 0, 1, 0], seen), f"{where} for {device.name}")
        asked_again = {"chatId": name["chatId"], "polls": [named(name)]}
        found = only(device.call("GET_POLL_UPDATES", asked_again)["polls"], "poll")["state"]
        equal(who(found), seen, f"GET_POLL_UPDATES for {device.name}")
        device.refused("not.allowed", "VOTERS_LIST_BY_ANSWER", {**name, "answerId": 2})


def named(name: dict[str, Any]) -> dict[str, Any]:
    """The fields by which GET_POLL_UPDATES names a poll."""
    return {"messageId": name["messageId"], "pollId": name["pollId"]}


@case("POL-11")
def test_closed(asked: Asked) -> None:
    """Nobody can vote in a closed poll."""
    (alice, bob, carol), name = asked(poll(REVOTE))
    vote(bob, name, 2)
    edit(alice, name, poll(REVOTE | CLOSED))
    forget(alice, bob, carol)
    not_counted("not.allowed", carol, name, 1)
    not_counted("not.allowed", bob, name, 1)
    not_counted("not.allowed", bob, name)
    alice.silence_by_fence()
    equal(counts(of(newest(carol, name["chatId"]))["state"]), [1, 0, 1, 0], "what is there")


@case("POL-12")
def test_quiz(asked: Asked) -> None:
    """Only users who have voted see the right answer of a quiz; once it is closed, everybody sees it."""
    (alice, bob, carol), name = asked(poll(QUIZ, right=(3,)))
    equal(right(vote(bob, name, 1)), [3], "the reply to a vote")
    for device in (alice, carol):
        equal(right(of(told(device))["state"]), [], "the push of the vote")
    for device, seen in ((alice, []), (bob, [3]), (carol, [])):
        for where, view in views(device, name["chatId"]).items():
            found = of(view)
            equal(right(found["state"]), seen, f"{where} for {device.name}")
            check(all("options" not in each for each in found["answers"]), "answers that tell nothing", found)
    edit(alice, name, poll(QUIZ | CLOSED))
    equal(right(of(told(carol))["state"]), [3], "the push of its end")
    for device in (alice, bob, carol):
        equal(right(of(newest(device, name["chatId"]))["state"]), [3], f"in the end for {device.name}")


@case("POL-13")
def test_not_there(asked: Asked, cid: Cid) -> None:
    """Polls and answers that the caller does not see are refused alike."""
    (alice, bob, _), name = asked()
    chat = name["chatId"]
    plain = say(alice, chat, cid())["id"]
    hidden, gone = ask(alice, chat, cid()), ask(alice, chat, cid())
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [hidden["messageId"]], "forMe": True})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [gone["messageId"]]})
    unknown = not_counted("not.found", bob, {**name, "messageId": NOBODY}, 1)
    others = [hidden, gone, {**name, "messageId": plain}, {**name, "pollId": name["pollId"] + 1}]
    for each in others:
        same_refusal(not_counted("not.found", bob, each, 1), unknown, "no poll")
        bob.refused("not.found", "VOTERS_LIST_BY_ANSWER", {**each, "answerId": 1})
    for answer in (0, 4, -1):
        same_refusal(not_counted("not.found", bob, name, answer), unknown, "no answer")


@case("POL-14")
def test_stranger(login: LogIn, group: Group, cid: Cid) -> None:
    """Requests about polls in another user's chat are refused like requests for an unknown chat."""
    alice, carol = login("alice"), login("carol")
    name = ask(alice, group(alice), cid())
    nowhere = {**name, "chatId": -NOBODY}
    same_refusal(
        not_counted("chat.not.found", carol, name, 1),
        not_counted("chat.not.found", carol, nowhere, 1),
        "a chat of others, and none",
    )
    for each in (name, nowhere):
        carol.refused("chat.not.found", "VOTERS_LIST_BY_ANSWER", {**each, "answerId": 1})
        polls = {"chatId": each["chatId"], "polls": [named(each)]}
        carol.refused("chat.not.found", "GET_POLL_UPDATES", polls)
    equal(counts(of(newest(alice, name["chatId"]))["state"]), [0] * 4, "votes")


@case("POL-15")
def test_vote_while_away(asked: Asked) -> None:
    """After a vote, and after its withdrawal, a delta has the chat with the current poll."""
    (_, bob, carol), name = asked(poll(REVOTE))
    for answers, expected in (((2,), [1, 0, 1, 0]), ((), [0] * 4)):
        known = marks(settled(carol))
        vote(bob, name, *answers)
        changed = only(login_again(carol, **known)["chats"], "chat that changed")
        equal(changed["id"], name["chatId"], "the chat")
        equal(counts(of(changed["lastMessage"])["state"]), expected, "votes in its last message")


@case("POL-16")
def test_closing(asked: Asked) -> None:
    """An edit can close a poll, which keeps its votes; an edit of the text does not change the poll."""
    (alice, bob, carol), name = asked(poll(REVOTE))
    vote(bob, name, 2)
    before = of(newest(alice, name["chatId"]))
    text = {"text": "vote!", "elements": [], "attachments": []}
    text |= {"chatId": name["chatId"], "messageId": name["messageId"]}
    equal(of(alice.call("MSG_EDIT", text)["message"]), before, "the poll after an edit of the text")
    carol.refused("not.allowed", "MSG_EDIT", edited(name, poll(REVOTE | CLOSED)))
    forget(alice, bob, carol)
    after = edit(alice, name, poll(REVOTE | CLOSED | FORWARD))
    wanted = (name["pollId"], REVOTE | CLOSED | FORWARD)
    equal((after["pollId"], after["settings"]), wanted, "id and settings")
    equal(after["state"], before["state"], "the votes")
    check(after["version"] > before["version"], "a version that rises", (before["version"], after["version"]))
    equal(of(told(carol)), after, "what others are told")


@case("POL-17")
def test_opening_again(asked: Asked) -> None:
    """An edit cannot open a closed poll again."""
    (alice, bob, _), name = asked()
    edit(alice, name, poll(CLOSED))
    forget(bob)
    alice.refused("error.message.invalid", "MSG_EDIT", edited(name, poll()))
    bob.silence_by_fence()
    equal(of(newest(bob, name["chatId"]))["settings"], CLOSED, "settings")


@case("POL-18")
@pytest.mark.parametrize(
    "attach",
    [poll(title="Who sings?"), poll(answers=("Alice", "Bob")), poll(ANONYMOUS), poll(REVOTE)],
    ids=["title", "answers", "anonymous", "revote"],
)
def test_another_poll(asked: Asked, attach: dict[str, Any]) -> None:
    """Another question, other answers or other rules make a new poll."""
    (alice, bob, carol), name = asked()
    vote(bob, name, 2)
    after = edit(alice, name, attach)
    check(after["pollId"] != name["pollId"], "another id", after["pollId"])
    equal(after["state"]["total"], 0, "votes")
    not_counted("not.found", carol, name, 1)
    equal(vote(bob, {**name, "pollId": after["pollId"]}, 1)["total"], 1, "votes in the new one")


@case("POL-19")
def test_forward_a_poll(asked: Asked, cid: Cid) -> None:
    """A forwarded poll is a closed copy without the names of the voters."""
    (_, bob, carol), name = asked(poll(FORWARD))
    vote(bob, name, 2)
    link = {"type": "FORWARD", "messageId": name["messageId"], "chatId": name["chatId"]}
    sent = say(carol, SAVED, cid(), "", link=link)
    copy = of(sent["link"]["message"])
    equal(copy["settings"], FORWARD | CLOSED, "settings of the copy")
    equal((counts(copy["state"]), who(copy["state"])), ([1, 0, 1, 0], [[]] * 4), "votes of the copy")
    not_counted("not.found", carol, {**name, "chatId": SAVED, "messageId": sent["id"]}, 1)
    vote(carol, name, 1)


@case("POL-19")
def test_no_forward(asked: Asked, cid: Cid) -> None:
    """A poll without the bit for forwarding cannot be forwarded."""
    (_, _, carol), name = asked(poll(REVOTE))
    link = {"type": "FORWARD", "messageId": name["messageId"], "chatId": name["chatId"]}
    value = {"chatId": SAVED, "message": message(cid(), "look", link=link)}
    carol.refused("not.allowed", "MSG_SEND", value)


@case("POL-20")
def test_after_a_block(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """In a dialog, neither user can vote after one has blocked the other."""
    alice, nina = login("alice"), login(newcomer(), interactive=False)
    name = ask(alice, dialog(alice, nina), cid())
    alice.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "BLOCK"})
    not_counted("chat.not.found", nina, name, 1)
    not_counted("not.allowed", alice, name, 1)
    alice.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "UNBLOCK"})
    equal(counts(vote(nina, name, 1)), [1, 1, 0, 0], "after the block")


@case("POL-21")
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_voters(asked: Asked, count: int) -> None:
    """The pages of voters together list every voter once."""
    people, name = asked()
    for person in people:
        vote(person, name, 2)
    found: list[int] = []
    value = {**name, "answerId": 2, "count": count}
    page = people[1].call("VOTERS_LIST_BY_ANSWER", value)
    while True:
        check(len(page["votes"]) <= count, f"at most {count}", len(page["votes"]))
        found += [each["userId"] for each in page["votes"]]
        if page.get("marker") is None or len(found) > len(people):
            break
        page = people[1].call("VOTERS_LIST_BY_ANSWER", {**value, "marker": page["marker"]})
    equal(found, sorted(person.user_id for person in people), "voters")
    equal(people[1].call("VOTERS_LIST_BY_ANSWER", {**value, "answerId": 1})["votes"], [], "voters of another")


@case("POL-22")
def test_updates(asked: Asked, cid: Cid) -> None:
    """GET_POLL_UPDATES returns the current polls that the caller sees, and omits the others."""
    (alice, bob, _), name = asked()
    chat = name["chatId"]
    second, hidden, gone, replaced = (ask(alice, chat, cid()) for _ in range(4))
    vote(bob, second, 1)
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [hidden["messageId"]], "forMe": True})
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [gone["messageId"]]})
    edit(alice, replaced, poll(title="Who sings?"))
    references = [named(each) for each in (gone, second, hidden, replaced, name, second)]
    polls = bob.call("GET_POLL_UPDATES", {"chatId": chat, "polls": references})["polls"]
    equal([each["pollId"] for each in polls], [second["pollId"], name["pollId"]], "polls")
    equal([counts(each["state"]) for each in polls], [[1, 1, 0, 0], [0] * 4], "their votes")
    for each in polls:
        equal((each["_type"], each["title"], len(each["answers"])), ("POLL", TITLE, 3), "the whole poll")
