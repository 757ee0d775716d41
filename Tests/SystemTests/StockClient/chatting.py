"""Scenarios: dialogs, groups, and what can be done with a message."""

from __future__ import annotations

from typing import Any

from harness import World, chat_info, check, fact, history_ids, later_than, refused, same, scenario
from pymax import ApiError
from pymax.formatting.markdown import Formatter
from pymax.protocol import Opcode


@scenario
async def dialog(world: World) -> None:
    """Two people write to each other."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    same(chat, alice.id ^ bob.id, "id of the dialog")

    sent = await alice.client.send_message(chat, "hello")
    same((sent.chat_id, sent.sender, sent.text), (chat, alice.id, "hello"), "the reply's message")
    same(sent.id >> 16, sent.time, "time inside the message id")
    fact("sending to the xor of both ids creates the dialog and answers the stored message")

    for device in (bob, laptop):
        message = await device.next("message")
        same((message.id, message.chat_id, message.sender, message.text), (sent.id, chat, alice.id, "hello"), str(device))
        push = await device.next("push", lambda frame: frame.opcode == Opcode.NOTIF_MESSAGE)
        check(push.seq < 256, f"a push has sequence number {push.seq}: some clients read its high byte as a command")
    await alice.silence("message", "edit", "delete")
    fact("push 128 reaches the peer and the sender's other device once, and not the sending one")

    answer = await bob.client.send_message(chat, "hello yourself")
    same(answer.prev_message_id, sent.id, "prevMessageId of the reply to 64")
    for device in (alice, laptop):
        message = await device.next("message")
        same((message.id, message.mark is not None, message.ttl), (answer.id, True, False), "id, mark and ttl")
        same(message.unread, 1, f"unread messages of {device}")
    check(answer.id > sent.id and answer.time > sent.time, "ids or times do not rise")
    fact("the answer arrives with what is unread; ids and times rise; prevMessageId of the reply names the message before")

    for device, other in ((alice, bob), (bob, alice)):
        seen = await device.client.get_chat(chat)
        same((seen.id, seen.type, seen.status), (chat, "DIALOG", "ACTIVE"), f"the chat for {device}")
        same(set(seen.participants), {alice.id, bob.id}, f"participants for {device}")
        same(seen.last_message.id, answer.id, f"last message for {device}")
        same(seen.last_message.chat_id, chat, f"chat id inside the last message for {device}")
    fact("both see the same dialog with the last message inside")

    got = await bob.client.get_messages(chat, [answer.id, sent.id, sent.id + 1])
    same(sorted(message.id for message in got), [sent.id, answer.id], "messages by id")
    fact("messages are found by id, unknown ids left out")

    await refused(bob.client.send_message(-1, "x"), "chat.not.found")
    await refused(bob.client.fetch_history(1 << 50), "chat.not.found")
    fact("chats that do not exist, or not for the caller, are chat.not.found")


@scenario
async def saved_messages(world: World) -> None:
    """Chat 0 is a person's own notebook."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    note = await alice.client.send_message(0, "buy milk")
    same((note.chat_id, note.text), (0, "buy milk"), "the note")
    message = await laptop.next("message")
    same((message.id, message.chat_id), (note.id, 0), "the note on the other device")
    fact("a note sent to chat 0 reaches the own other device")

    other = await bob.client.send_message(0, "nothing")
    same([m.id for m in await alice.client.fetch_history(0, from_time=later_than(note))], [note.id], "alice's notes")
    same([m.id for m in await bob.client.fetch_history(0, from_time=later_than(other))], [other.id], "bob's notes")
    await laptop.silence("message")
    fact("chat 0 is another chat for everybody")


