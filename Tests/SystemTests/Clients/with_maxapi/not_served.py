"""What the server does not serve."""

from __future__ import annotations

from cells import Room
from harness import same
from pymax.api.stories import StoryStatsFilter
from pymax.files import File, Photo, Video
from pymax.types.domain.attachments.keyboards.enums import ButtonType

from with_maxapi.device import cell


@cell("Send photos", unserved=(80,))
async def photos(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.send_message(room.chat, attachments=[Photo(raw=b"photo", name="photo.jpg")])


@cell("Set the photo of a group", unserved=(80,))
async def group_photo(room: Room) -> None:
    group, _ = await room.alice.client.create_group("Drummers", [])
    with room.unserved(room.alice):
        await room.alice.client.change_group_profile(group.id, photo=Photo(raw=b"photo", name="photo.jpg"))


@cell("Set the own photo", unserved=(80,))
async def own_photo(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.request_profile_photo_upload_url()
    with room.unserved(room.alice):
        await room.alice.client.change_profile("Alice", photo=Photo(raw=b"photo", name="photo.jpg"))


@cell("Send videos", unserved=(82,))
async def videos(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.send_message(room.chat, attachments=[Video(raw=b"video", name="video.mp4")])


@cell("Send files", unserved=(87,))
async def files(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.send_message(room.chat, attachments=[File(raw=b"file", name="file.txt")])


@cell("Download what was sent", unserved=(83, 88))
async def downloads(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.get_file_by_id(room.chat, 1, 1)
    with room.unserved(room.alice):
        await room.alice.client.get_video_by_id(room.chat, 1, 1)


@cell("Look at the feed of stories")
async def stories_feed(room: Room) -> None:
    same(await room.alice.client.get_stories_feed(), ([], ""), "stories")


@cell("Publish, read and rate stories", unserved=(80, 210, 212, 213, 214, 217, 218, 220))
async def stories(room: Room) -> None:
    client, alice = room.alice.client, room.alice.id
    for call in (
        client.send_story(Photo(raw=b"photo", name="photo.jpg")),
        client.get_stories(alice),
        client.get_story_detailed_stats(1, StoryStatsFilter.VIEWS),
        client.add_story_reaction(alice, 1, "👍"),
        client.remove_story_reaction(alice, 1),
        client.read_story(1, alice),
        client.edit_story(1, 0),
        client.delete_story(1),
        client.get_stories_by_id(alice, [1]),
    ):
        with room.unserved(room.alice):
            await call


@cell("Talk to bots and their web apps", unserved=(118, 160))
async def bots(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.client.send_callback("callback", ButtonType.CALLBACK)
    with room.unserved(room.alice):
        await room.alice.client.get_bot_init_data(room.bob.id)
