"""OBJ: entities that several devices of a user edit independently."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tambour_conformance.fixtures import Limits, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.settings import Settings
from tambour_conformance.talk import only
from tambour_conformance.verdict import Failed, case, check, equal, skip

#: The time, in milliseconds, on the clock of every device, unless a case sets another time.
NOW = 2_000_000_000_000

Devices = tuple[Device, Device]


class Pen:
    """Makes and sends operations of one device, each with a new `opId`."""

    def __init__(self, device: Device, first: int) -> None:
        self.device = device
        self._ids: Iterator[int] = count(first)
        self._local: Iterator[int] = count(1)

    def op(self, op: str, kind: str, ident: int | str, **fields: Any) -> dict[str, Any]:
        return {
            "opId": next(self._ids),
            "op": op,
            "id": ident,
            "type": kind,
            "base": 0,
            "modified": NOW,
            **fields,
        }

    def creation(self, kind: str, parent: int | str | None = None, **fields: Any) -> dict[str, Any]:
        operation = self.op("CREATE", kind, f"#l{next(self._local)}", fields=fields)
        return operation if parent is None else operation | {"parent": parent}

    def push(self, *operations: dict[str, Any], now: int = NOW) -> list[dict[str, Any]]:
        return self.device.call("OBJ_PUSH", {"clientNow": now, "ops": list(operations)})["results"]

    def create(self, kind: str, parent: int | None = None, **fields: Any) -> int:
        (result,) = self.push(self.creation(kind, parent, **fields))
        equal((result["status"], result["version"]), ("APPLIED", 1), "the creation")
        return result["id"]

    def update(self, kind: str, ident: int, base: int, **fields: Any) -> dict[str, Any]:
        (result,) = self.push(self.op("UPDATE", kind, ident, base=base, fields=fields))
        return result

    def delete(self, kind: str, ident: int, base: int) -> dict[str, Any]:
        (result,) = self.push(self.op("DELETE", kind, ident, base=base))
        return result


def pull(device: Device, **fields: Any) -> dict[str, Any]:
    return device.call("OBJ_PULL", fields)


def settled_pull(device: Device) -> dict[str, Any]:
    """Pulls until a pull is empty, and returns it; its `time` is at or above all earlier changes.

    One pull is not enough, because the next one may repeat changes of the last millisecond.
    """
    deadline = time.monotonic() + device.target.timeout
    reply = pull(device)
    while True:
        following = pull(device, since=reply["time"])
        if not following["objects"]:
            return following
        if time.monotonic() > deadline:
            raise Failed(
                "in the end a pull with the `time` of the one before, and nothing between them, is empty",
                f"{len(following['objects'])} entities",
            )
        reply = following


def entities(reply: dict[str, Any]) -> dict[int, dict[str, Any]]:
    found = {each["id"]: each for each in reply["objects"]}
    equal(len(found), len(reply["objects"]), "entities, each once")
    return found


def conflict(result: dict[str, Any], kind: str) -> dict[str, Any]:
    """Checks that a result is this kind of conflict; returns the server's copy."""
    equal((result["status"], result.get("conflict")), ("CONFLICT", kind), "the result")
    return result["server"]


def rejected(result: dict[str, Any]) -> tuple[str, str]:
    equal(result["status"], "REJECTED", "the result")
    return result["error"], result["path"]


@pytest.fixture
def devices(login: LogIn, newcomer: Newcomer) -> Devices:
    """Two devices of a user without entities."""
    nina = newcomer("nina")
    return (
        login(nina, "phone", interactive=False, capabilities=["objects"]),
        login(nina, "laptop", interactive=False, capabilities=["objects"]),
    )


@pytest.fixture
def desk(devices: Devices) -> tuple[Pen, Pen, int]:
    """The pens of two devices of a user, and the id of a profile of that user."""
    phone, laptop = Pen(devices[0], 1 << 40), Pen(devices[1], 2 << 40)
    profile = phone.create("profile", phone.create("account", name="home"), name="Ann")
    forget(*devices)
    return phone, laptop, profile


