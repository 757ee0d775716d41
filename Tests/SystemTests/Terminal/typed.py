"""Typed text is visible: in every state that accepts text, a visible cursor is where the next letter appears."""

from __future__ import annotations

import itertools
import re

from harness import IS_LONG, World, scenario
from terminal import Terminal, check

#: Columns and rows: a usual size, a narrow one, and the smallest that the screen accepts.
SIZES = [(80, 24), (40, 12), (20, 6)]


def stands_behind(terminal: Terminal, text: str) -> bool:
    """Whether the cursor is visible and right after a text."""
    if not terminal.cursor:
        return False
    row, column = terminal.cursor
    return row < terminal.screen.lines and terminal.screen.display[row][:column].endswith(text)


#: A different letter each time, because the screen may still show the previous letter. No name on the screen ends with
#: a capital, so a cursor right after a capital shows that the letter was typed.
LETTERS = itertools.cycle("BCDFGHJKLMNPQRSTVWXZ")


def type_and_see(terminal: Terminal) -> None:
    """Types a letter, takes it back, and types it once more: it must appear where the cursor stands, and nowhere else."""
    letter = next(LETTERS)
    for attempt in ("once", "again"):
        before = terminal.cursor
        terminal.type(letter)
        terminal.until(f"a cursor behind {letter!r}", lambda: stands_behind(terminal, letter))
        row, column = terminal.cursor or (0, 0)
        place = (row, column - 1)
        # The screen may still change during the first attempt.
        check(attempt == "once" or before == place, f"{letter!r} is at {place}, the cursor was at {before}\n{terminal}")
        terminal.press("Backspace")
        terminal.until(
            f"the cursor at {place}, without {letter!r}",
            lambda place=place: terminal.cursor == place and not terminal.screen.display[place[0]][place[1]:].startswith(letter),
        )


class Walk:
    """Goes through the states of one screen and types a letter in each."""

    def __init__(self, world: World, terminal: Terminal) -> None:
        self.world, self.terminal = world, terminal
        size = terminal.screen
        self.size = f"{size.columns}x{size.lines}"

    def text(self, state: str) -> None:
        """Checks a state in which letters are text."""
        with self.world.checking(f"typed: {state} at {self.size}"):
            type_and_see(self.terminal)
            return
        self.terminal.press("Ctrl-u")

    def keys(self, state: str) -> None:
        """Checks a state in which letters are commands, so no cursor may be visible."""
        with self.world.checking(f"typed: {state} at {self.size}"):
            self.terminal.until("no cursor", lambda: not self.terminal.cursor)

    # Actions that wait for their effect, because a key right after Esc would count as a key with Alt.

    def type(self, text: str) -> None:
        self.terminal.type(text)
        self.terminal.until(f"a cursor behind {text!r}", lambda: stands_behind(self.terminal, text))

    def erase(self) -> None:
        self.terminal.press("Ctrl-u")
        self.terminal.until("an empty line", lambda: stands_behind(self.terminal, "> "))

    @property
    def boxes(self) -> int:
        return self.terminal.text.count("┌")

    def open(self, *keys: str) -> None:
        """Opens a panel or a question."""
        count = self.boxes + 1
        self.terminal.press(*keys)
        self.terminal.until(
            f"{count} boxes", lambda: self.boxes == count and not re.search("looking|asking", self.terminal.text)
        )

    def close(self, key: str = "Esc") -> None:
        """Closes a panel or a question."""
        count = self.boxes - 1
        self.terminal.press(key)
        self.terminal.until(f"{count} boxes", lambda: self.boxes == count)

    def choose(self) -> None:
        """Chooses the newest message."""
        self.terminal.press("Esc")
        self.terminal.until("no cursor", lambda: not self.terminal.cursor)

    def go_back(self, key: str) -> None:
        """Goes back to the unchanged input line."""
        self.terminal.press(key)
        self.terminal.until("the line", lambda: stands_behind(self.terminal, "> "))

    # The walk through all states

    def all(self) -> None:
        self.text("no chat open")
        self.command_line("no chat open")
        self.open("Alt-g")
        self.text("go to a chat")
        self.type("Friends")
        self.close("Enter")
        self.text("a chat open")
        self.command_line("a chat open")
        self.type("a line")
        self.terminal.press("Alt-Enter")
        self.text("the second line")
        self.terminal.press("Backspace", "Ctrl-u")
        self.terminal.until("an empty line", lambda: stands_behind(self.terminal, "> "))
        self.messages()
        self.panels()

    def command_line(self, where: str) -> None:
        with self.world.checking(f"typed: a command, {where} at {self.size}"):
            self.type("/")
            type_and_see(self.terminal)
            self.type("find ")
            type_and_see(self.terminal)
        self.terminal.press("Ctrl-u")

    def messages(self) -> None:
        self.choose()
        self.keys("a message is chosen")
        self.terminal.press("r")
        self.text("a reply")
        self.go_back("Esc")
        self.choose()
        self.terminal.press("e")
        self.text("an edit")
        self.go_back("Esc")
        for key, state in (("f", "where a message is forwarded"), ("+", "a reaction")):
            self.choose()
            self.open(key)
            self.text(state)
            self.close()
        self.choose()
        self.open("t")
        self.keys("a thread")
        self.close()
        self.choose()
        self.open("d")
        self.keys("a question with yes or no")
        self.close("n")
        self.go_back("Enter")

    def panels(self) -> None:
        for key, state in (("Alt-/", "a search in the chat"), ("Alt-s", "a search everywhere")):
            self.open(key)
            self.text(state)
            self.close()
        self.type("/members")
        self.open("Enter")
        self.text("members")
        self.question("Alt-a", "a new member")
        self.close()
        self.open("Alt-c")
        self.text("contacts")
        self.question("Alt-a", "a new contact")
        self.question("Alt-r", "another name for a contact")
        self.close()
        self.type("/profile")
        self.open("Enter")
        self.keys("the profile")
        self.question("n", "another name")
        self.question("a", "another text about oneself")
        self.close()
        for panel in ("blocked", "links", "mentions", "queue", "sessions"):
            self.type(f"/{panel}")
            self.open("Enter")
            self.keys(panel)
            self.close()
        self.open("F1")
        self.keys("help")
        self.close()
        self.text("a chat open after all of this")

    def question(self, key: str, state: str) -> None:
        self.open(key)
        self.text(state)
        self.close()


