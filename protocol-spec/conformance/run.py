"""Runs the suite against a tambourd started for it, on a free loopback port with a data directory of its own.

python run.py PATH_OF_TAMBOURD [argument of tambour-conformance …]
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMITS = HERE / "limits.yaml"
CODE = "123456"
FIRST_PHONE = "+79990000001"
ACCOUNTS = 6


@dataclass
class Server:
    address: str
    pid: int
    data: Path
    #: What `--account` takes, one for each.
    accounts: list[str]

    @property
    def arguments(self) -> list[str]:
        """The command line of tambour-conformance for this server, without cases."""
        accounts = [part for each in self.accounts for part in ("--account", each)]
        return [self.address, "--limits", str(LIMITS), "--code-cmd", f"echo {CODE}", *accounts]


@contextlib.contextmanager
def tambourd(program: str, *options: str) -> Iterator[Server]:
    """A server with ACCOUNTS accounts, which ends with the context; a crash of it raises."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        data, log = Path(directory) / "data", Path(directory) / "log"
        created = subprocess.run(
            [program, "admin", "users", "create", "--data", data, "--count", str(ACCOUNTS)]
            + ["--first-phone", FIRST_PHONE],
            check=True, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        accounts = [
            f"{phone}:token={token}:code={CODE}"
            for phone, _, token in (line.split() for line in created.stdout.splitlines())
        ]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [program, "serve", "--listen", "127.0.0.1:0", "--data", data, "--limits", LIMITS]
                + ["--login-codes", f"fixed:{CODE}", "--log-level", "error", *options],
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        assert process.stdout is not None
        try:
            address = next(
                (line.split()[2] for line in process.stdout if line.startswith("listening tcp ")), None
            )
            if address is None:
                raise RuntimeError(f"{program} did not start:\n{log.read_text()}")
            yield Server(address, process.pid, data, accounts)
        finally:
            alive = process.poll() is None
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            finally:
                process.stdout.close()
        if not alive or process.returncode != 0:
            raise RuntimeError(f"{program} ended with {process.returncode}:\n{log.read_text()[-4000:]}")


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tambourd(sys.argv[1]) as server:
        return subprocess.run(
            [sys.executable, "-m", "tambour_conformance", *server.arguments, *sys.argv[2:]], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
