"""Accounts, codes, passwords, devices."""

from __future__ import annotations

import asyncio

from cells import Room
from harness import check, same
from maxion.raw.enums import AuthTokenType
from maxion.raw.errors import RpcError, TwoFactorRequired

from with_maxion.device import MaxionParty, cell

PASSWORD, OTHER = "correct horse", "battery staple"


async def refused(call: object, *codes: str) -> None:
    try:
        await call  # type: ignore[misc]
    except RpcError as error:
        check(error.code in codes, f"refused with {error.code}, wanted {codes}")
    else:
        raise AssertionError(f"wanted one of {codes}")


@cell("Register a new phone")
async def register(room: Room) -> None:
    phone = room.world.phone()
    newcomer = MaxionParty(room, room.alice.witness, "newcomer").raw
    await newcomer.connect()
    asked = await newcomer.request_code(phone)
    # `sign_in` needs an account's token, but a new phone only has a token for registering.
    code = await room.world.codes.get_code(phone)
    answer = await newcomer.call(
        "AUTH", {"token": asked["token"], "verifyCode": code, "authTokenType": str(AuthTokenType.CHECK_CODE)}
    )
    made = await newcomer.auth_confirm(answer["tokenAttrs"]["REGISTER"]["token"], first_name="Dan")
    payload = await newcomer.login_by_token(made["token"])
    same(payload["profile"]["contact"]["names"][0]["firstName"], "Dan", "the name of the new account")
    found = await room.alice.raw.get_contact_by_phone(phone)
    same(found.id, payload["profile"]["contact"]["id"], "who has the phone")
    await newcomer.close()


@cell("Log in by code", short=True)
async def by_code(room: Room) -> None:
    same(room.alice.client.me.id, room.alice.id, "who is logged in")
    check(room.alice.raw.is_authorized and room.alice.client.is_connected, "alice is not logged in")
    laptop = MaxionParty(room, room.alice.witness)
    await laptop.raw.connect()
    asked = await laptop.raw.request_code(laptop.phone)
    await laptop.code()
    asked = await laptop.raw.resend_code(laptop.phone)
    code = await laptop.code()
    await refused(
        laptop.raw.sign_in(code[:-1] + str((int(code[-1]) + 1) % 10), asked["token"]), "error.code.wrong"
    )
    same((await laptop.raw.sign_in(code, asked["token"])).id, room.alice.id, "who is logged in by the code")
    await laptop.close()


@cell("Log in again with the stored token", short=True)
async def by_token(room: Room) -> None:
    laptop = await MaxionParty(room, room.alice.witness, "stored").log_in()
    await laptop.close()
    again = MaxionParty(room, room.alice.witness, "stored")
    await again.client.start()
    same(again.client.me.id, room.alice.id, "who is logged in with the token")
    await again.client.send_message(room.chat, "by the stored token")
    await room.bob.next("message", lambda message: message.text == "by the stored token")

    # These two calls keep a program alive; they return when the connection ends.
    waiting = [
        asyncio.ensure_future(call) for call in (again.client.idle(), again.raw.run_until_disconnected())
    ]
    await again.raw.disconnect()
    await asyncio.gather(*waiting)
    await asyncio.to_thread(lambda: again.client.run(again.client.get_me()))

    async with MaxionParty(room, room.alice.witness, "stored").client as client:
        same(client.me.id, room.alice.id, "who is logged in inside `async with`")
    mobile = type(again.raw).mobile(
        room.world.directory / "stored.session", host=room.world.host, port=room.world.port, ssl=False
    )
    await mobile.connect()
    same((await mobile.start()).id, room.alice.id, "who is logged in by mobile()")
    await mobile.disconnect()


@cell("Log in with a password beside the code", short=True)
async def with_password(room: Room) -> None:
    carol = await room.person("carol")
    await carol.witness.client.set_2fa(PASSWORD, hint="a horse")
    laptop = MaxionParty(room, carol.witness)
    await laptop.raw.connect()
    asked = await laptop.raw.request_code(laptop.phone)
    try:
        await laptop.raw.sign_in(await laptop.code(), asked["token"])
    except TwoFactorRequired as asks:
        same(asks.challenge["hint"], "a horse", "the hint")
        track = asks.challenge["trackId"]
    await refused(laptop.raw.login_check_password(OTHER, track), "error.password.wrong")
    same((await laptop.raw.login_check_password(PASSWORD, track)).id, carol.id, "who is logged in")
    await laptop.close()
    tablet = await MaxionParty(room, carol.witness).log_in(password=PASSWORD)
    same(tablet.client.me.id, carol.id, "who is logged in by start()")
    await tablet.close()


