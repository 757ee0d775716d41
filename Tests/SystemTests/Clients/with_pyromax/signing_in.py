"""Accounts, codes, passwords, devices."""

from __future__ import annotations

import asyncio

from cells import Line, Room, until
from harness import Failure, check, same
from pyromax.interaction import AuthCallbacks, PasswordRequest
from pyromax.models import DeviceType, RegistrationConfig
from signing_in import wrong

from with_pyromax.device import PyromaxParty, cell

PASSWORD, OTHER = "correct horse", "battery staple"


CONFIRMS = Line("pyromax/mapping/envelope/v11/mixins/auth.py", 349, "await self.send(")


@cell("Register a new phone", fault=CONFIRMS)
async def register(room: Room) -> None:
    newcomer = PyromaxParty(room, room.alice.witness)
    config = RegistrationConfig(first_name="Dan")
    joining = asyncio.create_task(newcomer.log_in(room.world.phone(), registration_config=config))
    await until(lambda: CONFIRMS.is_waited_at() or joining.done(), "the registration is sent or done")
    await room.alice.fence()
    # The library waits for its own login before it sends the name, and so never sends it.
    with room.fault(Failure):
        check(not CONFIRMS.is_waited_at(), "the registration waits for its own login")
    joining.cancel()
    await asyncio.wait([joining])
    await newcomer.close()


@cell("Log in by code", short=True)
async def by_code(room: Room) -> None:
    same(room.alice.client.me.contact.id, room.alice.id, "who is logged in")
    codes: list[str] = []

    async def code(phone: str) -> str:
        """Returns a wrong code first, so that the library asks for another one."""
        codes.append(await room.world.codes.get_code(phone))
        return codes[-1] if len(codes) > 1 else wrong(codes[-1])

    laptop = PyromaxParty(room, room.alice.witness)
    await laptop.log_in(callbacks=AuthCallbacks(sms_code=code))
    same(laptop.client.me.contact.id, room.alice.id, "who is logged in after a wrong code")
    await laptop.close()


@cell("Log in again with the stored token", short=True)
async def by_token(room: Room) -> None:
    laptop = await PyromaxParty(room, room.alice.witness, "stored.db").log_in()
    check(await laptop.client.wait_until_ready(), "it is not ready")
    await laptop.close()
    check(laptop.client.shutdown_requested, "stop() is no shutdown")
    await laptop.client.wait_for_shutdown()

    async def never(phone: str) -> str:
        raise Failure("a code was asked for")

    again = PyromaxParty(room, room.alice.witness, "stored.db")
    await again.log_in(callbacks=AuthCallbacks(sms_code=never))
    same(again.client.me.contact.id, room.alice.id, "who is logged in with the token")
    await again.client.send_message(room.chat, "by the stored token")
    await room.bob.next("message", lambda message: message.text == "by the stored token")
    again.client.request_shutdown()
    await again.client.stop()


@cell("Log in with a password beside the code", short=True)
async def with_password(room: Room) -> None:
    carol = await room.person("carol")
    await carol.witness.client.set_2fa(PASSWORD)

    async def ask(request: PasswordRequest) -> str:
        check(request.track_id, "there is no track")
        return PASSWORD

    callbacks = AuthCallbacks(sms_code=room.world.codes.get_code, password=ask)
    laptop = await PyromaxParty(room, carol.witness).log_in(callbacks=callbacks)
    same(laptop.client.me.contact.id, carol.id, "who is logged in")
    await laptop.close()
    tablet = await PyromaxParty(room, carol.witness).log_in(password=PASSWORD)
    same(tablet.client.me.contact.id, carol.id, "who is logged in")
    await tablet.close()


@cell("Set, change and remove the password", short=True)
async def password(room: Room) -> None:
    carol = await room.person("carol")
    await carol.answered(carol.client.set_2fa(PASSWORD, hint="a horse"))
    details = (await carol.witness.invoke(104, {}))["password"]
    same((details["enabled"], details["hint"]), (True, "a horse"), "the password")
    await carol.answered(carol.client.change_password(PASSWORD, OTHER))
    await carol.refused(carol.client.remove_2fa(PASSWORD), "error.password.wrong")
    await carol.answered(carol.client.remove_2fa(OTHER))
    same((await carol.witness.invoke(104, {}))["password"]["enabled"], False, "a password in the end")


@cell(
    "Whether there is a password",
    fault=Line("pyromax/mapping/envelope/v11/mixins/auth.py", 609, "self.max_api.me.profile_options"),
)
async def check_2fa(room: Room) -> None:
    carol = await room.person("carol")
    same(await carol.client.check_2fa(), False, "a password in the beginning")
    await carol.client.set_2fa(PASSWORD)
    # The library reads the profile that its login returned, which it never updates.
    with room.fault(Failure):
        same(await carol.client.check_2fa(), True, "a password after set_2fa")


@cell("Give the password an e-mail address")
async def email(room: Room) -> None:
    carol = await room.person("carol")
    address = f"n{carol.phone.removeprefix('+')}2@example.org"

    async def code(email: str) -> str:
        return await room.world.codes.get_code(email)

    await carol.answered(carol.client.set_2fa(PASSWORD, email=address, email_code_getter=code))
    check((await carol.witness.invoke(104, {}))["password"]["email"], "there is no address")


@cell("Log in by a QR code")
async def qr_login(room: Room) -> None:
    async def show(link: str) -> None:
        await room.alice.witness.client.authorize_qr_login(link)

    desktop = PyromaxParty(room, room.alice.witness)
    await desktop.log_in(callbacks=AuthCallbacks(qr_url=show), device_type=DeviceType.Desktop, sms_auth=False)
    same(desktop.client.me.contact.id, room.alice.id, "who is logged in")
    await desktop.close()


@cell("Approve a QR code of another device")
async def approve(room: Room) -> None:
    asked = await room.bob.witness.invoke(288, {})
    await room.alice.answered(room.alice.client.approve_qr_login(asked["qrLink"]))
    await room.alice.refused(room.alice.client.approve_qr_login("tambour:login/none"), "track.not.found")


@cell("List devices and close the others")
async def sessions(room: Room) -> None:
    carol = await room.person("carol")
    found = await carol.client.get_sessions()
    same((len(found), [each.current for each in found].count(True)), (2, 1), "devices")
    check(await carol.client.close_all_sessions(), "there is no new token")
    await carol.witness.closed_by_server()
    same(len(await carol.client.get_sessions()), 1, "devices in the end")


@cell("Log out")
async def log_out(room: Room) -> None:
    before = len(await room.alice.client.get_sessions())
    laptop = await PyromaxParty(room, room.alice.witness).log_in()
    await laptop.answered(laptop.client.logout())
    await laptop.close()
    same(len(await room.alice.client.get_sessions()), before, "devices")


@cell("Choose the version that the app gives itself")
async def versions(room: Room) -> None:
    laptop = await PyromaxParty(room, room.alice.witness).log_in()
    known = await laptop.client.get_available_app_versions()
    await laptop.client.set_app_version(known[0], reconnect=False)
    chosen = await laptop.client.set_random_app_version()
    async with asyncio.timeout(30):
        await laptop.client.wait_until_ready()
    same(laptop.client.app_version, chosen, "the version")
    await laptop.client.send_message(room.chat, "with another version")
    await room.bob.next("message", lambda message: message.text == "with another version")
    await laptop.close()
