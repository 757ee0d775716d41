"""Chats, their history, read marks, and who types."""

from __future__ import annotations

from cells import Room
from harness import check, now_ms, same

from with_pyromax.device import cell


@cell("Page through the history", short=True)
async def history(room: Room) -> None:
    carol = await room.person("carol")
    chat = room.alice.dialog(carol)
    sent = [await room.alice.client.send_message(chat, f"message {number}") for number in range(60)]
    ids = [message.message_id for message in sent]
    found: set[int] = set()
    anchor = sent[-1].time
    while True:
        page = await carol.client.get_chat_history(chat, backward=25, from_time=anchor)
        found |= {message.message_id for message in page}
        if len(page) < 25:
            break
        anchor = page[0].time
    same(sorted(found), ids, "messages of all pages")
    page, seen = await carol.client.get_chat_history(
        chat, backward=5, from_time=anchor + 3_600_000, get_chat=True
    )
    same(
        ([message.message_id for message in page], seen.id), (ids[-5:], chat), "the newest five, and the chat"
    )


@cell("The ids of a history alone", unserved=(49,))
async def history_ids(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "one")
    with room.unserved(room.alice, code=None):
        await room.alice.client.get_chat_history(room.chat, get_messages=False, from_time=now_ms() + 60_000)


@cell("Look at messages by id", short=True)
async def by_id(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "look")
    found = await room.bob.client.get_messages(room.chat, [sent.message_id, 1])
    same([(each.message_id, each.text) for each in found], [(sent.message_id, "look")], "messages by id")
    same((await room.bob.client.get_message(room.chat, sent.message_id)).text, "look", "one message")


@cell("List chats", short=True)
async def chats(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "newest")
    found = await room.bob.client.fetch_chats()
    same((found[0].id, found[0].last_message.text), (room.chat, "newest"), "the newest chat")
    check(found[0].new_messages > 0, "nothing is unread")


@cell("Look at a chat", short=True)
async def chat(room: Room) -> None:
    same((await room.bob.client.get_chat(room.chat)).id, room.chat, "the chat")
    same([each.id for each in await room.bob.client.get_chats([room.chat, 7])], [room.chat], "chats by id")


@cell("Move the read mark", short=True)
async def read(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "read me")
    state = await room.bob.client.read_message(room.chat, sent.message_id)
    same(state.unread, 0, "unread messages")
    told = await room.alice.next("read")
    same((told.chat_id, told.user_id), (room.chat, room.bob.id), "what alice is told")


@cell("Be told who types", short=True)
async def typing(room: Room) -> None:
    # The library has no method that reports typing.
    await room.alice.client.send_message(room.chat, "wait")
    await room.alice.witness.invoke(65, {"chatId": room.chat, "type": "TEXT"})
    told = await room.bob.next("typing")
    same((told.chat_id, told.user_id), (room.chat, room.alice.id), "what bob is told")
