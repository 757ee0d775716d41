"""Actions on a message."""

from __future__ import annotations

from datetime import timedelta

from cells import Line, Room
from harness import Failure, check, same
from pyromax.models import Poll, PollAnswer, PollFlags

from with_pyromax.device import cell


@cell("Send and receive text", short=True)
async def send(room: Room) -> None:
    alice, bob = room.alice, room.bob
    same(await alice.client.get_chat_id(alice.id, bob.id), room.chat, "the id of the dialog")
    sent = await alice.client.send_message(room.chat, "hello")
    received = await bob.next("message", lambda message: message.text == "hello")
    same((received.message_id, received.sender_id), (sent.message_id, alice.id), "what bob gets")
    answer = await received.answer("hello yourself")
    same((await alice.next("message")).message_id, answer.message_id, "what alice gets")


@cell("Notes to oneself", short=True)
async def notes(room: Room) -> None:
    note = await room.alice.client.send_message(0, "buy milk")
    seen = await room.alice.witness.next("message", lambda message: message.chat_id == 0)
    same((seen.id, seen.text), (note.message_id, "buy milk"), "the note on the other device")


@cell("Format text", short=True)
async def formatted(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "<strong>bold</strong> and <emphasized>not</emphasized>")
    received = await room.bob.next("message")
    same(received.text, "bold and not", "the text")
    found = [(each["type"], each["from"], each["length"]) for each in received.elements]
    same(found, [("STRONG", 0, 4), ("EMPHASIZED", 9, 3)], "the ranges")


@cell("Format text after an emoji", fault=Line("pyromax/utils/html_parser.py", 85, "len(s)"))
async def formatted_after_emoji(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "🥁 <strong>bold</strong>")
    received = await room.bob.next("message")
    # Ranges count UTF-16 units, and the emoji has two; the library counts code points.
    with room.fault(Failure):
        same(received.elements[0]["from"], 3, "where the bold text begins")


@cell("Answer a message", short=True)
async def answer(room: Room) -> None:
    question = await room.alice.client.send_message(room.chat, "who drums?")
    await (await room.bob.next("message")).reply("I do")
    received = await room.alice.next("reply")
    same((received.link.type, received.link.message.message_id), ("REPLY", question.message_id), "the answer")
    same(received.link.message.text, "who drums?", "the text of the question")


@cell("Forward a message", short=True)
async def forward(room: Room) -> None:
    carol = await room.person("carol")
    original = await room.alice.client.send_message(room.chat, "the secret rhythm")
    await original.forward(room.alice.dialog(carol))
    await room.alice.client.forward_message(original.message_id, room.alice.dialog(carol), room.chat)
    for _ in range(2):
        same((await carol.next("forward")).link.message.text, "the secret rhythm", "what is carried")


@cell("Edit a message", short=True)
async def edit(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "hallo")
    edited = await room.alice.client.edit_message(room.chat, sent.message_id, "hello")
    same((edited.text, edited.status), ("hello", "EDITED"), "the answer")
    same((await room.bob.client.get_message(room.chat, sent.message_id)).text, "hello", "the text in the end")


@cell("Be told of edits", short=True)
async def told_of_edits(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "hallo")
    await sent.edit("hello")
    edited = await room.bob.next("edited", lambda message: message.message_id == sent.message_id)
    same(edited.text, "hello", "what bob is told")


@cell("Delete for everybody, and be told", short=True)
async def delete_for_all(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "never mind")
    await room.alice.answered(room.alice.client.delete_messages(room.chat, [sent.message_id]))
    gone = await room.bob.next("delete")
    same((gone.chat_id, gone.message_ids), (room.chat, [sent.message_id]), "what bob is told")
    same(await room.bob.client.get_message(room.chat, sent.message_id), None, "the message for bob")


@cell("Delete for oneself alone", short=True)
async def delete_for_me(room: Room) -> None:
    sent = await room.bob.client.send_message(room.chat, "you do not want this")
    await room.alice.answered(room.alice.client.delete_messages(room.chat, [sent.message_id], for_me=True))
    same(await room.alice.client.get_message(room.chat, sent.message_id), None, "the message for alice")
    same(
        (await room.bob.client.get_message(room.chat, sent.message_id)).text,
        "you do not want this",
        "for bob",
    )


