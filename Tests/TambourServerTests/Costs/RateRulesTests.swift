import TambourMessenger
import TambourProtocol
import Testing

/// Costs that depend on the request's content and are in no table.
@Suite("What requests cost")
struct RateRulesTests {
    private typealias Charge = RateRules.Charge

    private func charge(_ request: QueryRequest) -> RateRules.Charge {
        RateRules.charges(for: request, limits: .standard).first
    }

    @Test("a page is paid by the rows asked for, as many as are served at most")
    func pages() throws {
        func history(_ backward: Int64, _ forward: Int64 = 0) -> Int {
            charge(
                .chatHistory(
                    ChatHistoryRequest(chatID: ChatID(1), forward: forward, backward: backward)
                )
            ).units
        }
        let most = Limits.standard.maxHistoryPage
        #expect(history(30) - history(0) == 30)
        #expect(history(30, 12) - history(0) == 42)
        #expect(history(.max) == history(Int64(most)))
        #expect(history(-5) == history(0))
        #expect(history(.min) == history(0))
        let members = charge(.chatMembers(ChatMembersRequest(chatID: ChatID(1)))).units
        let asked = Int64(Limits.standard.membersPageSize)
        let explicit = ChatMembersRequest(chatID: ChatID(1), count: asked)
        #expect(charge(.chatMembers(explicit)).units == members)
    }

    @Test("ids are paid each, also one that is named twice")
    func ids() {
        let ids = [Int64](repeating: 7, count: 1000).map { MessageID($0) }
        let many = charge(.msgGet(MsgGetRequest(chatID: ChatID(1), messageIDs: ids)))
        let none = charge(.msgGet(MsgGetRequest(chatID: ChatID(1), messageIDs: [])))
        #expect(many.units - none.units == 1000)
        #expect(none.units > 0)
    }

    @Test("a message that makes a group is paid as a group with its invitations")
    func creation() {
        let control = NewAttach(type: .control, event: "new", userIDs: [UserID(2), UserID(3)])
        let create = MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
        let charges = RateRules.charges(for: .msgSend(create), limits: .standard)
        #expect(charges.first == .init(bucket: .create, units: 1))
        #expect(charges.second == .init(bucket: .invite, units: 2))
        let send = MsgSendRequest(chatID: ChatID(1), message: NewMessage(cid: 1))
        let sending = RateRules.charges(for: .msgSend(send), limits: .standard)
        #expect(sending.first == .init(bucket: .send, units: 1))
        #expect(sending.second == nil)
    }

    @Test("only who adds members pays for invitations")
    func members() {
        func charge(_ operation: MemberOperation, _ type: MemberType? = nil) -> RateRules.Charge {
            let request = ChatMembersUpdateRequest(
                chatID: ChatID(1),
                userIDs: [UserID(2), UserID(3)],
                operation: operation,
                type: type
            )
            return RateRules.charges(for: .chatMembersUpdate(request), limits: .standard).first
        }
        #expect(charge(.add) == .init(bucket: .invite, units: 2))
        #expect(charge(.add, .admin) == .init(bucket: .manage, units: 2))
        #expect(charge(.remove) == .init(bucket: .manage, units: 2))
    }

    @Test("settings are paid for each chat, also one that is named twice")
    func settings() {
        let chats = IDMap(
            [ChatID](repeating: ChatID(1), count: 400).map { ($0, NameMap<AnyValue>()) }
        )
        let request = ConfigRequest(settings: SettingsChange(chats: chats))
        let charge = RateRules.charges(for: .config(request), limits: .standard).first
        #expect(charge == .init(bucket: .settings, units: 401))
        let empty = RateRules.charges(for: .config(ConfigRequest()), limits: .standard).first
        #expect(empty == .init(bucket: .settings, units: 1))
    }
}
