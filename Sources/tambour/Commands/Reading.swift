import ArgumentParser
import TambourClient
import TambourProtocol

struct Chats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the chats, from disk.")

    @OptionGroup var account: AccountOptions

    @Flag(help: "Also those that were put away.")
    var all = false

    @Flag(help: "Brings them up to date first.")
    var sync = false

    func run() async throws {
        let client = try account.signedIn()
        if sync {
            client.start()
            _ = await client.settle(within: .seconds(15))
        }
        for chat in try client.chats(includingHidden: all) {
            let marks = [
                chat.isPinned ? "pinned" : "", chat.isMuted ? "muted" : "",
                chat.unread > 0 ? "\(chat.unread) unread" : "",
                chat.draft == nil ? "" : "draft", chat.failedCount > 0 ? "not sent" : "",
            ].filter { !$0.isEmpty }
            let suffix = marks.isEmpty ? "" : "  (\(marks.joined(separator: ", ")))"
            try say("\(chat.id)\t\(clock(chat.lastEventMs))\t\(printable(chat.title))\(suffix)")
        }
        await client.stop()
    }
}

struct People: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the contacts, from disk.")

    @OptionGroup var account: AccountOptions

    func run() async throws {
        let client = try account.signedIn()
        for person in try client.people() {
            let phone = person.phone.map { printable("+\($0)") } ?? ""
            try say("\(person.id)\t\(printable(person.name))\t\(phone)")
        }
        await client.stop()
    }
}

struct History: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the newest messages of a chat; what is missing is fetched.",
        discussion: """
            When not all of them are here in time, those that are come all the same, and the exit code is 2. When another `tambour` is \
            connected, it fetches what is missing.
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: "The chat: its id, title, or the name or phone of a contact.")
    var chat: String

    @Option(name: [.customShort("n"), .long], help: "How many messages.")
    var count = 50

    @Flag(help: "Prints a line of JSON for each message (docs/schema/message.json).")
    var json = false

    @Flag(help: "Only what is on disk.")
    var offline = false

    @Option(help: "How long to wait for what is missing, in seconds.")
    var wait = 15

    func run() async throws {
        let client = try account.signedIn()
        let id = try await client.chat(named: chat, within: offline ? 0 : wait)
        var isWhole = true
        if !offline { isWhole = await fetch(id, client) }
        let page = try client.history(of: id, .newest, count: count)
        if page.isGapBefore, page.rows.count < count { remark("… older messages are not here yet") }
        for row in page.rows {
            try say(json ? MessageLine(row, in: id).json : row.line)
            if row.isGapAfter { remark("… messages are missing here") }
        }
        let isSignedIn = try client.isSignedIn()
        await client.stop()
        if isWhole { return }
        remark("Messages may be missing: the server could not be asked for all of them.")
        if !isSignedIn { remark(AccountOptions.signedOut) }
        throw ExitCode(2)
    }

    /// Waits until the newest messages are on this device without a gap.
    ///
    /// - Returns: false when the time limit passes or no account is signed in.
    private func fetch(_ chat: ChatID, _ client: Client) async -> Bool {
        let changes = client.changes()
        let count = count
        client.start()
        return await client.within(.seconds(wait)) {
            guard await client.waitUntilOnline() else { return false }
            if client.holdsNewest(count, of: chat) { return true }
            for await _ in changes where client.holdsNewest(count, of: chat) { return true }
            return false
        }
    }
}

extension Client {
    /// Returns whether the newest messages are on this device without a gap. If not, requests them.
    fileprivate func holdsNewest(_ count: Int, of chat: ChatID) -> Bool {
        guard let page = try? history(of: chat, .newest, count: count) else { return false }
        let isWhole = !page.rows.contains { $0.isGapAfter }
        if isWhole, page.rows.count >= count || !page.isGapBefore { return true }
        // Without a position, the library fetches backwards from the newest message, if possible in
        // one page. With the rows around a gap, it would fill the gap with pages of the usual size.
        look(at: chat, rowsOnScreen: count)
        return false
    }
}

struct Search: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks for messages on disk, by beginnings of words."
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: "What to look for.")
    var query: String

    @Option(help: "Only in this chat.")
    var chat: String?

    @Option(name: [.customShort("n"), .long], help: "How many messages at most.")
    var count = 50

    @Flag(help: "Prints a line of JSON for each message (docs/schema/message.json).")
    var json = false

    func run() async throws {
        let client = try account.signedIn()
        let id = try chat.map { try client.chat(named: $0) }
        let found = try client.search(query, in: id, count: count)
        for message in found {
            try say(
                json
                    ? MessageLine(message.row, in: message.chat).json
                    : "\(printable(message.chatTitle))\t\(message.row.line)"
            )
        }
        await client.stop()
        if found.isEmpty { throw ExitCode(1) }
    }
}

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes what is on disk of a chat, oldest first, a line of JSON a message.",
        discussion: """
            docs/schema/message.json describes the JSON. With --whole nothing is written when not all came in time: exit code 2.
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: "The chat.")
    var chat: String

    @Flag(help: "Fetches first what is missing.")
    var whole = false

    @Option(help: "How long to wait for it, in seconds.")
    var wait = 60

    func run() async throws {
        let client = try account.signedIn()
        let id = try await client.chat(named: chat, within: whole ? wait : 0)
        if whole, await !fetch(id, client) {
            remark("Some of the chat is not here yet.")
            await client.stop()
            throw ExitCode(2)
        }
        var last = MessageID(.min)
        while true {
            let page = try client.history(of: id, .after(last), count: 500)
            for row in page.rows where row.message != nil {
                try say(MessageLine(row, in: id).json)
            }
            guard let next = page.rows.compactMap(\.message).last else { break }
            last = next
            if page.isEnd { break }
        }
        await client.stop()
    }

    private func fetch(_ chat: ChatID, _ client: Client) async -> Bool {
        client.start()
        return await client.within(.seconds(wait)) {
            await (try? client.readToTheStart(of: chat)) ?? false
        }
    }
}

