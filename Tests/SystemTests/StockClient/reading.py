"""Scenarios: read marks, history, and who is there."""

from __future__ import annotations

import asyncio
from typing import Any

from harness import World, chat_info, check, fact, history_ids, later_than_id, now_ms, refused, same, scenario
from pymax.protocol import Opcode


@scenario
async def read_marks(world: World) -> None:
    """Reading moves a mark that the others see."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(bob, "laptop")
    chat = alice.dialog(bob)
    first, second, third = [await alice.client.send_message(chat, text) for text in ("one", "two", "three")]
    await bob.next("message", lambda m: m.id == third.id)
    same((await chat_info(bob, chat))["newMessages"], 3, "unread before reading")
    same((await chat_info(alice, chat)).get("newMessages", 0), 0, "unread of the sender")
    fact("three messages from the peer are three unread, own ones none")

    state = await bob.invoke(Opcode.CHAT_MARK, {"type": "READ_MESSAGE", "chatId": chat, "messageId": first.id, "mark": first.time})
    same(state["unread"], 2, "unread after reading the first of three")
    event = await alice.next("read")
    same((event.chat_id, event.user_id, event.mark, event.set_as_unread), (chat, bob.id, state["mark"], False), "push 130")
    await laptop.next("read")
    fact("a mark at the first message leaves two unread")

    state = await bob.client.read_message(third.id, chat)
    same(state.unread, 0, "unread after reading the last")
    check(third.time <= state.mark <= now_ms() + 1000, f"mark {state.mark} is not between {third.time} and now")
    event = await alice.next("read")
    same((event.chat_id, event.user_id, event.mark, event.set_as_unread), (chat, bob.id, state.mark, False), "push 130")
    event = await laptop.next("read")
    same((event.user_id, event.mark), (bob.id, state.mark), "push 130 at the own other device")
    await bob.silence("read")
    fact("read_message answers unread and mark; push 130 reaches the peer and the own other device")

    for device in (alice, bob):
        seen = await chat_info(device, chat)
        same(seen["participants"][str(bob.id)], state.mark, f"bob's mark in the chat for {device}")
    same((await chat_info(bob, chat)).get("newMessages", 0), 0, "unread after reading")
    fact("the chat shows the mark to both")

    back = await bob.invoke(Opcode.CHAT_MARK, {"type": "READ_MESSAGE", "chatId": chat, "messageId": first.id, "mark": first.time})
    same((back["unread"], back["mark"]), (0, state.mark), "a mark moved back by READ_MESSAGE")
    future = await bob.invoke(Opcode.CHAT_MARK, {"type": "READ_MESSAGE", "chatId": chat, "mark": 2_000_000_000_000})
    check(future["mark"] <= now_ms() + 1000, f"a mark in the future was stored as {future['mark']}")
    fact("READ_MESSAGE never lowers a mark, and one in the future counts as now")

    unread = await bob.invoke(Opcode.CHAT_MARK, {"type": "SET_AS_UNREAD", "chatId": chat, "messageId": first.id, "mark": first.time})
    check(unread["unread"] >= 1, f"unread after SET_AS_UNREAD is {unread['unread']}")
    event = await laptop.next("read", lambda e: e.set_as_unread)
    same((event.user_id, event.chat_id), (bob.id, chat), "push 130 at the own other device")
    await alice.silence("read", where=lambda e: e.set_as_unread)
    fact("SET_AS_UNREAD lowers it and tells the own other device only")

    sent = await bob.client.send_message(chat, "my answer")
    same((await chat_info(bob, chat)).get("newMessages", 0), 0, "unread after answering")
    await alice.next("message", lambda m: m.id == sent.id)
    fact("writing in a chat reads it")


@scenario
async def history(world: World) -> None:
    """A thousand messages are read in pages, without a gap and without a duplicate."""
    alice, bob = await world.register("alice"), await world.register("bob")
    chat = alice.dialog(bob)
    count, page_size = 1000, 40
    first = await alice.client.send_message(chat, text_of(0))

    in_flight = asyncio.Semaphore(25)
    base = now_ms()

    async def send(number: int) -> int:
        async with in_flight:
            writer = alice if number % 2 == 0 else bob
            message = {"cid": base + number, "text": text_of(number), "elements": [], "attaches": []}
            answer = await writer.invoke(Opcode.MSG_SEND, {"chatId": chat, "message": message})
            return answer["message"]["id"]

    ids = [first.id, *await asyncio.gather(*[send(number) for number in range(1, count)])]
    same(len(set(ids)), count, "different ids")
    texts = {message_id: text_of(number) for number, message_id in enumerate(ids)}
    truth = sorted(ids)
    fact(f"{count} messages by two people, 25 in flight, have {count} ids")

    for reader, writer, own in ((alice, bob, 0), (bob, alice, 1)):
        wanted = [i for i in truth if ids.index(i) % 2 != own]
        pushed = [await reader.next("message") for _ in wanted]
        same([m.id for m in pushed], wanted, f"pushes at {reader}, in order")
        await reader.silence("message")
    fact("each person was pushed the other's messages, all of them, once, in the order of their ids")

    for reader in (alice, bob):
        newest = (await chat_info(reader, chat))["lastMessage"]
        same(newest["id"], truth[-1], "last message of the chat")
        anchor = max(now_ms(), newest["time"])
        pages: list[list[Any]] = []
        while True:
            page = await reader.client.fetch_history(chat, backward=page_size, from_time=anchor)
            check(0 < len(page) <= page_size, f"a page of {len(page)}")
            rising([m.id for m in page], f"page {len(pages)} of {reader}")
            check(all(m.chat_id == chat for m in page), "a message of the history lacks its chat id")
            if pages:
                overlap = {m.id for m in page} & {m.id for seen in pages for m in seen}
                same(overlap, {pages[-1][0].id}, f"overlap of page {len(pages)} with what is held")
                same(page[-1].id, pages[-1][0].id, "the pivot comes last")
            pages.append(page)
            if len(page) < page_size:
                break
            anchor = page[0].time
        whole = [m for page in reversed(pages) for m in (page if page is pages[0] else page[:-1])]
        same([m.id for m in whole], truth, f"all pages of {reader} put together")
        check(all(m.text == texts[m.id] for m in whole), "a text differs from what was sent")
        same(len(pages), 26, "pages of 40 with one message shared")  # 40 + 24 x 39 = 976, and 24 + the pivot
    fact("backwards, 26 pages of 40 overlap in exactly the pivot and hold every message once, in order")

    held = [truth[0]]
    while True:
        page = await bob.client.fetch_history(chat, forward=page_size, backward=0, from_time=held[-1] >> 16)
        held += [m.id for m in page]
        if len(page) < page_size:
            break
    same(held, truth, "all pages forwards")
    fact("forwards, the pages join without overlap")

    middle = truth[count // 2]
    page = await bob.client.fetch_history(chat, forward=5, backward=5, from_time=middle >> 16)
    at = truth.index(middle)
    same([m.id for m in page], truth[at - 4 : at + 6], "five up to the anchor and five after it")
    fact("around an anchor, it belongs to the messages before")

    newest = await bob.client.fetch_history(chat, backward=3, from_time=now_ms() + 86_400_000)
    same([m.id for m in newest], truth[-3:], "a page from tomorrow")
    fact("an anchor in the future means the newest")

    await alice.client.delete_message(chat, [truth[-2]], for_me=True)
    page = await alice.client.fetch_history(chat, backward=page_size, from_time=later_than_id(truth[-1]))
    same([m.id for m in page], truth[-41:-2] + truth[-1:], "a page with a message deleted")
    fact("a deleted message is left out and the page is full all the same")

    for number, wanted in ((30, 31), (500, 200)):
        page = await alice.client.fetch_history(chat, backward=500, from_time=truth[number] >> 16)
        same([m.id for m in page], truth[number - wanted + 1 : number + 1], f"up to 500 messages before {number}")
    answer = await alice.invoke(Opcode.CHAT_HISTORY, {"chatId": chat, "from": truth[500] >> 16, "backward": 5})
    check("more" not in answer, "a client that named no capability was sent `more`")
    fact("a page holds at most 200, the ones nearest to the anchor; nothing new is sent to a stock client")


def text_of(number: int) -> str:
    """Returns a short text, or a long one for every tenth number, so that pages of these texts are compressed."""
    return f"message {number}" if number % 10 else f"message {number}: " + "la la la drum " * 60


@scenario
async def typing(world: World) -> None:
    """Typing is shown to the others."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    sent = await bob.client.send_message(chat, "well?")
    for device in (alice, laptop):
        await device.next("message")

    same(await alice.invoke(Opcode.MSG_TYPING, {"chatId": chat, "type": "TEXT"}), {}, "the reply to 65")
    event = await bob.next("typing")
    same((event.chat_id, event.user_id), (chat, alice.id), "push 129")
    await alice.silence("typing")
    fact("push 129 reaches the peer, not the typing device")

    same(await history_ids(bob, chat, sent), [sent.id], "history after typing")
    fact("nothing is stored")


