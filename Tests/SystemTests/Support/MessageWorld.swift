import Foundation
import TambourProtocol
import TambourTesting

/// A server with two users: Alice, whose device the tests drive, and Bob, who writes to her.
final class MessageWorld {
    let directory: URL
    let server: TestServer
    let alice: WireClient
    let bob: WireClient
    let device: TambourAccount
    private var isServing = true

    init() async throws {
        directory = URL(fileURLWithPath: try TestServer.temporaryDirectory())
        server = try TestServer(dataDirectory: directory.appendingPathComponent("s").path)
        alice = try server.signUp("Alice")
        bob = try server.signUp("Bob")
        device = TambourAccount(directory: directory, name: "alice")
        try await logIn(alice)
    }

    var chat: ChatID { alice.dialog(with: bob) }

    /// Returns a new token for the device of `person`.
    func token(of person: WireClient) throws -> String {
        let session = try server.signIn(phoneOf: person, device: "tambour")
        defer { session.close() }
        return session.token
    }

    func logIn(_ person: WireClient) async throws {
        try await device.logIn(to: server.address, token: token(of: person))
    }

    /// Makes Bob send Alice a message for each number.
    func hear(_ numbers: ClosedRange<Int>) throws {
        for number in numbers { try bob.send("b\(number)", to: chat, cid: Int64(number)) }
    }

    /// Makes Bob reply to one of Alice's messages.
    func answer(_ text: Text, to message: MessageID, cid: Int64) throws {
        let link = NewLink(type: .reply, messageID: message)
        let message = NewMessage(cid: cid, text: text, link: link)
        try bob.call(MsgSendRequest(chatID: chat, message: message))
    }

    func stopServer() {
        if isServing { server.stop() }
        isServing = false
    }

    func close() {
        stopServer()
        try? FileManager.default.removeItem(at: directory)
    }
}
