#!/usr/bin/env python3
"""Compares two checkouts, each with its own server, benchmark program and store.

    bench/compare/compare.py BEFORE [AFTER]        two checkouts; AFTER defaults to this one

Counts determine the verdict, because they do not depend on the machine. Callgrind counts instructions, statements and allocations of a
send, a login and a page of history under a fixed load; bytes are counted too. AFTER may need at most 1.03 times the counts of BEFORE.
Wall time is only reported: both checkouts run the workloads of their own tambour-bench in turns. For each rate, the median ratio of the
pairs should be at least 0.95. Prints Markdown. Exits with 1 when a count exceeds its bound.
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

from server import CountedServer, Server
from wire import NOTIF_MESSAGE, Client

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ["swift", "build", "--configuration", "release", "--traits", "Jemalloc", "--product"]
MOST_COUNT, LEAST_RATE = 1.03, 0.95
FIGURES = ("instructions", "statements", "allocations", "bytes")

# The number of chats and messages in the store, and the numbers of operations and repetitions for each count.
CHATS, MESSAGES, TIMES, REPEATS = 100, 1_000, 100, 3
TEXT = "The quick brown fox jumps over the lazy dog, again and again, as texts of a hundred bytes often do here."


class Side:
    """One checkout of the comparison."""

    def __init__(self, name, path, program, scratch):
        self.name, self.path = name, pathlib.Path(path).resolve()
        self.program = program
        self.directory = pathlib.Path(scratch) / name
        self.directory.mkdir()
        self.pairs = []

    def build(self, with_benchmark):
        if self.program is None:
            for product in ["tambourd", *(["tambour-bench"] if with_benchmark else [])]:
                subprocess.run([*BUILD, product], cwd=self.path, check=True, stdout=sys.stderr)
            if with_benchmark:
                limits = ["make", "-C", "bench/limits", f"OUT={self.path}/.build/bench"]
                subprocess.run(limits, cwd=self.path, check=True, stdout=sys.stderr)
            self.program = self.path / ".build/release/tambourd"
        self.program = pathlib.Path(self.program).resolve()

    @property
    def commit(self):
        command = ["git", "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True).stdout.strip() or "?"

    def seed(self):
        """Fills the store over the wire, so that the server writes its own schema."""
        server = Server(self.program, self.path, self.directory)
        self.people = server.accounts(CHATS + 1)
        (me, token), *others = self.people
        client = Client(server.address)
        client.log_in(token)
        for user, _ in others:
            client.send(user, TEXT)
        for _ in range(MESSAGES):
            client.send(others[0][0], TEXT)
        client.close()
        server.stop()
        return server

    def count(self):
        """Returns the counts of one operation of each kind, by name."""
        server = CountedServer(self.program, self.path, self.directory)
        (me, token), (peer, peer_token), *_ = self.people
        reader = Client(server.address)
        reader.log_in(peer_token)
        writer = Client(server.address)
        writer.log_in(token)
        # The writer has already used the ids up to this one while it filled the store.
        writer.cid = CHATS + MESSAGES
        middle = int(time.time() * 1000) + 60_000

        def send(count):
            for _ in range(count):
                writer.send(peer, TEXT)
                reader.wait_for_push(NOTIF_MESSAGE)
            return writer.bytes + reader.bytes

        def login(count):
            total = 0
            for _ in range(count):
                client = Client(server.address)
                client.log_in(token)
                total += client.bytes
                client.close()
            return total

        def page(count):
            for _ in range(count):
                writer.page(me ^ peer, middle)
            return writer.bytes

        result = {}
        for name, work in (("send", send), ("login", login), ("page", page)):
            work(10)
            result[name] = self.difference(server, work)
        server.stop()
        return result

    @staticmethod
    def difference(server, work):
        """Subtracts the counts of a load from the counts of twice that load, so that fixed costs cancel out. Returns the median of
        several tries, because background work of the server affects only some of them."""
        tries = []
        for _ in range(REPEATS):
            totals = []
            for count in (TIMES, 2 * TIMES):
                before = work(0)
                end = []
                counts = server.counts(lambda count=count: end.append(work(count)))
                totals.append(counts | {"bytes": end[0] - before})
            once, twice = totals
            tries.append({figure: (twice[figure] - once[figure]) / TIMES for figure in FIGURES})
        return {figure: statistics.median(one[figure] for one in tries) for figure in FIGURES}

    def measure(self, workloads, seconds):
        """Runs one round of the checkout's own benchmark and returns the figures by name."""
        out = self.directory / "figures.json"
        command = [".build/release/tambour-bench", "suite", *workloads, "--rounds", "1", "--seconds", str(seconds)]
        subprocess.run([*command, "--json-out", str(out)], cwd=self.path, check=True, stdout=subprocess.DEVNULL)
        return dict(figures(json.loads(out.read_text())))


