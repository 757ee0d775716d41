"""The first five minutes of the README, word for word, with the debug build instead of a release."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from harness import World, fact, scenario
from terminal import Failure, Terminal, check

ROOT = Path(__file__).resolve().parents[3]

#: The build folder and the server address that the README names.
RELEASE, ADDRESS = ".build/release/", "127.0.0.1:7770"


def section(page: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    if not found:
        raise Failure(f"the README has no section {title!r}")
    return found[1]


def commands(text: str) -> list[str]:
    """The lines of the console blocks, without the comments at their ends."""
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)
    return [re.sub(r" +# .*", "", line) for block in blocks for line in block.splitlines() if line]


def recipe(target: str, *variables: str) -> str:
    """The last command that a target of the Makefile runs."""
    printed = subprocess.run(
        ["make", "--dry-run", target, *variables], cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout
    return printed.strip().splitlines()[-1]


class Reader:
    """A reader of the README, with a terminal for each running program."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.environment = {**world.person("Reader", signed_in=False).environment("phone"), "TERM": "xterm-256color"}

    def run(self, command: str, size: tuple[int, int] = (80, 24)) -> Terminal:
        words = shlex.split(command.removeprefix("exec "))
        check(words[0].startswith(RELEASE), f"{command}: nobody knows this program")
        program = self.world.programs / words[0].removeprefix(RELEASE)
        return Terminal([str(program), *words[1:]], self.environment, size)


def sign_in(terminal: Terminal, server: Terminal, address: str, phone: str, name: str) -> None:
    """Enters what the screen asks for: server, phone, code, and a name, because the phone is new."""
    terminal.shows("Welcome", f"Server: {ADDRESS}", "Phone: +")
    terminal.press("Up", "Ctrl-u")
    terminal.type(address)
    terminal.press("Down")
    terminal.type(f"{phone}\r")
    terminal.shows("Code of")
    code = re.compile(rf"\{phone}\D+(\d+)")
    server.until(f"the code of {phone}", lambda: code.search(server.text))
    found = code.search(server.text)
    assert found
    terminal.type(f"{found[1]}\r")
    terminal.shows("Your name")
    terminal.type(f"{name}\r")
    terminal.shows(" online")


@scenario
def first_minutes(world: World) -> None:
    page = (ROOT / "README.md").read_text()
    reader = Reader(world)

    first = commands(section(page, "Run it"))[0]
    check(first == "make run", f"the first command is {first!r}")
    usual = recipe("run")
    check(ADDRESS in usual and "console" in usual, f"make run does {usual!r}")
    serve = recipe("run", "LISTEN=127.0.0.1:0", f"DATA={world.folder / 'var'}")
    server = reader.run(serve, (160, 50))
    server.shows("listening tcp")
    address = re.findall(r"listening tcp (\S+)", server.text)[0]
    fact(first)

    chat = section(page, "A first chat")
    build, alone, second, *_ = commands(chat)
    check(build == "make tambour", f"the client is built by {build!r}")
    check(RELEASE + "tambour" in subprocess.run(
        ["make", "--dry-run", "tambour"], cwd=ROOT, capture_output=True, text=True, check=True).stdout, "make tambour says where")
    phones = re.search(r"as (\+\d+) and\s+(\+\d+)", chat)
    check(phones and "types `/find` with the phone of the other, presses Enter, and types a message" in " ".join(chat.split()), "what to type is said")
    assert phones
    alice, bob = reader.run(alone), reader.run(second)
    sign_in(alice, server, address, phones[1], "Alice")
    fact(alone)
    sign_in(bob, server, address, phones[2], "Bob")
    fact(second)

    alice.type(f"/find {phones[2]}\r")
    alice.until("Bob", lambda: "Bob" in alice.lines[0])
    alice.type("a line\r")
    alice.shows("a line", "✓")
    bob.shows("Alice", "a line")
    bob.press("Alt-g")
    bob.shows("─ Go to", "Alice")
    bob.press("Enter")
    bob.type("and an answer\r")
    alice.shows("and an answer")
    fact("both sides see the first messages")
    alice.press("F1")
    alice.shows("Help", "Writing")
    fact("F1 shows the rest")
