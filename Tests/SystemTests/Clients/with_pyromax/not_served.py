"""What the server does not serve."""

from __future__ import annotations

from cells import Room
from pyromax.mapping.envelope.v11.payloads.models import FileMappingModel
from pyromax.models import FileAttachment, PhotoAttachment, VideoAttachment

from with_pyromax.device import cell


@cell("Send photos", unserved=(80,))
async def photos(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.upload_file(b"photo", PhotoAttachment)


@cell("Set the own photo", unserved=(80,))
async def own_photo(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.change_profile("Alice", photo=b"photo")


@cell("Send videos", unserved=(82,))
async def videos(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.upload_file(b"video", VideoAttachment)


@cell("Send files", unserved=(87,))
async def files(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.upload_file(b"file", FileAttachment)


@cell("Download what was sent", unserved=(88,))
async def downloads(room: Room) -> None:
    file = FileMappingModel(type="FILE", file_id=1, message_id="1", chat_id=room.chat, uploaded=True)
    with room.unserved(room.alice):
        await room.alice.client.download_file(file)
