"""CMT: comments on the posts of channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tambour_conformance.cases.test_chg import changes, react
from tambour_conformance.cases.test_grp import change, forget, members, not_changed, update
from tambour_conformance.cases.test_grp_channels import channel
from tambour_conformance.cases.test_pol import poll
from tambour_conformance.fixtures import Cid, Group, Limits, LogIn, message
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    DAY_MS,
    LESS,
    NOBODY,
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

#: The administrators' permission to delete messages of others.
DELETE = 1024


def posted(cid: Cid, owner: Device, *readers: Device, is_open: bool = True) -> tuple[int, int]:
    """A channel with comments, and the id of a post."""
    chat = channel(cid, owner, *readers)
    if is_open:
        update(owner, chat, options={"COMMENTS": True})
    post = say(owner, chat, cid())["id"]
    forget(owner, *readers)
    return chat, post


def comment(
    device: Device, chat: int, post: int, cid: int, text: str = "a comment", **fields: Any
) -> dict[str, Any]:
    """Comments on a post; returns the comment as stored."""
    value = {"chatId": chat, "postId": post, "message": message(cid, text, **fields)}
    return device.call("MSG_SEND", value)["message"]


def refused(code: str, device: Device, chat: int, post: int, cid: int, **fields: Any) -> Frame:
    """Sends a comment that must be refused."""
    value = {"chatId": chat, "postId": post, "message": message(cid, "a comment", **fields)}
    return device.refused(code, "MSG_SEND", value)


def comments(device: Device, chat: int, post: int, **fields: Any) -> list[dict[str, Any]]:
    """The newest comments on a post, oldest first."""
    page: dict[str, Any] = {"from": -1, "backward": 30, "postId": post}
    return history(device, chat, **{**page, **fields})


def subscribe(device: Device, chat: int, post: int, is_open: bool = True) -> None:
    device.call("CHAT_SUBSCRIBE", {"chatId": chat, "postId": post, "subscribe": is_open})


def count(device: Device, chat: int, *posts: int) -> list[tuple[int, int]]:
    """The number of comments by post id."""
    reply = device.call("MSG_GET_COMMENTS_INFO", {"chatId": chat, "postIds": list(posts)})
    return [(each["postId"], each["commentsInfo"]["totalCount"]) for each in reply["commentsInfoUpdates"]]


@case("CMT-01")
def test_comment(login: LogIn, cid: Cid) -> None:
    """A reader comments; users who only read the channel are not affected."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, post = posted(cid, alice, bob, carol)
    before = {each.name: (settled(each), chat_of(each, chat)) for each in (alice, bob, carol)}
    number = cid()
    made = comment(bob, chat, post, number, "how lovely")
    equal(
        {key: made.get(key) for key in ("chatId", "postId", "sender", "type", "text", "cid")},
        {
            "chatId": chat,
            "postId": post,
            "sender": bob.user_id,
            "type": "USER",
            "text": "how lovely",
            "cid": number,
        },
        "the comment",
    )
    again = comment(bob, chat, post, number, "how lovely")
    equal(again["id"], made["id"], "id of the comment that is sent once more")
    for each in (alice, bob, carol):
        equal(ids(comments(each, chat, post)), [made["id"]], f"comments that {each.name} sees")
        check(made["id"] not in ids(history(each, chat, backward=10)), "no comment among the posts", "one")
        each.silence_by_fence()
        mark, seen = before[each.name]
        equal(login_again(each, **marks(mark))["chats"], [], f"chats of the next delta of {each.name}")
        equal(chat_of(each, chat), seen, f"the chat as {each.name} has it")
    # Commenting on the post does not mark it as read for the author.
    unread = chat_of(bob, chat)["newMessages"]
    check(unread > 0, "the post is unread for the author of the comment", unread)
    read = {"type": "READ_MESSAGE", "chatId": chat, "messageId": post}
    equal(bob.call("CHAT_MARK", read)["unread"], 0, "unread posts, once the post is read")
    equal(chat_of(bob, chat)["newMessages"], 0, "unread posts at the next look")


