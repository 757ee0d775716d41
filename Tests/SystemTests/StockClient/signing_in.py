"""Scenarios: accounts, codes, tokens, devices."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from harness import Failure, World, check, fact, now_ms, refused, same, scenario
from pymax import AuthFlow, SmsAuthFlow
from pymax.auth.models import AuthResult
from pymax.protocol import Opcode


@scenario
async def registration(world: World) -> None:
    """A new phone registers."""
    alice = await world.register("alice")
    same(alice.id > 0, True, "a new user's id is positive")
    name = alice.client.me.contact.names[0]
    same((name.first_name, name.last_name), ("Alice", "Testova"), "the name given at registration")
    fact("a new phone with a registration_config becomes an account with the name given")

    digits = alice.phone.removeprefix("+")
    check(str(alice.client.me.contact.phone) == digits, f"own phone is {alice.client.me.contact.phone}, not {digits}")
    fact("one's own profile carries the phone, as digits without a plus")

    same(alice.client.chats, [], "chats of a new account")
    stored = await alice.stored()
    check(abs(stored.sync.chats_sync - now_ms()) < 60_000, f"the first mark is {stored.sync.chats_sync}")
    check(
        stored.sync.chats_sync == stored.sync.contacts_sync == stored.sync.drafts_sync == stored.sync.presence_sync,
        f"marks differ: {stored.sync}",
    )
    fact("the first login brings no chats and a time for all four marks")

    stranger = world.device(world.phone(), "stranger")
    try:
        await stranger.connect()
    except RuntimeError as error:
        check("RegistrationConfig" in str(error), f"unexpected refusal: {error}")
    else:
        raise Failure("an unknown phone was logged in without registering")
    fact("an unknown phone is offered registration, not a login")

    bob = await world.register("bob")
    check(bob.id != alice.id, "two phones share a user id")
    fact("two phones are two users")


@scenario
async def login_by_code(world: World) -> None:
    """A known phone logs in by code on another device."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    same(laptop.id, phone.id, "user id on the second device")
    fact("a known phone logs in by code without registering, as the same user")

    check((await laptop.stored()).token != (await phone.stored()).token, "two devices share a token")
    fact("each device has its own token")

    await phone.invoke(Opcode.PING, {"interactive": True})
    fact("the first device stays connected")


@scenario
async def wrong_code(world: World) -> None:
    """A wrong code is refused, and too many wrong codes make the right code invalid."""
    alice = await world.register("alice")

    class Codes:
        """Returns the code with its last digit changed."""

        async def get_code(self, phone: str) -> str:
            return wrong(await world.codes.get_code(phone))

    hasty = world.device(alice.phone, "hasty", auth_flow=SmsAuthFlow(Codes()))
    await refused(hasty.connect(), "error.code.wrong", "auth.invalid.code")
    fact("a wrong code is refused with error.code.wrong")

    class Retrying(AuthFlow):
        """Types a wrong code `misses` times and then the right one."""

        def __init__(self, misses: int) -> None:
            self.misses = misses

        async def authenticate(self, app: Any) -> AuthResult:
            start = await app.api.auth.request_code(alice.phone)
            code = await world.codes.get_code(alice.phone)
            same(len(code), start.code_length, "digits of the code")
            for _ in range(self.misses):
                await refused(app.api.auth.send_code(start.token, wrong(code)), "error.code.wrong", "error.code.expired")
            return AuthResult(token=(await app.api.auth.send_code(start.token, code)).login_token)

    patient = world.device(alice.phone, "patient", auth_flow=Retrying(misses=1))
    await patient.connect()
    same(patient.id, alice.id, "user id after a wrong and a right code")
    fact("after a wrong code the right one still logs in, with the same code request")

    guesser = world.device(alice.phone, "guesser", auth_flow=Retrying(misses=5))
    await refused(guesser.connect(), "error.code.expired", "auth.blocked")
    fact("after five wrong codes even the right one is refused")


def wrong(code: str) -> str:
    return code[:-1] + str((int(code[-1]) + 1) % 10)


@scenario
async def dead_token(world: World) -> None:
    """An invalid token is refused as the library expects, and the library signs in again by code."""
    nobody = world.device(world.phone(), "nobody", token="no-such-token", persist_session=False)
    await nobody.connect_refused()
    fact("a token that never was is refused with login.token and FAIL_LOGIN_TOKEN")

    class Hasty(AuthFlow):
        """Sends LOGIN and at once PING, as the library does with a stored token."""

        async def authenticate(self, app: Any) -> AuthResult:
            began = time.monotonic()
            login = asyncio.ensure_future(app.invoke(Opcode.LOGIN, {"token": "no-such-token"}))
            ping = asyncio.ensure_future(app.invoke(Opcode.PING, {"interactive": True}))
            first, _ = await asyncio.wait([login, ping], return_when=asyncio.FIRST_COMPLETED)
            same([ping in first, login in first], [True, False], "PING and LOGIN answered first")
            await refused(login, "login.token")
            took = time.monotonic() - began
            check(took > 0.15, f"the refusal came after {took * 1000:.0f} ms: too soon after the answer to PING")
            return AuthResult(token=None)

    try:
        await world.device(world.phone(), "hasty", auth_flow=Hasty()).connect()
    except RuntimeError:
        pass  # no token, no login
    fact("a PING sent with it is answered well before the refusal: see Device.past_refusal")

    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    dead = (await laptop.stored()).token
    await phone.client.close_all_sessions()
    await laptop.closed_by_server()

    later = await world.later(laptop, relogin=True)
    later.run()
    started = asyncio.ensure_future(later.next("start"))
    await later.past_refusal(started)
    await started
    same(later.id, phone.id, "user id after signing in again")
    check((await later.stored()).token != dead, "the dead token is still stored")
    fact("start() on a dead token forgets it and logs in by a fresh code")


@scenario
async def logout(world: World) -> None:
    """After a logout, the token is invalid."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    check(await laptop.client.logout(), "logout was not accepted")
    await laptop.closed_by_server()
    fact("logout is answered and the connection closed")

    await (await world.later(laptop)).connect_refused()
    fact("its token is dead afterwards")

    await phone.invoke(Opcode.PING, {"interactive": True})
    same(len(await phone.client.get_sessions()), 1, "sessions left")
    fact("the other device is untouched")


@scenario
async def sessions(world: World) -> None:
    """Signed-in devices are listed, and all others closed."""
    phone = await world.register("phone")
    laptop = await world.another(phone, "laptop")
    tablet = await world.another(phone, "tablet")

    listed = await phone.client.get_sessions()
    same(len(listed), 3, "sessions listed")
    same([session.current for session in listed].count(True), 1, "sessions that are the asking one")
    for session in listed:
        for key in ("client", "info", "location", "time"):
            check(key in session.model_dump(), f"a session lacks {key}: {session}")
    fact("all three devices are listed, with exactly one as the current one")

    before = (await phone.stored()).token
    check(await phone.client.close_all_sessions(), "the reply to closing sessions had no token")
    await laptop.closed_by_server()
    await tablet.closed_by_server()
    fact("closing the others ends their connections at once")

    for other in (laptop, tablet):
        await (await world.later(other)).connect_refused()
    fact("their tokens are dead")

    same(len(await phone.client.get_sessions()), 1, "sessions left")
    same((await phone.stored()).token, before, "own token after closing the others")
    phone = await world.again(phone)
    fact("the asking device stays connected and its token good")
