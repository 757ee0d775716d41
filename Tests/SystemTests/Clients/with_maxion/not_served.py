"""Requests that the server does not serve, and requests that it answers with empty results."""

from __future__ import annotations

from cells import Room
from harness import Failure, check, same
from maxion.raw.errors import RpcError
from maxion.raw.types import Message as RawMessage
from maxion.types import Message

from with_maxion.device import cell, listed


@cell("Send photos", unserved=(80,))
async def photos(room: Room) -> None:
    alice = room.alice
    for call in (
        alice.client.send_photo(room.chat, b"photo"),
        alice.raw.send_photo(room.chat, b"photo"),
        alice.raw.upload_photo(b"photo"),
        alice.raw.request_photo_upload(),
    ):
        with room.unserved(alice):
            await call


@cell("Set the own photo", unserved=(16, 80))
async def own_photo(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.request_photo_upload(profile=True)
    with room.unserved(room.alice, "not.allowed"):
        await room.alice.raw.update_profile(photo_token="token")


@cell("Send videos", unserved=(82,))
async def videos(room: Room) -> None:
    alice = room.alice
    for call in (
        alice.client.send_video(room.chat, b"video"),
        alice.raw.send_video(room.chat, b"video"),
        alice.raw.upload_video(b"video"),
        alice.raw.request_video_upload(),
    ):
        with room.unserved(alice):
            await call


@cell("Send files", unserved=(87,))
async def files(room: Room) -> None:
    alice = room.alice
    for call in (
        alice.client.send_document(room.chat, b"file"),
        alice.raw.send_file(room.chat, b"file"),
        alice.raw.upload_file(b"file"),
        alice.raw.request_file_upload(),
    ):
        with room.unserved(alice):
            await call


@cell("Download what was sent", unserved=(83, 88, 203, 301))
async def downloads(room: Room) -> None:
    alice = room.alice
    file = RawMessage({"id": 1, "chatId": room.chat, "attaches": [{"_type": "FILE", "fileId": 1}]}, alice.raw)
    for call in (
        alice.client.download_media(Message(alice.client, file)),
        alice.raw.get_file_url(room.chat, "1", 1),
        alice.raw.get_video_url(room.chat, "1", 1),
        alice.raw.get_audio_url(room.chat, "1", 1),
        alice.raw.refresh_photo_url(1),
    ):
        with room.unserved(alice):
            await call
    # `download` needs an address, which the refused calls do not give; this address leads nowhere.
    try:
        await alice.raw.download("http://127.0.0.1:9/file", room.world.directory / "file")
    except OSError:
        pass
    else:
        raise Failure("something was loaded")


@cell("Write down voice messages", unserved=(202,))
async def transcription(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.transcribe(room.chat, "1")


@cell("Look at sticker sets")
async def assets(room: Room) -> None:
    raw = room.alice.raw
    empty = {"stickerSets": [], "marker": 0}
    same(await raw.get_assets(), empty, "sticker sets")
    same(await raw.search_stickers("drum"), empty, "sticker sets")
    same(await raw.sync_assets(), {"sections": [], "sync": 0}, "sections")
    same(await raw.get_assets_by_ids(1), {"stickers": [], "stickerSets": []}, "stickers by id")
    same((await raw.get_stickers(1), await raw.get_sticker_sets(1)), ([], []), "stickers and sets by id")


@cell("Send stickers, make them and order them", unserved=(29, 81, 193, 194, 259, 260, 261))
async def stickers(room: Room) -> None:
    raw = room.alice.raw
    for call in (
        raw.add_asset(1),
        raw.request_sticker_upload(),
        raw.create_sticker(),
        raw.suggest_stickers("drum"),
        raw.remove_asset(1),
        raw.move_asset(1, 1),
        raw.modify_assets_list(),
    ):
        with room.unserved(room.alice):
            await call
    for send in (raw.send_sticker(room.chat, 1), room.alice.client.send_sticker(room.chat, 1)):
        try:
            await send
        except RpcError as error:
            same(error.code, "error.message.invalid", "the refusal")
        else:
            raise Failure("a sticker was sent")


@cell("Look at the feed of stories")
async def stories_feed(room: Room) -> None:
    same((await room.alice.raw.get_stories_feed())["storiesPreviews"], [], "stories")
    same(await listed(room.alice.raw.iter_stories_feed()), [], "stories")


@cell("Publish, read and rate stories", unserved=(209, 210, 211, 212, 213, 214, 215, 217, 218, 220))
async def stories(room: Room) -> None:
    raw = room.alice.raw
    for call in (
        raw.get_stories_previews(1),
        raw.get_stories_by_owner(1),
        raw.get_story_stats(1),
        raw.get_story_detailed_stats(1),
        raw.react_story(1),
        raw.mark_story(1),
        raw.send_story({}),
        raw.edit_story(1),
        raw.delete_story(1),
        raw.delete_stories(1),
        raw.get_story(1),
        raw.get_stories(1),
    ):
        with room.unserved(room.alice):
            await call


@cell("Calls that were")
async def calls_that_were(room: Room) -> None:
    same((await room.alice.raw.get_video_chat_history(room.chat))["history"], [], "calls")


@cell("Call somebody", unserved=(76, 78, 84, 103, 163, 164, 166, 167, 195))
async def calls(room: Room) -> None:
    raw = room.alice.raw
    for call in (
        raw.start_video_chat(room.chat),
        raw.get_active_video_chat(room.chat),
        raw.create_video_chat_link(room.chat),
        raw.get_inbound_calls(),
        raw.get_call_history(),
        raw.clear_call_history(),
        raw.join_video_chat("link"),
        raw.hangup_video_chat("call"),
        raw.get_video_chat_members(room.chat),
    ):
        with room.unserved(room.alice):
            await call


@cell("See who broadcasts", unserved=(62,))
async def livestream(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.get_livestream_info(room.chat)


@cell("Share where one goes", unserved=(124, 125, 126))
async def live_location(room: Room) -> None:
    raw = room.alice.raw
    for call in (
        raw.send_location(room.chat, 1.0, 2.0, live=True),
        raw.share_live_location(room.chat, 1.0, 2.0),
        raw.stop_live_location(room.chat),
        raw.request_location(room.chat),
    ):
        with room.unserved(room.alice):
            await call


@cell("List where one was mentioned", unserved=(127,))
async def mentions(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.get_last_mentions()


@cell("Talk to bots and their web apps", unserved=(105, 106, 118, 119, 145, 160))
async def bots(room: Room) -> None:
    raw, bob = room.alice.raw, room.bob.id
    for call in (
        raw.press_button(room.chat, "1", "button"),
        raw.external_callback(),
        raw.share_phone_to_webapp(bob),
        raw.get_webapp_init_data(bob),
    ):
        with room.unserved(room.alice):
            await call
    for call in (raw.get_bot_info(bob), raw.suspend_bot(bob, room.chat)):
        with room.unserved(room.alice, "user.not.found"):
            await call
    same(await raw.get_bot_commands(room.chat), {"commands": [], "contacts": []}, "commands")


@cell("Banners")
async def banners(room: Room) -> None:
    same((await room.alice.raw.get_banners())["banners"], [], "banners")


@cell("Preset avatars, organisations, checks of identity, and remote debugging", unserved=(2, 25, 256, 307))
async def others(room: Room) -> None:
    raw = room.alice.raw
    for call in (
        raw.debug("state"),
        raw.get_preset_avatars(),
        raw.get_organizations(1),
        raw.check_esia(room.chat),
    ):
        with room.unserved(room.alice):
            await call
    check(raw.is_connected, "the connection is gone")
