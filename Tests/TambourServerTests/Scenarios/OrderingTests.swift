import Dispatch
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

@Suite("Order of requests and replies")
struct OrderingTests {
    @Test("a history between two sends sees exactly the first, however fast they come")
    func pipelined() throws {
        try withPair { _, alice, bob, dialog in
            try alice.send("0", to: dialog, cid: 1)
            var histories: [(UInt16, Int)] = []
            var sends: [UInt16] = []
            for round in 1...60 {
                sends.append(
                    try alice.send(
                        MsgSendRequest(
                            chatID: dialog,
                            message: NewMessage(cid: Int64(round) + 1, text: Text("\(round)"))
                        )
                    )
                )
                let request = ChatHistoryRequest(chatID: dialog, backward: 200)
                histories.append((try alice.send(request), round + 1))
            }
            for (number, count) in histories {
                let page = try alice.reply(to: number, as: ChatHistoryReply.self)
                #expect(page.messages?.count == count)
            }
            for number in sends { _ = try alice.reply(to: number, as: MsgSendReply.self) }
            let pushed = try bob.news().filter { $0.opcode == .notifMessage }
                .map { try $0.decode(as: NotifMessage.self).message.id }
            #expect(pushed.count == 61)
            #expect(pushed == pushed.sorted())
        }
    }

    @Test("a PING does not wait for what is under way")
    func ping() throws {
        try withPair { server, alice, _, dialog in
            // The engine blocks until the PING has its answer.
            let gate = DispatchSemaphore(value: 0)
            server.server.messenger.engine.post(
                Command { _ in
                    gate.wait()
                    return .done
                }
            )
            var isOpen = false
            func open() {
                if !isOpen { gate.signal() }
                isOpen = true
            }
            defer { open() }
            let send = try alice.send(
                MsgSendRequest(chatID: dialog, message: NewMessage(cid: 1, text: "x"))
            )
            let ping = try alice.send(PingRequest())
            let before = alice.receivedPackets
            _ = try alice.reply(to: ping)
            #expect(alice.receivedPackets == before + 1)
            open()
            _ = try alice.reply(to: send)
        }
    }

    @Test("when a send is answered, the others have been told")
    func repliesAfterEvents() throws {
        try withPair { _, alice, bob, dialog in
            for cid in 1...100 {
                let reply = try alice.send("\(cid)", to: dialog, cid: Int64(cid))
                let pushed = try bob.news().filter { $0.opcode == .notifMessage }
                    .map { try $0.decode(as: NotifMessage.self).message.id }
                #expect(pushed == [reply.message.id])
            }
        }
    }

    @Test("pushes are numbered away from what the client has in flight, below 256")
    func pushNumbers() throws {
        try withPair { _, alice, bob, dialog in
            for round in 1...300 {
                try bob.call(PingRequest())
                guard round % 50 == 0 else { continue }
                try alice.send("\(round)", to: dialog, cid: Int64(round))
                let last = try bob.send(PingRequest())
                _ = try bob.reply(to: last)
                for push in bob.pushes {
                    let distance = (Int(push.sequence) - Int(last) & 0xFF + 256) % 256
                    #expect(push.sequence < 256)
                    #expect((100...156).contains(distance), "\(push.sequence) \(last)")
                }
                _ = try bob.takePushes()
            }
        }
    }

    @Test("more requests at once than may be in flight are all answered")
    func manyInFlight() throws {
        try withPair(limits: ["maxRequestsInFlight": 4]) { _, alice, bob, dialog in
            let numbers = try (1...500).map { cid in
                try alice.send(
                    MsgSendRequest(
                        chatID: dialog,
                        message: NewMessage(cid: Int64(cid), text: "x")
                    )
                )
            }
            let ids = try numbers.map {
                try alice.reply(to: $0, as: MsgSendReply.self).message.id
            }
            #expect(Set(ids).count == 500)
            #expect(ids == ids.sorted())
            #expect(try bob.news().filter { $0.opcode == .notifMessage }.count == 500)
        }
    }
}
