import TambourProtocol
import Testing

/// The tables that are generated together with the payload types.
@Suite("Generated tables")
struct GeneratedTablesTests {
    @Test("know what is served, what is only known, and nothing else")
    func opcodes() throws {
        let send = try #require(Opcode.msgSend.info)
        #expect(send.opcode.rawValue == 64)
        #expect(send.name == "MSG_SEND")
        #expect(send.direction == .clientToServer)
        #expect(send.states == [.loggedIn])
        #expect(send.kind == .command)
        #expect(send.idempotency == .keyed)
        #expect(send.errors.contains(.chatNotFound))
        #expect(send.isServed)

        let known = try #require(Opcode(rawValue: 80).info)
        #expect(known.name == "PHOTO_UPLOAD")
        #expect(!known.isServed)
        #expect(known.states.isEmpty)

        let push = try #require(Opcode.notifTyping.info)
        #expect(push.direction == .serverToClient)
        #expect(!push.isServed)

        #expect(Opcode(rawValue: 4).info == nil)
        #expect(Opcode(rawValue: 0).info == nil)
        #expect(Opcode(rawValue: .max).info == nil)
        #expect(Opcode(rawValue: 80).description == "PHOTO_UPLOAD")
        #expect(Opcode(rawValue: 4).description == "opcode 4")
    }

    @Test("have every entry under its own number, with a name of its own")
    func table() {
        var names: Set<String> = []
        for (number, info) in OpInfo.table.enumerated() {
            guard let info else { continue }
            #expect(Int(info.opcode.rawValue) == number)
            #expect(names.insert(info.name).inserted)
            #expect(info.isServed == (info.kind != nil))
            #expect(info.isServed == !info.states.isEmpty)
            #expect(Set(info.errors).isDisjoint(with: RequestError.Code.common))
        }
        #expect(names.count > 190)
    }

    @Test("decode a request if and only if its opcode is served")
    func clientRequest() throws {
        for number in UInt16(0)...1_300 {
            let opcode = Opcode(rawValue: number)
            do {
                let request = try ClientRequest.decode(opcode, [0x80], limits: .standard)
                #expect((request != nil) == (opcode.info?.isServed ?? false), "\(opcode)")
                if let request { #expect(request.opcode == opcode) }
            } catch {
                #expect(opcode.info?.isServed == true, "\(opcode)")
                #expect(error.reason == "missing", "\(opcode)")
            }
        }
    }

    @Test("have the pair of code and message that clients look for")
    func loginToken() {
        #expect(RequestError.loginToken.code.rawValue == "login.token")
        #expect(RequestError.loginToken.message == "FAIL_LOGIN_TOKEN")
        #expect(RequestError.loginToken("other").message == "other")
        #expect(RequestError.Code.protoFrame.errorClass == .hard)
        #expect(RequestError.Code.chatNotFound.errorClass == .soft)
        #expect(RequestError.Code.overloaded.retry == .later)
    }

    @Test("read the capabilities they know and write them in their own order")
    func capabilities() {
        #expect(Capabilities(names: []) == [])
        #expect(Capabilities(names: ["no-such-thing", "lz4-large"]) == .lz4Large)
        #expect(Capabilities.lz4Large.names == ["lz4-large"])
        let all = Capabilities(names: Capabilities.table.map(\.name).reversed())
        #expect(all.names == Capabilities.table.map(\.name))
    }

    @Test("show no secrets when a request is printed")
    func secrets() throws {
        let login = LoginRequest(token: "an1SECRET", interactive: true)
        for text in ["\(login)", String(reflecting: login), "\(ClientRequest.login(login))"] {
            #expect(!text.contains("SECRET"))
            #expect(text.contains("(secret)"))
            #expect(text.contains("interactive"))
        }
        var dumped = ""
        dump(login, to: &dumped)
        #expect(!dumped.contains("SECRET"))
    }

    @Test("let names through an open enumeration and stop them at a closed one")
    func enumerations() throws {
        #expect(AttachType(name: "CONTACT") == .contact)
        #expect(AttachType(name: "HOLOGRAM") == .other("HOLOGRAM"))
        #expect(AttachType.other("HOLOGRAM").name == "HOLOGRAM")
        #expect(AttachType(name: "INLINE_KEYBOARD").name == "INLINE_KEYBOARD")
        #expect(MarkType(name: "READ_MESSAGE") == .readMessage)
        #expect(MarkType(name: "READ") == nil)
    }
}
