#!/usr/bin/env python3
"""Breaks the rules of entities on the device and on the server, one at a time, and prints the test that notices the mutant.

    Tests/mutants/entities.py            all mutants
    Tests/mutants/entities.py 4 7        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one short run for each mutant.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import os
import re
import subprocess
import sys

from switch import ROOT, Mutant, switched

ENTITIES = "Sources/TambourClient/Entities/"
CHANGE = ENTITIES + "EntityChange.swift"
LOCAL = ENTITIES + "LocalEntities.swift"
PUSH = ENTITIES + "LocalEntities+Push.swift"
PULL = ENTITIES + "LocalEntities+Pull.swift"
RECONCILE = ENTITIES + "LocalEntities+Reconcile.swift"
RESOLVE = ENTITIES + "LocalEntities+Resolve.swift"
CORE = ENTITIES + "EntitySync.swift"
CLIENT = "Sources/TambourClient/Client+Entities.swift"
VALUE = "Sources/TambourProtocol/Entities/FieldValue.swift"
RULES = "Sources/TambourMessenger/Rules/EntityRules.swift"
BATCH = "Sources/TambourMessenger/Rules/EntityBatch.swift"
HANDLER = "Sources/TambourMessenger/Handlers/EntitiesHandler.swift"
PURGER = "Sources/TambourMessenger/Handlers/EntityPurger.swift"
STORED = "Sources/TambourStore/Entities/StoredEntity.swift"
PAGE = "Sources/TambourStore/Entities/EntityPage.swift"
DELETION = "Sources/TambourStore/Entities/StoredEntities+Deletion.swift"

#: The stages of tests. The script runs them in order until a test fails: values, random play of devices, server, clients.
STAGES = [
    r"TambourClientTests\.Entity(Change|Pull|Push|Reply|Resolve|Restore)Tests|Entity(Rules|Batch)Tests|HonestTime|FieldValue",
    r"^EntityTests\.",
    r"Obj(Push|Pull)Tests|Entity(Page|Cascade|Value|Store)Tests",
    r"EntitySyncTests|EntityBelowDeletionTests",
    r"EntityClientTests",
]

# The fields: name, file, original text (found once), mutated text (@ is the mutant's number)
MUTANTS = [
    ("creation + deletion is a deletion", CHANGE,
     "            return nil\n        case (.update, .update):",
     "            guard mutant == @ else { return nil }\n            change.kind = .delete\n        case (.update, .update):"),
    ("deletion + creation keeps fields that were not created", CHANGE,
     "(base?.fields ?? [:]).patch(to: next.fields)",
     "mutant == @ ? next.fields : (base?.fields ?? [:]).patch(to: next.fields)"),
    ("the base of the second change counts", CHANGE,
     "        change.modified = next.modified\n",
     "        change.modified = next.modified\n        if mutant == @ { change.base = next.base }\n"),
    ("no field ever collides", CHANGE,
     "            return theirs != value && theirs",
     "            if mutant == @ { return false }\n            return theirs != value && theirs"),
    ("equal values collide", CHANGE,
     "            return theirs != value && theirs",
     "            return (mutant == @ || theirs != value) && theirs"),
    ("a change that the server already has is still pending", RECONCILE,
     "if update.change.isContained(in: server) { return .done }",
     "if mutant != @, update.change.isContained(in: server) { return .done }"),
    ("a lost batch is frozen anew", PUSH,
     "if sent.values.isEmpty { freeze() }",
     "if mutant == @ || sent.values.isEmpty { freeze() }"),
    ("two batches at once", PUSH,
     "guard !awaitsReply else { return Push(operations: [], rows: []) }",
     "guard !awaitsReply || mutant == @ else { return Push(operations: [], rows: []) }"),
    ("a batch without limit", PUSH,
     " where batch.count < schema.maxOperations",
     " where mutant == @ || batch.count < schema.maxOperations"),
    ("a child is pushed before its parent has an id", PUSH,
     "if let parent = candidate.parent, parent.isLocal,",
     "if mutant != @, let parent = candidate.parent, parent.isLocal,"),
    ("what is below a deletion is pushed", PUSH,
     "return open[parent]?.change.kind == .delete || isBelowDeletion(above)",
     "return (mutant != @ && open[parent]?.change.kind == .delete) || isBelowDeletion(above)"),
    ("creations in the order of their making", PUSH,
     "update.change.kind == .update ? 0 : depth",
     "mutant == @ || update.change.kind == .update ? 0 : depth"),
    ("what does not go with its parent is deleted after it", PUSH,
     "isBelowDeletion ? -depth",
     "isBelowDeletion ? (mutant == @ ? depth : -depth)"),
    ("creations before deletions", PUSH,
     "                        update.change.kind.rawValue,\n",
     "                        mutant == @ ? [1, 0, 2][update.change.kind.rawValue] : update.change.kind.rawValue,\n"),
    ("a waiting change keeps its old base", PUSH,
     "        open[row.id]?.change.base = copy\n",
     "        if mutant != @ { open[row.id]?.change.base = copy }\n"),
    ("what was done below a restored parent is dropped", PUSH,
     "at: next.change.modified)\n            } else {",
     "at: next.change.modified)\n                if mutant == @ { dropBelow(row.id) }\n            } else {"),
    ("changes below an accepted deletion stay", PUSH,
     "            } else {\n                dropBelow(row.id)\n            }",
     "            } else if mutant != @ {\n                dropBelow(row.id)\n            }"),
    ("a failed operation forgets what came after it", PUSH,
     "            update.change = change\n        }\n        if update.change.kind == .create, var row",
     "            if mutant != @ { update.change = change }\n        }\n        if update.change.kind == .create, var row"),
    ("the copy of a forgotten creation stays", PUSH,
     "            row.server = nil\n            put(row)\n",
     "            if mutant != @ { row.server = nil }\n            put(row)\n"),
    ("what follows a superseded change keeps its base", PUSH,
     "        next.change.base = server\n",
     "        if mutant != @ { next.change.base = server }\n"),
    ("a skipped change is dropped", PUSH,
     "        case .skipped, .replayed:\n            reopen(update, .pending)",
     "        case .skipped, .replayed:\n            if mutant == @ { open[update.id] = nil } else { reopen(update, .pending) }"),
    ("a refused change is tried for ever", PUSH,
     "open[id] == nil ? .conflict(.rejected(refusal)) : .pending",
     "mutant != @ && open[id] == nil ? .conflict(.rejected(refusal)) : .pending"),
    ("the database does not hear of counters", LOCAL,
     "            changes.append(.putCounters(counters))\n",
     "            if mutant != @ { changes.append(.putCounters(counters)) }\n"),
    ("the database hears only of the first row", LOCAL,
     "        entities.drain { id, row in\n",
     "        entities.drain { id, row in\n            if mutant == @, !changes.isEmpty { return }\n"),
    ("renaming forgets the children", RECONCILE,
     "            row.parent = id\n",
     "            if mutant != @ { row.parent = id }\n"),
    ("renaming forgets the open change", RECONCILE,
     "            update.id = id\n            open[id] = update\n",
     "            update.id = id\n            if mutant != @ { open[id] = update }\n"),
    ("no alias is kept", RECONCILE,
     "        aliases[local] = EntityAlias(local: local, server: id, since: now)\n",
     "        if mutant != @ { aliases[local] = EntityAlias(local: local, server: id, since: now) }\n"),
    ("renaming makes a new row of the screen", RECONCILE,
     "        row.id = id\n        row.server",
     "        row.id = id\n        if mutant == @ { row.uiKey = newUIKey() }\n        row.server"),
    ("an older copy replaces a newer one", PULL,
     "return copy.version > known.version ||",
     "return copy.version + (mutant == @ ? 9 : 0) > known.version ||"),
    ("what was thought deleted stays so", PULL,
     "let isBack = known.isDeleted && !copy.isDeleted",
     "let isBack = mutant != @ && known.isDeleted && !copy.isDeleted"),
    ("the own creation is not known again", PULL,
     "entities[copy.id] ?? creation(of: copy)",
     "entities[copy.id] ?? (mutant == @ ? nil : creation(of: copy))"),
    ("a full list deletes nothing", PULL,
     "for copy in sorted(missing.compactMap(\\.server)).reversed() { markDeleted(copy.id) }",
     "for copy in sorted(missing.compactMap(\\.server)).reversed() where mutant != @ { markDeleted(copy.id) }"),
    ("tombstones parents first", PULL,
     "for var tombstone in sorted(tombstones).reversed()",
     "for var tombstone in (mutant == @ ? sorted(tombstones) : sorted(tombstones).reversed())"),
    ("what waits for a parent waits for ever", PULL,
     "if !copy.isDeleted { unblock(child) }",
     "if mutant != @, !copy.isDeleted { unblock(child) }"),
    ("a duplicate stays when the other is deleted", PULL,
     "update.state = copy.isDeleted ? .pending : ",
     "update.state = mutant != @ && copy.isDeleted ? .pending : "),
    ("a frozen change is judged by a pull", RECONCILE,
     "let row = entities[id], sent[id] == nil, var update",
     "let row = entities[id], mutant == @ || sent[id] == nil, var update"),
    ("an update below a deleted parent is an ordinary conflict", RECONCILE,
     "            if isGone(row.parent) { return .conflict(.parentDeleted) }\n            return kind",
     "            if mutant != @, isGone(row.parent) { return .conflict(.parentDeleted) }\n            return kind"),
    ("a rebased change keeps its base", RECONCILE,
     "            update.change.base = base\n",
     "            if mutant != @ { update.change.base = base }\n"),
    ("creating anew moves what is in flight", RECONCILE,
     "row.server == nil, sent[child] == nil else { continue }",
     "row.server == nil, mutant == @ || sent[child] == nil else { continue }"),
    ("mine keeps its old base", RESOLVE,
     "            update.change.base = row.server\n",
     "            if mutant != @ { update.change.base = row.server }\n"),
    ("theirs of a duplicate leaves the local row", RESOLVE,
     "                rename(conflict.id, to: theirs.id, at: now)\n",
     "                if mutant != @ { rename(conflict.id, to: theirs.id, at: now) }\n"),
    ("an operation is done twice", RULES,
     "        if let known = situation.known {\n",
     "        if let known = situation.known, mutant != @ {\n"),
    ("cas does not compare", RULES,
     "        if operation.base == current.entity.version {\n",
     "        if operation.base == current.entity.version || (mutant == @ && operation.base > 0) {\n"),
    ("a deletion does not compare", RULES,
     "        if operation.base != current.entity.version {\n            switch",
     "        if mutant != @, operation.base != current.entity.version {\n            switch"),
    ("the time alone decides", STORED,
     "(modified, device) >= (other.modified, other.device)",
     "mutant == @ ? modified >= other.modified : (modified, device) >= (other.modified, other.device)"),
    ("changes from the future win", RULES,
     "return age <= 0 ? now : max(0, now - age)",
     "return age <= 0 && mutant != @ ? now : max(0, now - age)"),
    ("the clock of the device is believed", RULES,
     " ? now : max(0, now - age)",
     " ? now : mutant == @ ? min(now, modified) : max(0, now - age)"),
    ("time runs back", RULES,
     "max(stored.entity.modified, stamp.modified)",
     "mutant == @ ? stamp.modified : max(stored.entity.modified, stamp.modified)"),
    ("merge overwrites what others changed", RULES,
     "theirs.version > operation.base,",
     "theirs.version > operation.base &+ (mutant == @ ? 1 : 0),"),
    ("merge contests what the device has seen", RULES,
     "(mutant == 49 ? 1 : 0),",
     "(mutant == 49 ? 1 : mutant == @ ? -1 : 0),"),
    ("merge forgets when fields changed", RULES,
     "for name in fields.keys { stored.stamps[name] = stored.stamp }",
     "for name in fields.keys where mutant != @ { stored.stamps[name] = stored.stamp }"),
    ("the device is not told what was merged", RULES,
     "        applied.entity = stored.copy\n        applied.loser",
     "        if mutant != @ { applied.entity = stored.copy }\n        applied.loser"),
    ("the size is not checked after a merge", RULES,
     "        let stored = updated(current, with: fields, stamp)\n        if let flaw",
     "        let stored = updated(current, with: fields, stamp)\n        if mutant != @, let flaw"),
    ("an undeletion overwrites an unseen update", RULES,
     "if operation.base != current.entity.version - 1, kind.policy != .lww {",
     "if mutant != @, operation.base != current.entity.version - 1, kind.policy != .lww {"),
    ("an undeletion takes a natural key that is taken", RULES,
     "kind.deletion == .updateWins, situation.twin == nil else",
     "kind.deletion == .updateWins, mutant == @ || situation.twin == nil else"),
    ("two entities with one natural key", RULES,
     "if let twin = situation.twin { return .conflict(.duplicate, server: twin) }",
     "if mutant != @, let twin = situation.twin { return .conflict(.duplicate, server: twin) }"),
    ("a parent that is gone can have children", RULES,
     'case (.some, .gone): return .rejected(.parentDeleted, at: "/parent")',
     'case (.some, .gone) where mutant == @: break\n        case (.some, .gone): return .rejected(.parentDeleted, at: "/parent")'),
    ("a deletion leaves the version", RULES,
     "        stored.entity.isDeleted = true\n",
     "        stored.entity.isDeleted = true\n        if mutant == @ { stored.entity.version -= 1 }\n"),
    ("children of a failed creation are tried", BATCH,
     "                failed[operation.id] = operation.opID\n",
     "                if mutant != @ { failed[operation.id] = operation.opID }\n"),
    ("grandchildren of a failed creation are tried", BATCH,
     "            failed[operation.id] = opID\n",
     "            if mutant != @ { failed[operation.id] = opID }\n"),
    ("a batch in any order", BATCH,
     "        phase = operation.kind.rawValue\n",
     "        if mutant != @ { phase = operation.kind.rawValue }\n"),
    ("local ids are not resolved", BATCH,
     "            resolved.parent = id\n",
     "            if mutant != @ { resolved.parent = id }\n"),
    ("a NaN is unlike itself", VALUE,
     "left.bitPattern == right.bitPattern",
     "mutant == @ ? left == right : left.bitPattern == right.bitPattern"),
    ("a patch leaves what it removes", VALUE,
     "fields[name] = value == .null ? nil : value",
     "fields[name] = value == .null && mutant != @ ? nil : value"),
    # Mutants about data that a server or a file has lost.
    ("another state of the same version is no news", PULL,
     "let isOther = copy.modified != known.modified || isBack",
     "let isOther = (mutant != @ && copy.modified != known.modified) || isBack"),
    ("a change of another state of the same version is founded", RECONCILE,
     "|| server.modified != change.base?.modified",
     "|| (mutant != @ && server.modified != change.base?.modified)"),
    ("a change names a version that the server has lost", RECONCILE,
     "if let server = row.server, update.change.isUnfounded(on: server) {",
     "if mutant != @, let server = row.server, update.change.isUnfounded(on: server) {"),
    ("a deletion of what is lost is not judged again", RECONCILE,
     "return kind.policy.contest == .cas ? .conflict(.version) : .pending\n        case (.update, nil)",
     "return kind.policy.contest == .cas ? .conflict(.version) : mutant == @ ? .stays : .pending\n        case (.update, nil)"),
    ("what is frozen upon what is lost stays so", PULL,
     "        guard !awaitsReply else { return }\n",
     "        guard !awaitsReply, mutant != @ else { return }\n"),
    ("a frozen change is always thawed", PULL,
     "update.change.isUnfounded(on: server)\n            else",
     "mutant == @ || update.change.isUnfounded(on: server)\n            else"),
    ("elements of series stay when everything is pulled", CORE,
     "+ $0.evictElements()",
     "+ (mutant == @ ? [] : $0.evictElements())"),
    ("elements that wait are forgotten", PULL,
     "row.server != nil && open[row.id] == nil\n            && sent[row.id] == nil\n    }",
     "(mutant == @ || row.server != nil && open[row.id] == nil\n            && sent[row.id] == nil)\n    }"),
    ("elements outlive the tombstone above them", PULL,
     "if let element = entities[child], isIdleElement(element) { remove(child) }",
     "if mutant != @, let element = entities[child], isIdleElement(element) { remove(child) }"),
    ("a file's circle of parents is read", LOCAL,
     "return row.parent.flatMap { all[$0] }.map { $0.type == kind.parent } ?? true",
     "return mutant == @ || row.parent.flatMap { all[$0] }.map { $0.type == kind.parent } ?? true"),
    ("a file's change of nothing is read", LOCAL,
     "for update in rows.updates where known[update.id] != nil {",
     "for update in rows.updates where mutant == @ || known[update.id] != nil {"),
    ("a circle of parents is taken from the server", PULL,
     "if let parent = copy.parent, let above = entities[parent], above.type != kind.parent {",
     "if mutant != @, let parent = copy.parent, let above = entities[parent], above.type != kind.parent {"),
    ("an entity is taken that stands below itself", PULL,
     "            copy.parent != copy.id\n",
     "            mutant == @ || copy.parent != copy.id\n"),
    ("a new type is pulled behind the old mark", CORE,
     "        guard known != LocalEntities.knownTypes else { return }\n",
     "        guard known != LocalEntities.knownTypes, mutant != @ else { return }\n"),
    ("everything is pulled at every login", CORE,
     "let known: String? = try tx.value(of: .entityTypes)",
     "let known: String? = mutant == @ ? nil : try tx.value(of: .entityTypes)"),
    ("what is not shown does not wait", LOCAL,
     "sent.values.count + open.values.values.filter { $0.cause == nil }.count",
     "sent.values.count + open.values.values.filter { $0.cause == nil && (mutant != @ || $0.change.kind != .delete) }.count"),
    ("an answer that cannot be read is a failure of the store", CLIENT,
     'throw .unreadable(reason: "\\(error)")\n        }\n    }\n}',
     'throw mutant == @ ? .store(reason: "") : .unreadable(reason: "\\(error)")\n        }\n    }\n}'),
    # Mutants in the server's store and in its pages.
    ("a merge without a loss has a loser", RULES,
     "(current.stamps[name]?.version ?? 0) > operation.base\n",
     "mutant == @ || (current.stamps[name]?.version ?? 0) > operation.base\n"),
    ("what has the same value has a loser", RULES,
     "&& value != current.entity.fields[name, default: .null]\n            }\n        }\n    }",
     "&& (mutant == @ || value != current.entity.fields[name, default: .null])\n            }\n        }\n    }"),
    ("a page looks into what has no room", PAGE,
     "room >= 0 || page.entities.isEmpty else",
     "mutant == @ || room >= 0 || page.entities.isEmpty else"),
    ("a page without room is empty", PAGE,
     "room >= 0 || page.entities.isEmpty else",
     "room >= 0 || (mutant != @ && page.entities.isEmpty) else"),
    ("every page of everything has live entities alone", HANDLER,
     "isLive: isEverything && isFirst,",
     "isLive: isEverything && (isFirst || mutant == @),"),
    ("a page ends within the clock's last moment", HANDLER,
     "page.prefix { $0.place.position <= time }",
     "page.prefix { mutant == @ || $0.place.position <= time }"),
    ("answers without room are given", HANDLER,
     "case .tried where batch.room < 0:",
     "case .tried where batch.room < 0 && mutant != @:"),
    ("tombstones below one that is deleted are told to nobody", PURGER,
     "            changes.entities += tombstones\n",
     "            if mutant != @ { changes.entities += tombstones }\n"),
    ("what goes below one that is deleted is still counted", PURGER,
     "            changes.counts.live -= Int64(tombstones.count)\n",
     "            if mutant != @ { changes.counts.live -= Int64(tombstones.count) }\n"),
    ("only children go, not grandchildren", PURGER,
     "guard schema.isParent(kind.type) else { continue }",
     "guard mutant != @, schema.isParent(kind.type) else { continue }"),
    ("elements stay below one that is deleted", PURGER,
     "if kinds.contains(where: { $0.policy == .append }) {",
     "if mutant != @, kinds.contains(where: { $0.policy == .append }) {"),
    ("tombstones keep their fields", PURGER,
     "keepsFields: kind.deletion == .updateWins,",
     "keepsFields: mutant == @ || kind.deletion == .updateWins,"),
    ("a tombstone loses what may come back", DELETION,
     "            $0.bind(7, keepsFields)\n",
     "            $0.bind(7, keepsFields && mutant != @)\n"),
    ("a deletion sets the time of an entity back", DELETION,
     "            $0.bind(4, stamp.modified)\n",
     "            $0.bind(4, mutant == @ ? 0 : stamp.modified)\n"),
    ("any depth of values", VALUE,
     "return isModest(depth: 8, &left)",
     "return isModest(depth: mutant == @ ? 100 : 8, &left)"),
]


def mutants():
    return [Mutant(name, [], file, old, new) for name, file, old, new in MUTANTS]


def noticed(number):
    """Returns the first test of all stages that failed with this mutant; None if all tests passed."""
    return next((test for tests in STAGES if (test := red(number, tests))), None)


def red(number, tests):
    """Returns the first of these tests that failed with this mutant; None if all tests passed."""
    try:
        run = subprocess.run(
            ["swift", "test", "--skip-build", "--disable-xctest", "--traits", "PostgreSQL,TLS",
             "--filter", tests],
            cwd=ROOT,
            env=os.environ | {"TAMBOUR_MUTANT": str(number)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        return "tests that do not end"
    if run.returncode == 0:
        return None
    failed = re.search(r'^✘ Test (?:"(.*?)"|(\S+)) recorded', run.stdout, re.M)
    return (failed[1] or failed[2]) if failed else "a crash"


def main():
    chosen = [int(word) for word in sys.argv[1:]] or range(1, len(MUTANTS) + 1)
    with switched(mutants(), "Sources/TambourProtocol"):
        build = ["swift", "build", "--build-tests", "--traits", "PostgreSQL,TLS"]
        if subprocess.run(build, cwd=ROOT).returncode:
            sys.exit("the mutants do not compile")
        if test := noticed(0):
            sys.exit(f"red without a mutant: {test}")
        survivors = 0
        print("| mutant: what is broken | noticed by |\n| --- | --- |")
        for number in chosen:
            test = noticed(number)
            survivors += test is None
            print(f"| {number}. {MUTANTS[number - 1][0]} | {test or 'NOTHING'} |", flush=True)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
