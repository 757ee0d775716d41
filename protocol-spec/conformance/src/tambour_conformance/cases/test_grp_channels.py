"""GRP: channels, public names, and requests to join."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tambour_conformance.cases.test_grp import (
    ADMINS,
    MEMBERS,
    change,
    event_of,
    forget,
    invite,
    members,
    not_changed,
    told,
    update,
)
from tambour_conformance.cases.test_src import word
from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, Newcomer, message, new_group
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    LESS,
    SAVED,
    chat_of,
    history,
    ids,
    login_again,
    marks,
    only,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

#: Rights of administrators of a channel.
POST, EDIT = 256, 512
#: The id of a chat that does not exist.
NOWHERE = -1


def channel(cid: Cid, creator: Device, *readers: Device, title: str = "conformance") -> int:
    """Makes a channel, and waits until all given connections have read their pushes about it."""
    request = new_group(cid(), *(each.user_id for each in readers), title=title)
    request["message"]["attaches"][0]["chatType"] = "CHANNEL"
    made = creator.call("MSG_SEND", request)["chatId"]
    forget(creator, *readers)
    return made


def some_name() -> str:
    """A random public name, because chats of earlier cases still have their names."""
    return f"c_{secrets.token_hex(8)}"


def publish(owner: Device, chat: int, name: str) -> None:
    update(owner, chat, access="PUBLIC", link=name)


def found(device: Device, query: str) -> list[dict[str, Any]]:
    """The chats that PUBLIC_SEARCH finds."""
    results = device.call("PUBLIC_SEARCH", {"query": query})["result"]
    return [result["chat"] for result in results if "chat" in result]


def waiting(device: Device, chat: int) -> list[int]:
    """The ids of the users who ask to join."""
    return members(device, chat, type="JOIN_REQUEST")


def unread_preview(seen: dict[str, Any], chat: int) -> None:
    """Checks that a chat, as shown to a user who is not a member, has no members and no messages."""
    equal((seen["id"], seen["participants"]), (chat, {}), "the chat shown to an outsider")
    check("lastMessage" not in seen, "no message", seen.get("lastMessage"))


@case("GRP-33")
def test_channel_made(login: LogIn, cid: Cid) -> None:
    """A channel is created like a group, but with the type CHANNEL."""
    alice, bob = login("alice"), login("bob")
    request = new_group(cid(), bob.user_id, title="News")
    request["message"]["attaches"][0]["chatType"] = "CHANNEL"
    made = alice.call("MSG_SEND", request)["chat"]
    equal(
        (made["type"], made["access"], made["title"], made["owner"], made["participantsCount"]),
        ("CHANNEL", "PRIVATE", "News", alice.user_id, 2),
        "the chat of the reply",
    )
    pushed = bob.push("NOTIF_CHAT", lambda push: push["chat"]["id"] == made["id"])["chat"]
    equal(pushed["type"], "CHANNEL", "type of the chat pushed")
    equal(chat_of(bob, made["id"])["type"], "CHANNEL", "type of the chat")


@case("GRP-34")
def test_post(login: LogIn, cid: Cid) -> None:
    """The owner and administrators with the permission can post; readers do not see who posted."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = channel(cid, alice, bob, carol)
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=POST)
    forget(alice, bob, carol)
    for author in (alice, carol):
        posted = say(author, chat, cid())
        push = bob.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
        equal(push["message"]["id"], posted["id"], "the post pushed")
        for what in (posted, push["message"], history(bob, chat, backward=1)[0]):
            check("sender" not in what, "no sender", what.get("sender"))
    bob.refused("not.allowed", "MSG_SEND", {"chatId": chat, "message": message(cid())})
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=MEMBERS)
    carol.refused("not.allowed", "MSG_SEND", {"chatId": chat, "message": message(cid())})


