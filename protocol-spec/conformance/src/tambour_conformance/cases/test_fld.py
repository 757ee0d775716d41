"""FLD: folders on their user's devices."""

from __future__ import annotations

from typing import Any

import pytest

from tambour_conformance.fixtures import Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import LESS, only
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame

ALL = "all.chat.folder"
#: A case that must reach the limit of folders is skipped if the limit is higher than this.
MOST_FOLDERS = 40

Pair = tuple[Device, Device]


@pytest.fixture
def phone_and_laptop(login: LogIn, newcomer: Newcomer) -> Pair:
    """Two devices of a user without folders."""
    nina = newcomer("nina")
    return login(nina, "phone", interactive=False), login(nina, "laptop", interactive=False)


def put(device: Device, folder: str, title: str = "", **fields: Any) -> Frame:
    """Sends FOLDERS_UPDATE as a stock client does."""
    value = {"id": folder, "title": title, "include": [], "filters": [], **fields}
    return device.call("FOLDERS_UPDATE", value)


def folders(device: Device, since: int = 0) -> Frame:
    return device.call("FOLDERS_GET", {"folderSync": since})


def names(reply: Frame) -> list[str]:
    return [each["id"] for each in reply["folders"]]


def told(device: Device) -> Frame:
    """The only NOTIF_FOLDERS received."""
    device.fence()
    return only(device.pushes("NOTIF_FOLDERS"), f"NOTIF_FOLDERS for {device.name}")


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes("NOTIF_FOLDERS")


@case("FLD-01")
def test_folder_of_all_chats(phone_and_laptop: Pair) -> None:
    """Every user has the folder of all chats, and gets it for any mark."""
    phone, _ = phone_and_laptop
    for value in ({}, {"folderSync": 0}, {"folderSync": 1 << 50}):
        reply = phone.call("FOLDERS_GET", value)
        equal((names(reply), reply["foldersOrder"]), ([ALL], [ALL]), "folders and their order")
        equal(reply["allFilterExcludeFolders"], [], "allFilterExcludeFolders")


@case("FLD-02")
def test_folders_that_changed(phone_and_laptop: Pair) -> None:
    """For a mark the reply has the folders changed after it; `foldersOrder` lists all folders."""
    phone, laptop = phone_and_laptop
    for each in ("a", "b", "c"):
        put(phone, each, each)
    mark = folders(laptop)["folderSync"]
    equal(names(folders(laptop, mark)), [ALL], "folders when nothing changed")
    put(phone, "b", "other")
    phone.call("FOLDERS_DELETE", {"folderIds": ["a"]})
    delta = folders(laptop, mark)
    equal((names(delta), delta["foldersOrder"]), ([ALL, "b"], [ALL, "b", "c"]), "what changed, and the order")
    check(delta["folderSync"] > mark, f"a mark above {mark}", delta["folderSync"])
    equal(names(folders(laptop)), [ALL, "b", "c"], "all folders")


@case("FLD-03")
def test_folders_by_id(phone_and_laptop: Pair, login: LogIn, newcomer: Newcomer) -> None:
    """Lookup by id returns the caller's own folders and omits other ids."""
    phone, _ = phone_and_laptop
    put(phone, "a", "mine")
    other = login(newcomer("other"), interactive=False)
    put(other, "b", "theirs")
    reply = phone.call("FOLDERS_GET_BY_ID", {"folderIds": ["b", "a", "c"]})
    equal([(each["id"], each["title"]) for each in reply["folders"]], [("a", "mine")], "folders")


@case("FLD-04")
def test_new_folder(phone_and_laptop: Pair, login: LogIn, newcomer: Newcomer) -> None:
    """A new folder is last in the order; only the user's other device is notified."""
    phone, laptop = phone_and_laptop
    other = login(newcomer("other"), interactive=False)
    forget(phone, laptop, other)
    fields = {"include": [3, -5], "filters": [0, 9], "options": ["X"], "favorites": [3]}
    reply = put(phone, "a", "Drums", **fields)
    made = reply["folder"]
    equal(
        {key: made[key] for key in ("id", "title", *fields)},
        {"id": "a", "title": "Drums", **fields},
        "folder",
    )
    equal(reply["foldersOrder"], [ALL, "a"], "order")
    push = told(laptop)
    equal((push["folder"], push["foldersOrder"]), (made, [ALL, "a"]), "what the other device is told")
    equal(push["folderSync"], reply["folderSync"], "its mark")
    equal(folders(laptop)["folders"][1], made, "the folder as the other device gets it")
    for device in (phone, laptop, other):
        device.silence_by_fence()
    equal(folders(other)["foldersOrder"], [ALL], "somebody else's folders")


