#!/usr/bin/env python3
"""Fetches a web page for `tambourd serve --link-previews exec:docs/examples/preview.py`.

Reads a link from standard input and prints the page's own description as JSON. It connects only to public addresses, and
only to those that it has checked: each redirect is resolved and checked again. Exits with 0 and `{}` when there is
nothing to show, whatever the reason.
"""

from __future__ import annotations

import contextlib
import html.parser
import http.client
import ipaddress
import json
import signal
import socket
import ssl
import sys
from types import FrameType
from urllib.parse import quote, urljoin, urlsplit

SECONDS = 8
REDIRECTS = 4
BYTES = 256 * 1024
PORTS = {"http": 80, "https": 443}
#: IPv6 ranges whose last 32 bits are an IPv4 address. The second one is for private networks.
NAT64, LOCAL_NAT64 = ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48")
HEADERS = {
    "User-Agent": "link-preview/1.0",
    "Accept": "text/html",
    "Accept-Encoding": "identity",
    "Connection": "close",
}


class Refused(Exception):
    """The link must not be fetched."""


def public_addresses(host: str, port: int) -> list[str]:
    """Returns the addresses of a host; refuses the host when one of them is not public."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for text in addresses:
        address = ipaddress.ip_address(text)
        if isinstance(address, ipaddress.IPv6Address):
            if address in LOCAL_NAT64:
                raise Refused(f"{host} is not public")
            # An address that embeds an IPv4 address is as private as the embedded address.
            inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
            if address in NAT64:
                inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
            address = inner or address
        if not address.is_global or address.is_multicast:
            raise Refused(f"{host} is not public")
    return addresses


def connect(scheme: str, host: str) -> http.client.HTTPConnection:
    """Connects to a checked address of the host: the name is not looked up again."""
    failure: OSError = OSError("no address")
    for address in public_addresses(host, PORTS[scheme]):
        try:
            plain = socket.create_connection((address, PORTS[scheme]), timeout=SECONDS)
        except OSError as error:
            failure = error
            continue
        connection = http.client.HTTPConnection(f"[{host}]" if ":" in host else host)
        connection.sock = (
            ssl.create_default_context().wrap_socket(plain, server_hostname=host)
            if scheme == "https"
            else plain
        )
        return connection
    raise failure


def fetch(link: str) -> tuple[str, str]:
    """Returns the address and the text of the page that a link leads to."""
    for _ in range(REDIRECTS + 1):
        parts = urlsplit(link)
        if parts.scheme not in PORTS or not parts.hostname or parts.username is not None:
            raise Refused("not an address of a page")
        if parts.port not in (None, PORTS[parts.scheme]):
            raise Refused("unusual port")
        host = parts.hostname if ":" in parts.hostname else parts.hostname.encode("idna").decode("ascii")
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?") if parts.query else ""
        with contextlib.closing(connect(parts.scheme, host)) as connection:
            connection.request("GET", path + query, headers=HEADERS)
            reply = connection.getresponse()
            if reply.status in (301, 302, 303, 307, 308):
                link = urljoin(link, reply.headers.get("Location", ""))
                continue
            if reply.status != 200 or reply.headers.get_content_type() != "text/html":
                raise Refused("not a page")
            body = bytearray()
            while len(body) < BYTES and (part := reply.read1(16384)):
                body += part
            encoding = reply.headers.get_content_charset() or "utf-8"
            with contextlib.suppress(LookupError):
                return link, body.decode(encoding, "replace")
            return link, body.decode("utf-8", "replace")
    raise Refused("too many redirects")


class Head(html.parser.HTMLParser):
    """A page's own description: its title, and the usual `meta` elements."""

    def __init__(self) -> None:
        super().__init__()
        self.meta: dict[str, str] = {}
        self.title: str | None = None
        self.in_title = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        name = known.get("property") or known.get("name")
        if tag == "meta" and name and known.get("content"):
            self.meta.setdefault(name.lower(), known["content"] or "")
        self.in_title = tag == "title" and self.title is None

    def handle_endtag(self, tag: str) -> None:
        self.in_title = False

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title = (self.title or "") + data


def preview(link: str) -> dict[str, str]:
    url, page = fetch(link)
    head = Head()
    head.feed(page)
    meta = head.meta
    found = {
        "title": meta.get("og:title") or head.title,
        "description": meta.get("og:description") or meta.get("description"),
        # The app of every reader loads the image from the image's server, which sees the reader's IP address. Remove the
        # next line to avoid that.
        "image": urljoin(url, meta["og:image"]) if "og:image" in meta else None,
    }
    return {key: value.strip()[:1000] for key, value in found.items() if value and value.strip()}


def too_late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("it took too long")


def main() -> int:
    # One deadline for everything: a server that sends a byte now and then would avoid every other time-out.
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS)
    link = sys.stdin.readline().strip()
    try:
        found = preview(link)
    except (OSError, ValueError, Refused, http.client.HTTPException):
        # Nothing is logged, because links are part of what people write.
        found = {}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
