import TambourProtocol
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

/// A kind of item. The server limits how many items of each kind a user may have.
enum Quota: String, CaseIterable {
    case entities, drafts, folders, contacts, blocked, settings, settingsBytes, chatSettings
    case scheduled, reports

    /// Returns limits under which a user may have at most `count` items of this kind.
    func limits(_ count: Int) -> [String: Int] {
        switch self {
        case .entities: ["maxObjects": count]
        case .drafts: ["maxDrafts": count]
        case .folders: ["maxFolders": count]
        case .contacts, .blocked: ["maxContacts": count]
        case .settings: ["maxSettings": count]
        // Each setting takes 107 bytes: a name of 4, and a value of 101 with a header of 2.
        case .settingsBytes: ["maxSettingsBytes": count * 107]
        case .chatSettings: ["maxChatSettings": count]
        case .scheduled: ["maxDelayed": count]
        case .reports: ["maxReports": count]
        }
    }
}

/// Alice and the other users. Alice writes to them, adds them, blocks them and reports them.
private struct Owner {
    let server: TestServer
    let alice: WireClient
    let others: [WireClient]

    private var device: EntityDevice { EntityDevice(client: alice) }

    /// Adds the item with this number.
    ///
    /// - Returns: The error code of the refusal; nil if the server adds the item.
    func add(_ number: Int, to quota: Quota) throws -> RequestError.Code? {
        func call(_ request: some WireRequest) throws -> RequestError.Code? {
            try alice.refusalCode(of: request)
        }
        let other = others[number]
        let dialog = alice.dialog(with: other)
        switch quota {
        case .entities:
            // An account's natural key is its name.
            let fields = ["name": FieldValue.string("\(number)")]
            let result = try device.push(
                .create(.account, .local(1), fields, opID: nextOperation())
            )
            // Each operation of a push has a separate result.
            if result == .refused(.tooMany, "/type") { return .protoPayload }
            return result.applied == nil ? .notAllowed : nil
        case .drafts:
            return try call(DraftSaveRequest(userID: other.userID, draft: NewDraft(text: "x")))
        case .folders: return try call(FoldersUpdateRequest(id: Text("f\(number)"), title: "x"))
        case .contacts:
            return try call(ContactUpdateRequest(contactID: other.userID, action: .add))
        case .blocked:
            return try call(ContactUpdateRequest(contactID: other.userID, action: .block))
        case .settings, .settingsBytes: return try call(Self.setting(number, isThere: true))
        case .chatSettings:
            let value = NameMap([(Text("mute"), AnyValue(true))])
            let change = SettingsChange(chats: IDMap([(dialog, value)]))
            return try call(ConfigRequest(settings: change))
        case .scheduled:
            let time = server.server.messenger.environment.wallMs() + 3_600_000
            let message = NewMessage(
                cid: Int64(number + 1) * 1_000 + nextOperation(),
                text: "x",
                delayedAttributes: DelayedAttributes(timeToFire: time)
            )
            return try call(MsgSendRequest(userID: other.userID, message: message))
        case .reports: return try call(ComplainRequest(ids: [other.userID.rawValue], reasonID: 1))
        }
    }

