"""Actions on a message."""

from __future__ import annotations

from cells import Line, Room
from harness import Failure, chat_info, check, same
from maxion import ParseMode
from maxion.raw.utils import Text

from with_maxion.device import cell
from with_maxion.groups import group


@cell("Send and receive text", short=True)
async def send(room: Room) -> None:
    alice, bob = room.alice, room.bob
    sent = await alice.client.send_message(room.chat, "hello")
    received = await bob.next("message")
    same((received.id, received.text, received.from_user.id), (sent.id, "hello", alice.id), "what bob gets")
    answer = await received.reply_text("hello yourself", quote=False)
    same((await alice.next("message")).id, answer.id, "what alice gets")
    await alice.silence("message")
    await bob.raw.send_message(room.chat, "by the raw interface")
    same((await alice.next("raw message")).text, "hello yourself", "the first push of the raw interface")
    same((await alice.next("raw message")).text, "by the raw interface", "the second one")
    await alice.next("any")


@cell("Notes to oneself", short=True)
async def notes(room: Room) -> None:
    note = await room.alice.client.send_message(0, "buy milk")
    seen = await room.alice.witness.next("message", lambda message: message.chat_id == 0)
    same((str(seen.id), seen.text), (note.id, "buy milk"), "the note on the other device")


@cell("Format text", short=True)
async def formatted(room: Room) -> None:
    sent = await room.alice.client.send_message(
        room.chat, "**bold** and [a link](https://example.org)", parse_mode=ParseMode.MARKDOWN
    )
    received = await room.bob.next("message")
    for message in (sent, received):
        same(message.text, "bold and a link", "the text")
        found = [(each.type.raw, each.offset, each.length) for each in message.entities]
        same(found, [("STRONG", 0, 4), ("LINK", 9, 6)], "the ranges")
    page = await room.bob.witness.client.fetch_history(room.chat, from_time=sent._raw["time"])
    same(page[-1].elements[1].attributes.url, "https://example.org", "the address for another client")
    await room.alice.client.send_message(room.chat, "<b>bold</b>", parse_mode=ParseMode.HTML)
    same((await room.bob.next("message")).entities[0].length, 4, "the range of HTML")


@cell("Format text after an emoji", fault=Line("maxion/raw/utils.py", 106, "len(value)"))
async def formatted_after_emoji(room: Room) -> None:
    sent = await room.alice.raw.send_message(room.chat, Text("🥁 ").bold("bold"))
    # Ranges count UTF-16 units, and the emoji has two; the library counts code points.
    with room.fault(Failure):
        same(sent.elements[0].from_, 3, "where the bold text begins")


@cell("Answer a message", short=True)
async def answer(room: Room) -> None:
    question = await room.alice.client.send_message(room.chat, "who drums?")
    await (await room.bob.next("message")).reply("I do")
    received = await room.alice.next("message")
    same(
        (received.reply_to_message_id, received.reply_to_message.text),
        (question.id, "who drums?"),
        "the answer",
    )
    await room.bob.raw.reply_message(room.chat, question.id, "again")
    same((await room.alice.next("message")).reply_to_message_id, question.id, "a raw answer")


@cell("Forward a message", short=True)
async def forward(room: Room) -> None:
    carol = await room.person("carol")
    original = await room.alice.client.send_message(room.chat, "the secret rhythm")
    chat = room.alice.dialog(carol)
    await room.alice.client.forward_messages(chat, room.chat, [original.id])
    same((await carol.next("message")).forward_from_message.text, "the secret rhythm", "what is carried")
    await room.alice.raw.forward_message(chat, room.chat, original.id)
    await room.alice.raw.forward_messages(chat, room.chat, [original.id])
    for _ in range(2):
        same((await carol.next("message")).forward_from_message.text, "the secret rhythm", "what is carried")


@cell("Edit a message", short=True)
async def edit(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "hallo")
    await room.alice.client.edit_message_text(room.chat, sent.id, "hello")
    edited = await room.bob.witness.next("edit", lambda message: message.text == "hello")
    same(str(edited.id), sent.id, "the edited message for another client")
    await room.alice.raw.edit_message(room.chat, sent.id, "hello!")
    same((await room.bob.client.get_messages(room.chat, sent.id)).text, "hello!", "the text in the end")


