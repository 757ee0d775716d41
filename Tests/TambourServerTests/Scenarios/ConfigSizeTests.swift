import TambourProtocol
import TambourTesting
import Testing

@Suite("CONFIG (22) that names a chat several times")
struct ConfigSizeTests {
    private func change(_ pairs: [(ChatID, [(Text, AnyValue)])]) -> ConfigRequest {
        ConfigRequest(
            settings: SettingsChange(chats: IDMap(pairs.map { ($0.0, NameMap($0.1)) }))
        )
    }

    private func settings(of chat: ChatID, in push: NotifConfig) throws -> NameMap<AnyValue> {
        let value = try #require(push.config.chats?[chat])
        return try MessagePackReader.read(value.bytes, limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try NameMap<AnyValue>.read(from: &reader)
        }
    }

    @Test("merges the changes in their order, and tells of the chat once")
    func merged() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let reply = try alice.call(
                change([
                    (dialog, [("led", AnyValue(1 as Int64)), ("vibr", AnyValue(true))]),
                    (ChatID(0), [("led", AnyValue(9 as Int64))]),
                    (dialog, [("led", AnyValue(2 as Int64)), ("vibr", .null)]),
                ])
            )
            #expect(reply.chats?.pairs.map(\.0) == [dialog, ChatID(0)])
            let push = try tablet.next(.notifConfig, as: NotifConfig.self)
            #expect(push.config.chats?.pairs.map(\.0) == [dialog, ChatID(0)])
            let kept = try settings(of: dialog, in: push)
            #expect(kept.pairs.map(\.0) == ["led"] && kept["led"]?.int == 2)
        }
    }

    @Test("costs what one mention costs, however often the chat is named")
    func manyMentions() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let value = AnyValue(Text(String(repeating: "x", count: 250)))
            let large = (0..<100).map {
                (Text("\($0)\(String(repeating: "n", count: 200))"), value)
            }
            _ = try alice.call(change([(ChatID(0), large)]))
            let first = try tablet.next(.notifConfig, as: NotifConfig.self)
            let again = [(Text("0\(String(repeating: "n", count: 200))"), AnyValue(true))]
            let reply = try alice.call(change(Array(repeating: (ChatID(0), again), count: 400)))
            #expect(reply.chats?.count == 1)
            let push = try tablet.next(.notifConfig, as: NotifConfig.self)
            #expect(push.config.chats?.count == 1)
            #expect(push.encoded().count <= first.encoded().count)
        }
    }

    @Test("is refused when the settings of the named chats would not fit a reply")
    func tooMuch() throws {
        try withPair(limits: ["maxConfigReplyBytes": 1_000]) { server, alice, bob, dialog in
            let value = AnyValue(Text(String(repeating: "x", count: 200)))
            let some = (0..<3).map { (Text("name \($0)"), value) }
            _ = try alice.call(change([(dialog, some)]))
            _ = try alice.call(change([(ChatID(0), some)]))
            let both = change([(dialog, [("led", .null)]), (ChatID(0), [("led", .null)])])
            #expect(try alice.code(of: both) == .protoPayload)
        }
    }
}
