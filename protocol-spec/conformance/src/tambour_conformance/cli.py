"""The command `tambour-conformance`."""

from __future__ import annotations

import argparse
import importlib.resources
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tambour_conformance import fixtures
from tambour_conformance.connection import Target
from tambour_conformance.people import Account
from tambour_conformance.plugin import ConformancePlugin, TreeReporter
from tambour_conformance.probe import Unreachable, probe
from tambour_conformance.report import write_reports
from tambour_conformance.settings import Settings, read_known_failing, read_limits

#: The exit status when no server answers. Lower values are pytest's.
NO_SERVER = 6
#: The exit status when the server was lost during the run.
LOST_SERVER = 7


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tambour-conformance",
        description="Checks a server of the TamTam binary protocol against Tambour's specification.",
        epilog="Exit status: 0 when no MUST fails and no case of --known-failing passes, 1 when one does, "
        "2 for wrong arguments or an interrupt, 4 for a case that does not exist, "
        f"{NO_SERVER} when there is no server of this protocol at the address, "
        f"{LOST_SERVER} when it was lost on the way.",
    )
    parser.add_argument("address", nargs="?", metavar="HOST:PORT", help="the server; not needed for --list")
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="case ids, requirement ids or groups; all when none is given"
    )
    parser.add_argument(
        "--account",
        action="append",
        default=[],
        metavar="PHONE[:token=T][:code=C]",
        help="an account: tokens of devices, or the code that signs them in; the first is alice",
    )
    parser.add_argument(
        "--code-cmd",
        metavar="PROG",
        help="a command that prints the newest code of the phone written {phone}",
    )
    parser.add_argument(
        "--restart-cmd",
        metavar="PROG",
        help="a command that stops the server in order and starts it again on the same address and data",
    )
    parser.add_argument(
        "--features-cmd",
        metavar="PROG",
        help="a command that puts rules in force: it reads what `tambourd serve --features` does, as JSON",
    )
    parser.add_argument(
        "--before-restore",
        type=int,
        metavar="MS",
        help="a time before the server was restored from a backup, Unix milliseconds",
    )
    parser.add_argument(
        "--link-previews",
        action="store_true",
        help="previews of links are made by `previews.py`, which stands beside this suite's README",
    )
    parser.add_argument(
        "--invite-only",
        metavar="HOST:PORT",
        help="another server of the same kind that takes only invited people; its codes come by --code-cmd",
    )
    parser.add_argument(
        "--invite-cmd",
        metavar="'PROG {phone}'",
        help="invites a phone to that server; for an empty one, prints an invitation's code for one person",
    )
    parser.add_argument("--strict", action="store_true", help="a SHOULD that does not hold fails the run")
    parser.add_argument(
        "--list", action="store_true", help="print cases and requirements; fails when one lacks the other"
    )
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds an answer may take")
    parser.add_argument("--seed", type=int, help="of client ids and random requests; printed at the end")
    parser.add_argument("--known-failing", type=Path, metavar="FILE", help="case ids that fail, one a line")
    parser.add_argument(
        "--limits",
        type=Path,
        metavar="FILE",
        help="the server's limits, as `tambourd serve --limits` reads them",
    )
    parser.add_argument(
        "--tls", action="store_true", help="the server speaks TLS; SSL_CERT_FILE names its CA"
    )
    parser.add_argument(
        "--foreign",
        action="store_true",
        help="another implementation: its PING is no fence for pushes, so what does not come is waited for",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where junit.xml, results.json and report.html go"
    )
    parser.add_argument(
        "--bytes", action="store_true", help="report.html shows every byte also of long cases that went well"
    )
    return parser


def settings_of(arguments: argparse.Namespace) -> Settings:
    def target(address: str) -> Target:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"not HOST:PORT: {address}")
        return Target(host.strip("[]"), int(port), arguments.tls, arguments.timeout, arguments.foreign)

    return Settings(
        target=target(arguments.address or "localhost:0"),
        invite_only=target(arguments.invite_only) if arguments.invite_only else None,
        invite_command=arguments.invite_cmd,
        accounts=[Account.parse(each) for each in arguments.account],
        code_command=arguments.code_cmd,
        restart_command=arguments.restart_cmd,
        before_restore=arguments.before_restore,
        features_command=arguments.features_cmd,
        link_previews=arguments.link_previews,
        selection=arguments.cases,
        strict=arguments.strict,
        list_only=arguments.list,
        seed=random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed,
        known_failing=read_known_failing(arguments.known_failing) if arguments.known_failing else {},
        limits=read_limits(arguments.limits) if arguments.limits else {},
        out=arguments.out,
        all_bytes=arguments.bytes,
    )


def run(settings: Settings, cases: Path | None = None) -> int:
    """Runs the packaged cases, or another folder's, and writes the reports; returns the exit status."""
    package = Path(str(importlib.resources.files("tambour_conformance")))
    plugin = ConformancePlugin(settings)
    arguments = ["-c", str(package / "cases.ini"), "--rootdir", str(package), str(cases or package / "cases")]
    if settings.list_only:
        arguments.append("--collect-only")
    if settings.out is not None:
        settings.out.mkdir(parents=True, exist_ok=True)
        arguments.append(f"--junitxml={settings.out / 'junit.xml'}")
    # The cases run the same whatever other plugins are installed.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    status = int(pytest.main(arguments, plugins=[plugin, fixtures, _TreeInstead(plugin)]))
    if settings.out is not None and not settings.list_only:
        write_reports(plugin, settings.out)
    return status if plugin.lost is None else LOST_SERVER


class _TreeInstead:
    """Replaces pytest's terminal reporter with the tree."""

    def __init__(self, plugin: ConformancePlugin) -> None:
        self.plugin = plugin

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(TreeReporter(config, self.plugin), "terminalreporter")


def main(arguments: Sequence[str] | None = None) -> int:
    command = parser()
    parsed = command.parse_intermixed_args(arguments)
    if parsed.address is None and not parsed.list:
        command.error("HOST:PORT is missing")
    try:
        settings = settings_of(parsed)
    except (OSError, ValueError) as error:
        command.error(str(error))
    if not settings.list_only:
        try:
            probe(settings.target)
        except Unreachable as nobody:
            print(f"{command.prog}: {nobody}", file=sys.stderr)
            return NO_SERVER
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
