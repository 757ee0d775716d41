"""Scenarios: a device or the server comes back after an absence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from harness import Device, World, chat_info, check, fact, history_ids, now_ms, same, scenario, signal_runner
from pymax import SyncOverrides
from pymax.protocol import Opcode

FULL = SyncOverrides(chats_sync=-1, contacts_sync=-1, drafts_sync=-1, presence_sync=-1)


@scenario
async def relogin(world: World) -> None:
    """A device that was away gets all changes: the login's list and the pages of opcode 53 equal the server's state."""
    alice, bob = await world.register("alice"), await world.register("bob")
    marks = (await bob.stored()).sync
    await bob.close()

    groups = await make_groups(alice, 70, [bob.id])
    await alice.client.send_message(alice.dialog(bob), "are you there?")
    bob = await world.again(bob)
    check((await bob.stored()).sync.chats_sync > marks.chats_sync, "the stored mark did not move")
    wanted = {**groups, alice.dialog(bob): "are you there?"}
    login = await bob.next("login")
    listed = {chat["id"]: chat for chat in login["chats"]}
    check(set(listed) <= set(wanted), f"the delta holds strangers: {set(listed) - set(wanted)}")
    newest_first(login["chats"], "the login's chats")
    rest = await all_pages(bob, login.get("chatMarker", 0)) if login.get("chatMarker") else {}
    same(last_texts(listed | rest), wanted, "login list and pages together")
    fact("after 71 new chats, the login's list and the pages from its chatMarker are all of them")

    same(last_texts(await all_pages(bob, now_ms())), wanted, "pages from now")
    same({chat.id for chat in await stock_pages(bob)}, set(wanted), "pages as the library's fetch_chats walks them")
    fact("so are the pages from now, by the reply's marker and as the library walks them")

    # Bob goes away once more. Five groups change, each in a different way.
    await bob.close()
    said, edited, deleted, marked, hidden = list(groups)[:5]
    newest = {chat: (await chat_info(alice, chat))["lastMessage"]["id"] for chat in list(groups)[:5]}
    sent = await alice.client.send_message(said, "news")
    await alice.client.edit_message(edited, newest[edited], "spelt right now")
    await alice.client.delete_message(deleted, [newest[deleted]], for_me=False)
    laptop = await world.another(bob, "laptop")
    await laptop.client.read_message(newest[marked], marked)
    await laptop.client.delete_message(hidden, [newest[hidden]], for_me=True)
    await laptop.close()
    created = await make_groups(alice, 1, [bob.id], start=500)
    wanted |= {said: "news", edited: "spelt right now", deleted: "", hidden: "", **created}  # CONTROL has no text

    bob = await world.again(bob)
    changed = {said, edited, deleted, marked, hidden, *created}
    same({chat.id for chat in bob.client.chats}, changed, "chats of the delta")
    login = await bob.next("login")
    delta = {chat["id"]: chat for chat in login["chats"]}
    same(last_texts(delta), {chat: wanted[chat] for chat in delta}, "last messages of the delta")
    same(delta[said]["lastMessage"]["id"], sent.id, "last message where somebody wrote")
    same(delta[edited]["lastMessage"]["status"], "EDITED", "status where somebody edited")
    same(delta[marked].get("newMessages", 0), 0, "unread where another own device read")
    check(delta[said]["newMessages"] > 0, "nothing unread where somebody wrote")
    fact("a delta is exactly the chats with a new message, an edit, a deletion, an own mark or newly made")

    pages = await all_pages(bob, now_ms())
    same(last_texts(pages), wanted, "all pages after the delta")
    same({i: pages[i] for i in delta}, delta, "the same chats in the delta and in the pages")
    tablet = await world.another(bob, "tablet")
    fresh = await tablet.next("login")
    everything = {c["id"]: c for c in fresh["chats"]} | await all_pages(tablet, fresh["chatMarker"])
    same(everything, pages, "a fresh login and its pages against the pages of the old device")
    fact("the list and the pages equal the truth, and what a fresh device is told")

    await tablet.close()
    bob = await world.again(bob)
    same(bob.client.chats, [], "chats when nothing changed")
    same(bob.client.contacts, [], "contacts when nothing changed")
    fact("when nothing changed, nothing is sent")


@scenario
async def chat_list(world: World) -> None:
    """SyncOverrides choose whether a login returns everything or only the changes."""
    alice, bob = await world.register("alice"), await world.register("bob")
    groups = await make_groups(alice, 120, [bob.id])
    stored = await world.again(bob, sync=FULL)
    login = await stored.next("login")
    newest_first(login["chats"], "the login's chats")
    rest = await all_pages(stored, login["chatMarker"])
    same(last_texts({chat["id"]: chat for chat in login["chats"]} | rest), groups, "everything")
    check(rest and len(rest) + len(login["chats"]) == len(groups), "a chat is both in the list and in the pages")
    fact("chats_sync=-1 brings the newest chats and pages of the rest, each chat once")

    same(last_texts(await all_pages(stored, now_ms(), count=7)), groups, "pages of seven")
    fact("pages of any size put together are the whole list, though many groups were made in one millisecond")

    bob = await world.again(stored)
    same(bob.client.chats, [], "chats after the marks moved")
    fact("without overrides the stored marks are used: nothing changed")

    mark = (await bob.stored()).sync.chats_sync
    chosen = list(groups)[5]
    await alice.client.send_message(chosen, "one more")
    bob = await world.again(bob)
    same([chat.id for chat in bob.client.chats], [chosen], "chats after one changed")
    bob = await world.again(bob, sync=SyncOverrides(chats_sync=mark))
    same([chat.id for chat in bob.client.chats], [chosen], "chats with the older mark given again")
    bob = await world.again(bob, sync=SyncOverrides(chats_sync=now_ms() + 86_400_000))
    same(bob.client.chats, [], "chats with a mark in the future")
    fact("a mark given again brings the same change again; one in the future counts as now")


@scenario
async def reconnect(world: World) -> None:
    """The library connects and logs in again after the server restarts."""
    alice = await world.register("alice")
    bob = await world.register("bob")
    chat = alice.dialog(bob)
    before = await alice.client.send_message(chat, "before")
    await bob.next("message")
    settings = {"reconnect": True, "reconnect_delay": 0.2}
    alice, bob = [await world.later(device, **settings) for device in (alice, bob)]
    held = [before]
    for device in (alice, bob):
        device.run()
        await device.next("start")

    for order in ("restart", "kill"):
        last = await alice.client.send_message(chat, f"last before {order}")
        await bob.next("message", lambda m: m.id == last.id)
        held.append(last)
        signal_runner(order)
        for device in (alice, bob):
            await device.next("start")
        fact(f"after the server's {order} both clients are back by themselves, without a code")

        same(await history_ids(bob, chat, last), [m.id for m in held], f"history after the {order}")
        fact(f"everything acknowledged before the {order} is there")

        answer = await bob.client.send_message(chat, f"first after {order}")
        message = await alice.next("message", lambda m: m.id == answer.id)
        same(answer.prev_message_id, last.id, "the id before the first message")
        check(answer.id > last.id, f"message ids fell after the {order}")
        held.append(answer)
        fact("messages and pushes flow again, and ids keep rising")


async def make_groups(owner: Device, count: int, members: list[int], start: int = 0) -> dict[int, str]:
    """Creates many groups at once; returns the text of the last message of each."""

    async def make(number: int) -> tuple[int, str]:
        control = {"_type": "CONTROL", "event": "new", "chatType": "CHAT", "title": f"Group {number}", "userIds": members}
        created = await owner.invoke(Opcode.MSG_SEND, {"message": {"cid": 10_000 + number, "attaches": [control]}})
        text = f"welcome to {number}"
        message = {"cid": 20_000 + number, "text": text, "elements": [], "attaches": []}
        await owner.invoke(Opcode.MSG_SEND, {"chatId": created["chatId"], "message": message})
        return created["chatId"], text

    return dict(await asyncio.gather(*[make(number) for number in range(start, start + count)]))


async def all_pages(device: Device, marker: int, count: int = 40) -> dict[int, dict[str, Any]]:
    """Returns all chats from this marker on, page by page. No chat may come twice."""
    chats: dict[int, dict[str, Any]] = {}
    while marker:
        page = await device.invoke(Opcode.CHATS_LIST, {"marker": marker, "count": count})
        newest_first(page["chats"], "a page of chats")
        doubles = {chat["id"] for chat in page["chats"]} & set(chats)
        check(not doubles, f"chats on two pages: {doubles}")
        check(page["chats"] or not page.get("marker"), "an empty page with a marker")
        chats |= {chat["id"]: chat for chat in page["chats"]}
        marker = page.get("marker", 0)
    return chats


async def stock_pages(device: Device) -> Iterable[Any]:
    """Returns all chats as a client without markers reads them. A page starts at the last page's oldest chat."""
    found: dict[int, Any] = {}
    marker = None
    while True:
        page = await device.client.fetch_chats(marker)
        fresh = [chat for chat in page if chat.id not in found]
        if not fresh:
            return found.values()
        found |= {chat.id: chat for chat in fresh}
        marker = min(chat.last_event_time for chat in page)


def last_texts(chats: dict[int, dict[str, Any]]) -> dict[int, str]:
    return {i: (chat.get("lastMessage") or {}).get("text", "") for i, chat in chats.items()}


def newest_first(chats: list[dict[str, Any]], what: str) -> None:
    times = [chat["lastEventTime"] for chat in chats]
    check(times == sorted(times, reverse=True), f"{what} are not newest first: {times}")
