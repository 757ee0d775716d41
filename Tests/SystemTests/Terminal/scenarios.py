"""Plays scenarios: people sit in front of `tambour` in pseudo-terminals, with a `tambourd` of their own.

    scenarios.py --list
    scenarios.py FOLDER [SCENARIO]...      with the programs in FOLDER, such as .build/debug

TAMBOUR_SOAK=1 plays the long forms. Needs `pyte`; `make test` installs it into .build/venv. Prints a line for each fact.
Ends with 1 when one does not hold.
"""

from __future__ import annotations

import sys
from pathlib import Path

import acts  # noqa: F401
import first_minutes  # noqa: F401
import kept  # noqa: F401
import typed  # noqa: F401
from harness import SCENARIOS, play


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        print("\n".join(SCENARIOS))
        return 0
    if not arguments or (unknown := [name for name in arguments[1:] if name not in SCENARIOS]):
        print(f"unknown: {unknown}" if arguments else __doc__, file=sys.stderr)
        return 2
    programs = Path(arguments[0]).resolve()
    results = [play(name, programs) for name in arguments[1:] or SCENARIOS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
