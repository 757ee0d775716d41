"""CON: contacts, blocking, and lookups of users."""

from __future__ import annotations

from typing import Any

from tambour_conformance.fixtures import Cid, Group, LogIn, Newcomer, Phone, new_group
from tambour_conformance.people import Device
from tambour_conformance.talk import (
    NOBODY,
    dialog,
    history,
    ids,
    login_again,
    marks,
    only,
    same_refusal,
    say,
    settled,
)
from tambour_conformance.verdict import case, check, equal


def update(device: Device, user: int, action: str, **fields: Any) -> dict[str, Any]:
    """Sends CONTACT_UPDATE; returns the contact in the reply."""
    return device.call("CONTACT_UPDATE", {"contactId": user, "action": action, **fields})["contact"]


def contact_in(reply: Any, user: int) -> dict[str, Any] | None:
    """The contact with this user id in a reply to LOGIN, or None."""
    found = [each for each in reply.value.get("contacts", []) if each["id"] == user]
    return only(found, f"contact {user}") if found else None


# Adding and removing.


@case("CON-01")
def test_contact_added(login: LogIn, newcomer: Newcomer) -> None:
    """A new contact has the custom name first, then the user's own names, and the phone."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    own = only(owner.call("CONTACT_INFO", {"contactIds": [nina.user_id]})["contacts"], "user")["names"]
    shown = update(owner, nina.user_id, "ADD", firstName="Ninotchka", lastName="Work")
    for seen in (shown, contact_in(login_again(owner), nina.user_id)):
        assert seen is not None
        first, *rest = seen["names"]
        equal(first["type"], "CUSTOM", "type of the first name")
        equal((first["firstName"], first["lastName"]), ("Ninotchka", "Work"), "the given name")
        equal(rest, own, "their own names")
        equal(f"+{seen['phone']}", nina.account.phone, "phone")
    shown = update(owner, nina.user_id, "UPDATE", firstName="")
    equal(shown["names"], own, "names after the given one was taken away")


@case("CON-02")
def test_contact_removed(login: LogIn, newcomer: Newcomer) -> None:
    """A delta reports the removed contact with the status REMOVED; a full login omits the contact."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    update(owner, nina.user_id, "ADD", firstName="Nina")
    mark = marks(settled(owner))
    equal(
        contact_in(login_again(owner, **mark), nina.user_id), None, "the contact in a login without changes"
    )
    update(owner, nina.user_id, "REMOVE")
    gone = contact_in(login_again(owner, **mark), nina.user_id)
    assert gone is not None
    equal(gone.get("status"), "REMOVED", "status")
    check(all(name["type"] != "CUSTOM" for name in gone["names"]), "no given name", gone["names"])
    equal(contact_in(login_again(owner), nina.user_id), None, "the contact in a full login")


