"""The settings of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tambour_conformance.connection import Target
from tambour_conformance.people import Account


@dataclass
class Settings:
    target: Target
    accounts: list[Account] = field(default_factory=list)
    code_command: str | None = None
    #: Case ids, requirement ids and groups. If empty, all cases are selected.
    selection: list[str] = field(default_factory=list)
    strict: bool = False
    list_only: bool = False
    seed: int = 0
    known_failing: dict[str, str] = field(default_factory=dict)  #: reasons by case id
    #: Limits of the server that differ from those of the specification.
    limits: dict[str, int] = field(default_factory=dict)
    #: A command that stops the server cleanly and starts it again with the same address and data.
    restart_command: str | None = None
    before_restore: int | None = None
    #: A command that reads feature rules from standard input and makes the server apply them.
    features_command: str | None = None
    #: Whether the server makes link previews with the suite's program.
    link_previews: bool = False
    #: Another server of the same kind, on which only invited people can register.
    invite_only: Target | None = None
    #: A command that invites a phone to the `invite_only` server, or prints an invitation code.
    invite_command: str | None = None
    out: Path | None = None
    #: Whether the report shows every byte of every case, not only of short or failed cases.
    all_bytes: bool = False


def read_known_failing(path: Path) -> dict[str, str]:
    """Reads a list with one case id per line, followed by `#` and the reason why it is known to fail."""
    known = {}
    for line in path.read_text("utf-8").splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            known[name.strip()] = reason.strip()
    return known


def read_limits(path: Path) -> dict[str, int]:
    """Reads a file for `tambourd serve --limits`, which has one `name: value` per line."""
    limits = {}
    for line in path.read_text("utf-8").splitlines():
        name, _, value = line.partition("#")[0].partition(":")
        if name.strip():
            limits[name.strip()] = int(value)
    return limits
