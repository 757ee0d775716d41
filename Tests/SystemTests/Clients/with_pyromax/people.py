"""Users, contacts and presence."""

from __future__ import annotations

from cells import Room
from harness import same
from pyromax.models import ContactInfo

from with_pyromax.device import cell


@cell("Look at users by id", short=True)
async def by_id(room: Room) -> None:
    alice = room.alice.client
    same((await alice.get_member_by_id(room.bob.id)).first_name, "Bob", "the name")
    same([each.id for each in await alice.get_members_by_ids([room.bob.id, 1 << 52])], [room.bob.id], "users")
    same((await alice.get_user(room.bob.id)).id, room.bob.id, "a user of the cache")
    same([each.id for each in await alice.get_users([room.bob.id])], [room.bob.id], "users of the cache")


@cell("Find a user by phone", short=True)
async def by_phone(room: Room) -> None:
    same((await room.alice.client.search_by_phone(room.bob.phone)).id, room.bob.id, "the user")


@cell("Add and remove contacts")
async def contacts(room: Room) -> None:
    await room.alice.answered(room.alice.client.add_contact(room.bob.id))
    found = await room.alice.witness.invoke(36, {"status": "ACTIVE", "from": 0, "count": 10})
    same([each["id"] for each in found["contacts"]], [room.bob.id], "contacts")
    await room.alice.answered(room.alice.client.remove_contact(room.bob.id))
    found = await room.alice.witness.invoke(36, {"status": "ACTIVE", "from": 0, "count": 10})
    same(found["contacts"], [], "contacts in the end")


@cell("Import contacts from a phone book")
async def sync(room: Room) -> None:
    found = await room.alice.client.import_contacts([ContactInfo(phone=room.bob.phone, first_name="Bo")])
    same([(each.id, each.first_name) for each in found], [(room.bob.id, "Bo")], "who was found")
    await room.alice.client.remove_contact(room.bob.id)


@cell("Be told who comes and goes")
async def presence(room: Room) -> None:
    carol = await room.person("carol")
    await room.alice.client.send_message(room.alice.dialog(carol), "hello")
    await carol.next("message")
    await carol.close()
    await carol.witness.close()
    told = await room.alice.next(
        "presence", lambda event: event.user_id == carol.id and event.presence.status != 1
    )
    same(told.user_id, carol.id, "who went")
