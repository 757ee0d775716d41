import Dispatch
import Foundation
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting

@testable import TambourMessenger
@testable import TambourServer

/// An integer column, with the name and the key of its table.
struct StoreColumn: Sendable {
    let table: String
    let name: String
    let keys: [String]
    /// The values that `admin check` accepts; nil if it accepts any value.
    let range: ClosedRange<Int64>?
}

/// A small store with at least one row in every table. Can send the requests of the store's users
/// to a server.
final class StoredWorld {
    private let directory: String
    private let copy: String
    private let database: [UInt8]
    private let people: [(token: String, id: UserID)]
    private let group: ChatID
    private let channel: ChatID
    private var dialog: ChatID { .dialog(people[0].id, people[1].id) }
    private var chats: [ChatID] { [dialog, ChatID(0), group, channel] }

    /// The number of messages in the group. The word index contains the first blocks of these
    /// messages.
    private static let messages = 80

    init() throws {
        directory = try TestServer.temporaryDirectory()
        let server = try TestServer(dataDirectory: directory)
        let (alice, bob) = (try server.signUp("Alice"), try server.signUp("Bob"))
        people = [(alice.token, alice.userID), (bob.token, bob.userID)]
        group = try alice.createGroup("Group", with: [bob], cid: 1)
        channel = try alice.createGroup("Channel", with: [bob], type: "CHANNEL", cid: 2)
        do {
            try Self.fill(server, alice, bob, group)
            try server.run { [group, channel] tx in
                for id in [group, channel] {
                    guard let chat = try tx.livingChat(ChatKey(id.rawValue)) else { continue }
                    try tx.addDefaultChat(chat)
                    if id == channel { try tx.addAnnouncement("news", in: chat, after: nil) }
                }
            }
        } catch {
            server.remove()
            throw error
        }
        server.stop()
        // Copy the file, because the stopped server may keep the original open for a moment.
        copy = "\(directory)/copy.db"
        try SQLiteConnection(path: "\(directory)/tambour.db", mode: .readOnly).copy(to: copy)
        let connection = try SQLiteConnection(path: copy, mode: .readWrite)
        try Self.fillRest(connection)
        try connection.execute("PRAGMA journal_mode = DELETE")
        database = Array(try Data(contentsOf: URL(fileURLWithPath: copy)))
    }

    func remove() { TestServer.removeDirectory(directory) }

