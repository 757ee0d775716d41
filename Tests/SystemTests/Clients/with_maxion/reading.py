"""Chats, their history, read marks, and who types."""

from __future__ import annotations

from cells import Line, Room
from harness import Failure, chat_info, check, same

from with_maxion.device import cell, listed


@cell("Page through the history", short=True)
async def history(room: Room) -> None:
    carol = await room.person("carol")
    chat = room.alice.dialog(carol)
    sent = [(await room.alice.client.send_message(chat, f"message {number}")).id for number in range(60)]
    # Each page begins with the last message of the previous page, and the library returns that message twice.
    found = [message.id for message in await listed(carol.raw.iter_history(chat, chunk=25))]
    same(sorted(set(found)), sent, "messages of all pages")
    newest = await listed(carol.client.get_chat_history(chat, limit=10))
    same(len(newest), 10, "messages of ten")
    page = await carol.raw.get_history(chat, limit=5, from_time=newest[0]._raw["time"] + 60_000)
    same([message.id for message in page], sent[-5:], "the newest five")


@cell("Look at messages by id", short=True)
async def by_id(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "look")
    found = await room.bob.client.get_messages(room.chat, [sent.id, "1"])
    same([(each.id, each.text) for each in found], [(sent.id, "look")], "messages by id")
    same([each.id for each in await room.bob.raw.get_messages(room.chat, sent.id)], [sent.id], "raw messages")
    same((await room.bob.raw.get_message(room.chat, sent.id)).text, "look", "one message")


@cell("Search the messages of a chat")
async def search(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "paradiddle")
    found = await room.bob.client.search_messages("paradiddle", chat_id=room.chat)
    same([str(each["message"]["id"]) for each in found["result"]], [sent.id], "what is found")
    raw = await room.bob.raw.search_messages("paradiddle", chat_id=room.chat)
    same(raw["result"], found["result"], "what is found by the raw interface")
    found = await listed(room.bob.raw.iter_search_messages("paradiddle", chat_id=room.chat))
    same(len(found), 1, "what is found page by page")
    await room.bob.raw.touch_search(query="paradiddle")


@cell("Search the messages of all chats")
async def search_all(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "ratamacue")
    found = await room.bob.client.search_messages("ratamacue")
    same([str(each["message"]["id"]) for each in found["result"]], [sent.id], "what is found")


@cell("Search the own chats", fault=Line("maxion/raw/methods/chats.py", 448, 'payload.get("chats")'))
async def search_chats(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "flamacue")
    with room.fault(Failure):
        check(
            await room.bob.raw.search_chats("flamacue"), "the library reads `chats`, the answer is `result`"
        )


@cell("List chats", short=True)
async def chats(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "newest")
    dialogs = await listed(room.bob.client.get_dialogs())
    same((dialogs[0].chat.id, dialogs[0].top_message.text), (room.chat, "newest"), "the newest chat")
    same(dialogs[0].unread_messages_count > 0, True, "whether it is unread")
    page, marker = await room.bob.raw.get_chats(count=1)
    same(([each.id for each in page], marker is None), ([room.chat], len(dialogs) == 1), "a page of one")
    everything = await listed(room.bob.raw.iter_chats(chunk=2))
    same([each.id for each in everything], [each.chat.id for each in dialogs], "pages of two")
    same(len(await room.bob.raw.get_all_chats()), len(dialogs), "all chats")


@cell("Look at a chat", short=True)
async def chat(room: Room) -> None:
    same((await room.bob.client.get_chat(room.chat)).id, room.chat, "the chat")
    same((await room.bob.raw.get_chat(room.chat)).type, "DIALOG", "its type")
    same([each.id for each in await room.bob.raw.get_chats_info([room.chat, 7])], [room.chat], "chats by id")
    same(
        (await room.bob.raw.set_personal_config(room.chat, hide_non_contact_bar=True)).id,
        room.chat,
        "once more",
    )


@cell("Move the read mark", short=True)
async def read(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "read me")
    await room.bob.client.read_chat_history(room.chat, sent.id)
    told = await room.alice.next("raw mark")
    same((told.chat_id, told.get("userId")), (room.chat, room.bob.id), "what alice is told")
    same((await chat_info(room.bob.witness, room.chat)).get("newMessages", 0), 0, "unread messages")
    await room.bob.raw.read_message(room.chat, sent.id)
    await room.bob.raw.mark_chat(room.chat, message_id=sent.id)


@cell("Mark a chat as unread")
async def unread(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "later")
    await room.bob.raw.mark_unread(room.chat)
    check((await chat_info(room.bob.witness, room.chat))["newMessages"] > 0, "nothing is unread")


@cell("Show that one types", short=True)
async def show_typing(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "wait")
    await room.alice.client.send_chat_action(room.chat)
    await room.alice.raw.send_typing(room.chat)
    for _ in range(2):
        same((await room.bob.witness.next("typing")).user_id, room.alice.id, "who types")


@cell("Be told who types", short=True)
async def typing(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "wait")
    await room.alice.client.send_chat_action(room.chat)
    told = await room.bob.next("raw typing")
    same((told.chat_id, told.user_id), (room.chat, room.alice.id), "what bob is told")


@cell("How many have read a message")
async def views(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "look")
    await room.bob.client.read_chat_history(room.chat, sent.id)
    found = await room.alice.raw.get_message_stats(room.chat, sent.id)
    same(found["stats"][sent.id]["views"], 1, "views")


@cell("Messages of a chat by kind of attachment")
async def media(room: Room) -> None:
    sent = await room.alice.raw.send_contact(room.chat, room.bob.id)
    found = await room.bob.raw.get_chat_media(room.chat, attach_types=["CONTACT"], backward=1)
    same([message.id for message in found], [sent.id], "messages with a contact")


@cell("Mute a chat")
async def mute(room: Room) -> None:
    await room.alice.raw.mute_chat(room.chat)
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 134)
    same(
        push.payload["config"]["chats"][str(room.chat)]["dontDisturbUntil"],
        -1,
        "what the other device is told",
    )
    await room.alice.raw.unmute_chat(room.chat)
    await room.alice.witness.next("push", lambda frame: frame.opcode == 134)


@cell("Clear a chat")
async def clear(room: Room) -> None:
    carol = await room.person("carol")
    chat = room.alice.dialog(carol)
    sent = await room.alice.client.send_message(chat, "one")
    await room.alice.raw.clear_chat(chat)
    same(await listed(room.alice.raw.iter_history(chat)), [], "alice's history")
    same((await carol.raw.get_message(chat, sent.id)).text, "one", "what carol has")


@cell("Hide a chat")
async def hide(room: Room) -> None:
    carol = await room.person("carol")
    chat = room.alice.dialog(carol)
    await room.alice.client.send_message(chat, "one")
    await room.alice.raw.hide_chat(chat)
    same((await chat_info(room.alice.witness, chat))["status"], "HIDDEN", "status for alice")
    same((await chat_info(carol.witness, chat))["status"], "ACTIVE", "status for carol")
    await room.alice.raw.hide_chat(chat, False)
    same((await chat_info(room.alice.witness, chat))["status"], "ACTIVE", "status for alice in the end")


@cell("Open and close a chat")
async def subscribe(room: Room) -> None:
    same(await room.alice.raw.subscribe_chat(room.chat), {}, "the answer")
    same(await room.alice.raw.unsubscribe_chat(room.chat), {}, "the answer")
    await room.bob.client.send_message(room.chat, "all the same")
    await room.alice.next("message", lambda message: message.text == "all the same")