def figures(node):
    """Yields all figures of a report, at any depth."""
    if isinstance(node, list):
        for item in node:
            yield from figures(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "rounds":
                for figure in value:
                    yield from ((name, number) for name, number in figure.items() if isinstance(number, (int, float)))
            else:
                yield from figures(value)


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compare_counts(before, after):
    rows, worse = [], []
    for operation, figures_before in before.items():
        for figure in FIGURES:
            old, new = figures_before[figure], after[operation][figure]
            ratio = new / old if old else (1.0 if not new else float("inf"))
            if ratio > MOST_COUNT:
                worse.append(f"{operation}, {figure}: {ratio:.3f}")
            mark = "over" if ratio > MOST_COUNT else ""
            rows.append([operation, figure, f"{old:,.1f}", f"{new:,.1f}", f"{ratio:.3f}", mark])
    return table(["", "per operation", "before", "after", "ratio", ""], rows), worse


def compare_rates(pairs):
    rows = []
    for name in sorted(pairs[0][0]):
        # Skip the relay and the C reader: their figures depend only on the machine, not on the checkout.
        if not name.endswith("/s") or "relay" in name or "C reader" in name:
            continue
        ratios = sorted(after[name] / before[name] for before, after in pairs if before.get(name) and name in after)
        if ratios:
            median = statistics.median(ratios)
            spread = f"{ratios[0]:.3f} … {ratios[-1]:.3f}"
            rows.append([name, str(len(ratios)), f"{median:.3f}", spread, "slower" if median < LEAST_RATE else ""])
    return table(["", "pairs", "median ratio", "spread", ""], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a checkout")
    parser.add_argument("after", nargs="?", default=ROOT, help="a checkout, this one unless given")
    parser.add_argument("--pairs", type=int, default=11, help="pairs of wall time; 0 for counts alone")
    parser.add_argument("--seconds", type=int, default=3, help="how long a run is measured")
    parser.add_argument("--workloads", default="W1 W4 W5", help="what tambour-bench runs")
    parser.add_argument("--before-program", help="a tambourd that is built already")
    parser.add_argument("--after-program", help="the same")
    parser.add_argument("--markdown-out", type=pathlib.Path)
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tambour-compare-") as scratch:
        sides = [
            Side("before", options.before, options.before_program, scratch),
            Side("after", options.after, options.after_program, scratch),
        ]
        counts = []
        for side in sides:
            side.build(with_benchmark=options.pairs > 0)
            side.seed()
            counts.append(side.count())
        text, worse = compare_counts(*counts)
        pairs = []
        for number in range(options.pairs):
            # Change the order in each round. A disturbance then does not always affect the same checkout.
            order = sides if number % 2 == 0 else sides[::-1]
            measured = {side.name: side.measure(options.workloads.split(), options.seconds) for side in order}
            pairs.append((measured["before"], measured["after"]))
        minutes = (time.monotonic() - started) / 60
        lines = [
            f"# {sides[1].commit} beside {sides[0].commit}", "",
            f"- Date: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}",
            f"- Machine: {platform.machine()}, {platform.system()} {platform.release()}",
            f"- Store: {CHATS} dialogs, {MESSAGES} messages in one of them; each operation {TIMES} times, the median of {REPEATS}",
            f"- Took: {minutes:.0f} min", "", "## Counts", "",
            f"At most {MOST_COUNT} of before.", "", text, "",
        ]
        if pairs:
            lines += ["## Wall time", "", f"The median at least {LEAST_RATE}.", "", compare_rates(pairs), ""]
    report = "\n".join(lines)
    print(report)
    if options.markdown_out:
        options.markdown_out.parent.mkdir(parents=True, exist_ok=True)
        options.markdown_out.write_text(report)
    for line in worse:
        print(f"over {MOST_COUNT}: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
