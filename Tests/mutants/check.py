#!/usr/bin/env python3
"""Checks that every mutant still fits the sources: the text it replaces stands there once."""
import sys

import client
import commands
import delta
import entities
import findings
import photos
import screen
import simulation
import wire
from switch import mutated

mutated(commands.mutants())
mutated(delta.mutants())
mutated(entities.mutants())
mutated(findings.mutants())
mutated(photos.mutants())
mutated(screen.mutants())
mutated(simulation.mutants())
mutated(wire.MUTANTS)
unfit = list(client.unfit())
if unfit:
    sys.exit("\n".join(unfit))
of_client = sum(len(mutants) for _, mutants in client.PARTS.values())
switched = sum(len(part.MUTANTS) for part in (commands, delta, entities, findings, photos, screen, simulation, wire))
print(f"{of_client + switched} mutants fit the sources")