@cell("Be told of edits", fault=Line("maxion/raw/events.py", 79, "prevMessageId"))
async def told_of_edits(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "hallo")
    await room.bob.next("message")
    await room.alice.client.edit_message_text(room.chat, sent.id, "hello")
    pushed = await room.bob.next("raw message", lambda update: update.text == "hello")
    same((pushed.message.status, pushed.message.is_edited), ("EDITED", True), "the push")
    # The library recognises an edit by a key of the push instead of the message's status.
    with room.fault(Failure):
        check(pushed.is_edit, "it is reported as a new message")
    await room.bob.next("message", lambda message: message.text == "hello")


@cell("Delete for everybody, and be told", short=True)
async def delete_for_all(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "never mind")
    await room.alice.client.delete_messages(room.chat, [sent.id])
    gone = await room.bob.next("deleted")
    same((gone.chat_id, gone.message_ids), (room.chat, [sent.id]), "what bob is told")
    check(await room.bob.client.get_messages(room.chat, sent.id) is None, "the message is still there")
    sent = await room.alice.client.send_message(room.chat, "nor this")
    await room.alice.raw.delete_messages(room.chat, sent.id)
    sent = await room.alice.client.send_message(room.chat, "nor that")
    same(await room.alice.raw.try_delete(room.chat, [sent.id]), True, "whether it was deleted")
    same(await room.alice.raw.try_delete(7, [sent.id]), False, "whether it was deleted in another chat")


@cell("Delete for oneself alone", short=True)
async def delete_for_me(room: Room) -> None:
    sent = await room.bob.client.send_message(room.chat, "you do not want this")
    await room.alice.client.delete_messages(room.chat, [sent.id], revoke=False)
    check(await room.alice.raw.get_message(room.chat, sent.id) is None, "alice still has it")
    same((await room.bob.raw.get_message(room.chat, sent.id)).text, "you do not want this", "what bob has")
    await room.bob.silence("deleted")


@cell("Delete what was said in a span of time")
async def delete_range(room: Room) -> None:
    carol = await room.person("carol")
    chat = room.alice.dialog(carol)
    sent = await room.alice.client.send_message(chat, "one")
    time = sent._raw["time"]
    await room.alice.raw.delete_message_range(chat, time, time)
    for party in (room.alice, carol):
        check(await party.raw.get_message(chat, sent.id) is None, f"{party} still has it")


@cell("Delete what one member wrote")
async def delete_user_messages(room: Room) -> None:
    chat = await group(room, room.bob.id)
    mine = await room.alice.client.send_message(chat, "hello")
    sent = [await room.bob.client.send_message(chat, text) for text in ("one", "two")]
    await room.alice.raw.delete_user_messages(chat, room.bob.id)
    told = await room.bob.next("deleted")
    same(sorted(told.payload["messageIds"]), [int(each.id) for each in sent], "what bob is told")
    left = await room.bob.raw.get_messages(chat, [mine.id, *(each.id for each in sent)])
    same([each.id for each in left], [str(mine.id)], "messages that are left")


@cell("Share a contact")
async def contact(room: Room) -> None:
    await room.alice.raw.send_contact(room.chat, room.bob.id)
    received = await room.bob.next("message")
    same((received.media, received._raw.attaches[0].get("contactId")), ("CONTACT", room.bob.id), "the card")


@cell("Share a place")
async def place(room: Room) -> None:
    await room.alice.raw.send_location(room.chat, 59.93, 30.31)
    received = await room.bob.next("message")
    same((received.location.get("latitude"), received.location.get("longitude")), (59.93, 30.31), "the place")


@cell("Preview of a link")
async def preview(room: Room) -> None:
    # Without an operator's preview program there is no preview, and the reply is not an error.
    same(await room.alice.raw.get_link_preview("see https://example.org"), {"attachments": []}, "the preview")


@cell("Pin a message", short=True)
async def pin(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "read this")
    await room.alice.client.pin_chat_message(room.chat, sent.id)
    event = await room.bob.next("message", lambda message: message.media == "CONTROL")
    same(event._raw.attaches[0].get("event"), "pin", "the event")
    same((await room.bob.raw.get_chat(room.chat)).pinned_message.id, sent.id, "what is pinned")
    await room.alice.raw.pin_message(room.chat, sent.id, notify=False)


@cell("Take a pinned message off", short=True)
async def unpin(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "read this")
    for take_off in (room.alice.client.unpin_chat_message, room.alice.raw.unpin_message):
        await room.alice.client.pin_chat_message(room.chat, sent.id)
        await take_off(room.chat)
        check(not (await room.bob.raw.get_chat(room.chat)).pinned_message, "something is pinned still")


