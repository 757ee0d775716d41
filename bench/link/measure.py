"""Measures reconnects of Tambour and of Prosody over a slow, lossy line. Prosody's client resumes its stream.

Tambour logs in without new messages, and both servers deliver a hundred missed texts.

    python3 bench/link/measure.py [--rounds N] [--programs DIRECTORY] [--markdown-out FILE] [--json-out FILE]

Needs root, /dev/net/tun, prosody, and the programs of a release build.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import tambour
import xmpp
from link import Link

MISSED = 100


def corpus(folder="/usr/share/games/fortunes"):
    """Returns the texts of `tambour-bench`. They have 70 to 112 bytes. Half of them are English, and half are Russian."""
    texts = []
    for language in ("", "ru"):
        found = []
        for file in sorted(pathlib.Path(folder, language).glob("*")):
            if file.suffix or file.is_dir():
                continue
            for text in file.read_text(encoding="utf-8", errors="replace").split("\n%\n"):
                line = " ".join(text.split())
                if 70 <= len(line.encode()) <= 112 and line.isprintable():
                    found.append(line)
        texts.append(found[:500])
    if not all(texts):
        sys.exit("fortunes and fortunes-ru are not installed")
    return [text for pair in zip(*texts) for text in pair]


def missed(texts, number):
    """Returns the texts of a round. A prefix makes each text unique."""
    chosen = [texts[(number * MISSED + i) % len(texts)] for i in range(MISSED)]
    return [f"#{number:03}{i:05} {text}" for i, text in enumerate(chosen)]


def measure(arguments, log):
    texts = corpus()
    results = {"login": [], "tambour": [], "prosody": []}
    with tempfile.TemporaryDirectory(prefix="tambour-link-") as scratch, Link(seed=arguments.seed) as link:
        servers = [
            tambour.Tambour(link, f"{scratch}/tambour", arguments.programs),
            xmpp.Prosody(link, f"{scratch}/prosody"),
        ]
        started = []
        try:
            for server in servers:
                server.start()
                started.append(server)
            versions = [server.version() for server in servers]
            for number in range(arguments.rounds):
                for server in servers if number % 2 == 0 else servers[::-1]:
                    result = return_of(server, link, missed(texts, number))
                    results[server.name].append(result)
                    log(f"round {number + 1}: {server.name} {result}")
                result = row(*servers[0].log_in(), servers[0])
                results["login"].append(result)
                log(f"round {number + 1}: login {result}")
        finally:
            for server in started:
                server.stop()
    return results, versions


def return_of(server, link, texts):
    # While the client disconnects, the line loses no packet. So both servers notice the disconnect.
    link.is_lossy = False
    server.leave()
    link.settle()
    link.is_up, link.is_lossy = False, True
    server.miss(texts)
    link.take()
    link.is_up = True
    return row(*server.come_back(texts), server)


def row(seconds, tally, server):
    result = {
        "seconds": round(seconds, 3),
        "wire_seconds": round(tally.seconds, 3),
        "ip_bytes": tally.ip,
        "payload_up": tally.payload_up,
        "payload_down": tally.payload_down,
        "packets": tally.packets,
        "lost": tally.lost,
        "flights": tally.flights,
    }
    if server.name == "tambour":
        result["first_packet"] = tambour.first_packet(tally)
    return result


# The report


def median(rows, name):
    return statistics.median(row[name] for row in rows)


def report(results, versions, arguments, started):
    def spread(rows, name, digits=0):
        values = [row[name] for row in rows]
        return f"{median(rows, name):,.{digits}f} ({min(values):,.{digits}f} … {max(values):,.{digits}f})"

    login, own, other = results["login"], results["tambour"], results["prosody"]
    together = sum(row["first_packet"] == [6, 19] for row in login + own)
    lines = [
        f"# Coming back over 64 kbit/s, 600 ms and 3 % loss, {arguments.rounds} rounds",
        "",
        f"Date: {started}. Commit: {git('rev-parse', '--short', 'HEAD')}{' and changes' if git('status', '--porcelain') else ''}.",
        f"Machine: {machine()}",
        f"Command: `python3 bench/link/measure.py --rounds {arguments.rounds} --seed {arguments.seed}`",
        f"Servers: {', '.join(versions)}",
        "",
        f"| median (least … most) of {arguments.rounds} | Tambour: login, nothing new | Tambour: {MISSED} missed | prosody: {MISSED} missed |",
        "| --- | --- | --- | --- |",
    ]
    names = [
        ("seconds until it is on the screen", "seconds", 2),
        ("seconds from SYN to the last byte", "wire_seconds", 2),
        ("flights, the connection among them", "flights", 0),
        ("bytes of IP, both ways, lost and repeated too", "ip_bytes", 0),
        ("bytes of TCP payload, up", "payload_up", 0),
        ("bytes of TCP payload, down", "payload_down", 0),
        ("packets", "packets", 0),
        ("of which lost", "lost", 0),
    ]
    for title, name, digits in names:
        cells = [spread(rows, name, digits) for rows in (login, own, other)]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += [
        "",
        f"Opcodes 6 and 19 were together in the first packet of {together} of {len(login + own)} connections of Tambour.",
        "",
        f"| Tambour as a part of prosody, {MISSED} missed | goal | of the medians | round by round |",
        "| --- | --- | --- | --- |",
    ]
    for title, name in [("time", "seconds"), ("bytes of IP", "ip_bytes")]:
        ratio = median(own, name) / median(other, name)
        rounds = [a[name] / b[name] for a, b in zip(own, other)]
        verdict = "met" if ratio <= 0.5 else "MISSED"
        lines.append(f"| {title} | ≤ 0.5 | {ratio:.2f}, {verdict} | {min(rounds):.2f} … {max(rounds):.2f} |")
    return "\n".join(lines) + "\n"


def git(*arguments):
    here = pathlib.Path(__file__).parent
    return subprocess.run(["git", "-C", here, *arguments], capture_output=True, text=True, check=False).stdout.strip()


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    kernel = pathlib.Path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8").strip()
    return f"{len(models)} × {models[0]}, Linux {kernel}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1, help="decides which packets are lost")
    parser.add_argument("--programs", default=tambour.default_programs(), help="where tambour and tambourd are")
    parser.add_argument("--markdown-out")
    parser.add_argument("--json-out")
    arguments = parser.parse_args()
    if not 1 <= arguments.rounds <= 100:
        parser.error("--rounds takes 1 to 100")
    started = time.strftime("%Y-%m-%d")
    results, versions = measure(arguments, lambda line: print(line, file=sys.stderr, flush=True))
    text = report(results, versions, arguments, started)
    print(text)
    if arguments.markdown_out:
        pathlib.Path(arguments.markdown_out).write_text(text, encoding="utf-8")
    if arguments.json_out:
        pathlib.Path(arguments.json_out).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
