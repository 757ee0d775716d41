"""A chat in the terminal, with the unmodified public client library `maxapi-python`.

    python docs/examples/chat.py MY_PHONE PEER_PHONE [HOST:PORT]

The first time it asks for the login code, which the server prints on its console; an unknown phone
becomes an account. Afterwards the token in `.build/chat/` is enough. Type a line to send it;
Ctrl-D quits. The chat reconnects when the server restarts.
"""

import asyncio
import os
import sys
from contextlib import suppress
from datetime import datetime

from pymax import ApiError, Client, ExtraConfig, Message, RegistrationConfig


async def chat(my_phone: str, peer_phone: str, address: str = "127.0.0.1:7770") -> None:
    host, _, port = address.rpartition(":")
    config = ExtraConfig(host=host, port=int(port), use_ssl=False, telemetry=False, log_level="CRITICAL",
                         registration_config=RegistrationConfig(first_name=my_phone))
    client = Client(my_phone, f"{my_phone}.db", work_dir=".build/chat", extra_config=config)
    typed: asyncio.Queue[str] = asyncio.Queue()

    @client.on_message()
    async def show(message: Message, _: Client) -> None:
        sender = await client.get_user(message.sender)
        clock = datetime.fromtimestamp(message.time / 1000).strftime("%H:%M")
        print(f"{clock} {sender.names[0].name if sender else '?'}: {message.text}", flush=True)

    async def find_peer() -> int | None:
        try:
            peer = await client.search_by_phone(peer_phone)
            return client.get_chat_id(client.me.contact.id, peer.id)
        except ApiError as error:
            print(f"-- {peer_phone}: {error}. They have to start their side first.", flush=True)
            return None

    @client.on_start()
    async def talk(_: Client) -> None:
        """Runs as long as a connection lasts; lines typed without a connection wait for the next one."""
        print(f"-- connected to {address} as {my_phone}; type to write, Ctrl-D to leave", flush=True)
        asyncio.get_running_loop().add_reader(sys.stdin, read_typed)
        dialog = await find_peer()
        with suppress(ApiError):  # nobody has written yet
            for message in await client.fetch_history(dialog, backward=10) if dialog else []:
                await show(message, client)
        while line := await typed.get():
            dialog = dialog or await find_peer()
            try:
                if dialog:
                    await client.send_message(dialog, line)
            except ApiError as error:
                print(f"-- not sent: {error}", flush=True)

    @client.on_disconnect()
    async def lost(error: Exception, _: bool, delay: float) -> None:
        print(f"-- {error}; trying again in {delay:g} s", flush=True)

    def read_typed() -> None:
        text = os.read(sys.stdin.fileno(), 4096).decode(errors="replace")
        for line in filter(str.strip, text.splitlines()):
            typed.put_nowait(line)
        if not text:
            running.cancel()

    running = asyncio.create_task(client.start())
    with suppress(asyncio.CancelledError):
        await running


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with suppress(KeyboardInterrupt):
        asyncio.run(chat(*sys.argv[1:4]))
