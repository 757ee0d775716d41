#!/usr/bin/env python3
"""Breaks client and server in twenty-five places, one at a time, and runs the simulation, which must notice every mutant.

    Tests/mutants/simulation.py            all mutants
    Tests/mutants/simulation.py 4 7        these two

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

CLIENT = "Sources/TambourClient/"
MESSENGER = "Sources/TambourMessenger/"
GATEWAY = "Sources/TambourGateway/"
STORE = "Sources/TambourStore/"
#: The script plays these seeds for each mutant until one fails. TAMBOUR_SEED is the first seed, TAMBOUR_RUNS their number.
SEED, RUNS = int(os.environ.get("TAMBOUR_SEED", 7_000_000)), int(os.environ.get("TAMBOUR_RUNS", 2000))
# The fields: name, file, original text (found once), mutated text (@ is the mutant's number)
MUTANTS = [
    ("client: a message takes another cid at each attempt", CLIENT + "Tasks/MessageTasks.swift",
     "                cid: cid,\n                text: text.isEmpty",
     "                cid: mutant == @ ? -Int64.random(in: 1...(1 << 60)) : cid,\n                text: text.isEmpty"),
    ("client: what a login left out is not asked for", CLIENT + "Sync/ClientCore+Login.swift",
     "        guard let range = try tx.nextRange() else",
     "        guard mutant != @, let range = try tx.nextRange() else"),
    ("client: the mark of the next login is taken from a push", CLIENT + "Sync/ClientCore+Pushes.swift",
     "        if let mark = push.mark {",
     "        if mutant == @ { try tx.set(.chatsMark, push.message.time + 60_000) }\n        if let mark = push.mark {"),
    ("client: the newest message proves the future", CLIENT + "History/ClientCore+History.swift",
     "            after: previous.map { Position($0.rawValue) },\n            safeTimeMs: safe\n",
     "            after: previous.map { Position($0.rawValue) },\n"
     "            safeTimeMs: mutant == @ ? 4_000_000_000_000 : safe\n"),
    ("client: a task that ran when its process died is lost", CLIENT + "Tasks/ClientCore+Tasks.swift",
     "        let (me, now) = (owner, environment.wallMs())\n",
     "        if mutant == @ { try tx.execute(\"DELETE FROM task WHERE state = 'running'\") }\n"
     "        let (me, now) = (owner, environment.wallMs())\n"),
    ("client: deletions are forgotten", CLIENT + "Sync/ClientCore+Pushes.swift",
     "                try forget(push.messageIDs, in: push.chatID, tx)",
     "                if mutant != @ { try forget(push.messageIDs, in: push.chatID, tx) }"),
    ("client: what became of messages meanwhile is not asked", CLIENT + "History/ClientCore+History.swift",
     "        guard let asked = try tx.chatRow(chat)?.changes else { return }",
     "        guard mutant != @, let asked = try tx.chatRow(chat)?.changes else { return }"),
    ("client: tasks of a chat do not wait for each other", CLIENT + "Tasks/ClientCore+Tasks.swift",
     "            lane: task.lane,", "            lane: mutant == @ ? nil : task.lane,"),
    ("client: a pushed message is taken for the first one", CLIENT + "Sync/ClientCore+Pushes.swift",
     "                after: .known(push.prevMessageID),",
     "                after: .known(mutant == @ ? nil : push.prevMessageID),"),
    ("client: a page is taken for the last one", CLIENT + "History/ClientCore+History.swift",
     "screens[looker]?.reader.answered(request, found: found, more: reply.more)",
     "screens[looker]?.reader.answered(request, found: found, more: mutant == @ ? false : reply.more)"),
    ("client: edits are forgotten", CLIENT + "Sync/ClientCore+Pushes.swift",
     "        case .edited: try learnEdit(of: push.message, in: chat, tx)",
     "        case .edited: if mutant != @ { try learnEdit(of: push.message, in: chat, tx) }"),
    ("client: an answer is believed over what was pushed since", CLIENT + "Sync/Subject.swift",
     "        learnedAt[subject, default: 0] <= asked + 1 && !tx.hasLearned(subject)",
     "        mutant == @ || learnedAt[subject, default: 0] <= asked + 1 && !tx.hasLearned(subject)"),
    ("server: a cid is forgotten", MESSENGER + "Handlers/MessagesHandler.swift",
     "        if let chat = target.chat,\n            let first = try tx.sent(",
     "        if mutant != @, let chat = target.chat,\n            let first = try tx.sent("),
    ("server: pushes of a login are dropped", GATEWAY + "Outbox.swift",
     "        heldPushBytes += packet.count\n",
     "        if mutant == @ { return }\n        heldPushBytes += packet.count\n"),
    ("server: replies leave before the events of their batch", MESSENGER + "Engine/Engine.swift",
     "            router.route(result.events)\n"
     "            for (command, answer) in zip(commands, result.answers) {\n",
     "            if mutant != @ { router.route(result.events) }\n"
     "            defer { if mutant == @ { router.route(result.events.reversed()) } }\n"
     "            for (command, answer) in zip(commands, result.answers) {\n"),
    ("server: the time of a login runs ahead", MESSENGER + "Messenger.swift",
     "                time: safeTime,\n                on: store\n            )\n            return rest(of: answer,",
     "                time: mutant == @ ? safeTime + 2000 : safeTime,\n                on: store\n            )\n"
     "            return rest(of: answer,"),
    ("server: a message moves nobody's clock", STORE + "Messages/Messages+Writing.swift",
     "        touch(chat)\n        touch(member, in: chat)\n        return (record, previous)",
     "        if mutant != @ { touch(chat) }\n        touch(member, in: chat)\n        return (record, previous)"),
    ("server: a slow reader is spared some pushes", GATEWAY + "Session.swift",
     "            pending + packet.count > limits.maxOutboundPushBytes\n        {\n"
     "            return closeSlowReader()",
     "            pending + packet.count > limits.maxOutboundPushBytes\n        {\n"
     "            if mutant == @ { return }\n            return closeSlowReader()"),
    ("server: the lease of the clock is forgotten over a restart", STORE + "Core/StoreWriter.swift",
     "StoreConnection.leaseKey) { return leaseEnd }",
     "StoreConnection.leaseKey) { return mutant == @ ? 0 : leaseEnd }"),
    ("server: a restored backup is not told of", STORE + "Core/StoreConnection.swift",
     "            try meta.set(Self.restoredKey, end)",
     "            if mutant != @ { try meta.set(Self.restoredKey, end) }"),
    ("client: a change of an entity gives way without a word", CLIENT + "Entities/LocalEntities+Push.swift",
     "            reopen(update, .conflict(.version))\n",
     "            if mutant != @ { reopen(update, .conflict(.version)) }\n"),
    ("client: what needs an entity that was refused goes with it", CLIENT + "Entities/LocalEntities+Push.swift",
     "        case .skipped, .replayed:\n            reopen(update, .pending)",
     "        case .skipped, .replayed:\n            if mutant == @ { forget(id) } else { reopen(update, .pending) }"),
    ("client: what other devices do to entities is not heard", CLIENT + "Entities/EntitySync.swift",
     "        let told = try push.objects.map { try Entity($0) }",
     "        if mutant == @ { return }\n        let told = try push.objects.map { try Entity($0) }"),
    ("server: any base of an entity will do", MESSENGER + "Rules/EntityRules.swift",
     "        if operation.base == current.entity.version {",
     "        if mutant == @ || operation.base == current.entity.version {"),
    ("client: what an own device pushed before an answer is forgotten", CLIENT + "Sync/Subject.swift",
     "        guard isCurrent(subject, since: tasks.asked.transactions, tx) else {",
     "        guard mutant == @ || isCurrent(subject, since: tasks.asked.transactions, tx) else {"),
]


def mutants():
    return [Mutant(name, [], file, old, new) for name, file, old, new in MUTANTS]


def noticed(number, first=SEED, runs=RUNS):
    """Returns the seed that failed, and how it failed. After a crash, the seed is None. If no seed failed, both are None."""
    environment = dict(os.environ, TAMBOUR_MUTANT=str(number), TAMBOUR_SEED=str(first), TAMBOUR_RUNS=str(runs))
    environment.pop("TAMBOUR_SOAK", None)
    run = subprocess.run(
        ["swift", "test", "--skip-build", "--disable-xctest", "--traits", "PostgreSQL,TLS",
         "--filter", "SimulationTests.SimulationTests/converge"],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode == 0:
        return None, None
    found = re.search(r"↳ TAMBOUR_SEED=(\d+): (.{0,110})", run.stdout)
    return (int(found[1]), found[2]) if found else (None, "a crash")


def main():
    chosen = sorted({int(number) for number in sys.argv[1:]} or range(1, len(MUTANTS) + 1))
    missed = 0
    # All mutated modules import the module that gets the switch.
    with switched(mutants(), module="Sources/TambourProtocol"):
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