@scenario
async def group_of_three(world: World) -> None:
    """A group is made through the library's create_group, and all three write in it."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    created = await alice.client.create_group("Drummers", [bob.id, carol.id])
    check(created is not None, "create_group returned None: the reply to 64 lacks the chat")
    chat, control = created
    check(chat.id < 0, f"the id of a group is {chat.id}, not negative")
    same((chat.type, chat.status, chat.title, chat.owner), ("CHAT", "ACTIVE", "Drummers", alice.id), "the new group")
    same(chat.participants_count, 3, "participants of the new group")
    same((control.chat_id, control.attaches[0].type, control.attaches[0].event), (chat.id, "CONTROL", "new"), "its first message")
    fact("create_group answers the chat and its CONTROL message")

    for device in (bob, carol):
        update = await device.next("chat")
        same((update.id, update.title, update.owner), (chat.id, "Drummers", alice.id), f"push 135 at {device}")
        first = await device.next("message")
        same((first.id, first.attaches[0].event), (control.id, "new"), f"push 128 at {device}")
    fact("both invited people get push 135 with the chat and push 128 with the CONTROL message")

    people = [alice, bob, carol]
    for writer in people:
        sent = await writer.client.send_message(chat.id, f"from {writer.id}")
        for reader in people:
            if reader is not writer:
                message = await reader.next("message")
                same((message.id, message.chat_id, message.sender), (sent.id, chat.id, writer.id), f"push at {reader}")
        await writer.silence("message")
    fact("what each of the three writes reaches the other two, once")

    outsider = await world.register("outsider")
    await refused(outsider.client.send_message(chat.id, "let me in"), "chat.not.found")
    await refused(outsider.client.fetch_history(chat.id), "chat.not.found")
    fact("somebody outside can neither write nor read, nor learn that it exists")


@scenario
async def reply(world: World) -> None:
    """A message answers another one."""
    alice, bob = await world.register("alice"), await world.register("bob")
    chat = alice.dialog(bob)
    question = await alice.client.send_message(chat, "who drums?")
    await bob.next("message")

    history = await bob.client.fetch_history(chat, from_time=later_than(question))
    answer = await history[-1].reply("I do")
    link_is(answer, "REPLY", chat, question.id, "who drums?")
    fact("a message of the history can be answered; the reply embeds the original")

    link_is(await alice.next("message"), "REPLY", chat, question.id, "who drums?")
    page = await alice.client.fetch_history(chat, from_time=later_than(answer))
    link_is(page[-1], "REPLY", chat, question.id, "who drums?")
    fact("push 128 and the history embed it too")

    await question.edit("who drums best?")
    page = await bob.client.fetch_history(chat, from_time=later_than(answer))
    link_is(page[-1], "REPLY", chat, question.id, "who drums best?")
    fact("an edit of the original shows in the answer")

    await question.delete()
    page = await bob.client.fetch_history(chat, from_time=later_than(answer))
    same([m.id for m in page], [answer.id], "what is left")
    same(page[0].link, None, "the link to a message that is gone")
    fact("an original deleted for all is gone from the answer as well")


@scenario
async def forward(world: World) -> None:
    """A message is forwarded to another chat."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    original = await alice.client.send_message(alice.dialog(bob), "the secret rhythm")
    received = await bob.next("message")

    carried = await received.forward(bob.dialog(carol))
    same((carried.chat_id, carried.sender), (bob.dialog(carol), bob.id), "where the forward went")
    link_is(carried, "FORWARD", 0, original.id, "the secret rhythm")
    same(carried.link.message.sender, alice.id, "sender of the original")
    fact("a forward holds the original message; from a dialog it does not tell which one")

    link_is(await carol.next("message"), "FORWARD", 0, original.id, "the secret rhythm")
    fact("the receiver sees it though she is no member of the original chat")

    await original.delete()
    page = await carol.client.fetch_history(bob.dialog(carol), from_time=later_than(carried))
    link_is(page[-1], "FORWARD", 0, original.id, "the secret rhythm")
    fact("a forward is a snapshot: deleting the original does not touch it")

    group, _ = await alice.client.create_group("Drummers", [bob.id])
    shout = await alice.client.send_message(group.id, "everybody!")
    carried = await bob.client.forward_message(bob.dialog(carol), shout.id, source_chat_id=group.id)
    link_is(carried, "FORWARD", group.id, shout.id, "everybody!")
    fact("a forward from a group names the group")

    strange = carol.client.forward_message(bob.dialog(carol), original.id, source_chat_id=alice.dialog(bob))
    await refused(strange, "chat.not.found", "not.found")
    fact("what one cannot read one cannot forward")


def link_is(message: Any, kind: str, chat: int, original: int, text: str) -> None:
    check(message.link is not None, f"message {message.id} carries no link")
    found = (message.link.type, message.link.chat_id, message.link.message.id, message.link.message.text)
    same(found, (kind, chat, original, text), "the link")


