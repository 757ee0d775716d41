"""Cells of messages and chats that no scenario of the stock client covers."""

from __future__ import annotations

from cells import Room
from channels import create_channel
from harness import chat_info, check, refused, same
from pymax import SmsAuthFlow
from pymax.api.chats.enums import ChannelPermissions
from pymax.types.domain import Poll
from pymax.types.domain.attachments.enums import PollFlags
from pymax.types.domain.attachments.poll import PollAnswer
from second_factor import PASSWORD, Passwords

from with_maxapi.device import cell


@cell("Log in with a password beside the code", short=True)
async def with_password(room: Room) -> None:
    carol = await room.person("carol")
    await carol.client.set_2fa(PASSWORD)
    flow = SmsAuthFlow(room.world.codes, Passwords("wrong horse", PASSWORD))
    tablet = await room.world.device(carol.phone, "tablet", auth_flow=flow).connect()
    same(tablet.id, carol.id, "who is logged in")


@cell("Give the password an e-mail address")
async def email(room: Room) -> None:
    carol = await room.person("carol")
    address = f"n{carol.phone.removeprefix('+')}2@example.org"
    await carol.client.set_2fa(PASSWORD, email=address, email_code_provider=room.world.codes)
    check((await carol.witness.invoke(104, {}))["password"]["email"], "there is no address")


@cell("Whether there is a password")
async def check_2fa(room: Room) -> None:
    carol = await room.person("carol")
    same(await carol.client.check_2fa(), False, "a password in the beginning")
    await carol.client.set_2fa(PASSWORD)
    tablet = await room.world.device(
        carol.phone, "tablet", auth_flow=SmsAuthFlow(room.world.codes, Passwords(PASSWORD))
    ).connect()
    same(await tablet.client.check_2fa(), True, "a password on another device")


@cell("Approve a QR code of another device")
async def approve(room: Room) -> None:
    asked = await room.bob.witness.invoke(288, {})
    check(await room.alice.client.authorize_qr_login(asked["qrLink"]), "it was not approved")
    await refused(room.alice.client.authorize_qr_login("tambour:login/none"), "track.not.found")


@cell("Edit a message")
async def edit(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "hallo")
    await room.alice.client.edit_message(room.chat, sent.id, "hello")
    same((await room.bob.client.get_message(room.chat, sent.id)).text, "hello", "the text in the end")


@cell("Look at messages by id")
async def by_id(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "look")
    same((await room.bob.client.get_message(room.chat, sent.id)).text, "look", "one message")
    found = await room.bob.client.get_messages(room.chat, [sent.id, 1])
    same([each.id for each in found], [sent.id], "messages by id")


@cell("Pin a message")
async def pin(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "read this")
    check(await room.alice.client.pin_message(room.chat, sent.id, notify_pin=True), "it was not pinned")
    same((await chat_info(room.bob.witness, room.chat))["pinnedMessage"]["id"], sent.id, "what is pinned")


@cell("Ask a poll")
async def ask(room: Room) -> None:
    answers = [PollAnswer(text="Alice"), PollAnswer(text="Bob")]
    poll = Poll(title="Who drums?", answers=answers, settings=PollFlags.FLAG_SETTINGS_REVOTE)
    await room.alice.client.send_message(room.chat, attachments=[poll])
    received = await room.bob.next("message", lambda message: bool(message.attaches))
    same(received.attaches[0].title, "Who drums?", "the question")


@cell("Look at a chat")
async def chat(room: Room) -> None:
    await room.alice.client.send_message(room.chat, "one")
    same((await room.bob.client.get_chat(room.chat)).id, room.chat, "the chat")
    same([each.id for each in await room.bob.client.get_chats([room.chat])], [room.chat], "chats by id")


@cell("Add and remove members")
async def members(room: Room) -> None:
    carol = await room.person("carol")
    group, _ = await room.alice.client.create_group("Drummers", [room.bob.id])
    await room.alice.client.invite_users_to_group(group.id, [carol.id])
    await carol.next("chat", lambda update: update.id == group.id)
    await room.alice.client.remove_users_from_group(group.id, [carol.id], clean_msg_period=0)
    await carol.next("chat", lambda update: update.status == "REMOVED")
    chat = await create_channel(room.alice.witness, "Drum news")
    same((await room.alice.client.invite_users_to_channel(chat, [carol.id])).participants_count, 2, "readers")
    await carol.client.leave_channel(chat)


