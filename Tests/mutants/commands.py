#!/usr/bin/env python3
"""Breaks the server in eight places, one at a time, and kills it under a load of all commands. The test must notice every mutant.

    Tests/mutants/commands.py            all mutants
    Tests/mutants/commands.py 1 4        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one run for each mutant.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import os
import re
import subprocess
import sys

from switch import ROOT, Mutant, switched

MESSENGER = "Sources/TambourMessenger/"
STORE = "Sources/TambourStore/"
#: The number of kills for each mutant; TAMBOUR_KILLS sets another number.
KILLS = int(os.environ.get("TAMBOUR_KILLS", 30))
# The fields: name, file, original text (found once), mutated text (@ is the mutant's number)
MUTANTS = [
    ("answers leave before the commit", MESSENGER + "Engine/EngineCore.swift",
     "            let events = counters + (try writer.commit())\n            clock.end(committed: true)\n",
     "            if mutant == @ {\n"
     "                for (command, answer) in zip(commands, answers) { command.done(answer) }\n"
     "                answers = []\n"
     "            }\n"
     "            let events = counters + (try writer.commit())\n            clock.end(committed: true)\n"),
    ("one batch of seven is answered and not committed", MESSENGER + "Engine/EngineCore.swift",
     "            guard tx.writes > 0 else {\n                writer.finishUnwritten()\n",
     "            if mutant == @, tx.writes > 0, Int.random(in: 0..<7) == 0 {\n"
     "                writer.rollback()\n"
     "                clock.end(committed: false)\n"
     "                return Result(answers: answers, events: [])\n"
     "            }\n"
     "            guard tx.writes > 0 else {\n                writer.finishUnwritten()\n"),
    ("a token outlives its LOGOUT", MESSENGER + "Handlers/AuthHandler.swift",
     "        try tx.closeSessions([caller.sessionID], of: caller.userID)\n",
     "        if mutant != @ { try tx.closeSessions([caller.sessionID], of: caller.userID) }\n"),
    ("tokens outlive SESSIONS_CLOSE", MESSENGER + "Handlers/AuthHandler.swift",
     "        try tx.closeAllSessions(of: caller.userID, except: caller.sessionID)\n",
     "        if mutant != @ { try tx.closeAllSessions(of: caller.userID, except: caller.sessionID) }\n"),
    ("a cid is forgotten", MESSENGER + "Handlers/MessagesHandler.swift",
     "        if let chat = target.chat,\n            let first = try tx.sent(",
     "        if mutant != @, let chat = target.chat,\n            let first = try tx.sent("),
    ("the operation of an entity is forgotten", MESSENGER + "Handlers/EntitiesHandler.swift",
     "        if let reply = try tx.reader.entityReply(\n            to: operation.opID,",
     "        if mutant != @, let reply = try tx.reader.entityReply(\n            to: operation.opID,"),
    ("read marks stay in memory", STORE + "Messages/Messages+Writing.swift",
     "        member.setRead(time: time, number: number)\n        save(.marks, of: member, in: chat)\n",
     "        member.setRead(time: time, number: number)\n        if mutant != @ { save(.marks, of: member, in: chat) }\n"),
    ("a code is good for ever", MESSENGER + "Handlers/AuthHandler.swift",
     "            guard !account.isBlocked else { throw RequestError.loginBlocked }\n"
     "            try tx.spendLoginCode(tokenHash: tokenHash)\n",
     "            guard !account.isBlocked else { throw RequestError.loginBlocked }\n"
     "            if mutant != @ { try tx.spendLoginCode(tokenHash: tokenHash) }\n"),
]


def mutants():
    return [Mutant(name, [], file, old, new) for name, file, old, new in MUTANTS]


def noticed(number):
    """Returns how the test failed with this mutant; None if the test passed."""
    environment = dict(os.environ, TAMBOUR_MUTANT=str(number), TAMBOUR_KILLS=str(KILLS))
    run = subprocess.run(
        ["swift", "test", "--skip-build", "--disable-xctest", "--traits", "PostgreSQL,TLS",
         "--filter", "SystemTests.CommandCrashTests/kill"],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode == 0:
        return None
    found = re.search(r"TAMBOUR_SEED=\d+, (after kill \d+: .{0,110})", run.stdout)
    return found[1] if found else "a crash"


def main():
    chosen = sorted({int(number) for number in sys.argv[1:]} or range(1, len(MUTANTS) + 1))
    missed = 0
    with switched(mutants(), module="Sources/TambourStore"):
        subprocess.run(["swift", "build", "--build-tests", "--traits", "PostgreSQL,TLS"], cwd=ROOT, check=True, stdout=sys.stderr)
        if alone := noticed(0):
            sys.exit(f"red without any mutant: {alone}")
        print("| mutant: what is broken | noticed |\n| --- | --- |", flush=True)
        for number in chosen:
            how = noticed(number)
            missed += not how
            print(f"| {number}. {MUTANTS[number - 1][0]} | {f'`{how}`' if how else 'NOTHING'} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