Desk = tuple[Pen, Pen, int]


def forget(*devices: Device) -> None:
    """Drops the received pushes that the cases of this file check."""
    for device in devices:
        device.fence()
        device.pushes("NOTIF_OBJ")


@case("OBJ-01")
def test_pull_of_what_changed(desk: Desk) -> None:
    """A delta has each entity that was created, changed or deleted once, and no other entity."""
    phone, laptop, profile = desk
    _, changed, gone = (phone.create("note", profile, title=title) for title in "abc")
    mark = settled_pull(laptop.device)["time"]
    phone.update("note", changed, 1, text="more")
    phone.update("note", changed, 2, text="still more")
    phone.delete("note", gone, 1)
    new = phone.create("note", profile, title="d")
    delta = pull(laptop.device, since=mark)
    found = entities(delta)
    equal(set(found), {changed, gone, new}, "the delta")
    equal(
        (found[changed]["version"], found[changed]["fields"]),
        (3, {"title": "b", "text": "still more"}),
        "changed",
    )
    equal((found[gone].get("deleted"), found[gone].get("fields")), (True, None), "deleted")
    equal(delta.get("resync"), None, "resync of a delta")


@case("OBJ-02")
def test_pull_by_pages(desk: Desk) -> None:
    """Small pages together have the same entities as one large page, even if one request created them."""
    phone, laptop, profile = desk
    phone.push(*(phone.creation("note", profile, title=str(number)) for number in range(9)))
    settled_pull(laptop.device)
    whole = entities(pull(laptop.device))
    equal(len(whole), 11, "entities")
    for size in (1, 2, 4):
        found: list[int] = []
        place = {"since": 0, "after": 0}
        for _ in range(20):
            reply = pull(laptop.device, count=size, **place)
            found += [each["id"] for each in reply["objects"]]
            check(len(reply["objects"]) <= size, f"a page of {size} at most", len(reply["objects"]))
            if not reply.get("more"):
                break
            place = {"since": reply["time"], "after": reply.get("last", 0)}
        equal(sorted(found), sorted(whole), f"ids of pages of {size}")


@case("OBJ-03")
def test_pull_of_everything(desk: Desk, settings: Settings) -> None:
    """Without a mark, or with one from before a restore, a pull has `resync` and all live entities."""
    phone, laptop, profile = desk
    gone = phone.create("note", profile)
    phone.delete("note", gone, 1)
    marks = [0] if settings.before_restore is None else [0, settings.before_restore]
    for mark in marks:
        reply = pull(laptop.device, since=mark)
        equal(reply.get("resync"), True, "resync")
        equal(len(entities(reply)), 2, "entities")
        check(gone not in entities(reply), "nothing deleted", "a tombstone")


@case("OBJ-04")
def test_pull_of_others(desk: Desk, bob: Device) -> None:
    """A user cannot pull another user's entities, and cannot create entities below them."""
    phone, _, profile = desk
    note = phone.create("note", profile)
    element = phone.create("measurement", profile, at=1)
    found = set(entities(pull(bob)))
    equal(found & {note, profile, element}, set(), "what bob sees of them")
    series = pull(bob, series={"type": "measurement", "parent": profile})
    equal(series["objects"], [], "a series of another's profile")
    (result,) = Pen(bob, NOW).push(Pen(bob, NOW).creation("note", profile))
    equal(rejected(result), ("object.parent.deleted", "/parent"), "a note below another's profile")


