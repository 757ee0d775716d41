import TambourProtocol
import TambourTesting

/// Steps that build on each other, round after round: signing in, passwords, sessions.
///
/// What a step was answered is what the next one needs: a code request, a track, a token. So the server
/// must know it after a kill. A step that was in flight then is played again; when it is refused, it must
/// have been stored.
///
/// `@unchecked Sendable`: used by one thread at a time.
final class CommandFlow: @unchecked Sendable {
    /// Where the flow goes on after a step that was in flight at a kill and is refused when played again.
    enum Resumption {
        case next
        /// So many steps back: what the lost reply held is needed.
        case back(Int)
    }

    struct Step: Sendable {
        let name: String
        let play: @Sendable (CommandFlow) throws -> Void
        /// Checks that the step was stored; nil where it cannot be refused.
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
    /// Whose account it is about; nil where each round makes one.
    let user: CommandUser?
    /// Logged in as the user.
    private(set) var own: WireClient?
    /// Logged in as nobody.
    private(set) var stranger: WireClient?
    let address: String

    /// Counts the rounds, from 1.
    private(set) var round = 1
    private var position = 0
    /// Whether the step at `position` was sent and not answered.
    private var isUncertain = false
    private let steps: [Step]
    private var load: CommandLoad?
    private(set) var failure: (any Error)?

    // What steps were answered.
    var token = ""
    var track = ""
    var link = ""
    /// Tokens that must open a session, and whose.
    var open: [(token: String, name: String)] = []
    /// Tokens that must not.
    var ended: [String] = []
    /// Sessions of the user that nobody has a token of: the reply to whoever opened them was lost.
    var maybeOpen = 0
    /// Where the user's phone is now.
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

    /// Gives up the connection of nobody: it is logged in with the token it was given last, and ends with it.
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

    /// Sends a command and waits for its reply, as the user or as nobody.
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

    /// Plays one step, which needs what those before it were answered, and tries the newest tokens.
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

    /// Logs in on a connection of its own.
    ///
    /// - Returns: nil when the token is refused.
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
