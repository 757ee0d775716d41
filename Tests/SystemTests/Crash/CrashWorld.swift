import Foundation
import Synchronization
import TambourProtocol
import TambourTesting

/// A data directory, the server on it that keeps being cut off, and the clients that keep writing.
///
/// A cycle: the server runs under load until it is cut; it starts again; everything that anybody was
/// told is looked for; everything that was on its way is sent again. The next cycle goes on there.
final class CrashWorld {
    enum Ending {
        case kill
        case powerCut
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let directory: URL
    private var writers: [CrashWriter] = []
    private var random: SeededGenerator
    private let seed: UInt64
    /// Pragma of the server under load; anything but FULL must lose something.
    private let synchronous: String?
    /// Where the checked part of each chat ends, by who looks: two users may both have a dialog 3.
    private var checkedUpTo: [UserID: [ChatID: MessageID]] = [:]
    private(set) var acknowledgements = 0
    private(set) var cuts = 0

    private var data: String { directory.appendingPathComponent("data").path }

    /// - Parameter synchronous: `NORMAL` weakens a debug build of the server; nil leaves it alone.
    init(seed: UInt64, synchronous: String? = nil) async throws {
        self.seed = seed
        self.synchronous = synchronous
        random = SeededGenerator(seed: seed)
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-crash-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            atPath: directory.appendingPathComponent("data").path,
            withIntermediateDirectories: true
        )
        try await makeUsers(6)
    }

    func remove() {
        try? FileManager.default.removeItem(at: directory)
    }

    private func makeUsers(_ count: Int) async throws {
        let made = try ChildProcess(
            TambourdProcess.program(),
            [
                "admin", "users", "create", "--data", data, "--count", "\(count)",
                "--first-phone", "+79990000001",
            ]
        )
        var users: [(id: UserID, token: String)] = []
        for await line in made.lines {
            let words = line.split(separator: " ")
            guard words.count == 3, let id = Int64(words[1]) else { continue }
            users.append((UserID(id), String(words[2])))
        }
        guard await made.exitStatus() == 0, users.count == count else {
            throw Failure(description: "users create failed: \(made.errors)")
        }
        // The group is made by the first, on a server that ends as servers should.
        let server = try await start(layered: false)
        let first = CrashWriter(userID: users[0].id, token: users[0].token, chats: [], seed: seed)
        let client = try first.connect(server.address)
        let control = NewAttach(
            type: .control,
            title: "crash",
            event: "new",
            chatType: "CHAT",
            userIDs: users.dropFirst().map(\.id)
        )
        let group = try client.call(
            MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
        )
        for user in users { checkedUpTo[user.id] = [group.chatID: group.message.id] }
        client.close()
        try await stop(server.process)
        writers = users.enumerated().map { index, user in
            let partner = users[index ^ 1]
            return CrashWriter(
                userID: user.id,
                token: user.token,
                chats: [ChatID(user.id.rawValue ^ partner.id.rawValue), group.chatID],
                seed: seed
            )
        }
    }

    // MARK: - The server

    private func start(
        layered: Bool,
        afterOperations: Int? = nil
    ) async throws -> (process: ChildProcess, address: String) {
        var environment: [String: String] = [:]
        if layered {
            environment = try PowerCut(
                directory: data,
                seed: random.next(),
                afterOperations: afterOperations
            ).environment
        }
        if let synchronous { environment["TAMBOUR_DEBUG_SYNCHRONOUS"] = synchronous }
        let child = try ChildProcess(
            TambourdProcess.program(),
            [
                "serve", "--listen", "127.0.0.1:0", "--data", data, "--login-codes", "fixed:111111",
                "--log-level", "error",
            ],
            environment: environment
        )
        for await line in child.lines where line.hasPrefix("listening tcp ") {
            return (child, String(line.dropFirst("listening tcp ".count)))
        }
        // A cut may come before the server is up; then there is nothing to write to.
        if layered, afterOperations != nil { return (child, "") }
        throw Failure(description: "the server did not start: \(child.errors)")
    }

