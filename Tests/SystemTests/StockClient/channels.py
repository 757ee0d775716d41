"""Scenarios: channels, public names, and requests to join."""

from __future__ import annotations

import itertools

from harness import Device, World, chat_info, check, fact, later_than, refused, same, scenario
from pymax.api.chats.enums import ChannelPermissions
from pymax.protocol import Opcode

#: A new cid for each channel. With a used cid, the server would return the existing channel.
CIDS = itertools.count(1)


async def create_channel(owner: Device, title: str, *readers: Device) -> int:
    """Creates a channel with a plain request, because the library can create only groups."""
    control = {"_type": "CONTROL", "event": "new", "chatType": "CHANNEL", "title": title, "userIds": [each.id for each in readers]}
    created = await owner.invoke(Opcode.MSG_SEND, {"message": {"cid": next(CIDS), "attaches": [control]}})
    return created["chatId"]


@scenario
async def channel(world: World) -> None:
    """A channel is made, joined by its name, read, administered and left."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    chat = await create_channel(alice, "Drum news", bob)
    update = await bob.next("chat", lambda update: update.id == chat)
    same((update.type, update.title, update.owner), ("CHANNEL", "Drum news", alice.id), "push 135 at a reader")
    first = await bob.next("message", lambda message: message.chat_id == chat)
    same((first.attaches[0].event, first.attaches[0].chatType), ("new", "CHANNEL"), "push 128 with the CONTROL message")
    seen = await bob.client.get_chat(chat)
    check(seen.is_channel, f"get_chat takes it for {seen.type}")
    fact("a channel is there for its readers, as one")

    name = f"drum_news_{alice.id}"
    await alice.invoke(Opcode.CHAT_UPDATE, {"chatId": chat, "access": "PUBLIC", "link": name})
    joined = await carol.client.join_channel(f"https://example.org/{name}")
    same((joined.id, joined.access, joined.link, joined.participants_count), (chat, "PUBLIC", name, 3), "the channel joined")
    await bob.silence("message")
    fact("join_channel takes the public name at the end of an address; who joins is told to nobody")

    post = await alice.client.send_message(chat, "tonight")
    same((post.chat_id, post.sender, post.type), (chat, None, "CHANNEL"), "the reply's message")
    for reader in (bob, carol):
        message = await reader.next("message", lambda message: message.id == post.id)
        same((message.chat_id, message.sender, message.text), (chat, None, "tonight"), f"push 128 at {reader}")
    page = await carol.client.fetch_history(chat, from_time=later_than(post))
    same(page[-1].sender, None, "sender in the history")
    await refused(bob.client.send_message(chat, "me too"), "not.allowed")
    fact("a post reaches the readers without a sender; they cannot post")

    await alice.client.add_admin(chat, bob.id, [ChannelPermissions.POST_MESSAGE, ChannelPermissions.EDIT_MESSAGE])
    await bob.client.send_message(chat, "by an administrator")
    await bob.client.edit_message(chat, post.id, "tomorrow")
    edited = await carol.next("edit", lambda message: message.id == post.id)
    same((edited.text, edited.status), ("tomorrow", "EDITED"), "the post edited by an administrator")
    fact("add_admin lets somebody post, and edit the posts of others")

    await refused(carol.client.get_chat_members(chat), "not.allowed")
    members, _ = await alice.client.get_chat_members(chat)
    same({member.contact.id for member in members}, {alice.id, bob.id, carol.id}, "members for the owner")
    await carol.client.leave_channel(chat)
    same((await chat_info(alice, chat))["participantsCount"], 2, "members after one has left")
    invited = await alice.client.invite_users_to_channel(chat, [carol.id])
    same(invited.participants_count, 3, "members after she was invited")
    await alice.client.remove_users_from_group(chat, [carol.id], 0)
    update = await carol.next("chat", lambda update: update.status == "REMOVED" and update.id == chat)
    same(update.type, "CHANNEL", "type in push 135 of who was removed")
    fact("readers leave, are invited and removed; only the owner lists them")


@scenario
async def join_requests(world: World) -> None:
    """A group admits by request: a person who follows its link waits until an administrator decides."""
    alice, bob, carol = [await world.register(name) for name in ("alice", "bob", "carol")]
    group, _ = await alice.client.create_group("Rehearsal", [])
    link = (await alice.client.rework_invite_link(group.id)).link
    await alice.invoke(Opcode.CHAT_UPDATE, {"chatId": group.id, "options": {"JOIN_REQUEST": True}})
    for device in (bob, carol):
        shown = await device.client.join_group(link)
        same((shown.id, shown.title, shown.last_message), (group.id, "Rehearsal", None), f"what {device} is shown")
    asking = await alice.client.get_join_requests(group.id)
    same({member.contact.id for member in asking}, {bob.id, carol.id}, "who asks")
    await refused(bob.client.fetch_history(group.id), "chat.not.found")
    fact("join_group is answered with what one may know; get_join_requests lists who waits")

    after = await alice.client.confirm_join_request(group.id, bob.id)
    same(after.participants_count, 2, "members after one was let in")
    await bob.next("chat", lambda update: update.id == group.id)
    event = await bob.next("message")
    same(event.attaches[0].event, "add", "the event")
    await bob.client.send_message(group.id, "thank you")
    await alice.client.decline_join_request(group.id, carol.id)
    same(await alice.client.get_join_requests(group.id), [], "who asks in the end")
    await refused(carol.client.fetch_history(group.id), "chat.not.found")
    fact("confirm_join_request lets in, decline_join_request does not")

    await alice.client.change_group_settings(
        group.id, only_admin_can_call=True, members_can_see_private_link=True
    )
    same((await chat_info(bob, group.id))["link"], link, "the link for a member")
    fact("all options of change_group_settings are kept")
