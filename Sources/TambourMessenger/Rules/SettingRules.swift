import TambourProtocol
import TambourStore

/// Decides which settings the server stores, and which of them it applies.
enum SettingRules {
    /// No settings.
    static let none = AnyValue(NameMap<AnyValue>([]))

    /// The default values that clients assume for settings that were never set. The server sends
    /// these values, because some clients treat an absent setting differently. For example, they
    /// show notifications without text, or hide the account.
    private static let defaults: [(Text, AnyValue)] = {
        func all(_ names: [String], _ value: AnyValue) -> [(Text, AnyValue)] {
            names.map { (Text($0), value) }
        }
        let audiences = [
            "SEARCH_BY_PHONE", "INCOMING_CALL", "CHATS_INVITE", "PHONE_NUMBER_PRIVACY",
        ]
        let off = [
            "HIDDEN", "CONTENT_LEVEL_ACCESS", "SAFE_MODE", "SAFE_MODE_NO_PIN", "PUSH_NEW_CONTACTS",
            "QUICK_REPLY", "CHATS_QUICK_REPLY", "DOUBLE_TAP_REACTION_DISABLED",
        ]
        let on = [
            "UNSAFE_FILES", "SHOW_READ_MARK", "AUDIO_TRANSCRIPTION_ENABLED", "PUSH_DETAILS", "VIBR",
            "CHATS_VIBR",
        ]
        let sent = ["CHATS_PUSH_NOTIFICATION", "M_CALL_PUSH_NOTIFICATION", "STICKERS_SUGGEST"]
        return all(audiences, AnyValue(Text("ALL"))) + all(off, AnyValue(false))
            + all(on, AnyValue(true))
            + all(sent, AnyValue(Text("ON")))
            + all(["PUSH_SOUND", "CHATS_PUSH_SOUND"], AnyValue(Text("DEFAULT")))
            + all(["LED", "CHATS_LED"], AnyValue(Int64(65_535)))
            + all(["DONT_DISTURB_UNTIL"], AnyValue(Int64(0)))
            + all(["FAMILY_PROTECTION"], AnyValue(Text("OFF")))
    }()

    /// Returns the settings in the form that clients receive: the stored settings, and defaults for
    /// all other settings.
    static func shown(_ settings: NameMap<AnyValue>) -> NameMap<AnyValue> {
        let set = Set(settings.pairs.map(\.0))
        return NameMap(settings.pairs + defaults.filter { !set.contains($0.0) })
    }

    /// Returns the settings after a change, in the order of their names. Null removes a setting.
    ///
    /// - Throws: `proto.payload` for a value that is not a short scalar, or for too many settings.
    static func merged(
        _ known: NameMap<AnyValue>,
        _ change: NameMap<AnyValue>,
        limits: Limits,
        at path: String
    ) throws -> NameMap<AnyValue> {
        var settings: [Text: AnyValue] = [:]
        for (name, value) in known.pairs { settings[name] = value }
        for (name, value) in change.pairs {
            guard 1...limits.maxSettingBytes ~= name.bytes.count else {
                throw RequestError.protoPayload(
                    "\(path): a name of \(name.bytes.count) bytes, limit \(limits.maxSettingBytes)"
                )
            }
            guard value.bytes.count <= limits.maxSettingBytes else {
                throw RequestError.protoPayload(
                    "\(path)/\(name): \(value.bytes.count) bytes, limit \(limits.maxSettingBytes)"
                )
            }
            guard value.isScalar else {
                throw RequestError.protoPayload("\(path)/\(name): a container")
            }
            settings[name] = value.isNil ? nil : value
        }
        // A user may have more settings than the limit, if the limit was lowered. Such a user may
        // change and remove settings, but not add new ones.
        guard settings.count <= max(limits.maxSettings, known.count) else {
            throw RequestError.protoPayload(
                "\(path): \(settings.count) settings, limit \(limits.maxSettings)"
            )
        }
        let names = settings.keys.sorted { "\($0)".utf8.lexicographicallyPrecedes("\($1)".utf8) }
        return NameMap(names.compactMap { name in settings[name].map { (name, $0) } })
    }

    /// Returns the size of a user's own settings in bytes. `maxSettingsBytes` limits this size.
    static func size(of settings: NameMap<AnyValue>) -> Int {
        settings.pairs.reduce(0) { $0 + $1.0.bytes.count + $1.1.bytes.count }
    }

    /// - Throws: `proto.payload` for a value that the server cannot apply.
    static func privacy(_ settings: NameMap<AnyValue>, at path: String) throws -> Privacy {
        var privacy = Privacy()
        for (name, value) in settings.pairs {
            func flag() throws -> Bool {
                guard let flag = value.bool else {
                    throw RequestError.protoPayload("\(path)/\(name): not a boolean")
                }
                return flag
            }
            func audience() throws -> Privacy.Audience {
                switch value.text.map({ "\($0)" }) {
                case "ALL": return .all
                case "CONTACTS": return .contacts
                case "NONE": return .none
                default:
                    throw RequestError.protoPayload("\(path)/\(name): not ALL, CONTACTS or NONE")
                }
            }
            switch SettingName(name: name) {
            case .searchByPhone: privacy.searchByPhone = try audience()
            case .chatsInvite: privacy.chatsInvite = try audience()
            case .phoneNumberPrivacy: privacy.phoneNumber = try audience()
            case .hidden: privacy.isHidden = try flag()
            case .showReadMark: privacy.showsReadMark = try flag()
            case .inactiveTtl, .other: break
            }
        }
        return privacy
    }

    /// Returns the days of inactivity after which the account is erased; 0 for never.
    ///
    /// - Throws: `proto.payload` unless the value is a number from 1 to 999 followed by D, M or Y.
    static func inactiveDays(_ settings: NameMap<AnyValue>, at path: String) throws -> Int {
        guard let value = settings["INACTIVE_TTL"] else { return 0 }
        let text = value.text.map { "\($0)" } ?? ""
        let days = ["D": 1, "M": 30, "Y": 365][text.suffix(1)]
        let digits = text.dropLast()
        guard let days, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(digits), 1...999 ~= number
        else {
            throw RequestError.protoPayload(
                "\(path)/INACTIVE_TTL: no number and D, M or Y behind it"
            )
        }
        return number * days
    }

    /// Decodes the stored settings of a chat.
    static func map(_ value: AnyValue) throws -> NameMap<AnyValue> {
        try MessagePackReader.read(value.bytes, limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try NameMap<AnyValue>.read(from: &reader)
        }
    }
}
