import TambourTesting

@testable import TambourClient

/// A client, the server's chat, and a connection between them that delays, duplicates and reorders
/// replies.
///
/// Pushes arrive in commit order. Replies to the client's own sends carry the same facts, and also
/// arrive in commit order. A request is answered from a snapshot taken at some time after the
/// request. The reply arrives even later, possibly before the pushes of the same messages.
struct HistoryWorld {
    enum Step: CaseIterable {
        case append, remove, edit, clear, removeRange, wait, drift
        case receivePush, repeatPush, readSnapshot, receiveReply, repeatReply
        case scrollBackward, scrollForward, open, fillGaps, find
        case disconnect, connect, askChanges
        case evict, settle, rejoin, backUp, restore
    }

    /// A step, and the number that determines its choices.
    struct Move: CustomStringConvertible {
        let step: Step
        let choice: Int

        var description: String { ".\(step) \(choice)" }
    }

    private enum Push {
        case message(Position, after: Position?)
        case edited(Position, version: Int)
        case removed(Position)
        case cleared(Position)
        case emptied(fromMs: Int64, throughMs: Int64)
    }

    private enum Reply {
        case page(HistoryRequest, found: [ServerChat.Found], more: Bool)
        case found(Position, version: Int, asked: Int64)
        case changes(ChangesReply)
    }

    private struct ChangesReply {
        let changes: MessageChanges
        let versions: [Position: Int]
        let cursor: ChangeCursor
        let generation: Int64
    }

    private(set) var server = ServerChat()
    private(set) var stored = StoredHistory()
    private(set) var history = ChatHistory()
    private(set) var requests = 0
    private var reader: HistoryReader
    private var cursor: ChangeCursor?
    private var end: ChatEnd?
    private var loginMark: Int64 = 0
    private var isAskingChanges = false

    private var isOnline = false
    private var pushes: [Push] = []
    private var delivered: [Push] = []
    private var asked: [HistoryRequest] = []
    private var replies: [Reply] = []
    private var answered: [Reply] = []

    /// Messages whose deletion the server has reported to the client.
    private var told: Set<Position> = []
    private var backup: ServerChat?
    private var isRestored = false

    init(pageSize: Int) { reader = HistoryReader(pageSize: pageSize) }

    // MARK: - Playing

    mutating func play(_ move: Move) throws {
        let before = history
        let isForgetting =
            [.evict, .rejoin].contains(move.step) || move.step == .connect && isRestored
        try perform(move.step, move.choice)
        try check()
        if !isForgetting { try checkMonotony(from: before) }
    }

    private mutating func perform(_ step: Step, _ choice: Int) throws {
        switch step {
        case .append:
            let previous = server.head
            push(.message(server.append(), after: previous))
        case .remove:
            withMessage(choice) {
                $0.remove(at: $1)
            } push: {
                .removed($0.id)
            }
        case .edit:
            withMessage(choice) {
                $0.edit(at: $1)
            } push: {
                .edited($0.id, version: $0.version)
            }
        case .clear: clear(choice)
        case .removeRange: removeRange(choice)
        case .wait: server.wait(Int64(choice % 4))
        case .drift: server.drift = choice % 4 == 0 ? 1_000 : 0
        case .receivePush:
            guard !pushes.isEmpty else { return }
            let push = pushes.removeFirst()
            delivered.append(push)
            try receive(push)
        case .repeatPush: if let push = delivered.element(choice) { try receive(push) }
        case .readSnapshot: readSnapshot(choice)
        case .receiveReply:
            guard !replies.isEmpty else { return }
            let reply = replies.remove(at: choice % replies.count)
            answered.append(reply)
            try receive(reply)
        case .repeatReply: if let reply = answered.element(choice) { try receive(reply) }
        case .scrollBackward, .scrollForward: try scroll(step, choice)
        case .open: try ask(viewport(nil, .backward))
        case .fillGaps: try fillGaps(choice)
        case .find:
            guard isOnline, let found = server.visible.element(choice) else { return }
            let reply = Reply.found(found.id, version: found.version, asked: history.generation)
            replies.append(reply)
        case .disconnect: disconnect()
        case .connect: if !isOnline { try connect() }
        case .askChanges: askChanges(count: choice % 3 + 1)
        case .evict: try evict(choice)
        case .settle: try settle()
        case .rejoin: try rejoin(choice)
        case .backUp: backup = server
        case .restore: restore()
        }
    }

    static func moves(_ random: inout SeededGenerator) -> [Move] {
        // List common steps many times, so that histories get long enough for the rare steps to
        // matter.
        let common: [Step] = [
            .append, .append, .append, .receivePush, .receivePush, .readSnapshot, .readSnapshot,
            .receiveReply, .receiveReply, .scrollBackward, .connect, .connect, .wait,
        ]
        let steps = Step.allCases + common
        return (0..<random.below(100)).map { _ in
            Move(step: steps[random.below(steps.count)], choice: random.below(4_096))
        }
    }

