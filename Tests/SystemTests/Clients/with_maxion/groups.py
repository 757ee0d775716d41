"""Groups, channels, their members and invitations."""

from __future__ import annotations

from typing import Any

from cells import Line, Room
from channels import create_channel
from harness import Failure, chat_info, check, same
from maxion.raw.errors import RpcError
from maxion.raw.utils import next_cid

from with_maxion.device import cell, listed


def making(kind: str, title: str, *members: int) -> list[dict[str, Any]]:
    """The attachment of a message that creates a chat; the library has no method that sends it."""
    return [{"_type": "CONTROL", "event": "new", "chatType": kind, "title": title, "userIds": list(members)}]


async def group(room: Room, *members: int) -> int:
    made = await room.alice.raw.call(
        "MSG_SEND", {"message": {"cid": next_cid(), "attaches": making("CHAT", "Drummers", *members)}}
    )
    return made["chatId"]


async def link_of(room: Room, chat: int) -> str:
    return (await room.alice.raw.update_chat(chat, revoke_private_link=True)).link


@cell("Make a group", short=True)
async def make(room: Room) -> None:
    # Creates the group with a message, as `create_chat` would.
    chat = await group(room, room.bob.id)
    seen = await room.bob.next("raw chat", lambda update: update.chat.id == chat)
    same((seen.chat.title, seen.chat.owner_id), ("Drummers", room.alice.id), "what bob is told")
    sent = await room.bob.client.send_message(chat, "to the group")
    got = await room.alice.next("message", lambda message: message.id == sent.id)
    same((got.text, got.chat.id), ("to the group", chat), "what alice gets")
    same((await room.alice.client.get_chat(chat)).members_count, 2, "members")


