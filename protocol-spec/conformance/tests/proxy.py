"""A proxy between the suite and a correct server that injects one fault."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from tambour_conformance import wire
from tambour_conformance.wire import Frame


class Fault:
    """Changes the packets of one connection. This base class changes nothing."""

    #: The case that the fault must fail, or a requirement with such a case.
    notices = ""

    def request(self, frame: Frame) -> list[Frame]:
        """The frames that the proxy sends to the server in place of a client's request."""
        return [frame]

    def answer(self, frame: Frame) -> list[Frame]:
        """The frames that the proxy sends to the client in place of a reply, an error or a push."""
        return [frame]

    def cut(self, data: bytearray) -> Iterator[Frame]:
        """Removes the complete packets from the bytes of the client, and yields them."""
        while (frame := wire.cut(data)) is not None:
            del data[: wire.HEADER_SIZE + len(frame.wire)]
            yield frame

    def farewell(self) -> bytes:
        """The bytes that the proxy sends to the client after the server has closed."""
        return b""

    def closes(self, frame: Frame) -> bool:
        """Whether the proxy closes the connection to the client after this answer."""
        return False


@contextlib.contextmanager
def proxy(server: str, fault: type[Fault]) -> Iterator[str]:
    """Listens on a free loopback port during the context; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    threading.Thread(target=_accept, args=(listener, server, fault), daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # `shutdown` wakes the thread that waits in `accept`; `close` alone does not.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, server: str, fault: type[Fault]) -> None:
    host, port = server.split(":")
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        upstream = socket.create_connection((host, int(port)))
        for each in (client, upstream):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one = fault()
        threading.Thread(target=_requests, args=(client, upstream, one), daemon=True).start()
        threading.Thread(target=_answers, args=(upstream, client, one), daemon=True).start()


def _requests(client: socket.socket, upstream: socket.socket, fault: Fault) -> None:
    data = bytearray()
    with contextlib.suppress(OSError):
        while chunk := client.recv(65_536):
            data += chunk
            for frame in fault.cut(data):
                for each in fault.request(frame):
                    upstream.sendall(each.packet)
        upstream.shutdown(socket.SHUT_WR)


def _answers(upstream: socket.socket, client: socket.socket, fault: Fault) -> None:
    data = bytearray()
    with contextlib.suppress(OSError):
        while chunk := upstream.recv(65_536):
            data += chunk
            while (frame := wire.cut(data)) is not None:
                del data[: wire.HEADER_SIZE + len(frame.wire)]
                for each in fault.answer(frame):
                    client.sendall(each.packet)
                if fault.closes(frame):
                    client.shutdown(socket.SHUT_RDWR)
        client.sendall(fault.farewell())
        client.shutdown(socket.SHUT_WR)