@scenario
async def formatting(world: World) -> None:
    """Formatting ranges travel unchanged, counted in UTF-16 units."""
    alice, bob = await world.register("alice"), await world.register("bob")
    chat = alice.dialog(bob)
    markdown = "🥁 **bold** _italic_ __under__ ~~gone~~ `mono` [site](https://example.org/a?b=c) и ещё **жирный**\n> quote"
    text, wanted = Formatter.format_markdown(markdown)
    wanted = [(e.type, e.from_, e.length, e.attributes.url if e.attributes else None) for e in wanted]

    sent = await alice.client.send_message(chat, markdown)
    received = await bob.next("message")
    page = await bob.client.fetch_history(chat, from_time=later_than(sent))
    for where, message in (("reply", sent), ("push", received), ("history", page[-1])):
        same(message.text, text, f"text in the {where}")
        same(ranges(message), wanted, f"elements in the {where}")
    fact("eight ranges after an emoji arrive as sent, in the reply, the push and the history")

    await sent.edit("now **plain** but for one")
    edited = await bob.next("edit")
    same(ranges(edited), [("STRONG", 4, 5, None)], "elements after an edit")
    fact("an edit replaces the ranges")


def ranges(message: Any) -> list[tuple[str, int, int | None, str | None]]:
    # The library stores `from` in the extra fields of its model instead of `from_`.
    return [
        (e.type, (e.model_extra or {}).get("from", 0), e.length, e.attributes.url if e.attributes else None)
        for e in message.elements
    ]


@scenario
async def edit(world: World) -> None:
    """A message is edited."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    sent = await alice.client.send_message(chat, "hallo")
    last = await alice.client.send_message(chat, "last")
    for device in (bob, laptop):
        await device.next("message", lambda m: m.id == last.id)

    edited = await sent.edit("hello")
    same((edited.id, edited.text, edited.status, edited.time), (sent.id, "hello", "EDITED", sent.time), "the reply")
    check("updateTime" in (edited.model_extra or {}), "an edited message carries no updateTime")
    for device in (bob, laptop):
        message = await device.next("edit")
        same((message.id, message.chat_id, message.text), (sent.id, chat, "hello"), f"push 128 EDITED at {device}")
    await alice.silence("edit")
    fact("push 128 with status EDITED reaches everybody but the editing device; id and time stay")

    page = await bob.client.fetch_history(chat, from_time=later_than(last))
    same([(m.id, m.text) for m in page], [(sent.id, "hello"), (last.id, "last")], "history")
    fact("the history holds the new text in the old place")

    await refused(bob.client.edit_message(chat, sent.id, "mine now"), "not.allowed")
    await refused(alice.client.edit_message(chat, sent.id + 1, "nothing there"), "not.found")
    fact("only the author edits; a message that is not there is not.found")


@scenario
async def delete_for_me(world: World) -> None:
    """Deleting for oneself hides a message from oneself only."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    first, second, third = [await bob.client.send_message(chat, text) for text in ("one", "two", "three")]
    for device in (alice, laptop):
        await device.next("message", lambda m: m.id == third.id)

    check(await alice.client.delete_message(chat, [second.id], for_me=True), "not accepted")
    event = await laptop.next("delete")
    same((event.chat_id, event.message_ids), (chat, [second.id]), "push 142 at the own other device")
    await bob.silence("delete")
    await alice.silence("delete")
    fact("push 142 reaches the own other device and nobody else")

    for device in (alice, laptop):
        same(await history_ids(device, chat, third), [first.id, third.id], f"history of {device}")
        same(await device.client.get_messages(chat, [second.id]), [], f"the message by id for {device}")
    same(await history_ids(bob, chat, third), [first.id, second.id, third.id], "the peer's history")
    fact("it is gone for the deleter everywhere, and there for the peer")

    await alice.client.delete_message(chat, [third.id], for_me=True)
    same((await chat_info(alice, chat))["lastMessage"]["id"], first.id, "last message for the deleter")
    same((await chat_info(bob, chat))["lastMessage"]["id"], third.id, "last message for the peer")
    fact("the chat list shows each the newest message they still have")


