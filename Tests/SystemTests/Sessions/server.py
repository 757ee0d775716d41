"""A `tambourd` process with its own data directory, which is removed at the end."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class Server:
    """Where clients connect, and the file with a line `PHONE CODE` for each login code."""

    def __init__(self, program: str, place: Path) -> None:
        self.codes = place / "codes"
        self.address = "127.0.0.1:0"
        self._program = program
        self._options = {
            "--data": str(place / "data"),
            "--login-codes": f"file:{self.codes}",
            "--limits": str(place / "limits.yaml"),
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the program, on the same port as before if it ran before."""
        options = {"--listen": self.address} | self._options
        self._process = await asyncio.create_subprocess_exec(
            self._program,
            "serve",
            *[part for option in options.items() for part in option],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self.address = await _address(self._process)

    async def stop(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    async def restart(self, kill: bool = False) -> None:
        """Ends the server, as an operator would or by SIGKILL, and starts it on the same port and the same data."""
        if kill and self._process:
            self._process.kill()
            await self._process.wait()
        await self.stop()
        await self.start()


@asynccontextmanager
async def tambourd(program: str, limits: dict[str, int]) -> AsyncIterator[Server]:
    """Starts `tambourd serve` on a free port and stops it at the end."""
    with tempfile.TemporaryDirectory(prefix="tambour-session-") as name:
        place = Path(name)
        (place / "limits.yaml").write_text(json.dumps(limits))
        server = Server(program, place)
        try:
            await server.start()
            yield server
        finally:
            await server.stop()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    while line := (await process.stdout.readline()).decode():
        if line.startswith("listening tcp "):
            return line.split()[-1]
    raise RuntimeError("the server does not listen")
