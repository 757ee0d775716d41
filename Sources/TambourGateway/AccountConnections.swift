import Synchronization
import TambourEvents
import TambourProtocol

/// The live connections of each account, over all lanes, oldest first.
final class AccountConnections: Sendable {
    private typealias Connection = (session: Session, token: SessionID)

    private let perToken: Int
    private let perUser: Int
    private let connections = Mutex<[UserID: [Connection]]>([:])
    /// For each user, the number of connections that receive unread counters with each message. A
    /// user without such a connection has no entry.
    private let counted = Mutex<[UserID: Int]>([:])

    /// - Parameters:
    ///   - perToken: the limit of connections per login token.
    ///   - perUser: the limit of connections per account, over all its tokens.
    init(perToken: Int, perUser: Int) {
        self.perToken = perToken
        self.perUser = perUser
    }

    /// - Returns: the connections to close because the account or the token has too many. They are
    ///   the oldest ones.
    func add(_ session: Session, of user: UserID, token: SessionID) -> [Session] {
        connections.withLock { connections in
            connections[user, default: []].append((session, token))
            let all = connections[user] ?? []
            var excess = Array(all.prefix(max(0, all.count - perUser)))
            let rest = all.dropFirst(excess.count).filter { $0.token == token }
            excess += rest.prefix(max(0, rest.count - perToken))
            return excess.map(\.session)
        }
    }

    func remove(_ session: Session, of user: UserID) {
        connections.withLock { connections in
            connections[user]?.removeAll { $0.session === session }
            if connections[user]?.isEmpty == true { connections[user] = nil }
        }
    }

    /// Changes the number of the user's connections that receive unread counters by one.
    ///
    /// - Parameter isCounted: true adds a connection, false removes one.
    func count(_ user: UserID, isCounted: Bool) {
        counted.withLock { counted in
            let count = counted[user, default: 0] + (isCounted ? 1 : -1)
            counted[user] = count > 0 ? count : nil
        }
    }

    /// Returns the users among `users` who have a connection that receives unread counters.
    ///
    /// - Parameter users: in the order of their ids.
    func counted(among users: [UserID]) -> [UserID] {
        counted.withLock { counted in
            if counted.isEmpty { return [] }
            // Walk the shorter of the two lists.
            return counted.count < users.count
                ? counted.keys.filter { users.holdsSorted($0) }
                : users.filter { counted[$0] != nil }
        }
    }

    /// Returns a user's connected sessions.
    func sessions(of user: UserID) -> Set<SessionID> {
        connections.withLock { Set(($0[user] ?? []).map(\.token)) }
    }

    var count: Int {
        connections.withLock { $0.values.reduce(0) { $0 + $1.count } }
    }
}