@scenario
async def delete_for_all(world: World) -> None:
    """Deleting for all removes a message everywhere."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    first, second, third = [await alice.client.send_message(chat, text) for text in ("one", "two", "three")]
    for device in (bob, laptop):
        await device.next("message", lambda m: m.id == third.id)

    check(await third.delete(), "not accepted")
    for device in (bob, laptop):
        event = await device.next("delete")
        same((event.chat_id, event.message_ids), (chat, [third.id]), f"push 142 at {device}")
    await alice.silence("delete")
    fact("push 142 reaches the peer and the own other device, not the deleting one")

    for device in (alice, bob, laptop):
        same(await history_ids(device, chat, third), [first.id, second.id], f"history of {device}")
        same(await device.client.get_messages(chat, [third.id]), [], f"the message by id for {device}")
        same((await chat_info(device, chat))["lastMessage"]["id"], second.id, f"last message for {device}")
    fact("it is gone from history, look-up and chat list of everybody")

    fourth = await bob.client.send_message(chat, "four")
    same(fourth.prev_message_id, third.id, "prevMessageId after a deletion")
    fact("prevMessageId still names the message that is no longer visible")

    own, strange = fourth.id, first.id
    try:
        answer = await bob.invoke(Opcode.MSG_DELETE, {"chatId": chat, "messageIds": [own, strange], "forMe": False})
        same((answer["messageIds"], answer.get("failedMessageIds")), ([own], [strange]), "a mixed deletion")
    except ApiError as error:
        same(error.error, "not.allowed", "the error for deleting what others wrote")
        same(await history_ids(alice, chat, fourth), [first.id, second.id, fourth.id], "history after the refusal")
    check(first.id in await history_ids(alice, chat, fourth), "bob deleted alice's message for all")
    fact("what others wrote cannot be deleted for all in a dialog")


@scenario
async def group_life(world: World) -> None:
    """A group after its creation: people join, leave and get rights, and the title changes."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    group, _ = await alice.client.create_group("Drummers", [bob.id])
    await bob.next("chat")
    await bob.next("message")

    chat = await alice.client.invite_users_to_group(group.id, [carol.id], show_history=False)
    same((chat.id, chat.participants_count), (group.id, 3), "the group after an invitation")
    for device in (bob, carol):
        same((await device.next("chat")).id, group.id, f"push 135 at {device}")
        same((await device.next("message")).attaches[0].event, "add", f"push 128 at {device}")
    same(len(await carol.client.fetch_history(group.id)), 1, "what somebody sees who was added without history")
    fact("somebody is invited without history, and everybody hears of it")

    members, marker = await alice.client.get_chat_members(group.id)
    same([member.contact.id for member in members], sorted([alice.id, bob.id, carol.id]), "members of the group")
    same(marker, 0, "marker of the last page")
    fact("get_chat_members lists them")

    await alice.client.change_group_profile(group.id, "Percussion", "every Sunday")
    same((await bob.next("chat")).title, "Percussion", "push 135 after a new title")
    same((await bob.next("message")).attaches[0].event, "title", "push 128 after a new title")
    await alice.client.change_group_settings(group.id, only_admin_can_add_member=True)
    await bob.next("chat")
    outsider = await world.register("outsider")
    await refused(bob.client.invite_users_to_group(group.id, [outsider.id]), "not.allowed")
    fact("title, description and settings change; a member without rights is refused")

    await alice.client.remove_users_from_group(group.id, [carol.id], clean_msg_period=0)
    await carol.next("chat")
    await carol.next("message")
    await carol.next("chat")
    await refused(carol.client.fetch_history(group.id), "chat.not.found")
    fact("who is removed hears of it and is outside")

    await bob.client.leave_group(group.id)
    await refused(bob.client.fetch_history(group.id), "chat.not.found")
    fact("leave_group leaves")

    link = (await alice.client.rework_invite_link(group.id)).link
    same((await outsider.client.resolve_group_by_link(link)).title, "Percussion", "the group behind the link")
    joined = await outsider.client.join_group(link)
    same((joined.id, joined.participants_count), (group.id, 2), "the group that was joined")
    fact("an invitation is made, looked at and followed")

    await alice.client.delete_chat(group.id)
    await refused(outsider.client.fetch_history(group.id), "chat.not.found")
    fact("delete_chat ends it for everybody")
