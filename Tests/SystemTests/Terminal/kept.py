"""Nothing that is typed is lost, whatever happens meanwhile."""

from __future__ import annotations

import signal

from harness import Person, World, is_idle, scenario, select_item
from terminal import Terminal, check
from typed import stands_behind


def go_to(terminal: Terminal, title: str) -> None:
    terminal.press("Alt-g")
    terminal.shows("─ Go to")
    select_item(terminal, title)
    terminal.press("Enter")
    terminal.until(title, lambda: "┌" not in terminal.text and any(title in line for line in terminal.lines[:1]))


def is_typed(terminal: Terminal, text: str) -> None:
    """Waits until the text is in the line and the cursor is directly after the text."""
    terminal.until(f"{text!r} in the line", lambda: stands_behind(terminal, f" {text}"))


class Writer:
    """Alice, who is in the middle of a sentence to Bob."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alice, self.bob, self.carol = (world.person(name) for name in ("Alice", "Bob", "Carol"))
        self.alice.log_in("tablet")
        for other in (self.bob, self.carol):
            self.alice.run("send", other.phone, f"hello {other.name}")
        self.terminal = self.alice.online()
        self.text = ""
        go_to(self.terminal, "Bob")

    def writes(self, text: str) -> None:
        self.terminal.type(text)
        self.text += text
        is_typed(self.terminal, self.text)

    def still(self, what: str) -> None:
        """Checks that the written text is still in the line, and that typing continues there."""
        with self.world.checking(f"kept: {what}"):
            is_typed(self.terminal, self.text)
            self.writes("x")

    def is_stored(self) -> None:
        """Checks that the draft is on the server: the other device shows it."""
        tablet = self.alice.online("tablet")
        tablet.shows(f"draft: {self.text[:15]}")
        go_to(tablet, "Bob")
        is_typed(tablet, self.text)
        # The list shows no draft of the chat that is open again after the next start.
        go_to(tablet, "Carol")
        tablet.close()

    def opens_again(self) -> None:
        self.terminal.close()
        self.terminal = self.alice.open()
        self.terminal.shows("Bob")
        go_to(self.terminal, "Bob")


@scenario
def kept(world: World) -> None:
    writer = Writer(world)
    terminal = writer.terminal
    writer.writes("half a sentence ")

    go_to(terminal, "Carol")
    terminal.type("to Carol")
    is_typed(terminal, "to Carol")
    go_to(terminal, "Bob")
    writer.still("in another chat")
    go_to(terminal, "Carol")
    with world.checking("kept: in both chats"):
        is_typed(terminal, "to Carol")
    go_to(terminal, "Bob")

    terminal.press("Esc")
    terminal.until("a chosen message", lambda: not terminal.cursor)
    terminal.press("Esc")
    writer.still("behind Esc")
    terminal.press("Alt-c")
    terminal.shows("─ Contacts")
    terminal.press("Esc")
    writer.still("behind a panel")

    for size in ((40, 12), (20, 6), (160, 45), (80, 24)):
        terminal.resize(*size)
    writer.still("when the terminal was resized")

    writer.bob.run("send", writer.alice.phone, "are you there?")
    terminal.shows("are you there?")
    writer.still("when a message came")

    world.server.stop()
    terminal.until("offline", lambda: "offline" in terminal.lines[-1])
    writer.still("while the server is gone")
    world.server.start()
    terminal.until("online", lambda: " online" in terminal.lines[-1])
    writer.still("when the server is back")
    writer.is_stored()

    # The draft is not stored yet: the client stores it only after a pause in typing.
    writer.writes("!")
    terminal.press("Ctrl-q")
    check(terminal.ended() == 0, "Ctrl-Q ends with 0")
    writer.opens_again()
    writer.still("when the client was left")

    writer.is_stored()
    writer.terminal.kill()
    writer.opens_again()
    writer.still("when the client was killed")

    world.server.stop(signal.SIGKILL)
    writer.terminal.until("offline", lambda: "offline" in writer.terminal.lines[-1])
    writer.terminal.press("Enter")
    writer.terminal.until("it waits", lambda: " waiting" in writer.terminal.lines[-1] and stands_behind(writer.terminal, "> "))
    writer.terminal.kill()
    world.server.start()
    writer.opens_again()
    with world.checking("kept: sent while the server was gone, and the client killed"):
        writer.terminal.until("it is sent", lambda: " online" in writer.terminal.lines[-1] and is_idle(writer.terminal))
        # The status line reports waiting messages only a moment after the client is online.
        writer.alice.run("queue", "--flush")
        count = heard(writer.bob, "Alice").count(writer.text)
        check(count == 1, f"Bob has it once, not {count} times\n{writer.terminal}")


def heard(person: Person, chat: str) -> str:
    return person.run("history", chat, "-n", "100")


def in_editor(world: World, terminal: Terminal) -> str:
    """Returns the whole content of the input line, which the editor copies."""
    edited = world.folder / "edited"
    edited.unlink(missing_ok=True)
    terminal.press("Alt-e")
    terminal.until("the editor", edited.exists)
    # If Enter arrives before the client controls the terminal, it arrives as a line feed.
    terminal.until("the line", lambda: terminal.cursor and terminal.takes_keys)
    return edited.read_text()


@scenario
def kept_over_paste(world: World) -> None:
    """A paste stays complete. If it is longer than a message, every line is sent or in the input line, and none is split."""
    alice, bob = world.person("Alice"), world.person("Bob")
    alice.run("send", bob.phone, "hello Bob")
    terminal = alice.online()
    go_to(terminal, "Bob")
    lines = [f"a pasted line of text with the number {number:05}." for number in range(76_000 // 45)]
    short = "\n".join(lines[:60])
    terminal.paste(short)
    terminal.until("its end", lambda: stands_behind(terminal, lines[59]))
    with world.checking("kept: a paste of some lines"):
        found = in_editor(world, terminal).strip("\n")
        check(found == short, f"{len(found)} of {len(short)} characters are in the line\n{terminal}")
    terminal.press("Enter")
    # The message is taller than the screen, so its ✓ may be off-screen.
    terminal.until("it sent", lambda: is_idle(terminal) and stands_behind(terminal, "> "))

    terminal.paste("\n".join(lines))
    terminal.until("something pasted", lambda: not stands_behind(terminal, "> "))
    with world.checking("kept: a paste of 76,000 characters"):
        terminal.press("Enter")
        found = in_editor(world, terminal)
        terminal.until("nothing waits", lambda: is_idle(terminal))

        def missing() -> list[str]:
            words = found + "\n" + heard(bob, "Alice")
            # The test has sent 60 lines with the same words before, so skip these lines.
            return [line for line in lines[60:] if line not in words]

        # The status line reports a waiting message only a moment after the client stores it.
        terminal.until("every line with Bob, or in the line", lambda: not missing())