@cell("Make a group by the library's own method", unserved=(63,))
async def create_chat(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.create_chat([room.bob.id], title="Drummers")


@cell("Make a channel and post in it", short=True)
async def channel(room: Room) -> None:
    chat = await create_channel(room.alice.witness, "Drum news", room.bob.witness)
    seen = await room.bob.next("raw chat", lambda update: update.chat.id == chat)
    check(seen.chat.is_channel, f"bob sees a {seen.chat.type}")
    post = await room.alice.client.send_message(chat, "tonight")
    got = await room.bob.next("message", lambda message: message.text == "tonight")
    same((got.id, got.from_user), (post.id, None), "the post")
    try:
        await room.bob.client.send_message(chat, "me too")
    except RpcError as error:
        same(error.code, "not.allowed", "the refusal")
    else:
        raise Failure("a reader posted")


@cell("Change title, description and settings of a group", short=True)
async def change(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.alice.client.set_chat_title(chat, "Percussion")
    await room.bob.next("raw chat", lambda update: update.chat.title == "Percussion")
    await room.alice.client.set_chat_description(chat, "every Sunday")
    same((await room.bob.client.get_chat(chat)).description, "every Sunday", "the description")
    await room.alice.raw.set_chat_title(chat, "Drums")
    await room.alice.raw.set_chat_description(chat, "")
    await room.alice.raw.set_chat_options(chat, {"ONLY_ADMIN_CAN_ADD_MEMBER": True})
    same((await room.bob.raw.get_chat(chat)).options["ONLY_ADMIN_CAN_ADD_MEMBER"], True, "the setting")


@cell("Set the photo of a group", unserved=(55, 80))
async def photo(room: Room) -> None:
    chat = await group(room)
    with room.unserved(room.alice):
        await room.alice.raw.upload_photo(b"no photo", chat_id=chat)
    with room.unserved(room.alice, "proto.payload"):
        await room.alice.raw.set_chat_photo(chat, "token")


@cell("Add and remove members", short=True)
async def members(room: Room) -> None:
    carol = await room.person("carol")
    chat = await group(room, room.bob.id)
    await room.alice.client.add_chat_members(chat, carol.id)
    await carol.next("raw chat", lambda update: update.chat.id == chat)
    await room.bob.next("message", lambda message: message.media == "CONTROL")
    await room.alice.raw.remove_members(chat, carol.id)
    gone = await carol.next("raw chat", lambda update: update.chat.status == "REMOVED")
    same(gone.chat.id, chat, "what carol is told")
    await room.alice.raw.add_members(chat, [carol.id], show_history=False)
    same((await chat_info(room.bob.witness, chat))["participantsCount"], 3, "members")
    await room.alice.raw.update_members(chat, carol.id, "remove")
    same((await chat_info(room.bob.witness, chat))["participantsCount"], 2, "members in the end")


@cell("List members", fault=Line("maxion/raw/types/chat.py", 19, '"userId", "id", "contactId"'))
async def list_members(room: Room) -> None:
    chat = await group(room, room.bob.id)
    found = await room.alice.raw.get_members(chat)
    same(sorted(each["contact"]["id"] for each in found), sorted([room.alice.id, room.bob.id]), "members")
    same(len(await listed(room.alice.raw.iter_members(chat, chunk=1))), 2, "members page by page")
    same(len(await room.alice.client.get_chat_members(chat, query="Bob")), 1, "members called Bob")
    # A member is {contact, presence}, but the library looks for the id next to these two keys.
    with room.fault(Failure):
        same(found[0].id, found[0]["contact"]["id"], "the id of a member")
    check(await room.alice.client.get_chat_member(chat, room.bob.id) is None, "get_chat_member works")


@cell("Make and unmake an administrator")
async def administrators(room: Room) -> None:
    chat = await group(room, room.bob.id)
    bob = str(room.bob.id)
    await room.alice.client.promote_chat_member(chat, room.bob.id)
    check(bob in (await chat_info(room.bob.witness, chat))["adminParticipants"], "bob is no administrator")
    await room.alice.client.demote_chat_member(chat, room.bob.id)
    check(bob not in (await chat_info(room.bob.witness, chat))["adminParticipants"], "bob is one still")
    await room.alice.raw.promote_members(chat, room.bob.id)
    await room.alice.raw.demote_members(chat, room.bob.id)


@cell(
    "Choose an administrator's rights", fault=Line("maxion/raw/methods/chats.py", 425, "self.update_members(")
)
async def rights(room: Room) -> None:
    chat = await group(room, room.bob.id)
    # Permissions are bits of a number, but the library expects a list of names.
    with room.fault(RpcError):
        await room.alice.client.promote_chat_member(chat, room.bob.id, permissions=["PIN_MESSAGE"])


@cell("Bar a member from a group", unserved=(77,))
async def ban(room: Room) -> None:
    chat = await group(room, room.bob.id)
    with room.unserved(room.alice, "proto.payload"):
        await room.alice.client.ban_chat_member(chat, room.bob.id)
    with room.unserved(room.alice, "proto.payload"):
        await room.alice.client.unban_chat_member(chat, room.bob.id)
    with room.unserved(room.alice, "proto.payload"):
        await room.alice.raw.block_members(chat, room.bob.id)


@cell("Hand a group over")
async def hand_over(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.alice.raw.transfer_ownership(chat, room.bob.id)
    same((await room.bob.raw.get_chat(chat)).owner_id, room.bob.id, "the owner")


@cell("Make an invitation, look at it and follow it", short=True)
async def invitation(room: Room) -> None:
    chat = await group(room)
    link = await link_of(room, chat)
    await room.bob.raw.check_link(link)
    found = await room.bob.raw.get_link_info(link)
    same(found["chat"]["title"], "Drummers", "what bob is shown")
    joined = await room.bob.client.join_chat(link)
    same((joined.id, joined.members_count), (chat, 2), "the chat that was joined")
    await room.alice.next("raw chat", lambda update: update.chat.participants_count == 2)


@cell("Join a channel by its public name")
async def public_name(room: Room) -> None:
    chat = await create_channel(room.alice.witness, "Drum news")
    name = f"drum_news_{room.alice.id}"
    await room.alice.raw.update_chat(chat, access="PUBLIC", link=name)
    same((await room.bob.raw.join_chat(name)).id, chat, "the channel")
    await room.alice.client.send_message(chat, "welcome")
    await room.bob.next("message", lambda message: message.text == "welcome")


@cell("Leave a group", short=True)
async def leave(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.bob.client.leave_chat(chat)
    same((await chat_info(room.alice.witness, chat))["participantsCount"], 1, "members")
    await room.bob.raw.join_chat(await link_of(room, chat))
    await room.bob.raw.leave_chat(chat)
    same((await chat_info(room.alice.witness, chat))["participantsCount"], 1, "members in the end")


@cell("Delete a group for everybody")
async def delete(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.alice.raw.delete_chat(chat, forAll=True)
    gone = await room.bob.next("raw chat", lambda update: update.chat.status == "REMOVED")
    same(gone.chat.id, chat, "what bob is told")


@cell("Which reactions a group allows")
async def reactions(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.alice.raw.set_reactions_settings(chat, reaction_ids=["👍"], included=True)
    found = await room.bob.raw.get_reactions_settings(chat)
    same(found["chatReactionsSettings"][0]["reactionIds"], ["👍"], "what is allowed")


@cell("Search the members of a group", unserved=(198,))
async def search_members(room: Room) -> None:
    chat = await group(room, room.bob.id)
    with room.unserved(room.alice, "proto.payload"):
        await room.alice.raw.get_common_participants(chat, "Bob")


@cell("Find public chats and people")
async def public(room: Room) -> None:
    found = await room.alice.raw.search_public("Bob Testova")
    check(
        any(each.get("contact", {}).get("id") == room.bob.id for each in found["result"]),
        f"bob is not in {found}",
    )
    check("chats" in await room.alice.raw.get_chat_suggestions(), "there is no list of chats one may like")


@cell("Report a chat, messages or users")
async def report(room: Room) -> None:
    chat = await group(room, room.bob.id)
    sent = await room.bob.client.send_message(chat, "spam")
    reasons = (await room.alice.raw.get_complain_reasons())["complains"]
    same(await room.alice.raw.complain_chat(chat, "SPAM"), {}, "the answer")
    kind = reasons[0]
    answer = await room.alice.raw.complain(
        type_id=kind["typeId"], parent_id=chat, ids=[int(sent.id)], reason_id=kind["reasons"][0]["reasonId"]
    )
    same(answer, {"success": True}, "the answer")