    private func stop(_ process: ChildProcess) async throws {
        process.signal(SIGTERM)
        let status = try await process.exitStatus(within: .seconds(30))
        guard status == 0 else {
            throw Failure(description: "SIGTERM ended the server with \(status): \(process.errors)")
        }
    }

    // MARK: - A cycle

    func cycle(_ ending: Ending) async throws {
        // Up to a few hundred file operations, and as many messages for cuts by message.
        let operations = Int.random(in: 30...700, using: &random)
        let messages = Int.random(in: 20...400, using: &random)
        let (process, address) = try await start(
            layered: ending == .powerCut,
            afterOperations: ending == .powerCut ? operations : nil
        )
        let confirmed = Atomic<Int>(0)
        if !address.isEmpty {
            await everyWriter { writer in
                writer.write(to: address) {
                    if confirmed.add(1, ordering: .relaxed).newValue == messages {
                        // SIGUSR2 makes the layer cut; a server without it is killed.
                        process.signal(ending == .kill ? SIGKILL : SIGUSR2)
                    }
                }
            }
        }
        let status = try await process.exitStatus(within: .seconds(60))
        guard status == SIGKILL else {
            throw Failure(description: "the server ended with \(status): \(process.errors)")
        }
        cuts += 1
        acknowledgements += confirmed.load(ordering: .relaxed)
        try await check()
    }

    private func everyWriter(_ body: @escaping @Sendable (CrashWriter) -> Void) async {
        let group = DispatchGroup()
        for writer in writers {
            group.enter()
            Thread.detachNewThread {
                body(writer)
                group.leave()
            }
        }
        await withCheckedContinuation { continuation in
            group.notify(queue: .global()) { continuation.resume() }
        }
    }

    // MARK: - Checking

    private func check() async throws {
        let (process, address) = try await start(layered: false)
        do {
            let before = try pages(address)
            try compare(before)
            try sendAgain(address, before)
            let after = try pages(address)
            try compare(after)
            try complete(after)
            try await adminCheck()
        } catch {
            process.signal(SIGKILL)
            _ = await process.exitStatus()
            throw error
        }
        for writer in writers { writer.settle() }
        for (user, chats) in try pages(address) {
            for (chat, messages) in chats {
                if let last = messages.last { checkedUpTo[user, default: [:]][chat] = last.id }
            }
        }
        try await stop(process)
    }

    /// What each chat of each user holds after its checked part, oldest first.
    private func pages(_ address: String) throws -> [UserID: [ChatID: [Message]]] {
        var pages: [UserID: [ChatID: [Message]]] = [:]
        for writer in writers {
            let client = try writer.connect(address)
            for chat in writer.chats {
                var from = checkedUpTo[writer.userID]?[chat]?.timeMs ?? 0
                var messages: [Message] = []
                while true {
                    let page =
                        try client.call(
                            ChatHistoryRequest(chatID: chat, from: from, forward: 200)
                        ).messages ?? []
                    messages += page
                    guard page.count == 200, let last = page.last else { break }
                    from = last.time
                }
                pages[writer.userID, default: [:]][chat] = messages
            }
            client.close()
        }
        return pages
    }

    private func compare(_ pages: [UserID: [ChatID: [Message]]]) throws {
        for writer in writers {
            let chats = pages[writer.userID] ?? [:]
            let mine = chats.values.flatMap { $0 }
            let byID = Dictionary(mine.map { ($0.id, $0) }) { first, _ in first }
            try check(byID.count == mine.count, "a page holds a message twice")
            let cids = mine.filter { $0.sender == writer.userID }.compactMap(\.cid)
            try check(Set(cids).count == cids.count, "a cid of \(writer.userID) is stored twice")
            for cid in cids {
                try check(writer.sent[cid] != nil, "cid \(cid) was not sent in this cycle")
            }
            for chat in writer.chats {
                let ids = (chats[chat] ?? []).map(\.id)
                try check(ids == ids.sorted(), "chat \(chat) is out of order")
            }
            var last: [ChatID: MessageID] = [:]
            for told in writer.acknowledged {
                if let last = last[told.chat] {
                    try check(last < told.id, "replies of \(writer.userID) are out of order")
                }
                last[told.chat] = told.id
                try compare(told, of: writer, byID, chats[told.chat] ?? [])
            }
            let gone = writers.reduce(into: Set<MessageID>()) { $0.formUnion($1.maybeRemoved) }
            for id in writer.pushed where byID[id] == nil && !gone.contains(id) {
                throw Failure(description: "message \(id.rawValue) was pushed and is lost")
            }
        }
    }

