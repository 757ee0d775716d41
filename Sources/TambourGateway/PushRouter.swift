import TambourEvents
import TambourMessenger
import TambourProtocol
import TambourQueues

/// Forwards events to every lane, and answers queries about the clients of all lanes.
final class PushRouter: Door {
    private let gateways: [LaneGateway]
    private let accounts: AccountConnections

    init(_ gateways: [LaneGateway], _ accounts: AccountConnections) {
        self.gateways = gateways
        self.accounts = accounts
    }

    func deliver(_ events: [Event]) {
        post(.events(events))
    }

    func whenDelivered(_ body: @escaping @Sendable () -> Void) {
        post(.delivered(Countdown(from: gateways.count, body)))
    }

    func counted(among users: [UserID]) -> [UserID] { accounts.counted(among: users) }

    func sessions(of user: UserID) -> Set<SessionID> { accounts.sessions(of: user) }

    /// Posts a message to all lanes. Each lane handles it after all events that were delivered
    /// earlier.
    func post(_ message: LaneMessage) {
        for gateway in gateways { gateway.post(message) }
    }
}
