import TambourFraming
import TambourProtocol

/// Requests to the server, and packets from the server.
extension ClientCore {
    /// Sends a request when the current transaction commits. `then` runs in the transaction that
    /// handles the reply, or in the transaction that gives up the request. If the store has failed,
    /// `abandoned` runs instead.
    func call<Request: WireRequest>(
        _ request: Request,
        as question: RequestTable.Question? = nil,
        abandoned: ((ClientError) -> Void)? = nil,
        then: @escaping (Result<Request.Reply, ClientError>, StoreTransaction) throws -> Void
    ) {
        call(Request.opcode, request.encoded(), as: question, abandoned: abandoned) { answer, tx in
            switch answer {
            case .failure(let error): try then(.failure(error), tx)
            case .success(let payload):
                let reply: Request.Reply
                do throws(PayloadError) {
                    reply = try Request.Reply.decode(payload, limits: .standard)
                } catch {
                    return try then(.failure(.unreadable(reason: "\(error)")), tx)
                }
                try then(.success(reply), tx)
            }
        }
    }

    /// Sends a request of any opcode, and passes on the payload of the reply.
    func call(
        _ opcode: Opcode,
        _ payload: [UInt8],
        as question: RequestTable.Question? = nil,
        abandoned: ((ClientError) -> Void)? = nil,
        then: @escaping (Result<[UInt8], ClientError>, StoreTransaction) throws -> Void
    ) {
        let now = environment.nowMs()
        let entry = RequestTable.Entry(
            opcode: opcode,
            question: question,
            dueMs: now + options.requestTimeoutMs,
            answer: then,
            abandoned: abandoned
        )
        let (sequence, bytes) = wire.send(entry, payload, nowMs: now)
        guard options.tapsFrames else { return }
        publish(
            .frame(
                FrameTap(
                    direction: .sent,
                    kind: "request",
                    opcode: "\(opcode)",
                    sequence: sequence,
                    bytes: bytes,
                    roundTrip: nil
                )
            )
        )
    }

    private func tap(_ direction: FrameTap.Direction, _ kind: String, _ header: PacketHeader) {
        guard options.tapsFrames else { return }
        let now = environment.nowMs()
        let waitMs = kind == "push" ? nil : wire.waitMs(of: header.sequence, nowMs: now)
        publish(
            .frame(
                FrameTap(
                    direction: direction,
                    kind: kind,
                    opcode: "\(Opcode(rawValue: header.opcode))",
                    sequence: header.sequence,
                    bytes: PacketHeader.size + header.length,
                    roundTrip: waitMs.map { .milliseconds($0) }
                )
            )
        )
    }

    /// Handles a packet: a push, or the reply to a request.
    func handle(_ packet: Packet, _ tx: StoreTransaction) throws {
        let header = packet.header
        let opcode = Opcode(rawValue: header.opcode)
        if header.command == PacketCommand.request.rawValue {
            tap(.received, "push", header)
            if life.isForeign { return }
            return try push(opcode, packet.payload, tx)
        }
        tap(.received, header.command == PacketCommand.ok.rawValue ? "reply" : "error", header)
        guard let entry = wire.take(header.sequence, opcode) else { return }
        if header.command == PacketCommand.ok.rawValue {
            return try entry.answer(.success(packet.payload), tx)
        }
        let refusal = (try? ErrorReply.decode(packet.payload, limits: .standard)).map {
            ClientError($0)
        }
        try entry.answer(.failure(refusal ?? .unreadable(reason: "an error without a code")), tx)
    }
}
