"""stub.py smtp|sms [STATUS]: a mail server or an SMS gateway that prints what it gets.

Prints `listening PORT`, then each message or request as a line of JSON. STATUS is the answer of the gateway, or the reply
code of the mail server to a recipient.
"""

from __future__ import annotations

import http.server
import json
import socketserver
import sys

STATUS = int(sys.argv[2]) if len(sys.argv) > 2 else 0


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


class Mail(socketserver.StreamRequestHandler):
    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def handle(self) -> None:
        self.say("220 stub")
        recipient = ""
        while line := self.rfile.readline().decode().strip():
            verb = line[:4].upper()
            if verb == "RCPT":
                recipient = line.partition("<")[2].rstrip(">")
                self.say(f"{STATUS or 250} recipient")
            elif verb == "DATA":
                self.say("354 go on")
                lines = []
                while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(text)
                tell(to=recipient, text="\n".join(lines))
                self.say("250 taken")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 stub")


class Gateway(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        tell(
            path=self.path,
            authorization=self.headers["Authorization"],
            body=json.loads(self.rfile.read(length)),
        )
        self.send_response(STATUS or 202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


with socketserver.ThreadingTCPServer(
    ("127.0.0.1", 0), Mail if sys.argv[1] == "smtp" else Gateway
) as server:
    server.daemon_threads = True
    print(f"listening {server.server_address[1]}", flush=True)
    server.serve_forever()
