import Foundation
import Glibc
import TambourClient
import TambourProtocol

/// Writes a line to standard output at once: what reads it may be a program.
func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
}

/// Writes a line to standard error: for the person, not for what reads the output.
func remark(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}

/// Asks on the terminal; nil when nobody is there to answer.
func askPerson(_ question: String, isSecret: Bool = false) -> String? {
    FileHandle.standardError.write(Data(question.utf8))
    guard isSecret, isatty(STDIN_FILENO) == 1 else { return readLine() }
    var before = termios()
    tcgetattr(STDIN_FILENO, &before)
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSANOW, &silent)
    defer {
        tcsetattr(STDIN_FILENO, TCSANOW, &before)
        remark("")
    }
    return readLine()
}

/// Text of others for a terminal: nothing in it can command the terminal.
func printable(_ text: String) -> String {
    String(
        String.UnicodeScalarView(
            text.unicodeScalars.map { scalar in
                switch scalar.properties.generalCategory {
                case .control where scalar != "\n" && scalar != "\t": "\u{FFFD}"
                case .format where scalar != "\u{200D}": "\u{FFFD}"
                default: scalar
                }
            }
        )
    )
}

/// A time as `2026-11-23 14:05`, of this device's time zone.
func clock(_ ms: Int64) -> String {
    var seconds = time_t(ms / 1000)
    var parts = tm()
    localtime_r(&seconds, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let count = strftime(&text, text.count, "%Y-%m-%d %H:%M", &parts)
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// A message as a line of JSON.
struct MessageLine: Encodable {
    let chat: Int64
    let id: Int64?
    let time: Int64
    let sender: Int64?
    let senderName: String
    let own: Bool
    let text: String
    let replyTo: Int64?
    let event: String?
    let attachments: [String]
    let reactions: [String: Int]
    let edited: Bool
    let state: String

    init(_ row: HistoryRow, in chat: ChatID) {
        self.chat = chat.rawValue
        id = row.message?.rawValue
        time = row.timeMs
        sender = row.sender?.rawValue
        senderName = row.senderName
        own = row.isOwn
        text = row.text
        replyTo = row.quote?.message.rawValue
        event = row.event
        attachments = row.attachments
        reactions = Dictionary(row.reactions.map { ($0.emoji, $0.count) }) { $0 + $1 }
        edited = row.isEdited
        state =
            switch row.state {
            case .waiting: "waiting"
            case .sent: "sent"
            case .read: "read"
            case .failed: "failed"
            case .received: "received"
            }
    }

    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}

extension HistoryRow {
    /// A message as a line for people.
    var line: String {
        if let event { return "\(clock(timeMs))  * \(printable(event))" }
        var words = text.isEmpty ? [] : [text]
        words += attachments
        if let forwardedFrom { words.insert("[from \(forwardedFrom)]", at: 0) }
        if let quote { words.insert("[re: \(quote.text.prefix(30))]", at: 0) }
        let reactions = reactions.map { "\($0.emoji)\($0.count)" }.joined(separator: " ")
        let marks = [isEdited ? "(edited)" : "", reactions, stateMark].filter { !$0.isEmpty }
        let whole = ([words.joined(separator: " ")] + marks).joined(separator: " ")
        return "\(clock(timeMs))  \(printable(senderName)): \(printable(whole))"
    }

    private var stateMark: String {
        switch state {
        case .waiting: "(waiting)"
        case .failed(let reason): "(not sent: \(reason))"
        case .sent, .read, .received: ""
        }
    }
}