    // MARK: - The server

    private mutating func withMessage(
        _ choice: Int,
        _ change: (inout ServerChat, Int) -> Void,
        push: (ServerChat.Message) -> Push
    ) {
        let there = server.messages.indices.filter { server.isVisible(server.messages[$0]) }
        guard let index = there.element(choice) else { return }
        change(&server, index)
        self.push(push(server.messages[index]))
    }

    private mutating func clear(_ choice: Int) {
        guard let floor = server.messages.element(choice)?.id, floor > server.floor else { return }
        server.setFloor(choice % 2 == 0 ? floor : .last(at: floor.timeMs))
        push(.cleared(server.floor))
    }

    private mutating func removeRange(_ choice: Int) {
        let ids = server.messages.map(\.id)
        guard let first = ids.element(choice), let last = ids.element(choice / 64), first <= last
        else { return }
        for index in server.messages.indices
        where first <= ids[index] && ids[index] <= last && !server.messages[index].isGone {
            server.remove(at: index)
        }
        push(.emptied(fromMs: first.timeMs, throughMs: last.timeMs))
    }

    private mutating func push(_ push: Push) {
        if isOnline { pushes.append(push) }
    }

    private mutating func readSnapshot(_ choice: Int) {
        guard let index = asked.indices.element(choice) else { return }
        let request = asked.remove(at: index)
        let room = choice % 5 == 0 ? choice % 3 + 1 : .max
        let page = server.page(request, room: room)
        replies.append(.page(request, found: page.found, more: page.more))
    }

    private mutating func restore() {
        guard let backup else { return }
        let clock = server.clock
        server = backup
        // The clock of a restarted server is ahead of every time it has issued.
        server.wait(clock - server.clock + 100)
        isRestored = true
        disconnect()
    }

    // MARK: - Receiving

    private mutating func receive(_ push: Push) throws {
        switch push {
        case .message(let id, let previous):
            noteNewest(id)
            try apply(.message(id, after: previous), versions: [id: 0])
        case .edited(let id, let version):
            let effects = history.edit([id], isReading: reader.isReading)
            try stored.carryOut(effects, versions: [id: version])
        case .removed(let id):
            told.insert(id)
            try stored.carryOut(history.delete([id]))
        case .cleared(let floor):
            tellGone { $0 <= floor }
            try apply(.cleared(through: floor))
        case .emptied(let fromMs, let throughMs):
            tellGone { fromMs <= $0.timeMs && $0.timeMs <= throughMs }
            try apply(.emptied(fromMs: fromMs, throughMs: throughMs))
        }
    }

    private mutating func receive(_ reply: Reply) throws {
        switch reply {
        case .page(let request, let found, let more):
            let evidence = reader.answered(request, found: found.map(\.id), more: more)
            try apply(evidence, versions: Dictionary(uniqueKeysWithValues: found))
        case .found(let id, let version, let asked):
            try stored.carryOut(history.island(id, asked: asked), versions: [id: version])
        case .changes(let reply): try receive(reply)
        }
    }

    private mutating func receive(_ reply: ChangesReply) throws {
        isAskingChanges = false
        let effects = history.apply(
            reply.changes,
            asked: reply.generation,
            isReading: reader.isReading
        )
        guard let effects else { return }
        told.formUnion(reply.changes.removed)
        if let floor = reply.changes.clearedThrough { tellGone { $0 <= floor } }
        try stored.carryOut(effects, versions: reply.versions)
        cursor?.advance(past: reply.changes, asked: reply.cursor)
    }

    private mutating func noteNewest(_ id: Position) {
        let newest = end?.newest ?? id
        end?.newest = max(newest, id)
    }

    private mutating func tellGone(_ isGone: (Position) -> Bool) {
        told.formUnion(server.messages.map(\.id).filter(isGone))
    }

    private mutating func apply(_ evidence: Evidence?, versions: [Position: Int] = [:]) throws {
        guard let evidence else { return }
        try stored.carryOut(history.apply(evidence), versions: versions)
    }

    // MARK: - Requests

    mutating func connect() throws {
        isOnline = true
        let time = server.safeTime
        if isRestored {
            isRestored = false
            told = []
            loginMark = 0
            cursor = nil
            try stored.carryOut(history.resync())
        }
        if server.touched > loginMark || loginMark == 0 {
            let newest = server.visible.last
            end = ChatEnd(newest: newest?.id, safeTimeMs: time)
            try apply(
                .newest(
                    newest?.id,
                    after: newest.flatMap { server.previous(of: $0.id) },
                    safeTimeMs: time
                ),
                versions: newest.map { [$0.id: $0.version] } ?? [:]
            )
        } else {
            end?.safeTimeMs = time
            cursor?.skip(unchangedSinceMs: loginMark, throughMs: time)
        }
        loginMark = time
        cursor = cursor ?? ChangeCursor(sinceMs: time)
    }

