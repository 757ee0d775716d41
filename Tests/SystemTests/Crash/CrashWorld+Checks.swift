import TambourProtocol
import TambourTesting

/// Properties that must hold after the server has restarted.
extension CrashWorld {
    private typealias Pages = [CrashChat: [Message]]

    /// Compares the server with every ledger, resends messages that may be lost, and compares
    /// again.
    func verify(at address: String) throws {
        let clients = try writers.map { try $0.connect(address) }
        defer { for client in clients { client.close() } }
        let before = try pages(clients)
        try compare(before)
        for (writer, client) in zip(writers, clients) {
            try compareMarks(of: writer, before, on: client)
            try compareSingle(of: writer, before, on: client)
        }
        var unanswered: [UserID: Set<Int64>] = [:]
        for (writer, client) in zip(writers, clients) {
            unanswered[writer.userID] = try sendAgain(writer, before, on: client)
        }
        let after = try pages(clients)
        try compare(after)
        for (key, messages) in after {
            // Resending may only add messages that were lost in flight.
            let old = before[key] ?? []
            let known = Set(old.map(\.id))
            let isAsBefore = messages.filter { known.contains($0.id) } == old
            try check(isAsBefore, "chat \(key.chat.rawValue) changed by sending again")
            for message in messages where !known.contains(message.id) {
                let isExpected = message.sender.map {
                    unanswered[$0]?.contains(message.cid ?? 0) == true
                }
                try check(isExpected == true, "cid \(message.cid ?? 0) was added by sending again")
            }
        }
        for writer in writers {
            let stored = Set(own(writer, after).compactMap(\.cid))
            for cid in unanswered[writer.userID] ?? [] {
                try check(stored.contains(cid), "cid \(cid) was sent again and is not there")
            }
        }
        for writer in writers { writer.settle() }
        for (key, messages) in after {
            for message in messages { checked[key, default: CrashDigest()].add(message) }
            if let last = messages.last { checkedUpTo[key] = last.id }
        }
    }

    /// Reads all chats from the beginning and checks that they still contain what every earlier
    /// check found.
    func verifyAll(at address: String, from began: [CrashChat: MessageID]) throws {
        for writer in writers {
            let client = try writer.connect(address)
            defer { client.close() }
            for chat in writer.chats {
                let key = CrashChat(of: writer.userID, chat: chat)
                var digest = CrashDigest()
                for message in try messages(of: chat, after: began[key], client) {
                    digest.add(message)
                }
                guard digest == checked[key] ?? CrashDigest() else {
                    throw lost(
                        "chat \(chat.rawValue) held \(checked[key]?.count ?? 0) messages "
                            + "and has \(digest.count) now, or others"
                    )
                }
            }
        }
    }

    // MARK: - Reading

    /// Returns the messages that follow the checked part of each user's chats, oldest first.
    private func pages(_ clients: [WireClient]) throws -> Pages {
        var pages: Pages = [:]
        for (writer, client) in zip(writers, clients) {
            for chat in writer.chats {
                let key = CrashChat(of: writer.userID, chat: chat)
                pages[key] = try messages(of: chat, after: checkedUpTo[key], client)
            }
        }
        return pages
    }

    private func messages(
        of chat: ChatID,
        after first: MessageID?,
        _ client: WireClient
    ) throws -> [Message] {
        var from = first?.timeMs ?? 0
        var messages: [Message] = []
        while true {
            let reply = try client.call(ChatHistoryRequest(chatID: chat, from: from, forward: 200))
            guard let page = reply.messages, let last = page.last else { return messages }
            messages += page
            from = last.time
        }
    }

    private func own(_ writer: CrashWriter, _ pages: Pages) -> [Message] {
        writer.chats
            .flatMap { pages[CrashChat(of: writer.userID, chat: $0)] ?? [] }
            .filter { $0.sender == writer.userID }
    }

    // MARK: - Comparing

    private func compare(_ pages: Pages) throws {
        let maybeRemoved = writers.reduce(into: Set<MessageID>()) { $0.formUnion($1.maybeRemoved) }
        var attempts: [MessageID: String] = [:]
        for writer in writers { for (id, edit) in writer.edits { attempts[id] = edit.attempted } }
        for writer in writers {
            let chats = writer.chats.map { chat in
                (chat, pages[CrashChat(of: writer.userID, chat: chat)] ?? [])
            }
            for (chat, messages) in chats {
                let isRising = zip(messages, messages.dropFirst()).allSatisfy {
                    $0.id < $1.id && $0.time < $1.time
                }
                try check(isRising, "chat \(chat.rawValue) is out of order or has one twice")
            }
            let all = chats.flatMap { $0.1 }
            let byID = Dictionary(all.map { ($0.id, $0) }) { first, _ in first }
            try check(byID.count == all.count, "a message is in two chats")
            let cids = own(writer, pages).map { $0.cid ?? 0 }
            try check(Set(cids).count == cids.count, "a cid of \(writer.userID) is stored twice")
            for cid in cids {
                try check(writer.sent[cid] != nil, "cid \(cid) was not sent in this cycle")
            }
            var last: [ChatID: MessageID] = [:]
            for told in writer.acknowledged {
                if let last = last[told.chat] {
                    try check(last < told.id, "replies to \(writer.userID) are out of order")
                }
                last[told.chat] = told.id
                let chat = pages[CrashChat(of: writer.userID, chat: told.chat)] ?? []
                try compare(told, of: writer, with: byID[told.id])
                try comparePrevious(of: told, of: writer, in: chat, maybeRemoved)
            }
            // Pushes leave after the commit, so a pushed message counts as acknowledged.
            for (id, text) in writer.heard {
                guard let stored = byID[id] else {
                    if maybeRemoved.contains(id) { continue }
                    throw lost("message \(id.rawValue) was pushed and is lost")
                }
                if text == attempts[id], text != String(describing: stored.text) {
                    throw lost("the edit of \(id.rawValue) was pushed and is lost")
                }
            }
            for id in writer.heardRemoved where byID[id] != nil {
                throw lost("the removal of \(id.rawValue) was pushed and is lost")
            }
            pushesChecked += writer.heard.count + writer.heardRemoved.count
        }
    }

