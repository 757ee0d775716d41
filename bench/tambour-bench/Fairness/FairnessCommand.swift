import ArgumentParser
import Foundation
import TambourNet
import TambourProtocol
import TambourTesting

/// Measures how long one user waits while other users load the server heavily.
struct FairnessCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fairness",
        abstract:
            "Attacks a server of its own in several ways and says how long somebody else waits.",
        discussion: """
            One user sends PING, MSG_SEND, CHAT_HISTORY and LOGIN in turn while the attack goes on, beside the \
            same on an idle server. Times are those of the client, so they include the network, the work \
            itself and the flush of a send: the queue time inside the server is less. How often something \
            may be done is not limited here. Ends with 1 if --strict is given and a bound was missed.
            """
    )

    @Option(help: "The program of the server.")
    var tambourd = ".build/release/tambourd"

    @Option(help: "Tries of each kind in each scenario.")
    var tries = 200

    @Option(help: "Messages of the account that searches.")
    var messages = 6_000

    @Option(help: "Where the server's data goes, a folder on a disk.")
    var scratch = ".build/bench/fairness"

    @Flag(help: "End with 1 when a bound was missed.")
    var strict = false

    private struct Scenario: Sendable {
        let name: String
        let boundMs: Double
        var hasAudience = false
        let attackers: @Sendable (Stage) throws -> [Attacker]
    }

    /// A server, and the users of the scenario.
    private struct Stage: Sendable {
        let address: ListenAddress
        let alice: Account
        let bob: Account
        let mallory: Account
        let searcher: Account
        /// The group that mallory writes to; all its other members are online.
        let group: ChatID
        let members: [Account]
        /// The messages of the dialog between mallory and alice.
        let messages: [MessageID]
        /// Saved messages of mallory that fill a page.
        let longMessages: [MessageID]
        let words: [String]
    }

    private static let scenarios = [
        Scenario(name: "idle", boundMs: .infinity) { _ in [] },
        Scenario(name: "one stranger, bursts of 64 KB", boundMs: 20) { stage in
            [try stranger(stage)]
        },
        Scenario(name: "40 strangers, 2.6 MB", boundMs: 100) { stage in
            try (0..<40).map { _ in try stranger(stage) }
        },
        Scenario(name: "128 of the largest requests in flight", boundMs: 50) { stage in
            let dialog = stage.mallory.dialog(with: stage.alice)
            let book = (0..<1_000).map { "\(79_991_000_000 + $0)" }
            let packets = [
                Attack.packet(MsgDeleteRequest(chatID: dialog, messageIDs: stage.messages)),
                Attack.packet(
                    SyncRequest(contactList: NameMap(book.map { (Text($0), PhoneBookEntry()) }))
                ),
            ]
            return [
                try Attacker(
                    stage.address,
                    opening: Attack.login(stage.mallory),
                    packets: packets,
                    window: 128,
                    isBurst: false
                )
            ]
        },
        Scenario(name: "large pages on 4 connections of an account", boundMs: 50) { stage in
            let saved = ChatID.dialog(stage.mallory.userID, stage.mallory.userID)
            let page = Attack.packet(
                MsgGetRequest(chatID: saved, messageIDs: stage.longMessages)
            )
            return try (0..<4).map { _ in
                try Attacker(
                    stage.address,
                    opening: Attack.login(stage.mallory),
                    packets: [page],
                    window: 128,
                    isBurst: false
                )
            }
        },
        Scenario(name: "128 texts in flight to 400 members", boundMs: 100, hasAudience: true) {
            stage in
            [
                try Attacker(
                    stage.address,
                    opening: Attack.login(stage.mallory),
                    packets: Attack.messages(to: stage.group, 5_000, text: "a short text"),
                    window: 128,
                    isBurst: false
                )
            ]
        },
        Scenario(name: "searching one's own messages", boundMs: 50) { stage in
            let query = Text(stage.words.joined(separator: " "))
            let search = Attack.packet(ChatSearchRequest(query: query))
            return try (0..<4).map { _ in
                try Attacker(
                    stage.address,
                    opening: Attack.login(stage.searcher),
                    packets: [search],
                    window: 8,
                    isBurst: false
                )
            }
        },
    ]

    private static func stranger(_ stage: Stage) throws -> Attacker {
        try Attacker(
            stage.address,
            opening: [Attack.hello],
            packets: [Attack.log],
            window: Attack.logsOfBurst,
            isBurst: true
        )
    }

    func run() throws {
        let folder = URL(fileURLWithPath: scratch)
        try? FileManager.default.removeItem(at: folder)
        let server = try TambourServer(program: tambourd, directory: folder)
        defer { server.process.stop() }
        let stage = try prepare(server)
        print("| scenario | answered | PING p50 / p99 | MSG_SEND | CHAT_HISTORY | LOGIN | bound |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        var isMet = true
        for scenario in Self.scenarios {
            let audience =
                scenario.hasAudience ? try Audience(stage.address, stage.members) : nil
            let attackers = try scenario.attackers(stage)
            let figures = try probe(stage)
            let answered = try attackers.reduce(0) { $0 + (try $1.stop()) }
            audience?.leave()
            let worst = figures.map(\.p99).max() ?? 0
            let mark = worst <= scenario.boundMs ? "" : " missed"
            if !mark.isEmpty { isMet = false }
            let cells = figures.map { String(format: "%.1f / %.1f", $0.p50, $0.p99) }
            let bound = scenario.boundMs.isFinite ? "\(Int(scenario.boundMs)) ms\(mark)" : ""
            let words = [scenario.name, "\(answered)"] + cells + [bound]
            print("| \(words.joined(separator: " | ")) |")
        }
        if strict, !isMet { throw ExitCode.failure }
    }

    private func prepare(_ server: TambourServer) throws -> Stage {
        let accounts = try server.makeUsers(404, firstPhone: 79_990_000_000)
        let address = server.process.address
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        let words = (0..<157).map { String([letters[$0 / 26], letters[$0 % 26]]) }
        // Each message contains all words except one. A query of all words therefore matches no
        // message, and the server scans every message.
        func text(_ number: Int) -> String {
            var rest = words
            rest.remove(at: number % words.count)
            return rest.joined(separator: " ")
        }
        let searcher = try client(address, accounts[3])
        let own = ChatID.dialog(accounts[3].userID, accounts[3].userID)
        try write(messages, from: searcher, to: own, text)
        let mallory = try client(address, accounts[2])
        let dialog = accounts[2].dialog(with: accounts[0])
        let ids = try write(1_000, from: mallory, to: dialog) { "message \($0)" }
        let saved = ChatID.dialog(accounts[2].userID, accounts[2].userID)
        let long = try write(60, from: mallory, to: saved) { number in
            String(repeating: UnicodeScalar(0x4E00 + number).map { "\($0)" } ?? "", count: 4_000)
        }
        let members = Array(accounts[4...])
        let book = members.map { (Text($0.phone), PhoneBookEntry()) }
        _ = try mallory.call(SyncRequest(contactList: NameMap(book)))
        let control = NewAttach(
            type: .control,
            title: "Group",
            event: "new",
            chatType: "CHAT",
            userIDs: members.map(\.userID)
        )
        let group = try mallory.call(
            MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
        )
        let alice = try client(address, accounts[0])
        try write(50, from: alice, to: accounts[0].dialog(with: accounts[1])) { "hello \($0)" }
        return Stage(
            address: address,
            alice: accounts[0],
            bob: accounts[1],
            mallory: accounts[2],
            searcher: accounts[3],
            group: group.chatID,
            members: members,
            messages: ids,
            longMessages: long,
            words: words
        )
    }

    @discardableResult
    private func write(
        _ count: Int,
        from client: WireClient,
        to chat: ChatID,
        _ text: (Int) -> String
    ) throws -> [MessageID] {
        var ids: [MessageID] = []
        var numbers: [UInt16] = []
        func collect() throws {
            for number in numbers {
                ids.append(try client.reply(to: number, as: MsgSendReply.self).message.id)
            }
            numbers = []
        }
        for index in 0..<count {
            let message = NewMessage(cid: Int64(index) + 1, text: Text(text(index)))
            numbers.append(try client.send(MsgSendRequest(chatID: chat, message: message)))
            if numbers.count == 64 { try collect() }
        }
        try collect()
        return ids
    }

    private func client(_ address: ListenAddress, _ account: Account) throws -> WireClient {
        let client = try WireClient(address: "\(address)")
        _ = try client.call(account.hello)
        _ = try client.call(account.loginRequest())
        return client
    }

    private struct Figure {
        let p50: Double
        let p99: Double

        /// - Parameter times: milliseconds.
        init(_ times: [Double]) {
            let sorted = times.sorted()
            p50 = sorted[sorted.count / 2]
            p99 = sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
        }
    }

    /// Measures PING, MSG_SEND, CHAT_HISTORY and LOGIN, each `tries` times.
    private func probe(_ stage: Stage) throws -> [Figure] {
        let alice = try client(stage.address, stage.alice)
        let dialog = stage.alice.dialog(with: stage.bob)
        var times = [[Double]](repeating: [], count: 4)
        func measure(_ kind: Int, _ body: () throws -> Void) rethrows {
            let start = ContinuousClock.now
            try body()
            times[kind].append((ContinuousClock.now - start) / .milliseconds(1))
        }
        let base = Int64(Date.now.timeIntervalSince1970 * 1_000) * 1_000
        for number in 0..<tries {
            try measure(0) { try alice.call(PingRequest()) }
            let message = NewMessage(cid: base + Int64(number), text: "probe")
            try measure(1) { try alice.call(MsgSendRequest(chatID: dialog, message: message)) }
            try measure(2) { try alice.call(ChatHistoryRequest(chatID: dialog, backward: 30)) }
            let other = try WireClient(address: "\(stage.address)")
            _ = try other.call(stage.bob.hello)
            try measure(3) { try other.call(stage.bob.loginRequest()) }
            _ = alice.takePushesAtHand()
        }
        return times.map { Figure($0) }
    }
}