@case("CON-02")
def test_removed_with_a_dialog(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """A removed contact with whom the user has a dialog stays in the list of contacts."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    say(owner, dialog(owner, nina), cid())
    update(owner, nina.user_id, "ADD", firstName="Nina")
    update(owner, nina.user_id, "REMOVE")
    kept = contact_in(login_again(owner), nina.user_id)
    assert kept is not None
    check("status" not in kept and "phone" not in kept, "a contact without status and phone", kept)


@case("CON-14")
def test_rename_a_stranger(login: LogIn, newcomer: Newcomer) -> None:
    """A user who is not a contact cannot be given a custom name; an added user can."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    renamed = {"contactId": nina.user_id, "action": "UPDATE", "firstName": "Nina"}
    owner.refused("user.not.found", "CONTACT_UPDATE", renamed)
    update(owner, nina.user_id, "ADD")
    equal(owner.call("CONTACT_UPDATE", renamed)["contact"]["names"][0]["name"], "Nina", "name")


@case("CON-05")
def test_twice(login: LogIn, newcomer: Newcomer) -> None:
    """A repeated request gets the same answer and causes no push."""
    account, nina = newcomer("owner"), login(newcomer("nina"))
    phone, laptop = login(account), login(account, "laptop")
    for action, fields in (("ADD", {"firstName": "Nina"}), ("BLOCK", {}), ("UNBLOCK", {}), ("REMOVE", {})):
        first = update(phone, nina.user_id, action, **fields)
        laptop.fence()
        only(laptop.pushes("NOTIF_CONTACT"), f"NOTIF_CONTACT of {action}")
        equal(update(phone, nina.user_id, action, **fields), first, f"contact after {action} again")
        laptop.silence_by_fence(of=["NOTIF_CONTACT"])


@case("PSH-14")
def test_pushed_to_own_devices(login: LogIn, newcomer: Newcomer) -> None:
    """The user's other devices get the change; the requesting device and the contact get no push."""
    account, nina = newcomer("owner"), login(newcomer("nina"))
    phone, laptop = login(account), login(account, "laptop")
    shown = update(phone, nina.user_id, "ADD", firstName="Nina")
    laptop.fence()
    equal(only(laptop.pushes("NOTIF_CONTACT"), "NOTIF_CONTACT")["contact"], shown, "the contact pushed")
    for device in (phone, nina):
        device.silence_by_fence(of=["NOTIF_CONTACT"])


@case("CON-04")
def test_oneself(login: LogIn, newcomer: Newcomer) -> None:
    """Every action on the caller or on an unknown user is refused."""
    owner = login(newcomer("owner"))
    for action in ("ADD", "UPDATE", "REMOVE", "BLOCK", "UNBLOCK"):
        owner.refused("not.allowed", "CONTACT_UPDATE", {"contactId": owner.user_id, "action": action})
        owner.refused("user.not.found", "CONTACT_UPDATE", {"contactId": NOBODY, "action": action})
    owner.refused("not.allowed", "CONTACT_CREATE", {"phone": owner.account.phone, "firstName": "Me"})


# Blocking.


@case("CON-03")
def test_blocked(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """A blocked user gets the answers for an unknown chat; both users keep the earlier messages."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chat = dialog(owner, nina)
    before = say(nina, chat, cid(), "before")
    owner.fence()
    owner.pushes("NOTIF_MESSAGE", "NOTIF_CHAT")
    update(owner, nina.user_id, "BLOCK")
    unknown = nina.refused(
        "chat.not.found",
        "MSG_SEND",
        {"chatId": nina.user_id ^ NOBODY, "message": {"cid": cid(), "text": "hi"}},
    )
    for target in ({"chatId": chat}, {"userId": owner.user_id}):
        refused = nina.refused(
            "chat.not.found", "MSG_SEND", {**target, "message": {"cid": cid(), "text": "hi"}}
        )
        same_refusal(refused, unknown, "a message to who blocked me")
    nina.refused("chat.not.found", "MSG_EDIT", {"chatId": chat, "messageId": before["id"], "text": "after"})
    nina.refused("chat.not.found", "MSG_TYPING", {"chatId": chat, "type": "TEXT"})
    reaction = {"reactionType": "EMOJI", "id": "👍"}
    nina.refused(
        "chat.not.found", "MSG_REACTION", {"chatId": chat, "messageId": before["id"], "reaction": reaction}
    )
    owner.silence_by_fence(of=["NOTIF_MESSAGE", "NOTIF_TYPING"])
    for device in (owner, nina):
        equal(ids(history(device, chat, backward=10)), [before["id"]], f"history of {device.name}")
    update(owner, nina.user_id, "UNBLOCK")
    say(nina, chat, cid(), "again")


@case("CON-03")
def test_blocked_before_a_dialog(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """A user blocks a stranger before any dialog; the stranger can neither write nor invite."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    update(owner, nina.user_id, "BLOCK")
    nina.refused(
        "chat.not.found", "MSG_SEND", {"userId": owner.user_id, "message": {"cid": cid(), "text": "hi"}}
    )
    nina.refused("chat.not.found", "CHAT_HISTORY", {"chatId": dialog(owner, nina), "backward": 1})
    control = {"_type": "CONTROL", "event": "new", "title": "Trap", "userIds": [owner.user_id]}
    nina.refused("user.not.found", "MSG_SEND", {"message": {"cid": cid(), "attaches": [control]}})
    owner.silence_by_fence(of=["NOTIF_MESSAGE", "NOTIF_CHAT"])


@case("CON-30", "MSG-41")
def test_nothing_new_from_the_blocked(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """The blocking user gets no read mark or new name; a retry of a send does not reveal presence."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chat, number = dialog(owner, nina), cid()
    say(nina, chat, number)
    last = say(owner, chat, cid())
    update(owner, nina.user_id, "BLOCK")
    mark = settled(owner)["time"]
    for device in (owner, nina):
        device.fence()
        device.pushes("NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_CONTACT")
    read = {"chatId": chat, "type": "READ_MESSAGE", "messageId": last["id"]}
    equal(nina.call("CHAT_MARK", read)["unread"], 0, "unread messages")
    nina.call("PROFILE", {"firstName": "Answer me"})
    say(nina, chat, number)
    owner.silence_by_fence(of=["NOTIF_MESSAGE", "NOTIF_CHAT", "NOTIF_CONTACT", "NOTIF_MARK"])
    equal(login_again(owner, chatsSync=mark)["chats"], [], "chats that changed")
    owner.call("PING", {"interactive": False})
    nina.silence_by_fence(of=["NOTIF_PRESENCE"])


@case("CON-13")
def test_to_whom_one_has_blocked(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """A user cannot write to a user whom they have blocked; they can after unblocking."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    chat = dialog(owner, nina)
    update(owner, nina.user_id, "BLOCK")
    owner.refused("not.allowed", "MSG_SEND", {"chatId": chat, "message": {"cid": cid(), "text": "hi"}})
    update(owner, nina.user_id, "UNBLOCK")
    stored = say(owner, chat, cid())
    update(owner, nina.user_id, "BLOCK")
    owner.refused("not.allowed", "MSG_SEND", {"chatId": chat, "message": {"cid": cid(), "text": "hi"}})
    owner.refused("not.allowed", "MSG_EDIT", {"chatId": chat, "messageId": stored["id"], "text": "ho"})
    nina.fence()
    equal(len(nina.pushes("NOTIF_MESSAGE")), 1, "messages pushed")


# The phone book.


@case("CON-06")
def test_phone_book(login: LogIn, newcomer: Newcomer, phone: Phone) -> None:
    """The owners of the numbers become contacts with the names in the phone book."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    book = {
        nina.account.phone: {"firstName": "Nina from the book"},
        phone(): {"firstName": "Nobody"},
        "no number": {"firstName": "Nothing"},
        owner.account.phone: {"firstName": "Me"},
    }
    reply = owner.call("SYNC", {"contactList": book})
    equal(ids(reply["contacts"]), [nina.user_id], "contacts")
    equal(reply["phones"], {nina.account.phone: nina.user_id}, "phones")
    equal(reply["contacts"][0]["names"][0]["name"], "Nina from the book", "name")
    equal(ids(login_again(owner)["contacts"]), [nina.user_id], "contacts at the next login")
    equal(owner.call("SYNC", {"contactList": {}})["contacts"], [], "contacts of an empty phone book")


@case("CON-10")
def test_create_by_phone(login: LogIn, newcomer: Newcomer, phone: Phone) -> None:
    """An unknown phone is refused; a known phone adds its owner, and `new` is true only the first time."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    for number in (phone(), "no number"):
        owner.refused("user.not.found", "CONTACT_CREATE", {"phone": number, "firstName": "Nobody"})
    for is_new in (True, False):
        reply = owner.call(
            "CONTACT_CREATE", {"phone": nina.account.phone, "firstName": "Nina", "lastName": "N"}
        )
        equal(
            (reply["contact"]["id"], reply["new"]),
            (nina.user_id, is_new),
            "the contact, and whether it is new",
        )
    equal(reply["contact"]["names"][0]["name"], "Nina N", "name")


# Requesting users.


@case("CON-07")
def test_presence_asked_for(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """Presence is returned for existing users who have not blocked the caller."""
    owner, nina, olga = login(newcomer("owner")), login(newcomer("nina")), login(newcomer("olga"))
    for other in (nina, olga):
        say(owner, dialog(owner, other), cid())
    update(olga, owner.user_id, "BLOCK")
    asked = {"contactIds": [olga.user_id, NOBODY, nina.user_id]}
    shown = owner.call("CONTACT_PRESENCE", asked)["presence"]
    equal(set(shown), {str(nina.user_id)}, "whose presence is shown")
    equal(shown[str(nina.user_id)]["status"], 1, "status")
    equal(str(olga.user_id) in login_again(owner)["presence"], False, "whoever blocked me at LOGIN")


@case("CON-08")
def test_blocked_in_pages(login: LogIn, newcomer: Newcomer) -> None:
    """Pages together list each blocked user once."""
    owner = login(newcomer("owner"))
    blocked = sorted(login(newcomer(f"guest {number}")).user_id for number in range(3))
    for user in blocked:
        equal(update(owner, user, "BLOCK")["status"], "BLOCKED", "status")
    asked = {"status": "BLOCKED", "count": 2}
    page = owner.call("CONTACT_LIST", asked)
    equal(ids(page["contacts"]), blocked[:2], "the first page")
    rest = owner.call("CONTACT_LIST", {**asked, "from": page["marker"]})
    equal(ids(rest["contacts"]), blocked[2:], "the second page")
    check("marker" not in rest.value, "no marker at the end", rest.value)
    update(owner, blocked[0], "UNBLOCK")
    equal(ids(owner.call("CONTACT_LIST", asked)["contacts"]), blocked[1:], "the list after one was unblocked")


@case("CON-09")
def test_no_photos(login: LogIn) -> None:
    """The list of a user's photos is empty."""
    alice, bob = login("alice"), login("bob")
    reply = alice.call("CONTACT_PHOTOS", {"contactId": bob.user_id, "from": 0, "count": 10})
    equal((reply["urls"], reply["total"]), ([], 0), "photos")
    alice.refused("user.not.found", "CONTACT_PHOTOS", {"contactId": NOBODY})


@case("CON-11")
def test_no_photo_to_remove(login: LogIn) -> None:
    """Deleting a photo is refused, because there are no photos."""
    login("alice").refused("not.found", "REMOVE_CONTACT_PHOTO", {"photoId": 1})


@case("CON-12")
def test_common_groups(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """The reply lists common groups only, the most recent first."""
    owner, nina, olga = login(newcomer("owner")), login(newcomer("nina")), login(newcomer("olga"))
    both = group(owner, nina, olga)
    # Groups that changed in the same millisecond have no defined order.
    settled(owner)
    one = group(owner, nina)
    group(owner, olga)
    group(nina, olga)
    say(owner, dialog(owner, nina), cid())
    settled(owner)

    def common(*users: int) -> list[int]:
        reply = owner.call("CHAT_SEARCH_COMMON_PARTICIPANTS", {"userIds": list(users)})
        equal(reply["hasMore"], False, "whether there are more")
        return ids(reply["commonChats"])

    equal(common(nina.user_id), [one, both], "groups with one")
    equal(common(nina.user_id, olga.user_id), [both], "groups with two")
    equal(common(NOBODY), [], "groups with nobody")
    equal(common(owner.user_id), [], "groups with oneself alone")
    say(nina, both, cid())
    equal(common(nina.user_id), [both, one], "groups after one was written to")


@case("CON-31")
def test_many_common_groups(login: LogIn, newcomer: Newcomer, group: Group) -> None:
    """Pages together list each common group once."""
    owner, nina = login(newcomer("owner")), login(newcomer("nina"))
    groups = []
    for number in range(5):
        groups.append(group(owner, nina))
        # Some groups are created in the same millisecond, others in different ones.
        if number % 2:
            settled(owner)
    result: list[int] = []
    marker: dict[str, int] = {}
    for _ in range(20):
        value = {"userIds": [nina.user_id], "count": 2, **marker}
        reply = owner.call("CHAT_SEARCH_COMMON_PARTICIPANTS", value)
        result += ids(reply["commonChats"])
        check(len(reply["commonChats"]) <= 2, "no more than asked for", reply)
        equal(reply["hasMore"], "marker" in reply.value, "hasMore, as there is a marker")
        if not reply["hasMore"]:
            break
        marker = {"marker": reply["marker"]}
    equal(sorted(result), sorted(groups), "all pages")


# Visibility of users.


def seen(device: Device, *others: Device) -> list[int]:
    """The ids of those given users that CONTACT_INFO returns."""
    return ids(device.call("CONTACT_INFO", {"contactIds": [each.user_id for each in others]})["contacts"])


def present(device: Device, *others: Device) -> set[int]:
    """The ids of those given users whose presence CONTACT_PRESENCE returns."""
    asked = {"contactIds": [each.user_id for each in others]}
    return {int(user) for user in device.call("CONTACT_PRESENCE", asked)["presence"]}


def meet(device: Device, other: Device) -> None:
    """Finds a user by phone."""
    device.call("CONTACT_INFO_BY_PHONE", {"phone": other.account.phone})


@case("CON-15")
def test_an_id_is_no_introduction(login: LogIn, newcomer: Newcomer, cid: Cid) -> None:
    """Requests with the id of a stranger get the same answers as requests with an unknown id."""
    nina, olga = (login(newcomer(name), stranger=True) for name in ("nina", "olga"))
    alike = []
    for user in (olga.user_id, NOBODY):
        info = nina.call("CONTACT_INFO", {"contactIds": [user]})
        presence = nina.call("CONTACT_PRESENCE", {"contactIds": [user]})
        refused = [
            nina.refused("user.not.found", "CONTACT_UPDATE", {"contactId": user, "action": action})
            for action in ("ADD", "UPDATE", "REMOVE", "BLOCK", "UNBLOCK")
        ]
        refused.append(nina.refused("user.not.found", "CONTACT_PHOTOS", {"contactId": user}))
        refused.append(nina.refused("user.not.found", "MSG_SEND", new_group(cid(), user)))
        card = {"cid": cid(), "attaches": [{"_type": "CONTACT", "contactId": user}]}
        refused.append(nina.refused("user.not.found", "MSG_SEND", {"chatId": 0, "message": card}))
        alike.append((info, presence, refused))
    (info, presence, refused), (no_info, no_presence, unknown) = alike
    equal(info.value, no_info.value, "the reply of CONTACT_INFO")
    equal((info["contacts"], presence["presence"]), ([], {}), "what is told")
    equal(presence["presence"], no_presence["presence"], "the presence")
    for one, other in zip(refused, unknown, strict=True):
        same_refusal(one, other, "a stranger and nobody")
    olga.silence_by_fence()


@case("CON-16")
def test_where_people_meet(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """A lookup, a group, a dialog or a forward makes a profile visible; a user who leaves loses it."""
    names = ("nina", "olga", "pia", "rita", "sara")
    nina, olga, pia, rita, sara = (login(newcomer(name), stranger=True) for name in names)
    equal(seen(nina, olga, pia, rita, sara), [], "strangers")
    meet(nina, olga)
    equal(seen(nina, olga), [olga.user_id], "somebody found by a phone")
    meet(olga, nina)
    meet(olga, pia)
    chat = group(olga, nina, pia)
    equal(seen(nina, pia), [pia.user_id], "a member of a group")
    equal(seen(pia, nina), [nina.user_id], "and the other way round")
    said = say(rita, dialog(rita, olga), cid())
    equal(seen(olga, rita), [rita.user_id], "who has written")
    forward = {"type": "FORWARD", "chatId": dialog(rita, olga), "messageId": said["id"]}
    olga.call("MSG_SEND", {"chatId": chat, "message": {"cid": cid(), "link": forward}})
    equal(seen(nina, rita, sara), [rita.user_id], "the author of a forward, and a stranger")
    pia.call("CHAT_LEAVE", {"chatId": chat})
    equal(seen(nina, pia), [pia.user_id], "a member who has left")
    equal(seen(pia, nina), [], "a member for who has left")
    nina.call("CHAT_LEAVE", {"chatId": chat})
    equal(seen(nina, pia, rita), [], "people of a group that was left")


@case("CON-17")
def test_closer_than_a_profile(login: LogIn, newcomer: Newcomer, group: Group, cid: Cid) -> None:
    """A user found by phone shows no presence; members of a common group show it until one leaves."""
    nina, olga, pia = (login(newcomer(name), stranger=True) for name in ("nina", "olga", "pia"))
    meet(nina, olga)
    equal((seen(nina, olga), present(nina, olga)), ([olga.user_id], set()), "somebody found")
    meet(olga, nina)
    meet(olga, pia)
    chat = group(olga, nina, pia)
    equal(present(nina, olga, pia), {olga.user_id, pia.user_id}, "members of a group")
    pia.call("CHAT_LEAVE", {"chatId": chat})
    equal(present(nina, pia), set(), "a member who has left")
    equal(present(pia, nina), set(), "a member for who has left")
    say(pia, dialog(pia, nina), cid())
    equal(present(nina, pia), {pia.user_id}, "a partner")


@case("CON-32")
def test_contacts_by_status(login: LogIn, newcomer: Newcomer) -> None:
    """CONTACT_LIST returns the contacts with the requested status."""
    owner = login(newcomer("owner"))
    added, blocked, both, removed = (login(newcomer(name)) for name in ("nina", "olga", "otto", "pia"))
    for who in (added, both, removed):
        owner.call("CONTACT_UPDATE", {"contactId": who.user_id, "action": "ADD"})
    for who in (blocked, both):
        owner.call("CONTACT_UPDATE", {"contactId": who.user_id, "action": "BLOCK"})
    owner.call("CONTACT_UPDATE", {"contactId": removed.user_id, "action": "REMOVE"})

    def listed(**value: str) -> set[int]:
        return {each["id"] for each in owner.call("CONTACT_LIST", value)["contacts"]}

    equal(listed(status="ACTIVE"), {added.user_id}, "added")
    equal(listed(status="BLOCKED"), {blocked.user_id, both.user_id}, "blocked")
    equal(listed(), {blocked.user_id, both.user_id}, "without a status")
    equal(listed(status="REMOVED"), {removed.user_id}, "removed")
    equal(listed(status="NONSENSE"), set(), "another status")
