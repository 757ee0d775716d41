"""Scenarios: reactions, polls, folders, drafts, and scheduled messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from harness import World, check, fact, later_than, refused, same, scenario
from pymax import SyncOverrides
from pymax.api.messages.enums import ItemType
from pymax.protocol import Opcode
from pymax.types.domain import Poll
from pymax.types.domain.attachments.enums import PollFlags
from pymax.types.domain.attachments.poll import PollAnswer, PollAttachment, PollState


def counted(info: Any) -> dict[str, int]:
    """The counters of a reaction info or event; their sum is the total."""
    found = {counter.reaction: counter.count for counter in info.counters or []}
    same(info.total_count, sum(found.values()), "total of the counters")
    return found


@scenario
async def reactions(world: World) -> None:
    """People react to a message, change their minds, and take it back."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(bob, "laptop")
    chat = alice.dialog(bob)
    sent = await alice.client.send_message(chat, "boom")
    received = await bob.next("message")
    same(received.reaction_info, None, "reactions of a new message")

    info = await received.react("🥁")
    same((counted(info), info.your_reaction), ({"🥁": 1}, "🥁"), "the answer to react")
    event = await alice.next("reaction")
    same((event.chat_id, event.message_id), (chat, sent.id), "chat and message of push 155")
    same((counted(event), event.your_reaction), ({"🥁": 1}, None), "push 155")
    event = await laptop.next("reaction")
    same((counted(event), event.your_reaction), ({"🥁": 1}, "🥁"), "push 156 at the own other device")
    fact("react answers the counters; the other side gets push 155, the own other device 156")

    await alice.client.add_reaction(chat, sent.id, "👍")
    for device, own in ((alice, "👍"), (bob, "🥁"), (laptop, "🥁")):
        page = await device.client.fetch_history(chat, from_time=later_than(sent))
        seen = page[-1].reaction_info
        same((counted(seen), seen.your_reaction), ({"👍": 1, "🥁": 1}, own), f"reactions in the history of {device}")
        last = (await device.client.get_chat(chat)).last_message.reaction_info
        same((counted(last), last.your_reaction), ({"👍": 1, "🥁": 1}, own), f"reactions in the chat of {device}")
    fact("the history and the list of chats carry them, each with one's own")

    again = await bob.client.add_reaction(chat, sent.id, "👍")
    same((counted(again), again.your_reaction), ({"👍": 2}, "👍"), "a second reaction")
    fact("a second reaction takes the place of the first")

    found = await received.get_reactions()
    same({key: counted(each) for key, each in found.items()}, {str(sent.id): {"👍": 2}}, "get_reactions")
    asked = {"chatId": chat, "messageId": sent.id, "count": 40}
    details = await alice.invoke(Opcode.MSG_GET_DETAILED_REACTIONS, asked)
    names = {each["userId"]: each["reaction"] for each in details["reactions"]}
    same(names, {alice.id: "👍", bob.id: "👍"}, "who reacted")
    fact("get_reactions counts them, 181 names who reacted")

    left = await received.unreact()
    same((counted(left), left.your_reaction), ({"👍": 1}, None), "the answer to unreact")
    await refused(bob.client.add_reaction(chat, sent.id, "x"), "error.message.like.unknown.reaction")
    await refused(bob.client.add_reaction(chat, 1, "👍"), "not.found")
    fact("a reaction is taken back; what is no emoji, or to no message, is refused")

    edited = await sent.edit("BOOM")
    same(edited.reaction_info.your_reaction, "👍", "own reaction in the answer to an edit")
    pushed = await bob.next("edit")
    same((counted(pushed.reaction_info), pushed.reaction_info.your_reaction), ({"👍": 1}, None), "push of an edit")
    fact("an edit keeps them; its push names nobody's own")


def poll_of(message: Any) -> PollAttachment:
    """The one poll of a message."""
    polls = [attach for attach in message.attaches if isinstance(attach, PollAttachment)]
    same(len(polls), 1, "polls that the library recognizes")
    return polls[0]


def votes_of(state: PollState) -> dict[int, tuple[int, list[int]]]:
    """For each answer of a poll, the number of votes and the shown voters."""
    return {each.answer_id: (each.vote_count, [vote.user_id for vote in each.votes]) for each in state.result or []}