@case("CMT-02")
def test_where_nobody_comments(login: LogIn, cid: Cid) -> None:
    """Commenting fails without the option, for banned users, and on anything that is not a post."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, post = posted(cid, alice, bob, is_open=False)
    for each in (alice, bob):
        refused("not.allowed", each, chat, post, cid())
    update(alice, chat, options={"COMMENTS": True})
    change(alice, chat, "add", bob.user_id, type="COMMENTS_BLACKLIST")
    refused("not.allowed", bob, chat, post, cid())
    change(alice, chat, "remove", bob.user_id, type="COMMENTS_BLACKLIST")
    made = comment(bob, chat, post, cid())
    hidden = say(alice, chat, cid())["id"]
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [hidden], "forMe": True})
    for unknown in (NOBODY, made["id"], hidden, history(bob, chat, backward=30)[0]["id"]):
        refused("not.found", bob, chat, unknown, cid())
    dialog = alice.user_id ^ bob.user_id
    refused("not.found", bob, dialog, say(alice, dialog, cid())["id"], cid())
    refused("chat.not.found", carol, chat, post, cid())


@case("CMT-01")
def test_retry(login: LogIn, cid: Cid) -> None:
    """A retry returns the first comment, even if its author no longer sees the post."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    number = cid()
    made = comment(bob, chat, post, number)["id"]
    change(alice, chat, "add", bob.user_id, type="COMMENTS_BLACKLIST")
    equal(comment(bob, chat, post, number)["id"], made, "id of the comment for who is kept from commenting")
    bob.call("MSG_DELETE", {"chatId": chat, "messageIds": [post], "forMe": True})
    equal(comment(bob, chat, post, number)["id"], made, "id of the comment on a hidden post")
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [post]})
    equal(comment(bob, chat, post, number)["id"], made, "id of the comment on a deleted post")


@case("CMT-03")
@pytest.mark.parametrize("kind", ["poll", "later"])
def test_what_no_comment_may_be(login: LogIn, cid: Cid, kind: str) -> None:
    """A comment cannot be scheduled or have a poll."""
    alice = login("alice")
    chat, post = posted(cid, alice)
    fields: dict[str, Any] = {"attaches": [poll()]}
    if kind == "later":
        later = settled(alice)["time"] + DAY_MS
        fields = {"delayedAttributes": {"timeToFire": later, "notifySender": True}}
    refused("error.message.invalid", alice, chat, post, cid(), **fields)
    equal(comments(alice, chat, post), [], "comments")
    made = comment(alice, chat, post, cid())["id"]
    change = {"chatId": chat, "postId": post, "messageId": made, "attaches": [poll()]}
    if kind == "poll":
        alice.refused("error.message.invalid", "MSG_EDIT", change)


