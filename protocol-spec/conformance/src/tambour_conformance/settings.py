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
    #: Case ids, requirement ids and groups; all cases when empty.
    selection: list[str] = field(default_factory=list)
    strict: bool = False
    list_only: bool = False
    seed: int = 0
    known_failing: dict[str, str] = field(default_factory=dict)  #: reasons by case id
    #: Limits of the server that differ from those of the specification.
    limits: dict[str, int] = field(default_factory=dict)
    #: Stops the server cleanly and starts it again with the same address and data.
    restart_command: str | None = None
    before_restore: int | None = None
    #: Applies the feature rules that it reads from standard input.
    features_command: str | None = None
    #: The server makes link previews with the suite's program.
    link_previews: bool = False
    #: Another server of the same kind, which takes only invited people.
    invite_only: Target | None = None
    #: Invites a phone to the `invite_only` server, or prints the code of an invitation for one person.
    invite_command: str | None = None
    out: Path | None = None
    #: Every byte of every case in the report, not only of short or failed ones.
    all_bytes: bool = False


def read_known_failing(path: Path) -> dict[str, str]:
    """One case id per line, then `#` and why it is known to fail."""
    known = {}
    for line in path.read_text("utf-8").splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            known[name.strip()] = reason.strip()
    return known


def read_limits(path: Path) -> dict[str, int]:
    """The file for `tambourd serve --limits`: one `name: value` per line."""
    limits = {}
    for line in path.read_text("utf-8").splitlines():
        name, _, value = line.partition("#")[0].partition(":")
        if name.strip():
            limits[name.strip()] = int(value)
    return limits