@scenario
async def poll(world: World) -> None:
    """Somebody sends a poll, people vote, and in the end the poll is closed."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(bob, "laptop")
    chat, answers = alice.dialog(bob), ["Alice", "Bob"]

    def asking(flags: PollFlags) -> Poll:
        return Poll(title="Who drums?", answers=[PollAnswer(text=text) for text in answers], settings=flags)

    revote = PollFlags.FLAG_SETTINGS_REVOTE
    sent = await alice.client.send_message(chat, attachments=[asking(revote)])
    asked = poll_of(sent)
    same((asked.title, [each.text for each in asked.answers], asked.settings), ("Who drums?", answers, revote), "the poll")
    same((asked.state.total, votes_of(asked.state)), (0, {1: (0, []), 2: (0, [])}), "votes in the beginning")
    same(poll_of(await bob.next("message")).poll_id, asked.poll_id, "the poll of push 128")
    await laptop.next("message")
    fact("a poll is sent and received with its id and its numbered answers")

    state = await bob.client.vote_poll(chat, sent.id, asked.poll_id, [2])
    voted = {1: (0, []), 2: (1, [bob.id])}
    same((state.total, votes_of(state), state.voter_preview_ids), (1, voted, [bob.id]), "the answer to vote_poll")
    for device in (alice, laptop):
        same(votes_of(poll_of(await device.next("edit")).state), voted, f"votes in push 128 at {device}")
        await device.silence("message")
    await bob.silence("message", "edit")
    fact("vote_poll answers the state; everybody else gets the message as an edited one, not as a new one")

    for device in (alice, bob, laptop):
        page = await device.client.fetch_history(chat, from_time=later_than(sent))
        same(votes_of(poll_of(page[-1]).state), voted, f"votes in the history of {device}")
    state = await bob.client.vote_poll(chat, sent.id, asked.poll_id, [1])
    same(votes_of(state), {1: (1, [bob.id]), 2: (0, [])}, "a second vote")
    await bob.client.vote_poll(chat, sent.id, asked.poll_id, [])
    state = await alice.client.vote_poll(chat, sent.id, asked.poll_id, [2])
    same(votes_of(state), {1: (0, []), 2: (1, [alice.id])}, "after one was taken back")
    fact("the history has the votes; they are changed and taken back")

    named = {"chatId": chat, "messageId": sent.id, "pollId": asked.poll_id}
    voters = await bob.invoke(Opcode.VOTERS_LIST_BY_ANSWER, {**named, "answerId": 2, "count": 10})
    same([vote["userId"] for vote in voters["votes"]], [alice.id], "who voted")
    polls = [{"messageId": sent.id, "pollId": asked.poll_id}]
    updates = await bob.invoke(Opcode.GET_POLL_UPDATES, {"chatId": chat, "polls": polls})
    same(PollAttachment.model_validate(updates["polls"][0]).state.total, 1, "306")
    fact("305 names who voted, 306 answers polls as they are now")

    again = await world.again(laptop, SyncOverrides(chats_sync=-1))
    last = (await again.client.get_chat(chat)).last_message
    same(votes_of(poll_of(last).state), {1: (0, []), 2: (1, [alice.id])}, "votes after a login")
    bob.forget()
    closing = [asking(revote | PollFlags.FLAG_SETTINGS_CLOSED)]
    edited = await alice.client.edit_message(chat, sent.id, None, attachments=closing)
    same((poll_of(edited).poll_id, poll_of(edited).state.total), (asked.poll_id, 1), "the closed poll")
    check(PollFlags.FLAG_SETTINGS_CLOSED in poll_of(await bob.next("edit")).settings, "the push of the end is not closed")
    await refused(bob.client.vote_poll(chat, sent.id, asked.poll_id, [1]), "not.allowed")
    fact("an edit closes it; its votes stay and no more are taken")

    secret = await alice.client.send_message(chat, attachments=[asking(PollFlags.FLAG_SETTINGS_ANONYMOUS)])
    received = poll_of(await bob.next("message"))
    alice.forget()
    state = await bob.client.vote_poll(chat, secret.id, received.poll_id, [1])
    same((votes_of(state)[1], state.voter_preview_ids), ((1, [bob.id]), []), "an own vote in an anonymous poll")
    pushed = poll_of(await alice.next("edit"))
    same((votes_of(pushed.state)[1], pushed.state.voter_preview_ids), ((1, []), []), "what the others see of it")
    fact("in an anonymous poll each sees its own vote, and the others how many there are")


@scenario
async def folders(world: World) -> None:
    """Chats are put into folders, and the other device has them too."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat, all_chats = alice.dialog(bob), "all.chat.folder"
    first = await alice.client.get_folders()
    same(([each.id for each in first.folders], first.folders_order), ([all_chats], [all_chats]), "folders")
    fact("everybody has the folder of all chats")

    made = await alice.client.create_folder("Drums", [chat])
    same((made.folder.title, made.folder.include), ("Drums", [chat]), "the new folder")
    same(made.folders_order, [all_chats, made.folder.id], "order of the folders")
    push = await laptop.next("push", lambda frame: frame.opcode == Opcode.NOTIF_FOLDERS)
    same(push.payload["folder"]["id"], made.folder.id, "the folder of push 277")
    await bob.silence("push", where=lambda frame: frame.opcode == Opcode.NOTIF_FOLDERS)
    fact("create_folder makes one; the own other device gets push 277, nobody else")

    changed = await alice.client.update_folder(made.folder.id, "Percussion", chat_include=[chat, 0])
    same((changed.folder.title, changed.folder.include), ("Percussion", [chat, 0]), "the changed folder")
    check(changed.folder_sync > made.folder_sync, "the mark did not rise")
    delta = await laptop.client.get_folders(made.folder_sync)
    titles = [each.title for each in delta.folders if each.id == made.folder.id]
    same(titles, ["Percussion"], "what changed since the mark")
    fact("update_folder replaces it; a mark brings what changed since")

    gone = await alice.client.delete_folder(made.folder.id)
    same(gone.folders_order, [all_chats], "order after delete_folder")
    same([each.id for each in (await laptop.client.get_folders()).folders], [all_chats], "folders in the end")
    fact("delete_folder deletes it")


