#!/usr/bin/env python3
"""Removes the fixes for the findings of a security review, one at a time, and runs the tests of each fix.

    Tests/mutants/findings.py            all mutants
    Tests/mutants/findings.py 1 4        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one run for each mutant.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import os
import re
import subprocess
import sys
from dataclasses import dataclass

from switch import ROOT, Mutant, switched

NET = "Sources/TambourNet/"
PROTOCOL = "Sources/TambourProtocol/"
STORE = "Sources/TambourStore/"
MESSENGER = "Sources/TambourMessenger/"
GATEWAY = "Sources/TambourGateway/"
SERVER = "Sources/TambourServer/"
HANDLERS = MESSENGER + "Handlers/"
RULES = MESSENGER + "Rules/"
TAMBOURD = "Sources/tambourd/"
#: The longest time that one run may take, in seconds.
TIMEOUT = 180


@dataclass
class Finding:
    #: The id in `README.md`.
    id: str
    name: str
    #: The tests to run, as a regular expression.
    tests: str
    file: str
    #: The original text, found once in the file.
    old: str
    #: The mutated text; @ is the mutant's number.
    new: str
    #: Whether the test also notices this mutant if it does not end.
    hangs: bool = False


MUTANTS = [
    # C1: one search request ends the process.
    Finding("C1", "the marker of a search is counted down without a look", r"ServerTests.ChatSearchTests/anyMarker",
            STORE + "Search/Search.swift",
            "        return Swift.max(marker, MessageID(1)).before\n",
            "        if mutant == @ { precondition(marker.rawValue > .min) }\n"
            "        return Swift.max(marker, MessageID(1)).before\n"),
    Finding("C1", "before the smallest id comes the largest", r"ProtocolTests.SaturatingTests",
            PROTOCOL + "Ids.swift",
            "    package var before: MessageID { MessageID(rawValue - 1) }\n",
            "    package var before: MessageID { MessageID(mutant == @ ? rawValue &- 1 : rawValue - 1) }\n"),
    # C2: a CONFIG request names one chat many times.
    Finding("C2", "a chat that CONFIG names again is answered again", r"ServerTests.ConfigSizeTests",
            HANDLERS + "SessionHandler.swift",
            "            if changes[id] == nil { order.append(id) }\n",
            "            if changes[id] == nil || mutant == @ { order.append(id) }\n"),
    Finding("C2", "the settings that CONFIG answers have no bound", r"ServerTests.ConfigSizeTests",
            HANDLERS + "SessionHandler.swift",
            "            guard bytes <= limits.maxConfigReplyBytes else {\n",
            "            guard bytes <= limits.maxConfigReplyBytes || mutant == @ else {\n"),
    Finding("C2", "a map in a request may have any number of entries", r"ProtocolTests.BoundedReaderTests",
            PROTOCOL + "MessagePack/WireMap.swift",
            "        if let maxItems, count > maxItems { throw .tooManyItems(count, limit: maxItems) }\n",
            "        if let maxItems, count > maxItems, mutant != @ {\n"
            "            throw .tooManyItems(count, limit: maxItems)\n"
            "        }\n"),
    Finding("C2", "a push may be of any length", r"ServerTests.EncodedPushTests/tooLong",
            GATEWAY + "EncodedPush.swift",
            "            guard payload.count <= mostBytes else { return .tooLong(payload.count) }\n",
            "            guard payload.count <= mostBytes || mutant == @ else {\n"
            "                return .tooLong(payload.count)\n"
            "            }\n"),
    # C3: anybody can lock any account out forever.
    Finding("C3", "the content of a message may be of any size", r"ServerTests.MessageSizeTests",
            RULES + "MessageSizeRules.swift",
            "        guard bytes <= limits.maxMessageContentBytes else {\n",
            "        guard bytes <= limits.maxMessageContentBytes || mutant == @ else {\n"),
    Finding("C3", "a forwarded message may be of any size", r"ServerTests.MessageSizeTests",
            RULES + "MessageSizeRules.swift",
            "        guard forward.bytes.count <= most else {\n",
            "        guard forward.bytes.count <= most || mutant == @ else {\n"),
    Finding("C3", "attributes of a range may be of any size", r"ServerTests.ElementAttributesTests",
            RULES + "ElementRules.swift",
            "            guard let bytes = element.withAttributes.attributes?.bytes.count, bytes > most,\n",
            "            guard mutant != @, let bytes = element.withAttributes.attributes?.bytes.count, bytes > most,\n"),
    Finding("C3", "a too large message of an older store is served whole", r"StoreTests.LargeMessageTests",
            STORE + "Messages/Messages+Reading.swift",
            "        let record = record.fitting(limits)\n",
            "        let record = mutant == @ ? record : record.fitting(limits)\n"),
    Finding("C3", "a too large message of an older store is whole in answers to it", r"StoreTests.LargeMessageTests",
            STORE + "Messages/Messages+Reading.swift",
            "        guard let original = known?.fitting(limits), original.status != .removed\n",
            "        guard let original = mutant == @ ? known : known?.fitting(limits),\n"
            "            original.status != .removed\n"),
    # C4: strangers without an account can stop everybody.
    Finding("C4", "strangers do not pay", r"ServerTests.FloodTests/(ofConnection|ofAddress)",
            GATEWAY + "SessionCharges.swift",
            "        guard info.kind != .login else { return nil }\n",
            "        guard info.kind != .login, mutant != @ else { return nil }\n"),
    Finding("C4", "a turn has no end", r"ServerTests.FairnessTests",
            GATEWAY + "Turn.swift",
            "    var isOver: Bool { bytes <= 0 || frames <= 0 }\n",
            "    var isOver: Bool { mutant != @ && (bytes <= 0 || frames <= 0) }\n"),
    Finding("C4", "a frame counts as it travels, not as it inflates", r"ServerTests.FairnessTests",
            GATEWAY + "Turn.swift",
            "        guard count > 0 else { return }\n",
            "        guard count > 0, mutant != @ else { return }\n"),
    Finding("C4", "strangers do not wait for turns of their own", r"NetTests.TurnTests",
            NET + "Lane+Turns.swift",
            "        if connection.isServedLast {\n            lowPriorityTurns.append(",
            "        if connection.isServedLast, mutant != @ {\n            lowPriorityTurns.append("),
    Finding("C4", "strangers of a round have no budget", r"NetTests.TurnTests",
            NET + "Lane+Turns.swift",
            "        while left > 0, roundWork < end, let connection",
            "        while left > 0, roundWork < end || mutant == @, let connection"),
    # H1: a 1.3 KB frame closes every connection of a user or a group.
    Finding("H1", "one long push closes a client that reads", r"ServerTests.ConnectionLimitsTests/longPush",
            GATEWAY + "Session.swift",
            "        if pending > 0, queuedPushBytes > limits.maxOutboundPushBytes,\n",
            "        if pending > 0 || mutant == @, queuedPushBytes > limits.maxOutboundPushBytes,\n"),
    # H2: opaque attributes lock clients out.
    Finding("H2", "any value is a key", r"ServerTests.ElementAttributesTests|ProtocolTests.BoundedReaderTests",
            PROTOCOL + "MessagePack/MessagePackReader+Decodable.swift",
            "                guard key == .string else { throw Self.undecodableKey(key) }\n",
            "                guard key == .string || mutant == @ else { throw Self.undecodableKey(key) }\n"),
    Finding("H2", "extensions are kept", r"ServerTests.ElementAttributesTests|ProtocolTests.BoundedReaderTests",
            PROTOCOL + "MessagePack/MessagePackReader+Decodable.swift",
            "        case .extension: throw Self.undecodableExtension()\n",
            "        case .extension:\n"
            "            if mutant == @ { return try skip() }\n"
            "            throw Self.undecodableExtension()\n"),
    Finding("H2", "lists lie in lists as deep as a request may", r"ServerTests.ElementAttributesTests|ProtocolTests.BoundedReaderTests",
            PROTOCOL + "MessagePack/AnyValue.swift",
            "        let levels = reader.limits.maxAnyDepth\n",
            "        let levels = mutant == @ ? 64 : reader.limits.maxAnyDepth\n"),
    # H3: one account can block all reads by searching its own messages.
    Finding("H3", "a search in a chat has no budget", r"StoreTests.ScanBudgetTests",
            STORE + "Search/Search.swift",
            "            if budget.isSpent { break }\n",
            "            if budget.isSpent, mutant != @ { break }\n"),
    Finding("H3", "a search everywhere has no budget", r"StoreTests.ScanBudgetTests",
            STORE + "Search/Search.swift",
            "            if isEnough || budget.isSpent && first.position != start { break }\n",
            "            if isEnough || budget.isSpent && first.position != start && mutant != @ { break }\n"),
    Finding("H3", "all words are read that begin as a query's", r"StoreTests.ScanBudgetTests",
            STORE + "Search/Search.swift",
            "        var left = budget.share(atMost: min(SearchIndex.maskRows, limits.maxScannedRows / 8))\n",
            "        var left = budget.share(atMost: min(SearchIndex.maskRows, limits.maxScannedRows / 8))\n"
            "        if mutant == @ { left = 1_000_000 }\n"),
    Finding("H3", "a query may have any number of words", r"StoreTests.SearchWordsTests",
            STORE + "Search/SearchWords.swift",
            "                return words.count < maxWords\n",
            "                return words.count < maxWords || mutant == @\n"),
    Finding("H3", "all queries wait in one line", r"ServerTests.ReaderPoolTests/turns",
            MESSENGER + "Engine/ReaderPool.swift",
            "            case .query: state.queries.add(job, of: subject)\n",
            "            case .query: state.queries.add(job, of: mutant == @ ? .server : subject)\n",
            hangs=True),
    # H4: some requests have no rate limit.
    Finding("H4", "commands are in no bucket", r"ServerTests.FloodTests/ofUser",
            GATEWAY + "Request.swift",
            "            case .command(let command): RateRules.charges(for: command, limits: limits)\n",
            "            case .command(let command):\n"
            "                mutant == @ ? nil : RateRules.charges(for: command, limits: limits)\n"),
    Finding("H4, M6", "queries are in no bucket", r"ServerTests.(FloodTests/ofUser|SightTests/scan)",
            GATEWAY + "Request.swift",
            "            case .query(let query): RateRules.charges(for: query, limits: limits)\n",
            "            case .query(let query):\n"
            "                mutant == @ ? nil : RateRules.charges(for: query, limits: limits)\n"),
    Finding("H4", "a request costs one unit, however much it asks for", r"ServerTests.RateRulesTests",
            MESSENGER + "Limits/RateRules.swift",
            "        return Charge(bucket: cost.bucket, units: max(1, cost.units + cost.itemUnits * items))\n",
            "        if mutant == @ { return Charge(bucket: cost.bucket, units: 1) }\n"
            "        return Charge(bucket: cost.bucket, units: max(1, cost.units + cost.itemUnits * items))\n"),
    Finding("H4", "commands of all wait in one line", r"ServerTests.EngineTurnTests",
            MESSENGER + "Engine/Engine.swift",
            "            for command in commands { waiting.add(command, of: command.subject) }\n",
            "            for command in commands {\n"
            "                waiting.add(command, of: mutant == @ ? .server : command.subject)\n"
            "            }\n"),
    Finding("H4", "CHAT_MEDIA reads on until it finds", r"StoreTests.ScanBudgetTests/media",
            STORE + "Messages/AttachedMessages.swift",
            "                isFull = page.messages.count == limit || budget.isSpent\n",
            "                isFull = page.messages.count == limit || budget.isSpent && mutant != @\n"),
    Finding("H4", "a search of members has no budget", r"StoreTests.MemberScanTests",
            STORE + "Chats/Members+Reading.swift",
            "            if scan.isSpent, let lastSeen {\n",
            "            if scan.isSpent, mutant != @, let lastSeen {\n"),
    # H5: some requests fill the disk by hundreds of megabytes.
    Finding("H5", "answers to refused operations are kept", r"ServerTests.EntityPurgeTests",
            HANDLERS + "EntitiesHandler.swift",
            "            try apply(stored, in: &push, tx)\n"
            "            push.changes.counts.replies += 1\n",
            "            try apply(stored, in: &push, tx)\n"
            "        }\n"
            "        var isKept = mutant == @\n"
            "        if case .apply = decision { isKept = true }\n"
            "        if isKept {\n"
            "            push.changes.counts.replies += 1\n"),
    Finding("H5", "answers to operations are kept without a bound", r"ServerTests.EntityPurgeTests",
            HANDLERS + "EntitiesHandler.swift",
            "        let surplus = max(0, count - Int64(old) - Int64(limits.maxObjectReplies))\n",
            "        let surplus =\n"
            "            mutant == @ ? 0 : max(0, count - Int64(old) - Int64(limits.maxObjectReplies))\n"),
    Finding("H5", "a series goes in one step", r"ServerTests.EntityPurgeTests",
            HANDLERS + "EntityPurger.swift",
            "            let count = try tx.deleteElements(below: purge.parent, limit: budget, of: purge.user)\n",
            "            let count = try tx.deleteElements(\n"
            "                below: purge.parent,\n"
            "                limit: mutant == @ ? 1_000_000 : budget,\n"
            "                of: purge.user\n"
            "            )\n"),
    Finding("H5", "reports have no bound", r"ServerTests.(ReportTests|QuotaTests)",
            HANDLERS + "ReportsHandler.swift",
            "            guard count + new <= limits.maxReports else {\n",
            "            guard count + new <= limits.maxReports || mutant == @ else {\n"),
    # H6: passwords are hashed before any check.
    Finding("H6", "a new password is hashed before its track is looked at", r"ServerTests.PasswordCostTests/notHashed",
            HANDLERS + "AuthHandler+Password.swift",
            "                _ = try change(by: request, from: caller, in: snapshot, now: now)\n",
            "                if mutant != @ {\n"
            "                    _ = try change(by: request, from: caller, in: snapshot, now: now)\n"
            "                }\n"),
    Finding("H6", "a guess is hashed after the tries are used up", r"ServerTests.PasswordCostTests",
            HANDLERS + "AuthHandler+Password.swift",
            "            _ = try tries(of: second, now: now)\n",
            "            if mutant != @ { _ = try tries(of: second, now: now) }\n"),
    Finding("H6", "one account fills the line of passwords", r"ServerTests.PasswordLineTests",
            MESSENGER + "Accounts/PasswordLine.swift",
            "        guard held < share else { return .refused }\n",
            "        guard held < share || mutant == @ else { return .refused }\n"),
    # M1: users see history that the server should withhold.
    Finding("M1", "an answer brings what its reader does not see", r"ServerTests.WithheldReplyTests",
            STORE + "Messages/Messages+Reading.swift",
            "            if let viewpoint {\n",
            "            if let viewpoint, mutant != @ {\n"),
    Finding("M1", "a push brings what its reader does not see", r"ServerTests.WithheldReplyTests",
            HANDLERS + "ChatNews.swift",
            "        guard !outsiders.isEmpty else { return emit(to: readers) }\n",
            "        guard !outsiders.isEmpty, mutant != @ else { return emit(to: readers) }\n"),
    # M2: the server runs out of descriptors.
    Finding("M2", "an acceptor without descriptors does not rest", r"ServerTests.ExhaustedAcceptorTests",
            NET + "Acceptor.swift",
            "                rest()\n",
            "                if mutant != @ { rest() }\n"),
    Finding("M2", "no descriptors are kept for those who are there", r"ServerTests.StrangersTests/room",
            GATEWAY + "Admission.swift",
            "        guard used >= crowdedFrom else { return true }\n",
            "        guard used >= crowdedFrom, mutant != @ else { return true }\n"),
    Finding("M2", "one address may hold any number of connections", r"ServerTests.StrangersTests/bound",
            GATEWAY + "Strangers.swift",
            "                let line = state.byAddress[address], line.count > perAddress,\n",
            "                let line = state.byAddress[address], line.count > perAddress, mutant != @,\n"),
    Finding("M2", "nobody learns that accepting pauses", r"ServerTests.StrangersTests",
            GATEWAY + "Admission.swift",
            "        metrics.acceptPauses.add(1)\n",
            "        if mutant == @ { return }\n"
            "        metrics.acceptPauses.add(1)\n"),
    # M3: an admin command ends the server.
    Finding("M3", "any number of days is asked for", r"ServerTests.AdminNumberTests",
            MESSENGER + "Operator/AdminFilter.swift",
            "        guard Self.dayRange.contains(days) else {\n",
            "        guard Self.dayRange.contains(days) || mutant == @ else {\n"),
    # M4: the programs that deliver codes.
    Finding("M4", "any number of code programs runs at once", r"SystemTests.CodeProgramTests/hanging",
            TAMBOURD + "CodeProgram.swift",
            "                state.running.count < limits.maxCodeProgramsRunning\n",
            "                state.running.count < limits.maxCodeProgramsRunning || mutant == @\n"),
    Finding("M4", "code programs outlive the server", r"SystemTests.CodeProgramTests/hanging",
            TAMBOURD + "CodeProgram.swift",
            "            if !state.running.isEmpty { state.ended = body }\n"
            "            return (dropped, state.running.isEmpty)\n",
            "            if !state.running.isEmpty, mutant != @ { state.ended = body }\n"
            "            return (dropped, state.running.isEmpty || mutant == @)\n"),
    Finding("M4", "any number of codes goes to one e-mail address", r"ServerTests.TwoFactorTests",
            HANDLERS + "AuthHandler+Email.swift",
            "        guard codes < limits.maxCodesPerEmailPerHour else { throw RequestError.authBlocked }\n",
            "        guard codes < limits.maxCodesPerEmailPerHour || mutant == @ else {\n"
            "            throw RequestError.authBlocked\n"
            "        }\n"),
    Finding("M4", "one account has any number of e-mails sent", r"ServerTests.TwoFactorTests",
            HANDLERS + "AuthHandler+Email.swift",
            "            try tx.reader.emailCodes(of: user, since: hourAgo) < limits.maxEmailCodesPerUserPerHour\n",
            "            try mutant == @\n"
            "                || tx.reader.emailCodes(of: user, since: hourAgo)\n"
            "                    < limits.maxEmailCodesPerUserPerHour\n"),
    # M5: an account can lock itself out, although it stays within the limits.
    Finding("M5", "settings have no bound of bytes", r"ServerTests.LoginSettingsTests",
            HANDLERS + "SessionHandler.swift",
            "            guard bytes <= limits.maxSettingsBytes else {\n",
            "            guard bytes <= limits.maxSettingsBytes || mutant == @ else {\n"),
    Finding("M5", "LOGIN brings all settings of an older store", r"ServerTests.LoginSettingsTests",
            STORE + "Accounts/Settings.swift",
            "            guard size <= room else { return }\n",
            "            guard size <= room || mutant == @ else { return }\n"),
    # M6: anybody can read the whole directory.
    Finding("M6", "CONTACT_INFO shows everybody", r"ServerTests.SightTests",
            HANDLERS + "ContactsHandler.swift",
            "            guard try state.sight.sees(id, as: known, in: snapshot), let contact = known else {\n",
            "            guard try mutant == @ || state.sight.sees(id, as: known, in: snapshot),\n"
            "                let contact = known\n"
            "            else {\n"),
    Finding("M6", "CONTACT_PRESENCE shows everybody", r"ServerTests.SightTests",
            HANDLERS + "ContactsHandler.swift",
            "            if try state.sight.seesPresence(id, as: contact, in: snapshot),\n",
            "            if try mutant == @ || state.sight.seesPresence(id, as: contact, in: snapshot),\n"),
    Finding("M6", "strangers are invited by an id alone", r"ServerTests.SightTests",
            HANDLERS + "ChatNews.swift",
            "            try sight.sees(user, in: self)\n",
            "            try mutant == @ || sight.sees(user, in: self)\n"),
    Finding("M6", "user ids count from 1", r"StoreTests.UserIDTests",
            STORE + "Accounts/UserIDSource.swift",
            "        let id = next() & (1 << Self.bits - 1)\n",
            "        let id = next() & (1 << (mutant == @ ? 20 : Self.bits) - 1)\n"),
    Finding("M6", "a random id is taken twice", r"StoreTests.UserIDTests",
            STORE + "Accounts/UserIDSource.swift",
            "            guard let id = userIDs.candidate(), try reader.account(id) == nil else { continue }\n",
            "            guard let id = userIDs.candidate(), try mutant == @ || reader.account(id) == nil else {\n"
            "                continue\n"
            "            }\n"),
    Finding("M6", "readers of a channel meet each other", r"StoreTests.MeetingStoreTests",
            STORE + "Accounts/Meetings.swift",
            "        statement.bind(4, wanted == .near ? 1 : 0)\n",
            "        statement.bind(4, mutant == @ ? 0 : wanted == .near ? 1 : 0)\n"),
    Finding("M6", "comparing whom one has met has no bound", r"StoreTests.MeetingStoreTests",
            STORE + "Accounts/Meetings.swift",
            "        guard rows > 0 else { return false }\n",
            "        guard rows > 0 || mutant == @ else { return false }\n"),
    Finding("M6", "who is named in a chat is not remembered", r"StoreTests.MeetingStoreTests",
            STORE + "Accounts/Introductions.swift",
            "|| chat.post != nil else { return }\n", "|| chat.post != nil, mutant != @ else { return }\n"),
    Finding("M6", "what somebody has found is kept without a bound", r"ServerTests.FoundPeopleTests",
            RULES + "FoundPeople.swift",
            "                if ring.people.count < perFinder {\n",
            "                if ring.people.count < perFinder || mutant == @ {\n"),
    # Findings of low severity.
    Finding("L1", "a throttle admits every line", r"ServerTests.(LogThrottleTests|FairnessTests/brokenFrames)",
            MESSENGER + "Operator/LogThrottle.swift",
            "            if let last = state.lastMs, nowMs >= last, nowMs - last < intervalMs {\n",
            "            if mutant != @, let last = state.lastMs, nowMs >= last, nowMs - last < intervalMs {\n"),
    Finding("L1", "each reply and push that is too long writes a line", r"ServerTests.ThrottledLinesTests/tooLong",
            MESSENGER + "Operator/ThrottledLog.swift",
            "        guard let suppressed = throttle.admit(nowMs: nowMs()) else { return }\n",
            "        let admitted = mutant == @ && level == .error ? 0 : throttle.admit(nowMs: nowMs())\n"
            "        guard let suppressed = admitted else { return }\n"),
    Finding("L1", "each batch that a full disk refuses writes a line", r"ServerTests.ThrottledLinesTests/refusedBatches",
            MESSENGER + "Messenger.swift",
            '        let report: @Sendable (String) -> Void = { reports.error("\\($0)") }\n',
            '        let report: @Sendable (String) -> Void = {\n'
            '            if mutant == @ { logger.error("\\($0)") } else { reports.error("\\($0)") }\n'
            '        }\n'),
    Finding("L2", "NULs behind a password change nothing", r"ServerTests.PasswordCollisionTests",
            MESSENGER + "Accounts/PasswordHasher.swift",
            "        case .digested: Array(SHA256.hash(data: Array(password.password.utf8)))\n",
            "        case .digested where mutant == @: Array(password.password.utf8)\n"
            "        case .digested: Array(SHA256.hash(data: Array(password.password.utf8)))\n"),
    Finding("L3", "any lease is believed", r"ServerTests.ImpossibleRowTests/starts",
            STORE + "Core/StoreWriter.swift",
            "        guard MessageID.times.contains(time) else { throw ImpossibleRow(\"meta \\(key)\", time) }\n",
            "        guard MessageID.times.contains(time) || mutant == @ else {\n"
            "            throw ImpossibleRow(\"meta \\(key)\", time)\n"
            "        }\n"),
    Finding("L3", "ids count on from any id", r"ServerTests.ImpossibleRowTests/starts",
            STORE + "Core/WriteTransaction.swift",
            "            guard id <= StoreCheck.ids.upperBound else { throw ImpossibleRow(\"\\(table): id\", id) }\n",
            "            guard id <= StoreCheck.ids.upperBound || mutant == @ else {\n"
            "                throw ImpossibleRow(\"\\(table): id\", id)\n"
            "            }\n"),
    Finding("L3", "the number of a message need not rise", r"StoreTests.MessageStoreTests",
            STORE + "Messages/Messages+Writing.swift",
            "        guard record.id > chat.head.id, record.number > chat.head.number else {\n",
            "        guard record.id > chat.head.id, record.number > chat.head.number || mutant == @ else {\n"),
    Finding("L3", "the check knows no ranges", r"StoreTests.StoreCheckTests",
            STORE + "Operator/StoreCheck+Numbers.swift",
            "        for table in numbers { problems += try impossible(table, in: store.sql) }\n",
            "        for table in numbers where mutant != @ {\n"
            "            problems += try impossible(table, in: store.sql)\n"
            "        }\n"),
    Finding("L3", "the check looks at the first column of each table", r"ServerTests.ImpossibleRowTests/sweep",
            STORE + "Operator/StoreCheck+Numbers.swift",
            "            for (index, (column, range)) in table.ranges.enumerated() {\n",
            "            for (index, (column, range)) in table.ranges.enumerated()\n"
            "            where mutant != @ || index == 0 {\n"),
    Finding("L3", "the id of the next entity counts on from any id", r"StoreTests.EntityStoreTests",
            STORE + "Entities/StoredEntities.swift",
            "            guard StoreCheck.messages.contains(row.int(.lastID)) else {\n",
            "            guard StoreCheck.messages.contains(row.int(.lastID)) || mutant == @ else {\n"),
    Finding("L4", "an admin command waits for a silent one", r"ServerTests.AdminSocketTests/silent",
            SERVER + "Admin/AdminSocket.swift",
            "        connections.append(connection)\n",
            "        var byte: UInt8 = 0\n"
            "        if mutant == @, recv(descriptor, &byte, 1, Int32(MSG_PEEK)) <= 0 {\n"
            "            return connection.refuse(\"not an admin command\")\n"
            "        }\n"
            "        connections.append(connection)\n"),
    Finding("L4", "silent connections hold all places of the admin socket", r"ServerTests.AdminSocketTests/bound",
            SERVER + "Admin/AdminSocket.swift",
            "            guard let silent = connections.first(where: \\.isReading) else {\n",
            "            guard mutant != @, let silent = connections.first(where: \\.isReading) else {\n"),
    Finding("L5", "a clock that is set back empties buckets", r"ServerTests.RateLimiterTests",
            MESSENGER + "Limits/RateLimiter.swift",
            "            if wallMs < lastWall { ahead += lastWall - wallMs }\n",
            "            if wallMs < lastWall, mutant != @ { ahead += lastWall - wallMs }\n"),
    Finding("L6", "what comes behind LOGOUT is carried out", r"ServerTests.SessionEndTests",
            MESSENGER + "Engine/Dispatcher.swift",
            "        guard try tx.isListed(caller.userID), try tx.isOpen(caller.sessionID) else {\n",
            "        guard try tx.isListed(caller.userID), try tx.isOpen(caller.sessionID) || mutant == @ else {\n"),
    Finding("L6", "what waits behind LOGOUT is begun", r"ServerTests.SessionEndTests",
            GATEWAY + "Session.swift",
            "            if session.isTokenDead {\n",
            "            if session.isTokenDead, mutant != @ {\n"),
    Finding("L7", "a REGISTER token logs into an account that came later", r"ServerTests.PhoneChangeTests",
            HANDLERS + "AuthHandler.swift",
            "        if let owner = try tx.reader.account(phone: phone) {\n",
            "        if mutant != @, let owner = try tx.reader.account(phone: phone) {\n"),
    Finding("L7", "codes for a phone outlive its change of hands", r"ServerTests.PhoneChangeTests",
            STORE + "Accounts/Erasure.swift",
            "        try store.sessions.voidCodesOfPhone.run { $0.bind(1, phone) }\n",
            "        if mutant != @ { try store.sessions.voidCodesOfPhone.run { $0.bind(1, phone) } }\n"),
    Finding("L8", "codes of all addresses count against each", r"ServerTests.AuthRequestTests",
            HANDLERS + "AuthHandler.swift",
            "        let fromHere = try tx.reader.loginCodes(phone: phone, address: subject, since: windowStart)\n",
            "        let fromHere =\n"
            "            try mutant == @\n"
            "            ? tx.reader.loginCodes(phone: phone, since: windowStart)\n"
            "            : tx.reader.loginCodes(phone: phone, address: subject, since: windowStart)\n"),
    Finding("L9", "a file for codes that cannot be written is taken", r"SystemTests.CommandLineTests/refusals",
            TAMBOURD + "LoginCodeSource+Parsing.swift",
            "                try append(\"\", to: path)\n",
            "                if mutant != @ { try append(\"\", to: path) }\n"),
    Finding("L10", "a store that cannot be written is opened as one that can", r"ServerTests.ReadOnlyAdminTests",
            SERVER + "Admin/ReadOnlyAdminBackend.swift",
            "        store = try StoreConnection(SQLFile(path).open(.immutable), limits: limits)\n",
            "        store = try StoreConnection(\n"
            "            SQLFile(path).open(mutant == @ ? .readWrite : .immutable), limits: limits)\n"),
    # Suspicions.
    Finding("S1", "each address of a network has its own bucket", r"ServerTests.PeerAddressTests|ServerTests.RateLimiterTests",
            MESSENGER + "Limits/PeerAddress.swift",
            "        self = isMapped ? .ipv4(UInt32(truncatingIfNeeded: low)) : .ipv6(prefix: high)\n",
            "        self =\n"
            "            isMapped ? .ipv4(UInt32(truncatingIfNeeded: low)) : mutant == @ ? .other(text) : .ipv6(prefix: high)\n"),
    Finding("S2", "each address of a network gets codes of its own", r"ServerTests.CodesPerNetworkTests",
            HANDLERS + "AuthHandler.swift",
            "        let subject = address.description\n",
            "        let subject = mutant == @ ? requester.origin.address : address.description\n"),
    # Later fixes: pages and logins that end inside one millisecond.
    Finding("pages", "a page that ends inside a millisecond goes on after it", r"StoreTests.ChatPageTests",
            STORE + "Chats/ChatPages.swift",
            "        return (chats, ChatCursor(at: cut, remaining: Int64(remaining)).marker)\n",
            "        return (chats, mutant == @ ? cut : ChatCursor(at: cut, remaining: Int64(remaining)).marker)\n"),
    Finding("pages", "a page forgets what earlier ones had of its millisecond", r"StoreTests.ChatPageTests",
            STORE + "Chats/ChatPages.swift",
            "        let taken = cut == cursor.time ? skipped + chats.count : chats.count\n",
            "        let taken = cut == cursor.time && mutant != @ ? skipped + chats.count : chats.count\n"),
    Finding("pages", "chats of one millisecond have no bound of bytes", r"ServerTests.SharedMillisecondTests/chats",
            STORE + "Chats/ChatPages.swift",
            "            if budget < 0, !chats.isEmpty { break }\n",
            "            if budget < 0, !chats.isEmpty, mutant != @ { break }\n"),
    Finding("pages", "contacts of one commit come whole", r"ServerTests.SharedMillisecondTests/contacts",
            MESSENGER + "Sync/ContactSync.swift",
            "            guard more <= room else { return contact.bareUser }\n",
            "            guard more <= room || mutant == @ else { return contact.bareUser }\n"),
    Finding("pages", "LOGIN2 does not say what it leaves out", r"ServerTests.(ReplyRoomTests/login2|SharedMillisecondTests/contacts)",
            MESSENGER + "Sync/LoginRoom.swift",
            "        leave(kind, since: mark, upTo: cut)\n        return fitting",
            "        if mutant != @ { leave(kind, since: mark, upTo: cut) }\n        return fitting"),
    Finding("pages", "drafts of one millisecond have no bound", r"ServerTests.SharedMillisecondTests/drafts",
            HANDLERS + "DraftsHandler.swift",
            "        guard saved > limits.maxReplyBytes / 8 else { return }\n",
            "        guard saved > limits.maxReplyBytes / 8, mutant != @ else { return }\n"),
    # Large replies.
    Finding("replies", "all large pages go out at once", r"ServerTests.LargePageTests/onePing",
            GATEWAY + "PageTurns.swift",
            "        bytesPerRound = max(1, limits.maxReplyBytesPerRound)\n",
            "        bytesPerRound = mutant == @ ? .max : max(1, limits.maxReplyBytesPerRound)\n"),
    Finding("replies", "large pages of all accounts wait in one line", r"ServerTests.LargePageTests/accounts",
            GATEWAY + "PageTurns.swift",
            "        pages.add(page, of: session.account.subject)\n",
            "        pages.add(page, of: mutant == @ ? .server : session.account.subject)\n"),
    Finding("replies", "a reply costs the same whatever its size", r"ServerTests.LargePageTests/price",
            MESSENGER + "Limits/RateRules.swift",
            "        bytes / max(1, limits.replyBytesPerRow)\n",
            "        mutant == @ ? 0 : bytes / max(1, limits.replyBytesPerRow)\n"),
    Finding("replies", "pages are made for a client that does not read", r"ServerTests.LargePageTests/backpressure",
            GATEWAY + "Session.swift",
            "        machine.hold()\n",
            "        if mutant != @ { machine.hold() }\n"),
    Finding("replies", "a client that never reads stays", r"ServerTests.LargePageTests/stalled",
            GATEWAY + "ReaderBacklog.swift",
            "    var deadlineMs: Int64? { lag.map { $0.sinceMs + timeoutMs } }\n",
            "    var deadlineMs: Int64? { mutant == @ ? nil : lag.map { $0.sinceMs + timeoutMs } }\n"),
    # Bad LOGIN requests of strangers.
    Finding("logins", "a stranger has any number of LOGINs at once", r"ServerTests.StrangersTests",
            GATEWAY + "Session.swift",
            "            && (opcode == .login || opcode.info?.movedIn.isEmpty == false)\n",
            "            && (opcode == .login && mutant != @ || opcode.info?.movedIn.isEmpty == false)\n"),
    Finding("logins", "a refused LOGIN keeps its place before others", r"ServerTests.(StrangersTests|StrangerLinesTests)",
            GATEWAY + "Strangers.swift",
            "        if stage == .loggingIn, stranger.wasRefused { return }\n",
            "        if stage == .loggingIn, stranger.wasRefused, mutant != @ { return }\n"),
    Finding("logins", "each move of a stranger looks at all others", r"ServerTests.StrangerLinesTests",
            GATEWAY + "Strangers.swift",
            "        guard length > 2 * count + Self.keptStale else { return }\n",
            "        guard length > 2 * count + Self.keptStale || mutant == @ else { return }\n"),
    Finding("logins", "logins and queries share readers", r"ServerTests.ReaderPoolTests",
            MESSENGER + "Engine/ReaderPool.swift",
            "            if !forLoginsOnly, let (subject, job) = queries.take() { return (.query, subject, job) }\n",
            "            if !forLoginsOnly || mutant == @, let (subject, job) = queries.take() {\n"
            "                return (.query, subject, job)\n"
            "            }\n"),
    # Logins that are in progress when sessions are ended.
    Finding("sign-ins", "a QR code outlives the session that approved it", r"ServerTests.SignInsUnderWayTests",
            STORE + "Accounts/Accounts+Writing.swift",
            "        for session in sessions { try voidSignIns(approvedBy: session, of: user) }\n",
            "        for session in sessions where mutant != @ {\n"
            "            try voidSignIns(approvedBy: session, of: user)\n"
            "        }\n"),
    Finding("sign-ins", "logins under way outlive the end of all sessions", r"ServerTests.SignInsUnderWayTests",
            STORE + "Accounts/Accounts+Writing.swift",
            "        try voidSignIns(of: user)\n",
            "        if mutant != @ { try voidSignIns(of: user) }\n"),
    # Room for votes in a poll, and dialogs in which one user has blocked the other.
    Finding("votes", "a poll has no room for its votes", r"ServerTests.LaterAdditionsTests",
            RULES + "MessageSizeRules.swift",
            "            poll == nil\n",
            "            poll == nil || mutant == @\n"),
    Finding("blocks", "read marks reach whoever has blocked", r"ServerTests.BlockedDialogTests",
            STORE + "Messages/Messages+Writing.swift",
            "        if time > member.shownTime, !chat.isShut,\n",
            "        if time > member.shownTime, !chat.isShut || mutant == @,\n"),
    Finding("blocks", "a pin reaches whoever has blocked", r"ServerTests.BlockedDialogTests",
            HANDLERS + "GroupsHandler.swift",
            "        try ChatRules.requireOpen(chat, for: caller.userID)\n",
            "        if mutant != @ { try ChatRules.requireOpen(chat, for: caller.userID) }\n"),
    Finding("blocks", "a new name reaches whoever has blocked", r"ServerTests.BlockedDialogTests",
            HANDLERS + "SessionHandler.swift",
            "        where !contact.contact.isBlocked {\n",
            "        where !contact.contact.isBlocked || mutant == @ {\n"),
    Finding("blocks", "a retry follows the presence of whoever has blocked", r"ServerTests.BlockedDialogTests",
            MESSENGER + "Engine/Dispatcher+Answers.swift",
            "            interest: isOpen ? .dialog(reply.chatID) : nil\n",
            "            interest: isOpen || mutant == @ ? .dialog(reply.chatID) : nil\n"),
    # Quotas.
    Finding("quotas", "what is kept of a chat that was left cannot be taken away", r"ServerTests.QuotaTests",
            HANDLERS + "SessionHandler.swift",
            "                try before != nil && takesAway\n",
            "                try before != nil && takesAway && mutant != @\n"),
    Finding("quotas", "a request to join cannot be taken back", r"ServerTests.JoinRequestTests",
            HANDLERS + "GroupsHandler.swift",
            "        if try tx.takeBackRequest(of: caller.userID, in: request.chatID) {\n",
            "        if try mutant != @ && tx.takeBackRequest(of: caller.userID, in: request.chatID) {\n"),
    Finding("quotas", "a user has any number of sessions", r"ServerTests.SessionQuotaTests",
            HANDLERS + "AuthHandler.swift",
            "        if surplus > 0 {\n",
            "        if surplus > 0, mutant != @ {\n"),
    Finding("quotas", "a token has any number of connections", r"ServerTests.StrangersTests/perAccount",
            GATEWAY + "AccountConnections.swift",
            "            excess += rest.prefix(max(0, rest.count - perToken))\n",
            "            if mutant != @ { excess += rest.prefix(max(0, rest.count - perToken)) }\n"),
    # Deletions and their steps.
    Finding("deletions", "members hear of deleted messages that were not there for them", r"ServerTests.MsgDeleteTests",
            HANDLERS + "ChatNews.swift",
            "        guard !floors.isEmpty else { return emit(deleted, to: try audience(of: chat)) }\n",
            "        guard !floors.isEmpty, mutant != @ else { return emit(deleted, to: try audience(of: chat)) }\n"),
    Finding("deletions", "each beginning of a chat has a push of its own", r"ServerTests.MsgDeleteTests",
            HANDLERS + "ChatNews.swift",
            "        let cutsPerPush = (cuts.count - 1) / limits.fanOutMembers + 1\n",
            "        let cutsPerPush = mutant == @ ? 1 : (cuts.count - 1) / limits.fanOutMembers + 1\n"),
    Finding("deletions", "all messages of a cleared chat go in one step", r"StoreTests.ChatPurgeTests",
            STORE + "Chats/ChatPurge.swift",
            "        return try removePart(upTo: last, of: chat, limit: store.limits.purgedRowsPerStep)\n",
            "        let limit = mutant == @ ? 1_000_000 : store.limits.purgedRowsPerStep\n"
            "        return try removePart(upTo: last, of: chat, limit: limit)\n"),
    # Functions for operators: the audit log, announcements, default chats.
    Finding("operator", "each refused sign-in is an entry of its own", r"StoreTests.AuditStoreTests|ServerTests.AuditTests",
            STORE + "Operator/Audit.swift",
            "        if counted == 0 { try record(action, about: user, from: address) }\n",
            "        if counted == 0 || mutant == @ { try record(action, about: user, from: address) }\n"),
    Finding("operator", "the audit log has no bound", r"StoreTests.AuditStoreTests",
            STORE + "Operator/Audit.swift",
            "            $0.bind(2, number - Int64(store.limits.maxAuditRows))\n",
            "            $0.bind(2, mutant == @ ? -1 : number - Int64(store.limits.maxAuditRows))\n"),
    Finding("operator", "refusals displace sign-ins", r"StoreTests.AuditStoreTests",
            STORE + "Operator/Audit.swift",
            "            case .codeRefused, .passwordRefused: .refused\n",
            "            case .codeRefused, .passwordRefused: mutant == @ ? .signIn : .refused\n"),
    Finding("operator", "the audit log is kept for ever", r"ServerTests.AuditTests",
            MESSENGER + "Engine/Housekeeper.swift",
            "        return try tx.pruneAudit(before: tx.ct - Int64(auditDays) * 86_400_000)\n",
            "        return try mutant != @ && tx.pruneAudit(before: tx.ct - Int64(auditDays) * 86_400_000)\n"),
    Finding("operator", "a known device is called new", r"ServerTests.AuditTests",
            HANDLERS + "AuthHandler.swift",
            "            isNew ? .registration : isKnown ? .signIn : .newDevice,\n",
            "            isNew ? .registration : isKnown && mutant != @ ? .signIn : .newDevice,\n"),
    Finding("operator", "an export leaves the audit log out", r"ServerTests.AuditTests",
            MESSENGER + "Operator/AdminService+Export.swift",
            "        try audit()\n",
            "        if mutant != @ { try audit() }\n"),
    Finding("operator", "the log names the phone that was typed", r"ServerTests.AuditTests",
            SERVER + "Admin/AdminSocket.swift",
            "            let reason = (error as? AdminService.Failure)?.reason ?? \"\\(error)\"\n",
            "            let reason = (mutant == @ ? nil : error as? AdminService.Failure)?.reason ?? \"\\(error)\"\n"),
    Finding("operator", "an announcement is posted before everybody is a member", r"ServerTests.AnnouncementTests",
            MESSENGER + "Operator/Announcer.swift",
            "        if page.count == limits.announcedPerStep, let last = page.last {\n",
            "        if page.count == limits.announcedPerStep, mutant != @, let last = page.last {\n"),
    Finding("operator", "an announcement is posted and not noted as posted", r"ServerTests.AnnouncementTests",
            MESSENGER + "Operator/Announcer.swift",
            "        try tx.finish(waiting, as: record.id)\n",
            "        if mutant != @ { try tx.finish(waiting, as: record.id) }\n", hangs=True),
    Finding("operator", "nobody goes on with an announcement after a restart", r"ServerTests.AnnouncementTests",
            MESSENGER + "Engine/Housekeeper.swift",
            "        case .more, .posted, .hasNoChannel: return true\n",
            "        case .more, .posted, .hasNoChannel: if mutant != @ { return true }\n"),
    Finding("operator", "a new account joins no default chat", r"ServerTests.DefaultChatTests",
            HANDLERS + "AuthHandler.swift",
            "        try tx.joinDefaultChats([id], limits: limits)\n",
            "        if mutant != @ { try tx.joinDefaultChats([id], limits: limits) }\n"),
    Finding("operator", "a default group grows above its limit", r"ServerTests.DefaultChatTests",
            MESSENGER + "Operator/Announcer.swift",
            "                ? users.count : max(0, limits.maxGroupMembers - chat.memberCount)\n",
            "                || mutant == @ ? users.count : max(0, limits.maxGroupMembers - chat.memberCount)\n"),
]


def mutants():
    return [Mutant(finding.name, [], finding.file, finding.old, finding.new) for finding in MUTANTS]


def noticed(number, tests):
    """Returns the test that failed with this mutant; None if no test failed; "timeout" if a test did not end."""
    command = ["swift", "test", "--skip-build", "--disable-xctest", "--traits", "PostgreSQL,TLS", "--filter", tests]
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=dict(os.environ, TAMBOUR_MUTANT=str(number)), text=True, timeout=TIMEOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return "timeout"
    if run.returncode == 0:
        return None
    found = re.search(r"recorded an issue.* at (\w+)\.swift", run.stdout)
    return found[1] if found else "a crash"


def main():
    chosen = sorted({int(number) for number in sys.argv[1:]} or range(1, len(MUTANTS) + 1))
    missed = 0
    with switched(mutants()):
        subprocess.run(["swift", "build", "--build-tests", "--traits", "PostgreSQL,TLS"], cwd=ROOT, check=True, stdout=sys.stderr)
        for tests in sorted({MUTANTS[number - 1].tests for number in chosen}):
            if alone := noticed(0, tests):
                sys.exit(f"{tests} is red without any mutant: {alone}")
        print("| finding | mutant: what is broken | noticed by |\n| --- | --- | --- |", flush=True)
        for number in chosen:
            finding = MUTANTS[number - 1]
            how = noticed(number, finding.tests)
            if how == "timeout" and not finding.hangs:
                how = None
            missed += not how
            print(f"| {finding.id} | {number}. {finding.name} | {how or 'NOTHING'} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
