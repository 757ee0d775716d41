import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourServer

@Suite("A login holds all settings there may be")
struct LoginSettingsTests {
    /// Settings of one chat, about 25 KB.
    private static let many = NameMap(
        (0..<100).map {
            (Text("name\($0)"), AnyValue(Text(String(repeating: "x", count: 240))))
        }
    )

    @Test("what a login cannot bring is refused")
    func quota() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let others = try (0..<30).map { try server.signUp("User \($0)") }
            var kept = 0
            for other in others {
                let change = SettingsChange(
                    chats: IDMap([(alice.dialog(with: other), Self.many)])
                )
                do {
                    _ = try alice.call(ConfigRequest(settings: change))
                    kept += 1
                } catch WireClient.Failure.refused(let error) {
                    #expect(error.code == .protoPayload)
                    break
                }
            }
            #expect((5..<20).contains(kept))
            let (client, login) = try server.reconnect(alice)
            #expect(login.config?.chats?.count == kept)
            #expect(try client.call(Login2Request()).config?.chats?.count == kept)
        }
    }

    @Test("an account of an older store that has more logs in, and may take away")
    func olderStore() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let others = try (0..<60).map { try server.signUp("User \($0)") }
            let chats = others.map { alice.dialog(with: $0) }
            let user = alice.userID
            // Store the settings as an older server would. It limited the number of settings, but
            // not their bytes.
            try server.run { tx in
                for chat in chats { try tx.set(AnyValue(Self.many), of: chat, for: user) }
                let account = try #require(try tx.reader.account(user))
                _ = try tx.settingsChanged(of: account, privacy: account.privacy)
            }
            let (client, login) = try server.reconnect(alice)
            let brought = try #require(login.config?.chats?.count)
            #expect((10..<60).contains(brought))
            #expect(try client.call(Login2Request()).config?.chats?.count == brought)
            let more = SettingsChange(user: NameMap([(Text("one"), AnyValue("more" as Text))]))
            #expect(try client.code(of: ConfigRequest(settings: more)) == .protoPayload)
            let none = AnyValue(unchecked: Bytes([0xC0]))
            let fewer = SettingsChange(
                chats: IDMap(
                    chats.prefix(55).map { ($0, NameMap(Self.many.pairs.map { ($0.0, none) })) }
                )
            )
            for pair in fewer.chats.pairs {
                let change = SettingsChange(chats: IDMap([pair]))
                try client.call(ConfigRequest(settings: change))
            }
            #expect(
                try client.call(ConfigRequest(settings: more)).user["one"]
                    == AnyValue("more" as Text)
            )
            #expect(try server.reconnect(alice).login.config?.chats?.count == 5)
        }
    }
}