    /// Removes the item with this number.
    func remove(_ number: Int, from quota: Quota) throws {
        let other = others[number]
        let dialog = alice.dialog(with: other)
        switch quota {
        case .entities:
            let entities = try device.pullAll().entities.filter { !$0.isDeleted }
            let entity = try #require(entities.first)
            let delete = EntityOperation.delete(
                .account,
                entity.id,
                base: entity.version,
                opID: nextOperation()
            )
            #expect(try device.push(delete).applied != nil)
        case .drafts: try alice.call(DraftDiscardRequest(userID: other.userID))
        case .folders: try alice.call(FoldersDeleteRequest(folderIDs: [Text("f\(number)")]))
        case .contacts:
            try alice.call(ContactUpdateRequest(contactID: other.userID, action: .remove))
        case .blocked:
            try alice.call(ContactUpdateRequest(contactID: other.userID, action: .unblock))
        case .settings, .settingsBytes: try alice.call(Self.setting(number, isThere: false))
        case .chatSettings:
            let value = NameMap([(Text("mute"), AnyValue(unchecked: Bytes([0xC0])))])
            let change = SettingsChange(chats: IDMap([(dialog, value)]))
            try alice.call(ConfigRequest(settings: change))
        case .scheduled:
            let request = ChatHistoryRequest(chatID: dialog, itemType: .delayed)
            let waiting = try #require(try alice.call(request).messages?.first)
            try alice.call(
                MsgDeleteRequest(chatID: dialog, messageIDs: [waiting.id], itemType: .delayed)
            )
        case .reports:
            let line = try #require(try server.admin(.reports).first)
            _ = try server.admin(.closeReport(String(line.prefix { $0 != " " })))
        }
    }

    /// Returns the number of items that the server reports to the owner.
    func count(of quota: Quota) throws -> Int {
        let login = try server.reconnect(alice).login
        switch quota {
        case .entities: return try device.pullAll().entities.count { !$0.isDeleted }
        case .drafts:
            let drafts = login.drafts
            return (drafts?.chats?.saved.count ?? 0) + (drafts?.users?.saved.count ?? 0)
        case .folders: return try alice.call(FoldersGetRequest()).foldersOrder.count - 1
        case .contacts:
            let ids = Set(others.map(\.userID))
            return login.contacts.count { ids.contains($0.id) }
        case .blocked: return try alice.call(ContactListRequest(status: .blocked)).contacts.count
        case .settings, .settingsBytes: return try settings(in: login)
        case .chatSettings: return login.config?.chats?.count ?? 0
        case .scheduled:
            return try others.reduce(0) { count, other in
                let request = ChatHistoryRequest(
                    chatID: alice.dialog(with: other),
                    itemType: .delayed
                )
                // A dialog without messages disappears when the other user is gone.
                if try alice.refusalCode(of: request) == .chatNotFound { return count }
                return try count + (alice.call(request).messages ?? []).count
            }
        case .reports: return try server.admin(.reports).count
        }
    }

    private func settings(in login: LoginReply) throws -> Int {
        guard let user = login.config?.user else { return 0 }
        return try SettingRules.map(user).pairs.count { "\($0.0)".hasPrefix("set") }
    }

    private static func setting(_ number: Int, isThere: Bool) -> ConfigRequest {
        let value =
            isThere
            ? AnyValue(Text(String(repeating: "x", count: 101)))
            : AnyValue(unchecked: Bytes([0xC0]))
        let name = Text("set\(number)")
        return ConfigRequest(settings: SettingsChange(user: NameMap([(name, value)])))
    }

    private func nextOperation() -> Int64 {
        server.server.messenger.environment.wallMs() << 8 | Int64.random(in: 0..<256)
    }
}

extension WireClient {
    /// Returns the error code of a refused request; nil if the request succeeds.
    func refusalCode(of request: some WireRequest) throws -> RequestError.Code? {
        do {
            _ = try call(request)
            return nil
        } catch Failure.refused(let error) {
            return error.code
        }
    }
}

