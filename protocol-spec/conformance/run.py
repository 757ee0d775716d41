"""Starts a tambourd on a free loopback port with its own data directory, and runs the suite against it.

python run.py PATH_OF_TAMBOURD [argument of tambour-conformance …]
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMITS = HERE / "limits.yaml"
PREVIEWS = HERE / "previews.py"
FIRST_PHONE = "+79990000001"
ACCOUNTS = 6


class Tambourd:
    """A server with ACCOUNTS accounts. Writing a line to the pipe `asked` restarts it."""

    def __init__(self, program: str, directory: Path) -> None:
        self.program = program
        self.data, self.log = directory / "data", directory / "log"
        #: The file of login codes: each line is a phone and its code.
        self.codes = directory / "codes"
        self.codes.touch()
        #: The file of feature rules.
        self.features = directory / "features"
        self.features.write_text("{}")
        #: Two pipes: a line written to `asked` requests a restart, and a line from `done` reports it.
        self.asked, self.done = directory / "restart", directory / "restarted"
        # The store is a restored backup, for the cases with marks from before a restore.
        first, backup = directory / "first", directory / "backup"
        users = ["--count", str(ACCOUNTS), "--first-phone", FIRST_PHONE, "--data", first]
        created = self._run("admin", "users", "create", *users)
        self._run("backup", backup, "--data", first)
        #: A time after the backup and before its restore, in Unix milliseconds.
        self.before_restore = time.time_ns() // 1_000_000
        self._run("restore", backup, "--data", self.data)
        lines = [line.split() for line in created.splitlines()]
        self.accounts = [f"{phone}:token={token}" for phone, _, token in lines]
        self.address = "127.0.0.1:0"
        #: A second server, which takes only invited people.
        self.invite_only, self.invite_data = "127.0.0.1:0", directory / "invite-only"
        self.failure: RuntimeError | None = None
        self.process = self._start()
        try:
            self.invite_process, self.invite_only = self._serve(
                self.invite_only, self.invite_data, "--registration", "invite", "--user-invitations", "2"
            )
        except RuntimeError:
            self.stop()
            raise

    @property
    def arguments(self) -> list[str]:
        """The command line of tambour-conformance for this server, without cases."""
        accounts = [part for each in self.accounts for part in ("--account", each)]
        restart = f"echo > {self.asked} && read line < {self.done}"
        code = f"""awk '$1 == "{{phone}}" {{code = $2}} END {{print code}}' {shlex.quote(str(self.codes))}"""
        invite = f"phone={{phone}}; {self.program} admin invites create --data {self.invite_data}"
        invite += " ${phone:+--phone=$phone} | cut -d ' ' -f 2"
        reload = f"cat > {self.features} && {self.program} admin reload --data {self.data}"
        return [self.address, "--limits", str(LIMITS), "--code-cmd", code, *accounts] + [
            "--restart-cmd", restart, "--features-cmd", reload, "--before-restore", str(self.before_restore),
            "--link-previews", "--invite-only", self.invite_only, "--invite-cmd", invite,
        ]  # fmt: skip

    def _run(self, *command: str | Path) -> str:
        arguments = [self.program, *command]
        return subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=60).stdout

    def _start(self) -> subprocess.Popen[str]:
        process, self.address = self._serve(
            self.address, self.data, "--features", self.features, "--link-previews", f"exec:{PREVIEWS}",
            "--lanes", "4",
        )  # fmt: skip
        return process

    def _serve(self, address: str, data: Path, *options: str | Path) -> tuple[subprocess.Popen[str], str]:
        with self.log.open("ab") as errors:
            process = subprocess.Popen(
                [self.program, "serve", "--listen", address, "--data", data, "--limits", LIMITS]
                + ["--login-codes", f"file:{self.codes}", "--log-level", "error", *options],
                stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("listening tcp "):
                return process, line.split()[2]
        raise RuntimeError(f"{self.program} did not start:\n{self.log.read_text()}")

    def stop(self) -> None:
        """Stops the server under test; raises if it had died before or does not exit cleanly."""
        self._end(self.process)

    def stop_invite_only(self) -> None:
        self._end(self.invite_process)

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Sends SIGTERM; raises if the server had died before or does not exit cleanly."""
        died = process.poll() is not None
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if died or process.returncode != 0:
            raise RuntimeError(
                f"{self.program} ended with {process.returncode}:\n{self.log.read_text()[-4000:]}"
            )

    def restart_when_asked(self) -> None:
        """Restarts the server for each line, until the pipes are deleted."""
        with contextlib.suppress(FileNotFoundError):
            while self.asked.open().readline() == "\n":
                try:
                    self.stop()
                    self.process = self._start()
                except RuntimeError as error:
                    # Raise the error after the run, because the suite waits for the end of the restart.
                    self.failure = error
                self.done.write_text("done\n")


@contextlib.contextmanager
def tambourd(program: str) -> Iterator[Tambourd]:
    """A running server, which is stopped at the end of the context."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        server = Tambourd(program, Path(directory))
        os.mkfifo(server.asked)
        os.mkfifo(server.done)
        restarter = threading.Thread(target=server.restart_when_asked)
        restarter.start()
        try:
            yield server
        finally:
            server.asked.write_text("end\n")
            restarter.join()
            try:
                server.stop()
            finally:
                server.stop_invite_only()
            if server.failure is not None:
                raise server.failure


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    # SIGTERM to this script also stops the server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tambourd(sys.argv[1]) as server:
        return subprocess.run(
            [sys.executable, "-m", "tambour_conformance", *server.arguments, *sys.argv[2:]], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
