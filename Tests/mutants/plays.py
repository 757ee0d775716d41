#!/usr/bin/env python3
"""Breaks the screen and the code that reads its store, in one place at a time. Plays sequences of keys, which must notice.

    Tests/mutants/plays.py            all mutants
    Tests/mutants/plays.py 4 7        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one short run for each mutant.
The seed that notices a mutant runs once more without the mutant, and must pass.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import os
import re
import subprocess
import sys

from switch import ROOT, Mutant, switched

SCREEN = "Sources/tambour/Screen/"
STORE = "Sources/TambourClient/LocalStore/"
#: The script plays these seeds for each mutant until one fails. TAMBOUR_SEED is the first seed, TAMBOUR_RUNS their number.
SEED, RUNS = int(os.environ.get("TAMBOUR_SEED", 1)), int(os.environ.get("TAMBOUR_RUNS", 300))
# The fields: name, file, original text (found once), mutated text (@ is the mutant's number)
MUTANTS = [
    ("screen: a hidden chat stays in the list", SCREEN + "ScreenController+Loading.swift",
     "line?.isHidden == false ? line : nil,", "mutant == @ || line?.isHidden == false ? line : nil,"),
    ("screen: a changed chat goes to the end of the list", SCREEN + "ScreenController+Loading.swift",
     "        (other.lastEventMs, line.id) < (line.lastEventMs, other.id)",
     "        mutant != @ && (other.lastEventMs, line.id) < (line.lastEventMs, other.id)"),
    ("screen: the order of pinned chats is not read", SCREEN + "ScreenController+Loading.swift",
     "        if isPinChanged || lines.values", "        if mutant != @, isPinChanged || lines.values"),
    ("screen: a renamed person keeps the old name in the list", SCREEN + "ScreenController+Loading.swift",
     "            loading.stale.chats.formUnion(change.people.map { ChatID.dialog(me, $0) })",
     "            if mutant != @ { loading.stale.chats.formUnion(change.people.map { ChatID.dialog(me, $0) }) }"),
    ("screen: a draft of another device does not reach the open line", SCREEN + "ScreenController+Loading.swift",
     "        if let open = state.open, change.everything || change.drafts.contains(open) {",
     "        if mutant != @, let open = state.open, change.everything || change.drafts.contains(open) {"),
    ("screen: changes of messages appear with the next message", SCREEN + "ScreenController+Loading.swift",
     "        state.rows = page.rows\n",
     "        if mutant != @ || state.rows.map(\\.id) != page.rows.map(\\.id) { state.rows = page.rows }\n"),
    ("screen: an unpinned message stays below the title", SCREEN + "ScreenController+Loading.swift",
     "            state.pinned = read.pinned\n",
     "            if mutant != @ || read.pinned != nil { state.pinned = read.pinned }\n"),
    ("screen: lines are drawn again only for other messages", SCREEN + "MessageLayouts.swift",
     "        if let lastLines, lastLines.key == key { return lastLines.lines }",
     "        if let lastLines,\n"
     "            lastLines.key == key\n"
     "                || mutant == @ && lastLines.key.width == key.width\n"
     "                    && lastLines.key.rows.map(\\.id) == key.rows.map(\\.id)\n"
     "        {\n"
     "            return lastLines.lines\n"
     "        }"),
    ("store: the list is read oldest first", STORE + "ChatList.swift",
     "favourite, lastEventTime DESC, chat.id LIMIT ?\"",
     "favourite, lastEventTime \\(mutant == @ ? \"ASC\" : \"DESC\"), chat.id LIMIT ?\""),
    ("store: the line of one chat is read without its draft", STORE + "ChatList.swift",
     "        try row(ChatListQuery.chats + \" AND chat.id = ?\"",
     "        try row(\n"
     "            (mutant == @\n"
     "                ? ChatListQuery.chats.replacingOccurrences(of: \"draft.text AS\", with: \"NULL AS\")\n"
     "                : ChatListQuery.chats) + \" AND chat.id = ?\""),
    ("store: drafts that other devices discard stay", STORE + "Drafts.swift",
     "WHERE chat = ? AND time <= ?\"", "WHERE chat = ? AND time <= \\(mutant == @ ? \"-\" : \"\")?\""),
    ("store: messages that a page lacks stay", STORE + "HistoryRows.swift",
     "        for position in effects.removed {", "        for position in effects.removed where mutant != @ {"),
    ("store: a hidden chat does not return with a message", STORE + "Chats.swift",
     "status = CASE WHEN status = 'HIDDEN' THEN", "status = CASE WHEN status = '\\(mutant == @ ? \"\" : \"HIDDEN\")' THEN"),
    ("store: what another device has read stays unread", STORE + "Chats.swift",
     "\"UPDATE chat SET unread = 0 WHERE id = ?\"", "\"UPDATE chat SET unread = \\(mutant == @ ? \"unread\" : \"0\") WHERE id = ?\""),
    ("store: what others have read stays sent", STORE + "Chats.swift",
     "\"UPDATE chat SET othersReadMark = max(othersReadMark, ?) WHERE id = ?\"",
     "\"UPDATE chat SET othersReadMark = max(othersReadMark, \\(mutant == @ ? \"0 * \" : \"\")?) WHERE id = ?\""),
    ("store: a chat that another device mutes is not read again", STORE + "Chats.swift",
     "                [mutedUntil, favourite, chat.rawValue]\n            )\n            changes.chats.insert(chat)",
     "                [mutedUntil, favourite, chat.rawValue]\n            )\n            if mutant != @ { changes.chats.insert(chat) }"),
    ("store: a reaction is not read again", STORE + "Messages.swift",
     "            [revision, held.storedBytes, chat.rawValue, message.rawValue]\n        )\n        changes.histories.insert(chat)",
     "            [revision, held.storedBytes, chat.rawValue, message.rawValue]\n        )\n"
     "        if mutant != @ { changes.histories.insert(chat) }"),
    ("store: a push takes the own reaction away", STORE + "Messages.swift",
     "            if isPushed, let old =", "            if mutant != @, isPushed, let old ="),
]


def mutants():
    return [Mutant(name, [], file, old, new) for name, file, old, new in MUTANTS]


def noticed(number, first=SEED, runs=RUNS):
    """Returns the seed that failed, and how it failed. After a crash, the seed is None. If no seed failed, both are None."""
    environment = dict(os.environ, TAMBOUR_MUTANT=str(number), TAMBOUR_SEED=str(first), TAMBOUR_RUNS=str(runs))
    environment.pop("TAMBOUR_SOAK", None)
    run = subprocess.run(
        ["swift", "test", "--skip-build", "--disable-xctest", "--traits", "PostgreSQL,TLS",
         "--filter", "tambourTests.ScreenPlayTests/sequences"],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode == 0:
        return None, None
    found = re.search(r"TAMBOUR_SEED=(\d+): (.{0,60})(?:\n +(line \d+: .{0,60}))?", run.stdout[run.stdout.find("recorded an issue"):])
    return (int(found[1]), " ".join(filter(None, found.groups()[1:]))) if found else (None, "a crash")


def main():
    chosen = sorted({int(number) for number in sys.argv[1:]} or range(1, len(MUTANTS) + 1))
    missed = 0
    with switched(mutants()):
        subprocess.run(["swift", "build", "--build-tests", "--traits", "PostgreSQL,TLS"], cwd=ROOT, check=True, stdout=sys.stderr)
        print("| mutant: what is broken | noticed by |\n| --- | --- |", flush=True)
        for number in chosen:
            seed, how = noticed(number)
            _, alone = noticed(0, seed or SEED, 1 if seed else RUNS) if how else (None, None)
            if alone:
                sys.exit(f"red without any mutant: TAMBOUR_SEED={seed or SEED}: {alone}")
            missed += not how
            by = f"seed {seed}: `{how}`" if seed else how or "NOTHING"
            print(f"| {number}. {MUTANTS[number - 1][0]} | {by} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
