"""Comments on the posts of channels."""

from __future__ import annotations

from cells import Room
from harness import check, same

from with_pyromax.device import cell


@cell("Comment on posts")
async def comments(room: Room) -> None:
    alice, bob, carol = room.alice, room.bob, await room.person("carol")
    channel, _ = await alice.client.create_group("Drum news", [bob.id, carol.id], chat_type="CHANNEL")
    chat = channel.id
    post = (await alice.client.send_message(chat, "tonight")).message_id
    await carol.next("message", lambda message: message.message_id == post)
    await bob.refused(bob.client.send_comment(chat, post, "me too"), "not.allowed")
    await alice.client.set_channel_comments(chat, True)

    await carol.client.subscribe_comments(chat, post)
    made = await bob.client.send_comment(chat, post, "me **too**")
    same((made.chat_id, made.sender_id, made.text), (chat, bob.id, "me **too**"), "the answer")
    told = await carol.next("message", lambda message: message.message_id == made.message_id)
    same((told.chat_id, told.sender_id, told.text), (chat, bob.id, made.text), "what carol is told")
    await alice.silence("message", where=lambda message: message.message_id == made.message_id)

    answer = await carol.client.send_comment(chat, post, "really?", reply_to=made.message_id)
    page = await alice.client.fetch_comments(chat, post)
    same([each.message_id for each in page], [made.message_id, answer.message_id], "the comments")
    check(page[1].link, "the answer does not show what it answers")
    same((await alice.client.get_comment(chat, post, made.message_id)).text, made.text, "one comment")
    found = await alice.client.get_comments(chat, post, [made.message_id, answer.message_id, post])
    same([each.message_id for each in found], [made.message_id, answer.message_id], "comments by id")
    infos = await alice.client.get_comments_info(chat, [post])
    same(
        [(each.post_id, each.comments_info.total_count) for each in infos], [(post, 2)], "how many there are"
    )

    edited = await bob.client.edit_comment(chat, post, made.message_id, "me as well")
    same((edited.message_id, edited.text), (made.message_id, "me as well"), "the edited comment")
    told = await carol.next("edited", lambda message: message.message_id == made.message_id)
    same(told.text, "me as well", "what carol is told of the edit")

    info = await alice.client.add_comment_reaction(chat, post, made.message_id, "🔥")
    same((info.total_count, info.your_reaction), (1, "🔥"), "the reactions")
    told = await carol.next("reaction")
    same((int(told.message_id), told.total_count), (made.message_id, 1), "what carol is told of the reaction")
    info = await alice.client.remove_comment_reaction(chat, post, made.message_id)
    same((info.total_count, info.your_reaction), (0, None), "the reactions in the end")

    await bob.client.delete_comment(chat, post, [made.message_id])
    gone = await carol.next("delete")
    same((gone.chat_id, gone.message_ids), (chat, [made.message_id]), "what carol is told of the deletion")
    left = await bob.client.fetch_comments(chat, post)
    same([each.message_id for each in left], [answer.message_id], "the comments after it")

    await alice.client.block_comment_author(chat, post, [carol.id], answer.message_id)
    await carol.refused(carol.client.send_comment(chat, post, "again"), "not.allowed")
    same(len(await bob.client.fetch_comments(chat, post)), 1, "the comments of who is blocked")
    await alice.client.delete_user_comments(chat, post, carol.id, answer.message_id)
    same((await carol.next("delete")).message_ids, [answer.message_id], "what carol is told in the end")
    same(await bob.client.fetch_comments(chat, post), [], "the comments in the end")

    await carol.client.subscribe_comments(chat, post, subscribe=False)
    last = await bob.client.send_comment(chat, post, "the last one")
    await carol.silence("message", where=lambda message: message.message_id == last.message_id)
    await alice.client.block_comment_author(chat, post, [bob.id], last.message_id, clean_msg_period=-1)
    same(await carol.client.fetch_comments(chat, post), [], "the comments after the blocked author's went")
