"""Scenarios: comments on the posts of channels."""

from __future__ import annotations

from channels import create_channel
from harness import World, check, fact, refused, same, scenario


@scenario
async def comments(world: World) -> None:
    """Readers may comment only when comments are allowed, and they see each other's comments."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    chat = await create_channel(alice, "Drum news", bob, carol)
    post = await alice.client.send_message(chat, "tonight")
    for device in (alice, bob, carol):
        device.forget()
    await refused(bob.client.send_comment(chat, post.id, "me too"), "not.allowed")
    await alice.client.set_channel_comments(chat, True)
    fact("set_channel_comments lets readers comment")

    await carol.client.subscribe_comments(chat, post.id)
    alice.forget()
    made = await bob.client.send_comment(chat, post.id, "me **too**")
    same((made.chat_id, made.post_id, made.sender, made.text), (chat, post.id, bob.id, "me too"), "the reply's message")
    told = await carol.next("message", lambda message: message.id == made.id)
    same((told.post_id, told.sender, told.unread, told.mark), (post.id, bob.id, 0, 0), "push 128 at who has subscribed")
    await alice.silence("message")
    fact("send_comment reaches who has subscribed with subscribe_comments, and nobody else")

    answer = await carol.client.send_comment(chat, post.id, "really?", made.id)
    page = await alice.client.fetch_comments(chat, post.id)
    same([each.id for each in page], [made.id, answer.id], "fetch_comments")
    check(page[1].link is not None, "the answer shows what it answers")
    found = await alice.client.get_comment(chat, post.id, made.id)
    same((found.id, found.post_id), (made.id, post.id), "get_comment")
    found = await alice.client.get_comments(chat, post.id, [made.id, answer.id, post.id])
    same([each.id for each in found], [made.id, answer.id], "get_comments")
    info = await alice.client.get_comments_info(chat, [post.id])
    same([(each.post_id, each.comments_info.total_count) for each in info], [(post.id, 2)], "get_comments_info")
    fact("fetch_comments, get_comment, get_comments and get_comments_info see them")

    await bob.client.edit_comment(chat, post.id, made.id, "me as well")
    edited = await carol.next("edit", lambda message: message.id == made.id)
    same((edited.text, edited.post_id), ("me as well", post.id), "the comment edited")
    info = await alice.client.add_comment_reaction(chat, post.id, made.id, "🔥")
    same(info.total_count, 1, "add_comment_reaction")
    await alice.client.remove_comment_reaction(chat, post.id, made.id)
    await bob.client.delete_comment(chat, post.id, [made.id])
    same([each.id for each in await bob.client.fetch_comments(chat, post.id)], [answer.id], "after delete_comment")
    fact("comments are edited, reacted to and deleted")

    own = await bob.client.send_comment(chat, post.id, "and I")
    await own.edit("and so do I")
    edited = await carol.next("edit", lambda message: message.id == own.id)
    same((edited.text, edited.post_id), ("and so do I", post.id), "a comment that edits itself")
    same([(await own.react("🔥")).total_count, (await own.unreact()).total_count], [1, 0], "its reactions")
    below = [await own.reply("so I see"), await own.answer("well")]
    same([(each.sender, each.post_id) for each in below], [(bob.id, post.id)] * 2, "what is written below it")
    for each in (own, *below):
        await each.delete()
    same([each.id for each in await alice.client.fetch_comments(chat, post.id)], [answer.id], "after all of them are deleted")
    fact("a comment's own methods reach the comment, not the channel")

    await alice.client.block_comment_author(chat, post.id, [carol.id], answer.id)
    await refused(carol.client.send_comment(chat, post.id, "again"), "not.allowed")
    await alice.client.delete_user_comments(chat, post.id, carol.id, answer.id)
    same(await bob.client.fetch_comments(chat, post.id), [], "after delete_user_comments")
    fact("block_comment_author keeps somebody from commenting, delete_user_comments deletes what they wrote")

    await carol.client.subscribe_comments(chat, post.id, subscribe=False)
    last = await bob.client.send_comment(chat, post.id, "still here")
    await carol.silence("message", where=lambda message: message.id == last.id)
    fact("with subscribe=False nothing is told any more")
