#!/usr/bin/env python3
"""The program for previews of links that the LNK cases count on: `tambourd serve --link-previews exec:PATH`.

It asks nobody: what it says depends on the path of the link alone.
"""

from __future__ import annotations

import json
import signal
import sys
from urllib.parse import urlsplit

#: Of one UTF-16 unit and of two, so that no limit is met exactly by cutting between characters.
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