@case("FLD-05")
def test_folder_replaced(phone_and_laptop: Pair) -> None:
    """An existing folder is replaced in its place; a repeated request is not pushed."""
    phone, laptop = phone_and_laptop
    put(phone, "a", "A", include=[3])
    put(phone, "b", "B")
    reply = put(phone, "a", "A2", include=[4])
    equal(reply["foldersOrder"], [ALL, "a", "b"], "order")
    equal((reply["folder"]["title"], reply["folder"]["include"]), ("A2", [4]), "folder")
    forget(laptop)
    again = put(phone, "a", "A2", include=[4])
    equal(again["folderSync"], reply["folderSync"], "mark of no change")
    laptop.silence_by_fence()


@case("FLD-06")
def test_too_many_folders(phone_and_laptop: Pair, limits: Limits) -> None:
    """A folder above maxFolders is refused, and so is a folder that is too large."""
    most = limits["maxFolders"]
    if most > MOST_FOLDERS:
        skip(f"maxFolders is {most}, too many to make: {LESS}")
    phone, laptop = phone_and_laptop
    for number in range(most):
        put(phone, str(number))
    forget(laptop)
    phone.refused(
        "proto.payload", "FOLDERS_UPDATE", {"id": "more", "title": "", "include": [], "filters": []}
    )
    large = ["x" * 1000] * (limits["maxFolderBytes"] // 1000 + 1)
    phone.refused(
        "proto.payload", "FOLDERS_UPDATE", {"id": "0", "title": "", "include": [], "options": large}
    )
    laptop.silence_by_fence()
    equal(len(folders(phone)["foldersOrder"]), most + 1, "folders with that of all chats")


@case("FLD-07")
def test_folder_of_all_chats_stays(phone_and_laptop: Pair) -> None:
    """A request that changes or deletes the folder of all chats is refused as a whole."""
    phone, laptop = phone_and_laptop
    put(phone, "a")
    forget(laptop)
    phone.refused("not.allowed", "FOLDERS_UPDATE", {"id": ALL, "title": "None", "include": [], "filters": []})
    phone.refused("not.allowed", "FOLDERS_DELETE", {"folderIds": ["a", ALL]})
    laptop.silence_by_fence()
    equal(folders(phone)["foldersOrder"], [ALL, "a"], "order")


@case("FLD-08")
def test_reorder(phone_and_laptop: Pair) -> None:
    """The named folders come first; the others follow in their old order."""
    phone, laptop = phone_and_laptop
    for each in ("a", "b", "c"):
        put(phone, each)
    forget(phone, laptop)
    reply = phone.call("FOLDERS_REORDER", {"foldersOrder": ["c", "a"]})
    equal(reply["foldersOrder"], ["c", "a", ALL, "b"], "order")
    push = told(laptop)
    wanted = (reply["foldersOrder"], reply["folderSync"])
    equal((push["foldersOrder"], push["folderSync"]), wanted, "what the other device is told")
    equal(names(folders(laptop)), reply["foldersOrder"], "folders in their order")
    phone.silence_by_fence()


@case("FLD-09")
def test_reorder_what_is_not_there(phone_and_laptop: Pair) -> None:
    """An order with an unknown folder is refused."""
    phone, laptop = phone_and_laptop
    put(phone, "a")
    forget(laptop)
    phone.refused("not.found", "FOLDERS_REORDER", {"foldersOrder": ["a", "x", ALL]})
    laptop.silence_by_fence()
    equal(folders(phone)["foldersOrder"], [ALL, "a"], "order")


@case("FLD-10")
def test_delete_folder(phone_and_laptop: Pair) -> None:
    """A deleted folder disappears on every device; unknown ids are ignored."""
    phone, laptop = phone_and_laptop
    for each in ("a", "b"):
        put(phone, each)
    forget(phone, laptop)
    reply = phone.call("FOLDERS_DELETE", {"folderIds": ["x", "a"]})
    equal(reply["foldersOrder"], [ALL, "b"], "order")
    equal(told(laptop)["foldersOrder"], [ALL, "b"], "what the other device is told")
    equal(phone.call("FOLDERS_GET_BY_ID", {"folderIds": ["a"]})["folders"], [], "the folder by id")
    again = phone.call("FOLDERS_DELETE", {"folderIds": ["a"]})
    equal(again["folderSync"], reply["folderSync"], "mark of no change")
    laptop.silence_by_fence()
