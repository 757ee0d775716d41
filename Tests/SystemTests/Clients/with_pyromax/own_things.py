"""The user's own profile, settings and folders, and the building blocks of a program."""

from __future__ import annotations

import asyncio
import contextlib

from cells import Line, Room
from harness import check, same
from pyromax import MaxApi, Router
from pyromax.dispatcher.event import ResolvedUpdate, Update
from pyromax.models import DataDict, Message, PrivacySettings

from with_pyromax.device import PyromaxParty, cell


@cell(
    "Change the own profile",
    fault=Line("pyromax/mapping/envelope/v11/mixins/user.py", 163, "self.bind_api_instance("),
)
async def profile(room: Room) -> None:
    carol = await room.person("carol")
    # The library raises after the server has already changed the profile.
    with room.fault(AttributeError):
        await carol.client.change_profile("Caroline", "Drummer", "drums")
    found = (await carol.witness.invoke(8, {"needProfile": True}))["profile"]["contact"]
    same((found["names"][0]["name"], found["description"]), ("Caroline Drummer", "drums"), "the profile")


@cell("Change privacy and other settings")
async def settings(room: Room) -> None:
    await room.alice.answered(
        room.alice.client.change_profile_settings(PrivacySettings(hide_online_status=True))
    )
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 134)
    same(push.payload["config"]["user"]["HIDDEN"], True, "the setting on the other device")
    await room.alice.client.change_profile_settings(PrivacySettings(hide_online_status=False))


@cell("Say whether one is online")
async def online(room: Room) -> None:
    # The library reports presence with its next PING, which it sends every 30 seconds.
    await room.alice.client.set_presence(False)
    same(room.alice.client.mapper.keep_alive_interactive, False, "what the next PING says")
    await room.alice.client.set_presence(True)


@cell("Keep chats in folders")
async def folders(room: Room) -> None:
    alice = room.alice.client
    made = (await alice.create_folder("Drums", [room.chat])).folder
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 277)
    same(push.payload["folder"]["id"], made.id, "the folder on the other device")
    same(
        [each.title for each in (await alice.get_folders()).folders if each.id == made.id],
        ["Drums"],
        "folders",
    )
    changed = await alice.update_folder(made.id, "Percussion", [room.chat])
    same(changed.folder.title, "Percussion", "the changed folder")
    same(len((await alice.delete_folder(made.id)).folders_order), 1, "folders in the end")
    made = (await alice.create_folder("Drums", [room.chat])).folder
    await room.alice.answered(alice.delete_folders([made.id]))


@cell("Handlers, routers and filters of events", short=True)
async def handlers(room: Room) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    laptop = PyromaxParty(room, room.bob.witness)
    # A handler that accepts an update hides it from the routers below.
    for observer in (laptop.dispatcher.message, laptop.dispatcher.chat_update):
        observer.handlers.clear()
    router, other, third = Router(name="guest"), Router(name="other"), Router(name="third")
    laptop.dispatcher.include_router(router)
    laptop.dispatcher.include_routers(other, third)

    @router.message()
    async def in_router(message: Message) -> None:
        told.put_nowait(message.text or "")

    await laptop.log_in()
    disconnected, unsupported = laptop.dispatcher.get_lifecycle_listeners()
    check(callable(disconnected) and callable(unsupported), "there are no listeners of the connection")
    await room.alice.client.send_message(room.chat, "to the router")
    same(await asyncio.wait_for(told.get(), 20), "to the router", "what the router's handler is told")
    await laptop.close()


@cell("Read updates without a dispatcher")
async def updates(room: Room) -> None:
    laptop = await PyromaxParty(room, room.bob.witness).log_in(polls=False)
    translate, stream = laptop.client.listen_updates({"max_api": laptop.client})
    await room.alice.client.send_message(room.chat, "to the stream")
    async with asyncio.timeout(20):
        async for update in stream:
            if isinstance(message := translate(update), Message) and message.text == "to the stream":
                break
    await stream.aclose()
    context = {MaxApi: laptop.client, Update: update, ResolvedUpdate: message, Message: message}
    await laptop.dispatcher.notify(message, context | {DataDict: context})
    same((await laptop.next("message")).text, "to the stream", "what the handlers are told")
    await laptop.close()


@cell(
    "Observe what a dispatcher is told",
    fault=Line("pyromax/dispatcher/ObserverPattern.py", 36, "self._observers"),
)
async def observers(room: Room) -> None:
    # The library never creates the list of observers.
    with room.fault(AttributeError):
        await room.bob.dispatcher.attach(object())
    with contextlib.suppress(AttributeError):
        await room.bob.dispatcher.detach(object())