    private func compare(
        _ told: CrashWriter.Acknowledged,
        of writer: CrashWriter,
        _ byID: [MessageID: Message],
        _ chat: [Message]
    ) throws {
        guard let stored = byID[told.id] else {
            return try check(
                writer.maybeRemoved.contains(told.id),
                "message \(told.id.rawValue) (cid \(told.cid)) was acknowledged and is lost"
            )
        }
        try check(!writer.removed.contains(told.id), "a removed message is back")
        try check(stored.cid == told.cid, "message \(told.id.rawValue) has another cid")
        let text = String(describing: stored.text)
        if let edit = writer.edits[told.id] {
            try check(
                text == edit.confirmed || text == edit.attempted,
                "the edit of \(told.id.rawValue) is lost: \(text)"
            )
        } else {
            try check(
                text == writer.sent[told.cid]?.text,
                "the text of \(told.id.rawValue) changed"
            )
        }
        if let previous = told.previous {
            try check(
                !chat.contains { $0.id > previous && $0.id < told.id },
                "a message came in between \(previous.rawValue) and \(told.id.rawValue)"
            )
        }
    }

    /// What never was answered is sent again; of what was, a sample.
    private func sendAgain(_ address: String, _ pages: [UserID: [ChatID: [Message]]]) throws {
        for writer in writers {
            let client = try writer.connect(address)
            defer { client.close() }
            let stored = (pages[writer.userID] ?? [:]).values.flatMap { $0 }
                .filter { $0.sender == writer.userID }
            let known = Dictionary(uniqueKeysWithValues: stored.map { ($0.cid ?? 0, $0) })
            let told = Dictionary(
                uniqueKeysWithValues: writer.acknowledged.map { ($0.cid, $0) }
            )
            for cid in writer.sent.keys.sorted() {
                let first = told[cid]
                if first != nil, Int.random(in: 0..<8, using: &random) != 0 { continue }
                let reply = try client.reply(
                    to: try writer.send(cid, on: client),
                    as: MsgSendReply.self
                )
                if let first {
                    try check(
                        reply.message.id == first.id && reply.prevMessageID == first.previous,
                        "cid \(cid) sent again got another answer"
                    )
                } else if let message = known[cid] {
                    try check(reply.message.id == message.id, "cid \(cid) was stored twice")
                }
            }
            for (chat, mark) in writer.marks {
                let reply = try client.call(ChatMarkRequest(type: .readReaction, chatID: chat))
                try check(reply.mark >= mark, "a confirmed read mark fell back")
            }
        }
    }

    /// After sending again everything is there once.
    private func complete(_ pages: [UserID: [ChatID: [Message]]]) throws {
        for writer in writers {
            let stored = Set(
                (pages[writer.userID] ?? [:]).values.flatMap { $0 }
                    .filter { $0.sender == writer.userID }.compactMap(\.cid)
            )
            let gone = Set(
                writer.acknowledged.filter { writer.maybeRemoved.contains($0.id) }.map(\.cid)
            )
            for cid in writer.sent.keys where !stored.contains(cid) && !gone.contains(cid) {
                throw Failure(description: "cid \(cid) was sent again and is not there")
            }
        }
    }

    private func adminCheck() async throws {
        let process = try ChildProcess(
            TambourdProcess.program(),
            ["admin", "check", "--data", data]
        )
        var lines: [String] = []
        for await line in process.lines { lines.append(line) }
        let status = await process.exitStatus()
        try check(status == 0 && lines == ["ok"], "admin check: \(lines) \(process.errors)")
    }

    private func check(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        if !holds { throw Failure(description: "seed \(seed), cut \(cuts): \(what())") }
    }
}

/// SplitMix64: the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
