"""Cells that no scenario of the stock client covers: people, settings, and parts of a program."""

from __future__ import annotations

import asyncio
from typing import Any

from cells import Room
from harness import check, same
from pymax import Router
from pymax.api.self.payloads import PrivacySettingsUpdate
from pymax.dispatch import ErrorScope
from pymax.types import ContactInfo

from with_maxapi.device import cell


@cell("Find a user by phone")
async def by_phone(room: Room) -> None:
    same((await room.alice.client.search_by_phone(room.bob.phone)).id, room.bob.id, "the user")
    same(room.alice.client.get_cached_user(room.bob.id).id, room.bob.id, "the user in the cache")
    same((await room.alice.client.get_user(room.bob.id)).id, room.bob.id, "the user")
    same([each.id for each in await room.alice.client.get_users([room.bob.id])], [room.bob.id], "users")


@cell("Add and remove contacts")
async def contacts(room: Room) -> None:
    same((await room.alice.client.add_contact(room.bob.id)).id, room.bob.id, "the contact")
    asked = {"status": "ACTIVE", "from": 0, "count": 10}
    found = await room.alice.witness.invoke(36, asked)
    same([each["id"] for each in found["contacts"]], [room.bob.id], "contacts")
    check(await room.alice.client.remove_contact(room.bob.id), "it was not removed")
    same((await room.alice.witness.invoke(36, asked))["contacts"], [], "contacts in the end")


@cell("Import contacts from a phone book")
async def sync(room: Room) -> None:
    found = await room.alice.client.import_contacts([ContactInfo(phone=room.bob.phone, first_name="Bo")])
    same([each.id for each in found], [room.bob.id], "who was found")
    await room.alice.client.remove_contact(room.bob.id)


@cell("Change the own profile")
async def profile(room: Room) -> None:
    carol = await room.person("carol")
    check(await carol.client.change_profile("Caroline", "Drummer", "drums"), "it was not changed")
    found = (await carol.witness.invoke(8, {"needProfile": True}))["profile"]["contact"]
    same((found["names"][0]["name"], found["description"]), ("Caroline Drummer", "drums"), "the profile")


@cell("Change privacy and other settings")
async def settings(room: Room) -> None:
    check(
        await room.alice.client.change_profile_settings(PrivacySettingsUpdate(hide_online_status=True)),
        "it was not changed",
    )
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 134)
    same(push.payload["config"]["user"]["HIDDEN"], True, "the setting on the other device")
    await room.alice.client.change_profile_settings(PrivacySettingsUpdate(hide_online_status=False))


@cell("Say whether one is online")
async def online(room: Room) -> None:
    # The library reports presence with its next PING, which it sends every 30 seconds.
    room.alice.client.set_presence(online=False)
    room.alice.client.set_presence(online=True)
    check(room.alice.client.is_connected, "the connection is gone")


@cell("Choose the version that the app gives itself")
async def versions(room: Room) -> None:
    same(type(room.alice.client.is_update_available()), bool, "whether there is a newer version")


@cell("Handlers, routers and filters of events")
async def handlers(room: Room) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    device = room.world.device(room.bob.phone, "handlers")
    client, router = device.client, Router()

    class Note:
        async def __call__(self, client: Any, event: Any, call_next: Any) -> Any:
            told.put_nowait("middleware")
            return await call_next(event)

    @router.on_message()
    async def in_router(message: Any, client: Any) -> None:
        told.put_nowait("router")
        raise ValueError("on purpose")

    @client.on_error(ErrorScope.GLOBAL)
    async def failed(*_: Any) -> None:
        told.put_nowait("error")

    @client.on_disconnect()
    async def lost(*_: Any) -> None:
        told.put_nowait("disconnect")

    @client.on_story_update()
    async def story(*_: Any) -> None:
        told.put_nowait("story")

    client.include_router(router)
    client.add_middleware(Note())
    await device.connect()
    await room.alice.client.send_message(room.chat, "to all of them")
    heard: set[str] = set()
    while not {"router", "middleware", "error"} <= heard:
        heard.add(await asyncio.wait_for(told.get(), 20))
    await client.stop()


@cell("Log in again after the token was thrown away")
async def relogin(room: Room) -> None:
    carol = await room.world.register("carol")
    before = (await carol.stored()).token
    await carol.client.relogin(start=False)
    await carol.connect()
    check((await carol.stored()).token != before, "the token is the old one")
    same(f"+{carol.client.me.contact.phone}", carol.phone, "whose account it is")
