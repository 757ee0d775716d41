"""Plays every cell of every library, each library against a server of its own, and writes the table.

    python run.py --tambourd PROGRAM --out FOLDER [LIBRARY ...]
    python run.py --table

The first command needs a Python that has the libraries. It writes `clients.md` and `clients.json`, and
ends with 1 when a mark is not true, when a public method of a library is played by no cell, or when the
table in docs/clients.md is different. The second command prints the table as the cells declare it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "StockClient"), str(HERE.parent / "Sessions")]

from cells import ROOT  # noqa: E402
from features import FEATURES, check_rows  # noqa: E402
from play import LIBRARIES, suite  # noqa: E402
from server import tambourd  # noqa: E402

PAGE = ROOT / "docs/clients.md"
#: The cells do a day's work of real users within a minute from one address, so raise the rate limits.
LIMITS = {
    "passwordHashLogRounds": 8,
    "presenceOfflineDelayMs": 50,
    "qrPollingIntervalMs": 50,
} | {
    name: 1_000_000
    for name in re.findall(
        r"name: (\w+(?:Burst|PerMinute|PerHour)),", (ROOT / "protocol-spec/limits.yaml").read_text()
    )
}


def table() -> str:
    """The table as the cells declare it."""
    suites = [suite(library) for library in LIBRARIES]
    check_rows({row for each in suites for row in each.cells})
    names = [f"{each.distribution} {each.version}" for each in suites]
    lines: list[str] = []
    for subject, rows in FEATURES.items():
        lines += [f"| {subject} | {' | '.join(names)} |", "| --- |" + " --- |" * len(suites)]
        for row in rows:
            marks = [each.cells.get(row) for each in suites]
            lines.append(f"| {row} | {' | '.join(_mark(cell) for cell in marks)} |")
        lines.append("")
    return "\n".join(lines)


def _mark(cell: Any) -> str:
    if cell is None:
        return "–"
    return f"{cell.mark} {cell.reason}".strip()


async def run(program: str, library: str, out: Path) -> bool:
    """Plays the cells of one library; the output goes to the terminal."""
    results = out / f"{library}.json"
    results.unlink(missing_ok=True)
    async with tambourd(program, LIMITS) as server:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            str(HERE / "play.py"),
            server.address,
            str(server.codes),
            library,
            "--out",
            str(results),
            stdout=asyncio.subprocess.PIPE,
        )
        assert child.stdout
        while line := (await child.stdout.readline()).decode():
            if line in ("@restart\n", "@kill\n"):
                await server.restart(kill=line == "@kill\n")
            else:
                print(f"{library}: {line}", end="", flush=True)
        return await child.wait() == 0


async def run_all(options: argparse.Namespace) -> bool:
    options.out.mkdir(parents=True, exist_ok=True)
    good = True
    for library in options.libraries or LIBRARIES:
        good = await run(options.tambourd, library, options.out) and good
    found = [
        json.loads(path.read_text())
        for library in LIBRARIES
        if (path := options.out / f"{library}.json").exists()
    ]
    (options.out / "clients.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    text = table()
    (options.out / "clients.md").write_text(text)
    print(f"written: {options.out}/clients.md and clients.json")
    if text not in PAGE.read_text(encoding="utf-8"):
        print(f"{PAGE.relative_to(ROOT)} has another table: put the one of {options.out}/clients.md there")
        good = False
    return good


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="print the table as the cells declare it")
    parser.add_argument("--tambourd", help="the server")
    parser.add_argument("--out", type=Path, help="where the table goes")
    parser.add_argument(
        "libraries", nargs="*", choices=[*LIBRARIES, []], help="all of them when none is named"
    )
    options = parser.parse_args(arguments)
    if options.table:
        print(table(), end="")
        return 0
    if not options.tambourd or not options.out:
        parser.error("--tambourd and --out are needed, or --table")
    return 0 if asyncio.run(run_all(options)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
