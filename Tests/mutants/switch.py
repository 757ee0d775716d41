"""Builds all mutants of the sources into one program. TAMBOUR_MUTANT selects the mutant when the program runs."""
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
    #: The tests to run first.
    hints: list[str]
    file: str
    #: The original text, found once in the file.
    old: str
    #: The mutated text; @ is the mutant's number.
    new: str


def place(mutant, sources):
    """Returns the file with a mutant's text: the named file, or another file of the same module if the text has moved there."""
    named = ROOT / mutant.file
    if named.exists() and mutant.old in (sources.get(mutant.file) or named.read_text()):
        return mutant.file
    module = ROOT / pathlib.Path(*pathlib.Path(mutant.file).parts[:2])
    found = [path for path in sorted(module.rglob("*.swift")) if mutant.old in path.read_text()]
    return str(found[0].relative_to(ROOT)) if len(found) == 1 else None


def mutated(mutants):
    """Returns the text of each file with all its mutants, and a line for each stale mutant."""
    sources, stale = {}, []
    for number, mutant in enumerate(mutants, start=1):
        file = place(mutant, sources)
        source = file and (sources.get(file) or (ROOT / file).read_text())
        if not source or source.count(mutant.old) != 1:
            stale.append(f"mutant {number} ({mutant.name}) is stale: look for its text in {mutant.file}")
        else:
            sources[file] = source.replace(mutant.old, mutant.new.replace("@", str(number)))
    return sources, stale


@contextlib.contextmanager
def switched(mutants, module=None):
    """Writes all mutants into the sources, and restores the sources at the end.

    `module` is the folder of a module that all mutated files import. This module gets the switch. Without `module`, each
    mutated module gets its own switch.
    """
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "Sources"], cwd=ROOT).returncode:
        sys.exit("commit the changes in Sources first: they are put back at the end")
    sources, stale = mutated(mutants)
    # A stale mutant would run as the original program. It would then count as a mutant that no test notices.
    if stale:
        sys.exit("\n".join(stale))
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
