"""ACC: changing the phone of an account, and deleting it."""

from __future__ import annotations

import pytest

from tambour_conformance.cases.test_grp import MEMBERS, change, event_of, forget
from tambour_conformance.cases.test_pol import ask as ask_poll
from tambour_conformance.cases.test_pol import of, vote
from tambour_conformance.cases.test_rea import react
from tambour_conformance.connection import Connection
from tambour_conformance.fixtures import Cid, Connect, Group, Limits, LogIn, Newcomer
from tambour_conformance.people import Account, Device, People
from tambour_conformance.talk import PATIENCE, chat_of, dialog, history, ids, only, say, time_out
from tambour_conformance.verdict import case, check, equal, skip
from tambour_conformance.wire import Frame


def ask(device: Device, phone: str) -> str:
    """The token of PHONE_BIND_REQUEST."""
    return device.call("PHONE_BIND_REQUEST", {"phone": phone, "type": "START_AUTH"})["token"]


def registers(connection: Connection, accounts: People, account: Account) -> bool:
    """Whether a phone has no account."""
    token = connection.call("AUTH_REQUEST", {"phone": account.phone, "type": "START_AUTH"})["token"]
    checked = connection.call("AUTH", {"token": token, "verifyCode": accounts.code(account)})
    return "REGISTER" in checked["tokenAttrs"]


@case("ACC-01")
def test_a_code_for_another_phone(
    login: LogIn, newcomer: Newcomer, accounts: People, client: Connection
) -> None:
    """A phone without an account and a phone with one both get a code; neither code can sign in."""
    nina, phone = login(newcomer("nina")), newcomer()
    taken = newcomer("taken")
    login(taken)
    for account in (phone, taken):
        token = ask(nina, account.phone)
        value = {"token": token, "verifyCode": accounts.code(account)}
        client.refused("error.code.expired", "AUTH", value)
    nina.refused("error.phone.wrong", "PHONE_BIND_REQUEST", {"phone": "nobody"})


@case("ACC-02")
def test_another_phone(login: LogIn, newcomer: Newcomer, accounts: People, client: Connection) -> None:
    """An account moves to another phone: sessions stay, contacts are notified, the old phone is free."""
    old, new = newcomer("nina"), newcomer("new")
    phone, laptop, friend = login(old), login(old, "laptop"), login(newcomer("friend"))
    friend.call("CONTACT_UPDATE", {"contactId": phone.user_id, "action": "ADD"})
    value = {"token": ask(phone, new.phone), "verifyCode": accounts.code(new)}
    reply = phone.call("PHONE_BIND_CONFIRM", value)
    equal(f"+{reply['profile']['contact']['phone']}", new.phone, "phone")
    told = laptop.push("NOTIF_PROFILE")
    equal(f"+{told['profile']['contact']['phone']}", new.phone, "what the other device is told")
    phone.fence()
    equal(phone.pushes("NOTIF_PROFILE"), [], "what the caller is told besides")
    contact = friend.push("NOTIF_CONTACT")["contact"]
    equal((contact["id"], f"+{contact['phone']}"), (phone.user_id, new.phone), "what a contact is told")
    check(registers(client, accounts, old), "an old phone without an account", "it has one")
    check(not registers(client, accounts, new), "a new phone with an account", "it has none")


@case("ACC-02")
def test_codes_from_before(login: LogIn, newcomer: Newcomer, accounts: People, client: Connection) -> None:
    """A code sent to the phone before the account moved to it cannot log in."""
    old, new = newcomer("nina"), newcomer("new")
    device = login(old)
    token = client.call("AUTH_REQUEST", {"phone": new.phone, "type": "START_AUTH"})["token"]
    code = accounts.code(new)
    value = {"token": ask(device, new.phone), "verifyCode": accounts.code(new)}
    device.call("PHONE_BIND_CONFIRM", value)
    client.refused("error.code.expired", "AUTH", {"token": token, "verifyCode": code})


