import ArgumentParser
import TambourClient
import TambourProtocol

struct History: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the newest messages of a chat, and fetches missing ones first.",
        discussion: """
            Messages that are not sent yet are counted on standard error; --queued prints them after the others. Exit code 2: not \
            all messages arrived in time, and those on this device were printed. If another `tambour` is connected, it fetches \
            the missing messages.

            EXAMPLES
              tambour history Bob -n 20
              tambour history Friends --json | jq -r '[.senderName, .text] | @tsv'
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: .chat)
    var chat: String

    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("How many messages to print.", valueName: "number")
    )
    var count = 50

    @Flag(help: "Prints a line of JSON for each message (docs/schema/message.json).")
    var json = false

    @Flag(help: "Also prints this account's messages that wait or were refused.")
    var queued = false

    @Flag(help: "Prints only what is on this device.")
    var offline = false

    @Option(
        help: ArgumentHelp("How long to wait for missing messages.", valueName: "seconds")
    )
    var wait: Seconds = 15

    func validate() throws { try requireCount(count) }

    func run() async throws {
        let client = try account.signedIn()
        let id = try await client.chat(named: chat, within: offline ? 0 : wait.count)
        var isWhole = true
        if !offline { isWhole = await fetch(id, client) }
        let page = try client.history(of: id, .newest, count: count)
        let title = try client.title(of: id)
        // A row without an id is a message that is not sent yet. Such rows are printed after the
        // other rows.
        let sent = page.rows.filter { $0.message != nil }
        let unsent = page.rows.filter { $0.message == nil }
        if page.isGapBefore, sent.count < count {
            remark("… older messages are not on this device yet")
        }
        for row in queued ? page.rows : sent {
            try say(json ? MessageLine(row, in: id, title).json : row.line())
            if row.isGapAfter { remark("… messages are missing here") }
        }
        if !queued, let summary = Self.summary(of: unsent) { remark(summary) }
        let isSignedIn = try client.isSignedIn()
        await client.stop()
        if isWhole { return }
        remark("Messages may be missing: the server could not be asked for all of them.")
        if !isSignedIn { remark(AccountOptions.signedOut) }
        throw ExitCode(2)
    }

    /// Returns a sentence that states how many messages wait to be sent and how many were refused;
    /// nil if no message waits or was refused.
    static func summary(of unsent: [HistoryRow]) -> String? {
        let refused = unsent.count {
            if case .failed = $0.state { true } else { false }
        }
        let waiting = unsent.count - refused
        let parts = [
            waiting > 0 ? "\(waiting) waiting" : nil, refused > 0 ? "\(refused) refused" : nil,
        ].compactMap(\.self)
        guard !parts.isEmpty else { return nil }
        let what = unsent.count == 1 ? "message is" : "messages are"
        return
            "\(unsent.count) \(what) not sent (\(parts.joined(separator: ", "))): --queued prints them, and `tambour queue` cancels or retries them."
    }

    /// Fetches messages until the newest ones are on this device without a gap.
    ///
    /// - Returns: False if the time limit has passed or the account has been signed out.
    private func fetch(_ chat: ChatID, _ client: Client) async -> Bool {
        let changes = client.changes()
        let count = count
        client.start()
        return await client.within(wait.duration) {
            guard await client.waitUntilOnline() else { return false }
            if client.holdsNewest(count, of: chat) { return true }
            for await _ in changes where client.holdsNewest(count, of: chat) { return true }
            return false
        }
    }
}

extension Client {
    /// Returns whether the newest `count` messages are on this device without a gap. If not, asks
    /// the server for them.
    fileprivate func holdsNewest(_ count: Int, of chat: ChatID) -> Bool {
        guard let page = try? history(of: chat, .newest, count: count) else { return false }
        let isWhole = !page.rows.contains { $0.isGapAfter }
        // The page also contains this account's messages that are not sent yet, so they are not
        // counted.
        let sent = page.rows.count { $0.message != nil }
        if isWhole, sent >= count || !page.isGapBefore { return true }
        // This call names no position, so the library fetches backwards from the newest message, if
        // possible in one page. If the call named the rows around a gap, the library would fill the
        // gap with pages of the usual size.
        look(at: chat, rowsOnScreen: count)
        return false
    }
}

struct Search: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Searches the messages on this device for words that begin with the given words.",
        discussion: """
            Exit code 1: no message was found.

            EXAMPLES
              tambour search "dinner fri"
              tambour search --chat Friends photos --json | jq -r .id
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: "The beginnings of words, in one argument.")
    var query: String

    @Option(help: "Searches only this chat.")
    var chat: String?

    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("How many messages to print at most.", valueName: "number")
    )
    var count = 50

    @Flag(help: "Prints a line of JSON for each message (docs/schema/message.json).")
    var json = false

    func validate() throws { try requireCount(count) }

    func run() async throws {
        let client = try account.signedIn()
        let id = try chat.map { try client.chat(named: $0) }
        let found = try client.search(query, in: id, count: count)
        for message in found {
            try say(
                json
                    ? MessageLine(message.row, in: message.chat, message.chatTitle).json
                    : "\(Ink.output(.faint, printable(message.chatTitle)))\t\(message.row.line())"
            )
        }
        await client.stop()
        if found.isEmpty { throw ExitCode(1) }
    }
}

/// - Throws: `ValidationError` if `count` is not from 1 to 1,000,000.
private func requireCount(_ count: Int) throws {
    guard (1...1_000_000).contains(count) else {
        throw ValidationError("--count takes a number from 1 to 1000000.")
    }
}

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the messages of a chat on this device, oldest first, as JSON lines.",
        discussion: """
            docs/schema/message.json describes the JSON. With --whole, exit code 2: not all messages arrived in time, and nothing \
            was printed.

            EXAMPLES
              tambour export Friends --whole > friends.jsonl
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: .chat)
    var chat: String

    @Flag(help: "Fetches missing messages first.")
    var whole = false

    @Option(
        help: ArgumentHelp("How long to wait for missing messages.", valueName: "seconds")
    )
    var wait: Seconds = 60

    func run() async throws {
        let client = try account.signedIn()
        let id = try await client.chat(named: chat, within: whole ? wait.count : 0)
        if whole, await !fetch(id, client) {
            remark("Some messages of the chat are not on this device yet.")
            await client.stop()
            throw ExitCode(2)
        }
        let title = try client.title(of: id)
        var last = MessageID(.min)
        while true {
            let page = try client.history(of: id, .after(last), count: 500)
            for row in page.rows where row.message != nil {
                try say(MessageLine(row, in: id, title).json)
            }
            guard let next = page.rows.compactMap(\.message).last else { break }
            last = next
            if page.isEnd { break }
        }
        await client.stop()
    }

    private func fetch(_ chat: ChatID, _ client: Client) async -> Bool {
        client.start()
        return await client.within(wait.duration) {
            await (try? client.readToTheStart(of: chat)) ?? false
        }
    }
}

extension Client {
    /// Returns the title of a chat; empty if this device does not know the chat.
    func title(of chat: ChatID) throws -> String {
        if let title = try self.chat(chat)?.title { return title }
        guard let me = try me(), let partner = chat.partner(of: me) else { return "" }
        return try person(partner)?.name ?? ""
    }

    /// Reads a chat from its newest message back to its first, and waits at gaps until they are
    /// filled.
    ///
    /// - Returns: False if the account has been signed out or the task has been cancelled.
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
                        // The next page overlaps this page by one row, because a gap may precede
                        // the first row of this page.
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
