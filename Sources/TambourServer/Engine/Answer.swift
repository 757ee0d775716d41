package import TambourProtocol
package import TambourStore

/// What came of a request, on its way back to the session that asked.
package struct Answer: Sendable {
    package enum Outcome: Sendable {
        /// A reply that its lane encodes: the engine, which everybody waits for, does not.
        case reply(any WirePayload)
        /// A reply as it travels. Pages are encoded where they were read: no lane waits for that.
        case encoded([UInt8])
        /// The same in its packet, compressed if that pays; `payloadBytes` is what it was before.
        case packet([UInt8], payloadBytes: Int)
        case refusal(RequestError)
        /// What the server asks of itself has no reply.
        case done
    }

    /// What a LOGIN has begun to follow, for the session to take over.
    package struct Following: Sendable {
        package let watcher: UserID
        package let partners: [UserID]
        package let settingsVersion: Int64
        /// Whether the presence of the watcher is shown to nobody.
        package let isHidden: Bool
    }

    /// A session that the request has opened: its connection is logged in with it.
    package struct Opened: Sendable {
        package let session: SessionRecord
        package let token: String
        package let settingsVersion: Int64
        /// Whether the presence of the user is shown to nobody.
        package let isHidden: Bool
    }

    package var outcome: Outcome
    package var interest: Interest?
    package var following: Following?
    package var opened: Opened?
    /// The next step of the command, which runs in a transaction of its own; while there is one, `outcome`
    /// is not sent.
    package var rest: (@Sendable (WriteTransaction) throws -> Answer)?
    /// The same for a query.
    package var restOfQuery: (@Sendable (ReadTransaction) throws -> Answer)?
    /// The number of rows that a query read; 0 for a command, whose declared price covers everything.
    package var rowsRead = 0

    package static let done = Answer(.done)

    package init(_ outcome: Outcome, interest: Interest? = nil) {
        self.outcome = outcome
        self.interest = interest
    }

    static func reply(_ payload: some WirePayload) -> Answer {
        Answer(.reply(payload))
    }

    /// - Parameter check: called before each further step; throws to refuse it.
    static func stepped(
        _ progress: Progress<WriteTransaction, some WirePayload>,
        check: @escaping @Sendable (WriteTransaction) throws -> Void = { _ in }
    ) -> Answer {
        switch progress {
        case .finished(let reply): return .reply(reply)
        case .more(let rest):
            var answer = Answer.done
            answer.rest = { tx in
                try check(tx)
                return .stepped(try rest(tx), check: check)
            }
            return answer
        }
    }

    static func page(_ payload: some WirePayload, for requester: Requester) -> Answer {
        Answer(.encoded(payload.encoded(for: requester.capabilities)))
    }

    /// - Parameters:
    ///   - check: called before each further step; throws to refuse it.
    ///   - finish: makes the answer of what all steps have read.
    static func read<Value>(
        _ progress: Progress<ReadTransaction, Value>,
        check: @escaping @Sendable (ReadTransaction) throws -> Void = { _ in },
        finish: @escaping @Sendable (Value) -> Answer
    ) -> Answer {
        switch progress {
        case .finished(let value): return finish(value)
        case .more(let rest):
            var answer = Answer.done
            answer.restOfQuery = { snapshot in
                try check(snapshot)
                return .read(try rest(snapshot), check: check, finish: finish)
            }
            return answer
        }
    }

    /// Whether the reply is a page, which may be long and waits for its turn on the lane.
    var isPage: Bool {
        switch outcome {
        case .encoded, .packet: true
        case .reply, .refusal, .done: false
        }
    }

    /// Puts a page into its packet, where it was read; one that is too long stays as it is.
    ///
    /// - Parameter capabilities: those that the page was encoded for.
    func framed(
        for request: Session.Request,
        _ capabilities: Capabilities,
        limits: Limits
    ) -> Answer {
        guard case .encoded(let payload) = outcome, payload.count <= limits.mostPayloadBytes else {
            return self
        }
        var packet: [UInt8] = []
        encodePacket(
            command: .ok,
            sequence: request.sequence,
            opcode: request.opcode.rawValue,
            payload: payload,
            compression: Compression(for: capabilities),
            compressFrom: limits.compressFromBytes,
            into: &packet
        )
        var framed = self
        framed.outcome = .packet(packet, payloadBytes: payload.count)
        return framed
    }

    static func refusal(_ error: RequestError) -> Answer {
        Answer(.refusal(error))
    }
}

/// What a connection subscribes to, or unsubscribes from, with an answer.
package enum Interest: Sendable {
    /// A dialog that is alive: the other side's presence is worth a push.
    case dialog(ChatID)
    /// The comments on a post.
    case opened(MessageAddress)
    case closed(MessageAddress)
}
