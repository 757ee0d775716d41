"""A server that a test scripts, one connection at a time."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tambour_conformance import bundle, wire
from tambour_conformance.connection import CaseLog, Connection, Target
from tambour_conformance.wire import Frame


class Script:
    """The server's end of one connection."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.data = bytearray()

    def read(self) -> Frame | None:
        """The next packet of the client; None at the end of the stream."""
        while (frame := wire.cut(self.data)) is None:
            try:
                chunk = self.socket.recv(65_536)
            except ConnectionError:
                return None
            if not chunk:
                return None
            self.data += chunk
        del self.data[: wire.HEADER_SIZE + len(frame.wire)]
        return frame

    def reply(self, to: Frame, value: Any = None, **header: Any) -> None:
        self.write(wire.packet(to.opcode, to.seq, value, command=wire.OK, **header))

    def refuse(self, to: Frame, code: str) -> None:
        value = {"error": code, "message": "No"}
        self.write(wire.packet(to.opcode, to.seq, value, command=wire.ERROR))

    def push(self, opcode: str, value: Any = None) -> None:
        self.write(wire.packet(bundle.load().opcode(opcode), 130, value))

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def serve(self) -> None:
        """Answers every request with an empty map, until the end of the stream."""
        while (frame := self.read()) is not None:
            self.reply(frame)


@contextlib.contextmanager
def serving(script: Callable[[Script], None]) -> Iterator[str]:
    """Runs `script` for each connection and then closes the connection; yields the server's address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with accepted:
                script(Script(accepted))

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # `shutdown` wakes the thread that waits in `accept`; `close` alone does not.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@contextlib.contextmanager
def connected(
    script: Callable[[Script], None], *, foreign: bool = False, tls: bool = False
) -> Iterator[Connection]:
    """A connection of the harness to a server that runs `script`, with a timeout of one second."""
    with serving(script) as address:
        host, port = address.split(":")
        target = Target(host, int(port), tls=tls, timeout=1.0, foreign=foreign)
        connection = Connection(target, CaseLog(), "test")
        try:
            yield connection
        finally:
            connection.close()
