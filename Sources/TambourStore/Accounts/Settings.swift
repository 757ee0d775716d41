package import TambourProtocol
import TambourSQL

/// What a user lets others do and see: the settings of `SettingName` that the server enforces.
package struct Privacy: Equatable, Sendable {
    package enum Audience: Int64, Sendable {
        case all = 0
        /// Users whom the user has added.
        case contacts = 1
        case none = 2

        /// - Parameter isAdded: whether the user has added the caller.
        package func includes(isAdded: Bool) -> Bool {
            switch self {
            case .all: true
            case .contacts: isAdded
            case .none: false
            }
        }
    }

    /// Whether presence is hidden from everybody.
    package var isHidden = false
    /// Whether others see how far the user has read.
    package var showsReadMark = true
    package var searchByPhone = Audience.all
    package var chatsInvite = Audience.all
    package var phoneNumber = Audience.all

    package init() {}
}

extension Privacy {
    /// The bit of the column `account.privacy` that hides read marks from everybody.
    static let hidesReadMark: Int64 = 1 << 7

    /// Decodes the column `account.privacy`; SQL reads bit 0.
    init(column: Int64) {
        func audience(_ shift: Int64) -> Audience {
            Audience(rawValue: column >> shift & 3) ?? .none
        }
        isHidden = column & 1 != 0
        searchByPhone = audience(1)
        chatsInvite = audience(3)
        phoneNumber = audience(5)
        showsReadMark = column & Self.hidesReadMark == 0
    }

    var column: Int64 {
        (isHidden ? 1 : 0) | searchByPhone.rawValue << 1 | chatsInvite.rawValue << 3
            | phoneNumber.rawValue << 5 | (showsReadMark ? 0 : Self.hidesReadMark)
    }
}

struct SettingStatements {
    let ofUser: any SQLStatement
    let upsertOfUser: any SQLStatement
    let removeOfUser: any SQLStatement
    let ofChats: any SQLStatement
    let ofChat: any SQLStatement
    let upsertOfChat: any SQLStatement
    let removeOfChat: any SQLStatement
    let countChats: any SQLStatement
    let bytes: any SQLStatement
    let privacy: any SQLStatement
    let setVersion: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        ofUser = try sql.prepare(
            "SELECT name, value FROM user_setting WHERE user_id = $1 ORDER BY name"
        )
        upsertOfUser = try sql.prepare(
            """
            INSERT INTO user_setting (user_id, name, value) VALUES ($1, $2, $3)
            ON CONFLICT (user_id, name) DO UPDATE SET value = excluded.value
            """
        )
        removeOfUser = try sql.prepare(
            "DELETE FROM user_setting WHERE user_id = $1 AND name = $2"
        )
        ofChats = try sql.prepare(
            "SELECT chat, value FROM chat_setting WHERE user_id = $1 ORDER BY chat"
        )
        ofChat = try sql.prepare(
            "SELECT value FROM chat_setting WHERE user_id = $1 AND chat = $2"
        )
        upsertOfChat = try sql.prepare(
            """
            INSERT INTO chat_setting (user_id, chat, value) VALUES ($1, $2, $3)
            ON CONFLICT (user_id, chat) DO UPDATE SET value = excluded.value
            """
        )
        removeOfChat = try sql.prepare(
            "DELETE FROM chat_setting WHERE user_id = $1 AND chat = $2"
        )
        countChats = try sql.prepare("SELECT count(*) FROM chat_setting WHERE user_id = $1")
        bytes = try sql.prepare(
            """
            SELECT
              (SELECT COALESCE(sum(length(name) + length(value)), 0) FROM user_setting
               WHERE user_id = $1),
              (SELECT COALESCE(sum(length(value)), 0) FROM chat_setting WHERE user_id = $1)
            """
        )
        privacy = try sql.prepare("SELECT privacy FROM account WHERE id = $1")
        setVersion = try sql.prepare(
            "UPDATE account SET privacy = $2, settings_ct = $3 WHERE id = $1"
        )
    }

    /// Applies the read mark settings that users had made while the server only stored them; a
    /// value that is not a boolean is deleted.
    @Sendable
    static func obeyReadMarks(on sql: any SQLConnection) throws(SQLError) {
        let name = Array("SHOW_READ_MARK".utf8)
        // MessagePack for false and true.
        let no: [UInt8] = [0xC2]
        let yes: [UInt8] = [0xC3]
        let hide = try sql.prepare(
            """
            UPDATE account SET privacy = privacy + \(Privacy.hidesReadMark) WHERE id IN (
              SELECT user_id FROM user_setting WHERE name = $1 AND value = $2)
            """
        )
        hide.bindBlob(1, name)
        hide.bindBlob(2, no)
        try hide.run()
        let forget = try sql.prepare(
            "DELETE FROM user_setting WHERE name = $1 AND value <> $2 AND value <> $3"
        )
        forget.bindBlob(1, name)
        forget.bindBlob(2, no)
        forget.bindBlob(3, yes)
        try forget.run()
    }
}