@case("GRP-63")
def test_key_of_a_post(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """The author's devices all see the cid of a post; nobody else does."""
    account, bob = newcomer("nina"), login("bob")
    nina, laptop = login(account), login(account, "laptop")
    chat = channel(cid, nina, laptop, bob)
    number = cid()
    post = say(nina, chat, number)
    equal(post["cid"], number, "cid of the reply")
    for device, expected in ((laptop, number), (bob, None)):
        push = device.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
        equal(push["message"].get("cid"), expected, f"cid that {device.name} is told")
    edit = {"chatId": chat, "messageId": post["id"], "text": "better"}
    equal(nina.call("MSG_EDIT", edit)["message"]["cid"], number, "cid of the reply to an edit")
    push = bob.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)
    equal(push["message"].get("cid"), None, "cid of the edited post")
    for device, expected in ((nina, number), (laptop, number), (bob, None)):
        got = device.call("MSG_GET", {"chatId": chat, "messageIds": [post["id"]]})["messages"]
        shown = [history(device, chat, backward=1)[0], only(got, "message")]
        for seen in (*shown, chat_of(device, chat)["lastMessage"]):
            equal(seen.get("cid"), expected, f"cid that {device.name} sees")
    link = {"type": "FORWARD", "chatId": chat, "messageId": post["id"]}
    for author in (nina, bob):
        copy = say(author, SAVED, cid(), "", link=link)
        equal(copy["link"]["message"].get("cid"), None, "cid of what is forwarded")


@case("GRP-35")
def test_post_edited(login: LogIn, cid: Cid) -> None:
    """An administrator with the permission can edit any post."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = channel(cid, alice, bob, carol)
    post = say(alice, chat, cid())
    request = {"chatId": chat, "messageId": post["id"], "text": "better", "elements": []}
    bob.refused("not.allowed", "MSG_EDIT", request)
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=POST)
    carol.refused("not.allowed", "MSG_EDIT", request)
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=EDIT)
    forget(bob)
    carol.call("MSG_EDIT", request)
    pushed = bob.push("NOTIF_MESSAGE", lambda push: push["chatId"] == chat)["message"]
    equal((pushed["id"], pushed["text"], pushed["status"]), (post["id"], "better", "EDITED"), "the post")


@case("GRP-36")
def test_readers(login: LogIn, cid: Cid) -> None:
    """The owner sees who reads a channel; readers do not."""
    alice, bob = login("alice"), login("bob")
    chat = channel(cid, alice, bob)
    equal(set(members(alice, chat)), {alice.user_id, bob.user_id}, "members for the owner")
    bob.refused("not.allowed", "CHAT_MEMBERS", {"chatId": chat})


@case("GRP-37")
def test_members_of_channel(login: LogIn, cid: Cid) -> None:
    """Only a user who is added or removed gets a push about it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = channel(cid, alice, bob)
    before = ids(history(alice, chat, backward=50))
    equal(change(alice, chat, "add", carol.user_id)["participantsCount"], 3, "members")
    pushed = carol.push("NOTIF_CHAT", lambda push: push["chat"]["id"] == chat)["chat"]
    equal(pushed["status"], "ACTIVE", "status for who was added")
    change(alice, chat, "remove", carol.user_id)
    pushed = carol.push("NOTIF_CHAT", lambda push: push["chat"]["id"] == chat)["chat"]
    equal(pushed["status"], "REMOVED", "status for who was removed")
    bob.silence_by_fence()
    equal(ids(history(alice, chat, backward=50)), before, "messages")


@case("GRP-38")
def test_public_name(login: LogIn, cid: Cid) -> None:
    """All members see the public name of a chat; a private chat has none."""
    alice, bob = login("alice"), login("bob")
    chat = channel(cid, alice, bob)
    name = some_name()
    seen = update(alice, chat, access="PUBLIC", link=name.upper())
    equal((seen["access"], seen["link"]), ("PUBLIC", name), "the chat of the reply")
    pushed = bob.push("NOTIF_CHAT", lambda push: push["chat"]["id"] == chat)["chat"]
    equal((pushed["access"], pushed["link"]), ("PUBLIC", name), "the chat pushed")
    bob.refused("not.allowed", "CHAT_UPDATE", {"chatId": chat, "access": "PRIVATE"})
    update(alice, chat, access="PRIVATE")
    seen = chat_of(bob, chat)
    equal((seen["access"], seen.get("link")), ("PRIVATE", None), "the chat afterwards")