    private mutating func disconnect() {
        isOnline = false
        isAskingChanges = false
        reader.disconnected()
        pushes = []
        delivered = []
        asked = []
        replies = []
        answered = []
    }

    private mutating func askChanges(count: Int) {
        guard isOnline, !isAskingChanges, let cursor else { return }
        isAskingChanges = true
        let page = server.changes(after: cursor, count: count)
        let reply = ChangesReply(
            changes: page.changes,
            versions: page.versions,
            cursor: cursor,
            generation: history.generation
        )
        replies.append(.changes(reply))
    }

    private mutating func scroll(_ step: Step, _ choice: Int) throws {
        guard let row = stored.rows.element(choice) else { return }
        try ask(viewport(row, step == .scrollBackward ? .backward : .forward))
    }

    func viewport(
        _ row: Position?,
        _ direction: HistoryViewport.Direction,
        rowsOnScreen: Int = 2
    ) -> HistoryViewport {
        let chunk = (row ?? end?.position).flatMap { history.chunk(containing: $0) }
        let ahead = stored.rows.filter { other in
            guard let chunk, chunk.contains(other) else { return false }
            guard let row else { return true }
            return direction == .backward ? other < row : other > row
        }
        return HistoryViewport(
            position: row,
            direction: direction,
            rowsOnScreen: rowsOnScreen,
            rowsAhead: ahead.count,
            lastRowAhead: direction == .backward ? ahead.first : ahead.last
        )
    }

    private mutating func ask(_ viewport: HistoryViewport) throws {
        guard isOnline, let end else { return }
        try note(reader.request(for: viewport, in: history, end: end))
    }

    private mutating func fillGaps(_ choice: Int) throws {
        guard isOnline, let end else { return }
        let rows = Array(stored.rows.dropFirst(choice % 3))
        try note(reader.request(toFillGapsBetween: rows, in: history, end: end))
    }

    private mutating func note(_ request: HistoryRequest?) throws {
        guard let request else { return }
        requests += 1
        asked.append(request)
        // I6: no waste. The client must not request an answer whose first position it has stored.
        let isAnswerHeld =
            switch request.kind {
            case .backward:
                request.fromMs == nil
                    ? history.covers(end?.position ?? .max)
                    : history.chunk(containing: request.pivot).map {
                        $0.lower < .first(at: request.pivot.timeMs)
                    } ?? false
            case .forward:
                history.chunk(containing: request.pivot).map { $0.upper == request.bound?.previous }
                    ?? false
            case .around: history.covers(request.pivot)
            }
        if isAnswerHeld { throw Violation("asks for what is held: \(request)") }
        let kinds = asked.map(\.kind)
        if Set(kinds).count < kinds.count || kinds.contains(.around) && kinds.count > 1 {
            throw Violation("asks twice at a time: \(asked)")
        }
    }

    private mutating func evict(_ choice: Int) throws {
        // Evict only when no push is in flight: a push from before the eviction must not arrive
        // after it. For the same reason, forget the delivered pushes, which could be repeated.
        guard pushes.isEmpty, let row = stored.rows.element(choice) else { return }
        delivered = []
        try stored.carryOut(history.evict(below: row))
    }

    private mutating func settle() throws {
        guard pushes.isEmpty else { return }
        delivered = []
        try stored.carryOut(history.settle())
    }

    private mutating func rejoin(_ choice: Int) throws {
        guard isOnline else { return }
        pushes = []
        delivered = []
        told = []
        server.setFloor(choice % 2 == 0 ? server.head ?? .min : .min)
        try stored.carryOut(history.removed())
        let newest = server.visible.last
        end = ChatEnd(newest: newest?.id, safeTimeMs: server.safeTime)
        if server.floor > .min {
            let floor = server.floor
            tellGone { $0 <= floor }
            try apply(.cleared(through: floor))
        }
    }

    // MARK: - Coming to rest

    /// Delivers everything in flight, fetches missed changes, and reads everything.
    mutating func comeToRest() throws {
        try settleDown()
        try readAll()
    }

    /// Delivers everything in flight, and fetches missed changes.
    mutating func settleDown() throws {
        server.drift = 0
        server.wait(5)
        if !isOnline { try connect() }
        // A page has three changes, so one page for each message is more than enough.
        for _ in 0...server.messages.count {
            try deliverAll()
            askChanges(count: 3)
            try deliverAll()
            if cursor?.behind == nil { break }
        }
        guard cursor?.behind == nil else { throw Violation("6.6: changes do not come to an end") }
        end?.newest = server.visible.last?.id
    }

