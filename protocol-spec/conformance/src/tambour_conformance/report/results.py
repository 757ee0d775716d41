"""results.json, for programs. Ids are stable, times are informational."""

from __future__ import annotations

import json
from pathlib import Path

from tambour_conformance import bundle
from tambour_conformance.plugin import CaseResult, ConformancePlugin
from tambour_conformance.verdict import Verdict

#: The verdicts from worst to best. A requirement gets the worst verdict of its cases.
SEVERITY = (
    Verdict.ERROR,
    Verdict.FAIL,
    Verdict.UNCLEAN,
    Verdict.NON_STRICT,
    Verdict.PASS,
    Verdict.INFO,
    Verdict.SKIP,
)


def coverage(results: list[CaseResult]) -> dict[str, tuple[Verdict | None, list[CaseResult]]]:
    """For each requirement: the worst verdict of its cases (None if no case ran), and its cases."""
    table: dict[str, tuple[Verdict | None, list[CaseResult]]] = {}
    for requirement in bundle.load().requirements:
        cases = [each for each in results if requirement in each.requirements]
        worst = min((each.verdict for each in cases), key=SEVERITY.index, default=None)
        table[requirement] = (worst, cases)
    return table


def write_results(plugin: ConformancePlugin, path: Path) -> None:
    settings = plugin.settings
    protocol = bundle.load()
    data = {
        "specification": protocol.version,
        "server": f"{settings.target.host}:{settings.target.port}",
        "foreign": settings.target.foreign,
        "strict": settings.strict,
        "seed": settings.seed,
        "seconds": round(sum(each.duration_ms for each in plugin.results) / 1000, 3),
        "counts": {str(verdict): plugin.counts[verdict] for verdict in Verdict},
        "closes": {how: plugin.closes[how] for how in ("clean", "unclean")},
        "cases": {
            each.id: {
                "requirements": each.requirements,
                "level": each.level,
                "verdict": each.verdict,
                "behaviour": each.behaviour,
                "close": each.close,
                "closeFaults": each.log.unclean,
                "knownFailing": each.known_failing,
                "message": each.message,
                "expected": each.expected,
                "actual": each.actual,
                "notes": each.log.notes,
                "brokenRules": each.log.broken_rules,
                "ms": round(each.duration_ms, 1),
            }
            for each in plugin.results
        },
        "requirements": {
            name: {
                "level": protocol.requirements[name].level,
                "verdict": verdict,
                "cases": [case.id for case in cases],
            }
            for name, (verdict, cases) in coverage(plugin.results).items()
        },
    }
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
