"""Measures the speed of the full-screen client: first screen, key to screen, memory, idle CPU.

    screen.py --tambour PROGRAM --tambourd PROGRAM [--chats 1000] [--messages 100000] [--rounds 7] [--seconds 20]

The script starts a server on loopback and creates an account with the given numbers of chats and messages. It runs the
client in a pseudo-terminal of 100 x 40 cells, and reads the output as a terminal would. `first screen` is the time from
the start of the process to the first byte of a chat's title. `key` is the time from writing a key to reading its glyph,
once while idle and once while 100 messages a second arrive in the open chat. Figures apply only to this machine.
Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any

#: Seconds after which expected output counts as lost.
DEADLINE = 30

GOALS = {
    "first screen, ms": 100.0,
    "key, ms": 16.0,
    "key at 100 messages/s, ms": 16.0,
    "RSS, MB": 60.0,
    "idle CPU, %": 0.5,
}

#: A character that no message contains.
KEY = "Ж".encode()


# A MessagePack codec for the types in the store's rows: maps, lists, texts, integers, booleans, nil.


def unpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind >= 0xE0:
        return kind - 256, at
    if kind < 0x90:
        return unpack_map(data, at, kind & 15)
    if kind < 0xA0:
        return unpack_list(data, at, kind & 15)
    if kind < 0xC0:
        return data[at:at + (kind & 31)].decode(), at + (kind & 31)
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], at
    numbers = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    if kind in numbers:
        size = struct.calcsize(numbers[kind])
        return struct.unpack_from(numbers[kind], data, at)[0], at + size
    lengths = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDE: ">H"}
    length, = struct.unpack_from(lengths[kind], data, at)
    at += struct.calcsize(lengths[kind])
    if kind == 0xDC:
        return unpack_list(data, at, length)
    if kind == 0xDE:
        return unpack_map(data, at, length)
    return data[at:at + length].decode(), at + length


def unpack_list(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, at = unpack(data, at)
        items.append(item)
    return items, at


def unpack_map(data: bytes, at: int, count: int) -> tuple[dict[Any, Any], int]:
    items = {}
    for _ in range(count):
        key, at = unpack(data, at)
        items[key], at = unpack(data, at)
    return items, at


def pack(value: Any) -> bytes:
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return bytes([value]) if 0 <= value < 128 else b"\xd3" + struct.pack(">q", value)
        case str():
            data = value.encode()
            return b"\xda" + struct.pack(">H", len(data)) + data
        case list():
            return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(pack, value))
        case dict():
            pairs = b"".join(pack(key) + pack(item) for key, item in value.items())
            return b"\xde" + struct.pack(">H", len(value)) + pairs
    raise TypeError(type(value))


class Server:
    def __init__(self, program: Path, folder: Path) -> None:
        limits = folder / "limits"
        limits.write_text("sendsPerMinute: 1000000\nsendBurst: 1000000\n")
        data = folder / "server"
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--data", data, "--login-codes", f"file:{folder}/codes",
             "--limits", limits],
            stdout=subprocess.PIPE, stderr=(folder / "server.log").open("w"), text=True,
        )
        self.address = self.process.stdout.readline().split()[-1]
        subprocess.run(
            [program, "admin", "users", "create", "--data", data, "--count", "2", "--first-phone", "+79990000001",
             "--tokens-out", folder / "tokens"], check=True,
        )
        rows = [line.split() for line in (folder / "tokens").read_text().splitlines()]
        self.users = [int(row[1]) for row in rows]
        self.tokens = [row[2] for row in rows]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE)


class Sender:
    """A user, Bob, who sends messages at a steady rate."""

    def __init__(self, server: Server) -> None:
        host, port = server.address.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.chat = server.users[0] ^ server.users[1]
        self.sequence = 0
        agent = {"deviceType": "DESKTOP", "appVersion": "1", "locale": "en"}
        self.send(6, {"deviceId": "bench", "userAgent": agent})
        self.send(19, {"token": server.tokens[1], "interactive": True})
        threading.Thread(target=self.drain, daemon=True).start()

    def send(self, opcode: int, value: dict[str, Any]) -> None:
        payload = pack(value)
        self.sequence = (self.sequence + 1) % 65536
        self.socket.sendall(struct.pack(">BBHHI", 10, 0, self.sequence, opcode, len(payload)) + payload)

    def drain(self) -> None:
        while self.socket.recv(65536):
            pass

    def write(self, number: int) -> None:
        cid = time.time_ns() // 1000
        text = f"message {number} of many that come while somebody types"
        self.send(64, {"chatId": self.chat, "message": {"cid": cid, "text": text}})


def seed(path: Path, chats: int, messages: int) -> None:
    """Copies the only chat and the only message of a real account until the store has the given numbers of both."""
    db = sqlite3.connect(path)
    columns = [row[1] for row in db.execute("PRAGMA table_info(chat)")]
    chat = dict(zip(columns, db.execute("SELECT * FROM chat LIMIT 1").fetchone()))
    message = db.execute("SELECT chat, sender, data FROM message ORDER BY id DESC LIMIT 1").fetchone()
    chat_data, message_data = unpack(chat["data"])[0], unpack(message[2])[0]
    now = int(time.time() * 1000)
    each = messages // chats
    words = "tea party hatter march hare dormouse queen croquet flamingo hedgehog rabbit watch".split()
    for number in range(chats):
        group = -(number + 1) * 4096
        last = now - 60_000 * (number + 1)
        times = [last - 1_000 * (each - index) for index in range(each)]
        rows = []
        for index, sent in enumerate(times):
            text = f"{words[(number + index) % len(words)]} {words[index * 7 % len(words)]} number {index}, as it was said"
            data = pack({**message_data, "id": sent << 16, "time": sent, "text": text, "cid": sent})
            rows.append((group, sent << 16, message[1], sent, 0, index, text, data))
        db.executemany(
            "INSERT INTO message (chat, id, sender, cid, updateTime, revision, text, data) VALUES (?,?,?,?,?,?,?,?)", rows)
        title = f"Group number {number}"
        row = {
            **chat, "id": group, "type": "CHAT", "title": title, "lastEventTime": times[-1],
            "lastMessage": times[-1] << 16, "unread": number % 5, "readMark": times[-5],
            "data": pack({**chat_data, "id": group, "type": "CHAT", "title": title}),
        }
        marks = ",".join("?" * len(columns))
        db.execute(f"INSERT INTO chat VALUES ({marks})", [row[name] for name in columns])
        db.execute("INSERT INTO history_chunk VALUES (?,?,?)", (group, times[0] << 16, times[-1] << 16))
    db.commit()
    counts = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("chat", "message")]
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    print(f"a file of {counts[0]} chats and {counts[1]} messages, {path.stat().st_size / 1e6:.0f} MB")


class Terminal:
    """The client in a pseudo-terminal."""

    def __init__(self, program: Path, home: Path) -> None:
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        environment = {**os.environ, "TAMBOUR_HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}

        def take_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [program, "open"], stdin=slave, stdout=slave, stderr=slave, env=environment, preexec_fn=take_terminal,
        )
        os.close(slave)

    def wait_for(self, text: bytes) -> float:
        """Waits for a text in the output and returns the time at which it was read."""
        seen = b""
        end = time.perf_counter() + DEADLINE
        while time.perf_counter() < end:
            if select.select([self.master], [], [], 0.5)[0]:
                seen = seen[-200:] + os.read(self.master, 65536)
                if text in seen:
                    return time.perf_counter()
        raise TimeoutError(f"{text!r} never came")

    def drain(self, seconds: float = 0.0) -> None:
        end = time.perf_counter() + seconds
        while select.select([self.master], [], [], max(0.0, end - time.perf_counter()))[0]:
            try:
                os.read(self.master, 65536)
            except OSError:
                # The client has exited.
                return

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def key(self) -> float:
        """Types a key and returns the milliseconds until its glyph appears."""
        self.drain()
        before = time.perf_counter()
        self.type(KEY)
        took = (self.wait_for(KEY) - before) * 1000
        self.type(b"\x15")
        return took

    def memory(self, field: str) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1000
        return 0.0

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.type(b"\x11")
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < end:
            self.drain(0.05)
        if self.process.poll() is None:
            self.process.kill()
        os.close(self.master)


def quantiles(values: list[float]) -> str:
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))]
    return f"median {statistics.median(ordered):.1f}  p90 {at(0.9):.1f}  p99 {at(0.99):.1f}  max {ordered[-1]:.1f}  n {len(ordered)}"


def keys(terminal: Terminal, seconds: float) -> list[float]:
    took = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        took.append(terminal.key())
        terminal.drain(0.05 + len(took) % 7 * 0.007)
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tambour", type=Path, required=True)
    parser.add_argument("--tambourd", type=Path, required=True)
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    program = options.tambour.resolve()
    folder = Path(tempfile.mkdtemp(prefix="tambour-screen-"))
    home = folder / "home"
    server = Server(options.tambourd.resolve(), folder)
    figures: dict[str, float] = {}
    try:
        environment = {**os.environ, "TAMBOUR_HOME": str(home)}
        sender = Sender(server)
        sender.write(0)
        command = [program, "login", server.address, "--token"]
        subprocess.run(command, input=server.tokens[0] + "\n", text=True, env=environment, check=True,
                       capture_output=True, timeout=DEADLINE)
        seed(home / "default.db", options.chats, options.messages)

        first = []
        for _ in range(options.rounds):
            terminal = Terminal(program, home)
            first.append((terminal.wait_for(b"Group number 1") - terminal.started) * 1000)
            terminal.close()
        print(f"first screen, ms: {quantiles(first)}")
        figures["first screen, ms"] = statistics.median(first)

        terminal = Terminal(program, home)
        terminal.wait_for(b"online")
        terminal.type(b"\x1bg")
        terminal.drain(0.5)
        terminal.type(b"user\r")
        terminal.drain(1)
        quiet = keys(terminal, options.seconds / 2)
        print(f"key, ms: {quantiles(quiet)}")
        figures["key, ms"] = sorted(quiet)[int(len(quiet) * 0.99)]

        before, began = terminal.cpu(), time.monotonic()
        terminal.drain(options.seconds)
        figures["idle CPU, %"] = (terminal.cpu() - before) / (time.monotonic() - began) * 100
        print(f"idle CPU, %: {figures['idle CPU, %']:.2f} over {options.seconds:.0f} s")

        is_over = threading.Event()

        def load() -> None:
            number, began = 0, time.monotonic()
            while not is_over.is_set():
                number += 1
                sender.write(number)
                time.sleep(max(0.0, began + number / 100 - time.monotonic()))

        thread = threading.Thread(target=load)
        thread.start()
        terminal.drain(1)
        before, began = terminal.cpu(), time.monotonic()
        busy = keys(terminal, options.seconds)
        share = (terminal.cpu() - before) / (time.monotonic() - began) * 100
        is_over.set()
        thread.join()
        print(f"key at 100 messages/s, ms: {quantiles(busy)}; CPU {share:.0f} %")
        figures["key at 100 messages/s, ms"] = sorted(busy)[int(len(busy) * 0.99)]

        # Scrolls up, to make the client read old messages too.
        for _ in range(40):
            terminal.type(b"\x1b[5~")
            terminal.drain(0.05)
        figures["RSS, MB"] = terminal.memory("VmRSS")
        print(f"RSS, MB: {figures['RSS, MB']:.1f} at the end, {terminal.memory('VmHWM'):.1f} at most")
        terminal.close()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    missed = [f"{name}: {figures[name]:.1f}, goal {goal}" for name, goal in GOALS.items() if figures[name] > goal]
    print("goals (first screen median, keys p99): " + ("all met" if not missed else "missed " + "; ".join(missed)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
