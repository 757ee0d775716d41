"""Captures the screens of the full-screen client, for people to look at.

    capture.py --tambour PROGRAM --tambourd PROGRAM --out FOLDER [--theme dark,light,mono] [--size 80x24,160x45]

Starts its own server with accounts and messages, and goes through twelve situations in its own tmux, once for each theme
and size. `FOLDER/THEME-SIZE/NN-NAME.txt` is the text of a situation, `.ansi` the same text with its colours. If a situation
does not appear within a minute, prints what the screen shows instead and exits with 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Seconds until expected screen content counts as missing. The limit is generous, because the machine may be busy.
DEADLINE = 60

PEOPLE = ("Alice Liddell", "Bob", "Carol", "محمد", "長谷川", "Dmitri", "Ermintrude Featherstonehaugh")

FIRST_PHONE = 79990000001


class Missing(Exception):
    """Expected content did not appear on the screen."""


def until(what: str, holds, describe=lambda: "") -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        if time.monotonic() > deadline:
            raise Missing(f"never: {what}\n{describe()}")
        # tmux reports no screen changes, so poll.
        time.sleep(0.05)


class Server:
    """A server, and accounts with tokens on it."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.data = folder / "server"
        self.codes = folder / "codes"
        # Raise the rate limits: sending all messages of the capture must not be slowed down.
        self.limits = folder / "limits"
        rates = [f"{kind}Burst" for kind in ("send", "create", "invite", "login")]
        rates += [f"{kind}sPerMinute" for kind in ("send", "create", "invite", "login")]
        self.limits.write_text("".join(f"{name}: 100000\n" for name in rates))
        self.port = "0"
        self.start()
        self.run("admin", "users", "create", "--data", self.data, "--count", len(PEOPLE),
                 "--first-phone", f"+{FIRST_PHONE}", "--tokens-out", folder / "tokens")
        lines = (folder / "tokens").read_text().split("\n")
        self.tokens = [line.split()[2] for line in lines if line.strip()]

    def start(self, **limits: int) -> None:
        """Starts the server; `limits` override the usual limits."""
        overrides = self.folder / "limits-now"
        own = "".join(f"{name}: {value}\n" for name, value in limits.items())
        overrides.write_text(self.limits.read_text() + own)
        log = (self.folder / "server.log").open("a")
        self.process = subprocess.Popen(
            [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data,
             "--login-codes", f"file:{self.codes}", "--limits", overrides],
            stdout=subprocess.PIPE, stderr=log, text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening tcp"):
            raise Missing(f"the server did not start: {line}\n{(self.folder / 'server.log').read_text()}")
        self.port = line.split(":")[-1].strip()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(DEADLINE)

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def run(self, *arguments: object) -> str:
        return subprocess.run([self.program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


class Person:
    """An account that the commands of `tambour` use."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program, self.home = program, home

    def run(self, *arguments: object, given: str | None = None) -> str:
        done = subprocess.run(
            [self.program, *map(str, arguments)], input=given, capture_output=True, text=True, timeout=DEADLINE,
            env={**os.environ, "TAMBOUR_HOME": str(self.home)},
        )
        if done.returncode != 0:
            raise Missing(f"tambour {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def log_in(self, server: Server, number: int) -> None:
        self.run("login", server.address, "--token", given=server.tokens[number] + "\n")


class Screen:
    """A program in a tmux terminal of a given size."""

    count = 0

    def __init__(self, size: str, command: list[str], environment: dict[str, str]) -> None:
        columns, rows = size.split("x")
        # Use a separate socket for each screen: the previous screen's tmux may be about to exit.
        Screen.count += 1
        self.tmux = ["tmux", "-L", f"tambour-{os.getpid()}-{Screen.count}", "-f", "/dev/null"]
        settings = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
        subprocess.run([*self.tmux, "new-session", "-d", "-x", columns, "-y", rows, *settings, *command], check=True)
        subprocess.run([*self.tmux, "set", "-g", "escape-time", "0"], check=True)
        subprocess.run([*self.tmux, "set", "-g", "status", "off"], check=True)

    def capture(self, *options: str) -> str:
        return subprocess.run(
            [*self.tmux, "capture-pane", "-p", *options], check=True, capture_output=True, text=True,
        ).stdout

    def waits_for(self, *texts: str) -> None:
        until(str(texts), lambda: all(text in self.capture() for text in texts), self.capture)

    def waits_for_end(self, text: str) -> None:
        until(f"no {text}", lambda: text not in self.capture(), self.capture)

    def type(self, text: str) -> None:
        subprocess.run([*self.tmux, "send-keys", "-l", text], check=True)

    def press(self, *keys: str) -> None:
        for key in keys:
            subprocess.run([*self.tmux, "send-keys", key], check=True)

    def choose_message(self) -> None:
        # A frame that is half drawn may still show the hint of the previous choice.
        self.waits_for_end("r reply")
        self.escape()
        self.waits_for("r reply")

    def close_panel(self, title: str) -> None:
        self.escape()
        self.waits_for_end(title)

    def escape(self) -> None:
        """Presses Escape. The caller must wait for the effect: a key directly after Escape counts as a key with Alt."""
        self.press("Escape")

    def close(self) -> None:
        subprocess.run([*self.tmux, "kill-server"], capture_output=True)


def talk(server: Server, program: Path, folder: Path) -> list[Person]:
    """Logs everybody in, and sends the messages that exist before the screen opens."""
    people = [Person(program, folder / f"person{number}") for number in range(len(PEOPLE))]
    phones = [f"+{FIRST_PHONE + number}" for number in range(len(PEOPLE))]
    for number, person in enumerate(people):
        if number > 0:
            person.log_in(server, number)
    bob, carol, mohammed, hasegawa, dmitri, ermintrude = people[1:]
    for number in range(60):
        bob.run("send", phones[0], f"Page {number} of the old story, which goes on and on.")
    bob.run("send", phones[0], "See https://example.org/tea?party=mad and (https://example.org/hatter).")
    mohammed.run("send", phones[0], "مرحبا، كيف حالك؟ (hello)")
    hasegawa.run("send", phones[0], "お茶はいかがですか。今日は三時に集まりましょう。")
    dmitri.run("send", phones[0], "Привет! Это e\u0301 и 👩\u200d💻, 🏳\ufe0f\u200d🌈.")
    ermintrude.run("send", phones[0], "A rather long line, to see where it is broken: "
                   + "Twas brillig, and the slithy toves did gyre and gimble in the wabe. " * 3)
    carol.run("send", phones[0], "Are you coming to the tea party?")
    return people


def shown(name: str) -> str:
    """Returns a name in the order of its cells on the screen; a right-to-left name is reversed."""
    return name[::-1] if "\u0590" <= name[0] < "\u0900" else name


def name_people(server: Server, program: Path, folder: Path) -> None:
    """Renames each account with the client, because accounts created in bulk have numbers as names."""
    for number, name in enumerate(PEOPLE):
        home = folder / f"namer{number}"
        Person(program, home).log_in(server, number)
        screen = Screen("80x24", [str(program)], {"TAMBOUR_HOME": str(home)})
        try:
            screen.waits_for("online")
            screen.type(f"/name {name}\r")
            screen.type("/profile\r")
            screen.waits_for("You", shown(name))
        finally:
            screen.close()


class Tour:
    """The twelve situations, in one theme and size."""

    def __init__(self, server: Server, program: Path, folder: Path, out: Path, theme: str, size: str) -> None:
        self.server, self.program, self.folder = server, program, folder
        self.theme, self.size = theme, size
        self.out = out / f"{theme}-{size}"
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        self.count = 0

    def environment(self, home: Path) -> dict[str, str]:
        colours = {"NO_COLOR": "1"} if self.theme == "mono" else {}
        return {"TAMBOUR_HOME": str(home), "TERM": "tmux-256color", "TZ": "UTC", **colours}

    def take(self, screen: Screen, name: str) -> None:
        self.count += 1
        path = self.out / f"{self.count:02}-{name}"
        path.with_suffix(".txt").write_text(screen.capture())
        path.with_suffix(".ansi").write_text(screen.capture("-e"))

    def open(self, home: Path) -> Screen:
        return Screen(self.size, [str(self.program), "open", "--theme", self.theme], self.environment(home))

    def run(self, people: list[Person]) -> None:
        self.first_run()
        home = self.folder / f"alice-{self.theme}-{self.size}"
        Person(self.program, home).log_in(self.server, 0)
        screen = self.open(home)
        try:
            screen.waits_for("online", "Carol")
            self.group(screen, people)
            self.chat(screen)
            self.panels(screen)
            self.offline(screen)
        finally:
            screen.close()
        self.gap(people)

    def first_run(self) -> None:
        screen = self.open(self.folder / f"nobody-{self.theme}-{self.size}")
        try:
            screen.waits_for("Welcome")
            screen.type("79990000100")
            screen.waits_for("79990000100")
            self.take(screen, "first-run")
        finally:
            screen.close()

    def group(self, screen: Screen, people: list[Person]) -> None:
        title = f"Tea {self.theme} {self.size}"
        screen.type(f"/new {title}, +{FIRST_PHONE + 1}, +{FIRST_PHONE + 2}\r")
        screen.waits_for("created")
        screen.type("Who brings the cake? https://example.org/cake\r")
        screen.waits_for("✓")
        for person in people[1:3]:
            person.run("chats", "--sync")
        people[1].run("send", title, "I do. With 🍓!")
        people[2].run("send", title, "And I the tea: Darjeeling, Assam, Earl Grey\nand hot water.")
        screen.waits_for("hot water")
        screen.choose_message()
        screen.press("Up", "r")
        screen.type("The whole of it?\r")
        screen.waits_for("The whole of it?")
        screen.choose_message()
        screen.press("Up", "+")
        screen.waits_for("React")
        screen.type("heart")
        screen.press("Enter")
        screen.waits_for("1*")
        self.take(screen, "chat")

    def chat(self, screen: Screen) -> None:
        screen.choose_message()
        screen.press("Up", "Up")
        self.take(screen, "message-chosen")
        screen.close_panel("r reply")
        screen.type("@Bo")
        screen.waits_for("@Bob")
        screen.press("Tab")
        screen.type("shall we say four :cake: or :te")
        screen.waits_for(":tea:")
        self.take(screen, "completing")
        screen.press("C-u")

    def panels(self, screen: Screen) -> None:
        screen.press("M-g")
        screen.waits_for("Go to")
        screen.type("o")
        screen.waits_for("> o")
        self.take(screen, "go-to")
        screen.close_panel("Go to")
        screen.press("M-s")
        screen.type("page 1")
        screen.waits_for("11 found")
        self.take(screen, "search")
        screen.press("Enter")
        screen.waits_for("1 of 11", "Page 18")
        self.take(screen, "search-hit")
        screen.close_panel("1 of 11")
        screen.press("M-g")
        screen.type(f"tea {self.theme} {self.size}")
        screen.press("Enter")
        screen.waits_for("hot water")
        screen.type("/members\r")
        screen.waits_for("3 members")
        self.take(screen, "members")
        screen.close_panel("3 members")
        screen.press("F1")
        screen.waits_for("Writing")
        self.take(screen, "help")
        screen.close_panel("Writing")

    def offline(self, screen: Screen) -> None:
        self.server.stop()
        try:
            screen.waits_for("offline")
            screen.type("I write this with no network at all.\r")
            screen.waits_for("no network")
            screen.press("M-q")
            screen.waits_for("Waiting to be done", "message")
            self.take(screen, "offline-queue")
            screen.close_panel("Waiting to be done")
            self.server.start(maxTextUnits=20)
            screen.waits_for("✗")
            self.take(screen, "refused")
        finally:
            self.server.restart()
        screen.waits_for("online")

    def gap(self, people: list[Person]) -> None:
        """Captures a chat offline, on a device that stores only an old page and the newest message of the chat."""
        home = self.folder / f"gap-{self.theme}-{self.size}"
        alice = Person(self.program, home)
        alice.log_in(self.server, 0)
        alice.run("history", "Bob", "--count", "10")
        for number in range(3):
            people[1].run("send", f"+{FIRST_PHONE}", f"Meanwhile {number}, {self.theme} {self.size}.")
        alice.run("chats", "--sync")
        self.server.stop()
        screen = self.open(home)
        try:
            screen.waits_for("offline")
            screen.press("M-g")
            screen.waits_for("Go to")
            screen.type("Bob")
            screen.press("Enter")
            screen.waits_for("Meanwhile 2", "messages are missing here")
            self.take(screen, "gap")
        finally:
            screen.close()
            self.server.restart()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tambour", type=Path, required=True)
    parser.add_argument("--tambourd", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--theme", default="dark,light,mono")
    parser.add_argument("--size", default="80x24,160x45")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tambour-captures-"))
    server = Server(options.tambourd.resolve(), folder)
    program = options.tambour.resolve()
    try:
        name_people(server, program, folder)
        people = talk(server, program, folder)
        for theme in options.theme.split(","):
            for size in options.size.split(","):
                tour = Tour(server, program, folder, options.out, theme, size)
                tour.run(people)
                print(f"{theme} {size}: {tour.count} captures in {tour.out}")
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
