"""GRP: members, rights and properties of groups."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    LESS,
    NOBODY,
    begin,
    chat_of,
    dialog,
    history,
    ids,
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

#: A case that must fill a group with new users is skipped if the group needs more than this.
MOST_MEMBERS = 40
#: Rights of administrators.
MEMBERS, ADMINS = 2, 4
EVERYTHING = 2047


def change(device: Device, chat: int, operation: str, *users: int, **fields: Any) -> dict[str, Any]:
    """Sends CHAT_MEMBERS_UPDATE; returns the chat in the reply."""
    value = {"chatId": chat, "userIds": list(users), "operation": operation, **fields}
    return device.call("CHAT_MEMBERS_UPDATE", value)["chat"]


def not_changed(code: str, device: Device, chat: int, operation: str, *users: int, **fields: Any) -> Frame:
    """Sends a CHAT_MEMBERS_UPDATE that the server must refuse; returns the refusal."""
    value = {"chatId": chat, "userIds": list(users), "operation": operation, **fields}
    return device.refused(code, "CHAT_MEMBERS_UPDATE", value)


def update(device: Device, chat: int, **fields: Any) -> dict[str, Any]:
    """Sends CHAT_UPDATE; returns the chat in the reply."""
    return device.call("CHAT_UPDATE", {"chatId": chat, **fields})["chat"]


def event_of(message: dict[str, Any]) -> dict[str, Any]:
    """The CONTROL attachment of a message."""
    attach = only(message["attaches"], "attachment")
    equal(attach["_type"], "CONTROL", "kind of attachment")
    return attach


def told(device: Device, chat: int, event: str) -> dict[str, Any]:
    """Expects two pushes of a change: one with the chat, one with the event. Returns the event's message."""
    device.fence()
    pushed = only(device.pushes("NOTIF_CHAT"), f"NOTIF_CHAT for {device.name}")["chat"]
    equal((pushed["id"], pushed["status"]), (chat, "ACTIVE"), "the chat pushed")
    push = only(device.pushes("NOTIF_MESSAGE"), f"NOTIF_MESSAGE for {device.name}")
    equal(push["chatId"], chat, "chat of the event")
    equal(event_of(push["message"])["event"], event, "event")
    return push["message"]


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes("NOTIF_CHAT", "NOTIF_MESSAGE", "NOTIF_MSG_DELETE")


def members(device: Device, chat: int, **fields: Any) -> list[int]:
    """The ids of the users on the first page of CHAT_MEMBERS."""
    reply = device.call("CHAT_MEMBERS", {"chatId": chat, **fields})
    return [each["contact"]["id"] for each in reply["members"]]


# Adding.


@case("GRP-01")
def test_added(login: LogIn, group: Group, cid: Cid) -> None:
    """All members get the event of an addition; it is the first unread message of the added users."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    say(bob, chat, cid())
    forget(alice)
    reply = change(alice, chat, "add", carol.user_id)
    equal((reply["id"], reply["participantsCount"]), (chat, 3), "the chat of the reply")
    for device in (bob, carol):
        event = event_of(told(device, chat, "add"))
        equal(event["userIds"], [carol.user_id], "who was added")
        equal(event["userId"], alice.user_id, "who did it")
    alice.silence_by_fence()
    equal(chat_of(carol, chat)["newMessages"], 1, "unread messages of who was added")
    equal(set(members(carol, chat)), {alice.user_id, bob.user_id, carol.user_id}, "members")
    number = cid()
    say(carol, chat, number)
    equal(bob.push("NOTIF_MESSAGE")["message"]["cid"], number, "what who was added says")


@case("GRP-02")
def test_without_history(login: LogIn, group: Group, cid: Cid) -> None:
    """To a user added without history, no request returns a message older than the event of the addition."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    old = [say(alice, chat, cid())["id"] for _ in range(3)]
    update(alice, chat, pinMessageId=old[0], notifyPin=False)
    change(alice, chat, "add", carol.user_id, showHistory=False)
    event = newest(carol, chat)
    equal(event_of(event)["event"], "add", "the event")
    equal(ids(history(carol, chat, backward=50)), [event["id"]], "history backward")
    equal(ids(history(carol, chat, forward=50, **{"from": 0})), [event["id"]], "history forward")
    equal(carol.call("MSG_GET", {"chatId": chat, "messageIds": old})["messages"], [], "MSG_GET")
    seen = chat_of(carol, chat)
    equal(seen["lastMessage"]["id"], event["id"], "last message")
    check("pinnedMessage" not in seen, "no pinned message", seen.get("pinnedMessage"))
    equal(seen["newMessages"], 1, "unread messages")
    mark = carol.call("CHAT_MARK", {"type": "SET_AS_UNREAD", "chatId": chat, "messageId": old[0]})
    equal(mark["unread"], 1, "unread messages after SET_AS_UNREAD of an old one")
    equal(len(history(alice, chat, backward=50)), 5, "messages for who made it")


