import Foundation
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

/// Compares search with a simple oracle. The oracle reads all messages that a user can see, chat by
/// chat.
///
/// Each play depends only on its seed. `TAMBOUR_SEED=17` plays only seed 17.
@Suite("Search finds what its asker can read, and nothing else")
struct SearchOracleTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static var seeds: [UInt64] {
        if let seed = environment["TAMBOUR_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        return Array(1...(environment["TAMBOUR_SOAK"] == "1" ? 200 : 3))
    }

    @Test("as a naive filter over the histories", arguments: SQLEngine.available, seeds)
    func plays(engine: SQLEngine, seed: UInt64) throws {
        do {
            try SearchPlay(engine, seed: seed).run(steps: 90)
        } catch {
            Issue.record("TAMBOUR_SEED=\(seed): \(error)")
        }
    }
}

private final class SearchPlay {
    private struct Mismatch: Error, CustomStringConvertible {
        let description: String
    }

    private let store: TestStore
    private let users: [UserID]
    private var chats: [ChatKey] = []
    private var random: SeededGenerator
    private var knownWords: [String: [String]] = [:]
    private static let words = [
        "ёж", "Ёжик", "еж", "туман", "ТУМАННЫЙ", "йод", "и\u{306}од", "cat", "Catalog", "dog",
        "2026", "x",
        "перенос", "🐈", "…",
    ]
    private static let queries = [
        "е", "ёж", "ЕЖИК", "тум", "туманный еж", "й", "cat", "CAT dog", "cata", "20", "dog x",
        "нет", "пере x",
    ]

    init(_ engine: SQLEngine, seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        // Whatever the scan budget of a page is, all pages together must have the same contents.
        store = try TestStore(
            engine,
            limits: [
                "fanOutMembers": 3,
                "maxScannedRows": [1, 30, 200, 4_000].randomElement(using: &random) ?? 1,
                "maxScannedBytes": [60, 1_000, 1_000_000].randomElement(using: &random) ?? 1,
            ]
        )
        users = try store.users(5)
        for pair in [(0, 1), (0, 2), (3, 3)] {
            chats.append(
                try store.batch {
                    try $0.createPairChat(users[pair.0], users[pair.1], by: users[pair.0]).key
                }
            )
        }
        chats.append(try store.group([users[0], users[1]]))
        chats.append(try store.group(users))
    }

    func run(steps: Int) throws {
        for step in 1...steps {
            try act()
            if step % 30 == 0 { try compare() }
        }
        try store.indexAll()
        try compare()
        let problems = try store.unexpectedWords()
        guard problems.isEmpty else { throw Mismatch(description: "\(problems.prefix(5))") }
    }

    private func text() -> Text {
        let count = Int.random(in: 0...4, using: &random)
        let words = (0..<count).map { _ in Self.words.randomElement(using: &random) ?? "" }
        return Text(words.joined(separator: Bool.random(using: &random) ? " " : "-"))
    }

    private func act() throws {
        let action = Int.random(in: 0..<20, using: &random)
        try store.batch { tx in
            if action == 0 { return try tx.indexWords() }
            guard let key = chats.randomElement(using: &random),
                let user = users.randomElement(using: &random),
                let chat = try tx.group(key, for: user) ?? tx.chat(holding: key, for: user)
            else { return }
            switch action {
            case 1...8:
                for _ in 0..<Int.random(in: 1...60, using: &random) {
                    var content = MessageContent(cid: store.nextCID(), text: text())
                    if Int.random(in: 0..<6, using: &random) == 0 {
                        let carried = Message(id: MessageID(1), time: 0, type: "USER", text: text())
                        content.forward = Packed(
                            MessageLink(type: .forward, chatID: ChatID(0), message: carried)
                        )
                    }
                    _ = try tx.append(content, to: chat, from: user, on: store.device)
                }
            case 9...11:
                for id in try someMessages(of: chat, tx, 3) {
                    guard let old = try tx.record(id, in: chat), old.status != .removed
                    else { continue }
                    var record = old
                    record.text = text()
                    _ = try tx.edit(old, to: record, in: chat)
                }
            case 12...13:
                let ids = Set(try someMessages(of: chat, tx, 5))
                try tx.remove(try ids.sorted().compactMap { try tx.record($0, in: chat) }, in: chat)
            case 14...15:
                try tx.hide(try someMessages(of: chat, tx, 5), in: chat, for: user)
            case 16:
                if Int.random(in: 0..<3, using: &random) == 0 {
                    _ = try tx.remove(upTo: chat.head.id, sentBy: [user], in: chat)
                } else if let last = try someMessages(of: chat, tx, 1).first {
                    _ = try tx.remove(upTo: last, sentBy: nil, in: chat)
                }
            case 17:
                if let last = try someMessages(of: chat, tx, 1).first {
                    try tx.clear(chat, upTo: last, for: user)
                }
            case 18 where chat.kind == .group && chat.memberCount > 1:
                try tx.remove([user], from: chat)
            case 19 where chat.kind == .group:
                let others = users.filter { !chat.memberIDs.contains($0) }
                guard let other = others.randomElement(using: &random) else { return }
                try tx.add([other], to: chat, showingHistory: Bool.random(using: &random))
            default: break
            }
        }
    }

