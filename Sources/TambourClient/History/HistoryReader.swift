import TambourProtocol

/// Decides what to ask CHAT_HISTORY for, for one chat: never for what is held, one request in each
/// direction at a time, and before the reader comes to the end of what is there.
///
/// It lives as long as the chat is on screen and is not stored.
///
/// Source: offline-sync.md 6.4, rules R6, R7, R8 and R10.
package struct HistoryReader: Equatable, Sendable {
    package static let defaultPageSize = 50
    /// `maxHistoryPage` of the limits: a larger page is not sent.
    package static let largestPage = 200

    private let pageSize: Int
    /// At most one in a direction; one around a message stands for both.
    package private(set) var inFlight: [HistoryRequest] = []
    /// Whether backward pages begin with the oldest row that is held, and not before it.
    private var repeatsEdge = false
    /// The pivot of a page around a row that did not reach it.
    private var stranded: Position?

    /// - Parameter pageSize: messages a page, 1 to `largestPage`.
    package init(pageSize: Int = HistoryReader.defaultPageSize) {
        self.pageSize = min(max(pageSize, 1), Self.largestPage)
    }

    /// Whether pages are on their way.
    package var isReading: Bool { !inFlight.isEmpty }

    // MARK: - Asking

    /// What to ask for so that the reader does not come to an end within one and a half screens.
    ///
    /// - Returns: nil when enough is held, when nothing is left, or when it is asked for already.
    package mutating func request(
        for viewport: HistoryViewport,
        in history: ChatHistory,
        end: ChatEnd
    ) -> HistoryRequest? {
        guard isIdle(viewport.direction.kind) else { return nil }
        let missing = viewport.rowsWanted - viewport.rowsAhead
        guard missing > 0 else { return nil }
        let plan = Plan(history: history, end: end, count: max(pageSize, missing))
        guard let position = viewport.position ?? plan.heldNewest else {
            return viewport.direction == .backward ? start(plan.newestPage) : nil
        }
        guard let chunk = history.chunk(containing: position) else {
            return start(pageToReach(position, plan))
        }
        switch viewport.direction {
        case .backward:
            return start(plan.page(before: chunk, repeatsEdge))
        case .forward:
            return start(plan.page(behind: chunk, lastRow: viewport.lastRowAhead ?? position))
        }
    }

    /// What to ask for so that the newest gap between visible rows closes.
    ///
    /// - Parameter rows: stored rows on screen, smallest first.
    package mutating func request(
        toFillGapsBetween rows: [Position],
        in history: ChatHistory,
        end: ChatEnd
    ) -> HistoryRequest? {
        guard isIdle(.backward) else { return nil }
        let plan = Plan(history: history, end: end, count: pageSize)
        for (older, newer) in zip(rows, rows.dropFirst()).reversed()
        where !history.isWithoutGap(from: older, to: newer) {
            guard let chunk = history.chunk(containing: newer) else {
                return start(pageToReach(newer, plan))
            }
            return start(plan.page(before: chunk, repeatsEdge))
        }
        return nil
    }

    // MARK: - Being answered

    /// Takes in the reply to a request.
    ///
    /// - Returns: what it proves, to be applied to the history as it is now.
    package mutating func answered(
        _ request: HistoryRequest,
        found: [Position],
        more: Bool?
    ) -> Evidence? {
        if request.kind == .backward, inFlight.contains(request),
            let last = found.max(), last > request.pivot
        {
            // The server's clock is behind the times of the chat, so it takes the pivot for the future,
            // unless a message has just that time. One of the two ways to ask names such a message.
            repeatsEdge.toggle()
        }
        ended(request)
        let evidence = request.evidence(found: found, more: more)
        if request.kind == .around, evidence?.interval.contains(request.pivot) != true {
            stranded = request.pivot
        }
        return evidence
    }

    /// The request was refused or has got lost.
    package mutating func ended(_ request: HistoryRequest) {
        inFlight.removeAll { $0 == request }
    }

    /// No reply will come any more.
    package mutating func disconnected() { inFlight = [] }

    /// A page that brings a row into a chunk, or comes nearer to that.
    private func pageToReach(_ row: Position, _ plan: Plan) -> HistoryRequest? {
        if isReading { return nil }
        guard stranded == .last(at: row.timeMs) else { return plan.page(around: row) }
        return plan.history.chunk(above: row).flatMap { plan.page(before: $0, repeatsEdge) }
            ?? plan.newestPage
    }

    private func isIdle(_ kind: HistoryRequest.Kind) -> Bool {
        !inFlight.contains { $0.kind == kind || $0.kind == .around }
    }

    private mutating func start(_ request: HistoryRequest?) -> HistoryRequest? {
        if let request { inFlight.append(request) }
        return request
    }
}