@scenario
async def drafts(world: World) -> None:
    """A draft is continued on another device, as in other clients of the family."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    await bob.client.send_message(chat, "are you there?")
    saved = await alice.invoke(Opcode.DRAFT_SAVE, {"chatId": chat, "draft": {"text": "not yet"}})
    push = await laptop.next("push", lambda frame: frame.opcode == Opcode.NOTIF_DRAFT)
    same((push.payload["chatId"], push.payload["draft"]["text"]), (chat, "not yet"), "push 152")
    same(push.payload["draft"]["time"], saved["time"], "time of the draft")
    again = await world.again(laptop, SyncOverrides(drafts_sync=-1))
    login = await again.next("login")
    same(login["drafts"]["chats"]["saved"][str(chat)]["text"], "not yet", "the draft in the next login")
    fact("176 saves a draft, 152 tells the own other device, and a login has it")

    await alice.invoke(Opcode.DRAFT_DISCARD, {"chatId": chat, "time": saved["time"]})
    push = await again.next("push", lambda frame: frame.opcode == Opcode.NOTIF_DRAFT_DISCARD)
    same(push.payload["chatId"], chat, "push 153")
    told = (Opcode.NOTIF_DRAFT, Opcode.NOTIF_DRAFT_DISCARD)
    await bob.silence("push", where=lambda frame: frame.opcode in told)
    fact("177 throws it away, 153 says so, and nobody else hears of drafts")


@scenario
async def scheduled(world: World) -> None:
    """A message is written now and sent a little later."""
    alice, bob = await world.register("alice"), await world.register("bob")
    laptop = await world.another(alice, "laptop")
    chat = alice.dialog(bob)
    await bob.client.send_message(chat, "see you")
    await alice.next("message")
    written = await alice.client.send_message(chat, "on my way", send_at=timedelta(seconds=1))
    fire = written.delayed_attributes.time_to_fire
    same((written.text, written.chat_id, written.time), ("on my way", chat, fire), "the answer")
    push = await laptop.next("push", lambda frame: frame.opcode == Opcode.NOTIF_MSG_DELAYED)
    same(push.payload["message"]["id"], written.id, "push 154 at the own other device")
    page = await alice.client.fetch_history(chat, item_type=ItemType.DELAYED)
    same([each.id for each in page], [written.id], "the scheduled messages")
    fact("64 with send_at waits, 49 with DELAYED lists it, 154 tells the own other device")

    message = await bob.next("message")
    same((message.text, message.delayed_attributes), ("on my way", None), "what is sent")
    check(message.time >= fire, f"it is sent at {message.time}, not before {fire}")
    own = await alice.next("message")
    same((own.id, own.text), (message.id, "on my way"), "what its sender is told")
    page = await alice.client.fetch_history(chat, item_type=ItemType.DELAYED)
    same(page, [], "the scheduled messages afterwards")
    fact("at its time it is a message as any other, pushed to its sender too")