@Suite("What a user may have")
struct QuotaTests {
    @Test("one more is refused, and one less makes room", arguments: Quota.allCases)
    func full(_ quota: Quota) throws {
        try withServer(limits: quota.limits(3)) { server in
            let alice = try server.signUp("Alice")
            let owner = Owner(
                server: server,
                alice: alice,
                others: try (0..<5).map { try server.signUp("User \($0)") }
            )
            for number in 0..<3 { #expect(try owner.add(number, to: quota) == nil) }
            #expect(try owner.add(3, to: quota) == .protoPayload)
            #expect(try owner.count(of: quota) == 3)
            try owner.remove(0, from: quota)
            #expect(try owner.add(3, to: quota) == nil)
            #expect(try owner.add(4, to: quota) == .protoPayload)
            #expect(try owner.count(of: quota) == 3)
        }
    }

    /// The reasons why a user can no longer be reached.
    enum Leaving: CaseIterable {
        case erased, blockedByOperator, hasBlocked
    }

    @Test(
        "what has to do with somebody who is gone can be taken away",
        arguments: [Quota.drafts, .contacts, .blocked, .chatSettings, .scheduled],
        Leaving.allCases
    )
    func gone(_ quota: Quota, leaving: Leaving) throws {
        try withServer(limits: quota.limits(2)) { server in
            let alice = try server.signUp("Alice")
            let others = try (0..<3).map { try server.signUp("User \($0)") }
            let owner = Owner(server: server, alice: alice, others: others)
            for number in 0..<2 { #expect(try owner.add(number, to: quota) == nil) }
            #expect(try owner.add(2, to: quota) == .protoPayload)
            let user = "\(others[0].userID)"
            switch leaving {
            case .erased: _ = try server.admin(.erase(user: user, isConfirmed: true))
            case .blockedByOperator: _ = try server.admin(.block(user: user, isBlocked: true))
            case .hasBlocked:
                try others[0].call(
                    ContactUpdateRequest(contactID: alice.userID, action: .block)
                )
            }
            // The erasure of a user also deletes the contacts that other users have with this user.
            // If the item still exists, Alice removes it.
            if try owner.count(of: quota) == 2 { try owner.remove(0, from: quota) }
            #expect(try owner.count(of: quota) == 1)
            #expect(try owner.add(2, to: quota) == nil)
        }
    }

    @Test("settings of a chat that was left can be taken away, not changed")
    func settingsOfLeftChat() throws {
        try withPair(limits: Quota.chatSettings.limits(1)) { _, alice, bob, dialog in
            let group = try bob.createGroup("Group", with: [alice], cid: 1)
            func change(_ chat: ChatID, _ value: AnyValue) -> ConfigRequest {
                let map = NameMap([(Text("mute"), value)])
                return ConfigRequest(settings: SettingsChange(chats: IDMap([(chat, map)])))
            }
            let none = AnyValue(unchecked: Bytes([0xC0]))
            try alice.call(change(group, AnyValue(true)))
            try alice.call(ChatLeaveRequest(chatID: group))
            #expect(try alice.code(of: change(group, AnyValue(false))) == .chatNotFound)
            #expect(try alice.code(of: change(dialog, AnyValue(true))) == .protoPayload)
            #expect(try alice.call(change(group, none)).chats?[group] == SettingRules.none)
            #expect(try alice.code(of: change(group, none)) == .chatNotFound)
            try alice.call(change(dialog, AnyValue(true)))
        }
    }

    @Test("who has more than that reads and takes away", arguments: Quota.allCases)
    func above(_ quota: Quota) throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let first = try TestServer(overrides: quota.limits(4), dataDirectory: directory)
        let alice = try first.signUp("Alice")
        let others = try (0..<6).map { try first.signUp("User \($0)") }
        let before = Owner(server: first, alice: alice, others: others)
        for number in 0..<4 { #expect(try before.add(number, to: quota) == nil) }
        first.stop()

        let server = try TestServer(overrides: quota.limits(2), dataDirectory: directory)
        defer { server.stop() }
        // The server forgets at a restart which users Alice has found. So tell it again.
        server.server.messenger.foundPeople.note(others.map(\.userID), by: alice.userID)
        let owner = Owner(
            server: server,
            alice: try server.reconnect(alice).client,
            others: others
        )
        #expect(try owner.count(of: quota) == 4)
        #expect(try owner.add(4, to: quota) == .protoPayload)
        for number in 0..<2 { try owner.remove(number, from: quota) }
        #expect(try owner.count(of: quota) == 2)
        #expect(try owner.add(4, to: quota) == .protoPayload)
        try owner.remove(2, from: quota)
        #expect(try owner.add(5, to: quota) == nil)
        #expect(try owner.count(of: quota) == 2)
    }
}