@case("GRP-02")
@pytest.mark.parametrize("size", ["small", "large"])
def test_without_news_of_history(
    login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, limits: Limits, size: str
) -> None:
    """A change of an older message is not pushed to a user who was added without history."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    count = limits["fanOutMembers"] - 1 if size == "large" else 0
    if count > MOST_MEMBERS:
        skip(f"fanOutMembers is {count + 1}: {LESS}")
    chat = group(alice, bob, *(login(newcomer(), interactive=False) for _ in range(count)))
    said = say(alice, chat, cid())["id"]
    poll = {"_type": "POLL", "title": "When?", "answers": [{"text": "now"}, {"text": "later"}]}
    asked = say(alice, chat, cid(), "", attaches=[poll])
    change(alice, chat, "add", carol.user_id, showHistory=False)
    forget(bob, carol)
    alice.call("MSG_EDIT", {"chatId": chat, "messageId": said, "text": "better"})
    vote = {"chatId": chat, "messageId": asked["id"], "pollId": asked["attaches"][0]["pollId"]}
    alice.call("SEND_VOTE", {**vote, "answersIds": [1]})
    for message in (said, asked["id"]):
        equal(bob.push("NOTIF_MESSAGE")["message"]["id"], message, "the message that changed")
    reaction = {"reactionType": "EMOJI", "id": "👍"}
    alice.call("MSG_REACTION", {"chatId": chat, "messageId": said, "reaction": reaction})
    equal(bob.push("NOTIF_MSG_REACTIONS_CHANGED")["messageId"], said, "the message with a reaction")
    carol.silence_by_fence()


@case("GRP-02")
@pytest.mark.parametrize("size", ["small", "large"])
def test_answers_to_history(
    login: LogIn, newcomer: Newcomer, group: Group, cid: Cid, limits: Limits, size: str
) -> None:
    """A user added without history gets answers to older messages without the originals."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    count = limits["fanOutMembers"] - 1 if size == "large" else 0
    if count > MOST_MEMBERS:
        skip(f"fanOutMembers is {count + 1}: {LESS}")
    chat = group(alice, bob, *(login(newcomer(), interactive=False) for _ in range(count)))
    old = say(alice, chat, cid(), "before your time")
    change(alice, chat, "add", carol.user_id, showHistory=False)
    forget(bob, carol)
    link = {"type": "REPLY", "messageId": str(old["id"]), "chatId": chat}
    stored = say(alice, chat, cid(), "an answer", link=link)
    update(alice, chat, pinMessageId=stored["id"], notifyPin=False)
    equal(bob.push("NOTIF_MESSAGE")["message"]["link"]["message"]["id"], old["id"], "what others are told")
    found = carol.call("MSG_SEARCH", {"chatId": chat, "query": "answer"})["result"]
    got = carol.call("MSG_GET", {"chatId": chat, "messageIds": [stored["id"]]})["messages"]
    seen = chat_of(carol, chat)
    ways = {
        "NOTIF_MESSAGE": carol.push("NOTIF_MESSAGE")["message"],
        "history": history(carol, chat, backward=1)[0],
        "MSG_GET": only(got, "message"),
        "MSG_SEARCH": only(found, "message")["message"],
        "the last message": seen["lastMessage"],
        "the pinned message": seen["pinnedMessage"],
    }
    alice.call("MSG_EDIT", {"chatId": chat, "messageId": stored["id"], "text": "a better answer"})
    ways["the push of an edit"] = carol.push("NOTIF_MESSAGE")["message"]
    for way, message in ways.items():
        equal(message["id"], stored["id"], f"the answer by {way}")
        check("link" not in message, f"no link by {way}", message)


