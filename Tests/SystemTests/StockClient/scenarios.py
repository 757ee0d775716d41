"""An unmodified public client (`maxapi-python==2.5.0`) against a running server, as dialogues.

    python scenarios.py HOST:PORT CODES_FILE [SCENARIO ...]      without names: all of them, one after the other
    python scenarios.py --list                                   their names

HOST:PORT is a server without TLS started with `--login-codes file:CODES_FILE`. Each scenario brings its own people, so
they are independent of each other and of what the server already holds; all of them together need more login codes than
one address gets in an hour (limit `maxLoginCodesPerAddress`). A scenario prints one line for each fact it verified; the
first fact that does not hold ends it with a readable reason and exit status 1. A line `@restart` or `@kill` asks whoever
started the script to restart the server on the same port and the same data, gracefully or by SIGKILL.

What the library has no method for is sent with `app.invoke` or read with `on_raw`:

    opcode             what for                                                  scenario
    1   PING           to prove silence, and as the only request before login    all; without_methods
    5   LOG            telemetry (the library sends it after 15 to 90 s only)    without_methods
    8   LOGIN2         the library sends it only when a flag of LOGIN asks       without_methods
    16  PROFILE        a known number that is not served answers `proto.opcode`  without_methods
    19  LOGIN          `chatMarker` is dropped by the library: read by on_raw    relogin, chat_list
    48  CHAT_INFO      `get_chat` answers from its cache                         wherever a chat is looked at twice
    49  CHAT_HISTORY   `more` is dropped by the library                          history
    50  CHAT_MARK      SET_AS_UNREAD, and a mark of one's own choice             read_marks
    53  CHATS_LIST     `count`, and the reply's `marker`                         relogin, chat_list
    64  MSG_SEND       many groups or messages in flight; `userId`; attaches     history, relogin, chat_list,
                       CONTACT, LOCATION, SHARE; the same `cid` again            without_methods
    65  MSG_TYPING     the library only listens to 129                           typing
    66  MSG_DELETE     `failedMessageIds`                                        delete_for_all
    75  CHAT_SUBSCRIBE the library never sends it                                without_methods
    128 as a request   the acknowledgement another client sends                  without_methods
    303 MSG_DELIVERY   receipts of official apps                                 without_methods
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from harness import Device, Failure, LoginCodes, World, check, fact, now_ms, refused, same, signal_runner
from pymax import ApiError, AuthFlow, SyncOverrides
from pymax.auth.models import AuthResult
from pymax.formatting.markdown import Formatter
from pymax.protocol import Opcode

SCENARIOS: dict[str, Callable[[World], Awaitable[None]]] = {}

#: How long one scenario may take, in seconds.
SCENARIO_DEADLINE = 240

FULL = SyncOverrides(chats_sync=-1, contacts_sync=-1, drafts_sync=-1, presence_sync=-1)


def scenario(function: Callable[[World], Awaitable[None]]) -> Callable[[World], Awaitable[None]]:
    SCENARIOS[function.__name__] = function
    return function


# Signing in


@scenario
async def registration(world: World) -> None:
    """A new phone registers."""
    alice = await world.register("alice")
    same(alice.id > 0, True, "a new user's id is positive")
    name = alice.client.me.contact.names[0]
    same((name.first_name, name.last_name), ("Alice", "Testova"), "the name given at registration")
    fact("a new phone with a registration_config becomes an account with the name given")

    digits = alice.phone.removeprefix("+")
    check(str(alice.client.me.contact.phone) == digits, f"own phone is {alice.client.me.contact.phone}, not {digits}")
    fact("one's own profile carries the phone, as digits without a plus")

    same(alice.client.chats, [], "chats of a new account")
    stored = await alice.stored()
    check(abs(stored.sync.chats_sync - now_ms()) < 60_000, f"the first mark is {stored.sync.chats_sync}")
    check(
        stored.sync.chats_sync == stored.sync.contacts_sync == stored.sync.drafts_sync == stored.sync.presence_sync,
        f"marks differ: {stored.sync}",
    )
    fact("the first login brings no chats and a time for all four marks")

    stranger = world.device(world.phone(), "stranger")
    try:
        await stranger.connect()
    except RuntimeError as error:
        check("RegistrationConfig" in str(error), f"unexpected refusal: {error}")
    else:
        raise Failure("an unknown phone was logged in without registering")
    fact("an unknown phone is offered registration, not a login")

    bob = await world.register("bob")
    check(bob.id != alice.id, "two phones share a user id")
    fact("two phones are two users")


@scenario
async def login_by_code(world: World) -> None:
    """A known phone logs in by code on another device."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    same(laptop.id, phone.id, "user id on the second device")
    fact("a known phone logs in by code without registering, as the same user")

    check((await laptop.stored()).token != (await phone.stored()).token, "two devices share a token")
    fact("each device has its own token")

    await phone.invoke(Opcode.PING, {"interactive": True})
    fact("the first device stays connected")


