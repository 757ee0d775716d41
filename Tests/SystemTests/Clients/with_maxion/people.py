"""Users, contacts and presence."""

from __future__ import annotations

from cells import Line, Room
from harness import Failure, check, same

from with_maxion.device import cell, listed


@cell("Look at users by id", short=True)
async def by_id(room: Room) -> None:
    same((await room.alice.client.get_users(room.bob.id)).full_name, "Bob Testova", "the name")
    same(
        [each.id for each in await room.alice.client.get_users([room.bob.id, 1 << 52])],
        [room.bob.id],
        "users",
    )
    same([each.id for each in await room.alice.raw.get_contacts(room.bob.id)], [room.bob.id], "users")
    same((await room.alice.raw.get_contact(room.bob.id)).first_name, "Bob", "the first name")


@cell("Find a user by phone", short=True)
async def by_phone(room: Room) -> None:
    same((await room.alice.client.resolve_phone(room.bob.phone)).id, room.bob.id, "the user")
    same((await room.alice.raw.get_contact_by_phone(room.bob.phone)).id, room.bob.id, "the user")


@cell("Add and remove contacts")
async def contacts(room: Room) -> None:
    asked = {"status": "ACTIVE", "from": 0, "count": 10}
    await room.alice.raw.save_contact(room.bob.id)
    found = await room.alice.witness.invoke(36, asked)
    same([each["id"] for each in found["contacts"]], [room.bob.id], "contacts")
    await room.alice.raw.remove_contact(room.bob.id)
    same((await room.alice.witness.invoke(36, asked))["contacts"], [], "contacts in the end")


@cell("List contacts")
async def list_contacts(room: Room) -> None:
    await room.alice.raw.save_contact(room.bob.id)
    same([each.id for each in await room.alice.client.get_contacts()], [room.bob.id], "contacts")
    same([each.id for each in await listed(room.alice.raw.iter_contacts())], [room.bob.id], "contacts")
    same([each.id for each in await room.alice.raw.get_contact_list()], [room.bob.id], "contacts")
    await room.alice.raw.remove_contact(room.bob.id)
    same(await room.alice.client.get_contacts(), [], "contacts in the end")


@cell("Rename a contact")
async def rename(room: Room) -> None:
    await room.alice.raw.save_contact(room.bob.id)
    same((await room.alice.raw.rename_contact(room.bob.id, "Bobby", "B")).name, "Bobby B", "the name")
    await room.alice.raw.update_contact(room.bob.id, "REMOVE")
    same((await room.alice.client.get_users(room.bob.id)).full_name, "Bob Testova", "the name in the end")


@cell("Import contacts from a phone book")
async def sync(room: Room) -> None:
    found = await room.alice.raw.sync_contacts({room.bob.phone: {"firstName": "Bo"}})
    same([each["id"] for each in found["contacts"]], [room.bob.id], "who was found")
    await room.alice.raw.remove_contact(room.bob.id)


@cell("Block and unblock a user")
async def block(room: Room) -> None:
    carol = await room.person("carol")
    await room.alice.client.block_user(carol.id)
    same([each.id for each in await room.alice.raw.get_contact_list(status="BLOCKED")], [carol.id], "blocked")
    await room.alice.client.unblock_user(carol.id)
    await room.alice.raw.block_user(carol.id)
    await room.alice.raw.unblock_user(carol.id)
    same(await room.alice.raw.get_contact_list(status="BLOCKED"), [], "blocked in the end")


@cell("Add a contact by the library's own method", unserved=(33,))
async def add(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.add_contact(room.bob.id)


@cell("Search, order and verify contacts, and see common ones", unserved=(37, 38, 40, 42))
async def others(room: Room) -> None:
    raw = room.alice.raw
    for call in (
        raw.search_contacts("Bob"),
        raw.get_mutual_contacts(room.bob.id),
        raw.sort_contacts([room.bob.id]),
        raw.verify_contact(room.bob.id),
    ):
        with room.unserved(room.alice):
            await call


@cell("See whether somebody is online", fault=Line("maxion/raw/types/user.py", 148, '"on"'))
async def presence(room: Room) -> None:
    found = (await room.alice.raw.get_presence(room.bob.id))[room.bob.id]
    same(found["status"], 1, "status of who is online")
    # Presence is a number, 1 for online, but the library looks for the words ON and ONLINE.
    with room.fault(Failure):
        check(found.is_online, "bob is offline")


@cell("Be told who comes and goes", fault=Line("maxion/raw/events.py", 168, "int(k)"))
async def told_of_presence(room: Room) -> None:
    carol = await room.person("carol")
    await room.alice.client.send_message(room.alice.dialog(carol), "hello")
    await carol.close()
    await carol.witness.close()
    told = await room.alice.next("raw presence", lambda update: update.get("userId") == carol.id)
    # The push is {userId, presence}, but the library reads `presence` as a map of users.
    with room.fault(ValueError):
        check(told.presences, "nobody's presence")