@case("GRP-39")
def test_taken(login: LogIn, group: Group, cid: Cid) -> None:
    """Two chats cannot have the same name."""
    alice, bob = login("alice"), login("bob")
    first, second = channel(cid, alice), group(bob)
    name = some_name()
    publish(alice, first, name)
    wanted = {"chatId": second, "access": "PUBLIC", "link": name.upper()}
    bob.refused("link.taken", "CHAT_UPDATE", wanted)
    equal(chat_of(bob, second)["access"], "PRIVATE", "access of the other chat")
    update(alice, first, access="PRIVATE")
    equal(bob.call("CHAT_UPDATE", wanted)["chat"]["link"], name, "name of the other chat")


@case("GRP-40")
def test_no_name(login: LogIn, cid: Cid, limits: Limits) -> None:
    """An invalid name is refused."""
    alice = login("alice")
    chat = channel(cid, alice)
    least, most = limits["minPublicNameUnits"], limits["maxPublicNameUnits"]
    for name in (
        "a" * (least - 1),
        "a" * (most + 1),
        "9" + "a" * least,
        "_" + "a" * least,
        "имя" * least,
        "a b" * least,
    ):
        alice.refused("proto.payload", "CHAT_UPDATE", {"chatId": chat, "access": "PUBLIC", "link": name})
    equal(chat_of(alice, chat)["access"], "PRIVATE", "access")


@case("GRP-41")
@pytest.mark.parametrize("form", ["{}", "@{}", "https://example.org/{}"], ids=["alone", "at", "whole"])
def test_by_name(login: LogIn, cid: Cid, form: str) -> None:
    """A user can join by the public name while the chat has that name."""
    alice, carol = login("alice"), login("carol")
    chat = channel(cid, alice)
    name = some_name()
    publish(alice, chat, name)
    link = form.format(name.upper())
    joined = carol.call("CHAT_JOIN", {"link": link})["chat"]
    equal((joined["id"], joined["participantsCount"]), (chat, 2), "the chat of the reply")
    carol.call("CHAT_LEAVE", {"chatId": chat})
    update(alice, chat, access="PRIVATE")
    carol.refused("not.found", "CHAT_JOIN", {"link": link})


