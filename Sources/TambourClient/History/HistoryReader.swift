import TambourProtocol

/// Decides which messages of one chat to request with CHAT_HISTORY. It never requests stored
/// messages, has one request in flight per direction, and prefetches in the direction of reading.
///
/// It exists while the chat is on screen, and is not stored.
///
/// It follows the rules R6, R7, R8 and R10 of docs/client-sync.md, section 6.4.
package struct HistoryReader: Equatable, Sendable {
    package static let defaultPageSize = 50
    /// `maxHistoryPage` of the limits: the maximum page size of the server.
    package static let largestPage = 200

    private let pageSize: Int
    /// At most one request per direction; a request around a message counts for both.
    package private(set) var inFlight: [HistoryRequest] = []
    /// Whether backward pages begin at the oldest stored row, rather than before it.
    private var repeatsEdge = false
    /// The pivot of the last page around a row, if that page did not reach the row.
    private var stranded: Position?

    /// - Parameter pageSize: messages per page, 1 to `largestPage`.
    package init(pageSize: Int = HistoryReader.defaultPageSize) {
        self.pageSize = min(max(pageSize, 1), Self.largestPage)
    }

    /// Whether pages are in flight.
    package var isReading: Bool { !inFlight.isEmpty }

    // MARK: - Requests

    /// Returns the request that keeps one and a half screens of rows ahead of the reader.
    ///
    /// - Returns: nil when enough rows are stored, no message is left, or the request is already in
    ///   flight.
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

    /// Returns the request that closes the newest gap between visible rows.
    ///
    /// - Parameter rows: the stored rows on screen, smallest first.
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

    // MARK: - Replies

    /// Handles the reply to a request.
    ///
    /// - Returns: the evidence of the reply, to be applied to the current history.
    package mutating func answered(
        _ request: HistoryRequest,
        found: [Position],
        more: Bool?
    ) -> Evidence? {
        if request.kind == .backward, inFlight.contains(request),
            let last = found.max(), last > request.pivot
        {
            // The server sent a message after the pivot. Its clock is behind the times of the
            // chat's messages: it took the pivot for a future time and returned the newest
            // messages. The server accepts a future pivot if a message has exactly that time. The
            // next request therefore uses the other form of pivot: the oldest stored message, or
            // the position just before it.
            repeatsEdge.toggle()
        }
        ended(request)
        let evidence = request.evidence(found: found, more: more)
        if request.kind == .around, evidence?.interval.contains(request.pivot) != true {
            stranded = request.pivot
        }
        return evidence
    }

    /// Handles a refused or lost request.
    package mutating func ended(_ request: HistoryRequest) {
        inFlight.removeAll { $0 == request }
    }

    /// Handles the loss of the connection: no reply will come.
    package mutating func disconnected() { inFlight = [] }

    /// Returns the request for a page that brings a row into a chunk, or that comes closer to the
    /// row.
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

/// The reader's place in the chat, and the number of stored rows beyond it.
package struct HistoryViewport: Equatable, Sendable {
    package enum Direction: Hashable, Sendable {
        /// Towards older messages.
        case backward
        /// Towards newer messages.
        case forward

        var kind: HistoryRequest.Kind { self == .backward ? .backward : .forward }
    }

    /// The row at the edge of the screen towards which the reader scrolls; nil when the chat opens
    /// at its newest message.
    package var position: Position?
    package var direction: Direction
    package var rowsOnScreen: Int
    /// The number of stored rows after `position` in the direction of reading, up to the end of its
    /// chunk.
    package var rowsAhead: Int
    /// The position of the last row ahead; nil if `rowsAhead` is 0.
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

    /// One and a half screens, so that the next page arrives before the reader needs it.
    var rowsWanted: Int { (rowsOnScreen * 3 + 1) / 2 }
}

/// The newest end of a chat, according to this session's login and the pushes since.
package struct ChatEnd: Equatable, Sendable {
    /// The newest message of the chat, if any.
    package var newest: Position?
    /// `time` of the session's LOGIN, in Unix milliseconds. New messages can only appear after this
    /// time.
    package var safeTimeMs: Int64

    package init(newest: Position?, safeTimeMs: Int64) {
        self.newest = newest
        self.safeTimeMs = safeTimeMs
    }

    /// The end of the chat. A history that is complete up to this position lacks no newer message.
    var position: Position { newest ?? .last(at: safeTimeMs) }
}

/// The possible requests, without regard to requests in flight.
private struct Plan {
    let history: ChatHistory
    let end: ChatEnd
    let count: Int

    /// The position at which the chat opens; nil when the newest end is not stored.
    var heldNewest: Position? { history.covers(end.position) ? end.position : nil }

    var newestPage: HistoryRequest {
        request(.backward, from: .max, bound: history.chunk(below: end.position)?.upper.next)
    }

    func page(around message: Position) -> HistoryRequest { request(.around, from: message) }

    func page(before chunk: PositionInterval, _ repeatsEdge: Bool) -> HistoryRequest? {
        // No message is older than 1970.
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
        // At the end of the chat, request nothing: new messages arrive as pushes.
        guard above != nil || end.newest.map({ $0 > chunk.upper }) ?? false else { return nil }
        return request(.forward, from: lastRow, bound: above?.lower.previous)
    }

    /// The position up to which no new message can appear: the newest known message, or the time
    /// that the login declared safe.
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
