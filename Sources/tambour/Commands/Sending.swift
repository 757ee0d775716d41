import ArgumentParser
import Foundation
import Glibc
import TambourClient
import TambourProtocol

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends a message. Without a text, sends the standard input.",
        discussion: """
            The message is stored on this device first, so nothing is lost. Exit code 0: the server has the message. Exit code 2: \
            the server could not be reached in time; the next `tambour` that connects sends the message. With --lines, each line of \
            the standard input is a message, sent when it arrives. A line that cannot be a message is reported, and the other \
            lines are sent.

            With --at, the server keeps the message until that time: 18:30, tomorrow 9:00, monday 9:00, 2h, 2026-12-24 18:00. Exit \
            code 0 means that the server has it. The screen lists, changes and cancels it with /later.

            EXAMPLES
              tambour send Bob "See you at eight"
              tambour send +79990000002 --silent < report.txt
              tambour send Bob --at "tomorrow 9:00" "Good morning"
              make test 2>&1 | tambour send Bob --lines
              id=$(tambour history Bob -n 1 --json | jq -r .id)
              tambour send Bob --reply-to "$id" "Yes, gladly"
            """
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: .chat)
    var chat: String

    @Argument(help: "The text; several words are joined with spaces.")
    var text: [String] = []

    @Option(
        help: ArgumentHelp("The id of the message that the new one answers.", valueName: "message")
    )
    var replyTo: Int64?

    @Flag(help: "Sends without an alert.")
    var silent = false

    @Option(help: ArgumentHelp("Sends the message at this time.", valueName: "when"))
    var at: String?

    @Flag(help: "Sends each line of the standard input as a message, when it arrives.")
    var lines = false

    @Option(
        help: ArgumentHelp(
            "How long to wait for the server; 0 only queues the message.",
            valueName: "seconds"
        )
    )
    var wait: Seconds = 30

    func validate() throws {
        if lines, !text.isEmpty {
            throw ValidationError("--lines reads the standard input, and takes no text.")
        }
        if lines, at != nil {
            throw ValidationError("--at schedules one message, and cannot be used with --lines.")
        }
        _ = try plannedMs()
    }

    /// Returns the time that `--at` gives, in Unix milliseconds; nil if the user did not give the
    /// option.
    private func plannedMs() throws -> Int64? {
        guard let at else { return nil }
        do {
            return try LaterWords.time(of: at, now: Date(), calendar: .current).unixMs
        } catch {
            throw ValidationError("--at: \(error).")
        }
    }

    func run() async throws {
        let planned = try plannedMs()
        let client = try account.signedIn()
        let id = try await client.chat(named: chat, within: wait.count)
        var outgoing: [OutgoingID] = []
        var refused = 0
        if lines {
            if wait.count > 0 { client.start() }
            var number = 0
            var input = InputLines()
            while let bytes = input.next() {
                number += 1
                if bytes.isEmpty { continue }
                do {
                    guard let line = String(validating: bytes, as: UTF8.self) else {
                        throw ClientError.invalid(reason: "it is not UTF-8")
                    }
                    outgoing.append(try await send(line, to: id, client))
                } catch ClientError.invalid(let reason) {
                    remark("line \(number): \(reason)")
                    refused += 1
                }
            }
        } else {
            outgoing.append(try await send(try messageText(text), to: id, at: planned, client))
        }
        if wait.count > 0 {
            client.start()
            await client.wait(for: outgoing, within: wait.duration)
        }
        let outcome = try Outcome(of: outgoing, client)
        await client.stop()
        if refused > 0, outcome.failure == nil {
            try? outcome.report()
            throw Failure(refused == 1 ? "One line was not sent" : "\(refused) lines were not sent")
        }
        try outcome.report()
    }

    private func send(
        _ text: String,
        to chat: ChatID,
        at planned: Int64? = nil,
        _ client: Client
    ) async throws -> OutgoingID {
        if let planned {
            return try await client.send(
                text,
                to: chat,
                atMs: planned,
                replyingTo: replyTo.map { MessageID($0) },
                isSilent: silent
            )
        }
        return try await client.send(
            text,
            to: chat,
            replyingTo: replyTo.map { MessageID($0) },
            isSilent: silent
        )
    }
}

/// Returns the text of a message: the words of the command line. If there are no words, returns the
/// standard input without line breaks at its start and end.
func messageText(_ words: [String]) throws -> String {
    if !words.isEmpty { return words.map(ChatName.plain).joined(separator: " ") }
    if isatty(STDIN_FILENO) == 1 { remark("Type the text. Ctrl-D on an empty line ends it.") }
    let input = FileHandle.standardInput.readDataToEndOfFile()
    guard let text = String(data: input, encoding: .utf8) else {
        throw Failure("The standard input is not UTF-8")
    }
    return String(text.drop { $0.isNewline }).trimmingCharacters(in: .newlines)
}

extension ArgumentHelp {
    /// The help of an argument that names a chat.
    static let chat: ArgumentHelp = "The chat: its id or title, or a contact's name or phone."
}
