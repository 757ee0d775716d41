"""How pytest runs the cases: selection, verdicts and output."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

from tambour_conformance import bundle
from tambour_conformance.bundle import Requirement
from tambour_conformance.connection import CaseLog
from tambour_conformance.people import People
from tambour_conformance.probe import Unreachable, probe
from tambour_conformance.settings import Settings
from tambour_conformance.verdict import Failed, Verdict
from tambour_conformance.wire import BadPacket

SETTINGS = pytest.StashKey[Settings]()
PEOPLE = pytest.StashKey[People]()
LOG = pytest.StashKey[CaseLog]()

#: The groups in the order in which they run. Groups that need no account come first.
GROUPS = {
    "FRM": "framing",
    "HDR": "header",
    "SEQ": "numbers",
    "CMP": "compression",
    "MSP": "MessagePack",
    "SES": "session and order",
    "AUT": "signing in",
    "TFA": "passwords",
    "QRL": "signing in by a QR code",
    "ACC": "the phone and the end of an account",
    "RAT": "how often",
    "SYN": "login by delta",
    "MOR": "long deltas by parts",
    "MSG": "messages",
    "HIS": "history",
    "CHG": "what became of messages",
    "GRP": "groups",
    "CMT": "comments",
    "CON": "contacts",
    "PRO": "profile",
    "SET": "settings",
    "REA": "reactions",
    "POL": "polls",
    "DLY": "messages for later",
    "DRA": "drafts",
    "FLD": "folders",
    "SRC": "search",
    "LNK": "previews of links",
    "REP": "reports",
    "BOT": "bots",
    "APP": "apps",
    "PSH": "pushes",
    "FLW": "flow and lifecycle",
    "CAP": "capabilities",
    "TAM": "apps of TamTam",
    "flow": "whole conversations",
}

#: After this many cases in a row without an answer, the plugin probes the server again.
LOST_CASES = 10


@dataclass
class CaseResult:
    """The result of one case."""

    id: str
    title: str
    group: str
    requirements: tuple[str, ...]
    level: str
    verdict: Verdict = Verdict.PASS
    known_failing: str | None = None  #: the reason from the known-failing list, if the case is on it
    message: str = ""
    expected: str = ""
    actual: str = ""
    duration_ms: float = 0
    log: CaseLog = field(default_factory=CaseLog)

    @property
    def base(self) -> str:
        """The id without its parameter."""
        return self.id.partition("[")[0]

    @property
    def behaviour(self) -> Verdict:
        """The verdict on the answers, regardless of how the connection closed."""
        return Verdict.PASS if self.verdict == Verdict.UNCLEAN else self.verdict

    @property
    def close(self) -> str | None:
        """How connections closed, "clean" or "unclean"; None if the case did not check a close."""
        if self.log.closes == 0:
            return None
        return "unclean" if self.log.unclean else "clean"


def fails(result: CaseResult, *, strict: bool) -> bool:
    """Whether the result counts as a failure of the server."""
    match result.verdict:
        case Verdict.FAIL | Verdict.ERROR:
            return True
        case Verdict.UNCLEAN:
            return strict or result.level == "MUST"
        case Verdict.NON_STRICT:
            return strict
    return False


def is_unexpected(result: CaseResult, *, strict: bool) -> bool:
    """Whether the result fails the run: a failure that is not on the list, or a listed case that passes."""
    if result.known_failing is None:
        return fails(result, strict=strict)
    return result.verdict == Verdict.PASS


def case_id(item: pytest.Item) -> str:
    """The stable name of a case: its function's name and its parameter."""
    name, bracket, parameter = item.name.partition("[")
    return name.removeprefix("test_").replace("_", "-") + bracket + parameter


def requirements_of(item: pytest.Item) -> tuple[str, ...]:
    """The ids of the requirements with which a test function is marked."""
    marker = item.get_closest_marker("case")
    return marker.args if marker else ()


def group_of(item: pytest.Item) -> str:
    """The group of a case's first requirement, or else the group that the case names; may be empty."""
    marker = item.get_closest_marker("case")
    ids = requirements_of(item)
    return ids[0].partition("-")[0] if ids else marker.kwargs["group"] if marker else ""


