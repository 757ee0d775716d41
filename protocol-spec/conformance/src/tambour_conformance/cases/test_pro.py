"""PRO: the caller's own profile."""

from __future__ import annotations

from typing import Any

from tambour_conformance.fixtures import Cid, LogIn, Newcomer
from tambour_conformance.people import Device
from tambour_conformance.talk import dialog, login_again, marks, only, say, settled
from tambour_conformance.verdict import case, check, equal


def changed(device: Device, **fields: Any) -> dict[str, Any]:
    """Sends PROFILE; returns the user in the reply."""
    return device.call("PROFILE", fields)["profile"]["contact"]


@case("PRO-01")
def test_new_name(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """Dialog partners get a push of a new name; they and the caller see it at their next login."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    say(owner, dialog(owner, nina), cid())
    mark = marks(settled(owner))
    owner.pushes("NOTIF_CONTACT")
    own = changed(nina, firstName=" Ninotchka ", lastName="Ray", description="Plays drums")
    name = only(own["names"], "name")
    equal((name["firstName"], name["lastName"], name["name"]), ("Ninotchka", "Ray", "Ninotchka Ray"), "name")
    equal(own["description"], "Plays drums", "description")
    owner.fence()
    pushed = only(owner.pushes("NOTIF_CONTACT"), "NOTIF_CONTACT")["contact"]
    contacts = {each["id"]: each for each in login_again(owner, **mark)["contacts"]}
    for seen in (pushed, contacts[nina.user_id]):
        equal((seen["id"], seen["names"][-1]), (nina.user_id, name), "the user as a partner sees them")
    equal(login_again(nina)["profile"]["contact"]["names"], [name], "own names at the next login")
    equal(changed(nina, description="")["names"], [name], "names after another field changed")


@case("PRO-02")
def test_empty_name(login: LogIn, newcomer: Newcomer) -> None:
    """A user cannot remove the first name, but can empty the other fields."""
    nina = login(newcomer("nina"))
    changed(nina, firstName="Nina", lastName="Ray", description="Plays drums")
    for nothing in ("", " \t"):
        nina.refused("proto.payload", "PROFILE", {"firstName": nothing})
    own = changed(nina, lastName="", description="")
    equal(only(own["names"], "name")["name"], "Nina", "name")
    check("description" not in own, "no description", own)


@case("PRO-03", "PSH-15")
def test_other_devices(login: LogIn, newcomer: Newcomer) -> None:
    """A change is pushed to the caller's other devices; a request without effect causes no push."""
    account = newcomer("nina")
    phone, laptop = login(account), login(account, "laptop")
    own = changed(phone, firstName="Ninotchka")
    laptop.fence()
    equal(
        only(laptop.pushes("NOTIF_PROFILE"), "NOTIF_PROFILE")["profile"]["contact"], own, "the profile pushed"
    )
    equal(changed(phone, firstName="Ninotchka"), own, "the profile after nothing changed")
    equal(changed(phone), own, "the profile after a request that names nothing")
    for device in (phone, laptop):
        device.silence_by_fence(of=["NOTIF_PROFILE"])


@case("PRO-04")
def test_not_served(login: LogIn, newcomer: Newcomer) -> None:
    """A request with an unserved field is refused as a whole."""
    nina = login(newcomer("nina"))
    before = changed(nina)
    for key, value in (("photoToken", "abc"), ("photoId", 1), ("link", "nina")):
        nina.refused("not.allowed", "PROFILE", {"firstName": "Other", key: value})
    equal(changed(nina), before, "the profile")


@case("PRO-05")
def test_a_name_in_one(login: LogIn, newcomer: Newcomer) -> None:
    """The field `name` replaces first and last name, unless the request has a `firstName`."""
    nina = login(newcomer("nina"))
    nina.call("PROFILE", {"firstName": "Nina", "lastName": "Ray"})
    name = nina.call("PROFILE", {"name": "Nina Lee"})["profile"]["contact"]["names"][0]
    equal((name["firstName"], name.get("lastName")), ("Nina Lee", None), "names")
    name = nina.call("PROFILE", {"firstName": "Nina", "name": "Somebody"})["profile"]["contact"]["names"][0]
    equal(name["firstName"], "Nina", "the first name beside a name")
