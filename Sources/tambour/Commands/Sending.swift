import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends a message; without a text, what standard input says.",
        discussion: """
            The message is stored before the command does anything else. When the server has it the exit code is 0; when it cannot be \
            reached in time, 2: the message is sent by whichever `tambour` connects next. With --lines that goes for each line, and \
            lines are sent while later ones are still awaited.
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: "The chat: its id, title, or the name or phone of a contact.")
    var chat: String

    @Argument(help: "The text.")
    var text: [String] = []

    @Option(help: "The id of the message that is answered.")
    var replyTo: Int64?

    @Flag(help: "Alerts nobody.")
    var silent = false

    @Flag(help: "Each line of standard input is a message of its own, sent as it comes.")
    var lines = false

    @Option(help: "How long to wait for the server, in seconds; 0 only queues it.")
    var wait = 30

    func validate() throws {
        if lines, !text.isEmpty { throw ValidationError("--lines reads standard input") }
    }

    func run() async throws {
        let client = try account.signedIn()
        let id = try await client.chat(named: chat, orFoundWithin: wait > 0)
        var outgoing: [OutgoingID] = []
        if lines {
            if wait > 0 { client.start() }
            while let line = readLine() {
                if !line.isEmpty { outgoing.append(try await send(line, to: id, client)) }
            }
        } else {
            outgoing.append(try await send(message(), to: id, client))
        }
        if wait > 0 {
            client.start()
            await client.wait(for: outgoing, within: .seconds(wait))
        }
        let waiting = try outgoing.count { try client.isWaiting($0) }
        let failure = try outgoing.lazy.compactMap { try client.failure(of: $0) }.first
        await client.stop()
        if let failure { throw Failure("not sent: \(failure)") }
        if waiting > 0 {
            remark(waiting == 1 ? "The message waits to be sent." : "\(waiting) messages wait.")
            throw ExitCode(2)
        }
    }

    private func send(_ text: String, to chat: ChatID, _ client: Client) async throws -> OutgoingID
    {
        try await client.send(
            text,
            to: chat,
            replyingTo: replyTo.map { MessageID($0) },
            isSilent: silent
        )
    }

    private func message() throws -> String {
        if !text.isEmpty { return text.map(ChatName.plain).joined(separator: " ") }
        let input = FileHandle.standardInput.readDataToEndOfFile()
        guard let text = String(data: input, encoding: .utf8) else {
            throw Failure("standard input is no UTF-8")
        }
        return String(text.drop { $0.isNewline }).trimmingCharacters(in: .newlines)
    }
}

extension Client {
    /// Waits until all that was asked for is done or refused.
    func wait(for outgoing: [OutgoingID], within limit: Duration) async {
        let changes = changes()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var left = outgoing[...]
                func isWaiting() -> Bool {
                    // They are done in about this order, so the rest need not be looked at.
                    while let next = left.first, (try? self.isWaiting(next)) != true {
                        left.removeFirst()
                    }
                    return !left.isEmpty
                }
                guard isWaiting() else { return }
                for await change in changes where change.queue || change.everything {
                    guard isWaiting() else { return }
                }
            }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }
}

struct Tail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows messages as they come, until it is interrupted."
    )

    @OptionGroup var account: AccountOptions

    @Option(help: "Only of this chat.")
    var chat: String?

    @Flag(help: "A line of JSON for each message.")
    var json = false

    @Option(name: [.customShort("n"), .long], help: "Ends after so many messages.")
    var count: Int?

    func run() async throws {
        let client = try account.signedIn()
        let only = try chat.map { try client.chat(named: $0) }
        // What is on disk when it starts is not new; what comes while it connects is.
        var shown: [ChatID: MessageID] = [:]
        for chat in try client.chats(includingHidden: true) {
            shown[chat.id] = try client.history(of: chat.id, .newest, count: 1).rows.last?.message
        }
        let changes = client.changes()
        client.start()
        var left = count ?? .max
        for await change in changes {
            let touched =
                change.everything
                ? Set(try client.chats(includingHidden: true).map(\.id)) : change.histories
            for id in touched.sorted() where only == nil || only == id {
                let after = shown[id] ?? MessageID(0)
                for row in try client.history(of: id, .after(after), count: 200).rows {
                    guard let message = row.message else { continue }
                    shown[id] = message
                    let title =
                        only == nil ? "\(printable(try client.chat(id)?.title ?? ""))\t" : ""
                    say(json ? MessageLine(row, in: id).json : "\(title)\(row.line)")
                    left -= 1
                    if left == 0 { return await client.stop() }
                }
            }
        }
    }
}