@case("CMT-04")
def test_pages_of_comments(login: LogIn, cid: Cid) -> None:
    """Pages of comments work like pages of messages."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    other = say(alice, chat, cid())["id"]
    made = [comment(each, chat, post, cid()) for each in (alice, bob, alice, bob, bob)]
    comment(bob, chat, other, cid())
    equal(ids(comments(bob, chat, post, backward=2)), ids(made[-2:]), "the newest two")
    older = comments(bob, chat, post, **{"from": made[2]["time"], "backward": 2})
    equal(ids(older), ids(made[1:3]), "two up to a time")
    newer = comments(bob, chat, post, **{"from": made[2]["time"], "backward": 0, "forward": 9})
    equal(ids(newer), ids(made[3:]), "those after a time")
    asked = {"chatId": chat, "postId": post, "messageIds": [made[3]["id"], made[0]["id"], post]}
    equal(ids(bob.call("MSG_GET", asked)["messages"]), ids([made[0], made[3]]), "comments by id")
    page = {"chatId": chat, "from": -1, "backward": 30}
    bob.refused("not.found", "CHAT_HISTORY", {**page, "postId": NOBODY})
    bob.refused("not.found", "MSG_GET", {**asked, "postId": NOBODY})


def written(device: Device, chat: int, post: int, number: int, made: int) -> None:
    comment(device, chat, post, number)


def edited(device: Device, chat: int, post: int, number: int, made: int) -> None:
    device.call("MSG_EDIT", {"chatId": chat, "postId": post, "messageId": made, "text": "better"})


def deleted(device: Device, chat: int, post: int, number: int, made: int) -> None:
    device.call("MSG_DELETE", {"chatId": chat, "postId": post, "messageIds": [made]})


def typed(device: Device, chat: int, post: int, number: int, made: int) -> None:
    device.call("MSG_TYPING", {"chatId": chat, "postId": post, "type": "TEXT"})


ACTS = [
    (written, "NOTIF_MESSAGE"),
    (edited, "NOTIF_MESSAGE"),
    (deleted, "NOTIF_MSG_DELETE"),
    (typed, "NOTIF_TYPING"),
]
Act = Callable[[Device, int, int, int, int], None]


@case("CMT-05")
@pytest.mark.parametrize(("act", "push"), ACTS, ids=[act.__name__ for act, _ in ACTS])
def test_opened(login: LogIn, cid: Cid, act: Act, push: str) -> None:
    """A connection gets new comments only while it has the comments open."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    laptop = login("alice", "laptop")
    chat, post = posted(cid, alice, laptop, bob, carol)
    other = say(alice, chat, cid())["id"]
    forget(alice, laptop, bob, carol)
    made = comment(alice, chat, post, cid())["id"]
    subscribe(bob, chat, post)
    subscribe(carol, chat, other)
    act(alice, chat, post, cid(), made)
    told = bob.push(push, lambda each: each["chatId"] == chat)
    equal(told["postId"], post, f"postId of {push}")
    if push == "NOTIF_MESSAGE":
        equal(told["message"]["postId"], post, "postId of the message")
    for each in (alice, laptop, carol):
        each.silence_by_fence()
    subscribe(bob, chat, post, is_open=False)
    act(alice, chat, post, cid(), comment(alice, chat, post, cid())["id"])
    bob.silence_by_fence()


@case("CMT-05")
@pytest.mark.parametrize("how", ["leaves", "is removed"])
def test_opened_and_left(login: LogIn, cid: Cid, how: str) -> None:
    """A former member gets no further comments, not even after being added without the history."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    subscribe(bob, chat, post)
    comment(alice, chat, post, cid())
    bob.push("NOTIF_MESSAGE", lambda each: each["chatId"] == chat)
    if how == "leaves":
        bob.call("CHAT_LEAVE", {"chatId": chat})
    else:
        change(alice, chat, "remove", bob.user_id)
    bob.fence()
    bob.pushes("NOTIF_CHAT")
    comment(alice, chat, post, cid())
    typed(alice, chat, post, 0, 0)
    bob.silence_by_fence()
    bob.refused("chat.not.found", "CHAT_SUBSCRIBE", {"chatId": chat, "postId": post})
    change(alice, chat, "add", bob.user_id, showHistory=False)
    bob.fence()
    bob.pushes("NOTIF_CHAT", "NOTIF_MESSAGE")
    made = comment(alice, chat, post, cid())["id"]
    edited(alice, chat, post, 0, made)
    react(alice, chat, post)
    deleted(alice, chat, post, 0, made)
    typed(alice, chat, post, 0, 0)
    bob.silence_by_fence()


@case("CMT-06")
def test_many_opened(login: LogIn, limits: Limits, cid: Cid) -> None:
    """Opening one thread above the limit closes the first."""
    alice, bob = login("alice"), login("bob")
    most = limits["maxOpenThreads"]
    if most > 50:
        skip(f"maxOpenThreads is {most}: {LESS}")
    chat, first = posted(cid, alice, bob)
    posts = [first] + [say(alice, chat, cid())["id"] for _ in range(most)]
    forget(alice, bob)
    for each in posts:
        subscribe(bob, chat, each)
    comment(alice, chat, first, cid())
    bob.silence_by_fence()
    for each in (posts[1], posts[-1]):
        comment(alice, chat, each, cid())
        equal(bob.push("NOTIF_MESSAGE")["postId"], each, "postId")


@case("CMT-07")
def test_changes(login: LogIn, cid: Cid) -> None:
    """Changes of comments can be requested; they do not change the channel."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    made = [comment(alice, chat, post, cid())["id"] for _ in range(3)]
    mark = settled(bob)["time"]
    edited(alice, chat, post, 0, made[0])
    deleted(alice, chat, post, 0, made[1])
    page = changes(bob, chat, mark, postId=post)
    equal((ids(page["messages"]), page["removedIds"]), ([made[0]], [made[1]]), "what has changed")
    page = changes(bob, chat, mark)
    equal((page["messages"], page["removedIds"]), ([], []), "what has changed in the channel")