/// Where the reader looks, and how much is held from there on.
package struct HistoryViewport: Equatable, Sendable {
    package enum Direction: Hashable, Sendable {
        /// Towards older messages.
        case backward
        /// Towards newer messages.
        case forward

        var kind: HistoryRequest.Kind { self == .backward ? .backward : .forward }
    }

    /// The row at that edge of the screen to which the reader moves; nil when the chat opens at its
    /// newest message.
    package var position: Position?
    package var direction: Direction
    package var rowsOnScreen: Int
    /// Stored rows from `position`, which does not count, to the end of its chunk in the direction.
    package var rowsAhead: Int
    /// The last of these rows; nil when there is none.
    package var lastRowAhead: Position?

    package init(
        position: Position?,
        direction: Direction,
        rowsOnScreen: Int,
        rowsAhead: Int,
        lastRowAhead: Position? = nil
    ) {
        self.position = position
        self.direction = direction
        self.rowsOnScreen = rowsOnScreen
        self.rowsAhead = rowsAhead
        self.lastRowAhead = lastRowAhead
    }

    /// One and a half screens, so that the next page is there before the reader is.
    var rowsWanted: Int { (rowsOnScreen * 3 + 1) / 2 }
}

/// What this session's login and the pushes since then say of the newest end of a chat.
package struct ChatEnd: Equatable, Sendable {
    /// The newest message of the chat; nil when there is none.
    package var newest: Position?
    /// `time` of the session's LOGIN: up to it nothing can appear any more. Unix milliseconds.
    package var safeTimeMs: Int64

    package init(newest: Position?, safeTimeMs: Int64) {
        self.newest = newest
        self.safeTimeMs = safeTimeMs
    }

    /// Whoever holds it, and what is before it, has the chat to its end.
    var position: Position { newest ?? .last(at: safeTimeMs) }
}

/// The requests that would do, whatever is on its way.
private struct Plan {
    let history: ChatHistory
    let end: ChatEnd
    let count: Int

    /// Where the chat opens; nil when that is not held.
    var heldNewest: Position? { history.covers(end.position) ? end.position : nil }

    var newestPage: HistoryRequest {
        request(.backward, from: .max, bound: history.chunk(below: end.position)?.upper.next)
    }

    func page(around message: Position) -> HistoryRequest { request(.around, from: message) }

    func page(before chunk: PositionInterval, _ repeatsEdge: Bool) -> HistoryRequest? {
        // There is no message from before 1970.
        guard let before = chunk.lower.previous, before.timeMs > 0 else { return nil }
        return request(
            .backward,
            from: repeatsEdge ? chunk.lower : before,
            extra: repeatsEdge ? 1 : 0,
            bound: history.chunk(below: chunk.lower)?.upper.next
        )
    }

    func page(behind chunk: PositionInterval, lastRow: Position) -> HistoryRequest? {
        let above = history.chunk(above: chunk.upper)
        // What is new at the end comes by pushes.
        guard above != nil || end.newest.map({ $0 > chunk.upper }) ?? false else { return nil }
        return request(.forward, from: lastRow, bound: above?.lower.previous)
    }

    /// Up to it no message can appear any more: what was seen to be there, and what login has promised.
    private var closed: Position {
        max(history.chunks.last?.upper ?? .min, end.position, .last(at: end.safeTimeMs))
    }

    private func request(
        _ kind: HistoryRequest.Kind,
        from pivot: Position,
        extra: Int = 0,
        bound: Position? = nil
    ) -> HistoryRequest {
        HistoryRequest(
            kind,
            from: pivot,
            count: min(count + extra, HistoryReader.largestPage),
            bound: bound,
            closed: closed,
            generation: history.generation
        )
    }
}
