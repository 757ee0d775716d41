"""A connection to the server under test: the actions of a case on it, and its expectations.

Everything runs in the thread of the case. Every wait has a deadline. To prove silence, a case sends a PING
as a fence instead of sleeping.
"""

from __future__ import annotations

import reprlib
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from tambour_conformance import bundle, rules, wire
from tambour_conformance.verdict import Failed, skip
from tambour_conformance.wire import Frame

#: How long, in seconds, a foreign server may take to send pushes after a request or its answer.
FOREIGN_GRACE = 0.25
#: Pushes that may come at any time, because other users' connections cause them. They do not break a silence.
BACKGROUND = ("NOTIF_PRESENCE",)
#: How many bytes and packets a connection may get without a request: the longest packet and some more.
UNASKED_BYTES = wire.HEADER_SIZE + wire.MAX_LENGTH + (4 << 20)
UNASKED_PACKETS = 1 << 13
#: How many more bytes a connection may get for each request it sends. A page of messages is shorter.
ASKED_BYTES = 1 << 20
#: How many bytes of a flood the report shows.
FLOOD_SHOWN = 4096


@dataclass(frozen=True)
class Entry:
    """A line of a case's log."""

    ms: float  #: since the case began
    connection: str
    kind: str  #: sent, received or event
    data: bytes = b""
    text: str = ""


@dataclass
class CaseLog:
    """What a case observed, apart from its failure."""

    began: float = field(default_factory=time.monotonic)
    entries: list[Entry] = field(default_factory=list)
    unclean: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: How many times the case has checked that a connection closes correctly.
    closes: int = 0
    #: The monotonic time at which a request that may cause pushes was last sent or answered.
    caused: float = field(default_factory=time.monotonic)
    #: The requirements that server packets violated by their form, each with its first violation.
    broken_rules: dict[str, str] = field(default_factory=dict)
    #: Whether the case has received a packet of this protocol.
    heard: bool = False
    #: Whether a connection got more than its requests allow.
    flooded: bool = False

    def add(self, connection: str, kind: str, data: bytes = b"", text: str = "") -> None:
        self.entries.append(Entry((time.monotonic() - self.began) * 1000, connection, kind, data, text))

    def forget(self, connection: str) -> None:
        """Drops the bytes received on a connection, except the first ones for the report."""
        first = next((each for each in self.entries if _is_received(each, connection)), None)
        self.entries = [
            replace(each, data=each.data[:FLOOD_SHOWN]) if each is first else each
            for each in self.entries
            if each is first or not _is_received(each, connection)
        ]


def _is_received(entry: Entry, connection: str) -> bool:
    return entry.kind == "received" and entry.connection == connection


@dataclass(frozen=True)
class Target:
    """The server's address and how to connect to it."""

    host: str
    port: int
    tls: bool = False
    timeout: float = 5.0  #: how long an answer may take, seconds
    foreign: bool = False


# Expectations. Each searches a connection's unread frames and takes the first one that matches.


@dataclass(frozen=True)
class Reply:
    """The successful answer to the request numbered `seq`."""

    seq: int

    def take(self, connection: Connection) -> Frame | None:
        return connection.take(lambda frame: frame.command == wire.OK and frame.seq == self.seq)

    def __str__(self) -> str:
        return f"a reply to seq {self.seq}"


@dataclass(frozen=True)
class Error:
    """The refusal of the request numbered `seq`; of any request if `seq` is None."""

    code: str  #: a code, or the beginning of one that ends with a dot; "" is any
    seq: int | None = None

    def take(self, connection: Connection) -> Frame | None:
        return connection.take(self._means)

    def _means(self, frame: Frame) -> bool:
        if frame.command != wire.ERROR or self.seq not in (None, frame.seq):
            return False
        code = error_code(frame)
        return code == self.code or (self.code[-1:] in ("", ".") and code.startswith(self.code))

    def __str__(self) -> str:
        to = "" if self.seq is None else f" to seq {self.seq}"
        return f"error {self.code or 'of any code'}{to}"