@case("ACC-03")
def test_a_phone_that_is_taken(login: LogIn, newcomer: Newcomer, accounts: People) -> None:
    """Moving to a phone with an account is refused; both accounts keep their phones."""
    first, second = newcomer("first"), newcomer("second")
    one, other = login(first), login(second)
    value = {"token": ask(one, second.phone), "verifyCode": accounts.code(second)}
    one.refused("error.phone.taken", "PHONE_BIND_CONFIRM", value)
    for device, account in ((one, first), (other, second)):
        user = only(device.call("CONTACT_INFO", {"contactIds": [device.user_id]})["contacts"], "user")
        equal(f"+{user['phone']}", account.phone, f"phone of {account.name}")


@case("ACC-04")
def test_whose_code(
    login: LogIn, newcomer: Newcomer, accounts: People, client: Connection, bob: Device, limits: Limits
) -> None:
    """A code works only for its user and purpose, and wrong attempts are limited."""
    nina, new = login(newcomer("nina")), newcomer("new")
    value = {"token": ask(nina, new.phone), "verifyCode": accounts.code(new)}
    bob.refused("error.code.expired", "PHONE_BIND_CONFIRM", value)
    other = newcomer("other")
    signing = client.call("AUTH_REQUEST", {"phone": other.phone, "type": "START_AUTH"})["token"]
    foreign = {"token": signing, "verifyCode": accounts.code(other)}
    nina.refused("error.code.expired", "PHONE_BIND_CONFIRM", foreign)
    for tries in (limits["loginCodeTries"], limits["loginCodeTries"] - 1):
        value = {"token": ask(nina, new.phone), "verifyCode": accounts.code(new)}
        for _ in range(tries):
            wrong = {**value, "verifyCode": f"{value['verifyCode']}0"}
            nina.refused("error.code.wrong", "PHONE_BIND_CONFIRM", wrong)
        if tries == limits["loginCodeTries"]:
            nina.refused("error.code.expired", "PHONE_BIND_CONFIRM", value)
    nina.call("PHONE_BIND_CONFIRM", value)


def erase(limits: Limits, *devices: Device) -> None:
    """Requests the deletion of accounts and waits for it."""
    delay = time_out(limits, "profileDeleteDelayMs") + time_out(limits, "housekeepingIntervalMs")
    if delay > PATIENCE:
        skip("too long to wait for")
    for device in devices:
        device.call("PROFILE_DELETE", {"delete": True})
    for device in devices:
        device.ends(within=delay + 5)


@case("ACC-05")
def test_the_end_of_an_account(
    login: LogIn,
    newcomer: Newcomer,
    accounts: People,
    connect: Connect,
    bob: Device,
    cid: Cid,
    limits: Limits,
) -> None:
    """Sessions end, the phone is free, and nothing is left of the user and their messages."""
    account = newcomer("nina")
    nina = login(account)
    chat = dialog(nina, bob)
    own, other = say(nina, chat, cid(), "secret"), say(bob, chat, cid(), "mine")
    erase(limits, nina)
    connect().refused("login.token", "LOGIN", {"token": nina.token})
    gone = bob.push("NOTIF_MSG_DELETE", lambda push: push["chatId"] == chat)
    equal(gone["messageIds"], [own["id"]], "messages that are gone")
    equal(ids(history(bob, chat, backward=10)), [other["id"]], "what is left")
    contacts = bob.call("LOGIN", {"token": bob.token, "contactsSync": 1})["contacts"]
    user = only([each for each in contacts if each["id"] == nina.user_id], "user")
    equal((user["accountStatus"], user.get("names", []), user.get("phone")), (2, [], None), "user")
    check(registers(connect("new"), accounts, account), "a phone without an account", "it has one")


@case("ACC-09")
def test_reactions_and_votes_go(
    login: LogIn, newcomer: Newcomer, bob: Device, group: Group, cid: Cid, limits: Limits
) -> None:
    """Members who are online get the changed counters."""
    nina = login(newcomer("nina"))
    chat = group(bob, nina)
    said = say(bob, chat, cid())["id"]
    name = ask_poll(bob, chat, cid())
    react(nina, chat, said, "🔥")
    vote(nina, name, 1)
    forget(bob)
    bob.pushes("NOTIF_MSG_REACTIONS_CHANGED")
    erase(limits, nina)
    changed = bob.push("NOTIF_MSG_REACTIONS_CHANGED", lambda push: push["messageId"] == said)
    equal((changed["chatId"], changed["totalCount"], changed["counters"]), (chat, 0, []), "the counters")
    told = bob.push("NOTIF_MESSAGE", lambda push: push["message"]["id"] == name["messageId"])["message"]
    equal((told["status"], of(told)["state"]["total"]), ("EDITED", 0), "the poll")


