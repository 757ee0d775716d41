"""Scenarios: a password in addition to the code, and signing in by a QR code."""

from __future__ import annotations

from harness import Device, World, check, fact, refused, same, scenario
from pymax import QrAuthFlow, SmsAuthFlow
from pymax.types.domain.profile import Profile

PASSWORD, OTHER = "correct horse", "battery staple"
#: Values in `profileOptions`.
HAS_PASSWORD, HAS_EMAIL, HAS_HINT = 2, 3, 4


class Passwords:
    """Gives one password after the other, and keeps the hints that were shown."""

    def __init__(self, *passwords: str) -> None:
        self.left, self.hints = list(passwords), []

    async def get_password(self, hint: str | None) -> str:
        self.hints.append(hint)
        return self.left.pop(0)


async def told(device: Device) -> list[int]:
    """The `profileOptions` in the push that reports a change of the user's own account."""
    frame = await device.next("push", lambda frame: frame.opcode == 159)
    return sorted(Profile.model_validate(frame.payload["profile"]).profile_options or [])


@scenario
async def second_factor(world: World) -> None:
    """A password with a hint and an address is set, requested at login, changed, and removed."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    auth = phone.client
    check(not await auth.check_2fa(), "a new account has a password")

    # Use digits that no phone has, because codes are looked up by digits.
    address = f"n{phone.phone.removeprefix('+')}2@example.org"
    await auth.set_2fa(PASSWORD, email=address, hint="a horse", email_code_provider=world.codes)
    for device in (phone, laptop):
        same(await told(device), [HAS_PASSWORD, HAS_EMAIL, HAS_HINT], f"what {device} is told")
    fact("set_2fa with an address and a hint tells every device of the account")

    passwords = Passwords("wrong horse", PASSWORD)
    tablet = world.device(phone.phone, "tablet", auth_flow=SmsAuthFlow(world.codes, passwords))
    await tablet.connect()
    same(tablet.id, phone.id, "user id behind the password")
    same(passwords.hints, ["a horse", "a horse"], "hints that were shown")
    check(await tablet.client.check_2fa(), "check_2fa knows of no password")
    fact("a login by code asks for the password, again after a wrong one, and shows the hint")

    await refused(auth.change_password("wrong horse", OTHER), "error.password.wrong")
    await auth.change_password(PASSWORD, OTHER)
    same(await told(laptop), [HAS_PASSWORD, HAS_EMAIL, HAS_HINT], "what the laptop is told")
    fact("change_password needs the old one, and keeps hint and address")

    await refused(auth.remove_2fa(PASSWORD), "error.password.wrong")
    await auth.remove_2fa(OTHER)
    same(await told(laptop), [], "what the laptop is told")
    fact("remove_2fa needs the password, and takes hint and address with it")

    watch = await world.another(phone, "watch")
    same(watch.id, phone.id, "user id without a password")
    check(not await watch.client.check_2fa(), "the password is still there")
    fact("a login by code is enough again")


@scenario
async def qr_login(world: World) -> None:
    """A code that one device shows is approved on another, with and without a password."""
    phone = await world.register("phone")
    approver = phone.client

    class Approval:
        """Reads the code with the phone."""

        async def show_qr(self, qr_url: str) -> None:
            await approver.authorize_qr_login(qr_url)

    web = world.device(phone.phone, "web", auth_flow=QrAuthFlow(Approval()))
    await web.connect()
    same(web.id, phone.id, "user id behind the QR code")
    fact("QrAuthFlow logs in once authorize_qr_login has approved the link")

    await refused(approver.authorize_qr_login("tambour:login/none"), "track.not.found")
    fact("a link that nobody shows is refused with track.not.found")

    await approver.set_2fa(PASSWORD)
    passwords = Passwords(PASSWORD)
    desktop = world.device(phone.phone, "desktop", auth_flow=QrAuthFlow(Approval(), passwords))
    await desktop.connect()
    same((desktop.id, passwords.hints), (phone.id, [None]), "user id and hints behind code and password")
    fact("who has a password is asked for it after the QR code as well")
