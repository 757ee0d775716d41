"""BOT: there are no bots."""

from __future__ import annotations

from tambour_conformance.fixtures import Group, LogIn
from tambour_conformance.talk import NOBODY
from tambour_conformance.verdict import case, equal


@case("BOT-01")
def test_suspend(login: LogIn) -> None:
    """Nobody can be suspended."""
    alice, bob = login("alice"), login("bob")
    for user in (bob.user_id, NOBODY):
        alice.refused("user.not.found", "SUSPEND_BOT", {"botId": user})


@case("BOT-02")
def test_commands(login: LogIn, group: Group) -> None:
    """No chat has commands."""
    alice = login("alice")
    reply = alice.call("CHAT_BOT_COMMANDS", {"chatId": group(alice, login("bob"))})
    equal((reply["commands"], reply["contacts"]), ([], []), "commands and bots")


@case("BOT-03")
def test_commands_of_a_strange_chat(login: LogIn, group: Group) -> None:
    """The commands of a chat that the caller is not in are refused."""
    chat = group(login("alice"), login("bob"))
    for id in (chat, -1):
        login("carol").refused("chat.not.found", "CHAT_BOT_COMMANDS", {"chatId": id})


@case("BOT-04")
def test_info(login: LogIn) -> None:
    """There is no bot to describe."""
    alice, bob = login("alice"), login("bob")
    for user in (bob.user_id, NOBODY):
        alice.refused("user.not.found", "BOT_INFO", {"botId": user})
