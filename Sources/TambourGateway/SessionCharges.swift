import TambourMessenger
import TambourProtocol

/// Charges the requests of a session to its user. Before login, charges them to the connection and
/// its address.
struct SessionCharges {
    private let rates: RateLimiter
    /// The bucket of the connection. Requests before login are charged to this bucket and to the
    /// bucket of the address.
    private var connection = RateLimiter.OwnBucket()
    private var address = RateLimiter.Subject.address(.other(""))
    private let limits: Limits
    private var softErrors = 0
    private var softErrorsSince: Int64 = 0
    /// The number of requests with opcodes that the specification does not contain.
    private var unknownOpcodes = 0

    init(_ rates: RateLimiter, limits: Limits) {
        self.rates = rates
        self.limits = limits
    }

    mutating func connected(from address: PeerAddress) {
        self.address = .address(address)
    }

    /// Charges the user. Before login, charges the client's address, but only for buckets that
    /// apply to anyone.
    ///
    /// - Returns: the refusal if a bucket has too few units; otherwise nil.
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

    /// Charges a request that arrives before login to the connection and its address.
    ///
    /// LOGIN is free, and SESSION_INIT is charged to the connection only. Clients that share an
    /// address therefore cannot stop each other from logging in.
    mutating func refusalOfStranger(_ info: OpInfo) -> RequestError? {
        guard info.kind != .login else { return nil }
        var wait = rates.take(from: .connection, kept: &connection)
        if wait == nil, info.opcode != .sessionInit {
            wait = rates.take(from: .address, of: address)
        }
        return wait.map { .tooManyRequests.retrying(afterMs: $0) }
    }

    /// Charges a user for an answer. The units depend on the answer's size, which is now known.
    func charge(_ units: Int, to user: UserID) {
        if units > 0 { rates.charge(units, to: .read, of: .user(user)) }
    }

    /// Applies the rate limits of logins per account and of bad tokens per address.
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
    /// - Returns: false when the peer keeps sending malformed requests and must be closed.
    mutating func allowsSoftError(at now: Int64) -> Bool {
        if now - softErrorsSince > Int64(limits.softErrorWindowMs) {
            softErrorsSince = now
            softErrors = 0
        }
        softErrors += 1
        return softErrors <= limits.maxSoftErrors
    }

    /// Counts a request with an unknown opcode. Apps that are newer than this server send such
    /// requests.
    ///
    /// - Returns: whether the request counts as malformed.
    mutating func isSoftError(unknownFrom caller: Caller?) -> Bool {
        unknownOpcodes &+= 1
        return caller == nil || unknownOpcodes % limits.unknownOpcodesPerSoftError == 0
    }
}