def faults_of_coverage(items: Iterable[pytest.Item], requirements: dict[str, Requirement]) -> list[str]:
    """The faults of cases and requirements, a line for each.

    They are: a case with an unknown requirement or with none, an id that two cases share, and a requirement
    without a case.
    """
    found = []
    covered: set[str] = set()
    places: dict[str, str] = {}
    for item in items:
        ids = requirements_of(item)
        covered.update(ids)
        if not group_of(item):
            found.append(f"{item.nodeid}: names no requirement")
        found += [f"{item.nodeid}: unknown requirement {each}" for each in ids if each not in requirements]
        if (other := places.setdefault(case_id(item), item.nodeid)) != item.nodeid:
            found.append(f"{item.nodeid}: has the id of {other}")
    found += [f"{each}: no case" for each in requirements if each not in covered]
    return sorted(set(found))


def finds_nobody(result: CaseResult) -> bool:
    """Whether the case failed because the server sent no packet of this protocol, or far too many bytes."""
    return fails(result, strict=True) and (result.log.flooded or not result.log.heard)


class ConformancePlugin:
    """Selects cases, judges them, and collects their results."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.results: list[CaseResult] = []
        self.faults: list[str] = []
        self.items: list[pytest.Item] = []
        self.began = time.time()
        #: How the server was lost, if the run was stopped for this reason.
        self.lost: str | None = None
        #: The most recent cases in a row that got no answer.
        self.row: list[CaseResult] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "case(*requirements, info=False, group=''): what a case covers")
        config.stash[SETTINGS] = self.settings
        config.stash[PEOPLE] = People(self.settings.accounts, self.settings.code_command)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        order = list(GROUPS)
        items.sort(key=lambda item: _position(item, order))
        self.faults = faults_of_coverage(items, bundle.load().requirements)
        known = {case_id(item) for item in items}
        for name in self.settings.known_failing:
            if name not in known:
                raise pytest.UsageError(f"--known-failing names no case: {name}")
        if self.settings.selection:
            kept = [item for item in items if any(_selects(each, item) for each in self.settings.selection)]
            for each in self.settings.selection:
                if not any(_selects(each, item) for item in items):
                    raise pytest.UsageError(f"no case, requirement or group is called {each}")
            config.hook.pytest_deselected(items=[item for item in items if item not in kept])
            items[:] = kept
        self.items = list(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[LOG] = CaseLog()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            if report.failed:
                self._judge(item, call, report)
            return report
        if call.when == "call" or not report.passed:
            self._judge(item, call, report)
        return report

    def _judge(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        log = item.stash[LOG]
        marker = item.get_closest_marker("case")
        requirements = requirements_of(item)
        known = bundle.load().requirements
        levels = {known[each].level for each in requirements if each in known}
        result = CaseResult(
            id=case_id(item),
            title=((item.obj.__doc__ or "").strip().splitlines() or [""])[0],  # type: ignore[attr-defined]
            group=group_of(item),
            requirements=requirements,
            level="SHOULD" if levels == {"SHOULD"} else "MUST",
            known_failing=self.settings.known_failing.get(case_id(item)),
            duration_ms=call.duration * 1000,
            log=log,
        )
        self._conclude(result, call, report)
        if marker is not None and marker.kwargs.get("info") and result.verdict != Verdict.SKIP:
            result.verdict = Verdict.INFO
        elif result.verdict == Verdict.FAIL and result.level == "SHOULD":
            result.verdict = Verdict.NON_STRICT
        if call.when == "setup" and result.verdict in (Verdict.FAIL, Verdict.NON_STRICT):
            result.message = f"while preparing: {result.message}"
        self.results = [each for each in self.results if each.id != result.id]
        self.results.append(result)
        self._tell(item, result, report)

    @staticmethod
    def _conclude(result: CaseResult, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        if report.passed:
            broken = [
                result.log.broken_rules[each]
                for each in result.requirements
                if each in result.log.broken_rules
            ]
            if broken:
                result.verdict = Verdict.FAIL
                result.message = result.actual = "; ".join(broken)
                result.expected = "packets written as the requirement says"
            elif result.log.unclean:
                result.verdict = Verdict.UNCLEAN
                result.message = "; ".join(result.log.unclean)
                result.expected, result.actual = "the connection is closed", result.message
        elif report.skipped:
            result.verdict = Verdict.SKIP
            result.message = str(getattr(error, "msg", error))
        elif isinstance(error, Failed):
            result.verdict = Verdict.FAIL
            result.message, result.expected, result.actual = str(error), error.expected, error.actual
        elif isinstance(error, AssertionError | pytest.fail.Exception | BadPacket):
            result.verdict = Verdict.FAIL
            result.message = str(error)
        else:
            result.verdict = Verdict.ERROR
            result.message = f"{type(error).__name__}: {error}\n{report.longreprtext}"

    def _tell(self, item: pytest.Item, result: CaseResult, report: pytest.TestReport) -> None:
        """Puts the verdict into pytest's report. pytest makes junit.xml and the exit status from it."""
        # pytest copies the properties of the item into the teardown report, and from there into junit.xml.
        item.user_properties = [("verdict", str(result.verdict))]
        item.user_properties += [("requirement", each) for each in result.requirements]
        if result.close is not None:
            item.user_properties.append(("close", result.close))
        if is_unexpected(result, strict=self.settings.strict):
            report.outcome = "failed"
            report.longrepr = (
                "listed as known failing, and passes"
                if result.known_failing is not None
                else f"{result.verdict}: {result.message}"
            )
        elif fails(result, strict=True) or result.verdict == Verdict.SKIP:
            report.outcome = "skipped"
            reason = f"{result.verdict}: {result.message}"
            if result.known_failing is not None:
                reason = f"known failing ({result.known_failing}): {reason}"
            report.longrepr = (report.location[0], report.location[1] or 0, reason)
        else:
            report.outcome = "passed"
            report.longrepr = None
        report.conformance = result  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        told = yield
        if self.results and self.results[-1].id == case_id(item):
            self._count(self.results[-1], item.session)
        return told

    def _count(self, result: CaseResult, session: pytest.Session) -> None:
        """Stops the run if several cases in a row got no answer, and a probe gets no answer either."""
        if result.verdict == Verdict.SKIP:
            return
        self.row = [*self.row, result] if finds_nobody(result) else []
        if len(self.row) < LOST_CASES:
            return
        # `any` suffices: on a busy machine, other cases of a flood reach the time limit first.
        if any(each.log.flooded for each in self.row):
            self.lost = "the server sends more than it is asked for"
        else:
            try:
                probe(self.settings.target)
            except Unreachable as nobody:
                self.lost = str(nobody)
        if self.lost is not None:
            session.shouldstop = f"{LOST_CASES} cases in a row found nobody"
        self.row = []

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.faults and self.settings.list_only:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(result.verdict for result in self.results)

    @property
    def closes(self) -> Counter[str]:
        """The numbers of cases with a clean close and with an unclean close."""
        return Counter(result.close for result in self.results if result.close is not None)


