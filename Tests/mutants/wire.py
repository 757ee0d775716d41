#!/usr/bin/env python3
"""Breaks the server in one place at a time and runs the conformance suite. The suite must notice every mutant.

    Tests/mutants/wire.py PYTHON            all mutants
    Tests/mutants/wire.py PYTHON 4 7        these two

PYTHON must have the conformance suite installed. `make conformance` creates such a .build/venv-conformance/bin/python.
Prints the table for README.md. The exit code is 1 if the suite did not notice a mutant.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from switch import ROOT, Mutant, switched

PROTOCOL = "Sources/TambourProtocol/"
FRAMING = "Sources/TambourFraming/"
READER = PROTOCOL + "MessagePack/MessagePackReader.swift"
SESSION = "Sources/TambourGateway/Session.swift"
MACHINE = "Sources/TambourGateway/SessionStateMachine.swift"
HANDLERS = "Sources/TambourMessenger/Handlers/"
RULES = "Sources/TambourMessenger/Rules/"
SYNC = "Sources/TambourMessenger/Sync/LoginSync.swift"
STORE = "Sources/TambourStore/"

# The fields: the broken rule, the cases that are likely to notice it, the file, the original text (found once), and the
# mutated text (@ is the mutant's number).
MUTANTS = [
    # Framing
    Mutant("any version is read", ["HDR"], FRAMING + "FrameDecoder.swift",
           "guard PacketHeader.reads(version: bytes[offset]) else",
           "guard mutant == @ || PacketHeader.reads(version: bytes[offset]) else"),
    Mutant("any command is read", ["HDR"], FRAMING + "FrameDecoder.swift",
           "if left > 1, bytes[offset + 1] > 3 {", "if left > 1, bytes[offset + 1] > 3, mutant != @ {"),
    Mutant("strangers may send what users may", ["FRM"], FRAMING + "FrameDecoder.swift",
           "let limit = authenticated ?", "let limit = authenticated || mutant == @ ?"),
    Mutant("only the low byte of the number is echoed", ["SEQ"], FRAMING + "PacketHeader.swift",
           "bytes.storeBytes(of: sequence.bigEndian", "bytes.storeBytes(of: (mutant == @ ? sequence & 0xFF : sequence).bigEndian"),
    Mutant("the high byte of the opcode is dropped", ["HDR"], SESSION,
           "        let opcode = Opcode(rawValue: frame.header.opcode)\n        shared.metrics.countRequest",
           "        let opcode = Opcode(rawValue: mutant == @ ? frame.header.opcode & 0xFF : frame.header.opcode)\n"
           "        shared.metrics.countRequest"),
    Mutant("receipts are taken for requests", ["HDR", "PSH"], SESSION,
           "guard frame.header.command == PacketCommand.request.rawValue else { return }",
           "guard frame.header.command == PacketCommand.request.rawValue || mutant == @ else { return }"),
    Mutant("what is not served counts as nonsense", ["HDR"], SESSION,
           "count as\n            // malformed.\n            return send(.protoOpcode, sequence, opcode)",
           "count as\n            // malformed.\n            return mutant == @\n                ? refuseSoftly(.protoOpcode, sequence, opcode)"
           " : send(.protoOpcode, sequence, opcode)"),
    Mutant("pushes count on", ["SEQ"], SESSION,
           "let sequence = (lastSequence &+ 128) & 0xFF", "let sequence = mutant == @ ? lastSequence &+ 128 : (lastSequence &+ 128) & 0xFF"),
    # Compression
    Mutant("the factor is believed", ["CMP"], FRAMING + "Frame.swift",
           "return try LZ4.decompress(wirePayload, limit: limit)",
           "return try LZ4.decompress(\n                    wirePayload,\n                    "
           "limit: mutant == @ ? min(limit, wirePayload.count * Int(header.flags)) : limit\n                )"),
    Mutant("a factor too small by one is written", ["CMP"], FRAMING + "FrameEncoder.swift",
           "payload.count / size + 1 : .max", "payload.count / size + (mutant == @ ? 0 : 1) : .max"),
    Mutant("large blocks for everybody", ["CMP"], FRAMING + "Compression.swift",
           "self = capabilities.contains(.lz4Large) ? .large", "self = mutant == @ || capabilities.contains(.lz4Large) ? .large"),
    # Payloads
    Mutant("a key may come twice", ["MSP"], PROTOCOL + "MessagePack/GeneratedSupport.swift",
           "guard seen & bit == 0 else", "guard seen & bit == 0 || mutant == @ else"),
    Mutant("any depth", ["MSP"], READER,
           "guard depth <= limits.maxDepth else { throw tooDeep() }\n        elements",
           "guard depth <= limits.maxDepth || mutant == @ else { throw tooDeep() }\n        elements"),
    Mutant("bytes after the map are ignored", ["MSP"], READER,
           "guard reader.position == reader.end else", "guard reader.position == reader.end || mutant == @ else"),
    Mutant("no bytes are no map", ["FRM"], PROTOCOL + "MessagePack/WirePayload.swift",
           "Bytes(payload.isEmpty || isNil ? [0x80] : payload)", "Bytes(payload.isEmpty && mutant != @ || isNil ? [0x80] : payload)"),
    Mutant("nil is no map", ["MSP"], PROTOCOL + "MessagePack/WirePayload.swift",
           "payload.count == 1 && payload[0] == 0xC0\n", "payload.count == 1 && payload[0] == 0xC0 && mutant != @\n"),
    Mutant("a code logs nobody in", ["SES"], SESSION,
           "        if let opened = answer.opened { account.signedIn(opened) }\n", "        if let opened = answer.opened, mutant != @ { account.signedIn(opened) }\n"),
    Mutant("the first token holds though it was never chosen", ["AUT"], SESSION,
           "        let known = client.isSignedInByCode ? nil : caller\n",
           "        let known = client.isSignedInByCode && mutant != @ ? nil : caller\n"),
    Mutant("unknown numbers count as nonsense", ["SES"], SESSION,
           "caller == nil || unknownOpcodes", "caller == nil || mutant == @ || unknownOpcodes"),
    Mutant("classic clients are told nothing unread", ["PSH"], SESSION,
           "    var isCounted: Bool { capabilities.contains(.classic) }\n", "    var isCounted: Bool { capabilities.contains(.classic) && mutant != @ }\n"),
    # Sessions
    Mutant("no state is asked for", ["SES"], SESSION,
           "guard info.states.contains(machine.statesOnArrival) else {",
           "guard info.states.contains(machine.statesOnArrival) || mutant == @ else {"),
    Mutant("what waits behind a refused login runs", ["SES"], SESSION,
           "refuseSoftly(.protoState, request.sequence, request.opcode)\n            } else if isOff",
           "mutant == @ ? () : refuseSoftly(.protoState, request.sequence, request.opcode)\n            } else if isOff"),
    Mutant("nonsense has no end", ["SES"], SESSION,
           "return softErrors <= limits.maxSoftErrors", "return softErrors <= limits.maxSoftErrors || mutant == @"),
    Mutant("a frame may take for ever", ["FLW"], SESSION,
           "        if let partialSince {\n            deadline = min", "        if let partialSince, mutant != @ {\n            deadline = min"),
    Mutant("a stranger may be silent for ever", ["SES"], "Sources/TambourGateway/Deadlines.swift",
           "isOpening ? limits.handshakeTimeoutMs : limits.sessionInitTimeoutMs",
           "isOpening ? limits.handshakeTimeoutMs : (mutant == @ ? 1_000_000 : limits.sessionInitTimeoutMs)"),
    # Signing in
    Mutant("a code is good for ever", ["AUT"], HANDLERS + "AuthHandler.swift",
           "            try tx.spendLoginCode(tokenHash: tokenHash)\n            if requester.capabilities",
           "            if mutant != @ { try tx.spendLoginCode(tokenHash: tokenHash) }\n            if requester.capabilities"),
    Mutant("tries are not counted", ["AUT"], HANDLERS + "AuthHandler.swift",
           "try tx.countLoginTry(tokenHash: tokenHash)", "if mutant != @ { try tx.countLoginTry(tokenHash: tokenHash) }"),
    Mutant("a token forgets its dialect", ["TAM"], SESSION,
           "            $0.speak(Capabilities(dialect: known.dialect))\n",
           "            if mutant != @ { $0.speak(Capabilities(dialect: known.dialect)) }\n"),
    Mutant("a later clue counts", ["TAM"], SESSION,
           "guard dialect == nil, let told else { return }",
           "guard dialect == nil || mutant == @, let told else { return }"),
    Mutant("a token outlives its logout", ["AUT"], HANDLERS + "AuthHandler.swift",
           "try tx.closeSessions([caller.sessionID], of: caller.userID)",
           "if mutant != @ { try tx.closeSessions([caller.sessionID], of: caller.userID) }"),
    # Deltas
    Mutant("the mark itself is left out too late", ["SYN"], SYNC,
           "            since: mark,\n            limit: caller.replyBudget / Chat.bareSize + 1\n",
           "            since: mark + (mutant == @ ? 2_000 : 0),\n            limit: caller.replyBudget / Chat.bareSize + 1\n"),
    Mutant("settings come with every login", ["SYN"], "Sources/TambourMessenger/Features/ServiceConfig.swift",
           "return config.hash == known ? nil : config", "return config.hash == known && mutant != @ ? nil : config"),
    Mutant("a mark in the future is no mark", ["SYN"], SYNC,
           "return min(asked, time)", "return mutant == @ && asked > time ? nil : min(asked, time)"),
    # Messages
    Mutant("a cid is forgotten", ["MSG"], STORE + "Messages/Messages+Writing.swift",
           "if recentClientIDs.isCertainlyNew(cid, of: sender) { return nil }",
           "if recentClientIDs.isCertainlyNew(cid, of: sender) || mutant == @ { return nil }"),
    Mutant("a message has no predecessor", ["PSH", "flow"], HANDLERS + "ChatNews.swift",
           "                prevMessageID: previous\n            )\n            self.emit",
           "                prevMessageID: mutant == @ ? message.id : previous\n            )\n            self.emit"),
    Mutant("the sender hears of its own message", ["PSH"], HANDLERS + "ChatNews.swift",
           "emit(.push(.notifMessage(push), to: users, except: connection))",
           "emit(.push(.notifMessage(push), to: users, except: mutant == @ ? ConnectionID(0) : connection))"),
    Mutant("a push brings the withheld message that it answers", ["GRP"], HANDLERS + "ChatNews.swift",
           "guard !outsiders.isEmpty else", "guard !outsiders.isEmpty, mutant != @ else"),
    Mutant("an answer brings a withheld message", ["GRP", "MSG"], STORE + "Messages/Messages+Reading.swift",
           "            if let viewpoint {\n", "            if let viewpoint, mutant != @ {\n"),
    Mutant("everybody edits everything", ["MSG"], HANDLERS + "MessagesHandler.swift",
           "old.sender == caller.userID ? .send : .editOthers", "old.sender == caller.userID || mutant == @ ? .send : .editOthers"),
    Mutant("everybody deletes everything", ["MSG"], HANDLERS + "MessagesHandler+Deletion.swift",
           "        if record.sender == caller.userID, try", "        if record.sender == caller.userID || mutant == @, try"),
    Mutant("what is deleted for oneself is deleted for all", ["MSG"], HANDLERS + "MessagesHandler+Deletion.swift",
           "        if request.forMe {\n            try requireRoom", "        if request.forMe, mutant != @ {\n            try requireRoom"),
    Mutant("an empty message is stored", ["MSG"], HANDLERS + "MessagesHandler.swift",
           "guard !text.isEmpty || attaches != nil || content.forward != nil else",
           "guard mutant == @ || !text.isEmpty || attaches != nil || content.forward != nil else"),
    Mutant("formatting is not clipped", ["MSG"], RULES + "ElementRules.swift",
           "clipped.length = length", "clipped.length = mutant == @ ? wanted : length"),
    Mutant("a mark may fall", ["MSG"], STORE + "Messages/Messages+Writing.swift",
           "if time > member.readTime {", "if time > member.readTime || mutant == @ {"),
    Mutant("a mark may be in the future", ["MSG"], HANDLERS + "ChatsHandler.swift",
           "let mark = MarkRules.readMark(", "let mark = mutant == @ ? request.mark ?? 0 : MarkRules.readMark("),
    Mutant("typing is told to whoever types", ["PSH"], HANDLERS + "MessagesHandler.swift",
           ".filter { $0 != caller.userID }\n        return .push(.notifTyping(push), to: others, except: caller.connectionID)",
           ".filter { $0 != caller.userID || mutant == @ }\n        return .push(.notifTyping(push), to: others, "
           "except: mutant == @ ? ConnectionID(0) : caller.connectionID)"),
    # History
    Mutant("a page ends before its anchor", ["HIS"], STORE + "Messages/Messages+Reading.swift",
           "let pivot = MessageID.last(at: from)", "let pivot = MessageID.last(at: mutant == @ ? from - 1 : from)"),
    Mutant("a page is newest first", ["HIS"], STORE + "Messages/Messages+Reading.swift",
           "page.messages = older.reversed() + newer", "page.messages = mutant == @ ? older + newer : older.reversed() + newer"),
    Mutant("a negative count is none", ["HIS"], HANDLERS + "ChatsHandler.swift",
           "guard request.backward >= 0 else", "guard request.backward >= 0 || mutant == @ else"),
    # Comments
    Mutant("comments are told to who has left the channel", ["CMT"], "Sources/TambourGateway/LaneGateway.swift",
           "                readers.holdsSorted(caller.userID)\n", "                mutant == @ || readers.holdsSorted(caller.userID)\n"),
    Mutant("the comments opened first stay open", ["CMT"], "Sources/TambourGateway/CommentReaders.swift",
           "own.count > limit {", "own.count > limit, mutant != @ {"),
    Mutant("a comment is read as a message of the channel", ["CMT"], STORE + "Messages/Messages+Writing.swift",
           "        guard chat.kind != .comments else {\n            touch(chat)", "        guard chat.kind != .comments || mutant == @ else {\n            touch(chat)"),
    Mutant("deleted comments count", ["CMT", "MSG"], STORE + "Messages/Messages+Writing.swift",
           "count(comments: -ids.count, on: post)", "count(comments: mutant == @ ? 0 : -ids.count, on: post)"),
    Mutant("who is banned comments", ["CMT"], RULES + "ChatRules.swift",
           "try tx.reader.isBanned(user, from: $0.channel.key) }", "try mutant != @ && tx.reader.isBanned(user, from: $0.channel.key) }"),
    Mutant("what made a channel is commented on", ["CMT"], STORE + "Chats/Comments.swift",
           "record.isPost\n        else { return nil }\n        if let comments", "record.isPost || mutant == @\n        else { return nil }\n        if let comments"),
]


def noticed(number, python, cases):
    """Returns the cases that failed with this mutant; an empty list if all cases passed."""
    environment = dict(os.environ, TAMBOUR_MUTANT=str(number))
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run(
            [python, "protocol-spec/conformance/run.py", ".build/debug/tambourd", *cases, "--out", directory],
            cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode == 0:
            return []
        try:
            report = xml.etree.ElementTree.parse(f"{directory}/junit.xml")
        except OSError:
            return ["the server ends"]
    failed = [case.get("name") for case in report.iter("testcase") if case.find("failure") is not None]
    return failed or ["the server ends"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    python, chosen = sys.argv[1], [int(number) for number in sys.argv[2:]] or range(1, len(MUTANTS) + 1)
    missed = 0
    with switched(MUTANTS, module=PROTOCOL):
        subprocess.run(["swift", "build", "--product", "tambourd"], cwd=ROOT, check=True, stdout=sys.stderr)
        if failed := noticed(0, python, []):
            sys.exit(f"red without any mutant: {failed}")
        print("| mutant: what is broken | noticed by |\n| --- | --- |", flush=True)
        for number in chosen:
            mutant = MUTANTS[number - 1]
            # First run the cases made for the mutant. Run all cases only if these cases notice nothing.
            failed = noticed(number, python, mutant.hints) or noticed(number, python, [])
            missed += not failed
            more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
            print(f"| {number}. {mutant.name} | {', '.join(failed[:3]) + more or 'NOTHING'} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