@scenario
def typed(world: World) -> None:
    alice, bob, carol = (world.person(name) for name in ("Alice", "Bob", "Carol"))
    first = alice.online()
    first.type(f"/new Friends, {bob.phone}, {carol.phone}\r")
    first.shows("created")
    first.type("see https://example.org\r")
    first.shows("✓")
    first.type("/contacts\r")
    first.shows("Contacts")
    first.press("Alt-a")
    first.shows("Phone of the new contact")
    first.type(f"{bob.phone}\r")
    first.shows("Bob is a contact now")
    first.close()
    for size in SIZES if IS_LONG else SIZES[::2]:
        walk = Walk(world, alice.online(size=size))
        walk.all()
        walk.terminal.close()


@scenario
def typed_in_sign_in(world: World) -> None:
    for size in SIZES[:2]:
        nobody = world.person(f"Nobody{size[0]}", signed_in=False)
        terminal = nobody.open(size=size)
        terminal.shows("Server", "Phone")
        walk = Walk(world, terminal)
        walk.text("the phone")
        terminal.press("Tab")
        walk.text("the server")
        terminal.press("Ctrl-u")
        terminal.type(world.server.address)
        terminal.press("Tab")
        terminal.type(nobody.phone[1:] + "\r")
        terminal.shows("Code of 6 digits")
        walk.text("the code")
        terminal.type("999999\r")
        terminal.shows("Wrong code")
        walk.text("the code after a wrong one")
        terminal.type("111111\r")
        terminal.shows("Your name")
        walk.text("the name")
        terminal.type(f"{nobody.name}\r")
        terminal.shows(" online")
        terminal.close()


@scenario
def typed_while_resized(world: World) -> None:
    alice, bob = world.person("Alice"), world.person("Bob")
    alice.run("send", bob.phone, "hello")
    terminal = alice.online()
    walk = Walk(world, terminal)

    def resized(state: str) -> None:
        for size in [*SIZES[1:], (160, 45), SIZES[0]]:
            terminal.resize(*size)
            terminal.until(f"a screen of {size}", lambda: terminal.lines[-1].startswith(" ") and terminal.cursor)
            walk.size = f"{size[0]}x{size[1]}, resized"
            walk.text(state)

    walk.open("Alt-g")
    walk.close("Enter")
    resized("a chat open")
    # Without spaces, each letter has only one possible place.
    terminal.type("0123456789" * 10)
    resized("a long line")
    walk.erase()
    walk.open("Alt-s")
    resized("a search")
    walk.close()
    walk.open("Alt-c")
    walk.open("Alt-a")
    resized("a question")
