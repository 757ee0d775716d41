"""What the server does not serve."""

from __future__ import annotations

from cells import Room
from harness import check, same
from pyromax.mapping.envelope.v11.payloads.models import FileMappingModel
from pyromax.models import FileAttachment, PhotoAttachment, VideoAttachment

from with_pyromax.device import cell


@cell("Send photos", unserved=(80,))
async def photos(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.upload_file(b"photo", PhotoAttachment)


@cell("Set the own photo", unserved=(80,))
async def own_photo(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.change_profile("Alice", photo=b"photo")


@cell("Send videos", unserved=(82,))
async def videos(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.upload_file(b"video", VideoAttachment)


@cell("Send files", unserved=(87,))
async def files(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.upload_file(b"file", FileAttachment)


@cell("Download what was sent", unserved=(88,))
async def downloads(room: Room) -> None:
    file = FileMappingModel(type="FILE", file_id=1, message_id="1", chat_id=room.chat, uploaded=True)
    with room.unserved(room.alice):
        await room.alice.client.download_file(file)


@cell("Comment on posts", unserved=(94,))
async def comments(room: Room) -> None:
    alice = room.alice
    chat, _ = await alice.client.create_group("Drum news", [room.bob.id], chat_type="CHANNEL")
    post = (await alice.client.send_message(chat.id, "tonight")).message_id
    with room.unserved(alice):
        await alice.client.delete_user_comments(chat.id, post, room.bob.id, 1)
    for call in (
        alice.client.set_channel_comments(chat.id, True),
        alice.client.send_comment(chat.id, post, "first"),
        alice.client.fetch_comments(chat.id, post),
        alice.client.get_comment(chat.id, post, 1),
        alice.client.get_comments(chat.id, post, [1]),
        alice.client.edit_comment(chat.id, post, 1, "second"),
        alice.client.delete_comment(chat.id, post, [1]),
        alice.client.add_comment_reaction(chat.id, post, 1, "👍"),
        alice.client.remove_comment_reaction(chat.id, post, 1),
    ):
        await alice.refused(call, "proto.payload")
    await alice.refused(alice.client.block_comment_author(chat.id, post, [room.bob.id], 1), "not.allowed")
    await alice.client.subscribe_comments(chat.id, post)
    same((await alice.client.get_comments_info(chat.id, [post]))[0].comments_info, None, "comments")
    check(alice.client.me, "the connection is gone")
