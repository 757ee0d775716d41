package import TambourProtocol

/// The subject of a rule: a device and, after login, its user.
package struct FeatureSubject: Sendable, Hashable {
    /// Nil before login.
    package var userID: UserID?
    /// The id of the installation in SESSION_INIT; empty when SESSION_INIT has no id.
    package var deviceID: String
    /// The kind of device in upper case: `ANDROID`, `IOS`, `DESKTOP`, `WEB`.
    package var system: String
    package var appVersion: AppVersion?
    package var locale: LocaleName

    package init(
        userID: UserID? = nil,
        deviceID: String = "",
        system: String = "",
        appVersion: String = "",
        locale: String = ""
    ) {
        self.userID = userID
        self.deviceID = deviceID
        self.system = system.uppercased()
        self.appVersion = AppVersion(appVersion)
        self.locale = LocaleName(locale)
    }

    /// The name that determines the bucket. It is the user's id or, before login, the device's id.
    /// It is nil before login if the device has no id.
    var name: String? {
        if let userID { return String(userID.rawValue) }
        return deviceID.isEmpty ? nil : deviceID
    }
}

/// The version of an app: numbers between dots. The parser uses only the leading digits of each
/// part, and stops at the first part without leading digits.
package struct AppVersion: Sendable, Hashable, Comparable {
    private let parts: [Int]

    /// - Returns: nil for a text that does not begin with a digit.
    package init?(_ text: String) {
        var parts: [Int] = []
        for part in text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        {
            let digits = part.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard !digits.isEmpty else { break }
            parts.append(Int(String(Substring(digits))) ?? .max)
        }
        guard !parts.isEmpty else { return nil }
        // Versions 2.0 and 2 are equal.
        while parts.last == 0 { parts.removeLast() }
        self.parts = parts
    }

    /// The version as a label for metrics; nil for implausible versions, so that a client cannot
    /// smuggle other data into metrics.
    package var label: String? {
        guard (1...4).contains(parts.count), parts.allSatisfy({ $0 < 100_000 }) else { return nil }
        return parts.map(String.init).joined(separator: ".")
    }

    package static func < (left: AppVersion, right: AppVersion) -> Bool {
        left.parts.lexicographicallyPrecedes(right.parts)
    }
}

/// A range of versions. It includes `from` and excludes `below`.
package struct AppVersionRange: Sendable, Hashable {
    private let from: AppVersion?
    private let below: AppVersion?

    package init(from: AppVersion? = nil, below: AppVersion? = nil) {
        self.from = from
        self.below = below
    }

    func contains(_ version: AppVersion) -> Bool {
        if let from, version < from { return false }
        if let below, version >= below { return false }
        return true
    }
}

/// A language with or without a country: `de`, `de-AT`, `de_AT`.
package struct LocaleName: Sendable, Hashable {
    private let text: String

    package init(_ name: String) {
        text = String(name.lowercased().map { $0 == "_" ? "-" : $0 })
    }

    /// Returns whether this locale includes the other one. For example, `de` covers `de-AT`, but
    /// `de-AT` does not cover `de`.
    package func covers(_ other: LocaleName) -> Bool {
        text == other.text || other.text.hasPrefix(text + "-")
    }
}
