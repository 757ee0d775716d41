#!/usr/bin/env python3
"""Sends a login code by an SMS gateway over HTTP, for `tambourd serve --login-codes exec:docs/examples/code-by-sms.py`.

Reads the phone and the code from standard input, one per line, and posts JSON to the gateway:

    POST {url}
    Authorization: Bearer {token}

    {"from": "Tambour", "to": "+79990000001", "text": "123456 is your login code"}

Gateways differ in the names of these fields: change `body` for yours. Settings are in the section [sms] of the file that
TAMBOUR_CODES names, by default /etc/tambour/codes.ini: see codes.ini beside this program.

Exits with 1 when another try may help: the server repeats it up to four times. Exits with 0 when it cannot help, such as
for a phone that the gateway refuses. Neither codes nor phones are printed.
"""

from __future__ import annotations

import configparser
import http.client
import json
import os
import signal
import ssl
import sys
from types import FrameType
from urllib.parse import urlsplit

#: Less than `codeProgramTimeoutMs`, so that this program says what is wrong before the server ends it.
SECONDS = 15
#: Hosts to which the token may go without TLS.
LOCAL = {"127.0.0.1", "localhost", "::1"}


class Useless(Exception):
    """Another try cannot help."""


def body(settings: configparser.SectionProxy, phone: str, code: str) -> bytes:
    text = settings.get("text", "{code} is your login code").replace("{code}", code)
    return json.dumps({"from": settings.get("from", "Tambour"), "to": phone, "text": text}).encode()


def send(settings: configparser.SectionProxy, phone: str, code: str) -> None:
    url = urlsplit(settings["url"])
    host = url.hostname or ""
    if url.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, url.port or 443, timeout=SECONDS, context=ssl.create_default_context()
        )
    elif url.scheme == "http" and host in LOCAL:
        connection = http.client.HTTPConnection(host, url.port or 80, timeout=SECONDS)
    else:
        raise Useless("url must begin with https://: the token and the codes are secrets")
    headers = {"Authorization": f"Bearer {settings['token']}", "Content-Type": "application/json"}
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection.request("POST", path, body(settings, phone, code), headers)
    reply = connection.getresponse()
    # The answer may repeat the phone, so only its status is told. A redirect counts as a refusal.
    if reply.status == 429 or reply.status >= 500:
        raise OSError(f"the gateway answered {reply.status}")
    if reply.status >= 300:
        raise Useless(f"the gateway refused: {reply.status}")


def too_late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("it took too long")


def main() -> int:
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS)
    recipient, code = sys.stdin.readline().strip(), sys.stdin.readline().strip()
    path = os.environ.get("TAMBOUR_CODES", "/etc/tambour/codes.ini")
    try:
        if "@" in recipient:
            raise Useless("this is an e-mail address: use code-by-smtp.py for these")
        parser = configparser.ConfigParser(interpolation=None)
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        send(parser["sms"], recipient, code)
    except Useless as error:
        print(f"code-by-sms: {error}", file=sys.stderr)
        return 0
    except (KeyError, ValueError, configparser.Error) as error:
        print(f"code-by-sms: {path}: {error!r} is missing or wrong", file=sys.stderr)
        return 1
    except (OSError, http.client.HTTPException) as error:
        print(f"code-by-sms: {type(error).__name__}: {error}; it is tried again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
