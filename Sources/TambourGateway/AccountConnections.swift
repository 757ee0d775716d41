import Synchronization
import TambourEvents
import TambourProtocol

/// The live connections of each account, over all lanes, oldest first.
final class AccountConnections: Sendable {
    private typealias Connection = (session: Session, token: SessionID)

    private let perToken: Int
    private let perUser: Int
    private let connections = Mutex<[UserID: [Connection]]>([:])
    /// Users with connections that are told with each message what they have not read, and how many.
    private let counted = Mutex<[UserID: Int]>([:])

    /// - Parameters:
    ///   - perToken: how many connections one login token may have.
    ///   - perUser: how many all tokens of an account may have together.
    init(perToken: Int, perUser: Int) {
        self.perToken = perToken
        self.perUser = perUser
    }

    /// - Returns: the connections that are too many now, the oldest ones of the token or the account.
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

    /// Notes that one more connection of a user is told with each message what they have not read, or
    /// that one is no longer.
    func count(_ user: UserID, isCounted: Bool) {
        counted.withLock { counted in
            let count = counted[user, default: 0] + (isCounted ? 1 : -1)
            counted[user] = count > 0 ? count : nil
        }
    }

    /// Those of some users who have such connections.
    ///
    /// - Parameter users: in the order of their ids.
    func counted(among users: [UserID]) -> [UserID] {
        counted.withLock { counted in
            if counted.isEmpty { return [] }
            // Of the two, the shorter list is walked.
            return counted.count < users.count
                ? counted.keys.filter { users.holdsSorted($0) }
                : users.filter { counted[$0] != nil }
        }
    }

    /// The sessions of a user that are connected.
    func sessions(of user: UserID) -> Set<SessionID> {
        connections.withLock { Set(($0[user] ?? []).map(\.token)) }
    }

    var count: Int {
        connections.withLock { $0.values.reduce(0) { $0 + $1.count } }
    }
}
