"""Scenarios: requests that other clients of the family send and this library does not send."""

from __future__ import annotations

from random import Random
from typing import Any

from harness import World, check, fact, now_ms, refused, same, scenario
from pymax import AuthFlow
from pymax.auth.models import AuthResult
from pymax.protocol import Opcode
from pymax.telemetry.payloads import TelemetryPayloadBuilder


def telemetry(user: int) -> dict[str, Any]:
    """What the library sends by itself when it has been connected for a while."""
    builder = TelemetryPayloadBuilder(Random(1))
    screens = {"screen_from": 1, "screen_to": 2, "prev_time": now_ms(), "action_id": 1, "extra_params": {}}
    events = [builder.login(user, 1), builder.navigation(user_id=user, session_id=1, **screens)]
    return builder.to_payload([*events, builder.open_chats(user, 1), builder.open_chat(user, 1)])


@scenario
async def without_methods(world: World) -> None:
    """Requests that other clients of the family send and that this library has no method for."""
    alice, bob = await world.register("alice"), await world.register("bob")
    chat = alice.dialog(bob)

    first = await alice.invoke(Opcode.MSG_SEND, {"userId": bob.id, "message": {"cid": 1, "text": "by user id"}})
    same(first["chatId"], chat, "chat of a message sent by user id")
    await bob.next("message")
    fact("64 with userId writes into the dialog")

    again = await alice.invoke(Opcode.MSG_SEND, {"chatId": chat, "message": {"cid": 1, "text": "something else"}})
    same(again["message"], first["message"], "the message answered to the same cid")
    await bob.silence("message", "edit")
    fact("64 with the same cid answers the first message and pushes nothing")

    attaches: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"_type": "CONTACT", "contactId": bob.id}, {"contactId": bob.id}),
        ({"_type": "LOCATION", "latitude": 59.93, "longitude": 30.31}, {"latitude": 59.93, "longitude": 30.31}),
        ({"_type": "SHARE", "url": "https://example.org/drum"}, {"url": "https://example.org/drum"}),
    ]
    for number, (attach, wanted) in enumerate(attaches):
        await alice.invoke(Opcode.MSG_SEND, {"chatId": chat, "message": {"cid": 100 + number, "attaches": [attach]}})
        received = await bob.next("message")
        found = received.attaches[0].model_dump(by_alias=True)
        same(found["_type"], attach["_type"], "type of the attachment")
        same({key: found.get(key) for key in wanted}, wanted, f"fields of {attach['_type']}")
    fact("CONTACT, LOCATION and SHARE arrive as the library reads them")

    for opcode, payload in (
        (Opcode.LOG, {"events": [{"type": "NAV", "event": "OPEN", "time": now_ms(), "userId": alice.id, "params": {}}]}),
        (Opcode.LOG, telemetry(alice.id)),
        (Opcode.CHAT_SUBSCRIBE, {"chatId": chat, "subscribe": True}),
        (Opcode.MSG_DELIVERY, {"chatId": chat, "messageId": first["message"]["id"]}),
        (Opcode.NOTIF_MESSAGE, {"chatId": chat, "messageId": str(first["message"]["id"])}),
    ):
        same(await alice.invoke(opcode, payload), {}, f"the reply to {opcode.name}")
    fact("5, 75, 303 and 128 as a request are answered with an empty map")

    second = await alice.invoke(Opcode.LOGIN2, {"needProfile": True, "contactsSync": 0})
    same(second["profile"]["contact"]["id"], alice.id, "profile of 8")
    same(second["contacts"], second["contactInfos"], "the two names of the contacts of 8")
    check(bob.id in [user["id"] for user in second["contacts"]], "the dialog partner is not among the contacts")
    fact("8 answers the profile and the contacts under both names")

    same(await alice.invoke(Opcode.ASSETS_GET, {}), {"stickerSets": [], "marker": 0}, "sticker sets")
    await refused(alice.invoke(Opcode.PHOTO_UPLOAD, {}), "proto.opcode")
    await refused(alice.invoke(999, {}), "proto.opcode")
    fact("known numbers that are not served, and unknown ones, are proto.opcode")

    await alice.client.send_message(chat, "x" * 4000)
    await bob.next("message", lambda m: len(m.text) == 4000)
    error = await refused(alice.client.send_message(chat, "x" * 4001), "proto.payload")
    check("/message/text" in error.message and "4001" in error.message, f"unhelpful message: {error.message!r}")
    fact("4,000 units of text pass; 4,001 are refused with the field and the limit named")

    class Impatient(AuthFlow):
        async def authenticate(self, app: Any) -> AuthResult:
            await refused(app.invoke(Opcode.CHATS_LIST, {"marker": now_ms()}), "proto.state")
            await app.invoke(Opcode.PING, {"interactive": True})
            start = await app.api.auth.request_code(alice.phone)
            code = await world.codes.get_code(alice.phone)
            return AuthResult(token=(await app.api.auth.send_code(start.token, code)).login_token)

    await world.device(alice.phone, "impatient", auth_flow=Impatient()).connect()
    fact("before login, PING is answered and anything else is proto.state")