@case("GRP-03")
@pytest.mark.parametrize("fields", [{}, {"showHistory": True}], ids=["absent", "true"])
def test_with_history(login: LogIn, group: Group, cid: Cid, fields: dict[str, Any]) -> None:
    """An added user sees the whole history; earlier messages count as read."""
    alice, carol = login("alice"), login("carol")
    chat = group(alice)
    old = [say(alice, chat, cid())["id"] for _ in range(3)]
    change(alice, chat, "add", carol.user_id, **fields)
    equal(ids(history(carol, chat, backward=50))[1:4], old, "what was said before")
    equal(chat_of(carol, chat)["newMessages"], 1, "unread messages")


@case("GRP-04")
def test_added_twice(login: LogIn, group: Group) -> None:
    """Adding members again changes nothing."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    equal(change(alice, chat, "add", bob.user_id)["participantsCount"], 2, "members")
    bob.silence_by_fence()


@case("GRP-05")
def test_nobody_added(login: LogIn, group: Group) -> None:
    """One unknown user causes the whole request to be refused."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    not_changed("user.not.found", alice, chat, "add", carol.user_id, NOBODY)
    equal(chat_of(alice, chat)["participantsCount"], 2, "members")
    for device in (bob, carol):
        device.silence_by_fence()


@case("GRP-05")
def test_strangers_added(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """A user whom the caller has not met is refused like an unknown user."""
    alice, bob, nina = login("alice"), login("bob"), login(newcomer("nina"), stranger=True)
    chat = group(alice, bob)
    not_changed("user.not.found", alice, chat, "add", nina.user_id)
    nina.silence_by_fence()
    alice.call("CONTACT_INFO_BY_PHONE", {"phone": nina.account.phone})
    change(alice, chat, "add", nina.user_id)
    equal(chat_of(alice, chat)["participantsCount"], 3, "members")


@case("GRP-06")
def test_too_many(login: LogIn, newcomer: Newcomer, group: Group, limits: Limits) -> None:
    """A group accepts exactly maxGroupMembers members, and refuses one more."""
    most = limits["maxGroupMembers"]
    if most > MOST_MEMBERS:
        skip(f"maxGroupMembers is {most}, too many to register: {LESS}")
    alice = login("alice")
    chat = group(alice)
    others = [login(newcomer(), interactive=False).user_id for _ in range(most)]
    not_changed("proto.payload", alice, chat, "add", *others)
    equal(chat_of(alice, chat)["participantsCount"], 1, "members")
    equal(change(alice, chat, "add", *others[1:])["participantsCount"], most, "members in the end")
    not_changed("proto.payload", alice, chat, "add", others[0])


# Removing, leaving, coming back.


@case("GRP-07")
def test_removed(login: LogIn, group: Group, cid: Cid) -> None:
    """All connections of a removed user are told; then the user gets no pushes, and the chat is unknown."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    laptop = login("carol", "laptop")
    chat = group(alice, bob, carol)
    forget(laptop)
    equal(change(alice, chat, "remove", carol.user_id)["participantsCount"], 2, "members left")
    equal(event_of(told(bob, chat, "remove"))["userIds"], [carol.user_id], "who was removed")
    for device in (carol, laptop):
        device.fence()
        gone = only(device.pushes("NOTIF_CHAT"), "NOTIF_CHAT")["chat"]
        equal((gone["id"], gone["status"]), (chat, "REMOVED"), "the chat pushed to who was removed")
    say(bob, chat, cid())
    for device in (carol, laptop):
        device.silence_by_fence()
    asked = {"chatId": chat, "backward": 5}
    same_refusal(
        carol.refused("chat.not.found", "CHAT_HISTORY", asked),
        carol.refused("chat.not.found", "CHAT_HISTORY", {**asked, "chatId": -NOBODY}),
        "the chat one was removed from, and none",
    )
    seq = begin(carol, chat, cid())
    carol.error("chat.not.found", seq)
    equal(carol.call("CHAT_INFO", {"chatIds": [chat]})["chats"], [], "CHAT_INFO")


@case("GRP-08")
@pytest.mark.parametrize("how", ["removed", "left"])
def test_gone_while_away(login: LogIn, group: Group, how: str) -> None:
    """One delta reports the removed chat; later deltas, full logins and the chat list omit it."""
    alice, carol = login("alice"), login("carol")
    laptop = login("carol", "laptop")
    chat = group(alice, carol)
    known = marks(settled(laptop))
    if how == "removed":
        change(alice, chat, "remove", carol.user_id)
    else:
        carol.call("CHAT_LEAVE", {"chatId": chat})
    delta = login_again(laptop, **known)
    gone = only([each for each in delta["chats"] if each["id"] == chat], "tombstone")
    equal(gone["status"], "REMOVED", "status")
    check("lastMessage" not in gone, "no message in it", gone.get("lastMessage"))
    full = login_again(laptop, chatsSync=-1)
    check(chat not in [each["id"] for each in full["chats"]], "a full login without the chat", chat)
    page = laptop.call("CHATS_LIST", {})
    check(chat not in [each["id"] for each in page["chats"]], "CHATS_LIST without the chat", chat)
    later = login_again(laptop, **marks(settled(laptop)))
    check(chat not in [each["id"] for each in later["chats"]], "the next delta without the chat", chat)


@case("GRP-09")
def test_back_again(login: LogIn, group: Group, cid: Cid) -> None:
    """A user who is added again gets the chat back, and a delta has it."""
    alice, carol = login("alice"), login("carol")
    chat = group(alice, carol)
    known = marks(settled(carol))
    change(alice, chat, "remove", carol.user_id)
    said = say(alice, chat, cid())
    change(alice, chat, "add", carol.user_id, showHistory=False)
    delta = login_again(carol, **known)
    back = only([each for each in delta["chats"] if each["id"] == chat], "chat")
    equal((back["status"], back["newMessages"]), ("ACTIVE", 1), "status and unread messages")
    check(said["id"] not in ids(history(carol, chat, backward=50)), "nothing said meanwhile", said["id"])


@case("GRP-10")
def test_with_their_messages(login: LogIn, group: Group, cid: Cid) -> None:
    """With cleanMsgPeriod -1, the removed user's messages are deleted for everybody; the events stay."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    said = [say(carol, chat, cid())["id"] for _ in range(2)]
    kept = say(bob, chat, cid())["id"]
    forget(alice, bob)
    change(alice, chat, "remove", carol.user_id, cleanMsgPeriod=-1)
    bob.fence()
    equal(only(bob.pushes("NOTIF_MSG_DELETE"), "NOTIF_MSG_DELETE")["messageIds"], said, "deleted")
    for device in (alice, bob):
        left = ids(history(device, chat, backward=50))
        equal((len(left), kept in left), (3, True), "messages left")


# Rights.


@case("GRP-11")
def test_administrators(login: LogIn, group: Group) -> None:
    """Every member sees the administrators' rights; a user can grant only rights that they have."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    change(alice, chat, "add", bob.user_id, type="ADMIN", permissions=MEMBERS | ADMINS)
    for device in (bob, carol):
        device.fence()
        pushed = only(device.pushes("NOTIF_CHAT"), "NOTIF_CHAT")["chat"]
        for seen in (pushed, chat_of(device, chat)):
            rights = {key: each["permissions"] for key, each in seen["adminParticipants"].items()}
            equal(rights, {str(alice.user_id): EVERYTHING, str(bob.user_id): MEMBERS | ADMINS}, "rights")
            equal(set(seen["admins"]), {alice.user_id, bob.user_id}, "administrators")
    not_changed("not.allowed", bob, chat, "add", carol.user_id, type="ADMIN", permissions=8)
    change(bob, chat, "add", carol.user_id, type="ADMIN", permissions=MEMBERS)
    change(alice, chat, "remove", bob.user_id, type="ADMIN")
    equal(set(chat_of(alice, chat)["admins"]), {alice.user_id, carol.user_id}, "administrators")


@case("GRP-12")
def test_rights(login: LogIn, group: Group, newcomer: Newcomer) -> None:
    """Changes by a user without the right are refused; nobody can remove or demote the owner."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    nina = login(newcomer(), interactive=False)
    chat = group(alice, bob, carol)
    update(alice, chat, options={"ONLY_ADMIN_CAN_ADD_MEMBER": True})
    forget(bob, carol)
    not_changed("not.allowed", bob, chat, "add", nina.user_id)
    not_changed("not.allowed", bob, chat, "remove", carol.user_id)
    not_changed("not.allowed", bob, chat, "add", carol.user_id, type="ADMIN", permissions=MEMBERS)
    change(alice, chat, "add", bob.user_id, type="ADMIN", permissions=EVERYTHING)
    forget(bob, carol)
    not_changed("not.allowed", bob, chat, "remove", alice.user_id)
    not_changed("not.allowed", bob, chat, "remove", alice.user_id, type="ADMIN")
    not_changed("chat.not.found", nina, chat, "add", nina.user_id)
    equal(chat_of(alice, chat)["participantsCount"], 3, "members")
    for device in (alice, bob, carol, nina):
        device.silence_by_fence()


@case("GRP-13")
def test_left(login: LogIn, group: Group, cid: Cid) -> None:
    """Members are notified that a user left; that user loses access on every connection."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat = group(alice, bob)
    forget(laptop)
    bob.call("CHAT_LEAVE", {"chatId": chat})
    message = told(alice, chat, "leave")
    equal(message["sender"], bob.user_id, "who left")
    laptop.fence()
    gone = only(laptop.pushes("NOTIF_CHAT"), "NOTIF_CHAT")["chat"]
    equal((gone["id"], gone["status"]), (chat, "REMOVED"), "the chat pushed to who left")
    say(alice, chat, cid())
    for device in (bob, laptop):
        device.silence_by_fence()
        device.refused("chat.not.found", "CHAT_HISTORY", {"chatId": chat, "backward": 1})
    bob.refused("chat.not.found", "CHAT_LEAVE", {"chatId": chat})


@case("GRP-14")
def test_owner_stays(login: LogIn, group: Group, cid: Cid) -> None:
    """An owner cannot leave, and nobody can leave a dialog."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    alice.refused("not.allowed", "CHAT_LEAVE", {"chatId": chat})
    say(alice, dialog(alice, bob), cid())
    alice.refused("not.allowed", "CHAT_LEAVE", {"chatId": dialog(alice, bob)})
    equal(chat_of(bob, chat)["participantsCount"], 2, "members")


# Lists of members.


@case("GRP-15")
@pytest.mark.parametrize("count", [1, 2, 50])
def test_pages(login: LogIn, group: Group, count: int) -> None:
    """Pages together list every member once."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    found: list[int] = []
    marker: int | None = None
    for _ in range(5):
        fields = {} if marker is None else {"marker": marker}
        page = bob.call("CHAT_MEMBERS", {"chatId": chat, "type": "MEMBER", "count": count, **fields})
        check(len(page["members"]) <= count, f"at most {count} members", len(page["members"]))
        check(all("presence" in each for each in page["members"]), "presence in each", page["members"])
        found += [each["contact"]["id"] for each in page["members"]]
        marker = page.get("marker")
        if not marker:
            break
    equal(sorted(found), sorted([alice.user_id, bob.user_id, carol.user_id]), "members of all pages")


@case("GRP-16")
def test_some_members(login: LogIn, group: Group, newcomer: Newcomer) -> None:
    """The list can be limited to administrators, or to members with a name in any case."""
    alice, bob, nina = login("alice"), login("bob"), login(newcomer("Nina"), interactive=False)
    chat = group(alice, bob, nina)
    change(alice, chat, "add", bob.user_id, type="ADMIN", permissions=MEMBERS)
    equal(set(members(nina, chat, type="ADMIN")), {alice.user_id, bob.user_id}, "administrators")
    page = alice.call("CHAT_MEMBERS", {"chatId": chat})["members"]
    name = next(each["contact"]["names"][0]["name"] for each in page if each["contact"]["id"] == nina.user_id)
    for query in (name, name.upper(), name.lower()[:2]):
        check(nina.user_id in members(alice, chat, query=query), f"a member named {query}", "not there")
    equal(members(alice, chat, query="no such name at all"), [], "nobody of that name")


# Properties of a group.


@case("GRP-17")
def test_title(login: LogIn, group: Group) -> None:
    """All members see a new title, and an event announces it."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    known = marks(settled(bob))
    equal(update(alice, chat, theme="Barbecue")["title"], "Barbecue", "title of the reply")
    equal(event_of(told(bob, chat, "title"))["title"], "Barbecue", "title of the event")
    equal(chat_of(bob, chat)["title"], "Barbecue", "title for the other")
    delta = login_again(bob, **known)["chats"]
    equal([each["title"] for each in delta if each["id"] == chat], ["Barbecue"], "title in the delta")


@case("GRP-18")
def test_description(login: LogIn, group: Group) -> None:
    """A description is set and removed."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    update(alice, chat, description="On Sunday")
    equal(chat_of(bob, chat).get("description"), "On Sunday", "description")
    update(alice, chat, description="")
    check("description" not in chat_of(bob, chat), "no description", chat_of(bob, chat).get("description"))
    bob.fence()
    equal(len(bob.pushes("NOTIF_CHAT")), 2, "times that the other was told")


@case("GRP-19")
def test_options(login: LogIn, group: Group) -> None:
    """An update changes only the options that it names; an unknown option is refused."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    update(alice, chat, options={"ALL_CAN_PIN_MESSAGE": True, "ONLY_ADMIN_CAN_ADD_MEMBER": True})
    update(alice, chat, options={"ONLY_ADMIN_CAN_ADD_MEMBER": False})
    for device in (alice, bob):
        options = chat_of(device, chat)["options"]
        equal([name for name, value in options.items() if value], ["ALL_CAN_PIN_MESSAGE"], "options set")
    alice.refused("proto.payload", "CHAT_UPDATE", {"chatId": chat, "options": {"NO_SUCH_OPTION": True}})


@case("GRP-20")
def test_pin(login: LogIn, group: Group, cid: Cid) -> None:
    """A message is pinned for everybody and unpinned again."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    said = say(bob, chat, cid())["id"]
    forget(alice)
    update(alice, chat, pinMessageId=said)
    told(bob, chat, "pin")
    equal(chat_of(bob, chat)["pinnedMessage"]["id"], said, "pinned message")
    update(alice, chat, pinMessageId=0, notifyPin=False)
    check("pinnedMessage" not in chat_of(bob, chat), "no pinned message", "there is one")
    bob.fence()
    equal(bob.pushes("NOTIF_MESSAGE"), [], "events of what was done without a word")
    alice.refused("not.found", "CHAT_UPDATE", {"chatId": chat, "pinMessageId": NOBODY})


@case("GRP-60")
def test_pin_after_a_block(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """Pinning and unpinning are refused after a block."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chat = dialog(owner, nina)
    said = say(nina, chat, cid())["id"]
    owner.call("CONTACT_UPDATE", {"contactId": nina.user_id, "action": "BLOCK"})
    for device in (owner, nina):
        device.fence()
        device.pushes("NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_CONTACT")
    for message in (said, 0):
        value = {"chatId": chat, "pinMessageId": message}
        nina.refused("chat.not.found", "CHAT_UPDATE", value)
        owner.refused("not.allowed", "CHAT_UPDATE", value)
    for device in (owner, nina):
        device.silence_by_fence()


@case("GRP-21")
def test_new_owner(login: LogIn, group: Group) -> None:
    """An owner can give a group to a member, and to nobody else."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    for user in (carol.user_id, NOBODY):
        alice.refused("user.not.found", "CHAT_UPDATE", {"chatId": chat, "changeOwnerId": user})
    equal(update(alice, chat, changeOwnerId=bob.user_id)["owner"], bob.user_id, "owner of the reply")
    seen = chat_of(bob, chat)
    equal(seen["owner"], bob.user_id, "owner")
    equal(seen["adminParticipants"][str(alice.user_id)]["permissions"], EVERYTHING, "rights of the old one")
    alice.refused("not.allowed", "CHAT_UPDATE", {"chatId": chat, "changeOwnerId": alice.user_id})
    alice.call("CHAT_LEAVE", {"chatId": chat})


@case("GRP-22")
def test_all_or_nothing(login: LogIn, group: Group) -> None:
    """If one change of a request is not allowed, the whole request is refused."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob, title="Picnic")
    bob.refused("not.allowed", "CHAT_UPDATE", {"chatId": chat, "theme": "Mine", "description": "mine"})
    equal(chat_of(alice, chat)["title"], "Picnic", "title")
    alice.silence_by_fence()


@case("GRP-23")
def test_nothing_new(login: LogIn, group: Group) -> None:
    """A change without effect is answered, but causes no push."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob, title="Picnic")
    equal(update(alice, chat, theme="Picnic")["title"], "Picnic", "title")
    bob.silence_by_fence()


# The end of a chat.


@case("GRP-24")
def test_deleted(login: LogIn, group: Group) -> None:
    """A group that its owner deletes is gone for everybody; offline users learn it from a delta."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat = group(alice, bob)
    forget(laptop)
    known = marks(settled(laptop))
    alice.call("CHAT_DELETE", {"chatId": chat, "forAll": True})
    bob.fence()
    gone = only(bob.pushes("NOTIF_CHAT"), "NOTIF_CHAT")["chat"]
    equal((gone["id"], gone["status"]), (chat, "REMOVED"), "the chat pushed")
    for device in (alice, bob):
        device.refused("chat.not.found", "CHAT_HISTORY", {"chatId": chat, "backward": 1})
    delta = login_again(laptop, **known)["chats"]
    equal([each["status"] for each in delta if each["id"] == chat], ["REMOVED"], "status in the delta")


@case("GRP-25")
def test_not_deleted(login: LogIn, group: Group, cid: Cid) -> None:
    """A member cannot delete a group, and nobody can delete a dialog."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    say(alice, dialog(alice, bob), cid())
    for each in (chat, dialog(alice, bob)):
        bob.refused("not.allowed", "CHAT_DELETE", {"chatId": each, "forAll": True})
    equal(chat_of(bob, chat)["participantsCount"], 2, "members")


@case("GRP-26")
@pytest.mark.parametrize("where", ["group", "dialog"])
def test_cleared(login: LogIn, group: Group, cid: Cid, where: str) -> None:
    """Clearing the history for oneself also clears unread messages; others keep their history."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob) if where == "group" else dialog(alice, bob)
    said = [say(alice, chat, cid()) for _ in range(3)]
    before = len(history(alice, chat, backward=50))
    known = marks(settled(bob))
    reply = bob.call("CHAT_CLEAR", {"chatId": chat, "lastEventTime": said[1]["time"], "forAll": False})
    equal(reply["chat"]["newMessages"], 1, "unread messages")
    told = alice.push("NOTIF_MARK")
    equal((told["userId"], told["mark"], told["setAsUnread"]), (bob.user_id, said[1]["time"], False), "mark")
    equal(ids(history(bob, chat, backward=50)), [said[2]["id"]], "what is left of it")
    bob.call("CHAT_CLEAR", {"chatId": chat})
    equal(history(bob, chat, backward=50), [], "nothing")
    delta = only([each for each in login_again(bob, **known)["chats"] if each["id"] == chat], "chat")
    check("lastMessage" not in delta, "no last message", delta.get("lastMessage"))
    equal(len(history(alice, chat, backward=50)), before, "messages of the other")


@case("GRP-27")
def test_cleared_for_all(login: LogIn, group: Group, cid: Cid) -> None:
    """A user with permission clears the history for everybody."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    said = [say(bob, chat, cid()) for _ in range(2)]
    clear = {"chatId": chat, "lastEventTime": said[0]["time"], "forAll": True}
    bob.refused("not.allowed", "CHAT_CLEAR", clear)
    alice.call("CHAT_CLEAR", clear)
    equal(ids(history(bob, chat, backward=50)), [said[1]["id"]], "what is left")
    check(said[0]["id"] in bob.push("NOTIF_MSG_DELETE")["messageIds"], "the message deleted", said[0])


# Invitations.


def invite(device: Device, chat: int) -> str:
    """Makes a new link to a group and returns it."""
    return update(device, chat, revokePrivateLink=True)["link"]


@case("GRP-28")
@pytest.mark.parametrize("before", ["", "https://example.org/"], ids=["from join on", "whole"])
def test_joined(login: LogIn, group: Group, cid: Cid, before: str) -> None:
    """A user joins by the link and sees the history; a second request announces nothing."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    said = say(bob, chat, cid())
    link = invite(alice, chat)
    forget(alice, bob)
    link = before + link[link.index("join/") :]
    for _ in range(2):
        joined = carol.call("CHAT_JOIN", {"link": link})["chat"]
        equal((joined["id"], joined["participantsCount"]), (chat, 3), "the chat of the reply")
    equal(told(bob, chat, "joinByLink")["sender"], carol.user_id, "who joined")
    check(said["id"] in ids(history(carol, chat, backward=50)), "what was said before", said["id"])


@case("GRP-29")
def test_no_such_link(login: LogIn, group: Group) -> None:
    """A replaced link is refused like an unknown link."""
    alice, carol = login("alice"), login("carol")
    chat = group(alice)
    old = invite(alice, chat)
    invite(alice, chat)
    for link in (old, "join/0", "https://example.org/"):
        carol.refused("not.found", "CHAT_JOIN", {"link": link})
    equal(chat_of(alice, chat)["participantsCount"], 1, "members")


@case("GRP-30")
def test_invitation(login: LogIn, group: Group) -> None:
    """A group has one valid link; members without the right to invite do not see it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    first, second = invite(alice, chat), invite(alice, chat)
    check(first != second, "another link", second)
    check("link" not in chat_of(bob, chat), "no link for a member", chat_of(bob, chat).get("link"))
    bob.refused("not.allowed", "CHAT_UPDATE", {"chatId": chat, "revokePrivateLink": True})
    carol.refused("not.found", "CHAT_CHECK_LINK", {"link": first})
    carol.call("CHAT_CHECK_LINK", {"link": second})


@case("GRP-31")
def test_dead_link(login: LogIn) -> None:
    """An invalid link is refused."""
    for link in ("join/0", "", "https://example.org/"):
        login("alice").refused("not.found", "CHAT_CHECK_LINK", {"link": link})


@case("GRP-32")
def test_look(login: LogIn, group: Group, cid: Cid) -> None:
    """Before joining, a user sees the title and the number of members, but no messages."""
    alice, carol = login("alice"), login("carol")
    chat = group(alice, title="Picnic")
    say(alice, chat, cid())
    seen = carol.call("LINK_INFO", {"link": invite(alice, chat)})["chat"]
    equal((seen["id"], seen["title"], seen["participantsCount"]), (chat, "Picnic", 1), "the chat")
    equal(seen["participants"], {}, "members")
    check("lastMessage" not in seen, "no message", seen.get("lastMessage"))
    nothing = carol.call("LINK_INFO", {"link": "join/0"})
    check(nothing.get("chat") is None, "nothing for a dead link", nothing.get("chat"))


@case("GRP-64")
def test_administrators_by_the_operation(login: LogIn, group: Group) -> None:
    """The operation `admin` appoints an administrator even without `type` and `permissions`."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)

    def change(operation: str) -> dict[str, Any]:
        value = {"chatId": chat, "userIds": [bob.user_id], "operation": operation}
        return alice.call("CHAT_MEMBERS_UPDATE", value)["chat"]["adminParticipants"]

    rights = change("admin")[str(bob.user_id)]["permissions"]
    equal(rights, 2 + 8 + 16 + 256 + 512 + 1024, "permissions")
    check(str(bob.user_id) not in change("revokeAdmin"), "no administrator", "one")
