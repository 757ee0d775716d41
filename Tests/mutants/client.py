#!/usr/bin/env python3
"""Breaks one rule of the client at a time, and prints the test that notices the mutant.

    python3 Tests/mutants/client.py                 all of them: some hours
    python3 Tests/mutants/client.py tasks           a part: history, tasks, terminal
    python3 Tests/mutants/client.py history:3 17    single ones

Commit the sources first: the script restores them after each mutant. Numbers in titles are rules and sections of
docs/client-sync.md.
"""
import re
import subprocess
import sys

from switch import ROOT

#: For each part: the tests to run, and its mutants. A mutant has a title, a file, the original text (found once) and the mutated text.
PARTS = {
    'history': (
        '^TambourClientTests\\.',
        [
            (
                '6.7: comments that were stored earlier are trusted when they are opened',
                'Sources/TambourClient/Sync/ClientCore+Comments.swift',
                "tx) { $0.resync() }",
                "tx) { _ in HistoryEffects() }",
            ),
            (
                '6.7: comments count as pushed after the connection has ended',
                'Sources/TambourClient/Session/ClientCore+Connection.swift',
                "            try tx.closeCommentThreads()\n",
                "",
            ),
            (
                '6.7: the comments of one post too many are open',
                'Sources/TambourClient/Sync/ClientCore+Comments.swift',
                "open.count + 1 - Limits",
                "open.count - Limits",
            ),
            (
                '6.7: an older version sends a queued comment as a post',
                'Sources/TambourClient/Tasks/MessageTasks.swift',
                'commentKind: String? = "comment.send"',
                'commentKind: String? = "message.send"',
            ),
            (
                '6.7: comments outlive their post',
                'Sources/TambourClient/LocalStore/Messages.swift',
                "if chat.isGroup { try removeComments(on: message) }",
                "",
            ),
            (
                '6.7: a search in all chats finds comments',
                'Sources/TambourClient/LocalStore/Messages+Reading.swift',
                "? IS NULL AND message.chat NOT IN (SELECT post FROM comment_thread))",
                "? IS NULL)",
            ),
            (
                '6.7: a deleted comment is counted',
                'Sources/TambourClient/Sync/ClientCore+Comments.swift',
                "commentCountBy: -comments.count",
                "commentCountBy: 0",
            ),
            (
                '6.7: the draft of a comment goes to the server',
                'Sources/TambourClient/LocalStore/Drafts.swift',
                " || commentThread(chat) != nil",
                "",
            ),
            (
                '6.1: the last position of a millisecond is its first',
                'Sources/TambourClient/History/Position.swift',
                "Position.max.timeMs) << 16 | 0xFFFF)",
                "Position.max.timeMs) << 16)",
            ),
            (
                '6.1: an interval begins in the middle of a millisecond',
                'Sources/TambourClient/History/PositionInterval.swift',
                "self.lower = .first(at: lower.timeMs)",
                "self.lower = lower",
            ),
            (
                'R3: a push claims the message before it too',
                'Sources/TambourClient/History/PositionInterval.swift',
                "guard let lower = Position.last(at: previous.timeMs).next else { return nil }",
                "let lower = previous",
            ),
            (
                'R2/I2: neighbours stay two chunks',
                'Sources/TambourClient/History/PositionInterval.swift',
                "return next < other.lower",
                "return next <= other.lower",
            ),
            (
                'R2: chunks merge over a gap of a millisecond',
                'Sources/TambourClient/History/PositionInterval.swift',
                "return next < other.lower",
                "return next.rawValue + 65_536 < other.lower.rawValue",
            ),
            (
                '6.1: a backward page claims up to its pivot, open or not',
                'Sources/TambourClient/History/Evidence.swift',
                "through: max(ends.last, min(pivot, closed))",
                "through: max(ends.last, pivot)",
            ),
            (
                '6.2: a backward page claims no further than its last message',
                'Sources/TambourClient/History/Evidence.swift',
                "through: max(ends.last, min(pivot, closed))",
                "through: ends.last",
            ),
            (
                '6.1: an empty backward page claims up to its pivot, open or not',
                'Sources/TambourClient/History/Evidence.swift',
                "PositionInterval(from: bound, through: min(pivot, closed))",
                "PositionInterval(from: bound, through: pivot)",
            ),
            (
                '6.2/R11: a backward page with more claims the beginning',
                'Sources/TambourClient/History/Evidence.swift',
                "from: more ?? true ? ends.first : bound",
                "from: bound",
            ),
            (
                '6.2: a backward page without more does not',
                'Sources/TambourClient/History/Evidence.swift',
                "from: more ?? true ? ends.first : bound",
                "from: ends.first",
            ),
            (
                '6.2: an absent `more` counts as none',
                'Sources/TambourClient/History/Evidence.swift',
                "from: more ?? true ? ends.first : bound",
                "from: more ?? false ? ends.first : bound",
            ),
            (
                '6.2/R11: a forward page with more claims the end',
                'Sources/TambourClient/History/Evidence.swift',
                "upper = more ?? true ? ends.last : max(ends.last, min(bound, closed))",
                "upper = max(ends.last, min(bound, closed))",
            ),
            (
                '6.2: a forward page without more does not',
                'Sources/TambourClient/History/Evidence.swift',
                "upper = more ?? true ? ends.last : max(ends.last, min(bound, closed))",
                "upper = ends.last",
            ),
            (
                '6.1: an empty forward page claims what is open',
                'Sources/TambourClient/History/Evidence.swift',
                "            upper = min(bound, closed)",
                "            upper = bound",
            ),
            (
                '6.2: a page around a message with more claims the beginning',
                'Sources/TambourClient/History/Evidence.swift',
                "PositionInterval(from: ends.first, through: max(ends.last, pivot))",
                "PositionInterval(from: .min, through: max(ends.last, pivot))",
            ),
            (
                '6.2: a page around a message does not reach up to it',
                'Sources/TambourClient/History/Evidence.swift',
                "PositionInterval(from: ends.first, through: max(ends.last, pivot))",
                "PositionInterval(from: ends.first, through: ends.last)",
            ),
            (
                "R4: a login's newest message claims nothing up to the login's time",
                'Sources/TambourClient/History/Evidence.swift',
                "PositionInterval(after: previous, through: max(newest, safe))",
                "PositionInterval(after: previous, through: newest)",
            ),
            (
                'R1: what a page holds beyond its claim is taken along',
                'Sources/TambourClient/History/Evidence.swift',
                "found.filter(interval.contains).sorted()",
                "found.sorted()",
            ),
            (
                '6.3: evidence does not remove what it misses',
                'Sources/TambourClient/History/ChatHistory.swift',
                '            effects.cleared = evidence.interval\n',
                '',
            ),
            (
                '6.3: a message comes back into a chunk',
                'Sources/TambourClient/History/ChatHistory.swift',
                'effects.refresh.append(position)\n'
                '        } else if',
                'effects.store.append(position)\n'
                '        } else if',
            ),
            (
                '6.3: tombs are not looked at',
                'Sources/TambourClient/History/ChatHistory.swift',
                "} else if !isTomb(position) {",
                "} else {",
            ),
            (
                '6.3: a deletion leaves no tomb',
                'Sources/TambourClient/History/ChatHistory.swift',
                "for position in positions where !covers(position) {",
                "for position in [] as [Position] {",
            ),
            (
                'I2: a deletion within a chunk leaves a tomb',
                'Sources/TambourClient/History/ChatHistory.swift',
                "for position in positions where !covers(position) {",
                "for position in positions {",
            ),
            (
                'I2: tombs stay where a chunk comes',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        tombs.removeAll(where: interval.contains)\n',
                '',
            ),
            (
                '6.3: a deletion removes no row',
                'Sources/TambourClient/History/ChatHistory.swift',
                "effects.removed = positions",
                "effects.removed = []",
            ),
            (
                'I5: a new stretch takes the place of those it touches',
                'Sources/TambourClient/History/ChatHistory.swift',
                ".reduce(interval) { $0.union($1) }",
                ".reduce(interval) { first, _ in first }",
            ),
            (
                'R13: what was asked for in an earlier generation is believed',
                'Sources/TambourClient/History/ChatHistory.swift',
                "guard isCurrent(evidence.generation) else { return HistoryEffects() }",
                '',
            ),
            (
                'R13: so is an island',
                'Sources/TambourClient/History/ChatHistory.swift',
                "guard isCurrent(asked) else { return HistoryEffects() }",
                '',
            ),
            (
                'R13: so is a reply of changes',
                'Sources/TambourClient/History/ChatHistory.swift',
                "guard isCurrent(asked) else { return nil }",
                '',
            ),
            (
                'R13: a resync keeps the claims',
                'Sources/TambourClient/History/ChatHistory.swift',
                'effects.distrustsContents = true\n'
                '            history.chunks = []',
                "effects.distrustsContents = true",
            ),
            (
                'R13: a resync trusts the contents',
                'Sources/TambourClient/History/ChatHistory.swift',
                '            effects.distrustsContents = true\n',
                '',
            ),
            (
                'R13/R14: no new generation begins',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        generation += 1\n',
                '',
            ),
            (
                'R13: a new generation keeps the tombs',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        generation += 1\n'
                '        tombs = []',
                "        generation += 1",
            ),
            (
                'R14: the rows of a chat that was left stay',
                'Sources/TambourClient/History/ChatHistory.swift',
                '            effects.cleared = PositionInterval(through: .max)\n',
                '',
            ),
            (
                'R14: the claims of a chat that was left stay',
                'Sources/TambourClient/History/ChatHistory.swift',
                'effects.cleared = PositionInterval(through: .max)\n'
                '            history.chunks = []',
                "effects.cleared = PositionInterval(through: .max)",
            ),
            (
                'R9: eviction keeps the claims',
                'Sources/TambourClient/History/ChatHistory.swift',
                '            history.chunks = history.chunks.compactMap { $0.clipped(from: floor) }\n',
                '',
            ),
            (
                'R9: eviction keeps the rows',
                'Sources/TambourClient/History/ChatHistory.swift',
                '            effects.cleared = PositionInterval(through: end)\n',
                '',
            ),
            (
                'R9: a page from before an eviction is believed',
                'Sources/TambourClient/History/ChatHistory.swift',
                'clipped(from: floor) }\n'
                '            // A page that was read before a deletion could restore a row in the forgotten part.\n'
                '            history.beginGeneration()',
                "clipped(from: floor) }",
            ),
            (
                'settle: a page from before is believed',
                'Sources/TambourClient/History/ChatHistory.swift',
                "change { history, _ in history.beginGeneration() }",
                "change { history, _ in history.tombs = [] }",
            ),
            (
                '6.6: a change is forgotten while a page is read',
                'Sources/TambourClient/History/ChatHistory.swift',
                "if isReading || isBehindAll(position) {",
                "if isBehindAll(position) {",
            ),
            (
                '6.6: a change of what is not held is stored at all times',
                'Sources/TambourClient/History/ChatHistory.swift',
                "if isReading || isBehindAll(position) {",
                "if true {",
            ),
            (
                '6.6: a change that comes before the message is forgotten',
                'Sources/TambourClient/History/ChatHistory.swift',
                "if isReading || isBehindAll(position) {",
                "if isReading {",
            ),
            (
                '6.6: `resync` of changes is not looked at',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        if changes.isResync { return resync() }\n',
                '',
            ),
            (
                '6.6: `removedIds` is not looked at',
                'Sources/TambourClient/History/ChatHistory.swift',
                '            history.delete(changes.removed, &effects)\n',
                '',
            ),
            (
                '6.6: `clearedId` claims nothing',
                'Sources/TambourClient/History/ChatHistory.swift',
                'effects.cleared = interval\n'
                '                history.cover(interval)',
                "effects.cleared = interval",
            ),
            (
                'I10: chunk rows are not written',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        effects.chunks = RowChanges(from: before.chunks, to: chunks)\n',
                '',
            ),
            (
                'I10: tomb rows are not written',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        effects.tombs = RowChanges(from: before.tombs, to: tombs)\n',
                '',
            ),
            (
                'I10: the generation is not written',
                'Sources/TambourClient/History/ChatHistory.swift',
                '        effects.generation = generation == before.generation ? nil : generation\n',
                '',
            ),
            (
                'R6: two at a time in a direction',
                'Sources/TambourClient/History/HistoryReader.swift',
                "!inFlight.contains { $0.kind == kind || $0.kind == .around }",
                "true",
            ),
            (
                'R6: a page begins within the chunk',
                'Sources/TambourClient/History/HistoryReader.swift',
                "from: repeatsEdge ? chunk.lower : before",
                "from: chunk.lower",
            ),
            (
                'R6: a page never has more than the usual count',
                'Sources/TambourClient/History/HistoryReader.swift',
                "count: max(pageSize, missing)",
                "count: pageSize",
            ),
            (
                'R6: a page runs into the chunk below',
                'Sources/TambourClient/History/HistoryReader.swift',
                "bound: history.chunk(below: chunk.lower)?.upper.next",
                "bound: nil",
            ),
            (
                'R6: gaps are filled from the oldest on',
                'Sources/TambourClient/History/HistoryReader.swift',
                "in zip(rows, rows.dropFirst()).reversed()",
                "in zip(rows, rows.dropFirst())",
            ),
            (
                'R7: a page is asked for only when less than a screen is left',
                'Sources/TambourClient/History/HistoryReader.swift',
                "(rowsOnScreen * 3 + 1) / 2",
                "rowsOnScreen",
            ),
            (
                'R10: the newest end is asked for',
                'Sources/TambourClient/History/HistoryReader.swift',
                '        guard above != nil || end.newest.map({ $0 > chunk.upper }) ?? false else { return nil }\n',
                '',
            ),
            (
                '6.1: a request takes everything for closed',
                'Sources/TambourClient/History/HistoryReader.swift',
                "closed: closed,",
                "closed: .max,",
            ),
            (
                'I7: what a login has promised is not used',
                'Sources/TambourClient/History/HistoryReader.swift',
                "max(history.chunks.last?.upper ?? .min, end.position, .last(at: end.safeTimeMs))",
                "history.chunks.last?.upper ?? .min",
            ),
            (
                '6.1: forward pages begin where there may be no message',
                'Sources/TambourClient/History/HistoryReader.swift',
                "request(.forward, from: lastRow,",
                "request(.forward, from: chunk.upper,",
            ),
            (
                "I7: a pivot in the server's future is asked for again",
                'Sources/TambourClient/History/HistoryReader.swift',
                '            repeatsEdge.toggle()\n',
                '',
            ),
            (
                'I7: a reply that comes twice is counted twice',
                'Sources/TambourClient/History/HistoryReader.swift',
                "request.kind == .backward, inFlight.contains(request),",
                "request.kind == .backward,",
            ),
            (
                'I7: an island that no page reaches is asked for again',
                'Sources/TambourClient/History/HistoryReader.swift',
                '            stranded = request.pivot\n',
                '',
            ),
            (
                'R6: a lost connection leaves requests on their way',
                'Sources/TambourClient/History/HistoryReader.swift',
                "package mutating func disconnected() { inFlight = [] }",
                "package mutating func disconnected() {}",
            ),
            (
                'R6: an answered request stays on its way',
                'Sources/TambourClient/History/HistoryReader.swift',
                '        inFlight.removeAll { $0 == request }\n',
                '',
            ),
            (
                'I6: opening asks for the newest again',
                'Sources/TambourClient/History/HistoryReader.swift',
                "history.covers(end.position) ? end.position : nil",
                "nil",
            ),
            (
                '6.4: a bound is not sent',
                'Sources/TambourClient/History/HistoryRequest.swift',
                "kind == .backward ? bound?.timeMs : nil",
                "nil",
            ),
            (
                'I8: rows of two chunks show no gap',
                'Sources/TambourClient/History/HistoryGaps.swift',
                "chunk(containing: older)?.contains(newer) ?? false",
                "covers(older) && covers(newer)",
            ),
            (
                'R10: the newest end is taken for held before login',
                'Sources/TambourClient/History/HistoryGaps.swift',
                "max(last, $0.position)) } ?? true",
                "max(last, $0.position)) } ?? false",
            ),
            (
                'I8: the beginning is taken for held',
                'Sources/TambourClient/History/HistoryGaps.swift',
                "before: !isWithoutGap(from: .min, to: first)",
                "before: false",
            ),
            (
                '6.6: a late reply moves the cursor back',
                'Sources/TambourClient/History/MessageChanges.swift',
                '        guard self == asked else { return }\n',
                '',
            ),
            (
                '6.6: the cursor leaves a millisecond that has more',
                'Sources/TambourClient/History/MessageChanges.swift',
                "behind: changes.next",
                "behind: nil",
            ),
            (
                "6.6: the cursor skips what happened before the login's mark",
                'Sources/TambourClient/History/MessageChanges.swift',
                "sinceMs >= markMs, ",
                '',
            ),
            (
                '6.6: the cursor skips the rest of a millisecond',
                'Sources/TambourClient/History/MessageChanges.swift',
                "guard behind == nil, sinceMs",
                "guard sinceMs",
            ),
        ],
    ),
    'tasks': (
        '^TambourClientTests\\.',
        [
            (
                'T2 a report of an older run is taken',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.run == run else",
                "record.run != nil else",
            ),
            (
                'T2 runs are not counted',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            record.runs += 1\n',
                '',
            ),
            (
                'T2 a done task is kept for ever',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "record.state == .done || record.state == .cancelled,",
                "record.state == .cancelled,",
            ),
            (
                'T2 a done task leaves before those that need its output',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                '                table.dependents(of: id).isEmpty\n',
                '                true\n',
            ),
            (
                'T2 what a removed task alone held back is kept',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "table.touched + table.loosened",
                "table.touched",
            ),
            (
                'T2 what a leaving task alone held back is kept',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                '            candidates += table.dependencies(of: id).map(\\.on)\n',
                '',
            ),
            (
                'T2 nobody hears that a task is done',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '        if output != record.output { tellNewInput(of: run.task) }\n'
                '        propagate(from: [run.task])\n',
                '        if output != record.output { tellNewInput(of: run.task) }\n',
            ),
            (
                'T1 new dependencies are not written',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                "unlinked + removals + writes + linked",
                "unlinked + removals + writes",
            ),
            (
                'T1 dependencies go after the tasks they join',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                "unlinked + removals + writes + linked",
                "removals + unlinked + writes + linked",
            ),
            (
                'T1 a task that is replaced goes after the one that replaces it',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                "unlinked + removals + writes + linked",
                "unlinked + writes + linked + removals",
            ),
            (
                'T1 the second change of a row is not written',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                '        note(id)\n'
                '        change(&record)',
                '        if journal.originals.isEmpty { note(id) }\n'
                '        change(&record)',
            ),
            (
                'T1 a refused insert leaves tasks behind',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                '            self = before\n',
                '',
            ),
            (
                'restart: running tasks are forgotten',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                '        if record.state == .running { running.insert(record.id) }\n'
                '        let',
                "        let",
            ),
            (
                'restart: lanes are in the order of rows',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                '        let index = index(of: record)\n'
                '        lanes[record.lane, default: []].insert',
                '        let index = lanes[record.lane]?.count ?? 0\n'
                '        lanes[record.lane, default: []].insert',
            ),
            (
                'restart: dependents are in the order of rows',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                '        let index = list.firstIndex { precedes(dependency, $0) } ?? list.endIndex\n',
                '        let index = list.endIndex\n',
            ),
            (
                'restart: keys of tasks that left stay taken',
                'Sources/TambourClient/Tasks/TaskTable.swift',
                '        idsByOpKey[record.opKey] = nil\n',
                '',
            ),
            (
                'T3 a death of the process counts as an attempt',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                "endRun(id) { $0.state = .blocked }",
                "endRun(id) { $0.state = .blocked; $0.attempts += 1 }",
            ),
            (
                'T3 a lease never ends',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                "return lease.untilMs <= nowMs || lease.untilMs",
                "return lease.untilMs",
            ),
            (
                'T3 a lease ends a millisecond late',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                "return lease.untilMs <= nowMs || lease.untilMs",
                "return lease.untilMs < nowMs || lease.untilMs",
            ),
            (
                'T3 a lease from before the clock went back holds',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                " || lease.untilMs - TaskScheduler.maxLeaseMs > nowMs",
                '',
            ),
            (
                'T3 a lease is not prolonged',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '        table.update(run.task) { $0.lease?.untilMs = leaseUntilMs }\n',
                '',
            ),
            (
                'T3 whoever lost the lease prolongs it',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '        try check(run)\n'
                '        table.update(run.task) { $0.lease',
                "        table.update(run.task) { $0.lease",
            ),
            (
                'T3 the dead keep their leases',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                ' || isDead(record.lease?.owner ?? "")',
                '',
            ),
            (
                'T4 two of a lane run at once',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '        if table.running.contains(where: { table[$0]?.lane == lane }) { return nil }\n'
                '        return table.lanes[lane]?.first { table[$0]?.state.isTerminal == false }',
                "        return table.lanes[lane]?.first { table[$0]?.state.isTerminal == false && table[$0]?.state != .running }",
            ),
            (
                'T4 a retried task starts beside the one that runs',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '        if table.running.contains(where: { table[$0]?.lane == lane }) { return nil }\n',
                '',
            ),
            (
                'T4 a waiting head is overtaken',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "?.first { table[$0]?.state.isTerminal == false }",
                "?.first { table[$0]?.state == .ready }",
            ),
            (
                'T4 a failed head blocks its lane',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "?.first { table[$0]?.state.isTerminal == false }",
                "?.first { table[$0]?.state.isTerminal == false || table[$0]?.state.isFailed == true }",
            ),
            (
                'T4 whoever is ready starts, head or not',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            record.lane == nil || head(of: record.lane) == id\n',
                '            true\n',
            ),
            (
                'T5 nothing waits for what it needs',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "(isMet ? .ready : .blocked, nil)",
                "(.ready, nil)",
            ),
            (
                'T5 a failed need is as good as a done one',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "case (.after, _), (_, .done): break",
                "case (.after, _), (_, .done), (_, .failed(.rejected)): break",
            ),
            (
                'T5 the cause is the nearest failure',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "return (.failed(.dependency(root)), other.lastError)",
                "_ = root; return (.failed(.dependency(other.id)), other.lastError)",
            ),
            (
                'T5 the words of the failure are lost',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                '            record.lastError = verdict.error ?? record.lastError\n',
                '',
            ),
            (
                'T5 a cancelled need is as good as a done one',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "case (_, .cancelled): isCancelled = true",
                "case (_, .cancelled): break",
            ),
            (
                'T5 failures stop at the first dependent',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                '                sources.append(dependency.task)\n',
                '',
            ),
            (
                'T5 `after` needs success',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                "case (.after, _), (_, .done): break",
                "case (_, .done): break",
            ),
            (
                'T5 an expired input is not made again',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "            for source in sources where table[source]?.state == .done {",
                "            for source in sources where table[source]?.state == .cancelled {",
            ),
            (
                'T5 an input is made again under its old key',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            record.round += 1\n',
                '',
            ),
            (
                'T5 an input is made again though it is new',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "        if !record.hasNewInput, !record.isCancelRequested,",
                "        if !record.isCancelRequested,",
            ),
            (
                'T5 what is new for one run is new for the next',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            record.lease = nil\n'
                '            record.hasNewInput = false\n'
                '            record.isCancelRequested',
                '            record.lease = nil\n'
                '            record.isCancelRequested',
            ),
            (
                'T5 an expired input is no attempt',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            if !record.hasNewInput { record.attempts += 1 }\n',
                '',
            ),
            (
                'T5 an input that expires at once is made again at once',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.attempts == 0 ? nil : nowMs + pauseMs",
                "pauseMs < 0 ? 0 : nil",
            ),
            (
                'T5 a task whose input nothing renews waits for ever',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "        if sources.isEmpty {",
                "        if sources.isEmpty, false {",
            ),
            (
                'T5 running tasks hear of no new input',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '                table.update(record.id) { $0.hasNewInput = true }\n',
                '',
            ),
            (
                'T5 waiting tasks hear of no new input',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '                requeue(record.id)\n',
                '',
            ),
            (
                'T5 a run is ended by the failure of its input',
                'Sources/TambourClient/Tasks/TaskScheduler.swift',
                'record.state.isQueued else { return false }\n'
                '        let verdict',
                '!record.state.isTerminal else { return false }\n'
                '        let verdict',
            ),
            (
                'T6 cycles are taken',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                '        if let id = taskInCycle(from: ids, within: scope) { throw .cycle(id) }\n',
                '',
            ),
            (
                'T6 the order of lanes is not part of the graph',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                "table.predecessor(of: id).map { [$0] } ?? []",
                "[TaskID]()",
            ),
            (
                'T6 a replacement may wait for one behind it',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                '            if !task.dependencies.isEmpty { scope = nil }\n',
                '',
            ),
            (
                'T6 unknown dependencies are taken',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                "if table[on] == nil { throw .unknownDependency(on) }",
                "if table[on] == nil { continue }",
            ),
            (
                'T6 an operation is queued twice',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                '            if let other = table.id(ofOpKey: task.opKey) { throw .duplicateOpKey(other) }\n',
                '',
            ),
            (
                'T7 `later` is not an attempt',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '                record.attempts += 1\n'
                '                record.nextAtMs = nowMs + (pauseMs',
                "                record.nextAtMs = nowMs + (pauseMs",
            ),
            (
                "T7 the server's pause is not kept",
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "nowMs + (pauseMs ?? backoffMs)",
                "nowMs + backoffMs",
            ),
            (
                "T7 the server's pause has no bound",
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "min(max($0, 0), Self.maxWaitMs)",
                "max($0, 0) % (1 << 50)",
            ),
            (
                "T7 another input shortens the server's pause",
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.wakesOn = pauseMs == nil ? .newInput : []",
                "record.wakesOn = .newInput",
            ),
            (
                'T7 the pause does not double',
                'Sources/TambourClient/Tasks/RetryClass.swift',
                "baseMs << min(max(attempts, 0), 10)",
                "baseMs",
            ),
            (
                'T7 the pause has no cap',
                'Sources/TambourClient/Tasks/RetryClass.swift',
                "min(capMs, baseMs << min(max(attempts, 0), 10))",
                "baseMs << min(max(attempts, 0), 10)",
            ),
            (
                'T7 the pause is not spread',
                'Sources/TambourClient/Tasks/RetryClass.swift',
                "return half + Int64",
                "return full + 0 * Int64",
            ),
            (
                'T7 the pause is spread too far',
                'Sources/TambourClient/Tasks/RetryClass.swift',
                "return half + Int64",
                "return half / 2 + Int64",
            ),
            (
                'T7 a lost network is an attempt',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            case .networkLost:\n',
                '            case .networkLost:\n'
                '                record.attempts += 1\n',
            ),
            (
                'T7 a lost network waits for a connection alone',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '                record.nextAtMs = nowMs + backoffMs\n',
                '',
            ),
            (
                'T7 a connection does not wake',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.wakesOn = [.connected, .newInput]",
                "record.wakesOn = [.newInput]",
            ),
            (
                'T7 any session is as good as a login',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.wakesOn = .loggedIn",
                "record.wakesOn = [.loggedIn, .connected]",
            ),
            (
                'T7 events wake whoever does not wait for them',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                "!record.wakesOn.isDisjoint(with: events)",
                "record.wakesOn.isDisjoint(with: events)",
            ),
            (
                'T7 time does not wake',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                '            if record.isDue(nowMs: nowMs) { requeue(record.id) }\n',
                '',
            ),
            (
                'T7 a wait from before the clock went back holds',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                " || nextAtMs - longestMs > nowMs",
                '',
            ),
            (
                'T7 conditions are not looked at',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.requires.isSubset(of: conditions), ",
                '',
            ),
            (
                'T8 nothing is late',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                '            if record.isLate(nowMs: nowMs) { late.append(record.id) }\n',
                '',
            ),
            (
                'T8 a late task starts',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.requires.isSubset(of: conditions), !record.isLate(nowMs: nowMs)",
                "record.requires.isSubset(of: conditions)",
            ),
            (
                'T8 a late task waits on',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "            if record.state == .waiting, record.isLate(nowMs: nowMs) {",
                "            if record.state == .waiting, false {",
            ),
            (
                'T8 nobody hears that a task was late',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                '        propagate(from: late.sorted())\n',
                '',
            ),
            (
                'T8 the driver sleeps through deadlines',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                '                times.append(max(deadlineMs, nowMs))\n',
                '                _ = deadlineMs\n',
            ),
            (
                'T8 the driver sleeps through leases',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                '                times.append(isFree ? nowMs : record.lease?.untilMs ?? nowMs)\n',
                '                _ = isFree\n',
            ),
            (
                'T8 a retry does not bring back what the task needs',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '            upwards += table.dependencies(of: next).filter { $0.mode != .after }.map(\\.on)\n',
                '',
            ),
            (
                'T8 a retry does not bring back what needs the task',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '                downwards.append(dependency.task)\n'
                '            }\n'
                '        }\n'
                '        for id in revived',
                '                revived.remove(dependency.task)\n'
                '            }\n'
                '        }\n'
                '        for id in revived',
            ),
            (
                'T8 a retry keeps the old deadline',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                "revive(revived) { $0.deadlineMs = deadlineMs }",
                "revive(revived) { _ in }",
            ),
            (
                'T8 a retry keeps the attempts',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '                record.attempts = 0\n',
                '',
            ),
            (
                'T8 what is retried does not look at its needs',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '        for id in revived.sorted() { evaluate(id) }\n',
                '',
            ),
            (
                'T8 a failed task is discarded under one that runs',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '            if table[next]?.state.isFailed != true { throw .stillNeeded(by: next) }\n',
                '',
            ),
            (
                'T9 a running task is cancelled at once',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                "            if state == .running {",
                "            if state == .done {",
            ),
            (
                'T9 a cancelled run that fails is tried again',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "let isWanted = !record.isCancelRequested && ",
                "let isWanted = ",
            ),
            (
                'T9 a cancelled run has its input made again',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "!record.hasNewInput, !record.isCancelRequested,",
                "!record.hasNewInput,",
            ),
            (
                'T9 a cancelled run that succeeds is cancelled',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            record.state = .done\n',
                '            record.state = record.isCancelRequested ? .cancelled : .done\n',
            ),
            (
                'T9 what needs a cancelled task is left',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '        propagate(from: ids)\n'
                '        return commit()',
                "        return commit()",
            ),
            (
                'T11 failed tasks outlive a logout',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '                table.update(id) { $0.state = .cancelled }\n'
                '            } else {',
                '                continue\n'
                '            } else {',
            ),
            (
                'T11 running tasks outlive a logout',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '            } else {\n'
                '                cancelOne(id)',
                '            } else if record.state != .running {\n'
                '                cancelOne(id)',
            ),
            (
                'T10 unknown tasks are dropped',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '                record.become(.failed(.unknown))\n',
                '                record.become(.cancelled)\n',
            ),
            (
                'T10 unknown tasks are run',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                "        let parked = unknown.filter { table[$0]?.state.isQueued == true }",
                "        let parked = unknown.filter { _ in false }",
            ),
            (
                'T10 parked tasks stay parked',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                '            case .known:\n'
                '                if record.state == .failed(.unknown) { known.insert(record.id) }\n',
                '            case .known: break\n',
            ),
            (
                'T10 an unreadable payload is refused for good',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "record.state = .failed(.unknown)",
                "record.state = .failed(.rejected)",
            ),
            (
                'T10 a later text of a state is taken for the end',
                'Sources/TambourClient/Tasks/TaskState.swift',
                '            } else {\n'
                '                self = .failed(.unknown)',
                '            } else {\n'
                '                self = .cancelled',
            ),
            (
                'T10 a row without its lease runs for ever',
                'Sources/TambourClient/Tasks/TaskScheduler+Time.swift',
                "guard let lease else { return true }",
                "guard let lease else { return false }",
            ),
            (
                'T10 what waits for a row that is not there waits for ever',
                'Sources/TambourClient/Tasks/TaskScheduler+Ending.swift',
                "where evaluate(id) { propagate(from: [id]) }",
                "where false { propagate(from: [id]) }",
            ),
            (
                'T12 more than four run',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '        let free = Self.maxRunning - table.running.count\n',
                '        let free = Self.maxRunning\n',
            ),
            (
                'T12 a fifth is started on demand',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            table.running.count < Self.maxRunning,\n',
                '',
            ),
            (
                'T12 the newest come first',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                "found.sort { $0.place < $1.place }",
                "found.sort { $0.place > $1.place }",
            ),
            (
                'coalescing: the newcomer goes to the end',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                "record(of: task, place: old.place, nowMs: nowMs)",
                "record(of: task, place: table.nextPlace, nowMs: nowMs)",
            ),
            (
                'coalescing: what depended on the old one is let go',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                '            adopted += dependents.map(\\.task)\n',
                '            for dependent in dependents {\n'
                '                table.unlink(TaskDependency(task: dependent.task, on: task.id, mode: dependent.mode))\n'
                '            }\n'
                '            adopted += dependents.map(\\.task)\n',
            ),
            (
                'coalescing: what runs is replaced',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                "$0.coalescingKey == coalescingKey && $0.state.isQueued",
                "$0.coalescingKey == coalescingKey && !$0.state.isTerminal",
            ),
            (
                'coalescing: an older run that failed is tried again',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '!record.isCancelRequested && !isSuperseded(record)\n',
                '!record.isCancelRequested\n',
            ),
            (
                'coalescing: an older run goes though others need it',
                'Sources/TambourClient/Tasks/TaskScheduler+Running.swift',
                '            table.dependents(of: record.id).isEmpty\n',
                '            true\n',
            ),
            (
                'coalescing: an older failure can still be retried',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                '            dropFailed(inLane: lane, coalescingKey: key)\n',
                '',
            ),
            (
                'coalescing: keys without a lane',
                'Sources/TambourClient/Tasks/TaskScheduler+Insert.swift',
                "throw .coalescingWithoutLane(task.id) }",
                "continue }",
            ),
            (
                'cid: one millisecond and number give one id',
                'Sources/TambourClient/Tasks/ClientID.swift',
                "last = fresh > last || last == .max ? fresh : last + 1",
                "last = fresh",
            ),
            (
                'cid: positive',
                'Sources/TambourClient/Tasks/ClientID.swift',
                "return ClientID(-last)",
                "return ClientID(last)",
            ),
        ],
    ),
    'terminal': (
        '^(tambourTests|TerminalKitTests)\\.',
        [
            (
                'an escape character is printed as it is',
                'Sources/TerminalKit/Drawing/Glyph.swift',
                "case 0..<0x20: Unicode.Scalar(0x2400 + scalar.value).map { Character($0) }",
                "case 0..<0x1B: Unicode.Scalar(0x2400 + scalar.value).map { Character($0) }",
            ),
            (
                'controls of the text direction are kept',
                'Sources/TerminalKit/Drawing/Glyph.swift',
                "if category == .format { return width == 0 ||",
                "if category == .format { return width < 0 || width > 0 &&",
            ),
            (
                'VS16 does not widen',
                'Sources/TerminalKit/Drawing/Glyph.swift',
                "case 0xFE0F, 0x1F3FB...0x1F3FF,",
                "case 0x1F3FB...0x1F3FF,",
            ),
            (
                'glyphs that cling to their neighbour are not set apart',
                'Sources/TerminalKit/Drawing/Glyph.swift',
                "|| first.clingsToPredecessor ||",
                "||",
            ),
            (
                'covering a part of a wide glyph leaves the rest',
                'Sources/TerminalKit/Drawing/Surface.swift',
                '        separate(start + end, rowEnd: start + size.columns)\n',
                '',
            ),
            (
                'any scheme may become a link',
                'Sources/TerminalKit/Drawing/Surface.swift',
                "schemes.contains(address[..<colon].lowercased())",
                "colon > address.startIndex",
            ),
            (
                "erasing keeps the pen's background",
                'Sources/TerminalKit/Drawing/Renderer.swift',
                '            setPen(.plain)\n'
                '            setLink(.none, of: new)\n',
                '            setLink(.none, of: new)\n',
            ),
            (
                'the column after a doubtful glyph counts as known',
                'Sources/TerminalKit/Drawing/Renderer.swift',
                '            write(cell.text)\n'
                '            self.column = nil\n'
                '            return\n',
                '            write(cell.text)\n',
            ),
            (
                'what a wider doubtful glyph may have covered is not written again',
                'Sources/TerminalKit/Drawing/Renderer.swift',
                "let widest = cell.isDoubtful ? column + Glyph(cell.text).widestWidth : end",
                "let widest = end",
            ),
            (
                'another size is not painted in full',
                'Sources/TerminalKit/Drawing/Renderer.swift',
                "if let shown, shown.size == surface.size { return shown }",
                "if let shown, shown.cells.count >= surface.cells.count { return Surface(size: surface.size) }",
            ),
            (
                'links are compared by their number',
                'Sources/TerminalKit/Drawing/Renderer.swift',
                "let oldLinks = new.links.map { address in old.index(ofLink: address) ?? -1 }",
                "let oldLinks = Array(new.links.indices)",
            ),
            (
                'a scroll leaves the margins set',
                'Sources/TerminalKit/Drawing/Renderer.swift',
                '            write("\\u{1B}[r")\n',
                '',
            ),
            (
                'bold ends without dim',
                'Sources/TerminalKit/Drawing/ControlSequences.swift',
                '("22", [.bold, .dim]), ("23", .italic)',
                '("22", .bold), ("23", .italic)',
            ),
            (
                'European numbers after Arabic letters stay European',
                'Sources/TerminalKit/Layout/BidiResolver.swift',
                "if classes[index] == .europeanNumber, strong == .arabicLetter {",
                "if classes[index] == .europeanNumber, strong == .arabicNumber {",
            ),
            (
                "brackets take the paragraph's direction always",
                'Sources/TerminalKit/Layout/BidiResolver.swift',
                'let resolved = before ?? baseClass\n',
                'let resolved = before == nil ? baseClass : baseClass\n',
            ),
            (
                'overrides work',
                'Sources/TerminalKit/Layout/BidiClass.swift',
                '        let category = scalar.properties.generalCategory\n',
                '        if scalar == "\\u{202E}" { return .rightToLeft }\n'
                '        let category = scalar.properties.generalCategory\n',
            ),
            (
                'space at the end of a line keeps its level',
                'Sources/TerminalKit/Layout/BidiParagraph.swift',
                "if isTrailing { entries[position].level = base }",
                "if !isTrailing { entries[position].level = base }",
            ),
            (
                'lines from right to left are aligned to the left',
                'Sources/TerminalKit/Layout/TextLayoutBuilder.swift',
                "bidi.isRightToLeft ? max(0, options.width - indent - columns) : indent",
                "bidi.isRightToLeft ? max(0, indent) : indent",
            ),
            (
                'the number of a link may begin a line',
                'Sources/TerminalKit/Layout/TextLayoutBuilder.swift',
                "if items[index + 1].isAdded { return false }",
                "if items[index + 1].isAdded { return true }",
            ),
            (
                'a word that does not fit is not broken',
                'Sources/TerminalKit/Layout/TextLayoutBuilder.swift',
                'return lastBreak ?? index\n',
                'return lastBreak ?? items.count\n',
            ),
            (
                'a column beside the text leads nowhere',
                'Sources/TerminalKit/Layout/TextLayout.swift',
                "return line.isContinued ? line.range.upperBound - 1 : line.range.upperBound",
                "return line.range.upperBound",
            ),
            (
                'a pasted return is a key',
                'Sources/TerminalKit/Input/KeyParser.swift',
                '            reset()\n'
                '            state = .paste\n',
                '            reset()\n',
            ),
            (
                'a paste keeps its controls',
                'Sources/TerminalKit/Input/SafeText.swift',
                "default: if scalar.properties.generalCategory != .control { safe.append(scalar) }",
                "default: safe.append(scalar)",
            ),
            (
                'a byte that breaks UTF-8 swallows the next',
                'Sources/TerminalKit/Input/KeyParser.swift',
                '        guard byte & 0xC0 == 0x80 else {\n'
                '            reset()\n'
                '            take(byte)\n',
                '        guard byte & 0xC0 == 0x80 else {\n'
                '            reset()\n',
            ),
            (
                'the end of a paste is lost where it is cut',
                'Sources/TerminalKit/Input/KeyParser.swift',
                '        defer { events.removeAll() }\n',
                '        defer {\n'
                '            events.removeAll()\n'
                '            if isPasting { pasted.removeAll { $0 == 0x1B } }\n'
                '        }\n',
            ),
            (
                'kills in a row do not belong together',
                'Sources/TerminalKit/Input/LineEditor.swift',
                '            killRing.extend(with: killed, atFront: isBackward)\n',
                '            killRing.add(killed)\n',
            ),
            (
                'the limit counts clusters',
                'Sources/TerminalKit/Input/LineEditor.swift',
                "clusters.reduce(0) { $0 + $1.utf16.count }",
                "clusters.count",
            ),
            (
                'a mark that is typed stays a cluster of its own',
                'Sources/TerminalKit/Input/LineEditor.swift',
                '        clusters = Array(whole)\n'
                '        cursor = Self.boundary(in: clusters, atOrAfterByte: head.utf8.count)\n',
                '        clusters = Array(kept) + Array(fitting) + Array(rest)\n'
                '        cursor = Self.boundary(in: clusters, atOrAfterByte: head.utf8.count) + (whole.isEmpty ? 0 : 0)\n',
            ),
            (
                'undo forgets what a kill took',
                'Sources/TerminalKit/Input/LineEditor.swift',
                '        guard !range.isEmpty else { return .handled }\n'
                '        saveForUndo()\n'
                '        let killed',
                '        guard !range.isEmpty else { return .handled }\n'
                '        let killed',
            ),
            (
                'the best predecessor is the nearest',
                'Sources/TerminalKit/Search/FuzzyMatch.swift',
                "if score > line[column] {",
                "if score != line[column] {",
            ),
            (
                'a frame is rendered before the last one has left',
                'Sources/TerminalKit/Device/FrameQueue.swift',
                '                guard let surface = waiting else { return true }\n'
                '                waiting = nil\n',
                '                guard let surface = waiting else { return true }\n'
                '                waiting = nil\n'
                '                sent = min(1, surface.size.rows)\n',
            ),
            (
                'what was dropped counts as shown',
                'Sources/TerminalKit/Device/FrameQueue.swift',
                '        waiting = nil\n'
                '        renderer.forget()\n'
                '    }',
                '        waiting = nil\n'
                '    }',
            ),
            (
                'a terminal that takes nothing is waited for',
                'Sources/TerminalKit/Device/FrameQueue.swift',
                '        if waiting != nil { skippedFrames += 1 }\n'
                '        waiting = surface\n',
                '        if waiting == nil { waiting = surface }\n',
            ),
            (
                'the line stays raw',
                'Sources/TerminalKit/Device/TerminalLine.swift',
                '        try? apply(original)\n',
                '',
            ),
            (
                'a lone ESC waits for ever',
                'Sources/TerminalKit/Device/TerminalDevice.swift',
                '            deliver(parser.flush())\n',
                '            _ = parser.isWaiting\n',
            ),
            (
                'what is there is not read before a sequence counts as late',
                'Sources/TerminalKit/Device/TerminalDevice.swift',
                '            if input.hasBytes { return inputIsReady() }\n',
                '',
            ),
            (
                'what comes late behind ESC is text',
                'Sources/TerminalKit/Input/KeyParser.swift',
                "if Self.isRestOfSequence(bytes) { state = .escape } else { reset() }",
                "reset()",
            ),
            (
                'a sequence with parameters counts as typed when its rest is late',
                'Sources/TerminalKit/Input/KeyParser.swift',
                "case .ss3(let parameters), .csi(let parameters): parameters.isEmpty",
                "case .ss3, .csi: true",
            ),
            (
                'every line runs from left to right',
                'Sources/TerminalKit/Layout/Surface+Lines.swift',
                "BidiParagraph(Array(own), direction: direction)",
                "BidiParagraph(Array(own), direction: .leftToRight)",
            ),
        ],
    ),
}


