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
            lines are sent while later ones are still awaited; a line that is no message is named, and the others go on.
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
        let id = try await client.chat(named: chat, within: wait)
        var outgoing: [OutgoingID] = []
        var refused = 0
        if lines {
            if wait > 0 { client.start() }
            var number = 0
            var input = InputLines()
            while let bytes = input.next() {
                number += 1
                if bytes.isEmpty { continue }
                do {
                    guard let line = String(validating: bytes, as: UTF8.self) else {
                        throw ClientError.invalid(reason: "it is no UTF-8")
                    }
                    outgoing.append(try await send(line, to: id, client))
                } catch ClientError.invalid(let reason) {
                    remark("line \(number): \(reason)")
                    refused += 1
                }
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
        let isSignedIn = try client.isSignedIn()
        await client.stop()
        if waiting > 0 {
            remark(waiting == 1 ? "The message waits to be sent." : "\(waiting) messages wait.")
            if !isSignedIn { remark(AccountOptions.signedOut) }
        }
        if let failure { throw Failure("not sent: \(failure)") }
        if refused > 0 {
            throw Failure(refused == 1 ? "a line was not sent" : "\(refused) lines were not sent")
        }
        if waiting > 0 { throw ExitCode(2) }
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
    /// Waits until all actions in `outgoing` are done or refused, or no account is signed in.
    func wait(for outgoing: [OutgoingID], within limit: Duration) async {
        let changes = changes()
        _ = await within(limit) {
            var left = outgoing[...]
            func isWaiting() -> Bool {
                // The actions finish in roughly this order, so checking the first one is enough.
                while let next = left.first, (try? self.isWaiting(next)) != true {
                    left.removeFirst()
                }
                return !left.isEmpty && (try? self.isSignedIn()) != false
            }
            guard isWaiting() else { return true }
            for await change in changes where change.queue || change.account || change.everything {
                guard isWaiting() else { return true }
            }
            return false
        }
    }
}