    private func compare(
        _ told: CrashWriter.Acknowledged,
        of writer: CrashWriter,
        with stored: Message?
    ) throws {
        let name = "message \(told.id.rawValue) (cid \(told.cid))"
        guard let stored else {
            if writer.maybeRemoved.contains(told.id) { return }
            throw lost("\(name) was acknowledged and is lost")
        }
        if writer.removed.contains(told.id) { throw lost("the removal of \(name) is lost") }
        try check(stored.cid == told.cid, "\(name) has cid \(stored.cid ?? 0)")
        try check(stored.sender == writer.userID, "\(name) has another sender")
        try check(
            stored.time == told.time,
            "\(name) was stored at \(told.time), not \(stored.time)"
        )
        let text = String(describing: stored.text)
        if let edit = writer.edits[told.id] {
            if text != edit.confirmed, text != edit.attempted {
                throw lost("the edit of \(name) is lost")
            }
        } else {
            try check(text == writer.sent[told.cid]?.text, "\(name) has another text")
        }
    }

    /// Checks that `prevMessageId` names the message directly before this message, or a removed
    /// message that was there.
    private func comparePrevious(
        of told: CrashWriter.Acknowledged,
        of writer: CrashWriter,
        in chat: [Message],
        _ maybeRemoved: Set<MessageID>
    ) throws {
        let name = "message \(told.id.rawValue)"
        let end = checkedUpTo[CrashChat(of: writer.userID, chat: told.chat)]
        guard let previous = told.previous else {
            let isFirst = end == nil && !chat.contains { $0.id < told.id }
            return try check(isFirst, "\(name) is not the first and has none before it")
        }
        try check(previous < told.id, "\(name) is said to come after \(previous.rawValue)")
        try check(
            !chat.contains { $0.id > previous && $0.id < told.id },
            "a message came in between \(previous.rawValue) and \(name)"
        )
        let isKnown =
            maybeRemoved.contains(previous) || chat.contains { $0.id == previous }
            || end.map { previous <= $0 } == true
        if !isKnown { throw lost("\(previous.rawValue), the message before \(name), is lost") }
    }

    private func compareMarks(
        of writer: CrashWriter,
        _ pages: Pages,
        on client: WireClient
    ) throws {
        for chat in writer.chats {
            let messages = pages[CrashChat(of: writer.userID, chat: chat)] ?? []
            let heard = writers.map {
                $0.heardMarks[.init(chat: chat, user: writer.userID)] ?? 0
            }
            // Sending a message moves the sender's read mark.
            let sent = writer.acknowledged.last { $0.chat == chat }?.time ?? 0
            let told = max(writer.marks[chat] ?? 0, sent, heard.max() ?? 0)
            let reply = try client.call(ChatMarkRequest(type: .readReaction, chatID: chat))
            if reply.mark < told {
                throw lost("chat \(chat.rawValue) was read up to \(told), now \(reply.mark)")
            }
            let checked = checkedUpTo[CrashChat(of: writer.userID, chat: chat)]?.timeMs ?? 0
            guard told >= checked else { continue }
            let unread = messages.count { $0.time > told }
            try check(
                reply.unread <= unread,
                "chat \(chat.rawValue): \(reply.unread) unread, at most \(unread) came since"
            )
        }
    }

    /// Checks that MSG_GET returns the same messages as the history.
    private func compareSingle(
        of writer: CrashWriter,
        _ pages: Pages,
        on client: WireClient
    ) throws {
        for chat in writer.chats {
            let page = (pages[CrashChat(of: writer.userID, chat: chat)] ?? []).suffix(20)
            if page.isEmpty { continue }
            let reply = try client.call(MsgGetRequest(chatID: chat, messageIDs: page.map(\.id)))
            let found = reply.messages.map { ($0.id, $0.text, $0.cid) }
            let isSame =
                found.count == page.count
                && zip(found, page).allSatisfy { $0 == ($1.id, $1.text, $1.cid) }
            try check(isSame, "chat \(chat.rawValue): MSG_GET and the history differ")
        }
    }

    // MARK: - Resending

    /// Resends all unanswered messages, and a sample of the answered ones.
    ///
    /// - Returns: The cids of the unanswered messages.
    private func sendAgain(
        _ writer: CrashWriter,
        _ pages: Pages,
        on client: WireClient
    ) throws -> Set<Int64> {
        let told = Dictionary(uniqueKeysWithValues: writer.acknowledged.map { ($0.cid, $0) })
        let known = Dictionary(uniqueKeysWithValues: own(writer, pages).map { ($0.cid ?? 0, $0) })
        var unanswered: Set<Int64> = []
        for cid in writer.sent.keys.sorted() {
            let first = told[cid]
            if first == nil {
                unanswered.insert(cid)
            } else if Int.random(in: 0..<8, using: &random) != 0 {
                continue
            }
            let reply = try client.reply(
                to: try writer.send(cid, on: client),
                as: MsgSendReply.self
            )
            repeated += 1
            if let first {
                let isFirst =
                    reply.message.id == first.id && reply.message.time == first.time
                    && reply.prevMessageID == first.previous && reply.chatID == first.chat
                try check(isFirst, "cid \(cid) sent again got another answer")
            } else if let message = known[cid] {
                try check(reply.message.id == message.id, "cid \(cid) was stored twice")
            }
        }
        return unanswered
    }
}