def asked(login: LogIn, group: Group) -> tuple[Device, Device, Device, int]:
    """Alice, Bob, Carol, and the id of Alice's group with Bob that Carol has asked to join."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob)
    link = invite(alice, chat)
    update(alice, chat, options={"JOIN_REQUEST": True})
    forget(alice, bob)
    for _ in range(2):
        unread_preview(carol.call("CHAT_JOIN", {"link": link})["chat"], chat)
    return alice, bob, carol, chat


@case("GRP-42")
def test_asking_first(login: LogIn, group: Group) -> None:
    """A user who follows the link waits for approval; the members get no push."""
    alice, bob, carol, chat = asked(login, group)
    equal(waiting(alice, chat), [carol.user_id], "who waits")
    equal(carol.call("CHAT_INFO", {"chatIds": [chat]})["chats"], [], "the chat of who waits")
    alice.silence_by_fence()
    bob.silence_by_fence()


@case("GRP-62")
def test_asking_in_too_many_places(login: LogIn, newcomer: Newcomer, group: Group, limits: Limits) -> None:
    """A user cannot ask to join more chats than the limit."""
    most = limits["maxJoinRequests"]
    if most > 10:
        skip(f"maxJoinRequests is {most}, too many to ask for: {LESS}")
    alice, carol = login("alice"), login(newcomer("carol"))
    chats = [group(alice) for _ in range(most + 1)]
    links = [invite(alice, chat) for chat in chats]
    for chat in chats:
        update(alice, chat, options={"JOIN_REQUEST": True})
    for link in links[:most]:
        carol.call("CHAT_JOIN", {"link": link})
    carol.refused("proto.payload", "CHAT_JOIN", {"link": links[most]})
    carol.call("CHAT_JOIN", {"link": links[0]})
    carol.call("CHAT_LEAVE", {"chatId": chats[0]})
    carol.call("CHAT_JOIN", {"link": links[most]})


@case("GRP-43")
def test_who_asks(login: LogIn, group: Group) -> None:
    """Only users who may approve requests see the waiting users."""
    alice, bob, carol, chat = asked(login, group)
    equal(waiting(alice, chat), [carol.user_id], "who waits")
    bob.refused("not.allowed", "CHAT_MEMBERS", {"chatId": chat, "type": "JOIN_REQUEST"})
    change(alice, chat, "add", bob.user_id, type="ADMIN", permissions=MEMBERS)
    equal(waiting(bob, chat), [carol.user_id], "who waits, for an administrator")


@case("GRP-61")
def test_request_taken_back(login: LogIn, group: Group) -> None:
    """A waiting user withdraws the request with CHAT_LEAVE; a second CHAT_LEAVE is refused."""
    alice, bob, carol, chat = asked(login, group)
    carol.call("CHAT_LEAVE", {"chatId": chat})
    equal(waiting(alice, chat), [], "who waits")
    carol.refused("chat.not.found", "CHAT_LEAVE", {"chatId": chat})
    alice.silence_by_fence()
    bob.silence_by_fence()


@case("GRP-44")
def test_decided(login: LogIn, group: Group) -> None:
    """An accepted user becomes a member and is notified; a declined user no longer waits."""
    alice, bob, carol, chat = asked(login, group)
    dave = login("dave")
    not_changed("not.allowed", bob, chat, "add", carol.user_id, type="JOIN_REQUEST")
    seen = change(alice, chat, "add", carol.user_id, dave.user_id, type="JOIN_REQUEST")
    equal(seen["participantsCount"], 3, "members")
    told(carol, chat, "add")
    equal(event_of(told(bob, chat, "add"))["userIds"], [carol.user_id], "who was let in")
    equal(waiting(alice, chat), [], "who waits")
    dave.call("CHAT_JOIN", {"link": invite(alice, chat)})
    forget(bob)
    change(alice, chat, "remove", dave.user_id, type="JOIN_REQUEST")
    equal(waiting(alice, chat), [], "who waits")
    equal(dave.call("CHAT_INFO", {"chatIds": [chat]})["chats"], [], "the chat of who was declined")
    seen = change(alice, chat, "add", dave.user_id, type="JOIN_REQUEST")
    equal(seen["participantsCount"], 3, "members after who was declined was let in")
    bob.silence_by_fence(of=["NOTIF_MESSAGE"])


@case("GRP-45")
def test_look_at_channel(login: LogIn, cid: Cid) -> None:
    """An outsider sees the name and the number of members of a public chat, but no posts."""
    alice, carol = login("alice"), login("carol")
    chat = channel(cid, alice, title="News")
    name = some_name()
    publish(alice, chat, name)
    say(alice, chat, cid())
    seen = carol.call("LINK_INFO", {"link": f"https://example.org/{name}"})["chat"]
    unread_preview(seen, chat)
    equal((seen["type"], seen["access"], seen["link"]), ("CHANNEL", "PUBLIC", name), "the chat")
    carol.call("CHAT_CHECK_LINK", {"link": name})


@case("GRP-46")
def test_personal_config(login: LogIn, group: Group) -> None:
    """CHAT_PERSONAL_CONFIG returns the same chat as CHAT_INFO."""
    alice, carol = login("alice"), login("carol")
    chat = group(alice)
    seen = alice.call("CHAT_PERSONAL_CONFIG", {"chatId": chat})["chat"]
    equal(seen, chat_of(alice, chat), "the chat")
    carol.refused("chat.not.found", "CHAT_PERSONAL_CONFIG", {"chatId": chat})
    carol.refused("chat.not.found", "CHAT_PERSONAL_CONFIG", {"chatId": NOWHERE})


@case("GRP-47")
def test_pin_hidden(login: LogIn, group: Group) -> None:
    """A user hides the pinned message and shows it again; only their own devices are told."""
    phone, laptop, bob = login("alice"), login("alice", "laptop"), login("bob")
    chat = group(phone, bob)
    laptop.fence()
    for show, left in ((False, {"hidePinned": True}), (True, {})):
        phone.call("CHAT_PIN_SET_VISIBILITY", {"chatId": chat, "show": show})
        pushed = laptop.push("NOTIF_CONFIG")["config"]["chats"]
        equal(pushed, {str(chat): left}, "settings pushed")
    bob.silence_by_fence()
    phone.refused("chat.not.found", "CHAT_PIN_SET_VISIBILITY", {"chatId": NOWHERE, "show": True})


@case("GRP-48")
def test_put_away(login: LogIn, cid: Cid, group: Group) -> None:
    """A member hides a chat for themselves; a new message shows it again."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    mark = settled(bob)

    def delta(since: Frame) -> str:
        return only(
            [each for each in login_again(bob, **marks(since))["chats"] if each["id"] == chat], "chat"
        )["status"]

    bob.call("CHAT_HIDE", {"chatId": chat})
    equal(chat_of(bob, chat)["status"], "HIDDEN", "status")
    equal(chat_of(alice, chat)["status"], "ACTIVE", "status for the other")
    equal(delta(mark), "HIDDEN", "status in the delta")
    mark = settled(bob)
    say(alice, chat, cid())
    equal(chat_of(bob, chat)["status"], "ACTIVE", "status after a message")
    equal(delta(mark), "ACTIVE", "status in the delta after a message")
    bob.refused("chat.not.found", "CHAT_HIDE", {"chatId": NOWHERE})


