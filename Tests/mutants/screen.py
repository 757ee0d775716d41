#!/usr/bin/env python3
"""Breaks the screen in fifteen ways that users can see, one at a time. Plays scenarios in a pseudo-terminal, which must notice.

    Tests/mutants/screen.py            all mutants
    Tests/mutants/screen.py 1 4        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one run for each mutant.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from switch import ROOT, Mutant, switched

SCREEN = "Sources/tambour/Screen/"
#: The scenarios. The first ones are most likely to notice a mutant.
SCENARIOS = ["typed", "typed_in_sign_in", "typed_while_resized", "kept", "kept_over_paste", "acts", "first_minutes"]
# The fields: name, the scenario to play first, file, original text (found once), mutated text (@ is the mutant's number)
MUTANTS = [
    ("the line has no cursor", "typed", SCREEN + "ScreenView+Chat.swift",
     "        if state.focus == .input {\n            surface.cursor",
     "        if mutant != @, state.focus == .input {\n            surface.cursor"),
    ("the cursor of the line is one cell off", "typed", SCREEN + "ScreenView+Chat.swift",
     "column: box.column + cursor.column,",
     "column: box.column + cursor.column + (mutant == @ ? 1 : 0),"),
    ("the cursor always stands at the start of the line", "typed", SCREEN + "ScreenView+Chat.swift",
     "                row: box.row + cursor.row - rows.lowerBound\n            )\n        }\n",
     "                row: box.row + cursor.row - rows.lowerBound\n            )\n        }\n"
     "        if mutant == @ { surface.cursor = box.origin }\n"),
    ("there is no line while no chat is open", "typed", SCREEN + "ScreenView+Chat.swift",
     "            drawInput(state, &surface, &area)\n            let hints",
     "            if mutant != @ { drawInput(state, &surface, &area) }\n            let hints"),
    ("a panel has no cursor", "typed", SCREEN + "ScreenView+Panels.swift",
     "isFocused: state.focus == .panel,",
     "isFocused: mutant != @ && state.focus == .panel,"),
    ("a question has no cursor", "typed", SCREEN + "ScreenView+Panels.swift",
     "prompt: \" > \", isFocused: true,",
     "prompt: \" > \", isFocused: mutant != @,"),
    ("the cursor of panels and questions is one cell off", "typed", SCREEN + "ScreenView+Panels.swift",
     "        if isFocused { surface.cursor = Position(column: cursor,",
     "        if isFocused { surface.cursor = Position(column: mutant == @ ? cursor - 1 : cursor,"),
    ("signing in has no cursor", "typed_in_sign_in", SCREEN + "SignInForm.swift",
     "let isFocused = index == form.focused && form.working == nil",
     "let isFocused = mutant != @ && index == form.focused && form.working == nil"),
    ("a resized screen is drawn at the next key", "typed_while_resized", SCREEN + "ScreenController.swift",
     "            self?.resized()\n            self?.draw()\n",
     "            self?.resized()\n            if mutant != @ { self?.draw() }\n"),
    ("an own act is not drawn", "acts", SCREEN + "ScreenController+Loading.swift",
     "            loading.stale.history = true\n        }\n        if change.queue",
     "            loading.stale.history = mutant != @\n        }\n        if change.queue"),
    ("the list shows stale messages", "acts", SCREEN + "ScreenController+Loading.swift",
     "        loading.stale.chats.formUnion(change.chats)\n",
     "        if mutant != @ { loading.stale.chats.formUnion(change.chats) }\n"),
    ("an edit does not reach the list", "acts", "Sources/TambourClient/LocalStore/Messages.swift",
     "if newest != nil { changes.chats.insert(chat) }",
     "if mutant != @, newest != nil { changes.chats.insert(chat) }"),
    ("a paste is cut", "kept_over_paste", SCREEN + "ScreenController+Keys.swift",
     "            paste(text)\n",
     "            paste(mutant == @ ? String(text.prefix(1000)) : text)\n"),
    ("a draft is not restored", "kept", SCREEN + "ScreenController+Drafts.swift",
     "(try? client.draft(in: chat)) ?? .empty\n        show(draft, of: chat)",
     "(try? client.draft(in: chat)) ?? .empty\n        if mutant != @ { show(draft, of: chat) }"),
    ("leaving does not keep the draft", "kept", SCREEN + "ScreenController.swift",
     "        display?.stop()\n        keepDraft()\n",
     "        display?.stop()\n        if mutant != @ { keepDraft() }\n"),
]


def mutants():
    return [Mutant(name, [hint], file, old, new) for name, hint, file, old, new in MUTANTS]


def noticed(number, scenarios, programs):
    """Returns the first failure of the scenarios with this mutant; None if all scenarios passed."""
    environment = dict(os.environ, TAMBOUR_MUTANT=str(number), TAMBOUR_TERMINAL_DEADLINE="8", PYTHONDONTWRITEBYTECODE="1")
    for scenario in scenarios:
        run = subprocess.run(
            [ROOT / ".build/venv/bin/python", ROOT / "Tests/SystemTests/Terminal/scenarios.py", programs, scenario],
            env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode:
            found = re.search(r"FAILED (.{0,110})", run.stdout)
            return found[1].strip() if found else f"{scenario}: {run.stdout[-200:]}"
    return None


def main():
    chosen = sorted({int(number) for number in sys.argv[1:]} or range(1, len(MUTANTS) + 1))
    missed = 0
    with tempfile.TemporaryDirectory() as programs:
        with switched(mutants()):
            for product in ("tambour", "tambourd"):
                subprocess.run(
                    ["swift", "build", "--product", product, "--traits", "PostgreSQL,TLS"], cwd=ROOT, check=True, stdout=sys.stderr)
                shutil.copy(ROOT / ".build/debug" / product, programs)
        if alone := noticed(0, SCENARIOS, programs):
            sys.exit(f"red without any mutant: {alone}")
        print("| mutant: what is broken | noticed |\n| --- | --- |", flush=True)
        for number in chosen:
            name, hint = MUTANTS[number - 1][:2]
            how = noticed(number, [hint, *(scenario for scenario in SCENARIOS if scenario != hint)], programs)
            missed += not how
            print(f"| {number}. {name} | {f'`{how}`' if how else 'NOTHING'} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
