"""Runs Tambour over the line: `tambourd` in the server's namespace, `tambour` in the phone's namespace."""

import json
import os
import pathlib
import subprocess
import time

from link import SERVER
from tally import Tally

PORT = 7770
CHATS = 20


class Tambour:
    name = "tambour"

    def __init__(self, link, directory, programs):
        self.link, self.directory = link, pathlib.Path(directory)
        self.programs = pathlib.Path(programs)
        self.home = self.directory / "home"

    def _run(self, namespace, account, command, *arguments, text=None):
        program = str(self.programs / "tambour")
        line = ["ip", "netns", "exec", namespace, program, command]
        line += ["--home", str(self.home), "--account", account, *arguments]
        return subprocess.run(line, input=text, capture_output=True, text=True, check=False, timeout=180)

    def _must(self, *arguments, **options):
        result = self._run(*arguments, **options)
        if result.returncode != 0:
            raise RuntimeError(f"{arguments}: {result.returncode} {result.stderr}")
        return result

    def start(self):
        self.directory.mkdir(parents=True)
        limits = self.directory / "limits.yaml"
        # Raise the limits, because the benchmark sends faster than they permit.
        limits.write_text("sendsPerMinute: 1000000\nmaxNewDialogsPerHour: 1000000\nloginsPerMinute: 1000000\n")
        data = str(self.directory / "data")
        server = [str(self.programs / "tambourd")]
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.link.server, *server, "serve", "--listen", f"{SERVER}:{PORT}"]
            + ["--data", data, "--login-codes", f"file:{self.directory}/codes", "--limits", str(limits)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if not any(line.startswith("listening") for line in self.process.stdout):
            raise RuntimeError("tambourd did not start")
        made = subprocess.run(
            [*server, "admin", "users", "create", "--data", data, "--count", str(CHATS + 1)]
            + ["--first-phone", "+79990000001"],
            capture_output=True,
            text=True,
            check=True,
        )
        users = [line.split() for line in made.stdout.splitlines()]
        users = [words for words in users if len(words) == 3]
        me = users[0]
        self._must(self.link.server, "me", "login", f"tcp://{SERVER}:{PORT}", "--token", text=me[2] + "\n")
        for index, (_, user, token) in enumerate(users[1:]):
            account = f"friend{index}"
            login = (f"tcp://{SERVER}:{PORT}", "--token")
            self._must(self.link.server, account, "login", *login, text=token + "\n")
            self._must(self.link.server, account, "send", me[0], "good morning")
        self.friend_phone, self.phone = users[1][0], me[0]
        self._must(self.link.server, "me", "chats", "--sync")
        chats = self._must(self.link.server, "me", "chats").stdout.splitlines()
        people = [json.loads(self._history(chat.split("\t")[0], 1)[0]) for chat in chats]
        self.chat = next(str(line["chat"]) for line in people if line["sender"] == int(users[1][1]))
        # Read the messages, so that the next login finds no new messages.
        self._must(self.link.server, "me", "history", self.chat, "-n", "10")

    def _history(self, chat, count):
        return self._must(self.link.server, "me", "history", chat, "-n", str(count), "--json").stdout.splitlines()

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def leave(self):
        """Does nothing, because the phone has no connection between two program runs."""

    def miss(self, texts):
        self._must(self.link.server, "friend0", "send", self.phone, "--lines", text="".join(t + "\n" for t in texts))

    def come_back(self, texts):
        """Starts the client and waits until it has printed the last text.

        Returns the seconds since the start of the program, and the tally.
        """
        begin = time.monotonic()
        lines = self._read(["history", self.chat, "-n", str(len(texts)), "--json"])
        done = time.monotonic()
        found = [json.loads(line)["text"] for line in lines]
        if found != texts:
            raise RuntimeError(f"{len(found)} lines, and not those that were sent")
        self.link.settle()
        return done - begin, Tally(self.link.take(), PORT, done)

    def log_in(self):
        """Logs in without new messages.

        Returns the seconds since the start of the program, and the tally.
        """
        begin = time.monotonic()
        self._read(["chats", "--sync"])
        done = time.monotonic()
        self.link.settle()
        return done - begin, Tally(self.link.take(), PORT, done)

    def _read(self, arguments):
        return self._must(self.link.phone, "me", arguments[0], *arguments[1:]).stdout.splitlines()

    def version(self):
        run = subprocess.run([str(self.programs / "tambourd"), "--version"], capture_output=True, text=True, check=False)
        return "tambour " + (run.stdout.strip() or "of this commit")


def first_packet(tally):
    """Returns the opcodes in the phone's first TCP segment with payload. Each packet begins with a header of ten bytes."""
    data, opcodes = tally.first_data, []
    while len(data) >= 10:
        opcodes.append(int.from_bytes(data[4:6], "big"))
        data = data[10 + int.from_bytes(data[7:10], "big") :]
    return opcodes


def default_programs():
    return os.path.join(os.path.dirname(__file__), "..", "..", ".build", "release")