extension ReadTransaction {
    /// Returns the user's own settings in the order of their names.
    package func settings(of user: UserID) throws -> NameMap<AnyValue> {
        let statement = store.settings.ofUser
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        var pairs: [(Text, AnyValue)] = []
        while try statement.step() {
            pairs.append(
                (
                    Text(unchecked: Bytes(statement.bytes(0))),
                    AnyValue(unchecked: Bytes(statement.bytes(1)))
                )
            )
        }
        return NameMap(pairs)
    }

    /// Returns the settings of the user's chats by the chat id that the user sees; every value is a
    /// map.
    ///
    /// - Parameter room: the bytes that they may take; settings that do not fit are omitted.
    package func chatSettings(
        of user: UserID,
        room: Int = .max
    ) throws -> IDMap<ChatID, AnyValue> {
        var room = room
        let statement = store.settings.ofChats
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        var pairs: [(ChatID, AnyValue)] = []
        while try statement.step() {
            // An id and the header of a map.
            let size = statement.borrowedBytes(1).count + 14
            guard size <= room else { continue }
            room -= size
            pairs.append(
                (ChatID(statement.int(0)), AnyValue(unchecked: Bytes(statement.bytes(1))))
            )
        }
        return IDMap(pairs)
    }

    /// Returns the settings of one chat of the user, a map; nil when there are none.
    package func settings(of user: UserID, in chat: ChatID) throws -> AnyValue? {
        let statement = store.settings.ofChat
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.rawValue)
        return try statement.step() ? AnyValue(unchecked: Bytes(statement.bytes(0))) : nil
    }

    /// Whether others may see how far the user has read.
    func showsReadMark(of user: UserID) throws -> Bool {
        let statement = store.settings.privacy
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        return try statement.step() && Privacy(column: statement.int(0)).showsReadMark
    }

    /// Returns the size of all settings of the user and of their chats, in bytes.
    package func settingsBytes(of user: UserID) throws -> Int {
        let statement = store.settings.bytes
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        return try statement.step() ? statement.count(0) + statement.count(1) : 0
    }

    /// Returns the number of the user's chats that have settings.
    package func countChatSettings(of user: UserID) throws -> Int {
        let statement = store.settings.countChats
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        return try statement.step() ? statement.count(0) : 0
    }
}

extension WriteTransaction {
    /// Stores a setting of the user; nil deletes it. `settingsChanged` must follow.
    package func set(_ name: Text, to value: AnyValue?, of user: UserID) throws {
        let statement = value == nil ? store.settings.removeOfUser : store.settings.upsertOfUser
        statement.bind(1, user.rawValue)
        statement.bindWords(2, name)
        if let value { statement.bindBlob(3, value.bytes) }
        try statement.run()
    }

    /// Stores the settings of a chat, a map; nil deletes them. `settingsChanged` must follow.
    package func set(_ value: AnyValue?, of chat: ChatID, for user: UserID) throws {
        let statement = value == nil ? store.settings.removeOfChat : store.settings.upsertOfChat
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.rawValue)
        if let value { statement.bindBlob(3, value.bytes) }
        try statement.run()
    }

    /// Records that settings of `account` have changed, and stores its privacy. If who sees the
    /// phone changed, users who have the account as a contact receive it at their next login.
    ///
    /// - Returns: the version of the settings; clients hold its hash.
    package func settingsChanged(of account: Account, privacy: Privacy) throws -> Int64 {
        writes += 1
        // Two changes within one batch get two versions.
        let version = max(ct, account.settingsVersion + 1)
        let statement = store.settings.setVersion
        statement.bind(1, account.id.rawValue)
        statement.bind(2, privacy.column)
        statement.bind(3, version)
        try statement.run()
        if privacy.phoneNumber != account.privacy.phoneNumber { try touchContacts(of: account.id) }
        return version
    }
}
