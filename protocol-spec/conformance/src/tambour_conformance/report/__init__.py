"""What a run leaves behind: results.json and report.html. junit.xml is pytest's own."""

from __future__ import annotations

from pathlib import Path

from tambour_conformance.plugin import ConformancePlugin
from tambour_conformance.report.page import write_page
from tambour_conformance.report.results import write_results


def write_reports(plugin: ConformancePlugin, out: Path) -> None:
    """Writes both into `out`, which exists."""
    write_results(plugin, out / "results.json")
    write_page(plugin, out / "report.html")