@case("DLY-10")
def test_comments_are_not_scheduled(login: LogIn, cid: Cid) -> None:
    """A MSG_DELETE for scheduled messages that names a post deletes no comment."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    made = comment(bob, chat, post, cid())["id"]
    value = {"chatId": chat, "postId": post, "messageIds": [made], "itemType": "DELAYED"}
    for device in (bob, alice):
        reply = device.call("MSG_DELETE", value)
        equal(reply["messageIds"], [], "what is deleted")
        equal(reply["failedMessageIds"], [made], "what is not")
    equal(ids(comments(bob, chat, post)), [made], "the comments")


@case("CMT-08")
def test_comment_deleted(login: LogIn, cid: Cid) -> None:
    """Users delete their own comments, administrators others'; deleting a post deletes its comments."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, post = posted(cid, alice, bob, carol)
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=DELETE)
    own, others = comment(bob, chat, post, cid())["id"], comment(alice, chat, post, cid())["id"]
    kept = comment(alice, chat, post, cid())["id"]
    reply = bob.call("MSG_DELETE", {"chatId": chat, "postId": post, "messageIds": [own, others]})
    equal((reply["messageIds"], reply["failedMessageIds"]), ([own], [others]), "deleted by a member, and not")
    reply = carol.call("MSG_DELETE", {"chatId": chat, "postId": post, "messageIds": [own, others]})
    equal(sorted(reply["messageIds"]), sorted([own, others]), "deleted by an administrator")
    equal(ids(comments(alice, chat, post)), [kept], "comments that are left")
    subscribe(bob, chat, post)
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [post]})
    push = bob.push("NOTIF_MSG_DELETE", lambda push: push.get("postId") == post)
    equal(push["messageIds"], [kept], "the comments that went with the post")
    alice.refused("not.found", "CHAT_HISTORY", {"chatId": chat, "postId": post, "from": -1, "backward": 1})
    refused("not.found", alice, chat, post, cid())
    equal(count(alice, chat, post), [], "posts with comments")


@case("CMT-09")
def test_reactions(login: LogIn, cid: Cid) -> None:
    """A reaction to a comment is set and removed, and pushed where the comments are open."""
    alice, bob, laptop = login("alice"), login("bob"), login("bob", "laptop")
    chat, post = posted(cid, alice, bob, laptop)
    made = comment(alice, chat, post, cid())["id"]
    for each in (alice, laptop):
        subscribe(each, chat, post)
    reaction = {"reaction": {"reactionType": "EMOJI", "id": "🔥"}}
    place = {"chatId": chat, "postId": post, "messageId": made}
    info = bob.call("MSG_REACTION", {**place, **reaction})["reactionInfo"]
    equal((info["totalCount"], info["yourReaction"]), (1, "🔥"), "reactions")
    push = alice.push("NOTIF_MSG_REACTIONS_CHANGED")
    equal((push["postId"], push["messageId"], push["totalCount"]), (post, made, 1), "the push")
    equal(
        only(comments(alice, chat, post), "comment")["reactionInfo"]["totalCount"],
        1,
        "reactions to the comment",
    )
    own = laptop.push("NOTIF_MSG_YOU_REACTED")
    equal(
        (own["postId"], own["reactionInfo"]["yourReaction"]),
        (post, "🔥"),
        "what another device of bob is told",
    )
    equal(bob.call("MSG_CANCEL_REACTION", place)["reactionInfo"]["totalCount"], 0, "reactions")
    push = alice.push("NOTIF_MSG_REACTIONS_CHANGED")
    equal((push["postId"], push["totalCount"]), (post, 0), "the push of what was taken back")
    change(alice, chat, "add", bob.user_id, type="COMMENTS_BLACKLIST")
    bob.refused("not.allowed", "MSG_REACTION", {**place, **reaction})
    bob.call("MSG_CANCEL_REACTION", place)
    bob.refused("not.found", "MSG_REACTION", {**place, **reaction, "postId": NOBODY})
    react(bob, chat, post)


