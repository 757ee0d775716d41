/// Every limit there is. Immutable; an override makes another one.
package final class Limits: Sendable {
    package let maxFrameBytesBeforeLogin: Int
    package let maxFrameBytes: Int
    package let maxInflatedBytes: Int
    package let maxReplyBytes: Int
    package let maxDepth: Int
    package let maxElements: Int
    package let maxRequestsInFlight: Int
    package let maxOutboundBytes: Int
    package let maxOutboundPushBytes: Int
    package let loginCodeDigits: Int
    package let loginCodeTries: Int
    package let loginCodeLifetimeMs: Int
    package let maxCodesPerPhonePerHour: Int
    package let maxCodesPerAddressPerHour: Int
    package let maxTextUnits: Int
    package let maxTextBytes: Int
    package let maxTitleUnits: Int
    package let maxDescriptionUnits: Int
    package let sessionInitTimeoutMs: Int
    package let loginTimeoutMs: Int
    package let partialFrameTimeoutMs: Int
    package let idleTimeoutMs: Int
    package let maxSoftErrors: Int
    package let softErrorWindowMs: Int
    package let maxConnectionsPerToken: Int
    package let maxGroupMembers: Int
    package let maxHistoryPage: Int
    package let compressFromBytes: Int

    /// The values of the specification.
    package static let standard = Limits()

    private init(_ overrides: inout LimitOverrides) {
        maxFrameBytesBeforeLogin = overrides.value(
            of: "maxFrameBytesBeforeLogin",
            standard: 8192,
            max: 16_777_215
        )
        maxFrameBytes = overrides.value(of: "maxFrameBytes", standard: 1_048_576, max: 16_777_215)
        maxInflatedBytes = overrides.value(of: "maxInflatedBytes", standard: 1_048_576)
        maxReplyBytes = overrides.value(of: "maxReplyBytes", standard: 921_600)
        maxDepth = overrides.value(of: "maxDepth", standard: 32)
        maxElements = overrides.value(of: "maxElements", standard: 65536)
        maxRequestsInFlight = overrides.value(of: "maxRequestsInFlight", standard: 256)
        maxOutboundBytes = overrides.value(of: "maxOutboundBytes", standard: 2_097_152)
        maxOutboundPushBytes = overrides.value(of: "maxOutboundPushBytes", standard: 262_144)
        loginCodeDigits = overrides.value(of: "loginCodeDigits", standard: 6, max: 9)
        loginCodeTries = overrides.value(of: "loginCodeTries", standard: 5)
        loginCodeLifetimeMs = overrides.value(of: "loginCodeLifetimeMs", standard: 600_000)
        maxCodesPerPhonePerHour = overrides.value(of: "maxCodesPerPhonePerHour", standard: 5)
        maxCodesPerAddressPerHour = overrides.value(of: "maxCodesPerAddressPerHour", standard: 20)
        maxTextUnits = overrides.value(of: "maxTextUnits", standard: 4000)
        maxTextBytes = overrides.value(of: "maxTextBytes", standard: 16000)
        maxTitleUnits = overrides.value(of: "maxTitleUnits", standard: 200)
        maxDescriptionUnits = overrides.value(of: "maxDescriptionUnits", standard: 400)
        sessionInitTimeoutMs = overrides.value(of: "sessionInitTimeoutMs", standard: 10000)
        loginTimeoutMs = overrides.value(of: "loginTimeoutMs", standard: 120_000)
        partialFrameTimeoutMs = overrides.value(of: "partialFrameTimeoutMs", standard: 15000)
        idleTimeoutMs = overrides.value(of: "idleTimeoutMs", standard: 300_000)
        maxSoftErrors = overrides.value(of: "maxSoftErrors", standard: 16)
        softErrorWindowMs = overrides.value(of: "softErrorWindowMs", standard: 60000)
        maxConnectionsPerToken = overrides.value(of: "maxConnectionsPerToken", standard: 4)
        maxGroupMembers = overrides.value(of: "maxGroupMembers", standard: 20000)
        maxHistoryPage = overrides.value(of: "maxHistoryPage", standard: 200)
        compressFromBytes = overrides.value(of: "compressFromBytes", standard: 512)
    }

    private convenience init() {
        var none = LimitOverrides([:])
        self.init(&none)
    }

    /// The values of the specification but for some.
    /// - Throws: `LimitError` naming what is unknown or out of range.
    package convenience init(overrides: [String: Int]) throws(LimitError) {
        var left = LimitOverrides(overrides)
        self.init(&left)
        try left.finish()
    }
}
