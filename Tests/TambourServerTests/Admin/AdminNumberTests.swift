import Foundation
import TambourMessenger
import TambourProtocol
import TambourTesting
import Testing

@Suite("Numbers of operators")
struct AdminNumberTests {
    /// The limits of the integer types, the numbers next to them, and numbers that no type can
    /// hold.
    static let numbers: [String] = {
        let bits: [Int64] = [31, 47, 62]
        var numbers: [Int64] = [
            0, 1, 2, 200_000_000_000_000, .max / 86_400_000 + 1, .max - 1, .max,
        ]
        for bit in bits { numbers += [(1 << bit) - 1, 1 << bit] }
        numbers += numbers.map { -$0 }
        let texts = numbers.map { "\($0)" }
        let others = [
            "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
            "18446744073709551616", "1e9", "+5", "0x7f", " 1", "٣", "",
        ]
        return texts + others
    }()

    /// One command for each number argument, as words on the admin socket; `#` stands for the
    /// number.
    static let commands: [[String]] = [
        ["users", "limit=#"], ["users", "after=#"], ["users", "chat=#"], ["users", "idle-days=#"],
        ["users", "phone=#"], ["users", "phone=+#"],
        ["chats", "limit=#"], ["chats", "after=#"], ["chats", "user=#"], ["chats", "user=+#"],
        ["chats", "min-members=#"],
        ["sessions", "limit=#"], ["sessions", "after=#"], ["sessions", "user=#"],
        ["sessions", "idle-days=#"],
        ["stats", "#"], ["user", "#"], ["user", "+#"], ["chat", "#"], ["session", "#"],
        ["export", "#"], ["may-erase", "#"], ["close-report", "#"],
        ["create-users", "#", "79990000100"], ["create-users", "1", "#"],
        ["block", "#"], ["unblock", "#"], ["end-session", "#"], ["end-sessions", "#"],
        ["audit", "limit=#"], ["audit", "after=#"], ["audit", "user=#"], ["audit", "days=#"],
        ["announce", "x", "T", "#"], ["add-default-chat", "#"], ["remove-default-chat", "#"],
        ["erase", "#"],
        ["create-invitation", "#", "1"], ["create-invitation", "1", "#"], ["invite", "#", "1"],
        ["invite", "79990000200", "#"], ["invitations", "after=#"], ["invitations", "limit=#"],
        ["revoke-invitation", "#"],
    ]

    @Test("every number of every command is refused or answered, and the server goes on")
    func commands() throws {
        try withPair { server, alice, bob, dialog in
            try alice.send("hello", to: dialog, cid: 1)
            _ = try bob.createGroup("G", with: [alice], cid: 2)
            for command in Self.commands {
                for number in Self.numbers {
                    let words = command.map { word in
                        word.split(separator: "#", omittingEmptySubsequences: false)
                            .joined(separator: number)
                    }
                    guard let request = AdminService.Request(words: words) else { continue }
                    do {
                        _ = try server.admin(request)
                    } catch let failure as AdminService.Failure {
                        #expect(!failure.description.isEmpty, "\(words)")
                    }
                }
                _ = try server.admin(.clock)
            }
            let carol = try server.signUp("Carol")
            try carol.call(PingRequest())
            #expect(try server.admin(.check) == ["ok"])
        }
    }

    @Test("days that no clock counts back are refused with what may be given")
    func days() throws {
        try withServer { server in
            _ = try server.signUp("Alice")
            for days in ["-1", "36501", "200000000000000", "-9223372036854775808"] {
                let filter = AdminFilter([.idleDays: days])
                for request in [AdminService.Request.users(filter), .sessions(filter)] {
                    let failure = try #require(throws: AdminService.Failure.self) {
                        try server.admin(request)
                    }
                    #expect(failure.description == "idle-days: \(days) is not 0 to 36500 days")
                }
            }
            #expect(try server.admin(.users(AdminFilter([.idleDays: "36500"]))).isEmpty)
        }
    }

    @Test("a server whose limits are all at their largest goes on")
    func largestLimits() throws {
        let names = Self.limits.filter {
            Self.takes($0, Int(Int32.max)) && $0 != "reservedDescriptors"
        }
        #expect(names.count > 100)
        try serve(Dictionary(uniqueKeysWithValues: names.map { ($0, Int(Int32.max)) })) { alice in
            try alice.send("hello", to: ChatID(0), cid: 1)
            _ = try alice.history(ChatID(0), from: .max, backward: .max, forward: .max)
            _ = try alice.call(ChatsListRequest(marker: .max, count: .max))
        }
    }

    @Test("a server with any limit at its smallest goes on")
    func smallestLimits() throws {
        let environment = ProcessInfo.processInfo.environment
        let isSoak = environment["TAMBOUR_SOAK"] == "1"
        // A trap ends the whole test process, so only a soak run uses a random seed.
        let seed =
            environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
            ?? (isSoak ? .random(in: 0 ... .max) : 7)
        var random = SeededGenerator(seed: seed)
        var names = Self.limits.filter { Self.takes($0, 1) }.shuffled(using: &random)
        if !isSoak { names = Array(names.prefix(8)) }
        print("smallest limits: \(names.count), TAMBOUR_SEED=\(seed)")
        for name in names {
            try serve([name: 1]) { alice in
                // The server may refuse these requests.
                _ = try? alice.send("hello", to: ChatID(0), cid: 1)
                _ = try? alice.history(ChatID(0), from: .max, backward: .max, forward: .max)
            }
        }
    }

    private func serve(_ limits: [String: Int], _ body: (WireClient) throws -> Void) throws {
        try withServer(limits: limits) { server in
            if let alice = try? server.signUp("Alice") { try body(alice) }
            _ = try server.admin(.clock)
        }
    }

    private static let limits = Mirror(reflecting: Limits.standard).children.compactMap(\.label)

    private static func takes(_ name: String, _ value: Int) -> Bool {
        (try? Limits(overrides: [name: value])) != nil
    }
}