@scenario
async def wrong_code(world: World) -> None:
    """A wrong code is refused, and too many of them burn the code."""
    alice = await world.register("alice")

    class Codes:
        """Answers the code with its last digit changed."""

        async def get_code(self, phone: str) -> str:
            return wrong(await world.codes.get_code(phone))

    from pymax import SmsAuthFlow

    hasty = world.device(alice.phone, "hasty", auth_flow=SmsAuthFlow(Codes()))
    await refused(hasty.connect(), "error.code.wrong", "auth.invalid.code")
    fact("a wrong code is refused with error.code.wrong")

    class Retrying(AuthFlow):
        """Types a wrong code `misses` times and then the right one."""

        def __init__(self, misses: int) -> None:
            self.misses = misses

        async def authenticate(self, app: Any) -> AuthResult:
            start = await app.api.auth.request_code(alice.phone)
            code = await world.codes.get_code(alice.phone)
            same(len(code), start.code_length, "digits of the code")
            for _ in range(self.misses):
                await refused(app.api.auth.send_code(start.token, wrong(code)), "error.code.wrong", "error.code.expired")
            return AuthResult(token=(await app.api.auth.send_code(start.token, code)).login_token)

    patient = world.device(alice.phone, "patient", auth_flow=Retrying(misses=1))
    await patient.connect()
    same(patient.id, alice.id, "user id after a wrong and a right code")
    fact("after a wrong code the right one still logs in, with the same code request")

    guesser = world.device(alice.phone, "guesser", auth_flow=Retrying(misses=5))
    await refused(guesser.connect(), "error.code.expired", "auth.blocked")
    fact("after five wrong codes even the right one is refused")


def wrong(code: str) -> str:
    return code[:-1] + str((int(code[-1]) + 1) % 10)


@scenario
async def dead_token(world: World) -> None:
    """A dead token is refused as the library expects, and it signs in again by code."""
    nobody = world.device(world.phone(), "nobody", token="no-such-token", persist_session=False)
    await nobody.connect_refused()
    fact("a token that never was is refused with login.token and FAIL_LOGIN_TOKEN")

    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    dead = (await laptop.stored()).token
    await phone.client.close_all_sessions()
    await laptop.closed_by_server()

    later = await world.later(laptop, relogin=True)
    later.run()
    started = asyncio.ensure_future(later.next("start"))
    await later.past_refusal(started)
    await started
    same(later.id, phone.id, "user id after signing in again")
    check((await later.stored()).token != dead, "the dead token is still stored")
    fact("start() on a dead token forgets it and logs in by a fresh code")


@scenario
async def logout(world: World) -> None:
    """Logging out kills the token."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    check(await laptop.client.logout(), "logout was not accepted")
    await laptop.closed_by_server()
    fact("logout is answered and the connection closed")

    await (await world.later(laptop)).connect_refused()
    fact("its token is dead afterwards")

    await phone.invoke(Opcode.PING, {"interactive": True})
    same(len(await phone.client.get_sessions()), 1, "sessions left")
    fact("the other device is untouched")


@scenario
async def sessions(world: World) -> None:
    """Signed-in devices are listed, and all others closed."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    tablet = await world.another(phone, "tablet")

    listed = await phone.client.get_sessions()
    same(len(listed), 3, "sessions listed")
    same([session.current for session in listed].count(True), 1, "sessions that are the asking one")
    for session in listed:
        for key in ("client", "info", "location", "time"):
            check(key in session.model_dump(), f"a session lacks {key}: {session}")
    fact("all three devices are listed, with exactly one as the current one")

    before = (await phone.stored()).token
    check(await phone.client.close_all_sessions(), "the reply to closing sessions had no token")
    await laptop.closed_by_server()
    await tablet.closed_by_server()
    fact("closing the others ends their connections at once")

    for other in (laptop, tablet):
        await (await world.later(other)).connect_refused()
    fact("their tokens are dead")

    same(len(await phone.client.get_sessions()), 1, "sessions left")
    same((await phone.stored()).token, before, "own token after closing the others")
    phone = await world.again(phone)
    fact("the asking device stays connected and its token good")