    private static func fill(
        _ server: TestServer,
        _ alice: WireClient,
        _ bob: WireClient,
        _ group: ChatID
    ) throws {
        let dialog = alice.dialog(with: bob)
        for number in 0..<messages {
            try (number % 2 == 0 ? alice : bob).send(
                "word\(number) drum",
                to: group,
                cid: Int64(10 + number)
            )
        }
        let first = try alice.send("hello", to: dialog, cid: 100).message.id
        let second = try bob.send("hello too", to: dialog, cid: 101).message.id
        try bob.delete([try bob.send("gone", to: dialog, cid: 102).message.id], in: dialog)
        try alice.delete([second], in: dialog, forMe: true)
        try alice.send("note", to: ChatID(0), cid: 103)
        let fire = NewReaction(id: "🔥")
        try bob.call(MsgReactionRequest(chatID: dialog, messageID: first, reaction: fire))
        let asked = try alice.call(
            MsgSendRequest(chatID: group, message: NewMessage(cid: 104, attaches: [.poll()]))
        ).message
        if let poll = asked.attaches.stored?.first?.pollID {
            try bob.call(
                SendVoteRequest(chatID: group, messageID: asked.id, pollID: poll, answersIDs: [2])
            )
        }
        try alice.schedule("later", at: wallNow + 3_600_000, in: dialog, cid: 105)
        try alice.call(DraftSaveRequest(chatID: dialog, draft: NewDraft(text: "draft")))
        try alice.call(FoldersUpdateRequest(id: "a", title: "Drums", include: [dialog]))
        try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .add))
        try alice.call(
            ConfigRequest(
                settings: SettingsChange(
                    user: NameMap([("INACTIVE_TTL", AnyValue("6M" as Text))]),
                    chats: IDMap([(dialog, NameMap([("led", AnyValue(Int64(1)))]))])
                )
            )
        )
        try alice.call(ComplainRequest(ids: [bob.userID.rawValue], reasonID: 7))
        let carol = try server.signUp("Carol")
        let left = try alice.createGroup("Left", with: [carol], cid: 106)
        try carol.call(ChatLeaveRequest(chatID: left))
        try carol.setPassword("secret-1", hint: "hint")
        try carol.call(AuthCreateTrackRequest(type: 0))
        let closed = try alice.createGroup("Closed", with: [], cid: 107)
        try alice.ask(for: closed)
        if let link = try alice.call(
            ChatUpdateRequest(chatID: closed, revokePrivateLink: true)
        ).chat.link {
            try carol.call(ChatJoinRequest(link: link))
        }
        _ = try server.admin(.stats(sinceDays: 1))
        try server.indexWords()
    }

    /// Inserts one row into each table that is still empty. The test would need many requests to
    /// fill these tables.
    private static func fillRest(_ connection: SQLiteConnection) throws {
        for table in try tables(of: connection) {
            let count = try connection.prepare("SELECT count(*) FROM \(table)")
            defer { count.reset() }
            guard try count.step(), count.int(0) == 0 else { continue }
            let columns = try Self.columns(of: table, connection)
            let values = columns.map { $0.isNumber ? "1" : $0.isText ? "'x'" : "x'80'" }
            try connection.execute(
                "INSERT INTO \(table) (\(columns.map(\.name).joined(separator: ", "))) "
                    + "VALUES (\(values.joined(separator: ", ")))"
            )
        }
    }

    // MARK: - Stored data

    private static func tables(of connection: SQLiteConnection) throws -> [String] {
        let statement = try connection.prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
                + "AND name <> 'schema_migration' ORDER BY name"
        )
        defer { statement.reset() }
        var names: [String] = []
        while try statement.step() { names.append(statement.string(0)) }
        return names
    }

    private static func columns(
        of table: String,
        _ connection: SQLiteConnection
    ) throws -> [(name: String, isNumber: Bool, isText: Bool, isKey: Bool)] {
        let statement = try connection.prepare(
            "SELECT name, type, pk FROM pragma_table_info('\(table)')"
        )
        defer { statement.reset() }
        var columns: [(name: String, isNumber: Bool, isText: Bool, isKey: Bool)] = []
        while try statement.step() {
            let type = statement.string(1).uppercased()
            columns.append(
                (statement.string(0), type == "INTEGER", type == "TEXT", statement.int(2) > 0)
            )
        }
        return columns
    }

    /// Returns all integer columns of the store.
    func columns() throws -> [StoreColumn] {
        let connection = try SQLiteConnection(path: copy, mode: .immutable)
        return try Self.tables(of: connection).flatMap { table in
            let columns = try Self.columns(of: table, connection)
            let keys = columns.filter(\.isKey).map(\.name)
            return columns.filter(\.isNumber).map { column in
                StoreColumn(
                    table: table,
                    name: column.name,
                    keys: keys.isEmpty ? ["rowid"] : keys,
                    range: StoreCheck.ranges["\(table).\(column.name)"]
                )
            }
        }
    }

    /// Applies a statement to a copy of the store. Returns the data directory of the copy, and
    /// whether the statement changed a row. An `UPDATE OR IGNORE` changes no row if it sets a key
    /// that another row has.
    func copy(changedBy sql: String) throws -> (directory: String, hasChanged: Bool) {
        let directory = try TestServer.temporaryDirectory()
        let path = "\(directory)/tambour.db"
        try Data(database).write(to: URL(fileURLWithPath: path))
        let connection = try SQLiteConnection(path: path, mode: .readWrite)
        let before = connection.rowsChanged
        try connection.execute(sql)
        return (directory, connection.rowsChanged > before)
    }

    // MARK: - Requests

    /// Sends the requests of both users to a server that runs on the store. Ignores refusals and
    /// failures.
    func visit(_ server: TestServer) {
        for (token, _) in people {
            guard let client = try? server.connect() else { continue }
            client.token = token
            guard (try? server.login(client)) != nil || (try? server.login(client, since: 1)) != nil
            else { continue }
            for (index, chat) in chats.enumerated() { use(chat, Int64(index), client) }
            useRest(client)
        }
    }

    private func use(_ chat: ChatID, _ index: Int64, _ client: WireClient) {
        let page = try? client.history(chat, from: wallNow, backward: 100, forward: 10)
        _ = try? client.history(chat, from: .max, backward: .max, forward: .max)
        _ = try? client.call(ChatChangesRequest(chatID: chat, since: 1, count: 200))
        _ = try? client.call(ChatMediaRequest(chatID: chat, attachTypes: [.poll], backward: 20))
        _ = try? client.call(MsgSearchRequest(chatID: chat, query: "drum", count: 100))
        _ = try? client.chat(chat)
        _ = try? client.call(ChatMembersRequest(chatID: chat, count: 20))
        let sent = try? client.send("more", to: chat, cid: 1_000 + index).message.id
        for id in [sent, page?.messages?.first?.id].compactMap({ $0 }) {
            _ = try? client.call(
                MsgEditRequest(chatID: chat, messageID: id, text: "other drum")
            )
            _ = try? client.call(
                MsgReactionRequest(chatID: chat, messageID: id, reaction: NewReaction(id: "🔥"))
            )
            _ = try? client.call(MsgGetRequest(chatID: chat, messageIDs: [id]))
            _ = try? client.call(MsgGetStatRequest(chatID: chat, messageIDs: [id]))
            _ = try? client.call(
                ChatMarkRequest(type: .setAsUnread, chatID: chat, messageID: id)
            )
        }
        if let sent { _ = try? client.delete([sent], in: chat) }
        _ = try? client.call(ChatHistoryRequest(chatID: chat, itemType: .delayed))
        _ = try? client.schedule("later", at: wallNow + 60_000, in: chat, cid: 2_000 + index)
        _ = try? client.call(DraftSaveRequest(chatID: chat, draft: NewDraft(text: "draft")))
        _ = try? client.call(
            MsgDeleteRangeRequest(chatID: chat, startTime: 1, endTime: 1_000)
        )
    }

    private func useRest(_ client: WireClient) {
        _ = try? client.call(ChatsListRequest(marker: nil, count: 100))
        _ = try? client.call(ContactListRequest(count: 100))
        _ = try? client.call(ContactInfoRequest(contactIDs: people.map(\.id)))
        _ = try? client.call(ContactPresenceRequest(contactIDs: people.map(\.id)))
        _ = try? client.call(ChatSearchRequest(query: "drum", count: 100))
        _ = try? client.call(PublicSearchRequest(query: "bob", count: 100))
        _ = try? client.call(FoldersGetRequest())
        _ = try? client.call(FoldersUpdateRequest(id: "b", title: "More"))
        _ = try? client.call(SessionsInfoRequest())
        _ = try? client.call(ObjPullRequest(since: 0, count: 100))
        _ = try? client.call(SyncMoreRequest(kind: .chats, since: 1, upTo: wallNow, count: 100))
        _ = try? client.createGroup("New", with: [], cid: 3_000)
        _ = try? client.call(
            ConfigRequest(
                settings: SettingsChange(user: NameMap([("X", AnyValue("1" as Text))]))
            )
        )
        client.close()
    }

    /// Waits until the server has sent due messages, indexed words and purged old data.
    func waitForOwnWork(of server: TestServer) throws {
        for work in [server.server.messenger.housekeeper.run, server.server.messenger.delayed.run] {
            let done = DispatchSemaphore(value: 0)
            work { done.signal() }
            guard done.wait(timeout: .now() + 60) == .success else {
                throw WireClient.Failure.timedOut("the server's own work")
            }
        }
        try? server.run { tx in
            for _ in 0..<20 where tx.hasWordsToIndex { try tx.indexWords() }
        }
    }

    /// Runs all admin commands that only read. Then erases the second user.
    func administer(_ server: TestServer) throws {
        let requests: [AdminService.Request] = [
            .users(AdminFilter()), .users(AdminFilter([.idleDays: "36500"])),
            .chats(AdminFilter()), .sessions(AdminFilter([.idleDays: "1"])), .reports,
            .stats(sinceDays: .max), .check, .clock, .audit(AdminFilter()), .defaultChats,
        ]
        let ids = people.map { AdminService.Request.export(user: "\($0.id)") }
        let shown = people.map { AdminService.Request.user("\($0.id)") }
        for request in requests + ids + shown {
            // Ignore refusals. A refusal also shows that the server still works.
            _ = try? server.admin(request)
        }
        _ = try? server.admin(.erase(user: "\(people[1].id)", isConfirmed: true))
    }
}
