import Dispatch
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour

/// Tests what the message pane shows after the user goes to a message, a day, or the first unread
/// message.
@Suite("Going to places at the screen", .serialized)
struct ScreenPlacesTests {
    /// The ways to go to a place.
    enum Way: CaseIterable {
        /// To a message that is a search hit, a quoted message, or a message of a thread.
        case message
        /// To a day whose first message is this message.
        case time
        case firstUnread
    }

    /// The places of messages to go to: at the ends of the chat, of a page from the server, and of
    /// a page on the screen.
    static let places: [(count: Int, place: Int)] =
        [(1, 0), (2, 0), (2, 1)]
        + [0, 1, 24, 25, 26, 49, 50, 51, 99, 100, 101, 229, 238, 239].map { (240, $0) }

    @Test("what was gone to is on the screen, and all around it", arguments: places)
    func going(count: Int, place: Int) async throws {
        try await atDesk(
            after: Before { world in
                for number in 1...count {
                    try world.bob.send("number \(number).", to: world.chat, cid: Int64(number))
                }
            }
        ) { desk in
            let all = try Self.history(desk)
            try #require(all.count == count)
            try await desk.openBob()
            // Go each way twice: first while the messages are not on this device, then while they
            // are.
            for way in Way.allCases + Way.allCases {
                let wanted = try go(way, to: place, of: all, desk)
                try await desk.display.wait(for: "\(way) \(wanted + 1) of \(count)") { display in
                    let lines = display.lines
                    guard Self.shows(wanted, of: count, lines) else { return false }
                    guard way == .firstUnread else { return true }
                    let first = Self.row(of: "number \(wanted + 1).", lines) ?? 0
                    // There may be a line with the author's name in between.
                    return (1...2).contains(first - (Self.row(of: "─ new ─", lines) ?? first))
                }
                desk.screen.queue.sync { desk.screen.follow() }
                try await desk.display.wait(for: "the newest") {
                    Self.row(of: "number \(count).", $0.lines) != nil
                }
            }
        }
    }

    @Test("a day after the newest message, and one before the oldest, lead to the ends")
    func beyond() async throws {
        try await atDesk(
            after: Before { world in
                for number in 1...240 {
                    try world.bob.send("number \(number).", to: world.chat, cid: Int64(number))
                }
            }
        ) { desk in
            try await desk.openBob()
            desk.type("/date 2001-01-01\n")
            try await desk.display.wait(for: "the oldest") { Self.shows(0, of: 240, $0.lines) }
            desk.type("/date 2035-01-01\n")
            try await desk.display.wait(for: "the newest") { Self.shows(239, of: 240, $0.lines) }
        }
    }

    /// - Returns: The index of the message that the screen must show.
    private func go(
        _ way: Way,
        to place: Int,
        of all: [(id: MessageID, timeMs: Int64)],
        _ desk: Desk
    ) throws -> Int {
        let target = all[place]
        return try desk.screen.queue.sync {
            switch way {
            case .message:
                desk.screen.go(to: target.id, in: desk.chat)
                return place
            case .time:
                desk.screen.go(to: MessageID(timeMs: target.timeMs, counter: 0), in: desk.chat)
                return try #require(all.firstIndex { $0.timeMs >= target.timeMs })
            case .firstUnread:
                // Several messages may share one millisecond.
                let wanted = try #require(all.firstIndex { $0.timeMs == target.timeMs })
                desk.screen.state.newAfterMs = wanted == 0 ? 0 : all[wanted - 1].timeMs
                desk.screen.goToFirstUnread()
                return wanted
            }
        }
    }

    /// Returns the messages on the server, oldest first.
    private static func history(_ desk: Desk) throws -> [(id: MessageID, timeMs: Int64)] {
        var all: [Message] = []
        var from: Int64?
        while true {
            let page =
                try desk.alice.call(
                    ChatHistoryRequest(chatID: desk.chat, from: from, backward: 200)
                ).messages ?? []
            let older = page.filter { message in !all.contains { $0.id == message.id } }
            guard let oldest = older.map(\.time).min() else { break }
            all += older
            from = oldest
        }
        return all.sorted { $0.id < $1.id }.map { ($0.id, $0.time) }
    }

    /// Returns the row of a text in the message pane.
    private static func row(of text: String, _ lines: [String]) -> Int? {
        lines.firstIndex { $0.drop { $0 != "│" }.contains(text) }
    }

    /// Returns whether a message is near the middle of the pane. Near an end of the chat, the
    /// message may be farther from the middle. No messages around it may be missing.
    private static func shows(_ place: Int, of count: Int, _ lines: [String]) -> Bool {
        guard let row = row(of: "number \(place + 1).", lines),
            Self.row(of: "missing", lines) == nil
        else { return false }
        // The last three lines are the rule, the input line and the status line.
        let middle = (lines.count - 3) / 2
        if abs(row - middle) <= 3 { return true }
        let ends = row < middle ? 1 : count
        return Self.row(of: "number \(ends).", lines) != nil
    }
}