@case("CMT-14")
def test_reactions_to_comments_by_id(login: LogIn, cid: Cid) -> None:
    """MSG_GET_REACTIONS with a post returns only the reactions to comments on this post."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    made, plain = (comment(bob, chat, post, cid())["id"] for _ in range(2))
    other = comment(bob, chat, say(alice, chat, cid())["id"], cid())["id"]
    react_to = {"chatId": chat, "postId": post, "messageId": made}
    alice.call("MSG_REACTION", {**react_to, "reaction": {"reactionType": "EMOJI", "id": "🔥"}})
    value = {"chatId": chat, "messageIds": [made, plain, other, post]}
    found = bob.call("MSG_GET_REACTIONS", {**value, "postId": post})["messagesReactions"]
    totals = {id: each.get("totalCount", 0) for id, each in found.items()}
    equal(totals, {str(made): 1, str(plain): 0}, "reactions")
    found = bob.call("MSG_GET_REACTIONS", value)["messagesReactions"]
    equal(set(found), {str(post)}, "messages of the channel")
    bob.refused("not.found", "MSG_GET_REACTIONS", {**value, "postId": NOBODY})


@case("CMT-10")
def test_comment_edited(login: LogIn, cid: Cid) -> None:
    """Users edit their own comments; the channel owner cannot edit others'."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    made = comment(bob, chat, post, cid())["id"]
    place = {"chatId": chat, "postId": post, "messageId": made, "text": "better"}
    message = bob.call("MSG_EDIT", place)["message"]
    equal((message["text"], message["status"], message["postId"]), ("better", "EDITED", post), "the comment")
    alice.refused("not.allowed", "MSG_EDIT", place)
    bob.refused("not.found", "MSG_EDIT", {**place, "postId": NOBODY})
    bob.refused("not.found", "MSG_EDIT", {"chatId": chat, "messageId": made, "text": "worse"})
    equal(only(comments(alice, chat, post), "comment")["text"], "better", "text of the comment")


@case("CMT-11")
def test_all_of_one_user(login: LogIn, cid: Cid) -> None:
    """All comments of one user on a post are deleted at once; for others' comments this needs permission."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, post = posted(cid, alice, bob, carol)
    made = [comment(each, chat, post, cid())["id"] for each in (bob, carol, bob, alice, bob)]
    subscribe(carol, chat, post)
    place = {"chatId": chat, "postId": post, "userId": bob.user_id, "messageId": made[0]}
    carol.refused("not.allowed", "MSG_DELETE_USER_COMMENTS", place)
    alice.call("MSG_DELETE_USER_COMMENTS", place)
    push = carol.push("NOTIF_MSG_DELETE")
    equal(
        (push["postId"], sorted(push["messageIds"])),
        (post, [made[0], made[2], made[4]]),
        "what carol is told",
    )
    equal(ids(comments(bob, chat, post)), [made[1], made[3]], "comments that are left")
    carol.call("MSG_DELETE_USER_COMMENTS", {**place, "userId": carol.user_id})
    equal(ids(comments(bob, chat, post)), [made[3]], "comments that are left")


@case("CMT-13")
def test_all_of_one_member(login: LogIn, group: Group, cid: Cid) -> None:
    """Without a post, the request deletes a user's messages in the chat itself."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat = group(alice, bob, carol)
    sent = [say(each, chat, cid())["id"] for each in (bob, carol, bob)]
    place = {"chatId": chat, "userId": bob.user_id}
    carol.refused("not.allowed", "MSG_DELETE_USER_COMMENTS", place)
    alice.call("MSG_DELETE_USER_COMMENTS", place)
    equal(sorted(carol.push("NOTIF_MSG_DELETE")["messageIds"]), [sent[0], sent[2]], "what carol is told")
    left = ids(history(carol, chat, backward=10))
    equal([each for each in left if each in sent], [sent[1]], "messages that are left")