# Chats


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
        same((message.id, message.prev_message_id), (answer.id, sent.id), "id and the id before it")
    check(answer.id > sent.id and answer.time > sent.time, "ids or times do not rise")
    fact("the answer arrives; ids and times rise; prevMessageId names the message before")

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
    """A message is carried to another chat."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    original = await alice.client.send_message(alice.dialog(bob), "the secret rhythm")
    received = await bob.next("message")

    carried = await received.forward(bob.dialog(carol))
    same((carried.chat_id, carried.sender), (bob.dialog(carol), bob.id), "where the forward went")
    link_is(carried, "FORWARD", alice.dialog(bob), original.id, "the secret rhythm")
    same(carried.link.message.sender, alice.id, "sender of the original")
    fact("a forward names the original chat and holds the original message")

    link_is(await carol.next("message"), "FORWARD", None, original.id, "the secret rhythm")
    fact("the receiver sees it though she is no member of the original chat")

    await original.delete()
    page = await carol.client.fetch_history(bob.dialog(carol), from_time=later_than(carried))
    link_is(page[-1], "FORWARD", None, original.id, "the secret rhythm")
    fact("a forward is a snapshot: deleting the original does not touch it")

    strange = carol.client.forward_message(bob.dialog(carol), original.id, source_chat_id=alice.dialog(bob))
    await refused(strange, "chat.not.found", "not.found")
    fact("what one cannot read one cannot forward")


def link_is(message: Any, kind: str, chat: int | None, original: int, text: str) -> None:
    """The link's kind, chat (None: the reader is no member of it, so its id means nothing) and original."""
    check(message.link is not None, f"message {message.id} carries no link")
    found = message.link
    same((found.type, found.message.id, found.message.text), (kind, original, text), "the link")
    check(chat is None or found.chat_id == chat, f"chat of the link: found {found.chat_id}, wanted {chat}")


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
    # The library reads `from` into the extra fields of its model, not into `from_`.
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
    """A thousand messages are paged without a gap and without a double."""
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
        before = dict(zip(truth[1:], truth))
        check(all(m.prev_message_id == before.get(m.id) for m in pushed), f"prevMessageId of a push at {reader} skips")
        await reader.silence("message")
    fact("each person was pushed the other's messages, all of them, once, in the order of their ids")

    for reader in (alice, bob):
        newest = (await chat_info(reader, chat))["lastMessage"]
        same(newest["id"], truth[-1], "last message of the chat")
        anchor = max(now_ms(), newest["time"])
        pages: list[list[Any]] = []
        while True:
            page = await reader.client.fetch_history(chat, backward=page_size, from_time=anchor)
            check(page, "an empty page before the beginning")
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

    few = await alice.invoke(Opcode.CHAT_HISTORY, {"chatId": chat, "from": truth[30] >> 16, "backward": 200, "forward": 0})
    same((len(few["messages"]), bool(few.get("more"))), (31, False), "messages and `more` at the beginning")
    many = await alice.invoke(Opcode.CHAT_HISTORY, {"chatId": chat, "from": truth[500] >> 16, "backward": 200, "forward": 0})
    same((len(many["messages"]), many.get("more")), (200, True), "messages and `more` in the middle")
    fact("`more` tells whether there is more, though stock clients do not read it")


def text_of(number: int) -> str:
    """Mostly short; every tenth long enough that pages of them go out compressed."""
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
    await bob.next("message")

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


# Coming back


