#!/usr/bin/env python3
"""Sends a login code by e-mail, for `tambourd serve --login-codes exec:docs/examples/code-by-smtp.py`.

Reads the recipient and the code from standard input, one per line. The recipient is a phone with its plus, which a file
maps to an address, or an e-mail address. Settings are in the section [smtp] of the file that TAMBOUR_CODES names, by
default /etc/tambour/codes.ini: see codes.ini beside this program.

Exits with 1 when another try may help, also after a correction of the settings: the server logs it and repeats it up to
four times. Exits with 0 when it cannot help, such as for a phone without an address. Neither codes nor phones are printed.
"""

from __future__ import annotations

import configparser
import email.message
import email.utils
import os
import signal
import smtplib
import ssl
import sys
from types import FrameType

#: Less than `codeProgramTimeoutMs`, so that this program says what is wrong before the server ends it.
SECONDS = 15

#: The port for each security mode, unless the settings name a port.
PORTS = {"starttls": 587, "tls": 465, "none": 25}


class Useless(Exception):
    """Another try cannot help."""


def address_of(recipient: str, phones: str) -> str:
    """Returns the e-mail address of a recipient. Lines of the file are a phone and an address; # starts a comment."""
    if "@" in recipient:
        return recipient
    with open(phones, encoding="utf-8") as lines:
        for line in lines:
            words = line.partition("#")[0].split()
            if len(words) == 2 and words[0] == recipient:
                return words[1]
    raise Useless(f"a phone is not in {phones}: no code was sent")


def letter(sender: str, address: str, code: str) -> email.message.EmailMessage:
    message = email.message.EmailMessage()
    message["From"] = sender
    message["To"] = address
    message["Subject"] = "Your login code"
    message["Date"] = email.utils.formatdate()
    message["Message-ID"] = email.utils.make_msgid(domain=sender.rpartition("@")[2].strip("> "))
    # Answering machines do not reply to it.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(f"{code}\n\nSomebody, probably you, is logging in. Tell nobody this code.\n")
    return message


def send(settings: configparser.SectionProxy, message: email.message.EmailMessage) -> None:
    host, security = settings["host"], settings.get("security", "starttls")
    if security not in PORTS:
        raise ValueError(f"security = {security}")
    if "user" in settings and security == "none":
        raise ValueError("user without TLS")
    port = settings.getint("port", PORTS[security])
    context = ssl.create_default_context()
    if security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=context)
    else:
        server = smtplib.SMTP(host, port, timeout=SECONDS)
    with server:
        if security == "starttls":
            server.starttls(context=context)
        if "user" in settings:
            server.login(settings["user"], settings["password"])
        server.send_message(message)


def too_late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("it took too long")


def main() -> int:
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS)
    recipient, code = sys.stdin.readline().strip(), sys.stdin.readline().strip()
    path = os.environ.get("TAMBOUR_CODES", "/etc/tambour/codes.ini")
    try:
        parser = configparser.ConfigParser(interpolation=None)
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        settings = parser["smtp"]
        send(settings, letter(settings["from"], address_of(recipient, settings["phones"]), code))
    except Useless as error:
        print(f"code-by-smtp: {error}", file=sys.stderr)
        return 0
    except (KeyError, ValueError, configparser.Error) as error:
        print(f"code-by-smtp: {path}: {error!r} is missing or wrong", file=sys.stderr)
        return 1
    except smtplib.SMTPRecipientsRefused:
        print("code-by-smtp: the mail server refuses the recipient's address", file=sys.stderr)
        return 0
    except (OSError, smtplib.SMTPException) as error:
        print(f"code-by-smtp: {type(error).__name__}: {error}; it is tried again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
