"""What a client finds after the server has restarted."""

from __future__ import annotations

from cells import Room
from harness import same

from with_maxion.device import cell, listed


@cell("Come back after the server restarts", short=True, last=True)
async def restart(room: Room) -> None:
    before = await room.alice.client.send_message(room.chat, "before")
    await room.bob.next("message", lambda message: message.id == before.id)
    room.restart_server()
    for party in (room.alice, room.bob):
        await party.back()
    page = await listed(room.bob.raw.iter_history(room.chat, limit=1, chunk=1))
    same(page[0].id, before.id, "the newest message after the restart")
    after = await room.alice.client.send_message(room.chat, "after")
    await room.bob.next("message", lambda message: message.id == after.id)
