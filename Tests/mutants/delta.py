#!/usr/bin/env python3
"""Removes each write that login deltas depend on, one at a time, and runs the tests that must notice it.

    Tests/mutants/delta.py            all mutants
    Tests/mutants/delta.py 4 7        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one short run for each mutant.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import os
import re
import subprocess
import sys

from switch import ROOT, Mutant, switched

STORE = "Sources/TambourStore/"
CLOCK = STORE + "Core/CommitClock.swift"
BATCH = STORE + "Core/WriteTransaction.swift"
CHATS = STORE + "Chats/Chats+Writing.swift"
MESSAGES = STORE + "Messages/Messages+Writing.swift"
MEMBERS = STORE + "Chats/Members+Writing.swift"
CONTACTS = STORE + "Accounts/Contacts+Writing.swift"
POLLS = STORE + "Messages/Polls.swift"
DRAFTS = STORE + "Messages/Drafts.swift"
ERASURE = STORE + "Accounts/Erasure.swift"
MORE = "Sources/TambourMessenger/Sync/SyncMore.swift"
# The fields: name, file, original text (found once), mutated text (@ is the mutant's number), reason.
# A reason is given only if another write does the same as the removed write. No test can notice such a mutant.
MUTANTS = [
    ("append: the members of the chat",
     MESSAGES, "        touch(chat)\n        touch(member, in: chat)\n        return (record, previous)",
     "        if mutant != @ { touch(chat) }\n        touch(member, in: chat)\n"
     "        return (record, previous)", None),
    ("append: the sender's row",
     MESSAGES, "        touch(member, in: chat)\n        return (record, previous)",
     "        if mutant != @ { touch(member, in: chat) }\n        return (record, previous)", None),
    ("edit: the members of the chat",
     MESSAGES, "        touch(chat)\n        return edited",
     "        if mutant != @ { touch(chat) }\n        return edited", None),
    ("remove: the members of the chat",
     MESSAGES, "        try noteRemoved(records.map(\\.id), from: chat)\n        touch(chat)\n    }",
     "        try noteRemoved(records.map(\\.id), from: chat)\n        if mutant != @ { touch(chat) }\n    }", None),
    ("hide: the member's row",
     MESSAGES, "            }\n        }\n        touch(member, in: chat)\n    }",
     "            }\n        }\n        if mutant != @ { touch(member, in: chat) }\n    }", None),
    ("setRead: the reader's row",
     MESSAGES, "        save(.marks, of: member, in: chat)\n        touch(member, in: chat)",
     "        save(.marks, of: member, in: chat)\n"
     "        if mutant != @ { touch(member, in: chat) }", None),
    ("setShown: the other members",
     MESSAGES, "        for other in chat.members.values where other !== member {",
     "        for other in chat.members.values where other !== member && mutant != @ {", None),
    ("touch: the clock of a big chat",
     CHATS, "            chat.changeClock = ct\n", "            if mutant != @ { chat.changeClock = ct }\n", None),
    ("touch: a big chat is noted for the write-back",
     CHATS, "                touched.append(chat)\n",
     "                if mutant != @ { touched.append(chat) }\n", None),
    ("touch: every member of a small chat",
     CHATS, "            for member in chat.members.values { touch(member, in: chat) }",
     "            for member in chat.members.values where mutant != @ { touch(member, in: chat) }",
     None),
    ("touch: the clock of a member",
     CHATS, "        member.touch(ct)\n", "        if mutant != @ { member.touch(ct) }\n", None),
    ("touch: a member is noted for the write-back",
     CHATS, "        save(.clock, of: member, in: chat)\n",
     "        if mutant != @ { save(.clock, of: member, in: chat) }\n", None),
    ("create: the members' rows",
     CHATS, "        for member in members.values { save(.row, of: member, in: chat) }",
     "        for member in members.values where mutant != @ { save(.row, of: member, in: chat) }",
     None),
    ("create: a member's clock",
     CHATS, "                ct: ct,\n", "                ct: mutant == @ ? 0 : ct,\n", None),
    ("create: the clock of the chat",
     CHATS, "            $0.bind(9, ct)", "            $0.bind(9, mutant == @ ? 0 : ct)",
     "nothing can: the members' own clocks, written with it, say the same"),
    ("create: the contact's clock",
     CONTACTS, "                $0.bind(2, user.rawValue)\n                $0.bind(3, ct)",
     "                $0.bind(2, user.rawValue)\n                $0.bind(3, mutant == @ ? 1 : ct)", None),
    ("create: each is a contact of the other",
     CONTACTS, "            try store.contacts.addPartner.run {",
     "            if mutant == @ { continue }\n            try store.contacts.addPartner.run {", None),
    ("block: the contacts of others",
     CONTACTS, "        try store.contacts.touch.run {",
     "        if mutant == @ { return }\n        try store.contacts.touch.run {", None),
    ("contact: whoever sees the phone of who added them",
     CONTACTS, "        if contact.isAdded != known.isAdded {",
     "        if contact.isAdded != known.isAdded, mutant != @ {", None),
    ("contact: its clock",
     CONTACTS, "            $0.bind(8, ct)",
     "            $0.bind(8, mutant == @ ? known.changed : ct)", None),
    ("write-back: a member's clock",
     STORE + "Chats/MemberStatements.swift", 'setClock = try sql.prepare("UPDATE member SET ct = $3 WHERE',
     'setClock = try sql.prepare("UPDATE member SET ct = \\(mutant == @ ? "CASE WHEN $3 > 0 THEN ct END" : "$3") WHERE',
     None),
    ("write-back: the clock of a big chat",
     BATCH, "            try store.chats.setClock.run {",
     "            if mutant == @ { chat.isClockDirty = false; continue }\n"
     "            try store.chats.setClock.run {", None),
    ("rollback: the cached chats go",
     BATCH, "    func abandon() {\n        events = []\n        told = []\n        writes = 0\n        chats = [:]\n",
     "    func abandon() {\n        events = []\n        told = []\n        writes = 0\n"
     "        if mutant != @ { chats = [:] }\n", None),
    ("rollback: what waited for the write-back goes",
     BATCH, "        dirtyMembers = []\n", "        if mutant != @ { dirtyMembers = [] }\n", None),
    ("commit: the end of the lease on disk",
     STORE + "Core/StoreWriter.swift", '        try connection.meta.set(StoreConnection.leaseKey, leaseEnd)',
     '        try connection.meta.set(StoreConnection.leaseKey, mutant == @ ? transaction.ct - 1 : leaseEnd)', None),
    ("clock: never below the last commit",
     CLOCK, "            let ct = max(wall, state.last)",
     "            let ct = mutant == @ ? wall : max(wall, state.last)", None),
    ("clock: a time is below the next commit",
     CLOCK, "            return min(state.last - 1, state.leaseEnd)",
     "            return min(state.last - (mutant == @ ? 0 : 1), state.leaseEnd)", None),
    ("clock: a time is below the commit in flight",
     CLOCK, "            if let stamp = state.inFlight { return min(stamp.ct - 1, state.leaseEnd) }",
     "            if let stamp = state.inFlight, mutant != @ { return min(stamp.ct - 1, state.leaseEnd) }", None),
    ("clock: a time stays within the lease",
     CLOCK, "            return min(state.last - (mutant",
     "            if mutant == @ { return state.last - 1 }\n"
     "            return min(state.last - (mutant", None),
    ("clock: a restart begins above the lease",
     CLOCK, "persistedLeaseEnd + 1\n", "persistedLeaseEnd + (mutant == @ ? -lease : 1)\n", None),
    ("clock: above it, not at its end",
     CLOCK, "-lease : 1)\n", "-lease : mutant == @ ? 0 : 1)\n", None),
    ("clock: a time read from the wall binds the next commit",
     CLOCK, "            state.last = max(state.last, wall)\n            ",
     "            if mutant != @ { state.last = max(state.last, wall) }\n"
     "            if mutant == @ { return min(max(state.last, wall) - 1, state.leaseEnd) }\n"
     "            ", None),
    ("delta: big chats are joined",
     STORE + "Chats/Chats+Reading.swift", "        return small + big",
     "        return small + (mutant == @ ? [] : big)", None),
    ("add: the tombstone goes",
     MEMBERS, "        try store.members.revive.all {",
     "        if mutant == @ { return nil }\n        return try store.members.revive.all {", None),
    ("remove: the tombstone",
     MEMBERS, "                $0.bind(4, member.joined)\n                $0.bind(5, ct)\n            }\n",
     "                $0.bind(4, member.joined)\n                $0.bind(5, ct)\n            }\n"
     "            if mutant == @ { _ = try revive(id, in: chat) }\n", None),
    ("add: the members of a chat that has become big, on disk",
     MEMBERS, "        try store.members.makeBig.run { $0.bind(1, chat.key.rawValue) }\n",
     "        if mutant != @ { try store.members.makeBig.run { $0.bind(1, chat.key.rawValue) } }\n", None),
    ("add: a chat that has become big, in memory",
     MEMBERS, "        chat.makeBig()\n", "        if mutant != @ { chat.makeBig() }\n", None),
    ("rights: the members of the chat",
     MEMBERS, "        member.setPermissions(permissions)\n        touch(chat)",
     "        member.setPermissions(permissions)\n        if mutant != @ { touch(chat) }", None),
    ("title, description and the like: the members of the chat",
     MEMBERS, "        chat.set(details)\n        touch(chat)",
     "        chat.set(details)\n        if mutant != @ { touch(chat) }", None),
    ("clear: the member's row",
     MEMBERS, "        touch(member, in: chat)\n        try raiseRead",
     "        if mutant != @ { touch(member, in: chat) }\n        try raiseRead", None),
    ("clear: the member's floor in memory",
     MEMBERS, "        member.setFloor(floor)\n", "        if mutant != @ { member.setFloor(floor) }\n", None),
    ("react: the members of the chat",
     STORE + "Messages/Reactions.swift", "            $0.bind(4, ct)\n        }\n        touch(chat)",
     "            $0.bind(4, ct)\n        }\n        if mutant != @ { touch(chat) }", None),
    ("draft: its clock when it is saved again",
     DRAFTS, "ct = excluded.ct, saved", 'ct = \\(mutant == @ ? "draft.ct" : "excluded.ct"), saved', None),
    ("draft: its clock when it is thrown away",
     DRAFTS, "SET ct = $3, saved = 0", 'SET ct = \\(mutant == @ ? "$3 - $3 + ct" : "$3"), saved = 0', None),
    ("draft: its clock when its dialog begins",
     CHATS, "        if let pair, pair.low != pair.high {", "        if mutant != @, let pair, pair.low != pair.high {", None),
    ("draft: gone with a chat that is left",
     MEMBERS, "            try discardDraft(of: id, for: .group(chat.key))\n",
     "            if mutant != @ { try discardDraft(of: id, for: .group(chat.key)) }\n", None),
    ("folder: its mark when it changes",
     STORE + "Chats/Folders.swift", "updated = excluded.updated",
     'updated = \\(mutant == @ ? "folder.updated" : "excluded.updated")', None),
    ("remove many: the members of the chat",
     MESSAGES, "        touch(chat)\n        return removed",
     "        if mutant != @ { touch(chat) }\n        return removed", None),
    ("erase: the partners' contacts",
     ERASURE, "        try store.erasure.forgetContacts.run {\n            $0.bind(1, account.id.rawValue)\n",
     "        try store.erasure.forgetContacts.run {\n            $0.bind(1, mutant == @ ? 0 : account.id.rawValue)\n", None),
    ("another phone: the partners' contacts",
     ERASURE, "        try touchContacts(of: user)", "        if mutant != @ { try touchContacts(of: user) }", None),
    ("scheduled: the sender's row",
     STORE + "Messages/Delayed.swift", "        try statement.run()\n        touch(member, in: chat)",
     "        try statement.run()\n        if mutant != @ { touch(member, in: chat) }", None),
    ("scheduled: the chat's time when it changes twice in a millisecond",
     STORE + "Messages/Delayed.swift", "THEN CAST($3 AS bigint) ELSE delayed_updated + 1 END",
     'THEN CAST($3 AS bigint) ELSE delayed_updated + \\(mutant == @ ? 0 : 1) END', None),
    ("scheduled: what waits when its dialog begins",
     CHATS, "        if let pair { try showDelayed", "        if mutant != @, let pair { try showDelayed", None),
    ("scheduled: gone with a chat that is left",
     MEMBERS, "            try forgetDelayed(of: id, for: .group(chat.key))\n",
     "            if mutant != @ { try forgetDelayed(of: id, for: .group(chat.key)) }\n", None),
    ("vote: the members of the chat",
     POLLS, "        touch(chat)\n        return changed",
     "        if mutant != @ { touch(chat) }\n        return changed", None),
    ("vote: the poll of the message",
     POLLS, "        try store.polls.setState.run {\n            $0.bind(1, record.chat.rawValue)\n",
     "        try store.polls.setState.run {\n            $0.bind(1, mutant == @ ? 0 : record.chat.rawValue)\n", None),
    ("vote: who chose what",
     POLLS, "        for answer in added {", "        for answer in added where mutant != @ {", None),
    ("vote: what was chosen before",
     POLLS, "        for answer in dropped { try write(store.polls.drop, answer, user, record) }",
     "        for answer in dropped where mutant != @ { try write(store.polls.drop, answer, user, record) }", None),
    ("edit: the votes of a poll that is replaced",
     MESSAGES, "            try dropVotes(in: old.id, of: old.chat)",
     "            if mutant != @ { try dropVotes(in: old.id, of: old.chat) }", None),
    ("put away: the member's row",
     MEMBERS, "        member.setHidden(number)\n        touch(member, in: chat)\n",
     "        member.setHidden(number)\n        if mutant != @ { touch(member, in: chat) }\n", None),
    ("put away: how far, on disk",
     MEMBERS, "            $0.bind(3, number)\n        }\n        member.setHidden",
     "            $0.bind(3, mutant == @ ? 0 : number)\n        }\n        member.setHidden", None),
    ("end: the tombstones",
     MEMBERS, "        try store.members.buryAll.run {\n            $0.bind(1, chat.key.rawValue)\n",
     "        try store.members.buryAll.run {\n            $0.bind(1, mutant == @ ? 0 : chat.key.rawValue)\n", None),
    ("end: what people had begun to write",
     MEMBERS, "        try discardDrafts(for: .group(chat.key))",
     "        if mutant != @ { try discardDrafts(for: .group(chat.key)) }", None),
    ("end: what people had scheduled",
     MEMBERS, "        try forgetDelayed(for: .group(chat.key))",
     "        if mutant != @ { try forgetDelayed(for: .group(chat.key)) }", None),
    ("changes: an edit",
     STORE + "Messages/MessageStatements.swift", "SET status = 1, updated = $8, changed = $3,",
     "SET status = 1, updated = $8, changed = CASE WHEN \\(mutant) = @ THEN changed ELSE $3 END,", None),
    ("changes: a removal",
     STORE + "Messages/MessageStatements.swift", "SET status = 2, updated = $3, changed = $3,",
     "SET status = 2, updated = $3, changed = CASE WHEN \\(mutant) = @ THEN changed ELSE $3 END,", None),
    ("changes: what is hidden",
     MESSAGES, "                $0.bind(4, ct)\n", "                $0.bind(4, mutant == @ ? 0 : ct)\n", None),
    ("changes: a vote",
     POLLS, "SET attaches = $3, changed = $4, updated = $5",
     "SET attaches = $3, changed = CASE WHEN \\(mutant) = @ THEN changed ELSE $4 END, updated = $5", None),
    ("changes: a reaction",
     STORE + "Messages/Reactions.swift", "SET reactions = $3, changed = $4 WHERE",
     "SET reactions = $3, changed = CASE WHEN \\(mutant) = @ THEN changed ELSE $4 END WHERE", None),
    ("more: the rest of a commit",
     MORE, "        return (try read(cut - 1, cut, .max), cut - 1)",
     "        return (mutant == @ ? found : try read(cut - 1, cut, .max), cut - 1)", None),
    ("more: of chats that are there and those that are left, what is not known of one",
     MORE, "let unknown = max(views.rest, left.rest)",
     "let unknown = mutant == @ ? min(views.rest, left.rest) : max(views.rest, left.rest)", None),
    ("more: big chats behind the range",
     STORE + "Chats/Chats+Reading.swift", "            $0.bind(3, end)\n        } read: {",
     "            $0.bind(3, mutant == @ ? .max : end)\n        } read: {", None),
]


# Suites for events that are too rare in random sequences. The values are the names of the suites in the output.
BESIDE = {
    "ContactUpdateTests": "CONTACT_UPDATE",
    "DelayedTests": "Scheduled messages",
    "PollStoreTests": "Polls in the store",
    "ChannelStoreTests": "Channels",
    "ChatStoreTests": "Chats, their members",
    "ChatChangesTests": "CHAT_CHANGES (1030)",
}


def mutants():
    return [Mutant(name, [], file, old, new) for name, file, old, new, _ in MUTANTS]


def tests(number):
    """Returns the sequences and tests that noticed the mutant; an empty list if nothing noticed it."""
    environment = dict(os.environ, TAMBOUR_MUTANT=str(number))
    for name in ("TAMBOUR_SEED", "TAMBOUR_SOAK"):
        environment.pop(name, None)
    run = subprocess.run(
        ["swift", "test", "--skip-build", "--disable-xctest",
         "--filter", "|".join(["DeltaEqualsFreshTests", "CommitClockTests", *BESIDE])],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode == 0:
        return []
    noticed = [f"sequence {seed}" for seed in re.findall(r"TAMBOUR_SEED=(\d+): ", run.stdout)]
    if re.search(r"✘ Test \"contacts", run.stdout):
        noticed.append("contacts in parts")
    if re.search(r"✘ Test \"a chat is in", run.stdout):
        noticed.append("new chats")
    if re.search(r"✘ Test \"a time handed out", run.stdout):
        noticed.append("walls")
    if re.search(r"✘ Test \"no commit at or below", run.stdout):
        noticed.append("races")
    for suite, title in BESIDE.items():
        if re.search(rf'✘ Suite "{re.escape(title)}', run.stdout):
            noticed.append(suite)
    return noticed or ["a crash"]


def main():
    chosen = {int(number) for number in sys.argv[1:]} or set(range(len(MUTANTS) + 1))
    unexpected = 0
    with switched(mutants(), module=STORE):
        subprocess.run(["swift", "build", "--build-tests"], cwd=ROOT, check=True,
                       stdout=sys.stderr)
        print("| mutant: what is removed | noticed by |\n| --- | --- |", flush=True)
        for number in sorted(chosen):
            if number == 0:
                if noticed := tests(0):
                    sys.exit(f"red without any mutant: {noticed}")
                continue
            name, _, _, _, covered = MUTANTS[number - 1]
            noticed = tests(number)
            unexpected += bool(noticed) == bool(covered)
            print(f"| {number}. {name} | {', '.join(noticed) or covered or 'NOTHING'} |", flush=True)
    sys.exit(1 if unexpected else 0)


if __name__ == "__main__":
    main()