    private func someMessages(
        of chat: ChatState,
        _ tx: WriteTransaction,
        _ count: Int
    ) throws -> [MessageID] {
        let all = try tx.flushedReader().allIDs(of: chat.key)
        return (0..<count).compactMap { _ in all.randomElement(using: &random) }
    }

    private func compare() throws {
        for user in users {
            let readable = try readable(by: user)
            for text in Self.queries.shuffled(using: &random).prefix(5) {
                let wanted = words(of: text)
                let expected = readable.filter { message in
                    wanted.allSatisfy { word in message.words.contains { $0.hasPrefix(word) } }
                }.map { [$0.id, $0.chat] }
                guard let query = SearchQuery(Text(text)) else { continue }
                try store.read { snapshot in
                    for limit in [1_000_000, 3] {
                        let found = try pages {
                            try snapshot.search(query, for: user, below: $0, limit: limit)
                        }
                        guard found == expected else {
                            throw Mismatch(
                                description: "\(text) for \(user.rawValue): \(found.count) found, "
                                    + "\(expected.count) expected, limit \(limit)"
                            )
                        }
                    }
                    for chat in chats {
                        guard let view = try snapshot.view(chat, for: user) else { continue }
                        let found = try pages {
                            try snapshot.search(query, in: view, below: $0, limit: 20)
                        }
                        guard found == expected.filter({ $0[1] == chat.rawValue }) else {
                            throw Mismatch(description: "\(text) in \(chat.rawValue)")
                        }
                    }
                }
            }
        }
    }

    /// Returns the message ids and the chats of all pages. Expects that each marker is lower than
    /// the marker before it.
    private func pages(_ page: (MessageID?) throws -> SearchPage) throws -> [[Int64]] {
        var found: [[Int64]] = []
        var marker: MessageID?
        while true {
            let page = try page(marker)
            found += page.messages.map { [$0.record.id.rawValue, $0.record.chat.rawValue] }
            guard let next = page.next else { return found }
            guard next < marker ?? MessageID(.max) else {
                throw Mismatch(description: "the marker \(next) does not come down")
            }
            marker = next
        }
    }

    /// Returns the messages that the user can read, newest first.
    private func readable(
        by user: UserID
    ) throws -> [(id: Int64, chat: Int64, words: [String])] {
        var found: [(id: Int64, chat: Int64, words: [String])] = []
        try store.read { snapshot in
            for chat in chats {
                guard let view = try snapshot.view(chat, for: user) else { continue }
                let page = try snapshot.history(
                    of: chat,
                    at: view.address,
                    for: user,
                    above: view.floor,
                    from: .max,
                    backward: 1_000_000,
                    forward: 0
                )
                for message in page.messages {
                    var text = String(message.text)
                    if let link = message.link?.stored, link.type == .forward {
                        text += " " + String(link.message.text)
                    }
                    found.append((message.id.rawValue, chat.rawValue, words(of: text)))
                }
            }
        }
        return found.sorted { ($0.id, $0.chat) > ($1.id, $1.chat) }
    }

    /// Splits a text into words with Foundation's functions.
    private func words(of text: String) -> [String] {
        if let known = knownWords[text] { return known }
        let words = text.precomposedStringWithCanonicalMapping.lowercased()
            .replacingOccurrences(of: "ё", with: "е")
            .components(separatedBy: CharacterSet.alphanumerics.inverted).filter { !$0.isEmpty }
        knownWords[text] = words
        return words
    }
}

extension WriteTransaction {
    /// Returns the dialog or the saved messages with this key; nil if the user is not a member.
    fileprivate func chat(holding key: ChatKey, for user: UserID) throws -> ChatState? {
        guard let view = try flushedReader().view(key, for: user) else { return nil }
        return try chat(view.wireID, visibleTo: user)
    }
}

extension ReadTransaction {
    fileprivate func allIDs(of chat: ChatKey) throws -> [MessageID] {
        var ids: [MessageID] = []
        var id = try head(of: chat).id
        while id.rawValue > 0 {
            ids.append(id)
            guard let previous = try previousID(of: id, in: chat) else { break }
            id = previous
        }
        return ids
    }
}
