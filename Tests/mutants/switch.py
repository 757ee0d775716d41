"""Builds many mutants of the sources at once, chosen by TAMBOUR_MUTANT when the program runs."""
import contextlib
import pathlib
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWITCH = """import Glibc

package let mutant = getenv("TAMBOUR_MUTANT").map { atoi($0) } ?? 0
"""


@dataclass
class Mutant:
    name: str
    #: What is run first to notice it.
    hints: list[str]
    file: str
    #: What stands there, once.
    old: str
    #: What the mutant makes of it; @ is its number.
    new: str


def mutated(mutants):
    """The text of each file with all its mutants; ends the program when one no longer fits the sources."""
    sources = {}
    for number, mutant in enumerate(mutants, start=1):
        source = sources.get(mutant.file) or (ROOT / mutant.file).read_text()
        if source.count(mutant.old) != 1:
            sys.exit(f"mutant {number} ({mutant.name}): {source.count(mutant.old)} places in {mutant.file}, not one")
        sources[mutant.file] = source.replace(mutant.old, mutant.new.replace("@", str(number)))
    return sources


@contextlib.contextmanager
def switched(mutants, module=None):
    """Puts all mutants into the sources, and at the end the sources back.

    `module` is the folder that gets the switch: a module that all mutated files import. Without it each
    module that is mutated gets a switch of its own.
    """
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "Sources"], cwd=ROOT).returncode:
        sys.exit("commit the changes in Sources first: they are put back at the end")
    sources = mutated(mutants)
    if module:
        switches = {ROOT / module / "Mutant.swift": SWITCH}
    else:
        modules = {pathlib.Path(*pathlib.Path(file).parts[:2]) for file in sources}
        switches = {ROOT / module / "Mutant.swift": SWITCH.replace("package ", "") for module in modules}
    try:
        for file, source in sources.items():
            (ROOT / file).write_text(source)
        for switch, text in switches.items():
            switch.write_text(text)
        yield
    finally:
        for switch in switches:
            switch.unlink(missing_ok=True)
        subprocess.run(["git", "checkout", "--quiet", "--", *sources], cwd=ROOT, check=True)