@case("OBJ-05")
def test_range_of_a_series(desk: Desk) -> None:
    """The pages of a range have the elements in order of position, including both ends of the range."""
    phone, laptop, profile = desk
    other = phone.create("profile", phone.create("account", name="other"))
    for index, at in enumerate((50, 10, 30, 20, 40, 30)):
        phone.create("measurement", profile, at=at, value=float(index))
    phone.create("measurement", other, at=30)
    kinds = {each["type"] for each in pull(laptop.device)["objects"]}
    equal(kinds, {"account", "profile"}, "types of a pull without a range")
    found: list[int] = []
    place = {"from": 20}
    after = 0
    for _ in range(5):
        series = {"type": "measurement", "parent": profile, "to": 40, **place}
        reply = pull(laptop.device, series=series, count=3, after=after)
        found += [each["fields"]["at"] for each in reply["objects"]]
        if not reply.get("more"):
            break
        place, after = {"from": reply["time"]}, reply["last"]
    equal(found, [20, 30, 30, 40], "positions from 20 to 40")


@case("OBJ-06")
def test_odd_pulls(desk: Desk) -> None:
    """A negative mark, a count of 0, and a range of a type that is not a series are refused."""
    device = desk[0].device
    for fields in ({"since": -1}, {"count": 0}, {"series": {"type": "note", "parent": 1}}):
        device.refused("proto.payload", "OBJ_PULL", fields)


@case("OBJ-10")
def test_created_together(desk: Desk) -> None:
    """A new child can name a parent from the same request by the parent's local id."""
    phone, laptop, profile = desk
    account = only(
        [each for each in pull(phone.device)["objects"] if each["type"] == "account"], "the account"
    )["id"]
    parent = phone.creation("profile", account, name="Bea")
    child = phone.creation("note", parent["id"], title="hers")
    first, second = phone.push(parent, child)
    equal([first["status"], second["status"]], ["APPLIED"] * 2, "results")
    equal([first["version"], second["version"]], [1, 1], "versions")
    found = entities(pull(laptop.device))
    equal(found[second["id"]]["parent"], first["id"], "the child's parent")
    equal(found[second["id"]]["createdBy"], child["opId"], "createdBy")


@case("OBJ-11")
def test_operations_sent_again(desk: Desk) -> None:
    """Repeated operations get the first results again and change nothing."""
    phone, laptop, profile = desk
    creation = phone.creation("note", profile, title="one")
    (first,) = phone.push(creation)
    update = phone.op("UPDATE", "note", first["id"], base=1, fields={"title": "two"})
    (second,) = phone.push(update)
    before = entities(pull(laptop.device))
    forget(laptop.device)
    again = phone.push(creation, update)
    equal(again, [each | {"replayed": True} for each in (first, second)], "the results")
    equal(entities(pull(laptop.device)), before, "entities")
    laptop.device.fence()
    equal(laptop.device.pushes("NOTIF_OBJ"), [], "pushes")


@case("OBJ-12")
def test_reused_operation(desk: Desk) -> None:
    """An operation is refused if the device has used its `opId` for a different operation."""
    phone, _, profile = desk
    creation = phone.creation("note", profile, title="one")
    phone.push(creation)
    (result,) = phone.push(creation | {"fields": {"title": "two"}})
    equal(rejected(result), ("object.op.reused", "/opId"), "the second")


@case("OBJ-13")
def test_update_of_an_old_version(desk: Desk) -> None:
    """An update whose base is an old version of a note is a conflict and changes nothing."""
    phone, laptop, profile = desk
    note = phone.create("note", profile, title="one")
    equal(laptop.update("note", note, 1, title="two")["version"], 2, "version")
    server = conflict(phone.update("note", note, 1, text="mine"), "UPDATE_UPDATE")
    equal((server["version"], server["fields"]), (2, {"title": "two"}), "the present copy")
    equal(entities(pull(phone.device))[note], server, "the entity")


@case("OBJ-14")
def test_fields_that_do_not_meet(desk: Desk) -> None:
    """If two devices change different fields of the same version of a profile, both changes stay."""
    phone, laptop, profile = desk
    equal(laptop.update("profile", profile, 1, color="red")["status"], "APPLIED", "the first")
    second = phone.update("profile", profile, 1, born=5)
    equal((second["status"], second["version"]), ("APPLIED", 3), "the second")
    equal(second["object"]["fields"], {"name": "Ann", "color": "red", "born": 5}, "the whole entity")


