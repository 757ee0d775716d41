"""A server of one's own: a process with a data directory that goes when it is no longer needed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """Where clients connect, and the file with a line `PHONE CODE` for each login code."""

    address: str
    codes: Path


@asynccontextmanager
async def tambourd(program: str, limits: dict[str, int]) -> AsyncIterator[Server]:
    """Starts `tambourd serve` on a free port and stops it at the end."""
    with tempfile.TemporaryDirectory(prefix="tambour-session-") as name:
        place = Path(name)
        (place / "limits.yaml").write_text(json.dumps(limits))
        options = {
            "--listen": "127.0.0.1:0",
            "--data": str(place / "data"),
            "--login-codes": f"file:{place / 'codes'}",
            "--limits": str(place / "limits.yaml"),
        }
        process = await asyncio.create_subprocess_exec(
            program,
            "serve",
            *[part for option in options.items() for part in option],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield Server(await _address(process), place / "codes")
        finally:
            process.terminate()
            await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    while line := (await process.stdout.readline()).decode():
        if line.startswith("listening tcp "):
            return line.split()[-1]
    raise RuntimeError("the server does not listen")