def _position(item: pytest.Item, order: list[str]) -> int:
    group = group_of(item)
    return order.index(group) if group in order else len(order)


def _selects(selector: str, item: pytest.Item) -> bool:
    """Whether a word of the command line selects this case by its group, a requirement, or its id."""
    name = case_id(item)
    return selector in (name, name.partition("[")[0], group_of(item), *requirements_of(item))


def _key(result: CaseResult) -> tuple[str, tuple[str, ...]]:
    """The key of a result. Results with the same key can share a line."""
    return result.base, result.requirements


MARKS = {
    Verdict.PASS: ("✓", {"green": True}),
    Verdict.FAIL: ("✗", {"red": True, "bold": True}),
    Verdict.NON_STRICT: ("≈", {"yellow": True}),
    Verdict.UNCLEAN: ("✗", {"red": True}),
    Verdict.SKIP: ("-", {"cyan": True}),
    Verdict.INFO: ("i", {"cyan": True}),
    Verdict.ERROR: ("!", {"red": True, "bold": True}),
}


class TreeReporter(TerminalReporter):
    """Prints groups, cases and verdicts. Passed cases that differ only in a parameter share a line."""

    def __init__(self, config: pytest.Config, plugin: ConformancePlugin) -> None:
        super().__init__(config)
        self.plugin = plugin
        self._group = ""
        self._pending: list[CaseResult] = []

    # pytest's own lines are not printed.
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._session_start = time.time()  # type: ignore[assignment]

    def pytest_collection(self) -> None:
        pass

    def report_collect(self, final: bool = False) -> None:
        pass

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        pass

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        pass

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self.plugin.settings.list_only:
            self._list()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result: CaseResult | None = getattr(report, "conformance", None)
        if result is None:
            return
        if self._pending and _key(self._pending[-1]) != _key(result):
            self._flush()
        self._pending.append(result)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> Generator[None]:
        result = yield
        self._flush()
        for errors in self.stats.get("error", []):
            self.write_line(errors.longreprtext)
        if self.plugin.settings.list_only:
            for fault in self.plugin.faults:
                self.write_line(fault, red=True)
        elif self.plugin.results:
            self._summarise()
        return result

    def _list(self) -> None:
        requirements = bundle.load().requirements
        by_base: dict[str, list[pytest.Item]] = {}
        for item in self.plugin.items:
            by_base.setdefault(case_id(item).partition("[")[0], []).append(item)
        for name, items in by_base.items():
            ids = requirements_of(items[0])
            self._heading(group_of(items[0]))
            levels = {requirements[each].level for each in ids if each in requirements}
            level = "SHOULD" if levels == {"SHOULD"} else "MUST"
            count = f" ({len(items)} times)" if len(items) > 1 else ""
            self.write_line(f"  {', '.join(ids):<8} {level:<6} {name}{count}")
        self.write_line(f"{len(self.plugin.items)} cases of {len(requirements)} requirements")

    def _heading(self, group: str) -> None:
        if group != self._group:
            self._group = group
            self.write_line(f"{group} {GROUPS.get(group, '')}", bold=True)

    def _flush(self) -> None:
        results, self._pending = self._pending, []
        if not results:
            return
        self._heading(results[0].group)
        passed = [result for result in results if result.verdict == Verdict.PASS]
        if len(results) > 1 and passed:
            of = "" if len(passed) == len(results) else f" of {len(results)}"
            ms = sum(each.duration_ms for each in passed)
            self._line(passed[0], passed[0].base, f"{len(passed)}{of}", ms)
            results = [result for result in results if result.verdict != Verdict.PASS]
        for result in results:
            self._line(result, result.id, "", result.duration_ms)
            self._details(result)

    def _line(self, result: CaseResult, name: str, count: str, ms: float) -> None:
        mark, style = MARKS[result.verdict]
        verdict = "" if result.verdict == Verdict.PASS else f" {result.verdict}"
        self.write(f"  {mark}{verdict} ", **style)
        words = [", ".join(result.requirements), name, count, f"({ms:.0f} ms)"]
        self.write_line(" ".join(filter(None, words)))

    def _details(self, result: CaseResult) -> None:
        if result.known_failing is not None:
            self.write_line(f"      known failing: {result.known_failing}")
        for line in result.message.splitlines():
            self.write_line(f"      {line}")
        if result.verdict != Verdict.UNCLEAN:
            for line in result.log.unclean:
                self.write_line(f"      and the close: {line}")
        for line in result.log.notes:
            self.write_line(f"      {line}")

    def _summarise(self) -> None:
        plugin = self.plugin
        counts = ", ".join(f"{plugin.counts[each]} {each}" for each in Verdict if plugin.counts[each])
        ids = {each for result in plugin.results for each in result.requirements}
        wrong = [each for each in plugin.results if is_unexpected(each, strict=plugin.settings.strict)]
        self.write_line("")
        self.write_line(
            f"{len(plugin.results)} cases of {len(ids)} requirements in {time.time() - plugin.began:.1f} s: "
            f"{counts}. Seed {plugin.settings.seed}.",
            bold=True,
        )
        if plugin.lost is not None:
            self.write_line(f"  given up after {LOST_CASES} cases in a row: {plugin.lost}", red=True)
        for result in wrong:
            why = " (listed as known failing)" if result.known_failing is not None else ""
            self.write_line(f"  {result.verdict} {', '.join(result.requirements)} {result.id}{why}", red=True)
        rules: Counter[str] = Counter(rule for each in plugin.results for rule in each.log.broken_rules)
        for rule, count in rules.most_common():
            self.write_line(f"  {rule} was broken by packets of {count} cases", yellow=True)