def preference(pen: Pen, profile: int) -> int:
    return pen.create("preference", profile, key="units", value="kg")


@case("OBJ-15")
def test_later_preference(desk: Desk) -> None:
    """A change of a preference that was made earlier but sent later does not replace the newer value."""
    phone, laptop, profile = desk
    ident = preference(phone, profile)
    later = laptop.op("UPDATE", "preference", ident, base=1, fields={"value": "lb"}, modified=NOW)
    earlier = phone.op("UPDATE", "preference", ident, base=1, fields={"value": "st"}, modified=NOW - 60_000)
    equal(laptop.push(later, now=NOW)[0]["status"], "APPLIED", "the later one")
    (result,) = phone.push(earlier, now=NOW)
    equal(conflict(result, "SUPERSEDED")["fields"]["value"], "lb", "what stays")


@case("OBJ-16")
def test_clock_a_year_ahead(desk: Desk) -> None:
    """A change from a device whose clock is a year ahead does not win over a later change."""
    phone, laptop, profile = desk
    ident = preference(phone, profile)
    ahead = NOW + 31_536_000_000
    wrong = laptop.op("UPDATE", "preference", ident, base=1, fields={"value": "lb"}, modified=ahead)
    equal(laptop.push(wrong, now=ahead)[0]["status"], "APPLIED", "the wrong clock's")
    # Wait for a later millisecond: between changes in one millisecond, the device decides which one wins.
    settled_pull(phone.device)
    right = phone.op("UPDATE", "preference", ident, base=1, fields={"value": "g"}, modified=NOW)
    (result,) = phone.push(right, now=NOW)
    equal((result["status"], result["loser"]["fields"]["value"]), ("APPLIED", "lb"), "what came after it")


@case("OBJ-17")
def test_update_of_what_was_deleted(desk: Desk) -> None:
    """An update restores a deleted preference, but not a deleted note or a note of a deleted profile."""
    phone, laptop, profile = desk
    note, setting = phone.create("note", profile, title="one"), preference(phone, profile)
    laptop.delete("note", note, 1)
    laptop.delete("preference", setting, 1)
    server = conflict(phone.update("note", note, 1, title="two"), "UPDATE_DELETE")
    equal(server.get("deleted"), True, "the copy")
    back = phone.update("preference", setting, 1, value="lb")
    equal(
        (back["status"], back["object"]["fields"]),
        ("APPLIED", {"key": "units", "value": "lb"}),
        "the preference",
    )
    other = phone.create("note", profile, title="other")
    laptop.delete("profile", profile, 1)
    equal(
        rejected(phone.update("note", other, 1, title="x")), ("object.parent.deleted", "/parent"), "below it"
    )


@case("OBJ-18")
def test_deletion_of_what_changed(desk: Desk) -> None:
    """Deleting an old version of a note is a conflict; deleting a note that is already deleted is not."""
    phone, laptop, profile = desk
    note = phone.create("note", profile)
    laptop.update("note", note, 1, title="two")
    equal(conflict(phone.delete("note", note, 1), "DELETE_UPDATE")["version"], 2, "the present version")
    equal(phone.delete("note", note, 2)["status"], "APPLIED", "the deletion")
    again = laptop.delete("note", note, 2)
    equal((again["status"], again.get("replayed")), ("APPLIED", True), "the second")


