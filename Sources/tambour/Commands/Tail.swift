import ArgumentParser
import TambourClient
import TambourProtocol

struct Tail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints messages as they arrive, until it is interrupted.",
        discussion: """
            It begins with the messages that arrived since this device was last connected, and omits none: it fetches missing \
            messages before it continues with a chat. Exit code 1: the server has signed this device out.

            With --exec, a shell command runs once for each message. The next message waits until the command has exited.

            EXAMPLES
              tambour tail
              tambour tail --json | jq -r 'select(.forMe) | .text'
              tambour tail --others --for-me --exec ./answer.sh
            """
    )

    @OptionGroup var account: AccountOptions

    @Option(help: "Prints only messages of this chat.")
    var chat: String?

    @Flag(help: "Prints a line of JSON for each message (docs/schema/message.json).")
    var json = false

    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("Ends after this number of messages.", valueName: "number")
    )
    var count: Int?

    @Option(
        name: .customLong("exec"),
        help: ArgumentHelp(
            "Runs a shell command for each message, with the message as JSON on its standard input.",
            valueName: "command"
        )
    )
    var hook: String?

    @Flag(help: "Omits messages of this account.")
    var others = false

    @Flag(help: "Prints only messages that mention this account or answer it.")
    var forMe = false

    @Flag(help: "Omits muted chats.")
    var unmuted = false

    func run() async throws {
        let client = try account.signedIn()
        let only = try chat.map { try client.chat(named: $0) }
        var feed = try Feed(client, only: only)
        let changes = client.changes()
        client.start()
        var left = count ?? .max
        guard left > 0 else { return await client.stop() }
        try requireSignedIn(client)
        let notice = Task { await client.telling(nil) { await client.waitUntilOnline() } }
        defer { notice.cancel() }
        for await change in changes {
            try feed.note(change)
            try feed.show { row, chat in
                let summary = try client.chat(chat)
                if others && row.isOwn || forMe && !row.concernsMe { return true }
                if unmuted, summary?.isMuted == true { return true }
                let title = summary?.title ?? ""
                let column = only == nil ? Ink.output(.faint, printable(title)) + "\t" : ""
                let line = MessageLine(row, in: chat, title)
                if let hook {
                    let status = try Hook(command: hook).run(line.json)
                    if status != 0 {
                        remark("message \(line.id ?? ""): `\(hook)` exited with \(status)")
                    }
                } else {
                    try say(json ? line.json : column + row.line())
                }
                left -= 1
                return left > 0
            }
            if left == 0 { return await client.stop() }
            if change.account || change.everything { try requireSignedIn(client) }
        }
    }

    private func requireSignedIn(_ client: Client) throws {
        if try client.isSignedIn() { return }
        let reason = client.signedOutReason.map { " The reason: \($0)" } ?? ""
        throw Failure("\(AccountOptions.signedOut)\(reason)")
    }
}

/// Remembers the last message of each chat that was shown, and the chats that may have newer
/// messages.
private struct Feed {
    private let client: Client
    private let only: ChatID?
    /// For each chat, the newest message that was shown. If none was shown: the newest message that
    /// was on disk at the start.
    private var shown: [ChatID: MessageID] = [:]
    /// For chats that were not on disk at the start: the position after which messages are shown.
    private let start: MessageID
    /// The chats that may have messages that were not shown yet.
    private var pending: Set<ChatID> = []
    /// The pending chats whose gaps are being filled.
    private var asked: Set<ChatID> = []

    /// The maximum number of chats whose gaps are filled at the same time.
    private static let atOnce = 8
    private static let pageSize = 200

    init(_ client: Client, only: ChatID?) throws {
        self.client = client
        self.only = only
        start = MessageID((try client.lastLoginMs() ?? 0) << 16)
        for chat in try client.chats(includingHidden: true) {
            let newest = try client.history(of: chat.id, .newest, count: 1).rows
            shown[chat.id] = newest.compactMap(\.message).last
        }
    }

    /// Records the chats that may have new messages.
    mutating func note(_ change: ChangeSet) throws {
        let touched =
            change.everything
            ? Set(try client.chats(includingHidden: true).map(\.id)) : change.histories
        pending.formUnion(only.map { touched.intersection([$0]) } ?? touched)
    }

    /// Shows the new messages of each pending chat up to its first gap. Asks the server for the
    /// messages in the gap.
    ///
    /// - Parameter show: Receives a message and its chat; returns false to stop.
    mutating func show(_ show: (HistoryRow, ChatID) throws -> Bool) throws {
        for chat in pending.sorted() {
            // If a chat is not in the list, the account has left it. No further messages of it
            // arrive, so its gaps cannot be filled.
            let isListed = try client.chat(chat) != nil
            var isDone = false
            while !isDone {
                let last = shown[chat] ?? start
                let page = try client.history(of: chat, .after(last), count: Self.pageSize)
                let rows = page.rows.filter { $0.message != nil }
                if isListed, page.isGapBehindAnchor { break }
                var hasGap = false
                for row in rows where !hasGap {
                    shown[chat] = row.message
                    guard try show(row, chat) else { return }
                    hasGap = isListed && row.isGapAfter
                }
                if hasGap { break }
                isDone = page.isEnd || rows.isEmpty
            }
            if isDone { filled(chat) } else { try fill(chat) }
        }
    }

    private mutating func filled(_ chat: ChatID) {
        pending.remove(chat)
        if asked.remove(chat) != nil { client.lookAway(from: chat) }
    }

    private mutating func fill(_ chat: ChatID) throws {
        guard asked.contains(chat) || asked.count < Self.atOnce else { return }
        asked.insert(chat)
        let last = shown[chat] ?? start
        let next = try client.history(of: chat, .after(last), count: 1).rows
        client.look(at: chat, rowsOnScreen: 1, visible: [last] + next.compactMap(\.message))
    }
}
