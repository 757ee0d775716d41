"""report.html: one self-contained page with every case, its requirements and its bytes."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tambour_conformance import bundle, wire
from tambour_conformance.connection import CaseLog, Entry, describe
from tambour_conformance.plugin import GROUPS, CaseResult, ConformancePlugin, fails, is_unexpected
from tambour_conformance.report.results import SEVERITY, coverage
from tambour_conformance.settings import Settings
from tambour_conformance.verdict import Verdict

#: The size of each field of a header, and its name in the legend.
HEADER_FIELDS = ((1, "version"), (1, "cmd"), (2, "seq"), (2, "opcode"), (1, "flags"), (3, "length"))
#: The report shows every byte of a case that failed, or that has at most this many bytes.
SHORT = 4096
#: How many steps of another case the report shows, and how many bytes of each step.
SHOWN_STEPS, SHOWN_BYTES = 10, 64


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
    for how, verdict in (("clean", Verdict.PASS), ("unclean", Verdict.UNCLEAN)):
        if plugin.closes[how]:
            yield f'<div><dt>closes {how}</dt><dd class="{verdict}">{plugin.closes[how]}</dd></div>'
    yield "</dl>"
    if wrong:
        yield "<h2>What has to be looked at</h2><ul>"
        for each in wrong:
            yield f'<li><a href="#{escape(each.id)}">{escape(_names(each))}</a> {escape(each.title)}</li>'
        yield "</ul>"
    yield '<p><a href="#requirements">Requirements and their verdicts</a></p>'
    yield '<p class="legend bytes">Bytes are hexadecimal, → sent, ← received; headers: '
    yield "".join(f'<span class="h{index}">{name}</span>' for index, (_, name) in enumerate(HEADER_FIELDS))
    yield "</p>"
    for group, name in GROUPS.items():
        results = [each for each in plugin.results if each.group == group]
        if results:
            yield f"<h2>{group} {escape(name)}</h2>"
            yield from _group(results, wrong, settings)
    yield from _coverage(plugin)
    yield "</html>"


def _names(result: CaseResult) -> str:
    return " ".join([", ".join(result.requirements), result.id]).strip()


def _group(results: list[CaseResult], wrong: list[CaseResult], settings: Settings) -> Iterator[str]:
    """The HTML of the cases of a group. Cases that differ only in a parameter share one foldable part."""
    keys = dict.fromkeys((each.base, each.requirements) for each in results)
    for base, requirements in keys:
        same = [each for each in results if (each.base, each.requirements) == (base, requirements)]
        if len(same) == 1:
            yield from _case(same[0], settings, is_wrong=same[0] in wrong)
            continue
        verdict = min((each.verdict for each in same), key=SEVERITY.index)
        name = f"{', '.join(requirements)} {base}, {len(same)} times"
        ms = sum(each.duration_ms for each in same)
        yield _opening(name, name, same[0].title, verdict, ms, is_open=any(each in wrong for each in same))
        for each in same:
            yield from _case(each, settings, is_wrong=each in wrong)
        yield "</div></details>"


def _opening(anchor: str, name: str, title: str, verdict: Verdict, ms: float, *, is_open: bool) -> str:
    return (
        f'<details id="{escape(anchor)}"{" open" if is_open else ""}><summary>'
        f'<span class="verdict {verdict}">{verdict}</span>'
        f"<span>{escape(title)}<code>{escape(name)}</code></span>"
        f'<span class="time">{ms:.0f} ms</span></summary><div>'
    )


def _case(result: CaseResult, settings: Settings, *, is_wrong: bool) -> Iterator[str]:
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
    if result.close is not None:
        yield f"<p>Answers {result.behaviour}, close {result.close}</p>"
        for each in result.log.unclean:
            yield f"<pre>{escape(each)}</pre>"
    went_wrong = is_wrong or fails(result, strict=True)
    yield from _bytes(result.log, in_full=went_wrong or settings.all_bytes)
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
    streams: dict[tuple[str, str], bytearray] = {}
    in_full = in_full or sum(len(entry.data) for entry in log.entries) <= SHORT
    skipped = 0
    for index, entry in enumerate(log.entries):
        ended, headers = _frames(streams.setdefault((entry.connection, entry.kind), bytearray()), entry)
        if not in_full and SHOWN_STEPS // 2 <= index < len(log.entries) - SHOWN_STEPS // 2:
            skipped += 1
            continue
        if skipped:
            yield f"<p>… {skipped} steps, which --bytes shows …</p>"
            skipped = 0
        yield _step(entry, ended, headers, len(entry.data) if in_full else SHOWN_BYTES)


def _frames(stream: bytearray, entry: Entry) -> tuple[list[str], list[int]]:
    """Describes the packets that end in this step; also returns where headers begin in its bytes.

    `stream` has the bytes of a packet that began in an earlier step. The place of its header is negative.
    """
    words, headers = [], []
    begin = -len(stream)
    stream += entry.data
    while stream:
        headers.append(begin)
        frame = wire.cut(stream)
        if frame is None:
            break
        if len(words) < 4:
            text = describe(frame)
            words.append(text.replace("push ", "request ", 1) if entry.kind == "sent" else text)
        size = wire.HEADER_SIZE + len(frame.wire)
        del stream[:size]
        begin += size
    return words, headers


def _step(entry: Entry, ended: list[str], headers: list[int], size: int) -> str:
    arrow = {"sent": "→", "received": "←"}.get(entry.kind, "·")
    head = f"{arrow} {entry.ms:.1f} ms {escape(entry.connection)}"
    if entry.kind == "event":
        return f'<div class="packet"><small>{head}: {escape(entry.text)}</small></div>'
    words = "<br>".join(f"<small>{escape(each)}</small>" for each in ended)
    left = len(entry.data) - size
    more = f" … {left:,} more, which --bytes shows" if left > 0 else ""
    return (
        f'<div class="packet {entry.kind}"><small>{head}, {len(entry.data):,} bytes</small>'
        f'<div class="bytes">{marked(entry.data[:size], headers)}{more}</div>{words}</div>'
    )


def marked(data: bytes, headers: list[int]) -> str:
    """The bytes as hexadecimal digits. `headers` has the places of headers, whose fields are marked."""
    parts, done = [], 0
    for begin in headers:
        if begin >= len(data):
            break
        parts.append(data[done : max(begin, 0)].hex(" "))
        done, place = max(begin, 0), begin
        for index, (size, _) in enumerate(HEADER_FIELDS):
            field = data[max(place, 0) : max(place + size, 0)]
            if field:
                parts.append(f'<span class="h{index}">{field.hex()}</span>')
            place += size
        done = max(place, 0)
    return " ".join(filter(None, [*parts, data[done:].hex(" ")]))


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
    """For each test function: its name, its first case, and the number of its cases."""
    for base in dict.fromkeys(each.base for each in cases):
        same = [each for each in cases if each.base == base]
        yield base, same[0], len(same)