@case("OBJ-19")
def test_what_stands_below(desk: Desk) -> None:
    """Deleting a profile also deletes its notes and series; other devices are told."""
    phone, laptop, profile = desk
    notes = {phone.create("note", profile) for _ in range(3)}
    phone.create("measurement", profile, at=1)
    mark = settled_pull(laptop.device)["time"]
    forget(laptop.device)
    phone.delete("profile", profile, 1)
    found = entities(pull(laptop.device, since=mark))
    equal(set(found), notes | {profile}, "what changed")
    equal([each.get("deleted") for each in found.values()], [True] * 4, "deleted")
    equal(pull(laptop.device, series={"type": "measurement", "parent": profile})["objects"], [], "the series")
    laptop.device.fence()
    told = [each["id"] for push in laptop.device.pushes("NOTIF_OBJ") for each in push["objects"]]
    equal(set(told), notes | {profile}, "pushes")


@case("OBJ-20")
def test_natural_key(desk: Desk) -> None:
    """Creating a second preference with the same key in a profile is a conflict."""
    phone, laptop, profile = desk
    ident = preference(phone, profile)
    (result,) = laptop.push(laptop.creation("preference", profile, key="units", value="lb"))
    equal(conflict(result, "DUPLICATE")["id"], ident, "the other one")


@case("OBJ-21")
def test_parent_that_failed(desk: Desk) -> None:
    """Operations below an entity that was refused are skipped."""
    phone, _, _ = desk
    parent = phone.creation("profile", 1, name="nowhere")
    child = phone.creation("note", parent["id"])
    first, second = phone.push(parent, child)
    equal(rejected(first), ("object.parent.deleted", "/parent"), "the parent")
    equal((second["status"], second["because"]), ("SKIPPED", parent["opId"]), "the child")


@case("OBJ-22")
def test_order_of_operations(desk: Desk) -> None:
    """In a request, a creation after an update is refused."""
    phone, _, profile = desk
    note = phone.create("note", profile)
    update = phone.op("UPDATE", "note", note, base=1, fields={"title": "two"})
    first, second = phone.push(update, phone.creation("note", profile))
    equal(first["status"], "APPLIED", "the update")
    equal(rejected(second)[0], "object.batch.order", "the creation")


@case("OBJ-23")
def test_impossible_entities(desk: Desk, limits: Limits) -> None:
    """Unknown types, unknown fields, invalid values and updates of series elements are refused."""
    phone, _, profile = desk
    long = "a" * (limits["maxObjectBytes"] + 1)
    if len(long) > limits["maxFrameBytes"] // 2:
        skip("an entity over its limit is too long for a frame")
    results = phone.push(
        phone.creation("song", profile),
        phone.creation("note", profile, titel="one"),
        phone.creation("note", profile, title=1),
        phone.creation("note", profile, title=long),
    )
    equal(
        [rejected(each) for each in results],
        [
            ("object.type.unknown", "/type"),
            ("object.field.unknown", "/fields/titel"),
            ("object.field.kind", "/fields/title"),
            ("object.too.large", "/fields"),
        ],
        "creations",
    )
    element = phone.create("measurement", profile, at=1)
    equal(rejected(phone.update("measurement", element, 1, at=2))[0], "object.append.only", "an element")


@case("OBJ-24")
def test_too_many_entities(desk: Desk, limits: Limits) -> None:
    """A user can have at most `maxObjects` entities."""
    phone, _, profile = desk
    most = limits["maxObjects"]
    if most > 100:
        skip(f"maxObjects is {most}")
    room = most - 2
    results = phone.push(*(phone.creation("note", profile) for _ in range(room + 1)))
    equal([each["status"] for each in results[:-1]], ["APPLIED"] * room, "those there is room for")
    equal(rejected(results[-1])[0], "object.too.many", "one more")


@case("OBJ-25")
def test_no_operation(desk: Desk) -> None:
    """If one operation has an invalid id, the whole request is refused."""
    phone, laptop, profile = desk
    good, bad = phone.creation("note", profile), phone.creation("note", profile)
    for ident in ("l7", "#7", 1.5, [1]):
        operations = [good, bad | {"id": ident}]
        phone.device.refused("proto.payload", "OBJ_PUSH", {"clientNow": NOW, "ops": operations})
    equal(len(entities(pull(laptop.device))), 2, "entities")