    /// Logs in again so late that the login's time is after every message.
    mutating func logInAgain() throws {
        server.wait(1_000)
        disconnect()
        try connect()
    }

    /// Requests the messages before the newest chunk, and delivers the reply.
    ///
    /// - Returns: false if there is nothing to request.
    mutating func scrollUp() throws -> Bool {
        let before = requests
        try ask(viewport(nil, .backward, rowsOnScreen: 1))
        if requests == before, let chunk = end.flatMap({ history.chunk(containing: $0.position) }),
            let row = stored.rows.first(where: chunk.contains)
        {
            try ask(viewport(row, .backward, rowsOnScreen: 1))
        }
        try deliverAll()
        return requests > before
    }

    /// Reads from the newest message up to the first, then fills the gaps between islands.
    mutating func readAll() throws {
        // Allow many more requests than reading can need.
        var patience = 20 + 4 * server.messages.count
        while true {
            let before = requests
            try ask(viewport(nil, .backward, rowsOnScreen: 1_000))
            try ask(viewport(stored.rows.first, .backward, rowsOnScreen: 1_000))
            try fillGaps(0)
            if requests == before { return }
            try deliverAll()
            patience -= requests - before
            if patience < 0 { throw Violation("I7: reading does not come to an end") }
        }
    }

    mutating func deliverAll() throws {
        while !pushes.isEmpty || !asked.isEmpty || !replies.isEmpty {
            for step in [Step.receivePush, .readSnapshot, .receiveReply] {
                try play(Move(step: step, choice: 1))
            }
        }
    }

    // MARK: - Invariants

    private func check() throws {
        try checkShape()
        // I10: the store contains the whole history.
        guard stored.history == history else {
            throw Violation("I10: \(stored.history) is stored of \(history)")
        }
        if !isRestored {
            try checkSoundness()
            try checkView()
        }
    }

    /// I2: chunks are intervals in order, apart from each other, and contain no tombstone.
    private func checkShape() throws {
        for chunk in history.chunks where chunk.lower > chunk.upper {
            throw Violation("I2: \(chunk) is no interval")
        }
        for (older, newer) in zip(history.chunks, history.chunks.dropFirst())
        where !older.isApart(below: newer) {
            throw Violation("I2: \(older) and \(newer) are not apart")
        }
        for tomb in history.tombs where history.covers(tomb) {
            throw Violation("I2: tomb \(tomb) within a chunk")
        }
    }

    /// I1: for each chunk, the store contains every existing message. It contains a deleted message
    /// only until the client is told of the deletion.
    private func checkSoundness() throws {
        for message in server.messages {
            let isStored = stored.messages[message.id] != nil
            if server.isVisible(message) {
                if !isStored, history.covers(message.id) {
                    throw Violation("I1: \(message.id) is missing")
                }
            } else if isStored, told.contains(message.id) {
                throw Violation("I1: \(message.id) is stored though it was told to be gone")
            }
        }
    }

    /// I8: rows without a shown gap have no message between them.
    private func checkView() throws {
        let rows = stored.rows
        let gaps = history.gaps(in: rows, end: nil)
        for (index, (older, newer)) in zip(rows, rows.dropFirst()).enumerated()
        where !gaps.between[index] {
            let isMissing = server.messages.contains {
                older < $0.id && $0.id < newer && server.isVisible($0)
            }
            if isMissing { throw Violation("I8: something lies between \(older) and \(newer)") }
        }
        if let first = rows.first, !gaps.before,
            server.messages.contains(where: { $0.id < first && server.isVisible($0) })
        {
            throw Violation("I8: something lies before \(first)")
        }
    }

    /// I5: a held interval stays held.
    private func checkMonotony(from before: ChatHistory) throws {
        for chunk in before.chunks where !history.isWithoutGap(from: chunk.lower, to: chunk.upper) {
            throw Violation("I5: \(chunk) is no longer held")
        }
    }

    /// I9: the store contains exactly the existing messages, each in its latest version.
    func checkConvergence() throws {
        let there = Dictionary(uniqueKeysWithValues: server.visible)
        guard stored.messages == there else {
            throw Violation("I9: \(stored.messages) is stored of \(there)")
        }
        let gaps = history.gaps(in: stored.rows, end: end)
        guard !gaps.before, !gaps.behind, !gaps.between.contains(true) else {
            throw Violation("I9: \(gaps) in \(history)")
        }
    }
}

extension RandomAccessCollection where Index == Int {
    /// Returns the element that a number selects; nil for an empty collection.
    func element(_ choice: Int) -> Element? {
        isEmpty ? nil : self[startIndex + choice % count]
    }
}