@cell("Send a message later")
async def send_later(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "on my way", send_at=timedelta(seconds=1))
    waiting = await room.alice.client.get_chat_history(room.chat, item_type="DELAYED", from_time=sent.time)
    same([message.message_id for message in waiting], [sent.message_id], "what waits")
    received = await room.bob.next("message", lambda message: message.text == "on my way")
    check(received.time >= sent.delayed_attributes.time_to_fire, "it was sent too early")


@cell("Pin a message", short=True)
async def pin(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "read this")
    await room.alice.answered(room.alice.client.pin_message(room.chat, sent.message_id))
    pinned = (await room.bob.witness.invoke(48, {"chatIds": [room.chat]}))["chats"][0]["pinnedMessage"]
    same(pinned["id"], sent.message_id, "what is pinned")


@cell("React to a message", short=True)
async def react(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    received = await room.bob.next("message", lambda message: message.message_id == sent.message_id)
    info = await received.react("🥁")
    same((info.total_count, info.your_reaction), (1, "🥁"), "the answer")
    told = await room.alice.next("reaction")
    same((int(told.message_id), told.total_count), (sent.message_id, 1), "what alice is told")
    await room.alice.client.add_reaction(room.chat, sent.message_id, "👍")
    found = (await room.bob.client.get_reactions(room.chat, [sent.message_id]))[str(sent.message_id)]
    same((found.total_count, found.your_reaction), (2, "🥁"), "the reactions")
    left = await room.bob.client.remove_reaction(room.chat, sent.message_id)
    same((left.total_count, left.your_reaction), (1, None), "reactions after one was taken back")
    unknown = room.alice.client.add_reaction(room.chat, sent.message_id, "x")
    await room.alice.refused(unknown, "error.message.like.unknown.reaction")


@cell("See which reaction is one's own")
async def own_reaction(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    await room.bob.client.add_reaction(room.chat, sent.message_id, "🥁")
    for party, own in ((room.alice, None), (room.bob, "🥁")):
        found = (await party.client.get_reactions(room.chat, [sent.message_id]))[str(sent.message_id)]
        same((found.total_count, found.your_reaction), (1, own), f"the reactions for {party}")


@cell(
    "Be told that a reaction was taken back",
    fault=Line("pyromax/mapping/envelope/v11/translate/ToDTO/UpdateTranslate.py", 202, '"status": "ADD"'),
)
async def unreact(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    await room.bob.client.add_reaction(room.chat, sent.message_id, "🥁")
    await room.alice.next("reaction", lambda reaction: reaction.total_count == 1)
    await room.bob.client.remove_reaction(room.chat, sent.message_id)
    told = await room.alice.next("reaction", lambda reaction: reaction.total_count == 0)
    # The library reports every push 155 as an added reaction.
    with room.fault(Failure):
        same(told.status, "REMOVE", "what happened")


QUESTION = Poll(
    title="Who drums?",
    answers=[PollAnswer(text="Alice"), PollAnswer(text="Bob")],
    settings=PollFlags.FLAG_SETTINGS_REVOTE,
)


@cell("Ask a poll", short=True)
async def ask(room: Room) -> None:
    poll = await room.alice.client.create_poll(QUESTION)
    await room.alice.client.send_message(room.chat, attaches=[poll])
    received = await room.bob.next("message", lambda message: bool(message.attaches))
    same(received.attaches[0].title, "Who drums?", "the question")


@cell(
    "Vote in a poll",
    fault=Line("pyromax/mapping/envelope/v11/mixins/message.py", 885, "self.bind_api_instance(poll_state)"),
)
async def vote(room: Room) -> None:
    poll = await room.alice.client.create_poll(QUESTION)
    sent = await room.alice.client.send_message(room.chat, attaches=[poll])
    number = sent.attaches[0].poll_id
    # The library raises after the server has already counted the vote.
    with room.fault(AttributeError):
        await room.bob.client.vote_poll(room.chat, sent.message_id, number, [2])
    asks = {"chatId": room.chat, "polls": [{"messageId": sent.message_id, "pollId": number}]}
    now = await room.alice.witness.invoke(306, asks)
    same(now["polls"][0]["state"]["total"], 1, "votes")
