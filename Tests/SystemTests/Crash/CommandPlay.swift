import TambourFraming
import TambourProtocol
import TambourTesting

/// An encoded request with its opcode.
struct ChangeRequest {
    let opcode: Opcode
    let payload: [UInt8]

    init(_ request: some WireRequest) {
        opcode = type(of: request).opcode
        payload = request.encoded()
    }
}

/// A chain of numbered changes to something that no other play changes. One change is in flight at
/// a time.
///
/// After a kill, the store therefore contains the state after the last acknowledged change or after
/// the next one, which was in flight. Any other state means a lost or doubled change.
final class CommandPlay {
    let name: String
    let mark: CommandMark
    private(set) var sent = 0
    private(set) var acknowledged = 0
    /// The last change that a push reported. The server sends pushes only after the commit.
    private var heard = 0
    private var lastRequest: ChangeRequest?

    private let change: (Int) throws -> ChangeRequest
    private let learn: (Int, [UInt8]) throws -> Void
    private let read: (CommandPlayer) throws -> [Int]
    private let after: (Int) -> [Int]

    /// - Parameters:
    ///   - change: Makes the request of a change.
    ///   - learn: Reads ids from the reply to a change.
    ///   - read: Returns the query results as numbers.
    ///   - after: Takes the number of the last change, or 0 for the initial state. Returns the
    ///     numbers that `read` must then return.
    init(
        _ name: String,
        _ mark: CommandMark,
        change: @escaping (Int) throws -> ChangeRequest,
        learn: @escaping (Int, [UInt8]) throws -> Void = { _, _ in },
        read: @escaping (CommandPlayer) throws -> [Int],
        after: @escaping (Int) -> [Int]
    ) {
        self.name = name
        self.mark = mark
        self.change = change
        self.learn = learn
        self.read = read
        self.after = after
    }

    // MARK: - Under load

    /// Sends the next change.
    func send(on client: WireClient) throws -> UInt16 {
        let request = try change(sent + 1)
        lastRequest = request
        sent += 1
        return try client.send(request.opcode, payload: request.payload)
    }

    /// Handles the reply to the change in flight.
    ///
    /// - Returns: The acknowledged opcode.
    func take(_ packet: Packet) throws -> Opcode {
        try requireOK(packet)
        try learn(sent, packet.payload)
        acknowledged = sent
        return Opcode(rawValue: packet.header.opcode)
    }

    /// Records that a change was pushed.
    func hear(_ number: Int) {
        heard = max(heard, number)
    }

    // MARK: - After a kill

    /// The effect of a kill on the change in flight.
    enum Outcome {
        case nothingInFlight, stored, notStored
    }

    /// Reads the stored state, repeats the last change, and reads the state again.
    ///
    /// - Throws: `CrashWorld.Failure`
    func verify(of player: CommandPlayer) throws -> Outcome {
        guard let request = lastRequest else { return .nothingInFlight }
        guard heard <= sent else {
            throw failure("change \(heard) was pushed and only \(sent) were sent")
        }
        let told = max(acknowledged, heard)
        let found = try read(player)
        let isStored = found == after(sent)
        if !isStored, found != after(told) { throw mismatch(found, told: told) }
        let packet = try player.own.reply(
            to: player.own.send(request.opcode, payload: request.payload)
        )
        if packet.header.command == PacketCommand.ok.rawValue {
            try learn(sent, packet.payload)
        } else if !isStored || request.opcode.info?.idempotency == .keyed {
            // A change that is not stored must succeed now. A command with an idempotency key must
            // succeed every time.
            try requireOK(packet)
        }
        let again = try read(player)
        guard again == after(sent) else {
            throw failure("change \(sent) was sent again and left \(again), not \(after(sent))")
        }
        defer { acknowledged = sent }
        return sent == acknowledged ? .nothingInFlight : isStored ? .stored : .notStored
    }

    private func mismatch(_ found: [Int], told: Int) -> CrashWorld.Failure {
        // If the state after an earlier change is stored, changes are lost; otherwise something
        // else is wrong.
        let earlier = stride(from: told - 1, through: max(0, told - 100), by: -1)
            .first { after($0) == found }
        let words = "\(found), not \(after(told)) or \(after(sent))"
        guard let earlier else { return failure("it shows \(words)") }
        let how = told > acknowledged ? "pushed" : "acknowledged"
        return failure(
            "change \(told) was \(how) and is lost: \(earlier) was the last, \(words)",
            true
        )
    }

    private func requireOK(_ packet: Packet) throws {
        guard packet.header.command != PacketCommand.ok.rawValue else { return }
        let error = try ErrorReply.decode(packet.payload, limits: .standard)
        throw failure("change \(sent) is refused: \(error.error) \(error.message)")
    }

    private func failure(_ what: String, _ isLoss: Bool = false) -> CrashWorld.Failure {
        CrashWorld.Failure(isLoss: isLoss, description: "\(name) (play \(mark.play)): \(what)")
    }
}
