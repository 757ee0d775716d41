#!/usr/bin/env python3
"""Checks that every mutant still fits the sources: the text it replaces stands there once."""
import delta
import simulation
import wire
from switch import mutated

mutated(delta.mutants())
mutated(simulation.mutants())
mutated(wire.MUTANTS)
print(f"{len(delta.MUTANTS) + len(simulation.MUTANTS) + len(wire.MUTANTS)} mutants fit the sources")
