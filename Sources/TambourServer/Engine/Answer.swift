package import TambourProtocol

/// What came of a request, on its way back to the session that asked.
package struct Answer: Sendable {
    package enum Outcome: Sendable {
        /// A reply that its lane encodes: the engine, which everybody waits for, does not.
        case reply(any WirePayload)
        /// A reply as it travels. Pages are encoded where they were read: no lane waits for that.
        case encoded([UInt8])
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

    package var outcome: Outcome
    /// A dialog that is alive: the other side's presence is worth a push from now on.
    package var interest: ChatID?
    package var following: Following?

    package static let done = Answer(.done)

    package init(_ outcome: Outcome, interest: ChatID? = nil) {
        self.outcome = outcome
        self.interest = interest
    }

    static func reply(_ payload: some WirePayload) -> Answer {
        Answer(.reply(payload))
    }

    static func page(_ payload: some WirePayload, for requester: Requester) -> Answer {
        Answer(.encoded(payload.encoded(for: requester.capabilities)))
    }

    static func refusal(_ error: RequestError) -> Answer {
        Answer(.refusal(error))
    }
}