@cell("List members")
async def list_members(room: Room) -> None:
    group, _ = await room.alice.client.create_group("Drummers", [room.bob.id])
    found, marker = await room.alice.client.get_chat_members(group.id)
    same(({each.contact.id for each in found}, marker), ({room.alice.id, room.bob.id}, 0), "members")


@cell("Choose an administrator's rights")
async def rights(room: Room) -> None:
    group, _ = await room.alice.client.create_group("Drummers", [room.bob.id])
    await room.alice.client.add_admin(group.id, room.bob.id, [ChannelPermissions.PIN_MESSAGE])
    admins = (await chat_info(room.bob.witness, group.id))["adminParticipants"]
    check(admins[str(room.bob.id)]["permissions"], f"the administrators are {admins}")


@cell("Make an invitation, look at it and follow it")
async def invitation(room: Room) -> None:
    group, _ = await room.alice.client.create_group("Drummers", [])
    link = (await room.alice.client.rework_invite_link(group.id)).link
    same((await room.bob.client.resolve_group_by_link(link)).title, "Drummers", "what bob is shown")
    same(
        (await room.bob.client.join_group(link)).participants_count, 2, "members of the chat that was joined"
    )


@cell("Join a channel by its public name")
async def public_name(room: Room) -> None:
    chat = await create_channel(room.alice.witness, "Drum news")
    name = f"drum_news_{room.alice.id}"
    await room.alice.witness.invoke(55, {"chatId": chat, "access": "PUBLIC", "link": name})
    same((await room.bob.client.join_channel(f"https://example.org/{name}")).id, chat, "the channel")


async def asked_by_bob(room: Room) -> int:
    """Creates a group that bob has asked to join, and returns its id."""
    group, _ = await room.alice.client.create_group("Rehearsal", [])
    link = (await room.alice.client.rework_invite_link(group.id)).link
    await room.alice.witness.invoke(55, {"chatId": group.id, "options": {"JOIN_REQUEST": True}})
    await room.bob.client.join_group(link)
    return group.id


@cell("List join requests")
async def join_requests(room: Room) -> None:
    chat = await asked_by_bob(room)
    same(
        [each.contact.id for each in await room.alice.client.get_join_requests(chat)],
        [room.bob.id],
        "who asks",
    )
    same(
        (await room.alice.client.confirm_join_requests(chat, [room.bob.id])).participants_count, 2, "members"
    )


@cell("Decline a join request")
async def decline(room: Room) -> None:
    chat = await asked_by_bob(room)
    await room.alice.client.decline_join_requests(chat, [room.bob.id])
    same(await room.alice.client.get_join_requests(chat), [], "who asks in the end")


@cell("Leave a group")
async def leave(room: Room) -> None:
    group, _ = await room.alice.client.create_group("Drummers", [room.bob.id])
    await room.bob.client.leave_group(group.id)
    same((await chat_info(room.alice.witness, group.id))["participantsCount"], 1, "members")


@cell("Delete a group for everybody")
async def delete(room: Room) -> None:
    group, _ = await room.alice.client.create_group("Drummers", [room.bob.id])
    await room.alice.client.delete_chat(group.id)
    await room.bob.next("chat", lambda update: update.id == group.id and update.status == "REMOVED")


@cell("See which reaction is one's own")
async def own_reaction(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    await room.bob.client.add_reaction(room.chat, sent.id, "🥁")
    for party, own in ((room.alice, None), (room.bob, "🥁")):
        found = (await party.client.get_reactions(room.chat, [sent.id]))[str(sent.id)]
        same((found.total_count, found.your_reaction), (1, own), f"the reactions for {party}")


@cell("Be told that a reaction was taken back")
async def unreact(room: Room) -> None:
    sent = await room.alice.client.send_message(room.chat, "boom")
    await room.bob.client.add_reaction(room.chat, sent.id, "🥁")
    await room.alice.next("reaction", lambda event: event.total_count == 1)
    same((await room.bob.client.remove_reaction(room.chat, sent.id)).total_count, 0, "the answer")
    same((await room.alice.next("reaction")).total_count, 0, "what alice is told")
