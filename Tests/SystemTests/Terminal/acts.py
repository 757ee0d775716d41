"""A user's acts show on their own screen and on their other device, once no task is in progress.

Alice uses two devices. Bob and Carol join and leave her groups; Dave sends the fences. Every command, every key that
`tambour keys` names and every key below a panel has an act here, or a reason in `ELSEWHERE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness import IS_LONG, World, fact, is_idle, scenario, select_item
from terminal import Failure, Terminal, check

SIZE = (100, 30)
#: The width of the chat list on a screen of `SIZE`, in columns; a separator follows.
LIST = 28

#: The mark at the end of a message's line until the server has stored the message; a time may follow.
WAITS = re.compile(r" …( \d\d:\d\d)?\s*$", re.MULTILINE)

#: The acts by their triggers, such as `/title`, `reply` of `tambour keys`, or `Contacts: Alt-a`.
ACTS: dict[str, Callable[[Stage], None]] = {}

#: The acts that the short form plays, too.
SHORT: set[str] = set()

#: Triggers without an act here, and the reason or the test that covers them.
ELSEWHERE = {
    "retry": "only of what a server refused, see ScreenFlowTests",
    "Waiting to be done: r": "only of what a server refused, see ScreenFlowTests",
    "suspend": "TerminalDeviceTests",
    "editor": "TerminalDeviceTests",
    "/password": "asks for what others do not see, see ScreenAccountTests",
    "/phone": "the code goes to a phone, see ScreenAccountTests",
    "/approve": "ScreenAccountTests",
    **dict.fromkeys(
        ["above", "below", "chat-above", "chat-below", "scroll-up", "scroll-down", "newest", "first-unread", "back", "forward",
         "next-unread", "quoted", "older-hit", "newer-hit"],
        "changes nothing but what is looked at, see ScreenFlowTests and ScreenMoveTests",
    ),
}


def act(*names: str, short: bool = False) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    def register(function: Callable[[Stage], None]) -> Callable[[Stage], None]:
        for name in names:
            ACTS[name] = function
        if short:
            SHORT.add(names[0])
        return function

    return register


def pane(terminal: Terminal) -> str:
    return "\n".join(line[LIST + 1 :] for line in terminal.lines[:-1])


def chats(terminal: Terminal) -> str:
    return "\n".join(line[:LIST] for line in terminal.lines[:-1])


def row(terminal: Terminal, title: str) -> str:
    """The line of a chat in the list; empty when it is not there."""
    return next((line for line in chats(terminal).split("\n") if title in line), "")


class Stage:
    def __init__(self, world: World) -> None:
        self.world = world
        self.alice, self.bob, self.carol, self.dave = (world.person(name) for name in ("Alice", "Bob", "Carol", "Dave"))
        self.alice.log_in("tablet")
        self.dave.write(self.alice.phone, "hello from Dave")
        self.own = self.alice.online(size=SIZE)
        self.other = self.alice.online("tablet", size=SIZE)
        self.act = ""
        self.heals = 0
        #: The keys shown below the panels opened so far.
        self.panel_keys: set[str] = set()

    # Alice's actions

    def do(self, line: str, terminal: Terminal | None = None) -> None:
        """Writes a line and presses Enter."""
        (terminal or self.own).type(f"{line}\r")

    def open(self, keys: str, title: str, terminal: Terminal | None = None) -> Terminal:
        """Opens a panel by a key, or by a command and Enter."""
        terminal = terminal or self.own
        terminal.press(*([*keys, "Enter"] if keys.startswith("/") else [keys]))
        terminal.until(f"the panel {title}", lambda: f"─ {title}" in terminal.text)
        terminal.until("what is in it", lambda: "└" in terminal.text and not re.search("looking…|asking the server…", terminal.text))
        bottom = next(line for line in reversed(terminal.lines) if "└" in line)
        name = re.sub(" (of |in |“).*", "", title)
        for group in re.findall(r"─ (\S.*?) ─", bottom):
            self.panel_keys |= {f"{name}: {entry.split()[0]}" for entry in group.split("  ")}
        return terminal

    def close(self, terminal: Terminal | None = None) -> None:
        terminal = terminal or self.own
        terminal.press("Esc")
        terminal.until("no panel", lambda: "┌" not in terminal.text)

    def answer(self, question: str, text: str) -> None:
        self.own.shows(question)
        self.own.type(text)

    def on_newest(self, key: str) -> None:
        """Presses a key on the newest message of the open chat, after it is stored: only then can it be answered."""
        self.own.until("nothing that waits", lambda: is_idle(self.own) and not WAITS.search(pane(self.own)))
        self.own.press("Esc")
        self.own.until("a chosen message", lambda: not self.own.cursor)
        self.own.press(key)

    def to_line(self) -> None:
        """Goes from the selected message back to the input line."""
        self.own.press("Enter")
        self.own.until("the line", lambda: self.own.cursor)

    def go_to(self, title: str, *terminals: Terminal) -> None:
        for terminal in terminals or (self.own, self.other):
            self.open("Alt-g", "Go to", terminal)
            select_item(terminal, title)
            terminal.press("Enter")
            terminal.until(title, lambda terminal=terminal: title in pane(terminal).split("\n")[0] and terminal.cursor)

    # Expected results

    def shown(self, what: str, holds: Callable[[Terminal], object], *, other: bool = True) -> None:
        """Checks after a fence that `holds` is true for both screens."""
        self.world.send_fence(self.dave, self.alice)
        places = [("on the own screen", self.own), ("on the other device", self.other)]
        for place, terminal in places if other else places[:1]:
            with self.world.checking(f"acts: {self.act} {place}"):
                self.world.pass_fence(terminal)
                terminal.until(what, lambda terminal=terminal: holds(terminal) and is_idle(terminal))

    def noticed(self, words: str) -> None:
        """Waits until the status line of the own screen contains the words."""
        with self.world.checking(f"acts: {self.act} on the own screen"):
            self.own.until(words, lambda: words in self.own.lines[-1])

    def in_panel(self, command: str, title: str, text: str, *, there: bool = True) -> None:
        """Checks on both screens whether a panel contains a text."""
        def holds(terminal: Terminal) -> bool:
            self.open(command, title, terminal)
            try:
                terminal.until(f"{text!r} in {title}" if there else f"no {text!r} in {title}", lambda: (text in terminal.text) == there)
            finally:
                self.close(terminal)
            return True

        self.shown(f"{text!r} in {title}", holds)

    def heal(self) -> None:
        """Makes both screens fetch what they have missed: Bob sends another message to the group."""
        self.heals += 1
        text = f"all is well {self.heals}."
        self.bob.run("send", "Friends", text)
        for terminal in (self.own, self.other):
            terminal.until(text, lambda terminal=terminal: text in terminal.text and is_idle(terminal))


# Groups


@act("/new", short=True)
def new(stage: Stage) -> None:
    stage.do(f"/new Friends, {stage.bob.phone}")
    stage.shown("the group in the list", lambda terminal: row(terminal, "Friends"))
    stage.own.until("its beginning", lambda: "created “Friends”" in pane(stage.own))
    stage.go_to("Friends", stage.other)
    stage.bob.run("chats", "--sync")


@act("/add", short=True)
def add(stage: Stage) -> None:
    stage.do(f"/add {stage.carol.phone}")
    stage.shown("who was added", lambda terminal: "Alice added Carol" in pane(terminal))
    stage.heal()


@act("/admin")
def admin(stage: Stage) -> None:
    stage.do(f"/admin {stage.carol.phone}")
    stage.in_panel("/members", "Members of Friends", "administrator ")


@act("/remove", short=True)
def remove(stage: Stage) -> None:
    stage.do(f"/remove {stage.carol.phone}")
    stage.shown("who was removed", lambda terminal: "Alice removed Carol" in pane(terminal))
    stage.heal()


@act("Members: Alt-a", "Members: Alt-d", "Members: Alt-r", "/members")
def members(stage: Stage) -> None:
    stage.open("/members", "Members of Friends")
    stage.own.press("Alt-a")
    stage.answer("to add", f"{stage.carol.phone}\r")
    stage.own.shows("3 members", "Carol")
    select_item(stage.own, "Carol")
    stage.own.press("Alt-r")
    stage.own.shows("administrator ")
    stage.own.press("Alt-d")
    stage.answer("Remove Carol", "y")
    stage.own.shows("2 members")
    stage.close()
    stage.shown("what was done to Carol", lambda terminal: pane(terminal).count("Alice removed Carol") == 2)
    stage.heal()


@act("/title", short=True)
def title(stage: Stage) -> None:
    stage.do("/title Best Friends")
    stage.shown(
        "the new title",
        lambda terminal: row(terminal, "Best Friends") and "Best Friends" in pane(terminal).split("\n")[0]
        and "“Best Friends”" in pane(terminal),
    )
    stage.do("/title Friends")
    stage.own.until("the title", lambda: "Best" not in pane(stage.own).split("\n")[0])
    stage.heal()


@act("/describe")
def describe(stage: Stage) -> None:
    # No screen shows the description. The command must succeed and leave nothing in flight.
    stage.do("/describe Those who like tea")
    stage.shown("nothing", lambda terminal: "Friends" in pane(terminal).split("\n")[0])


@act("/options", "Options: Enter")
def options(stage: Stage) -> None:
    def option(terminal: Terminal) -> str:
        return next(line for line in terminal.lines if "may pin messages" in line)

    before = stage.open("/options", "Options of Friends")
    is_on = "yes" in option(before)
    stage.own.press("Enter")
    stage.own.until("the change", lambda: ("yes" in option(stage.own)) != is_on)
    stage.close()
    stage.in_panel("/options", "Options of Friends", "may pin messages")


@act("/invite", "/join")
def invite(stage: Stage) -> None:
    stage.do("/invite")
    stage.noticed("/join ")
    link = re.search(r"/join (\S+)", stage.own.lines[-1])[1]
    stage.do(f"/join {link}", stage.other)
    stage.other.until("the group that is known", lambda: "Friends" in pane(stage.other).split("\n")[0])
    carol = stage.carol.online()
    carol.type(f"/join {link}\r")
    carol.shows("Join “Friends”")
    carol.type("y")
    carol.until("that she joined", lambda: "Carol joined" in pane(carol))
    carol.close()
    stage.shown("who joined", lambda terminal: re.search("Carol.* joined|Carol joined", pane(terminal)))
    stage.do(f"/remove {stage.carol.phone}")
    stage.shown("who was removed", lambda terminal: "Alice removed Carol" in pane(terminal))
    stage.heal()


# Messages


@act("Enter", short=True)
def send(stage: Stage) -> None:
    stage.do("first https://example.org")
    stage.shown("the message", lambda terminal: "first https://example.org" in pane(terminal))


@act("pin-message", short=True)
def pin_message(stage: Stage) -> None:
    stage.on_newest("P")
    stage.shown("what was pinned", lambda terminal: "Alice pinned a message" in pane(terminal))
    stage.to_line()
    stage.heal()
    stage.do("first https://example.org")
    stage.own.until("it once more, below the pinned one and its line", lambda: pane(stage.own).count("first https") >= 3)


@act("/pinned", "/unpin")
def unpin(stage: Stage) -> None:
    stage.do("/pinned")
    stage.own.until("the pinned message chosen", lambda: not stage.own.cursor)
    stage.to_line()
    stage.do("/unpin")
    stage.shown("no pin", lambda terminal: not pane(terminal).split("\n")[1].lstrip().startswith("^ "))


@act("reply", short=True)
def reply(stage: Stage) -> None:
    stage.on_newest("r")
    stage.own.until("the quote", lambda: "↩" in stage.own.text)
    stage.do("an answer")
    stage.shown("the answer, with what it answers", lambda terminal: re.search("┃ Alice: first.*\n.*an answer", pane(terminal)))


@act("edit", short=True)
def edit(stage: Stage) -> None:
    stage.on_newest("e")
    stage.own.until("the text", lambda: "✎ an answer" in stage.own.text)
    stage.do(" that is better")
    stage.shown(
        "the edited message",
        lambda terminal: "an answer that is better" in pane(terminal) and "answer that is" in chats(terminal),
    )


@act("react", "unreact", short=True)
def react(stage: Stage) -> None:
    stage.on_newest("+")
    stage.own.shows("─ React")
    select_item(stage.own, "heart")
    stage.own.press("Enter")
    stage.shown("the reaction", lambda terminal: "1*" in pane(terminal))
    stage.on_newest("-")
    stage.shown("no reaction", lambda terminal: "1*" not in pane(terminal))
    stage.to_line()


@act("delete", short=True)
def delete(stage: Stage) -> None:
    stage.on_newest("d")
    stage.answer("for everybody", "y")
    stage.shown("the message gone", lambda terminal: "an answer" not in terminal.text)
    stage.to_line()


@act("delete-for-me")
def delete_for_me(stage: Stage) -> None:
    stage.do("only for a while")
    stage.own.until("it", lambda: "only for a while" in pane(stage.own))
    stage.on_newest("D")
    stage.answer("for you", "y")
    stage.shown("the message gone", lambda terminal: "only for a while" not in terminal.text)
    stage.to_line()


@act("copy", "open-link", "thread", "/thread", "/links", "Links: y", "/open")
def links(stage: Stage) -> None:
    stage.on_newest("y")
    stage.noticed("copied")
    stage.own.press("o")
    stage.noticed("opening https://example.org")
    stage.own.press("t")
    stage.own.shows("─ Thread", "it answers nothing")
    stage.close()
    stage.open("/thread", "Thread")
    stage.close()
    stage.open("/links", "Links")
    stage.own.press("y")
    stage.noticed("copied")
    stage.do("/open 1")
    stage.noticed("opening https://example.org")


@act("forward-message")
def forward(stage: Stage) -> None:
    stage.on_newest("f")
    stage.own.shows("─ Forward to")
    select_item(stage.own, "Dave")
    stage.own.press("Enter")
    stage.go_to("Dave", stage.other)
    stage.shown("what was forwarded", lambda terminal: "first https://example.org" in pane(terminal))
    stage.go_to("Friends")


@act("unread-from-here", "/unread")
def unread(stage: Stage) -> None:
    stage.go_to("Dave", stage.other)
    stage.bob.run("send", "Friends", "did you see this")
    stage.own.until("it", lambda: "did you see this" in pane(stage.own))
    stage.on_newest("u")
    stage.shown("the line of what is new", lambda terminal: "── new" in pane(terminal), other=False)
    with stage.world.checking("acts: unread-from-here on the other device"):
        stage.other.until("a count", lambda: re.search(r" 1$", row(stage.other, "Friends").rstrip()))
    stage.to_line()
    stage.do("/unread")
    stage.go_to("Friends", stage.other)


@act("/poll", "vote")
def poll(stage: Stage) -> None:
    stage.do("/poll Tea or cake? | Tea | Cake")
    stage.shown("the poll", lambda terminal: "○ Cake  0" in pane(terminal))
    stage.on_newest("v")
    stage.own.shows("─ Tea or cake?", "Enter votes")
    stage.own.press("Down", "Enter")
    stage.close()
    stage.shown("the vote", lambda terminal: "● Cake  1" in pane(terminal))
    stage.to_line()


# Chats


@act("/mute", "mute", "Go to: Alt-m")
def mute(stage: Stage) -> None:
    def is_muted(terminal: Terminal) -> bool:
        return row(terminal, "Friends").rstrip().endswith(" m") and "muted" in pane(terminal)

    stage.do("/mute")
    stage.shown("a muted chat", is_muted)
    stage.own.press("Alt-m")
    stage.shown("a chat with alerts", lambda terminal: not is_muted(terminal))
    for wanted in (True, False):
        stage.open("Alt-g", "Go to")
        select_item(stage.own, "Friends")
        stage.own.press("Alt-m")
        stage.close()
        stage.shown("muted or not", lambda terminal, wanted=wanted: is_muted(terminal) == wanted)


@act("/pin", "pin", "Go to: Alt-p", short=True)
def pin(stage: Stage) -> None:
    stage.do("/pin")
    stage.shown("the chat at the top", lambda terminal: "^Friends" in row(terminal, "Friends"))
    stage.own.press("Alt-p")
    stage.shown("the chat at its place", lambda terminal: "^Friends" not in terminal.text)
    for mark in ("^Friends", "▌Friends"):
        stage.open("Alt-g", "Go to")
        select_item(stage.own, "Friends")
        stage.own.press("Alt-p")
        stage.close()
        stage.shown("at the top or not", lambda terminal, mark=mark: mark in row(terminal, "Friends"))


@act("/hide")
def hide(stage: Stage) -> None:
    stage.do("/hide")
    stage.shown("no such chat in the list", lambda terminal: not row(terminal, "Friends"))
    stage.heal()


@act("/new-channel")
def new_channel(stage: Stage) -> None:
    stage.do("/new-channel Announcements")
    stage.shown("the channel in the list", lambda terminal: row(terminal, "Announcements"))
    stage.own.until("it open", lambda: "Announcements  channel" in pane(stage.own))


@act("/comments", "comments")
def comments(stage: Stage) -> None:
    stage.go_to("Announcements")
    stage.open("/options", "Options of Announcements")
    stage.own.press("PgDn")
    stage.own.shows("▌Readers may comment on posts")
    stage.own.press("Enter")
    stage.own.until("yes", lambda: re.search(r"▌Readers may comment on posts +yes", stage.own.text))
    stage.close()
    stage.do("tea is served")
    stage.shown("the post", lambda terminal: "tea is served" in pane(terminal))
    for terminal in (stage.own, stage.other):
        terminal.press("Esc")
        terminal.until("a chosen post", lambda terminal=terminal: not terminal.cursor)
        terminal.press("c")
        terminal.until("the comments", lambda terminal=terminal: "Comments on “tea is served”" in pane(terminal))
    stage.do("two sugars")
    stage.shown("the comment", lambda terminal: "two sugars" in pane(terminal))
    for terminal in (stage.own, stage.other):
        terminal.press("Alt-o")
        terminal.until("the channel", lambda terminal=terminal: "Announcements  channel" in pane(terminal))
    stage.own.until("the number", lambda: "1 comment" in pane(stage.own))
    stage.do("/comments")
    stage.own.until("the comments", lambda: "two sugars" in pane(stage.own))
    stage.own.press("Alt-o")
    stage.go_to("Friends")


@act("/leave", short=True)
def leave(stage: Stage) -> None:
    # Bob creates the group, because an owner cannot leave.
    owner = stage.bob.online()
    owner.type(f"/new Passing, {stage.alice.phone}\r")
    stage.own.until("the group of Bob", lambda: row(stage.own, "Passing"))
    owner.close()
    stage.go_to("Passing", stage.own)
    stage.do("/leave")
    stage.answer("Leave Passing", "y")
    # The other device keeps its messages and shows that Alice is no longer a member.
    stage.shown(
        "the group gone here, marked there",
        lambda terminal: not row(terminal, "Passing")
        if terminal is stage.own
        else "no longer a member" in terminal.text,
    )
    stage.go_to("Friends", stage.own)


@act("/find", short=True)
def find(stage: Stage) -> None:
    stage.do(f"/find {stage.carol.phone}")
    stage.own.until("Carol", lambda: "Carol" in pane(stage.own).split("\n")[0])
    stage.do("good morning")
    stage.shown("the new chat", lambda terminal: row(terminal, "Carol"))
    stage.go_to("Friends", stage.own)


# People


@act("/contacts", "contacts", "Contacts: Alt-a", "Contacts: Alt-r", "Contacts: Alt-b", "Contacts: Alt-d", "/blocked",
     "Blocked: Enter")
def contacts(stage: Stage) -> None:
    stage.open("Alt-c", "Contacts")
    stage.own.press("Alt-a")
    stage.answer("Phone of the new contact", f"{stage.carol.phone}\r")
    stage.noticed("is a contact now")
    stage.close()
    stage.in_panel("/contacts", "Contacts", "Carol")
    choose_carol(stage)
    stage.own.press("Alt-r")
    stage.answer("Name for Carol", "ine\r")
    stage.noticed("they are Caroline")
    stage.close()
    stage.in_panel("/contacts", "Contacts", "Caroline")
    choose_carol(stage)
    stage.own.press("Alt-b")
    stage.answer("Block Caroline", "y")
    stage.noticed("blocked Caroline")
    stage.close()
    stage.in_panel("/blocked", "Blocked", "Carol")
    stage.open("/blocked", "Blocked")
    stage.own.press("Enter")
    stage.noticed("unblocked")
    stage.close()
    stage.in_panel("/blocked", "Blocked", "Carol", there=False)
    choose_carol(stage)
    stage.own.press("Alt-d")
    stage.answer("Remove Caroline", "y")
    stage.noticed("removed Caroline")
    stage.close()
    stage.in_panel("/contacts", "Contacts", "Caroline", there=False)


def choose_carol(stage: Stage) -> None:
    stage.open("Alt-c", "Contacts")
    select_item(stage.own, "Carol")


@act("/name", "/about", "/profile", "You: n", "You: a", short=True)
def profile(stage: Stage) -> None:
    stage.do("/name Alicia Liddell")
    stage.in_panel("/profile", "You", "Alicia Liddell")
    stage.do("/about likes tea")
    stage.in_panel("/profile", "You", "likes tea")
    stage.open("/profile", "You")
    stage.own.press("n")
    stage.answer("Your name", "")
    stage.own.press("Ctrl-u")
    stage.own.type("Alice\r")
    stage.own.press("a")
    stage.answer("About you", " and cake\r")
    stage.close()
    stage.in_panel("/profile", "You", "likes tea and cake")
    stage.in_panel("/profile", "You", "Alicia", there=False)


@act("/saved")
def saved(stage: Stage) -> None:
    stage.do("/saved")
    stage.own.until("the chat", lambda: "Saved messages" in pane(stage.own).split("\n")[0])
    stage.do("a note")
    stage.shown("the chat in the list", lambda terminal: row(terminal, "Saved messages"))
    stage.go_to("Friends", stage.own)


@act("/public", "Found: Enter")
def public(stage: Stage) -> None:
    stage.open("/public Carol", "Found “Carol”")
    stage.close()


# Folders and scheduled messages


@act("/folder", "/folder-new", "/folder-add", "/folder-remove", "/folder-rename", "/folder-delete", "folders",
     "Folders: n", "Folders: r", "Folders: d", "Folders: a", "Folders: K")
def folders(stage: Stage) -> None:
    def is_shown(terminal: Terminal, title: str) -> bool:
        return title in chats(terminal).split("\n")[0]

    def shows_all() -> None:
        # A fence is seen only in the list of all chats.
        stage.do("/folder All chats")
        stage.own.until("all chats", lambda: row(stage.own, "Friends") and row(stage.own, "Dave"))

    stage.do("/folder-new Work")
    stage.own.until("the empty folder", lambda: is_shown(stage.own, "Work") and "no chats" in chats(stage.own))
    stage.do("/folder-add")
    stage.own.until("the chat alone", lambda: row(stage.own, "Friends") and not row(stage.own, "Dave"))
    stage.do("/folder-rename Play")
    stage.own.until("the new name", lambda: is_shown(stage.own, "Play"))
    shows_all()
    stage.in_panel("Alt-l", "Folders", "1 chat, with Friends")
    stage.in_panel("/folder", "Folders", "Play")
    stage.do("/folder Play")
    stage.own.until("the chat alone", lambda: not row(stage.own, "Dave"))
    stage.do("/folder-remove")
    stage.own.until("no chat", lambda: not row(stage.own, "Friends"))
    stage.do("/folder-delete")
    stage.answer("Delete the folder", "y")
    stage.own.until("all chats", lambda: row(stage.own, "Friends") and row(stage.own, "Dave"))
    stage.in_panel("/folder", "Folders", "Play", there=False)
    for title in ("One", "Two"):
        stage.open("/folder", "Folders")
        stage.own.press("n")
        stage.answer("Name of the new folder", f"{title}\r")
        stage.own.until("the new folder", lambda title=title: is_shown(stage.own, title))
    stage.open("/folder", "Folders")
    stage.own.press("K")
    stage.own.until("the other order", lambda: re.search("Two(.|\n)*One", stage.own.text))
    stage.own.press("a")
    stage.own.shows("1 chat, with Friends")
    stage.own.press("r")
    stage.answer("New name", "")
    stage.own.press("Ctrl-u")
    stage.own.type("Three\r")
    stage.own.shows("Three")
    stage.close()
    shows_all()
    stage.in_panel("/folder", "Folders", "Three")
    for _ in range(2):
        stage.open("/folder", "Folders")
        stage.own.press("Down", "d")
        stage.answer("Delete the folder", "y")
        stage.close()
    stage.in_panel("/folder", "Folders", "no folders yet")


@act("/later", "Scheduled: e", "Scheduled: t", "Scheduled: n", "Scheduled: x")
def later(stage: Stage) -> None:
    for text in ("a plan", "a mistake"):
        stage.do(f"/later 2h {text}")
        stage.noticed("will be sent at")
        stage.in_panel("/later", "Scheduled in Friends", text)
    stage.open("/later", "Scheduled in Friends")
    stage.own.press("Down", "x")
    stage.answer("Cancel this message", "y")
    stage.own.until("one alone", lambda: "a mistake" not in stage.own.text)
    stage.own.press("t")
    stage.answer("Send it at", "")
    stage.own.press("Ctrl-u")
    stage.own.type("3h\r")
    stage.own.press("e")
    stage.own.until("its text in the line", lambda: "✎ a plan" in stage.own.text)
    stage.do(" that holds")
    stage.noticed("changed")
    stage.in_panel("/later", "Scheduled in Friends", "a plan that holds")
    stage.open("/later", "Scheduled in Friends")
    stage.own.press("n")
    stage.close()
    stage.shown("the message", lambda terminal: "a plan that holds" in pane(terminal))


# Commands that only show something


@act("/help", "help", "/debug", "/search", "search", "search-chat", "/mentions", "mentions", "/theme", "/notify",
     "/login", "go-to-chat", "redraw")
def looks(stage: Stage) -> None:
    stage.do("/help")
    stage.own.shows("Help")
    stage.own.press("F1")
    stage.own.shows_no_more("Help")
    stage.do("/debug")
    stage.own.shows("─ Packets")
    stage.do("a message")
    stage.own.shows("request MSG_SEND")
    stage.do("/debug")
    stage.own.shows_no_more("─ Packets")
    stage.do("/search first")
    stage.own.shows("found")
    stage.close()
    for key in ("Alt-s", "Alt-/"):
        stage.own.press(key)
        stage.own.shows("─ Search")
        stage.close()
    stage.open("/mentions", "Where you were named")
    stage.close()
    stage.open("Alt-a", "Where you were named")
    stage.close()
    before = stage.own.screen.buffer[29][1].bg
    stage.do("/theme light")
    stage.own.until("another colour", lambda: stage.own.screen.buffer[29][1].bg != before)
    stage.do("/theme dark")
    stage.own.until("the same colour", lambda: stage.own.screen.buffer[29][1].bg == before)
    stage.do("/notify bell")
    stage.noticed("bell")
    stage.do("/login")
    stage.noticed("you are signed in")
    # A refused command stays in the line.
    stage.own.press("Ctrl-u")
    before = stage.own.text
    stage.own.press("Ctrl-l")
    stage.shown("the same", lambda terminal: "Friends" in pane(terminal).split("\n")[0], other=False)


@act("/date", short=True)
def date(stage: Stage) -> None:
    for _ in range(12):
        stage.do("another line of those that are scrolled away")
    stage.own.until("no beginning", lambda: "created “Friends”" not in pane(stage.own))
    stage.do("/date today")
    with stage.world.checking("acts: /date on the own screen"):
        stage.own.until("the beginning", lambda: "created “Friends”" in pane(stage.own))
    stage.own.press("Alt-End")
    stage.own.until("the end", lambda: "more below" not in stage.own.text and is_idle(stage.own))


# The queue, sessions and the end


@act("/queue", "queue", "Waiting to be done: x")
def queue(stage: Stage) -> None:
    stage.world.server.stop()
    stage.own.until("offline", lambda: "offline" in stage.own.lines[-1])
    stage.do("never to be sent")
    stage.open("/queue", "Waiting to be done")
    stage.own.shows("message “never to be sent”")
    stage.own.press("x")
    stage.own.shows("nothing waits")
    stage.close()
    stage.open("Alt-q", "Waiting to be done")
    stage.close()
    with stage.world.checking("acts: Waiting to be done: x on the own screen"):
        stage.own.until("it gone", lambda: "never to be sent" not in pane(stage.own))
    stage.world.server.start()
    # The writing device reconnects at once; wait until both are online.
    for terminal in (stage.own, stage.other):
        terminal.until("online", lambda terminal=terminal: " online" in terminal.lines[-1])


@act("/sessions", "Signed in: x", "Signed in: o")
def sessions(stage: Stage) -> None:
    stage.alice.log_in("laptop")
    laptop = stage.alice.online("laptop", size=SIZE)
    stage.open("/sessions", "Signed in")
    stage.own.until("three devices", lambda: stage.own.text.count("DESKTOP") == 3)
    # The asking device is listed first, then the others in the order in which they were last seen.
    stage.own.press("Down", "x")
    stage.answer("Sign out", "y")
    stage.own.until("two devices", lambda: stage.own.text.count("DESKTOP") == 2)
    with stage.world.checking("acts: Signed in: x on the other devices"):
        laptop.until("signed out", lambda: "signed out" in laptop.lines[-1])
    laptop.close()
    stage.own.press("o")
    stage.answer("Sign out everywhere but here", "y")
    stage.own.until("this device alone", lambda: stage.own.text.count("DESKTOP") == 1)
    stage.close()
    with stage.world.checking("acts: Signed in: o on the other device"):
        stage.other.until("signed out", lambda: "signed out" in stage.other.lines[-1])


@act("/quit", "leave", short=True)
def quit_(stage: Stage) -> None:
    stage.do("/quit")
    check(stage.own.ended() == 0, "/quit ends with 0")
    stage.other.press("Ctrl-q")
    check(stage.other.ended() == 0, "Ctrl-Q ends with 0")


@scenario
def acts(world: World) -> None:
    stage = Stage(world)
    played = set()
    for name, function in ACTS.items():
        if (IS_LONG or name in SHORT) and function not in played:
            played.add(function)
            stage.act = name
            try:
                function(stage)
            except Failure as failure:
                raise Failure(f"{name}: {failure}") from failure
    unknown = stage.panel_keys - ACTS.keys() - ELSEWHERE.keys()
    check(not unknown, f"keys of panels without an act: {sorted(unknown)}")


@scenario
def removed_from_a_group(world: World) -> None:
    alice, bob, dave = (world.person(name) for name in ("Alice", "Bob", "Dave"))
    own, theirs = alice.online(size=SIZE), bob.online(size=SIZE)
    own.type(f"/new Friends, {bob.phone}\r")
    own.until("the group", lambda: "created" in pane(own))
    theirs.until("the group", lambda: row(theirs, "Friends"))
    theirs.press("Alt-g")
    theirs.shows("─ Go to", "Friends")
    theirs.press("Enter")
    theirs.until("it open", lambda: "created “Friends”" in pane(theirs))
    fact("who is in a group sees it")
    own.type(f"/remove {bob.phone}\r")
    world.send_fence(dave, bob)
    with world.checking("acts: /remove on the screen of who was removed"):
        world.pass_fence(theirs)
        theirs.until("that they were removed", lambda: re.search("removed|no longer|member", theirs.text))


@scenario
def acts_are_complete(world: World) -> None:
    """Every command and key that the program lists has an act or an entry in `ELSEWHERE`."""
    alice = world.person("Alice")
    actions = {line.split("\t")[0] for line in alice.run("keys").splitlines()}
    terminal = alice.online(size=(100, 140))
    terminal.press("F1")
    terminal.shows("Commands", "/unread")
    help_lines = terminal.text[terminal.text.index("Commands"):]
    commands = set(re.findall(r"│ +(/[a-z-]+) ", help_lines))
    check(len(commands) > 20 and len(actions) > 20, f"not read: {commands}, {actions}")
    missing = (commands | actions) - ACTS.keys() - ELSEWHERE.keys()
    check(not missing, f"without an act: {sorted(missing)}")
    outdated = {name for name in {*ACTS, *ELSEWHERE} if name != "Enter" and ":" not in name} - commands - actions
    check(not outdated, f"acts of what there is no more: {sorted(outdated)}")
    fact(f"{len(commands)} commands and {len(actions)} actions have an act or a reason")
