import TambourEvents
import TambourProtocol

/// The sessions of a lane that have opened the comments on posts.
///
/// The lane's gateway owns this value.
struct CommentReaders {
    private var sessions: [MessageAddress: [ObjectIdentifier: Session]] = [:]
    /// The addresses that each session has opened, the oldest first.
    private var opened: [ObjectIdentifier: [MessageAddress]] = [:]
    private let limit: Int

    init(limits: Limits) {
        limit = limits.maxOpenThreads
    }

    /// Subscribes a session to the comments on a post. Beyond `maxOpenThreads`, the session's
    /// oldest subscription ends.
    mutating func open(_ address: MessageAddress, by session: Session) {
        close(address, by: session)
        let id = ObjectIdentifier(session)
        sessions[address, default: [:]][id] = session
        opened[id, default: []].append(address)
        if let own = opened[id], own.count > limit { close(own[0], by: session) }
    }

    mutating func close(_ address: MessageAddress, by session: Session) {
        let id = ObjectIdentifier(session)
        sessions[address]?[id] = nil
        if sessions[address]?.isEmpty == true { sessions[address] = nil }
        opened[id]?.removeAll { $0 == address }
        if opened[id]?.isEmpty == true { opened[id] = nil }
    }

    mutating func closeAll(by session: Session) {
        for address in opened[ObjectIdentifier(session)] ?? [] { close(address, by: session) }
    }

    /// The sessions that have opened the comments on a post, in no order.
    subscript(address: MessageAddress) -> [Session] {
        sessions[address].map { Array($0.values) } ?? []
    }
}