def unfit():
    """Yields a line for each mutant whose text does not occur exactly once in its file."""
    for part, (_, mutants) in PARTS.items():
        for number, (title, file, old, _) in enumerate(mutants, start=1):
            count = (ROOT / file).read_text().count(old)
            if count != 1:
                yield f"{part} {number} ({title}): {count} places in {file}, not one"


def notice(tests, file, old, new):
    """Returns what noticed the mutant: a test or the compiler; None if nothing noticed it."""
    source = ROOT / file
    before = source.read_text()
    source.write_text(before.replace(old, new))
    try:
        build = subprocess.run(["swift", "build", "--build-tests"], cwd=ROOT, capture_output=True, text=True)
        if build.returncode:
            return "it does not compile"
        run = subprocess.run(
            ["swift", "test", "--skip-build", "--disable-xctest", "--filter", tests],
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        return "tests that do not end"
    finally:
        source.write_text(before)
    if run.returncode == 0:
        return None
    failed = re.findall(r'^✘ Test "(.*?)" recorded', run.stdout, re.M)
    return failed[0] if failed else "a crash"


def main():
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "Sources"], cwd=ROOT).returncode:
        sys.exit("commit the changes in Sources first")
    chosen = []
    part = None
    for word in sys.argv[1:] or PARTS:
        name, _, number = word.rpartition(":") if ":" in word or word.isdigit() else (word, "", "")
        part = name or part
        numbers = [int(number)] if number else range(1, len(PARTS[part][1]) + 1)
        chosen += [(part, number) for number in numbers]
    survivors = 0
    print("| mutant | noticed by |\n| --- | --- |")
    for part, number in chosen:
        tests, mutants = PARTS[part]
        title, file, old, new = mutants[number - 1]
        noticed = notice(tests, file, old, new)
        survivors += noticed is None
        print(f"| {part} {number}. {title} | {noticed or '**nothing**'} |", flush=True)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
