#!/usr/bin/env python3
"""Lists stale mutants. A mutant is stale if its text no longer occurs exactly once in the sources."""
import sys

import client
import commands
import delta
import entities
import findings
import photos
import plays
import screen
import simulation
import wire
from switch import mutated

lists = {
    "commands": commands.mutants(), "delta": delta.mutants(), "entities": entities.mutants(), "findings": findings.mutants(),
    "photos": photos.mutants(), "plays": plays.mutants(), "screen": screen.mutants(), "simulation": simulation.mutants(), "wire": wire.MUTANTS,
}
stale = [f"{name}: {line}" for name, mutants in lists.items() for line in mutated(mutants)[1]] + list(client.unfit())
print(*stale, sep="\n", end="\n" if stale else "")
count = sum(map(len, lists.values())) + sum(len(mutants) for _, mutants in client.PARTS.values())
print(f"{count - len(stale)} of {count} mutants fit the sources")
sys.exit(bool(stale))