@scenario
async def relogin(world: World) -> None:
    """A device that was away gets what changed: the login's list and the pages of opcode 53 equal the truth."""
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

    # Away again; a few of them change, each in another way.
    await bob.close()
    said, edited, deleted, marked = list(groups)[:4]
    sent = await alice.client.send_message(said, "news")
    draft = await alice.client.send_message(edited, "nwes")
    await draft.edit("news, spelt right")
    gone = await alice.client.send_message(deleted, "not for you")
    await gone.delete()
    laptop = await world.another(bob, "laptop")
    seen = (await chat_info(laptop, marked))["lastMessage"]
    await laptop.client.read_message(seen["id"], marked)
    await laptop.close()
    created = await make_groups(alice, 1, [bob.id], start=500)
    wanted |= {said: "news", edited: "news, spelt right", **created}

    bob = await world.again(bob)
    same({chat.id for chat in bob.client.chats}, {said, edited, deleted, marked, *created}, "chats of the delta")
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
    """SyncOverrides choose between everything and what changed."""
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
    """The library finds its way back after the server restarts."""
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
        same(message.prev_message_id, last.id, "the id before the first message")
        check(answer.id > last.id, f"message ids fell after the {order}")
        held.append(answer)
        fact("messages and pushes flow again, and ids keep rising")


# The rest


@scenario
async def without_methods(world: World) -> None:
    """What other clients of the family send and this library has no method for."""
    alice, bob = await world.register("alice"), await world.register("bob")
    chat = alice.dialog(bob)

    first = await alice.invoke(Opcode.MSG_SEND, {"userId": bob.id, "message": {"cid": 1, "text": "by user id"}})
    same(first["chatId"], chat, "chat of a message sent by user id")
    await bob.next("message")
    fact("64 with userId writes into the dialog")

    again = await alice.invoke(Opcode.MSG_SEND, {"chatId": chat, "message": {"cid": 1, "text": "something else"}})
    same(again["message"], first["message"], "the message answered to the same cid")
    await bob.silence("message", "edit")
    fact("64 with the same cid answers the first message and pushes nothing")

    attaches: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"_type": "CONTACT", "contactId": bob.id}, {"contactId": bob.id}),
        ({"_type": "LOCATION", "latitude": 59.93, "longitude": 30.31}, {"latitude": 59.93, "longitude": 30.31}),
        ({"_type": "SHARE", "url": "https://example.org/drum"}, {"url": "https://example.org/drum"}),
    ]
    for number, (attach, wanted) in enumerate(attaches):
        await alice.invoke(Opcode.MSG_SEND, {"chatId": chat, "message": {"cid": 100 + number, "attaches": [attach]}})
        received = await bob.next("message")
        found = received.attaches[0].model_dump(by_alias=True)
        same(found["_type"], attach["_type"], "type of the attachment")
        same({key: found.get(key) for key in wanted}, wanted, f"fields of {attach['_type']}")
    fact("CONTACT, LOCATION and SHARE arrive as the library reads them")

    for opcode, payload in (
        (Opcode.LOG, {"events": [{"type": "NAV", "event": "OPEN", "time": now_ms(), "userId": alice.id, "params": {}}]}),
        (Opcode.CHAT_SUBSCRIBE, {"chatId": chat, "subscribe": True}),
        (Opcode.MSG_DELIVERY, {"chatId": chat, "messageId": first["message"]["id"]}),
        (Opcode.NOTIF_MESSAGE, {"chatId": chat, "messageId": str(first["message"]["id"])}),
    ):
        same(await alice.invoke(opcode, payload), {}, f"the reply to {opcode.name}")
    fact("5, 75, 303 and 128 as a request are answered with an empty map")

    second = await alice.invoke(Opcode.LOGIN2, {"needProfile": True, "contactsSync": 0})
    same(second["profile"]["contact"]["id"], alice.id, "profile of 8")
    same(second["contacts"], second["contactInfos"], "the two names of the contacts of 8")
    check(bob.id in [user["id"] for user in second["contacts"]], "the dialog partner is not among the contacts")
    fact("8 answers the profile and the contacts under both names")

    await refused(alice.invoke(Opcode.PROFILE, {"firstName": "A"}), "proto.opcode")
    await refused(alice.invoke(999, {}), "proto.opcode")
    fact("known numbers that are not served, and unknown ones, are proto.opcode")

    await alice.client.send_message(chat, "x" * 4000)
    await bob.next("message", lambda m: len(m.text) == 4000)
    error = await refused(alice.client.send_message(chat, "x" * 4001), "proto.payload")
    check("/message/text" in error.message and "4001" in error.message, f"unhelpful message: {error.message!r}")
    fact("4,000 units of text pass; 4,001 are refused with the field and the limit named")

    class Impatient(AuthFlow):
        async def authenticate(self, app: Any) -> AuthResult:
            await refused(app.invoke(Opcode.CHATS_LIST, {"marker": now_ms()}), "proto.state")
            await app.invoke(Opcode.PING, {"interactive": True})
            start = await app.api.auth.request_code(alice.phone)
            code = await world.codes.get_code(alice.phone)
            return AuthResult(token=(await app.api.auth.send_code(start.token, code)).login_token)

    await world.device(alice.phone, "impatient", auth_flow=Impatient()).connect()
    fact("before login, PING is answered and anything else is proto.state")


