"""report.html: one page that needs nothing else, with every case, its requirements and its bytes."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tambour_conformance import bundle, wire
from tambour_conformance.connection import CaseLog, Entry, describe
from tambour_conformance.plugin import GROUPS, CaseResult, ConformancePlugin, is_unexpected
from tambour_conformance.report.results import SEVERITY, coverage
from tambour_conformance.verdict import Verdict

#: The fields of a header, by their sizes, and what the legend calls them.
HEADER_FIELDS = ((1, "version"), (1, "cmd"), (2, "seq"), (2, "opcode"), (1, "flags"), (3, "length"))
#: How many steps of a case are shown, and how many bytes of each: all that matters when it failed.
SHOWN = {False: (10, 64), True: (200, 2048)}


def write_page(plugin: ConformancePlugin, path: Path) -> None:
    path.write_text("\n".join(_page(plugin)), "utf-8")


def _page(plugin: ConformancePlugin) -> Iterator[str]:
    settings = plugin.settings
    css = importlib.resources.files("tambour_conformance.report").joinpath("page.css").read_text("utf-8")
    wrong = [each for each in plugin.results if is_unexpected(each, strict=settings.strict)]
    server = f"{settings.target.host}:{settings.target.port}"
    yield "<!doctype html>"
    yield '<html lang="en"><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Conformance of {escape(server)}</title><style>{css}</style>"
    yield f"<h1>Conformance of {escape(server)}</h1>"
    kind = ", a foreign server" if settings.target.foreign else ""
    yield f"<p>Specification {bundle.load().version}, seed {settings.seed}{kind}.</p>"
    yield "<dl>"
    for verdict in Verdict:
        if plugin.counts[verdict]:
            yield f'<div><dt>{verdict}</dt><dd class="{verdict}">{plugin.counts[verdict]}</dd></div>'
    yield "</dl>"
    if wrong:
        yield "<h2>What has to be looked at</h2><ul>"
        for each in wrong:
            yield f'<li><a href="#{escape(each.id)}">{escape(_names(each))}</a> {escape(each.title)}</li>'
        yield "</ul>"
    yield '<p><a href="#requirements">Requirements and their verdicts</a></p>'
    yield '<p class="legend bytes">Headers: '
    yield "".join(f'<span class="h{index}">{name}</span>' for index, (_, name) in enumerate(HEADER_FIELDS))
    yield "</p>"
    for group, name in GROUPS.items():
        results = [each for each in plugin.results if each.group == group]
        if results:
            yield f"<h2>{group} {escape(name)}</h2>"
            yield from _group(results, wrong)
    yield from _coverage(plugin)
    yield "</html>"


def _names(result: CaseResult) -> str:
    return " ".join([", ".join(result.requirements), result.id]).strip()


def _group(results: list[CaseResult], wrong: list[CaseResult]) -> Iterator[str]:
    """The cases of a group; those that differ by a parameter alone are folded into one."""
    keys = dict.fromkeys((each.base, each.requirements) for each in results)
    for base, requirements in keys:
        same = [each for each in results if (each.base, each.requirements) == (base, requirements)]
        if len(same) == 1:
            yield from _case(same[0], is_wrong=same[0] in wrong)
            continue
        verdict = min((each.verdict for each in same), key=SEVERITY.index)
        name = f"{', '.join(requirements)} {base}, {len(same)} times"
        ms = sum(each.duration_ms for each in same)
        yield _opening(name, name, same[0].title, verdict, ms, is_open=any(each in wrong for each in same))
        for each in same:
            yield from _case(each, is_wrong=each in wrong)
        yield "</div></details>"


def _opening(anchor: str, name: str, title: str, verdict: Verdict, ms: float, *, is_open: bool) -> str:
    return (
        f'<details id="{escape(anchor)}"{" open" if is_open else ""}><summary>'
        f'<span class="verdict {verdict}">{verdict}</span>'
        f"<span>{escape(title)}<code>{escape(name)}</code></span>"
        f'<span class="time">{ms:.0f} ms</span></summary><div>'
    )


def _case(result: CaseResult, *, is_wrong: bool) -> Iterator[str]:
    name, title, ms = _names(result), result.title, result.duration_ms
    yield _opening(result.id, name, title, result.verdict, ms, is_open=is_wrong)
    for each in result.requirements:
        yield _requirement(each)
    if result.known_failing is not None:
        yield f"<p>Known to fail: {escape(result.known_failing)}</p>"
    if result.expected:
        yield f"<p>Expected</p><pre>{escape(result.expected)}</pre>"
        yield f"<p>Actual</p><pre>{escape(result.actual)}</pre>"
    elif result.message:
        yield f"<pre>{escape(result.message)}</pre>"
    for note in result.log.notes:
        yield f"<p>{escape(note)}</p>"
    for rule, first in result.log.broken_rules.items():
        yield f"<p>{rule} was broken: {escape(first)}</p>"
    yield from _bytes(result.log, in_full=is_wrong)
    yield "</div></details>"


def _requirement(name: str) -> str:
    requirement = bundle.load().requirements.get(name)
    if requirement is None:
        return f"<p>{escape(name)} is unknown.</p>"
    return (
        f'<p class="said"><b>{name}</b> {requirement.level}, {escape(requirement.place)}: '
        f"{escape(requirement.text)}</p>"
    )


def _bytes(log: CaseLog, *, in_full: bool) -> Iterator[str]:
    steps, size = SHOWN[in_full]
    streams: dict[tuple[str, str], bytearray] = {}
    skipped = 0
    for index, entry in enumerate(log.entries):
        ended = _frames(streams.setdefault((entry.connection, entry.kind), bytearray()), entry)
        if steps // 2 <= index < len(log.entries) - steps // 2:
            skipped += 1
            continue
        if skipped:
            yield f"<p>… {skipped} steps …</p>"
            skipped = 0
        yield _step(entry, ended, size)


def _frames(stream: bytearray, entry: Entry) -> list[str]:
    """The packets that end with this step, in words."""
    found = []
    stream += entry.data
    while (frame := wire.cut(stream)) is not None:
        if len(found) < 4:
            words = describe(frame)
            found.append(words.replace("push ", "request ", 1) if entry.kind == "sent" else words)
        del stream[: wire.HEADER_SIZE + len(frame.wire)]
    return found


def _step(entry: Entry, ended: list[str], size: int) -> str:
    arrow = {"sent": "→", "received": "←"}.get(entry.kind, "·")
    head = f"{arrow} {entry.ms:.1f} ms {escape(entry.connection)}"
    if entry.kind == "event":
        return f'<div class="packet"><small>{head}: {escape(entry.text)}</small></div>'
    words = "<br>".join(f"<small>{escape(each)}</small>" for each in ended)
    more = f" … {len(entry.data) - size:,} more" if len(entry.data) > size else ""
    return (
        f'<div class="packet {entry.kind}"><small>{head}, {len(entry.data):,} bytes</small>'
        f'<div class="bytes">{_hex(entry.data[:size], bool(ended))}{more}</div>{words}</div>'
    )


def _hex(data: bytes, begins_with_header: bool) -> str:
    if not begins_with_header or len(data) < wire.HEADER_SIZE:
        return data.hex(" ")
    parts, start = [], 0
    for index, (size, _) in enumerate(HEADER_FIELDS):
        parts.append(f'<span class="h{index}">{data[start : start + size].hex()}</span>')
        start += size
    return " ".join([*parts, data[start:].hex(" ")])


def _coverage(plugin: ConformancePlugin) -> Iterator[str]:
    yield '<h2 id="requirements">Requirements</h2>'
    yield "<table><thead><tr><th>Requirement<th>Verdict<th>Text<th>Cases</tr></thead><tbody>"
    for name, (verdict, cases) in coverage(plugin.results).items():
        requirement = bundle.load().requirements[name]
        shown = verdict or "not run"
        links = ", ".join(
            f'<a href="#{escape(first.id)}">{escape(base)}</a>{f" ×{count}" if count > 1 else ""}'
            for base, first, count in _bases(cases)
        )
        yield (
            f'<tr><td><b>{name}</b> {requirement.level}<td class="{shown}">{shown}'
            f"<td>{escape(requirement.text)}<td>{links}</tr>"
        )
    yield "</tbody></table>"


def _bases(cases: list[CaseResult]) -> Iterator[tuple[str, CaseResult, int]]:
    """The functions behind cases: name, first case, how many there are."""
    for base in dict.fromkeys(each.base for each in cases):
        same = [each for each in cases if each.base == base]
        yield base, same[0], len(same)