@cell("Hide what is pinned")
async def hide_pin(room: Room) -> None:
    await room.alice.raw.set_pin_visibility(room.chat, False)
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 134)
    check("hidePinned" in str(push.payload), f"the other device is told {push.payload}")
    await room.alice.raw.set_pin_visibility(room.chat, True)


@cell("React to a message", short=True)
async def react(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    received = await room.bob.next("message")
    info = await received.react("🥁")
    same((info.total, info.counters[0].count), (1, 1), "the counters")
    told = await room.alice.next("raw reactions")
    same((told.message_id, told.get("totalCount")), (sent.id, 1), "what alice is told")
    await room.alice.raw.set_reaction(room.chat, sent.id, "👍")
    found = (await room.bob.raw.get_reactions(room.chat, sent.id))["messagesReactions"][sent.id]
    same(found["totalCount"], 2, "reactions in the end")
    await room.bob.client.send_reaction(room.chat, sent.id, "👍")
    same(
        (await room.bob.raw.remove_reaction(room.chat, sent.id)).total,
        1,
        "reactions after one was taken back",
    )
    same((await room.alice.client.get_messages(room.chat, sent.id))._raw.reactions.total, 1, "in the message")


@cell("See which reaction is one's own", fault=Line("maxion/raw/types/base.py", 24, "dict(raw or {})"))
async def own_reaction(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    info = await room.bob.raw.set_reaction(room.chat, sent.id, "🥁")
    same(info["yourReaction"], "🥁", "the answer")
    with room.fault(ValueError):
        same(info.my_reaction.id, "🥁", "the own reaction")


@cell("Be told that a reaction was taken back")
async def unreact(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    await room.bob.client.send_reaction(room.chat, sent.id, "🥁")
    await room.alice.next("raw reactions", lambda update: update.get("totalCount") == 1)
    await room.bob.raw.remove_reaction(room.chat, sent.id)
    same((await room.alice.next("raw reactions")).get("totalCount"), 0, "what alice is told")


@cell("Who reacted")
async def who_reacted(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    await room.bob.client.send_reaction(room.chat, sent.id, "🥁")
    found = await room.alice.raw.get_detailed_reactions(room.chat, sent.id)
    same(
        [(each["userId"], each["reaction"]) for each in found["reactions"]],
        [(room.bob.id, "🥁")],
        "who reacted",
    )


POLL = {
    "_type": "POLL",
    "title": "Who drums?",
    "answers": [{"text": "Alice"}, {"text": "Bob"}],
    "settings": 4,
}


async def asked(room: Room) -> tuple[str, int]:
    """Sends a poll as a plain attachment: no method makes polls. Returns the message's and poll's ids."""
    sent = await room.alice.raw.send_message(room.chat, "", attaches=[POLL])
    return sent.id, (await room.bob.next("message", lambda message: message.id == sent.id)).poll.get("pollId")


@cell("Vote in a poll")
async def vote(room: Room) -> None:
    message, poll = await asked(room)
    state = await room.bob.raw.vote(room.chat, message, 2, poll_id=poll)
    same(state["state"]["total"], 1, "votes in the answer")
    await room.alice.next("message", lambda update: update.id == message)


@cell("Who voted, and polls as they are now")
async def voters(room: Room) -> None:
    message, poll = await asked(room)
    await room.bob.raw.vote(room.chat, message, [2], poll_id=poll)
    found = await room.alice.raw.get_voters(room.chat, message, 2, poll_id=poll)
    same([vote["userId"] for vote in found["votes"]], [room.bob.id], "who voted")
    asks = [{"messageId": message, "pollId": poll}]
    now = await room.alice.raw.get_poll_updates(room.chat, message, polls=asks)
    same(now["polls"][0]["state"]["total"], 1, "votes")


@cell("Save a draft and throw it away")
async def draft(room: Room) -> None:
    await room.alice.raw.save_draft(room.chat, "not yet")
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 152)
    same(push.payload["draft"]["text"], "not yet", "the draft on the other device")
    await room.alice.raw.discard_draft(room.chat)
    await room.alice.witness.next("push", lambda frame: frame.opcode == 153)


@cell("Confirm a delivery")
async def delivery(room: Room) -> None:
    await room.alice.raw.confirm_delivery("token")
    await room.alice.fence()
    same(room.alice.refusals, [], "what was refused")
    check(await chat_info(room.alice.witness, room.chat), "the chat is gone")
