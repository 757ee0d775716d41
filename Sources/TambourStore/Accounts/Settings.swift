package import TambourProtocol
import TambourSQL

/// The settings in `SettingName` that the server enforces. They state what other users may do and
/// see.
package struct Privacy: Equatable, Sendable {
    package enum Audience: Int64, Sendable {
        case all = 0
        /// Only the users whom this user has added.
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

    /// Whether the user's presence is hidden from everybody.
    package var isHidden = false
    /// Whether other users see how far the user has read.
    package var showsReadMark = true
    package var searchByPhone = Audience.all
    package var chatsInvite = Audience.all
    package var phoneNumber = Audience.all

    package init() {}
}

extension Privacy {
    /// The bit of the column `account.privacy` that hides read marks from everybody.
    static let hidesReadMark: Int64 = 1 << 7

    /// Decodes the column `account.privacy`. SQL statements do not use this function; they read bit
    /// 0 (`isHidden`) directly.
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

enum UserSettingColumn: Int, SQLColumn {
    case name, value
}

enum ChatSettingColumn: Int, SQLColumn {
    case chat, value
}

enum SettingValueColumn: Int, SQLColumn {
    case value
}

/// The sizes of the settings of the user `$1`, in bytes.
enum SettingBytesColumn: Int, SQLColumn {
    case ofUser, ofChats

    var sql: String {
        switch self {
        case .ofUser:
            """
            (SELECT COALESCE(sum(length(name) + length(value)), 0) FROM user_setting
             WHERE user_id = $1)
            """
        case .ofChats:
            "(SELECT COALESCE(sum(length(value)), 0) FROM chat_setting WHERE user_id = $1)"
        }
    }
}

struct SettingStatements {
    let ofUser: SQLQuery<UserSettingColumn>
    let upsertOfUser: any SQLStatement
    let removeOfUser: any SQLStatement
    let ofChats: SQLQuery<ChatSettingColumn>
    let ofChat: SQLQuery<SettingValueColumn>
    let upsertOfChat: any SQLStatement
    let removeOfChat: any SQLStatement
    let countChats: any SQLStatement
    let bytes: SQLQuery<SettingBytesColumn>
    let privacy: any SQLStatement
    let setVersion: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        ofUser = try sql.query(
            """
            SELECT \(UserSettingColumn.list) FROM user_setting
            WHERE user_id = $1 ORDER BY name
            """
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
        ofChats = try sql.query(
            """
            SELECT \(ChatSettingColumn.list) FROM chat_setting
            WHERE user_id = $1 ORDER BY chat
            """
        )
        ofChat = try sql.query(
            """
            SELECT \(SettingValueColumn.list) FROM chat_setting
            WHERE user_id = $1 AND chat = $2
            """
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
        bytes = try sql.query("SELECT \(SettingBytesColumn.list)")
        privacy = try sql.prepare("SELECT privacy FROM account WHERE id = $1")
        setVersion = try sql.prepare(
            "UPDATE account SET privacy = $2, settings_ct = $3 WHERE id = $1"
        )
    }

    /// Applies the read mark settings that users stored before the server enforced this setting.
    /// Deletes a value that is not a boolean.
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
        NameMap(
            try store.settings.ofUser.all {
                $0.bind(1, user.rawValue)
            } read: {
                ($0.text(.name), AnyValue(unchecked: Bytes($0.bytes(.value))))
            }
        )
    }

    /// Returns the settings of the user's chats. The keys are the chat ids that the user's clients
    /// use. Every value is a map.
    ///
    /// - Parameter room: the maximum number of bytes; settings that do not fit are omitted.
    package func chatSettings(
        of user: UserID,
        room: Int = .max
    ) throws -> IDMap<ChatID, AnyValue> {
        var room = room
        var pairs: [(ChatID, AnyValue)] = []
        try store.settings.ofChats.each {
            $0.bind(1, user.rawValue)
        } do: { row in
            // The size of the value, plus 14 bytes for an id and the header of a map.
            let size = row.borrowedBytes(.value).count + 14
            guard size <= room else { return }
            room -= size
            pairs.append((ChatID(row.int(.chat)), AnyValue(unchecked: Bytes(row.bytes(.value)))))
        }
        return IDMap(pairs)
    }

    /// Returns the settings of one chat of the user, which are a map; nil if there are no settings.
    package func settings(of user: UserID, in chat: ChatID) throws -> AnyValue? {
        try store.settings.ofChat.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.rawValue)
        } read: {
            AnyValue(unchecked: Bytes($0.bytes(.value)))
        }
    }

    /// Whether other users may see how far the user has read.
    func showsReadMark(of user: UserID) throws -> Bool {
        let privacy = try store.settings.privacy.oneInt { $0.bind(1, user.rawValue) }
        return privacy.map { Privacy(column: $0).showsReadMark } ?? false
    }

    /// Returns the total size of the user's own settings and the settings of the user's chats, in
    /// bytes.
    package func settingsBytes(of user: UserID) throws -> Int {
        try store.settings.bytes.one {
            $0.bind(1, user.rawValue)
        } read: {
            $0.count(.ofUser) + $0.count(.ofChats)
        } ?? 0
    }

    /// Returns the number of the user's chats that have settings.
    package func countChatSettings(of user: UserID) throws -> Int {
        try store.settings.countChats.oneCount { $0.bind(1, user.rawValue) }
    }
}

extension WriteTransaction {
    /// Stores a setting of the user; nil deletes it. The caller must then call `settingsChanged`.
    package func set(_ name: Text, to value: AnyValue?, of user: UserID) throws {
        let statement = value == nil ? store.settings.removeOfUser : store.settings.upsertOfUser
        statement.bind(1, user.rawValue)
        statement.bindWords(2, name)
        if let value { statement.bindBlob(3, value.bytes) }
        try statement.run()
    }

    /// Stores the settings of a chat, which are a map; nil deletes them. The caller must then call
    /// `settingsChanged`.
    package func set(_ value: AnyValue?, of chat: ChatID, for user: UserID) throws {
        let statement = value == nil ? store.settings.removeOfChat : store.settings.upsertOfChat
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.rawValue)
        if let value { statement.bindBlob(3, value.bytes) }
        try statement.run()
    }

    /// Records that settings of `account` have changed, and stores its privacy. If the visibility
    /// of the phone has changed, users who have the account as a contact receive the contact again
    /// at their next login.
    ///
    /// - Returns: the version of the settings. Clients store a hash that the server makes from this
    ///   version.
    package func settingsChanged(of account: Account, privacy: Privacy) throws -> Int64 {
        writes += 1
        // Two changes in the same batch must get different versions.
        let version = max(ct, account.settingsVersion + 1)
        try store.settings.setVersion.run {
            $0.bind(1, account.id.rawValue)
            $0.bind(2, privacy.column)
            $0.bind(3, version)
        }
        if privacy.phoneNumber != account.privacy.phoneNumber { try touchContacts(of: account.id) }
        return version
    }
}
