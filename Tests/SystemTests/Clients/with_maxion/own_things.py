"""The user's own profile, settings and folders, and the building blocks of a program."""

from __future__ import annotations

import asyncio

from cells import Line, Room
from harness import Failure, check, now_ms, same
from maxion.handlers import RawUpdateHandler
from maxion.raw.errors import RpcError
from maxion.raw.router import Router

from with_maxion.device import cell

ALL_CHATS = "all.chat.folder"


@cell("Change the own profile", short=True)
async def profile(room: Room) -> None:
    carol = await room.person("carol")
    await room.alice.client.send_message(room.alice.dialog(carol), "who are you?")
    await carol.client.set_profile_name("Caroline", "Drummer")
    told = await room.alice.next("raw contact")
    same((told.user.id, told.user.name), (carol.id, "Caroline Drummer"), "what alice is told")
    await carol.raw.update_profile(first_name="Caro", description="drums")
    same((await room.alice.raw.get_contact(carol.id)).description, "drums", "the description")
    same((await carol.client.get_me()).id, carol.id, "oneself")
    same((await carol.raw.get_me(refresh=True)).name.strip(), "Caro Drummer", "the own name")
    check(await carol.raw.login2(), "no answer to login2")


@cell("Change privacy and other settings")
async def settings(room: Room) -> None:
    raw = room.alice.raw
    before = await raw.get_config()
    await raw.set_hidden(True)
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 134)
    same(push.payload["config"]["user"]["HIDDEN"], True, "the setting on the other device")
    await raw.set_user_setting("HIDDEN", False)
    after = await raw.update_settings({"user": {"PUSH_SOUND": "DEFAULT"}})
    check(after["hash"] and before["hash"], "an answer without a hash")


@cell("Register for push notifications")
async def push_token(room: Room) -> None:
    check((await room.alice.raw.register_push_token("token"))["hash"], "no answer")


@cell("Keep chats in folders")
async def folders(room: Room) -> None:
    raw = room.alice.raw
    made = (await raw.update_folder(title="Drums", include=[room.chat]))["folder"]
    push = await room.alice.witness.next("push", lambda frame: frame.opcode == 277)
    same(push.payload["folder"]["id"], made["id"], "the folder on the other device")
    same([str(each["id"]) for each in await raw.get_folders()], [ALL_CHATS, made["id"]], "folders")
    await raw.update_folder(folder_id=made["id"], title="Percussion", include=[])
    same((await raw.get_folder(made["id"])).name, "Percussion", "the folder")
    order = await raw.reorder_folders([made["id"], ALL_CHATS])
    same(order["foldersOrder"], [made["id"], ALL_CHATS], "the order")
    await raw.delete_folders([made["id"]])
    same(len(await raw.get_folders()), 1, "folders in the end")


@cell("Photos of a user")
async def photos(room: Room) -> None:
    same(await room.alice.raw.get_profile_photos(), {"urls": [], "total": 0}, "the photos")
    try:
        await room.alice.raw.remove_profile_photo(1)
    except RpcError as error:
        same(error.code, "not.found", "the refusal of a photo that is not there")
    else:
        raise Failure("a photo that is not there was removed")


@cell("Send telemetry")
async def log(room: Room) -> None:
    event = {"type": "NAV", "event": "OPEN", "time": now_ms(), "userId": room.alice.id, "params": {}}
    same(await room.alice.raw.send_log([event]), {}, "the answer")


@cell("Send requests by number or name", short=True)
async def raw_requests(room: Room) -> None:
    alice = room.alice
    same(await alice.raw.call("PING"), {}, "a request by its name")
    same(await alice.client.invoke(1), {}, "a request of the client")
    same(await alice.raw.invoke(1, {}), {}, "a request by its number")
    same((await alice.raw.request(1, {})).payload, {}, "the packet of an answer")
    same(await alice.raw.ping(), {}, "the answer to PING")
    await alice.raw.notify(1, {})
    check("location" in await alice.raw.session_init(), "a second handshake has another answer")


@cell("Handlers, routers and filters of events", short=True)
async def handlers(room: Room) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def note(_: object, update: object) -> None:
        told.put_nowait("handler")

    handler = room.bob.client.add_handler(RawUpdateHandler(note), group=9)
    router = Router("guest")
    room.bob.raw.include_router(router)

    @router.on_message()
    async def in_router(update: object) -> None:
        told.put_nowait("router")

    @room.bob.raw.on_message()
    async def in_client(update: object) -> None:
        told.put_nowait("message")

    @room.bob.raw.on_raw()
    async def in_raw(update: object) -> None:
        told.put_nowait("raw")

    await room.alice.client.send_message(room.chat, "to all of them")
    heard = {await asyncio.wait_for(told.get(), 10) for _ in range(4)}
    while heard != {"handler", "router", "message", "raw"}:
        heard.add(await asyncio.wait_for(told.get(), 10))
    room.bob.client.remove_handler(handler, group=9)


@cell("Ask for a token of another service", fault=Line("maxion/raw/opcodes.py", 260, "Opcode.OK_TOKEN"))
async def ok_token(room: Room) -> None:
    asked = asyncio.ensure_future(room.alice.raw.get_ok_token())
    # Because of the reply's opcode, the library takes the reply for a push. So the call never returns.
    await room.alice.next("raw raw", lambda update: update.opcode == 158)
    with room.fault(Failure):
        check(asked.done(), "the answer reaches nobody")
    asked.cancel()
