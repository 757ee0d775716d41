package import TambourEvents
package import TambourProtocol
import TambourStore

/// The settings that clients receive, and the hash that clients send back. One part of the settings
/// is the same for all clients. The other part is the feature decisions for one client.
package struct ServiceConfig: Sendable {
    private let service: LoginConfig
    private let hash: UInt64
    /// The countries that apps offer for signing in. An empty list means all countries.
    package let countries: [Text]
    package let registration: RegistrationPolicy
    /// The number of people whom each user may invite within `invitationsKeptDays`; 0 for none.
    package let userInvitations: Int

    package init(
        limits: Limits,
        countries: [String] = [],
        registration: RegistrationPolicy = .open,
        userInvitations: Int = 0
    ) {
        self.countries = countries.map { Text($0) }
        self.registration = registration
        self.userInvitations = userInvitations
        var writer = MessagePackWriter()
        let numbers: [(StaticString, Int)] = [
            ("max-msg-length", limits.maxTextUnits),
            ("max-participants", limits.maxGroupMembers),
            ("chats-page-size", limits.chatsPageSize),
            ("max-theme-length", limits.maxTitleUnits),
            ("max-description-length", limits.maxDescriptionUnits),
            ("max-readmarks", limits.fanOutMembers),
            ("disconnect-timeout", limits.idleTimeoutMs / 1000),
            ("reactions-max", limits.maxReactionKinds),
            ("msg-get-reactions-page-size", limits.reactionsPageSize),
        ]
        let switches: [StaticString] = [
            "reactions-enabled", "drafts-sync-enabled", "chats-folder-enabled", "channels-enabled",
            "join-requests",
        ]
        let lists: [(StaticString, [Text])] = [
            ("reactions-menu", ["👍", "❤️", "😂", "🔥", "🥁", "😮", "😢", "👎"]),
            (
                "react-errors",
                [
                    "error.message.like.unknown.reaction", "error.too-many-likes",
                    "error.reactions.not.allowed",
                ]
            ),
        ]
        // If these switches are missing, apps assume that the features exist, and request them at
        // every start.
        let missing: [StaticString] = ["informer-enabled", "account-nickname-enabled"]
        writer.writeMapHeader(
            numbers.count + switches.count + missing.count + lists.count + 3
        )
        for name in switches {
            writer.writeKey(name)
            true.write(to: &writer)
        }
        for name in missing {
            writer.writeKey(name)
            false.write(to: &writer)
        }
        for (name, texts) in lists {
            writer.writeKey(name)
            texts.write(to: &writer)
        }
        for (name, value) in numbers {
            writer.writeKey(name)
            writer.writeInt(Int64(value))
        }
        // One client reads these three settings without checking that they exist.
        writer.writeKey("white-list-links")
        writer.writeArrayHeader(0)
        writer.writeKey("file-upload-unsupported-types")
        writer.writeArrayHeader(0)
        writer.writeKey("y-map")
        writer.writeMapHeader(0)
        let server = writer.finish()
        let user = AnyValue(SettingRules.shown(NameMap()))
        hash = Self.hash(user.bytes.array + server, after: 0xcbf2_9ce4_8422_2325)
        service = LoginConfig(
            hash: Self.text(hash),
            user: user,
            server: AnyValue(unchecked: Bytes(server))
        )
    }

    /// Returns the config for a login; nil when the client already has this config.
    ///
    /// - Parameters:
    ///   - features: the feature decisions for this client; nil when the client named no feature.
    ///   - version: the version of the user's settings. The result does not contain the user's
    ///     settings. The caller adds them.
    func config(
        for features: [SessionFeature]?,
        version: Int64,
        unlessKnown known: Text?
    ) -> LoginConfig? {
        var config = service
        config.hash = hash(with: features, version: version)
        config.features = features
        return config.hash == known ? nil : config
    }

    /// Returns the update for a client that has the settings and whose feature decisions have
    /// changed.
    package func change(to features: [SessionFeature], version: Int64) -> LoginConfig {
        LoginConfig(hash: hash(with: features, version: version), features: features)
    }

    /// Returns the update for a client that has the settings. The user has changed some of them.
    ///
    /// - Parameter features: the client's feature decisions; nil when the client named no feature.
    package func change(to news: SettingsNews, for features: [SessionFeature]?) -> LoginConfig {
        LoginConfig(
            hash: hash(with: features, version: news.version),
            user: news.user,
            chats: news.chats
        )
    }

    /// Returns the hash for a client with these feature decisions and this version of the user's
    /// settings.
    func hash(with features: [SessionFeature]?, version: Int64) -> Text {
        var writer = MessagePackWriter()
        if let features { features.write(to: &writer) }
        if version > 0 { writer.writeInt(version) }
        return Self.text(Self.hash(writer.finish(), after: hash))
    }

    private static func text(_ hash: UInt64) -> Text { Text(String(hash, radix: 16)) }

    /// Returns an FNV-1a hash. A simple hash is enough, because its only purpose is to change
    /// whenever the settings change.
    private static func hash(_ bytes: [UInt8], after hash: UInt64) -> UInt64 {
        bytes.reduce(hash) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}
