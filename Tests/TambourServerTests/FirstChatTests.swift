import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("A first chat")
struct FirstChatTests {
    @Test("a message reaches every device of both, and only once")
    func fanOut() throws {
        let server = try TestServer()
        defer { server.remove() }
        let alice = try server.signUp("Alice")
        let bob = try server.signUp("Bob")
        let laptop = try server.signIn(phoneOf: bob, device: "laptop")

        let reply = try alice.send("hello", to: alice.dialog(with: bob), cid: 1)

        for device in [bob, laptop] {
            let push = try device.next(.notifMessage, as: NotifMessage.self)
            #expect(push.message.id == reply.message.id)
            #expect(push.message.text == "hello")
            #expect(try device.takePushes().filter { $0.opcode == .notifMessage }.isEmpty)
        }
        #expect(try alice.takePushes().filter { $0.opcode == .notifMessage }.isEmpty)
    }

    @Test("the same cid again returns the first result and tells nobody twice")
    func sameCID() throws {
        let server = try TestServer()
        defer { server.remove() }
        let alice = try server.signUp("Alice")
        let bob = try server.signUp("Bob")

        let first = try alice.send("hello", to: alice.dialog(with: bob), cid: 7)
        let again = try alice.send("changed", to: alice.dialog(with: bob), cid: 7)

        #expect(again.message.id == first.message.id)
        #expect(again.message.text == "hello")
        #expect(again.prevMessageID == first.prevMessageID)
        #expect(try bob.takePushes().filter { $0.opcode == .notifMessage }.count == 1)
    }
}