@dataclass(frozen=True)
class Push:
    """A push of this opcode whose payload satisfies `where`."""

    opcode: str | int
    where: Callable[[dict[str, Any]], object] | None = None

    def take(self, connection: Connection) -> Frame | None:
        number = bundle.load().opcode(self.opcode)
        return connection.take(
            lambda frame: (
                frame.is_push
                and frame.opcode == number
                and (self.where is None or bool(self.where(frame.value)))
            )
        )

    def __str__(self) -> str:
        return f"a push {self.opcode}{'' if self.where is None else ' of the expected content'}"


@dataclass(frozen=True)
class Closed:
    """The end of the stream."""

    def take(self, connection: Connection) -> str | None:
        return connection.ended

    def __str__(self) -> str:
        return "the end of the connection"


Expectation = Reply | Error | Push | Closed


def error_code(frame: Frame) -> str:
    try:
        return str(frame.value.get("error", "")) if isinstance(frame.value, dict) else ""
    except wire.BadPacket:
        return ""


class _Short(reprlib.Repr):
    repr_Payload = reprlib.Repr.repr_dict  # noqa: N815


_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxdict, _SHORT.maxlist, _SHORT.maxstring, _SHORT.maxother = 5, 16, 4, 80, 80


def describe(frame: Frame) -> str:
    """A frame in one line."""
    name = bundle.load().name(frame.opcode)
    kind = {wire.REQUEST: "push", wire.OK: "reply", wire.ERROR: "error"}.get(
        frame.command, f"cmd {frame.command}"
    )
    try:
        value = _SHORT.repr(frame.value)
    except wire.BadPacket as error:
        value = str(error)
    return f"{kind} {name} seq {frame.seq} {value}"


