#!/usr/bin/env python3
"""The link preview program that the LNK cases need: `tambourd serve --link-previews exec:PATH`.

It makes no network requests: its output depends only on the path of the link.
"""

from __future__ import annotations

import json
import signal
import sys
from urllib.parse import urlsplit

#: One character of one UTF-16 unit, then characters of two units: a cut at an even limit splits a character.
LONG = "x" + "\N{HEDGEHOG}" * 1000


def main() -> int:
    link = sys.stdin.readline().rstrip("\n")
    match urlsplit(link).path:
        case "/page":
            image = {"url": "https://preview.test/picture.jpg", "width": 600, "height": 400}
            page = {"title": "A page", "description": "What it says.", "image": image}
        case "/long":
            page = {"title": LONG, "description": LONG}
        case "/nonsense":
            print("<html>")
            return 0
        case "/wrong":
            page = {"title": 1}
        case "/fails":
            print(json.dumps({"title": "A page"}))
            return 1
        case "/hangs":
            while True:
                signal.pause()
        case _:
            page = {}
    print(json.dumps(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
