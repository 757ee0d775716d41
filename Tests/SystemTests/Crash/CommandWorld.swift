import Dispatch
import Foundation
import Synchronization
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting

/// A server that is killed again and again, and users who keep commands of all kinds in flight.
///
/// A cycle has four steps. All users play until the server is killed. The server starts again on
/// the same port. The test looks for everything that was acknowledged. The test then repeats the
/// requests that were in flight; the repetition must not double any change.
///
/// `@unchecked Sendable`: one task of a test drives it, and waits for the work on other threads.
final class CommandWorld: @unchecked Sendable {
    /// The login code that the server sends to every phone and address.
    static let code = "111111"
    private static let playerCount = 3
    private static let strangersOfEach = 6
    private static let flowsOfEachKind = 2

    private let server: TambourdProcess
    private var random: SeededGenerator
    private var players: [CommandPlayer] = []
    private var flows: [CommandFlow] = []
    private var plays: [Int: CommandPlay] = [:]

    private(set) var kills = 0
    /// The number of acknowledgements under load, by opcode.
    private(set) var acknowledged: [Opcode: Int] = [:]
    private(set) var pushed = 0
    /// The number of users that an admin command made.
    private var madeUsers = 0
    /// The number of changes that were in flight at a kill.
    private(set) var inFlight = (stored: 0, notStored: 0)

    init(_ server: TambourdProcess, seed: UInt64) {
        self.server = server
        random = SeededGenerator(seed: seed)
    }

    func remove() {
        for player in players { player.close() }
        for flow in flows { flow.close() }
    }

    // MARK: - Setup

    func setUp() throws {
        let own = 2 + Self.strangersOfEach
        madeUsers = Self.playerCount * own + Self.flowsOfEachKind * 2
        var users = try makeUsers(madeUsers)[...]
        for _ in 0..<Self.playerCount {
            let taken = Array(users.prefix(own))
            users = users.dropFirst(own)
            let player = try CommandPlayer(
                taken[0],
                with: taken[1],
                strangers: Array(taken[2...]),
                at: server.address,
                dataDirectory: server.dataDirectory
            )
            for make in CommandPlay.all {
                let play = try make(player, CommandMark(play: plays.count + 1))
                plays[plays.count + 1] = play
                player.add(play)
            }
            players.append(player)
        }
        let invitation = try makeInvitation()
        for index in 0..<Self.flowsOfEachKind {
            let mark = CommandMark(play: 1_000_000 + index)
            flows.append(.registration(with: invitation, at: server.address, mark))
            for make in [CommandFlow.sessions, CommandFlow.password] {
                if let user = users.popFirst() { flows.append(make(user, server.address, mark)) }
            }
        }
        for flow in flows { try flow.connect() }
    }

    private func makeUsers(_ count: Int) throws -> [CommandUser] {
        var users: [CommandUser] = []
        let request = AdminService.Request.createUsers(count: count, firstPhone: 79_990_000_001)
        try admin(request) { line in
            let words = line.split(separator: " ")
            guard words.count == 3, let id = Int64(words[1]) else { return }
            let phone = 79_990_000_001 + Int64(users.count)
            users.append(CommandUser(id: UserID(id), phone: phone, token: String(words[2])))
        }
        guard users.count == count else { throw failure("\(users.count) users of \(count)") }
        return users
    }

    /// Makes an invitation with more uses than the flows need, and returns its code.
    private func makeInvitation() throws -> String {
        var code = ""
        try admin(.createInvitation(uses: 10_000, days: 1)) { line in
            code = String(line.split(separator: " ")[1])
        }
        return code
    }

    /// Checks that the total number of uses of all invitations equals the number of registrations.
    private func verifyInvitations() throws {
        var uses = 0
        try admin(.invitations(AdminFilter())) { line in
            uses += Int(line.split(separator: " ")[2].prefix { $0 != "/" }) ?? 0
        }
        var registered = -madeUsers
        try admin(.users(AdminFilter())) { _ in registered += 1 }
        guard registered > 0, uses == registered else {
            throw failure("\(registered) people registered with \(uses) uses of invitations")
        }
    }

    private func admin(_ request: AdminService.Request, _ output: (String) -> Void) throws {
        let client = AdminClient(dataDirectory: server.dataDirectory)
        guard try client.run(request, output: output) else { throw failure("no server listens") }
    }

    // MARK: - A cycle

    /// Plays until the server is killed, and verifies the stored state.
    ///
    /// - Parameter opcodes: Commands that the server must acknowledge at least once before the
    ///   kill.
    func cycle(with opcodes: Set<Opcode> = []) async throws {
        let changes = Int.random(in: 1...800, using: &random)
        for player in players { player.shuffle(using: &random) }
        try await play(CommandLoad(changes, with: opcodes))
        try await blocking { [self] in try verify() }
    }

    private func play(_ load: CommandLoad) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for player in players {
                group.addTask { try await blocking { player.play(load) } }
                group.addTask { try await blocking { try player.listen() } }
            }
            for flow in flows { group.addTask { try await blocking { flow.play(load) } } }
            group.addTask { [self] in
                try await blocking { load.waitForEnd() }
                try await server.killAndRestart()
            }
            try await group.waitForAll()
        }
        kills += 1
        acknowledged.merge(load.acknowledged, uniquingKeysWith: +)
        for player in players { pushed += player.takePushes(for: plays) }
        if let error = players.compactMap(\.failure).first ?? flows.compactMap(\.failure).first {
            throw error
        }
    }

    private func verify() throws {
        for player in players { try player.connect(to: server.address) }
        for flow in flows { try flow.connect() }
        for player in players {
            let outcomes = try player.verify()
            inFlight.stored += outcomes.count { $0 == .stored }
            inFlight.notStored += outcomes.count { $0 == .notStored }
        }
        for flow in flows { try flow.verify() }
    }

    /// Verifies what needs checking only at the end: all ended and open sessions, and the store
    /// itself.
    func finish() async throws {
        try await blocking { [self] in
            for flow in flows { try flow.verifyAll() }
            try verifyInvitations()
            var lines: [String] = []
            try admin(.check) { lines.append($0) }
            guard lines == ["ok"] else { throw failure("admin check says: \(lines)") }
        }
        guard server.errors.isEmpty else { throw failure("the server says: \(server.errors)") }
    }

    private func failure(_ what: String) -> CrashWorld.Failure {
        CrashWorld.Failure(isLoss: false, description: what)
    }
}

/// Counts acknowledgements and ends the load when there are enough.
final class CommandLoad: Sendable {
    private struct State {
        var counts: [Opcode: Int] = [:]
        var left: Int
        /// Commands that the server has not acknowledged yet.
        var missing: Set<Opcode>
    }

    private let state: Mutex<State>
    private let isOver = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - changes: The number of acknowledged changes after which the load may end.
    ///   - opcodes: The commands that must be acknowledged at least once before the load ends.
    init(_ changes: Int, with opcodes: Set<Opcode>) {
        state = Mutex(State(left: changes, missing: opcodes))
    }

    var acknowledged: [Opcode: Int] { state.withLock { $0.counts } }

    func note(_ opcode: Opcode) {
        let isEnough = state.withLock { state in
            state.counts[opcode, default: 0] += 1
            state.left -= 1
            state.missing.remove(opcode)
            return state.left <= 0 && state.missing.isEmpty
        }
        if isEnough { end() }
    }

    /// Ends the load now.
    func end() { isOver.signal() }

    /// Waits for the end of the load, for at most two minutes.
    func waitForEnd() { _ = isOver.wait(timeout: .now() + 120) }
}
