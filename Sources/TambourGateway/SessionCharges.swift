import TambourMessenger
import TambourProtocol

/// Who pays for the requests of a session: its user, or the connection and its address before login.
struct SessionCharges {
    private let rates: RateLimiter
    /// Charged for requests before login, as is the bucket of the address.
    private var connection = RateLimiter.OwnBucket()
    private var address = RateLimiter.Subject.address(.other(""))
    private let limits: Limits
    private var softErrors = 0
    private var softErrorsSince: Int64 = 0
    /// Requests of numbers that no list names.
    private var unknownOpcodes = 0

    init(_ rates: RateLimiter, limits: Limits) {
        self.rates = rates
        self.limits = limits
    }

    mutating func connected(from address: PeerAddress) {
        self.address = .address(address)
    }

    /// Charges the user; a stranger pays for what anyone may ask.
    ///
    /// - Returns: nil if the bucket held enough.
    func refusal(of charges: RateRules.Charges, for user: UserID?) -> RequestError? {
        guard
            let wait = wait(for: charges.first, user)
                ?? charges.second.flatMap({ wait(for: $0, user) })
        else { return nil }
        return .tooManyRequests.retrying(afterMs: wait)
    }

    private func wait(for charge: RateRules.Charge, _ user: UserID?) -> Int64? {
        if let user {
            return rates.take(charge.units, from: charge.bucket, of: .user(user))
        }
        guard charge.bucket.owner == .anyone else { return nil }
        return rates.take(charge.units, from: charge.bucket, of: address)
    }

    /// Charges the connection and its address for a request before login, whatever it asks for.
    ///
    /// LOGIN is free and SESSION_INIT is charged to the connection alone, so that nobody can keep others
    /// at the same address from logging in.
    mutating func refusalOfStranger(_ info: OpInfo) -> RequestError? {
        guard info.kind != .login else { return nil }
        var wait = rates.take(from: .connection, kept: &connection)
        if wait == nil, info.opcode != .sessionInit {
            wait = rates.take(from: .address, of: address)
        }
        return wait.map { .tooManyRequests.retrying(afterMs: $0) }
    }

    /// Charges an answer whose price is known only now.
    func charge(_ units: Int, to user: UserID) {
        if units > 0 { rates.charge(units, to: .read, of: .user(user)) }
    }

    /// Limits how often an account logs in and how often an address tries bad tokens.
    func limited(
        _ found: Result<OpenSession, RequestError>
    ) -> Result<OpenSession, RequestError> {
        let wait =
            switch found {
            case .success(let session):
                rates.take(from: .login, of: .user(session.userID))
            case .failure(let error):
                error.code == .loginToken ? rates.take(from: .auth, of: address) : nil
            }
        return wait.map { .failure(.loginFlood.retrying(afterMs: $0)) } ?? found
    }

    // MARK: - Malformed requests

    /// Counts a malformed request.
    ///
    /// - Returns: false when the peer keeps sending them and is to be closed.
    mutating func allowsSoftError(at now: Int64) -> Bool {
        if now - softErrorsSince > Int64(limits.softErrorWindowMs) {
            softErrorsSince = now
            softErrors = 0
        }
        softErrors += 1
        return softErrors <= limits.maxSoftErrors
    }

    /// Counts a request of a number that no list names. Apps newer than this server send some.
    ///
    /// - Returns: whether it counts as malformed.
    mutating func isSoftError(unknownFrom caller: Caller?) -> Bool {
        unknownOpcodes &+= 1
        return caller == nil || unknownOpcodes % limits.unknownOpcodesPerSoftError == 0
    }
}