@case("GRP-65")
def test_brought_back(login: LogIn, cid: Cid, group: Group) -> None:
    """A hidden chat is shown again on request."""
    alice, bob = login("alice"), login("bob")
    chat = group(alice, bob)
    say(alice, chat, cid())
    bob.call("CHAT_HIDE", {"chatId": chat})
    mark = settled(bob)
    bob.call("CHAT_HIDE", {"chatId": chat, "hide": False})
    equal(chat_of(bob, chat)["status"], "ACTIVE", "status")
    found = [each for each in login_again(bob, **marks(mark))["chats"] if each["id"] == chat]
    equal(only(found, "chat")["status"], "ACTIVE", "status in the delta")


@case("GRP-49")
def test_suggested(login: LogIn, cid: Cid) -> None:
    """Suggestions list large public chats first, and omit chats that the caller is in."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    large, small = channel(cid, alice, bob), channel(cid, alice)
    for chat in (large, small):
        publish(alice, chat, some_name())
    suggested = carol.call("CHAT_SUGGEST", {"count": 100})["chats"]
    counts = [each["participantsCount"] for each in suggested]
    equal(counts, sorted(counts, reverse=True), "numbers of members")
    check({large, small} <= set(ids(suggested)), "both channels", ids(suggested))
    for each in suggested:
        unread_preview(each, each["id"])
    mine = ids(bob.call("CHAT_SUGGEST", {"count": 100})["chats"])
    check(large not in mine, "without the caller's own", mine)
    # Make these chats private again, because later runs need their own chats among the first results.
    for chat in (large, small):
        update(alice, chat, access="PRIVATE")


@case("GRP-51")
@pytest.mark.parametrize("kind", ["group", "channel"])
def test_who_sees_the_link(login: LogIn, group: Group, cid: Cid, kind: str) -> None:
    """Members who can invite always see the link; with the option, all members see it."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol) if kind == "group" else channel(cid, alice, bob, carol)
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=ADMINS)
    link = invite(alice, chat)

    def shown() -> list[str | None]:
        return [chat_of(each, chat).get("link") for each in (alice, bob, carol)]

    equal(shown(), [link, None, None], "link for owner, member and administrator")
    update(alice, chat, options={"MEMBERS_CAN_SEE_PRIVATE_LINK": True})
    equal(shown(), [link, link, link], "link with the option")
    update(alice, chat, options={"MEMBERS_CAN_SEE_PRIVATE_LINK": False})
    equal(shown(), [link, None, None], "link afterwards")
    carol.refused("not.allowed", "CHAT_UPDATE", {"chatId": chat, "revokePrivateLink": True})
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=MEMBERS)
    equal(shown(), [link, None, link], "link when the administrator may make one")
    link = invite(carol, chat)
    equal(shown(), [link, None, link], "link of the administrator")


@case("SRC-21")
def test_public_chats(login: LogIn, group: Group, cid: Cid) -> None:
    """Public chats are found by their titles; private chats are not."""
    alice, carol = login("alice"), login("carol")
    first, second = word(), word()
    chat = channel(cid, alice, title=f"{first} {second}")
    group(alice, title=f"{first} {second}")
    equal(found(carol, first), [], "found before it was public")
    publish(alice, chat, some_name())
    for query in (first, f"{second[:6]} {first.upper()}"):
        unread_preview(only(found(carol, query), f"chat found by {query}"), chat)
    equal(found(carol, f"{first} {word()}"), [], "found by a word too many")
    update(alice, chat, access="PRIVATE")
    equal(found(carol, first), [], "found after it was public")
