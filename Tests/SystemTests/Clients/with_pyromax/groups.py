"""Groups, channels, their members and invitations."""

from __future__ import annotations

from cells import Line, Room
from harness import Failure, chat_info, check, same
from pydantic import ValidationError
from pyromax.models import ChannelPermissions

from with_pyromax.device import cell

CHATS = "pyromax/mapping/envelope/v11/mixins/chat.py"


async def group(room: Room, *members: int) -> int:
    chat, _ = await room.alice.client.create_group("Drummers", list(members))
    return chat.id


@cell("Make a group", short=True)
async def make(room: Room) -> None:
    chat, _ = await room.alice.client.create_group("Drummers", [room.bob.id])
    seen = await room.bob.next("chat", lambda update: update.id == chat.id)
    same((seen.title, seen.owner), ("Drummers", room.alice.id), "what bob is told")
    sent = await room.bob.client.send_message(chat.id, "to the group")
    got = await room.alice.next("message", lambda message: message.message_id == sent.message_id)
    same((got.text, got.chat_id), ("to the group", chat.id), "what alice gets")


@cell("Make a channel and post in it", short=True)
async def channel(room: Room) -> None:
    chat, _ = await room.alice.client.create_group("Drum news", [room.bob.id], chat_type="CHANNEL")
    same(chat.type, "CHANNEL", "its type")
    post = await room.alice.client.send_message(chat.id, "tonight")
    got = await room.bob.next("message", lambda message: message.text == "tonight")
    same((got.message_id, got.sender_id), (post.message_id, None), "the post")
    await room.bob.refused(room.bob.client.send_message(chat.id, "me too"), "not.allowed")
    await room.bob.answered(room.bob.client.leave_channel(chat.id))
    same((await chat_info(room.alice.witness, chat.id))["participantsCount"], 1, "members")


@cell("Change title, description and settings of a group", short=True)
async def change(room: Room) -> None:
    chat = await group(room, room.bob.id)
    changed = await room.alice.client.change_group_profile(chat, "Percussion", "every Sunday")
    same((changed.title, changed.description), ("Percussion", "every Sunday"), "the answer")
    await room.bob.next("chat", lambda update: update.title == "Percussion")
    await room.alice.client.change_group_settings(
        chat,
        all_can_pin_message=True,
        only_owner_can_change_icon_title=True,
        only_admin_can_add_member=True,
        only_admin_can_call=True,
        members_can_see_private_link=True,
    )
    options = (await chat_info(room.bob.witness, chat))["options"]
    check(
        options["ALL_CAN_PIN_MESSAGE"] and options["ONLY_ADMIN_CAN_ADD_MEMBER"], f"the settings are {options}"
    )


@cell("Add and remove members", short=True)
async def members(room: Room) -> None:
    carol = await room.person("carol")
    chat = await group(room, room.bob.id)
    same((await room.alice.client.invite_users_to_group(chat, [carol.id])).participants_count, 3, "members")
    await carol.next("chat", lambda update: update.id == chat)
    await room.alice.client.remove_users_from_group(chat, [carol.id], 0)
    gone = await carol.next("chat", lambda update: update.status == "REMOVED")
    same(gone.id, chat, "what carol is told")


@cell("Choose an administrator's rights")
async def rights(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.alice.answered(
        room.alice.client.add_admin(chat, room.bob.id, [ChannelPermissions.PIN_MESSAGE])
    )
    admins = (await chat_info(room.bob.witness, chat))["adminParticipants"]
    check(admins[str(room.bob.id)]["permissions"], f"the administrators are {admins}")


@cell("Make an invitation, look at it and follow it", short=True)
async def invitation(room: Room) -> None:
    chat = await group(room)
    link = (await room.alice.client.revoke_invite_link(chat)).link
    same((await room.bob.client.resolve_group_by_link(link)).title, "Drummers", "what bob is shown")
    same(
        (await room.bob.client.join_group(link)).participants_count, 2, "members of the chat that was joined"
    )
    await room.alice.next("message", lambda message: message.chat_id == chat)


@cell("Join a channel by its public name")
async def public_name(room: Room) -> None:
    chat, _ = await room.alice.client.create_group("Drum news", [], chat_type="CHANNEL")
    name = f"drum_news_{room.alice.id}"
    await room.alice.witness.invoke(55, {"chatId": chat.id, "access": "PUBLIC", "link": name})
    same((await room.bob.client.join_channel(name)).id, chat.id, "the channel")


@cell(
    "List join requests",
    fault=Line(CHATS, 531, "MembersContainsResponse("),
)
async def join_requests(room: Room) -> None:
    chat = await asked_by_bob(room)
    # A member is {contact, presence}, but this library reads the answer as a list of contacts.
    with room.fault(ValidationError):
        await room.alice.client.get_join_requests(chat)


async def asked_by_bob(room: Room) -> int:
    """Creates a group that bob has asked to join, and returns its id."""
    chat = await group(room)
    link = (await room.alice.client.revoke_invite_link(chat)).link
    await room.alice.witness.invoke(55, {"chatId": chat, "options": {"JOIN_REQUEST": True}})
    await room.bob.client.join_group(link)
    return chat


@cell("Accept a join request", fault=Line(CHATS, 566, "self._cache_chat(chat)"))
async def confirm(room: Room) -> None:
    chat = await asked_by_bob(room)
    # The library raises after the server has already accepted bob.
    with room.fault(AttributeError):
        await room.alice.client.confirm_join_requests(chat, [room.bob.id])
    same((await chat_info(room.alice.witness, chat))["participantsCount"], 2, "members")
    chat = await asked_by_bob(room)
    with room.fault(AttributeError):
        await room.alice.client.confirm_join_request(chat, room.bob.id)


@cell("Decline a join request", fault=Line(CHATS, 584, 'operation="remove"'))
async def decline(room: Room) -> None:
    one, many = await asked_by_bob(room), await asked_by_bob(room)
    await room.alice.answered(room.alice.client.decline_join_request(one, room.bob.id))
    await room.alice.answered(room.alice.client.decline_join_requests(many, [room.bob.id]))
    # The library sends the removal of a member, without marking it as the refusal of a join request.
    for chat in (one, many):
        with room.fault(Failure):
            same(await room.alice.witness.client.get_join_requests(chat), [], "who asks in the end")


@cell("Leave a group", short=True)
async def leave(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.bob.answered(room.bob.client.leave_group(chat))
    same((await chat_info(room.alice.witness, chat))["participantsCount"], 1, "members")


@cell("Delete a group for everybody")
async def delete(room: Room) -> None:
    chat = await group(room, room.bob.id)
    await room.alice.answered(room.alice.client.delete_chat(chat))
    gone = await room.bob.next("chat", lambda update: update.status == "REMOVED")
    same(gone.id, chat, "what bob is told")
