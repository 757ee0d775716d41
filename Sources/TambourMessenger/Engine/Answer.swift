package import TambourEvents
package import TambourProtocol
package import TambourStore

/// The result of a request, on its way back to the session.
package struct Answer: Sendable {
    package enum Outcome: Sendable {
        /// A reply that the door encodes. The engine does not encode replies, because all commands
        /// wait for the engine.
        case reply(any WirePayload)
        /// An encoded reply. The store reader that reads a page also encodes it. The door therefore
        /// spends no time on it.
        case encoded([UInt8])
        case refusal(RequestError)
        /// The server's own commands have no reply.
        case done
    }

    /// The presence subscription that a LOGIN began. After the LOGIN, the session owns the
    /// subscription.
    package struct Following: Sendable {
        package let watcher: UserID
        package let partners: [UserID]
        package let settingsVersion: Int64
        /// Whether the watcher hides their own presence from everybody.
        package let isHidden: Bool
    }

    /// A session that the request has opened. The connection of the request is then logged in to
    /// this session.
    package struct Opened: Sendable {
        package let session: OpenSession
        package let token: String
        package let settingsVersion: Int64
        /// Whether the user hides their presence from everybody.
        package let isHidden: Bool
    }

    package var outcome: Outcome
    package var interest: Interest?
    package var following: Following?
    package var opened: Opened?
    /// The next step of the command, which runs in its own transaction. While it is set, `outcome`
    /// is not sent.
    package var rest: (@Sendable (WriteTransaction) throws -> Answer)?
    /// The next step of a query. While it is set, `outcome` is not sent.
    package var restOfQuery: (@Sendable (ReadTransaction) throws -> Answer)?
    /// The events of a query. A command records its events in its transaction instead.
    package var events: [Event] = []
    /// The number of rows that a query read; 0 for a command. The declared price of a command
    /// covers all its work.
    package var rowsRead = 0

    package static let done = Answer(.done)

    package init(_ outcome: Outcome, interest: Interest? = nil) {
        self.outcome = outcome
        self.interest = interest
    }

    package static func reply(_ payload: some WirePayload) -> Answer {
        Answer(.reply(payload))
    }

    /// - Parameter check: called before each further step. It throws an error to refuse the step.
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
    ///   - check: called before each further step. It throws an error to refuse the step.
    ///   - finish: turns the result of all steps into the answer.
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

    /// Whether the reply is a page. Pages may be long, so they wait for their turn at the door.
    package var isPage: Bool {
        if case .encoded = outcome { true } else { false }
    }

    package static func refusal(_ error: RequestError) -> Answer {
        Answer(.refusal(error))
    }
}

/// A subscription that starts or ends for the connection that receives the answer.
package enum Interest: Sendable {
    /// A dialog that the user watches. The door pushes changes of the partner's presence.
    case dialog(ChatID)
    /// The comments on a post: `opened` starts the subscription, `closed` ends it.
    case opened(MessageAddress)
    case closed(MessageAddress)
}
