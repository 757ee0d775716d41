import TambourProtocol
import TambourTesting

/// A sequence of steps that depend on each other, played in rounds: signing in, passwords,
/// sessions.
///
/// Each step needs values from earlier replies: a code request, a track, a token. So the server
/// must still know these values after a kill. The flow repeats a step that was in flight at the
/// kill. If the server refuses the repetition, it must have stored the first attempt.
///
/// `@unchecked Sendable`: used by one thread at a time.
final class CommandFlow: @unchecked Sendable {
    /// Where the flow continues when the server refuses the repetition of a step that was in flight
    /// at a kill.
    enum Resumption {
        case next
        /// Go back this many steps, because the flow needs the content of the lost reply.
        case back(Int)
    }

    struct Step: Sendable {
        let name: String
        let play: @Sendable (CommandFlow) throws -> Void
        /// Called when the server refuses the repetition of the step. Checks that the first attempt
        /// was stored, and returns where the flow continues. Nil if the server never refuses the
        /// step.
        let resume: (@Sendable (CommandFlow) throws -> Resumption)?

        init(
            _ name: String,
            _ play: @escaping @Sendable (CommandFlow) throws -> Void,
            ifRefused resume: (@Sendable (CommandFlow) throws -> Resumption)? = nil
        ) {
            self.name = name
            self.play = play
            self.resume = resume
        }
    }

    let mark: CommandMark
    /// The user whose account the flow changes; nil if each round creates an account.
    let user: CommandUser?
    /// A connection that is logged in as the user.
    private(set) var own: WireClient?
    /// A connection without a login.
    private(set) var stranger: WireClient?
    let address: String

    /// The number of the current round, from 1.
    private(set) var round = 1
    private var position = 0
    /// Whether the step at `position` was sent and has no reply.
    private var isUncertain = false
    private let steps: [Step]
    private var load: CommandLoad?
    private(set) var failure: (any Error)?

    // Values from the replies of earlier steps.
    var token = ""
    var track = ""
    var link = ""
    /// The invitation with which the next new phone registers.
    var invitation = ""
    /// Tokens that must open a session, each with a text that the profile of the token's user
    /// contains.
    var open: [(token: String, name: String)] = []
    /// Tokens that must be refused.
    var ended: [String] = []
    /// The number of sessions whose token was lost with the reply that contained it.
    var maybeOpen = 0
    /// The current phone of the user's account.
    var phone: Int64

    init(_ user: CommandUser?, at address: String, _ mark: CommandMark, _ steps: [Step]) {
        self.user = user
        self.address = address
        self.mark = mark
        self.steps = steps
        phone = user?.phone ?? 0
    }

    func connect() throws {
        close()
        stranger = try WireClient(address, device: "stranger")
        own = try user.map { try WireClient(address, token: $0.token, device: "first") }
    }

    /// Replaces the stranger's connection. An earlier step may have logged the old connection in,
    /// and the server closes it when that session ends.
    func reconnectStranger() throws {
        stranger?.close()
        stranger = try WireClient(address, device: "stranger")
    }

    func close() {
        own?.close()
        stranger?.close()
    }

    // MARK: - Playing

    /// Plays step after step until the server is gone.
    func play(_ load: CommandLoad) {
        failure = nil
        self.load = load
        defer { self.load = nil }
        do {
            while true { try playStep() }
        } catch WireClient.Failure.closed {
        } catch {
            failure = error
            load.end()
        }
    }

    private func playStep() throws {
        let step = steps[position]
        let mayBeStored = isUncertain
        isUncertain = true
        var resumption = Resumption.next
        do {
            try step.play(self)
        } catch WireClient.Failure.refused(let error) {
            guard mayBeStored, let resume = step.resume else {
                throw failure("\(step.name) is refused after a reply to all before it: \(error)")
            }
            resumption = try resume(self)
        }
        isUncertain = false
        switch resumption {
        case .next: position += 1
        case .back(let count): position -= count
        }
        if position == steps.count { (position, round) = (0, round + 1) }
    }

    /// Sends a command on one of the flow's connections and waits for the reply.
    func call<Request: WireRequest>(
        _ request: Request,
        as client: WireClient?
    ) throws -> Request.Reply {
        guard let client else { throw failure("nobody is logged in") }
        let reply = try client.call(request)
        load?.note(Request.opcode)
        return reply
    }

    // MARK: - After a kill

    /// Plays one step. The step fails if the server has lost data from earlier replies. Then tries
    /// the newest tokens.
    func verify() throws {
        try playStep()
        try tryTokens(3)
    }

    func verifyAll() throws { try tryTokens(.max) }

    private func tryTokens(_ count: Int) throws {
        for (token, name) in open.suffix(count) {
            let found = try profile(of: token).map { String(describing: $0) } ?? "no session"
            guard found.contains(name) else {
                throw failure("a token of \(name) was acknowledged and opens \(found)", true)
            }
        }
        for token in ended.suffix(count) where try profile(of: token) != nil {
            throw failure("the end of a session was acknowledged and is lost", true)
        }
    }

    /// Logs in on a separate connection.
    ///
    /// - Returns: The profile; nil when the server refuses the token.
    func profile(of token: String) throws -> Profile? {
        let client = try WireClient(address, device: "other")
        defer { client.close() }
        do {
            return try client.call(LoginRequest(token: token, interactive: true)).profile
        } catch WireClient.Failure.refused {
            return nil
        }
    }

    func require(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        if !holds { throw failure(what(), true) }
    }

    private func failure(_ what: String, _ isLoss: Bool = false) -> CrashWorld.Failure {
        let name = "flow \(mark.play) in round \(round)"
        return CrashWorld.Failure(isLoss: isLoss, description: "\(name): \(what)")
    }
}
