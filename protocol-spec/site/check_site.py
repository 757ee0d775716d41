"""Checks a built site: every link has a target, and no page loads anything from elsewhere.

    python protocol-spec/site/check_site.py .build/site

MkDocs checks only links in Markdown. Most content of these pages is HTML made by `tambour-spec`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser fetch something as soon as it shows the page.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}

#: Relations with which a `link` only names another page, and the browser fetches nothing.
NAMED = {"canonical", "next", "prev", "alternate"}


class Page(HTMLParser):
    """Reads a page: its ids, its links, and the files that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.links: list[tuple[int, str]] = []
        self.loads: list[tuple[int, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids[values["id"]] += 1
        if tag == "a" and "href" in values:
            self.links.append((self.getpos()[0], values["href"]))
        address = values.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and set(values.get("rel", "").split()) & NAMED):
            self.loads.append((self.getpos()[0], address))


def problems(root: Path) -> tuple[list[str], str]:
    """The problems of the site, and a line with the numbers of its pages, links and anchors."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(root.rglob("*.html"))}
    found: list[str] = []
    links = 0
    for path, page in pages.items():
        where = path.relative_to(root)
        # The page 404.html is served at any address. So its links begin with a slash and are not checked.
        if where.name == "404.html":
            continue
        found += [f"{where}: the id {name!r} is there {n} times" for name, n in page.ids.items() if n > 1]
        for line, address in page.loads:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                found.append(f"{where}:{line}: loads {address}")
        for line, address in page.links + page.loads:
            parts = urlsplit(address)
            if parts.scheme or address.startswith("//"):
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.is_file():
                found.append(f"{where}:{line}: {address} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{where}:{line}: {address} has no such anchor")
    for path in sorted(root.rglob("*.css")):
        for address in re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')\s]+)", path.read_text("utf-8")):
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                found.append(f"{path.relative_to(root)}: loads {address}")
    ids = sum(len(page.ids) for page in pages.values())
    amount = f"{len(pages)} pages, {links} internal links, {ids} anchors"
    return found, f"{amount}: every link arrives, nothing comes from elsewhere"


def main() -> int:
    found, summary = problems(Path(sys.argv[1]).resolve())
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(summary)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
