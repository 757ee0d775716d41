import TambourProtocol

/// A CHAT_HISTORY request, and the evidence that its reply will contain.
package struct HistoryRequest: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// Towards older messages.
        case backward
        /// Towards newer messages.
        case forward
        /// In both directions from a message outside of all chunks.
        case around
    }

    package let kind: Kind
    /// The position from which the request reads: the last position of a millisecond. The request
    /// asks for `backward` messages at or before the pivot, and for `forward` messages after it.
    package let pivot: Position
    /// The number of messages at or before the pivot.
    package let backward: Int
    /// The number of messages after the pivot.
    package let forward: Int
    /// The position just before the next stored chunk in the direction of the request; nil if there
    /// is no such chunk.
    package let bound: Position?
    /// The position up to which no new message could appear at the time of planning.
    package let closed: Position
    /// The value of `ChatHistory.generation` at the time of planning.
    package let generation: Int64

    /// The field `from` of the request, in Unix milliseconds; nil for the newest messages.
    package var fromMs: Int64? { pivot == .max ? nil : pivot.timeMs }
    /// The field `backwardTime` of the request, in Unix milliseconds.
    package var backwardTimeMs: Int64? { kind == .backward ? bound?.timeMs : nil }
    /// The field `forwardTime` of the request, in Unix milliseconds.
    package var forwardTimeMs: Int64? { kind == .forward ? bound?.timeMs : nil }

    init(
        _ kind: Kind,
        from pivot: Position,
        count: Int,
        bound: Position? = nil,
        closed: Position,
        generation: Int64
    ) {
        self.kind = kind
        self.pivot = .last(at: pivot.timeMs)
        switch kind {
        case .backward: (backward, forward) = (count, 0)
        case .forward: (backward, forward) = (0, count)
        case .around: (backward, forward) = (max(1, count - count / 2), max(1, count / 2))
        }
        self.bound = bound
        self.closed = closed
        self.generation = generation
    }

    /// Returns the evidence of the reply.
    ///
    /// - Parameters:
    ///   - found: the messages of the page.
    ///   - more: nil from a server without the capability `history-more`.
    package func evidence(found: [Position], more: Bool?) -> Evidence? {
        switch kind {
        case .backward:
            .backwardPage(
                upTo: pivot,
                downTo: bound ?? .min,
                found: found,
                more: more,
                closed: closed,
                generation: generation
            )
        case .forward:
            .forwardPage(
                after: pivot,
                upTo: bound ?? .max,
                found: found,
                more: more,
                closed: closed,
                generation: generation
            )
        case .around:
            .pageAround(pivot, found: found, more: more, closed: closed, generation: generation)
        }
    }
}
