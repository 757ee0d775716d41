"""The reports of a run: results.json and report.html. pytest itself writes junit.xml."""

from __future__ import annotations

from pathlib import Path

from tambour_conformance.plugin import ConformancePlugin
from tambour_conformance.report.page import write_page
from tambour_conformance.report.results import write_results


def write_reports(plugin: ConformancePlugin, out: Path) -> None:
    """Writes results.json and report.html into the existing folder `out`."""
    write_results(plugin, out / "results.json")
    write_page(plugin, out / "report.html")
