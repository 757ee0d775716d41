"""A capture as an SVG picture, for documents.

    picture.py CAPTURE.ansi OUT.svg [--size 80x24]
"""

from __future__ import annotations

import argparse
import html
import sys
from pathlib import Path

import pyte

#: The width and height of a cell in pixels, and the margin around the screen.
WIDTH, HEIGHT, MARGIN = 9, 19, 12
#: The colour values of a terminal's colour names.
NAMED = {
    "black": "#1c1c1c", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef", "magenta": "#c678dd",
    "cyan": "#56b6c2", "white": "#d0d0d0", "brightblack": "#7f7f7f", "brightred": "#e06c75", "brightgreen": "#98c379",
    "brightbrown": "#e5c07b", "brightblue": "#61afef", "brightmagenta": "#c678dd", "brightcyan": "#56b6c2", "brightwhite": "#ffffff",
}
FOREGROUND, BACKGROUND = "#d0d0d0", "#16181d"


def colour(name: str, default: str) -> str:
    return default if name == "default" else NAMED.get(name, f"#{name}")


def picture(text: str, columns: int, lines: int) -> str:
    screen = pyte.Screen(columns, lines)
    pyte.Stream(screen).feed(text.rstrip("\n").replace("\n", "\r\n"))
    size = f'width="{columns * WIDTH + 2 * MARGIN}" height="{lines * HEIGHT + 2 * MARGIN}"'
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="15">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    for y in range(lines):
        for x in range(columns):
            cell = screen.buffer[y][x]
            front, back = colour(cell.fg, FOREGROUND), colour(cell.bg, BACKGROUND)
            if cell.reverse:
                front, back = back, front
            left, top = MARGIN + x * WIDTH, MARGIN + y * HEIGHT
            if back != BACKGROUND:
                drawn.append(f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="{back}"/>')
            if cell.data.strip():
                weight = ' font-weight="bold"' if cell.bold else ""
                drawn.append(f'<text x="{left}" y="{top + HEIGHT - 5}" fill="{front}"{weight}>{html.escape(cell.data)}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="80x24")
    options = parser.parse_args()
    columns, lines = map(int, options.size.split("x"))
    options.out.write_text(picture(options.capture.read_text(), columns, lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