@scenario
async def presence(world: World) -> None:
    """Coming and going is shown to dialog partners."""
    alice, bob = await world.register("alice"), await world.register("bob")
    stranger = await world.register("stranger")
    await alice.client.send_message(alice.dialog(bob), "see you")
    await (await bob.next("message")).answer("bye")
    await alice.next("message")

    await alice.close()
    event = await bob.next("presence", lambda e: e.user_id == alice.id and e.presence.status != 1)
    check(abs(event.presence.seen - now_ms() // 1000) < 60, f"seen is {event.presence.seen}, not seconds of now")
    bob.forget()
    fact("push 132 tells the dialog partner that somebody went, with `seen` in seconds")

    alice = await world.again(alice)
    event = await bob.next("presence", lambda e: e.user_id == alice.id)
    same(event.presence.status, 1, "status of somebody who came")
    fact("push 132 tells that somebody came, with status 1")

    await stranger.silence("presence", where=lambda e: e.user_id != stranger.id)
    fact("somebody without a dialog with them hears nothing")


@scenario
async def contacts(world: World) -> None:
    """People are found by id and by phone."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    found = await alice.client.fetch_users([bob.id, carol.id, 1 << 52])
    same([user.id for user in found], [bob.id, carol.id], "users by id")
    same([user.names[0].first_name for user in found], ["Bob", "Carol"], "their names")
    fact("users are found by id, in the order asked, unknown ids left out")

    for phone in (bob.phone, bob.phone.removeprefix("+")):
        user = await alice.client.search_by_phone(phone)
        same((user.id, user.names[0].first_name), (bob.id, "Bob"), f"the user with phone {phone}")
    fact("a user is found by phone, with and without a plus")

    await refused(alice.client.search_by_phone(world.phone()), "user.not.found", "not.found")
    fact("a phone nobody has is user.not.found")


def rising(values: list[int], what: str) -> None:
    check(all(a < b for a, b in zip(values, values[1:])), f"{what} does not rise: {values}")
