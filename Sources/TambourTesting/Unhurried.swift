import TambourProtocol

/// Limits for programs that send as many requests in a second as people send in a day.
package enum Unhurried {
    /// Limits that turn rate limits off.
    package static let limits: [String: Int] = {
        let often =
            [
                "maxCodesPerAddressPerHour", "maxCodesPerPhonePerHour",
                "maxCodesPerPhoneFromAllPerHour", "maxCodesPerEmailPerHour",
                "maxEmailCodesPerUserPerHour", "maxNewDialogsPerHour", "maxTracksPerHour",
                "maxQRApprovalsPerHour",
            ] + RateBucket.allCases.map(\.limitNames.perMinute)
        return Dictionary(uniqueKeysWithValues: often.map { ($0, 1_000_000_000) })
    }()

    /// The values of the rate limits in the specification, by the names of the limits.
    package static let specifiedRates: [String: Int] = Dictionary(
        uniqueKeysWithValues: RateBucket.allCases.flatMap { bucket in
            let names = bucket.limitNames
            return [
                (names.burst, bucket.burst(in: .standard)),
                (names.perMinute, bucket.perMinute(in: .standard)),
            ]
        }
    )

    /// Long timeouts. On a machine that is busy with tests, a client or a program may be very slow.
    private static let patience = [
        "loginTimeoutMs": 3_600_000, "idleTimeoutMs": 3_600_000, "sessionInitTimeoutMs": 3_600_000,
        "codeProgramTimeoutMs": 3_600_000, "handshakeTimeoutMs": 3_600_000,
    ]

    /// Returns the contents of a file for `--limits`.
    ///
    /// - Parameter overrides: limits by name. They replace the limits of this type.
    package static func file(_ overrides: [String: Int] = [:]) -> String {
        limits.merging(patience) { $1 }.merging(overrides) { $1 }.sorted { $0.key < $1.key }
            .map { "\($0.key): \($0.value)\n" }.joined()
    }
}