class Connection:
    """A TCP connection. Received frames wait in `unread` until an expectation takes them."""

    #: The reply to SESSION_INIT, once a case has connected.
    greeting: Frame

    def __init__(
        self,
        target: Target,
        log: CaseLog,
        name: str = "",
        *,
        receive_buffer: int | None = None,
        source: str | None = None,
    ) -> None:
        """`source` is the local address to connect from."""
        self.target = target
        self.log = log
        self.name = name
        self.lz4_large = False
        self.unread: list[Frame] = []
        self.received: list[Frame] = []  #: every frame received, in order
        self.sent: list[int] = []  #: the numbers of all requests, in order
        self.ended: str | None = None  #: "end" or "reset" once the server has closed
        self._next_seq = 0
        self._input = bytearray()
        self._came = 0
        plain = socket.socket(_family(target))
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(target.timeout)
        try:
            if source is not None:
                plain.bind((source, 0))
            plain.connect((target.host, target.port))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = (
                ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
                if target.tls
                else plain
            )
        except OSError as error:
            plain.close()
            raise Failed(f"a connection to {target.host}:{target.port}", str(error)) from error
        self._socket.setblocking(False)
        self._event("connected")

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as this side knows."""
        return self.ended is None and self._socket.fileno() >= 0

    # Actions on the server.

    def next_seq(self) -> int:
        seq = self._next_seq
        self._next_seq = (seq + 1) & 0xFFFF
        return seq

    def packet(
        self, opcode: str | int, value: Any = None, *, seq: int | None = None, **header: Any
    ) -> tuple[int, bytes]:
        """The seq and the bytes of a request, which is not sent yet. For `header` see `wire.packet`."""
        seq = self.next_seq() if seq is None else seq
        self.sent.append(seq)
        return seq, wire.packet(bundle.load().opcode(opcode), seq, value, **header)

    def send(self, opcode: str | int, value: Any = None, *, seq: int | None = None, **header: Any) -> int:
        """Sends a request without waiting; returns its seq."""
        seq, data = self.packet(opcode, value, seq=seq, **header)
        self.raw(data)
        return seq

    def coalesce(self, *packets: bytes) -> None:
        """Sends packets in one write."""
        self.raw(b"".join(packets))

    def chop(self, data: bytes, size: int = 1, pause_ms: float = 0) -> None:
        """Sends bytes in segments of `size`, each in its own write, `pause_ms` apart."""
        for start in range(0, len(data), size):
            if start and pause_ms:
                self.stall(pause_ms)
            self.raw(data[start : start + size])

    def raw(self, data: bytes | str, *, reading: bool = True) -> bool:
        """Sends bytes, or hexadecimal digits, unchanged; returns false if the connection is closed.

        While the server does not accept bytes, this reads, so that the two sides do not wait for each other.
        With `reading=False` it stops instead, and the rest is not sent.
        """
        view = memoryview(bytes.fromhex(data) if isinstance(data, str) else data)
        deadline = time.monotonic() + self.target.timeout
        while view:
            try:
                count = self._socket.send(view[: 1 << 18])
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                if not reading:
                    self._event(f"{len(view)} bytes were not taken")
                    return True
                if time.monotonic() > deadline:
                    raise Failed(
                        "the server reads what it is sent",
                        f"{len(view)} bytes untaken after {self.target.timeout} s",
                    ) from None
                if self._ready(deadline, writing=True):
                    self._read()
                continue
            except (ConnectionError, ssl.SSLError) as error:
                self._event(f"could not send {len(view)} bytes: {error}")
                # `ended` stays unset, because bytes that the server sent before it closed can still be read.
                return False
            self.log.add(self.name, "sent", bytes(view[:count]))
            self.log.caused = time.monotonic()
            view = view[count:]
            deadline = time.monotonic() + self.target.timeout
        return True

    def stall(self, ms: float) -> None:
        """Receives for a while and sends nothing. Always receives bytes that have already arrived."""
        until = time.monotonic() + ms / 1000
        if not self.ended and self._poll(0):
            self._read()
        while not self.ended and self._ready(until):
            self._read()

    def deaf(self, ms: float) -> None:
        """Reads nothing for a while, or until the connection breaks."""
        self._event(f"reads nothing for {ms:g} ms")
        poll = select.poll()
        poll.register(self._socket, 0)
        poll.poll(ms)

    def half_close(self) -> None:
        """Shuts down the sending side; still reads."""
        if isinstance(self._socket, ssl.SSLSocket):
            skip("TLS has no end of one side that leaves the other open")
        self._event("half-closed")
        self._socket.shutdown(socket.SHUT_WR)

    def rst(self) -> None:
        """Resets the connection."""
        self._event("reset")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        """Closes without LOGOUT."""
        if self._socket.fileno() >= 0:
            self._event("closed")
            self._socket.close()

    # Expectations of the server.

    def reply(self, seq: int, within: float | None = None) -> Frame:
        """The successful answer to the request numbered `seq`."""
        return self.either(Reply(seq), within=within)

    def answer(self, seq: int, within: float | None = None) -> Frame:
        """The answer to the request numbered `seq`: a reply, or a refusal with any code."""
        return self.either(Reply(seq), Error("", seq), within=within)

    def error(self, code: str, seq: int | None = None, within: float | None = None) -> Frame:
        """The refusal of a request: `code` is a code, or a prefix that ends with a dot."""
        return self.either(Error(code, seq), within=within)

    def push(
        self,
        opcode: str | int,
        where: Callable[[dict[str, Any]], object] | None = None,
        within: float | None = None,
    ) -> Frame:
        """The next push of this opcode whose payload satisfies `where`."""
        return self.either(Push(opcode, where), within=within)

    def either(self, *expected: Expectation, within: float | None = None) -> Any:
        """Waits until one of several expectations is met; returns its frame, or how the stream ended."""
        seconds = self.target.timeout if within is None else within
        deadline = time.monotonic() + seconds
        wanted = " or ".join(map(str, expected))
        numbers = {each.seq for each in expected if isinstance(each, Reply | Error)}
        while True:
            for each in expected:
                if (found := each.take(self)) is not None:
                    return found
            wrong = next((frame for frame in self.unread if frame.is_answer and frame.seq in numbers), None)
            if wrong is not None:
                self.unread.remove(wrong)
                if self.target.foreign and error_code(wrong) == "proto.opcode":
                    skip(f"the server does not serve {bundle.load().name(wrong.opcode)}")
                raise Failed(wanted, describe(wrong))
            if self.ended:
                raise Failed(wanted, f"the server closed ({self.ended}){self._rest()}")
            if not self._ready(deadline):
                raise Failed(wanted, f"nothing of the kind within {seconds:g} s{self._rest()}")
            self._read()

    def call(self, opcode: str | int, value: Any = None, **header: Any) -> Frame:
        """Sends a request and waits for its successful reply."""
        return self.reply(self.send(opcode, value, **header))

    def refused(self, code: str, opcode: str | int, value: Any = None, **header: Any) -> Frame:
        """Sends a request and waits for its refusal."""
        return self.error(code, self.send(opcode, value, **header))

    def alive(self) -> None:
        """Checks that the connection still works: a PING is answered."""
        self.call("PING")

    def closed(self, within: float | None = None) -> None:
        """Expects the end of the stream, between two packets and without a reset.

        If the stream ends in another way, or does not end, the case continues and gets UNCLEAN at best.
        """
        self.log.closes += 1
        try:
            how = self.ends(within)
        except Failed as failure:
            self.log.unclean.append(f"{self.name}: {failure.actual}")
            return
        if how == "reset":
            self.log.unclean.append(f"{self.name}: reset instead of closed")
        elif self.rest:
            self.log.unclean.append(f"{self.name}: {self.rest} bytes of a packet before the end")

    def ends(self, within: float | None = None) -> str:
        """Expects the end of the stream, by a close or a reset; a stream that does not end fails the case."""
        seconds = self.target.timeout if within is None else within
        deadline = time.monotonic() + seconds
        while not self.ended:
            if not self._ready(deadline):
                raise Failed(str(Closed()), f"still open after {seconds:g} s{self._rest()}")
            self._read()
        return self.ended

    def hard_error(self, code: str, seq: int | None = None) -> Frame:
        """Expects a refusal, and then the end of the connection."""
        frame = self.error(code, seq)
        self.closed()
        return frame

    def fence(self, *, grace: bool = True) -> None:
        """Reads into `unread` all packets that the server has for this connection at this time.

        At a foreign server, pushes may come after the answer to a PING. So this waits until FOREIGN_GRACE has
        passed after the last request or answer that may cause pushes. A second fence after the same request
        does not wait again. A caller that continues to read, or calls a fence later that waits, passes
        `grace=False`, and this does not wait.
        """
        caused = self.log.caused
        self.call("PING")
        # A PING causes no pushes.
        self.log.caused = caused
        if grace and self.target.foreign:
            self.stall((caused + FOREIGN_GRACE - time.monotonic()) * 1000)
            note = "a foreign server: what did not come was waited for, not proved absent"
            if note not in self.log.notes:
                self.log.notes.append(note)

    def silence_by_fence(self, *, of: Sequence[str | int] | None = None, grace: bool = True) -> None:
        """Checks, after a fence, that the case has taken all frames of the connection.

        With `of`, it checks only pushes of these opcodes. For `grace` see `fence`.
        """
        self.fence(grace=grace)
        numbers = None if of is None else {bundle.load().opcode(each) for each in of}
        background = {bundle.load().opcode(each) for each in BACKGROUND}
        loud = [
            frame
            for frame in self.unread
            if (
                frame.is_answer or frame.opcode not in background
                if numbers is None
                else frame.is_push and frame.opcode in numbers
            )
        ]
        if loud:
            raise Failed("silence", "; ".join(map(describe, loud[:3])))

    def pushes(self, *opcodes: str | int) -> list[Frame]:
        """Takes all received pushes of these opcodes; call a fence first."""
        numbers = {bundle.load().opcode(each) for each in opcodes}
        found = [frame for frame in self.unread if frame.is_push and frame.opcode in numbers]
        self.unread = [frame for frame in self.unread if frame not in found]
        return found

    def take(self, means: Callable[[Frame], bool]) -> Frame | None:
        """Removes the first unread frame for which `means` is true, and returns it."""
        for index, frame in enumerate(self.unread):
            if means(frame):
                return self.unread.pop(index)
        return None

    @property
    def rest(self) -> int:
        """The number of bytes received of a packet that is still incomplete."""
        return len(self._input)

    def first_bytes(self, count: int) -> bytes:
        """The first bytes received, up to `count`; fewer if the stream ends or no more come in time."""
        deadline = time.monotonic() + self.target.timeout
        while True:
            data = b"".join(each.data for each in self.log.entries if each.kind == "received")
            if len(data) >= count or self.ended or not self._ready(deadline):
                return data[:count]
            self._read()

    # Reading.

    def _ready(self, deadline: float, *, writing: bool = False) -> bool:
        """Waits until the socket is readable or writable; returns false at the deadline."""
        left = deadline - time.monotonic()
        return left > 0 and self._poll(left * 1000, writing=writing)

    def _poll(self, ms: float, *, writing: bool = False) -> bool:
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        events = select.POLLIN | (select.POLLOUT if writing else 0)
        poll = select.poll()
        poll.register(self._socket, events)
        return bool(poll.poll(ms))

    def _read(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except (ConnectionError, ssl.SSLError) as error:
            self.ended = "reset"
            self._event(f"the server reset the connection: {error}")
            return
        if not data:
            self.ended = "end"
            self._event("the server closed the connection")
            return
        self.log.add(self.name, "received", data)
        self._came += len(data)
        if self._came > UNASKED_BYTES + len(self.sent) * ASKED_BYTES:
            self._drown(f"{self._came} bytes")
        self._input += data
        begin = 0
        while (frame := wire.cut(self._input, begin)) is not None:
            begin += wire.HEADER_SIZE + len(frame.wire)
            self.unread.append(frame)
            self.received.append(frame)
            if len(self.received) > UNASKED_PACKETS + len(self.sent):
                self._drown(f"{len(self.received)} packets")
            self.log.heard = self.log.heard or (
                frame.version in bundle.load().versions_read and frame.command <= wire.ERROR
            )
            if frame.is_answer:
                self.log.caused = time.monotonic()
            for rule, how in rules.broken_rules(frame, bundle.load(), lz4_large=self.lz4_large):
                self.log.broken_rules.setdefault(rule, f"{how} in {describe(frame)}")
        del self._input[:begin]

    def _drown(self, much: str) -> NoReturn:
        """Fails the case because the server sent too much, and drops the received bytes."""
        self.ended = "flood"
        self.log.flooded = True
        self.log.forget(self.name)
        self._input.clear()
        self.unread.clear()
        self.received.clear()
        raise Failed(f"what was asked for by {len(self.sent)} requests", f"more bytes than asked for: {much}")

    def _rest(self) -> str:
        """Describes the unread frames, for the text of a failure."""
        parts = [describe(frame) for frame in self.unread[:3]]
        if len(self.unread) > 3:
            parts.append(f"{len(self.unread) - 3} more")
        if self._input:
            parts.append(f"{len(self._input)} bytes of a packet: {self._input[:32].hex(' ')}")
        return f"; unread: {'; '.join(parts)}" if parts else ""

    def _event(self, text: str) -> None:
        self.log.add(self.name, "event", text=text)


def _family(target: Target) -> socket.AddressFamily:
    try:
        return socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise Failed(f"a connection to {target.host}:{target.port}", str(error)) from error


def all_answered(connection: Connection, seqs: Iterable[int]) -> list[Frame]:
    """Waits for one successful reply to each seq, and checks that nothing else comes."""
    replies = [connection.reply(seq) for seq in seqs]
    connection.silence_by_fence()
    return replies