@case("ACC-08")
@pytest.mark.parametrize("value", ["", "6", "M", "0M", "1000D", "6W", "6m", 6, True])
def test_days_of_inactivity(login: LogIn, newcomer: Newcomer, value: object) -> None:
    """An invalid number of days is refused; a valid one is stored."""
    nina = login(newcomer("nina"))
    nina.refused("proto.payload", "CONFIG", {"settings": {"user": {"INACTIVE_TTL": value}}})
    for good in ("6M", "999Y", "1D"):
        reply = nina.call("CONFIG", {"settings": {"user": {"INACTIVE_TTL": good}}})
        equal(reply["user"]["INACTIVE_TTL"], good, "the setting")
    nina.call("CONFIG", {"settings": {"user": {"INACTIVE_TTL": None}}})


@case("ACC-06")
def test_second_thoughts(login: LogIn, newcomer: Newcomer, limits: Limits) -> None:
    """Until a deletion is cancelled, the server returns its time; a cancelled deletion does not happen."""
    # One account registers before nina, one after her. Both request their deletion after her. In any order
    # of deletion, the server would delete nina before the last of these two accounts.
    account, fences = newcomer("nina"), [newcomer("olga"), newcomer("otto")]
    first_fence, nina, last_fence = login(fences[0]), login(account), login(fences[1])

    def planned() -> Frame:
        return nina.call("PROFILE_DELETE_TIME")

    equal(planned()["time"], 0, "time before")
    nina.call("PROFILE_DELETE", {"delete": True})
    first = planned()["time"]
    check(first > 0, "a time", first)
    nina.call("PROFILE_DELETE", {"delete": True})
    equal(planned()["time"], first, "time after asking again")
    nina.call("PROFILE_DELETE", {"cancel": True})
    equal(planned()["time"], 0, "time afterwards")
    erase(limits, first_fence, last_fence)
    nina.alive()
    login(account)


@case("ACC-07")
def test_groups_go_on(
    login: LogIn, newcomer: Newcomer, bob: Device, carol: Device, group: Group, limits: Limits
) -> None:
    """Members are notified; an administrator, or else the earliest member, replaces an erased owner."""
    nina = login(newcomer("nina"))
    led, equals, guest = group(nina, bob), group(nina, carol), group(bob, nina, carol)
    # If two members joined in the same millisecond, neither would be the earliest member.
    nina.stall(2)
    change(nina, led, "add", carol.user_id)
    change(nina, led, "add", carol.user_id, type="ADMIN", permissions=MEMBERS)
    change(nina, equals, "add", bob.user_id)
    forget(bob, carol)
    erase(limits, nina)
    for chat, owner in ((led, carol), (equals, carol), (guest, bob)):
        for each in (bob, carol):
            push = each.push("NOTIF_MESSAGE", lambda push, chat=chat: push["chatId"] == chat)
            event = event_of(push["message"])
            equal((event["event"], event["userId"]), ("leave", nina.user_id), "event")
        left = chat_of(bob, chat)
        equal((left["owner"], left["participantsCount"]), (owner.user_id, 2), "owner and members")


@case("ACC-10")
def test_what_is_meant(login: LogIn, newcomer: Newcomer) -> None:
    """A missing key, or a request to keep the account, erases nothing."""
    nina = login(newcomer("nina"))
    for value in ({}, {"type": 0}, {"delete": True, "cancel": True}, {"delete": False, "cancel": False}):
        nina.refused("proto.payload", "PROFILE_DELETE", value)
    equal(nina.call("PROFILE_DELETE", {"delete": False, "type": 0})["timestamp"], 0, "time of who stays")
    equal(nina.call("PROFILE_DELETE_TIME")["time"], 0, "time")
    planned = nina.call("PROFILE_DELETE", {"delete": True, "type": 0})["timestamp"]
    check(planned > 0, "a time", planned)
    equal(nina.call("PROFILE_DELETE_TIME")["time"], planned, "time")
    equal(nina.call("PROFILE_DELETE", {"delete": False})["timestamp"], 0, "time on second thoughts")