@case("CMT-12")
def test_who_may_not_comment(login: LogIn, cid: Cid) -> None:
    """Users who may ban commenters see the banned users."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, _ = posted(cid, alice, bob, carol)
    change(alice, chat, "add", bob.user_id, type="COMMENTS_BLACKLIST")
    equal(members(alice, chat, type="COMMENTS_BLACKLIST"), [bob.user_id], "who may not comment")
    carol.refused("not.allowed", "CHAT_MEMBERS", {"chatId": chat, "type": "COMMENTS_BLACKLIST"})
    change(alice, chat, "remove", bob.user_id, type="COMMENTS_BLACKLIST")
    equal(members(alice, chat, type="COMMENTS_BLACKLIST"), [], "who may not comment")


@case("GRP-50")
def test_kept_from_commenting(login: LogIn, cid: Cid) -> None:
    """An administrator bans a commenter and deletes their comments; a member cannot."""
    alice, bob, carol = login("alice"), login("bob"), login("carol")
    chat, post = posted(cid, alice, bob, carol)
    own, others = comment(bob, chat, post, cid())["id"], comment(carol, chat, post, cid())["id"]
    fields = {"type": "COMMENTS_BLACKLIST", "postId": post, "messageId": own, "cleanMsgPeriod": -1}
    not_changed("not.allowed", carol, chat, "add", bob.user_id, **fields)
    change(alice, chat, "add", carol.user_id, type="ADMIN", permissions=DELETE)
    not_changed("not.allowed", carol, chat, "add", alice.user_id, **fields)
    change(carol, chat, "add", bob.user_id, **fields)
    equal(ids(comments(alice, chat, post)), [others], "comments that are left")
    refused("not.allowed", bob, chat, post, cid())
    alice.call("MSG_DELETE", {"chatId": chat, "messageIds": [post]})
    fields["cleanMsgPeriod"] = 0
    change(carol, chat, "remove", bob.user_id, **fields)
    comment(bob, chat, say(alice, chat, cid())["id"], cid())


@case("GRP-50")
@pytest.mark.parametrize("as_owner", [False, True])
def test_who_runs_a_channel_comments(login: LogIn, cid: Cid, as_owner: bool) -> None:
    """A new owner or administrator leaves the ban list, and is not banned after losing the rights."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    change(alice, chat, "add", bob.user_id, type="COMMENTS_BLACKLIST")
    refused("not.allowed", bob, chat, post, cid())
    if as_owner:
        alice.call("CHAT_UPDATE", {"chatId": chat, "changeOwnerId": bob.user_id})
        bob.call("CHAT_UPDATE", {"chatId": chat, "changeOwnerId": alice.user_id})
    else:
        change(alice, chat, "add", bob.user_id, type="ADMIN", permissions=DELETE)
    change(alice, chat, "remove", bob.user_id, type="ADMIN")
    comment(bob, chat, post, cid())


@case("MSG-27")
def test_how_many(login: LogIn, cid: Cid) -> None:
    """Each post has the number of its remaining comments; other ids have none."""
    alice, bob = login("alice"), login("bob")
    chat, post = posted(cid, alice, bob)
    silent = say(alice, chat, cid())["id"]
    made = [comment(bob, chat, post, cid())["id"] for _ in range(3)]
    deleted(bob, chat, post, 0, made[1])
    equal(count(bob, chat, silent, NOBODY, post, post), [(post, 2), (silent, 0)], "posts with comments")
    alice.refused("chat.not.found", "MSG_GET_COMMENTS_INFO", {"chatId": -NOBODY, "postIds": [post]})
