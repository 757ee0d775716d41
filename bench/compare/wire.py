"""A minimal client for counting: it sends requests, and distinguishes replies from pushes by their headers."""

import socket
import struct

PING, SESSION_INIT, LOGIN, CHAT_HISTORY, MSG_SEND, NOTIF_MESSAGE = 1, 6, 19, 49, 64, 128


def pack(value):
    """Encodes the types that the requests of this module need in MessagePack."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return bytes([value]) if 0 <= value < 128 else struct.pack(">Bq", 0xD3, value)
    if isinstance(value, str):
        text = value.encode()
        return struct.pack(">BH", 0xDA, len(text)) + text
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(pack, value))
    pairs = b"".join(pack(key) + pack(item) for key, item in value.items())
    return struct.pack(">BH", 0xDE, len(value)) + pairs


class Client:
    """A connection that waits for each reply, and counts the bytes of both directions."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sequence = self.bytes = self.cid = 0
        self.pushes = []
        self.call(SESSION_INIT, {"deviceId": "compare"})

    def call(self, opcode, request):
        """Sends a request and waits for its reply; an error reply fails."""
        payload = pack(request)
        self.sequence = self.sequence % 0xFF + 1
        packet = struct.pack(">BBHHI", 10, 0, self.sequence, opcode, len(payload)) + payload
        self.socket.sendall(packet)
        self.bytes += len(packet)
        while True:
            command, sequence, answered, content = self.receive()
            if command == 0:
                self.pushes.append(answered)
            elif sequence == self.sequence:
                if command != 1:
                    raise RuntimeError(f"{opcode} was refused: {content[:200]!r}")
                return content

    def receive(self):
        """Returns the next packet without decoding the payload."""
        header = self.exactly(10)
        _, command, sequence, opcode, length = struct.unpack(">BBHHI", header)
        content = self.exactly(length & 0xFFFFFF)
        self.bytes += 10 + len(content)
        return command, sequence, opcode, content

    def exactly(self, count):
        parts = b""
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise RuntimeError("the server closed the connection")
            parts += part
        return parts

    def log_in(self, token):
        self.call(LOGIN, {"token": token, "interactive": True})

    def send(self, user, text):
        self.cid += 1
        message = {"cid": self.cid, "text": text}
        self.call(MSG_SEND, {"userId": user, "message": message})

    def page(self, chat, before):
        request = {"chatId": chat, "from": before, "backward": 50, "forward": 0, "getMessages": True}
        self.call(CHAT_HISTORY, request)

    def wait_for_push(self, opcode):
        while opcode not in self.pushes:
            command, _, answered, _ = self.receive()
            if command == 0:
                self.pushes.append(answered)
        self.pushes.remove(opcode)

    def close(self):
        self.socket.close()
