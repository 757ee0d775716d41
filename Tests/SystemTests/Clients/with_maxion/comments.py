"""Comments on the posts of channels."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from cells import Room
from channels import create_channel
from harness import Failure, same
from maxion.raw.errors import RpcError

from with_maxion.device import cell

BLACKLIST = "COMMENTS_BLACKLIST"


async def not_allowed(call: Awaitable[Any]) -> None:
    try:
        answer = await call
    except RpcError as error:
        same(error.code, "not.allowed", "the refusal")
    else:
        raise Failure(f"answered {answer!r}")


@cell("Comment on posts")
async def comments(room: Room) -> None:
    alice, bob, carol = room.alice, room.bob, await room.person("carol")
    chat = await create_channel(alice.witness, "Drum news", bob.witness, carol.witness)
    post = int((await alice.client.send_message(chat, "tonight")).id)
    await carol.next("message", lambda message: int(message.id) == post)
    await not_allowed(bob.raw.send_comment(chat, post, "me too"))
    await alice.raw.set_chat_options(chat, {"COMMENTS": True})

    # The library's `subscribe_chat` has no parameter for a post.
    await carol.raw.call("CHAT_SUBSCRIBE", {"chatId": chat, "postId": post, "subscribe": True})
    made = await bob.raw.send_comment(chat, post, "me too")
    same((made.text, made.sender_id, made.get("postId")), ("me too", bob.id, post), "the answer")
    told = await carol.next("raw message", lambda update: update.message.id == made.id)
    same((told.chat_id, told.get("postId"), told.text), (chat, post, "me too"), "what carol is told")
    received = await carol.next("message", lambda message: str(message.id) == made.id)
    same((received.chat.id, received.from_user.id, received.text), (chat, bob.id, "me too"), "the message")
    await alice.silence("message", where=lambda message: str(message.id) == made.id)

    answer = await carol.raw.send_comment(chat, post, "really?", reply_to=made.id)
    page = await alice.raw.get_history(chat, post_id=post)
    same([each.id for each in page], [made.id, answer.id], "the comments")
    same(page[1].reply_to_id, made.id, "what is answered")
    infos = (await alice.raw.get_comments_updates(chat, post))["commentsInfoUpdates"]
    same(infos, [{"postId": post, "commentsInfo": {"totalCount": 2}}], "how many there are")

    edited = await bob.raw.edit_message(chat, made.id, "me as well", post_id=post)
    same((edited.id, edited.text), (made.id, "me as well"), "the edited comment")
    told = await carol.next("raw message", lambda update: update.text == "me as well")
    same((told.message.id, told.get("postId")), (made.id, post), "what carol is told of the edit")

    same((await alice.raw.set_reaction(chat, made.id, "🔥", post_id=post)).total, 1, "reactions")
    told = await carol.next("raw reactions")
    same(
        (told.message_id, told.get("postId"), told.get("totalCount")),
        (made.id, post, 1),
        "what carol is told",
    )
    seen = (await bob.raw.get_history(chat, post_id=post))[0]
    same(seen.reactions.total, 1, "the reactions for bob")
    same((await alice.raw.remove_reaction(chat, made.id, post_id=post)).total, 0, "reactions in the end")

    await bob.raw.delete_messages(chat, made.id, post_id=post)
    told = await carol.next("raw message_deleted")
    same((told.message_ids, told.get("postId")), ([made.id], post), "what carol is told of the deletion")
    left = await bob.raw.get_history(chat, post_id=post)
    same([each.id for each in left], [answer.id], "the comments after it")

    await alice.raw.update_members(chat, carol.id, "add", type=BLACKLIST, postId=post)
    banned = await alice.raw.get_members(chat, member_type=BLACKLIST)
    same([each["contact"]["id"] for each in banned], [carol.id], "who may not comment")
    await not_allowed(carol.raw.send_comment(chat, post, "again"))
    await alice.raw.delete_user_messages(chat, carol.id, message_id=answer.id, post_id=post)
    same((await carol.next("raw message_deleted")).message_ids, [answer.id], "what carol is told in the end")
    same(await bob.raw.get_history(chat, post_id=post), [], "the comments in the end")
    await alice.raw.update_members(chat, carol.id, "remove", type=BLACKLIST)

    await carol.raw.call("CHAT_SUBSCRIBE", {"chatId": chat, "postId": post, "subscribe": False})
    last = await bob.raw.send_comment(chat, post, "the last one")
    await carol.silence("message", where=lambda message: str(message.id) == last.id)
    await carol.raw.send_comment(chat, post, "once more")
