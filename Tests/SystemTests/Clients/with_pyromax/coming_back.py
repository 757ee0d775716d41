"""What a client finds after the server has restarted."""

from __future__ import annotations

from cells import Room
from harness import now_ms, same

from with_pyromax.device import cell


@cell("Come back after the server restarts", short=True, last=True)
async def restart(room: Room) -> None:
    before = await room.alice.client.send_message(room.chat, "before")
    await room.bob.next("message", lambda message: message.message_id == before.message_id)
    room.restart_server()
    for party in (room.alice, room.bob):
        await party.back()
    page = await room.bob.client.get_chat_history(room.chat, backward=1, from_time=now_ms() + 60_000)
    same(page[0].message_id, before.message_id, "the newest message after the restart")
    after = await room.alice.client.send_message(room.chat, "after")
    await room.bob.next("message", lambda message: message.message_id == after.message_id)