extension Client {
    /// Runs `body` with a time limit.
    ///
    /// - Returns: The result of `body`; false when the time limit passes.
    func within(_ limit: Duration, _ body: @escaping @Sendable () async -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await body() }
            group.addTask {
                try? await Task.sleep(for: limit)
                return false
            }
            let isDone = await group.next() ?? false
            group.cancelAll()
            return isDone
        }
    }

    /// Reads a chat from its newest message back to its first, and waits at gaps until they are
    /// filled.
    ///
    /// - Returns: false when the account is signed out or the task is cancelled.
    fileprivate func readToTheStart(of chat: ChatID) async throws -> Bool {
        let changes = changes()
        guard await waitUntilOnline() else { return false }
        var anchor: HistoryAnchor = .newest
        func advance() throws -> Bool {
            while true {
                let page = try history(of: chat, anchor, count: 200)
                let rows = page.rows.filter { $0.message != nil }
                if !rows.contains(where: \.isGapAfter) {
                    if page.isStart { return true }
                    if rows.count > 1, let second = rows[1].message {
                        // The next page ends with the current first row, because a gap may precede
                        // that row.
                        anchor = .before(second)
                        continue
                    }
                }
                let isBehind = anchor == .newest && rows.last?.isGapAfter == true
                look(
                    at: chat,
                    position: isBehind ? nil : rows.first?.message,
                    rowsOnScreen: 200,
                    visible: rows.compactMap(\.message)
                )
                return false
            }
        }
        if try advance() { return true }
        for await change in changes where change.everything || change.histories.contains(chat) {
            if try advance() { return true }
        }
        return false
    }
}

struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says how much waits to be done, and with --flush does it."
    )

    @OptionGroup var account: AccountOptions

    @Flag(help: "Connects and does it.")
    var flush = false

    func run() async throws {
        let client = try account.signedIn()
        if flush {
            client.start()
            _ = await client.settle(within: .seconds(60))
        }
        let waiting = try client.queueLength()
        try say("\(waiting)")
        await client.stop()
        if waiting > 0 { throw ExitCode(2) }
    }
}

struct Sessions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the devices that are signed in to the account."
    )

    @OptionGroup var account: AccountOptions

    func run() async throws {
        let client = try account.signedIn()
        client.start()
        for session in try await client.sessions() {
            let mark = session.isCurrent ? "*" : " "
            try say(
                "\(mark) \(clock(session.seenMs))  \(printable(session.client))  \(printable(session.device))  \(printable(session.address))"
            )
        }
        await client.stop()
    }
}
