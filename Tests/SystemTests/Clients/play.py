"""Plays the cells of one library against a running server.

    python play.py HOST:PORT CODES_FILE LIBRARY [--short] [--out FILE] [CELL ...]

HOST:PORT is a server without TLS started with `--login-codes file:CODES_FILE`. Prints a line for each cell.
The exit status is 1 if the mark of a cell is not true. A line `@restart` or `@kill` asks the program that
started this one to restart the server on the same port and the same data, gracefully or by SIGKILL. `run.py`
starts the server, handles these lines, and uses `--out`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "StockClient")]

from cells import Coverage, Room, Suite  # noqa: E402
from harness import DEADLINE, Failure, LoginCodes, World  # noqa: E402

LIBRARIES = ("maxapi-python", "maxion", "pyromax")


def suite(library: str) -> Suite:
    return import_module(f"with_{library.partition('-')[0]}").SUITE


async def play(
    library: str, address: str, codes: LoginCodes, names: list[str], short: bool
) -> tuple[dict[str, object], bool]:
    """Plays cells; returns their results, and whether every mark is true."""
    chosen = suite(library)
    cells = [
        cell
        for cell in chosen.cells.values()
        if (not names or cell.row in names) and (cell.short or not short)
    ]
    cells.sort(key=lambda cell: cell.last)
    results: dict[str, object] = {}
    good = True
    with tempfile.TemporaryDirectory(prefix="clients-") as directory:
        world = World(address, codes, directory, 500 + LIBRARIES.index(library))
        room = Room(chosen, world)
        coverage = Coverage(chosen, room)
        try:
            await room.enter()
            for cell in cells:
                began = time.monotonic()
                problem = ""
                try:
                    async with asyncio.timeout(2 * DEADLINE):
                        await room.play(cell)
                except Failure as failure:
                    problem = f"{failure}\n{traceback.format_exc(limit=-3)}"
                except Exception:
                    problem = traceback.format_exc()
                took = time.monotonic() - began
                print(f"  {'ok' if not problem else '!!'}  {cell.mark} {cell.row} ({took:.1f} s)", flush=True)
                if problem:
                    print(problem, flush=True)
                    good = False
                results[cell.row] = {
                    "mark": cell.mark,
                    "reason": cell.reason,
                    "seconds": round(took, 2),
                    "problem": problem,
                }
        finally:
            await room.leave()
            await world.close()
    if not names and not short:
        for what, methods in (
            ("no cell calls", coverage.missing()),
            ("named as outside for nothing", coverage.superfluous()),
        ):
            if methods:
                print(f"  !!  {what}: {', '.join(methods)}", flush=True)
                good = False
    called: dict[str, list[str]] = {}
    for method, rows in sorted(coverage.called.items()):
        for row in rows:
            called.setdefault(row, []).append(method)
    for row, result in results.items():
        result["methods"] = called.get(row, [])  # type: ignore[index]
    return {"library": library, "version": chosen.version, "outside": chosen.outside, "cells": results}, good


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address")
    parser.add_argument("codes")
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--short", action="store_true", help="only what `make test` plays")
    parser.add_argument("--out", type=Path, help="where the results go, as JSON")
    parser.add_argument("cells", nargs="*", help="rows of the table; all of them when none is named")
    options = parser.parse_args(arguments)
    # Deliberate refusals would fill the terminal with log lines.
    logging.disable(logging.CRITICAL)
    results, good = asyncio.run(
        play(options.library, options.address, LoginCodes(options.codes), options.cells, options.short)
    )
    if options.out:
        options.out.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