# Looking at chats


async def chat_info(device: Device, chat: int) -> dict[str, Any]:
    """The chat as the server has it now."""
    chats = (await device.invoke(Opcode.CHAT_INFO, {"chatIds": [chat]}))["chats"]
    same(len(chats), 1, f"chats answered for {chat}")
    return chats[0]


async def history_ids(device: Device, chat: int, newest: Any) -> list[int]:
    page = await device.client.fetch_history(chat, backward=200, from_time=later_than(newest))
    return [message.id for message in page]


def later_than(message: Any) -> int:
    """An anchor for a page with this message in it.

    The library's own default is its clock; a chat that was written to faster than once a millisecond is ahead of it.
    """
    return max(now_ms(), message.time)


def later_than_id(message_id: int) -> int:
    return max(now_ms(), message_id >> 16)


async def make_groups(owner: Device, count: int, members: list[int], start: int = 0) -> dict[int, str]:
    """Many groups at once. Answers the text of the last message of each."""

    async def make(number: int) -> tuple[int, str]:
        control = {"_type": "CONTROL", "event": "new", "chatType": "CHAT", "title": f"Group {number}", "userIds": members}
        created = await owner.invoke(Opcode.MSG_SEND, {"message": {"cid": 10_000 + number, "attaches": [control]}})
        text = f"welcome to {number}"
        message = {"cid": 20_000 + number, "text": text, "elements": [], "attaches": []}
        await owner.invoke(Opcode.MSG_SEND, {"chatId": created["chatId"], "message": message})
        return created["chatId"], text

    return dict(await asyncio.gather(*[make(number) for number in range(start, start + count)]))


async def all_pages(device: Device, marker: int, count: int = 40) -> dict[int, dict[str, Any]]:
    """Every chat from here on, by the markers the server answers. No chat may come twice."""
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
    """Every chat as somebody walks them who sees no marker: on from the oldest chat of each page."""
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


def rising(values: list[int], what: str) -> None:
    check(all(a < b for a, b in zip(values, values[1:])), f"{what} does not rise: {values}")


# Running


async def run(name: str, address: str, codes: LoginCodes) -> bool:
    print(f"{name}: {(SCENARIOS[name].__doc__ or '').strip()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="stock-client-") as directory:
        world = World(address, codes, directory, list(SCENARIOS).index(name))
        try:
            async with asyncio.timeout(SCENARIO_DEADLINE):
                await SCENARIOS[name](world)
            return True
        except Failure as failure:
            place = traceback.extract_tb(failure.__traceback__)
            lines = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in place if "scenarios" in frame.filename]
            print(f"FAILED {name} at {' < '.join(reversed(lines))}: {failure}", flush=True)
        except Exception:
            print(f"FAILED {name}:\n{traceback.format_exc()}", flush=True)
        finally:
            await world.close()
    return False


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        print("\n".join(SCENARIOS))
        return 0
    if len(arguments) < 2 or (unknown := [name for name in arguments[2:] if name not in SCENARIOS]):
        print(f"unknown: {unknown}" if len(arguments) > 2 else __doc__, file=sys.stderr)
        return 2
    address, codes = arguments[0], LoginCodes(arguments[1])
    results = [asyncio.run(run(name, address, codes)) for name in arguments[2:] or SCENARIOS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