@cell("Set, change and remove the password")
async def password(room: Room) -> None:
    carol = (await room.person("carol")).raw
    track = (await carol.create_auth_track())["trackId"]
    same((await carol.get_2fa_details(track))["password"]["enabled"], False, "a password in the beginning")
    await carol.validate_password(PASSWORD, track)
    await carol.validate_hint("a horse", track)
    await carol.set_2fa(PASSWORD, hint="a horse", track_id=track, expected_capabilities=[0])
    same((await carol.get_2fa_details())["password"]["enabled"], True, "a password after set_2fa")

    track = (await carol.create_auth_track())["trackId"]
    await refused(carol.check_password(OTHER, track), "error.password.wrong")
    await carol.check_password(PASSWORD, track)
    await carol.set_2fa(track_id=track, remove=True, expected_capabilities=[5])
    same((await carol.get_2fa_details())["password"]["enabled"], False, "a password in the end")


@cell("Whether there is a password")
async def has_password(room: Room) -> None:
    carol = await room.person("carol")
    same((await carol.raw.get_2fa_details())["password"]["enabled"], False, "a password in the beginning")
    await carol.witness.client.set_2fa(PASSWORD)
    same((await carol.raw.get_2fa_details())["password"]["enabled"], True, "a password after set_2fa")


async def with_address(room: Room) -> tuple[MaxionParty, str]:
    """A person with a password, and the e-mail address that was set with the password."""
    carol = await room.person("carol")
    raw, address = carol.raw, f"n{carol.phone.removeprefix('+')}2@example.org"
    track = (await raw.create_auth_track())["trackId"]
    await raw.validate_password(PASSWORD, track)
    await raw.verify_email(address, track)
    await raw.check_email(await room.world.codes.get_code(address), track)
    await raw.set_2fa(PASSWORD, track_id=track, expected_capabilities=[0, 4])
    return carol, address


@cell("Give the password an e-mail address")
async def address(room: Room) -> None:
    carol, _ = await with_address(room)
    check((await carol.raw.get_2fa_details())["password"].get("email"), "there is no address")


@cell("Restore a forgotten password")
async def restore(room: Room) -> None:
    carol, address = await with_address(room)
    laptop = MaxionParty(room, carol.witness)
    await laptop.raw.connect()
    asked = await laptop.raw.request_code(laptop.phone)
    try:
        await laptop.raw.sign_in(await laptop.code(), asked["token"])
    except TwoFactorRequired as asks:
        track = asks.challenge["trackId"]
    await laptop.raw.restore_password(track_id=track)
    code = await room.world.codes.get_code(address)
    answer = await laptop.raw.restore_password(track_id=track, verifyCode=code)
    same(answer["profile"]["contact"]["id"], carol.id, "who is logged in")
    same(
        (await carol.raw.get_2fa_details())["password"]["enabled"], False, "a password after it was restored"
    )
    await laptop.close()


@cell("Approve a QR code of another device")
async def approve(room: Room) -> None:
    await refused(room.alice.raw.approve_qr("tambour:login/none"), "track.not.found")
    shown = MaxionParty(room, room.alice.witness, "shown")
    await shown.raw.connect()
    asked = await shown.raw.invoke(288, {})
    await room.alice.raw.approve_qr(asked["qrLink"])
    status = await shown.raw.invoke(289, {"trackId": asked["trackId"]})
    check(status["status"]["loginAvailable"], f"the code is not approved: {status}")
    await shown.close()


@cell("List devices and close the others")
async def sessions(room: Room) -> None:
    carol = await room.person("carol")
    found = await carol.raw.get_sessions()
    same(len(found), 2, "devices: the witness and this one")
    await carol.raw.close_sessions(all_others=True)
    await carol.witness.closed_by_server()
    same(len(await carol.raw.get_sessions()), 1, "devices in the end")


@cell("Log out")
async def log_out(room: Room) -> None:
    laptop = await MaxionParty(room, room.alice.witness, "logout").log_in()
    token = laptop.raw.session.token
    await laptop.raw.logout()
    await laptop.close()
    later = MaxionParty(room, room.alice.witness, "later")
    await later.raw.connect()
    await refused(later.raw.login_by_token(token), "login.token")
    await later.close()


@cell("Move the account to another phone")
async def bind_phone(room: Room) -> None:
    carol = await room.person("carol")
    phone = room.world.phone()
    asked = await carol.raw.bind_phone_request(phone)
    await carol.raw.bind_phone_confirm(asked["token"], await room.world.codes.get_code(phone))
    same((await room.alice.raw.get_contact_by_phone(phone)).id, carol.id, "who has the new phone")


@cell("Delete the account")
async def delete(room: Room) -> None:
    carol = await room.person("carol")
    same(
        (await carol.raw.get_profile_delete_time())["time"],
        0,
        "when the account is deleted, in the beginning",
    )
    planned = (await carol.raw.delete_profile())["timestamp"]
    same((await carol.witness.invoke(200, {}))["time"], planned, "when the account is deleted")
    await carol.raw.delete_profile(delete=False)
    same((await carol.raw.get_profile_delete_time())["time"], 0, "when it is deleted after second thoughts")


@cell("Delete the account before the login", unserved=(116,))
async def delete_before_login(room: Room) -> None:
    with room.unserved(room.alice):
        await room.alice.raw.delete_profile_by_login("track")
