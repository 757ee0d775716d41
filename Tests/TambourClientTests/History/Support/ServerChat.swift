@testable import TambourClient

/// The oracle: one chat as the server stores it for one user.
///
/// It follows the server's rules. Ids rise, and times rise even if the clock stands still. A `from`
/// at or after the clock means the newest message, unless a message has exactly that time. A page
/// that is too long loses the messages farthest from `from`.
struct ServerChat {
    struct Message {
        let id: Position
        /// Increases with each edit.
        var version = 0
        /// The commit clock of the last edit or deletion; 0 for none.
        var changed: Int64 = 0
        var isGone = false
    }

    /// The parts of a message that a reply carries.
    typealias Found = (id: Position, version: Int)

    private(set) var messages: [Message] = []
    /// The user sees no messages up to this position.
    private(set) var floor = Position.min
    /// The clock of the current commit, in milliseconds; the next commit may have the same clock.
    private(set) var clock: Int64 = 1_000
    /// How far the wall clock is behind the times of the chat, in milliseconds.
    var drift: Int64 = 0
    /// The commit clock of the last change.
    private(set) var touched: Int64 = 0
    private var counter: Int64 = 0

    private var wall: Int64 { clock - drift }
    /// No new message can appear at or below this time.
    var safeTime: Int64 { clock - 1 }
    /// The newest message, even if it is deleted.
    var head: Position? { messages.last?.id }

    func isVisible(_ message: Message) -> Bool { !message.isGone && message.id > floor }

    var visible: [Found] { messages.filter(isVisible).map { ($0.id, $0.version) } }

    func message(_ id: Position) -> Message? { messages.first { $0.id == id } }

    func previous(of id: Position) -> Position? { messages.last { $0.id < id }?.id }

    // MARK: - Changes

    mutating func wait(_ ms: Int64) { clock += ms }

    mutating func append() -> Position {
        counter += 1
        let time = max(clock, (head?.timeMs ?? 0) + 1)
        let id = Position(time << 16 | counter & 0xFFFF)
        messages.append(Message(id: id))
        touched = clock
        return id
    }

    mutating func edit(at index: Int) {
        messages[index].version += 1
        messages[index].changed = clock
        touched = clock
    }

    mutating func remove(at index: Int) {
        messages[index].isGone = true
        messages[index].changed = clock
        touched = clock
    }

    mutating func setFloor(_ position: Position) {
        floor = position
        touched = clock
    }

    // MARK: - Requests

    /// Answers CHAT_HISTORY.
    ///
    /// - Parameter room: The number of messages that fit in a reply; each direction returns at
    ///   least one.
    func page(_ request: HistoryRequest, room: Int = .max) -> (found: [Found], more: Bool) {
        var pivot = request.fromMs.map { Position.last(at: $0) } ?? .max
        if pivot.timeMs >= wall, messages.last(where: { $0.id <= pivot })?.id.timeMs != pivot.timeMs
        {
            pivot = .max
        }
        let earliest = request.backwardTimeMs.map { Position.first(at: $0) } ?? .min
        let latest = request.forwardTimeMs.map { Position.last(at: $0) } ?? .max
        var room = room
        var more = false
        func take(_ candidates: [Message], _ limit: Int) -> [Message] {
            guard limit > 0 else { return [] }
            let taken = candidates.prefix(min(limit, max(1, room)))
            room -= taken.count
            more = more || taken.count < candidates.count
            return Array(taken)
        }
        let there = messages.filter(isVisible)
        let older = take(
            there.filter { $0.id <= pivot && $0.id >= earliest }.reversed(),
            request.backward
        )
        let newer = take(there.filter { $0.id > pivot && $0.id <= latest }, request.forward)
        return ((older.reversed() + newer).map { ($0.id, $0.version) }, more)
    }

    /// Answers CHAT_CHANGES.
    func changes(
        after cursor: ChangeCursor,
        count: Int
    ) -> (changes: MessageChanges, versions: [Position: Int]) {
        let mark = (cursor.sinceMs, cursor.behind ?? .max)
        let all =
            messages
            .filter { $0.changed > 0 && ($0.changed, $0.id) > mark && $0.id > floor }
            .sorted { ($0.changed, $0.id) < ($1.changed, $1.id) }
        let page = all.prefix(count)
        var changes = MessageChanges(timeMs: safeTime)
        if floor > .min { changes.clearedThrough = floor }
        changes.removed = page.filter(\.isGone).map(\.id)
        let changed = page.filter { !$0.isGone }
        changes.changed = changed.map(\.id)
        if let last = page.last, page.count < all.count {
            (changes.timeMs, changes.next) =
                last.changed <= safeTime ? (last.changed, last.id) : (safeTime, .max)
        }
        let versions = Dictionary(uniqueKeysWithValues: changed.map { ($0.id, $0.version) })
        return (changes, versions)
    }
}
