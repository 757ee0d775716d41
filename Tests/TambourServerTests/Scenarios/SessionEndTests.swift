import Dispatch
import TambourFraming
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

/// Keeps the engine busy until `release`. So the commands that arrive in the meantime run in a
/// fixed order.
private final class EngineHold: Sendable {
    private let gate = DispatchSemaphore(value: 0)

    init(_ server: TestServer) {
        let gate = gate
        let isRunning = DispatchSemaphore(value: 0)
        server.server.messenger.engine.post(
            Command { _ in
                isRunning.signal()
                gate.wait()
                return .done
            }
        )
        // Wait until the command runs. Later commands must not join its turn. Otherwise, the engine
        // would run commands of other accounts before them.
        isRunning.wait()
    }

    func release() { gate.signal() }
}

@Suite("What a session has asked for when it ends")
struct SessionEndTests {
    enum Ending: CaseIterable {
        case logout, closedByAnother, kicked, blocked, erased
    }

    /// Commands that each leave a trace if the server runs them.
    enum Late: CaseIterable {
        case send, mark, contact, track, token
    }

    /// Ends the session of `phone`. The engine ends the session before it runs any later request.
    private func end(
        _ phone: WireClient,
        _ ending: Ending,
        by laptop: WireClient,
        of server: TestServer
    ) throws {
        let user = phone.userID
        let engine = server.server.messenger.engine
        switch ending {
        case .logout: try phone.send(LogoutRequest())
        case .closedByAnother: try laptop.send(SessionsCloseRequest())
        case .kicked:
            engine.post(
                Command { tx in
                    try tx.closeSessions(tx.reader.sessions(of: user).map(\.id), of: user)
                    return .done
                }
            )
        case .blocked:
            engine.post(
                Command { tx in
                    try tx.setBlocked(true, user)
                    return .done
                }
            )
        case .erased:
            engine.post(
                Command { tx in
                    guard let account = try tx.reader.account(user) else { return .done }
                    try tx.beginErasure(of: account)
                    return .done
                }
            )
        }
        // A fence: after these replies, the request that ends the session is in the engine's queue.
        _ = try laptop.call(PingRequest())
        _ = try phone.call(PingRequest())
    }

    @Test(
        "is not carried out after the end",
        arguments: Ending.allCases,
        Late.allCases
    )
    func late(ending: Ending, late: Late) throws {
        try withPair { server, alice, bob, chat in
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let first = try bob.send("hi", to: chat, cid: 1).message
            // The dialog must be open and listed before the session ends.
            try alice.send("hello", to: chat, cid: 1)
            let user = alice.userID
            func traces() throws -> [Int64] {
                try server.server.messenger.openStore().read { snapshot in
                    let view = try snapshot.view(chat, for: bob.userID)
                    return [
                        try snapshot.head(of: #require(view).key).number,
                        try snapshot.view(chat, for: user)?.readTime ?? 0,
                        try snapshot.hasAdded(user, bob.userID) ? 1 : 0,
                        Int64(try snapshot.tracks(.settings, of: user, since: 0)),
                        Int64(try snapshot.loginCodes(phone: 79_990_000_999, since: 0)),
                    ]
                }
            }
            let before = try traces()
            let hold = EngineHold(server)
            try end(alice, ending, by: laptop, of: server)
            let number: UInt16
            switch late {
            case .send:
                let message = NewMessage(cid: 2, text: "too late")
                number = try alice.send(MsgSendRequest(chatID: chat, message: message))
            case .mark:
                number = try alice.send(
                    ChatMarkRequest(type: .setAsUnread, chatID: chat, messageID: first.id)
                )
            case .contact:
                number = try alice.send(
                    ContactUpdateRequest(contactID: bob.userID, action: .add)
                )
            case .track: number = try alice.send(AuthCreateTrackRequest())
            case .token: number = try alice.send(AuthRequestRequest(phone: "+79990000999"))
            }
            _ = try alice.call(PingRequest())
            hold.release()
            let packet = try alice.reply(to: number)
            try #require(packet.header.command == PacketCommand.error.rawValue)
            let error = try ErrorReply.decode(packet.payload, limits: .standard).error
            #expect(error == "proto.state")
            if ending != .blocked { try alice.waitForClose() }
            if ending == .erased {
                // The erasure has deleted earlier data. No new data has appeared.
                #expect(try zip(traces(), before).allSatisfy { $0 <= $1 })
            } else {
                #expect(try traces() == before)
            }
        }
    }

    @Test("a query that waits is not answered after the end", arguments: [Ending.logout, .kicked])
    func query(ending: Ending) throws {
        try withPair { server, alice, bob, chat in
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            try bob.send("hi", to: chat, cid: 1)
            let hold = EngineHold(server)
            // A query waits for the earlier commands of its session.
            let mark = ChatMarkRequest(type: .readMessage, chatID: chat)
            if ending == .kicked { try alice.send(mark) }
            try end(alice, ending, by: laptop, of: server)
            if ending == .kicked { try alice.send(mark) }
            let number = try alice.send(ChatHistoryRequest(chatID: chat, backward: 9))
            _ = try alice.call(PingRequest())
            hold.release()
            let packet = try alice.reply(to: number)
            try #require(packet.header.command == PacketCommand.error.rawValue)
            #expect(
                try ErrorReply.decode(packet.payload, limits: .standard).error == "proto.state"
            )
            try alice.waitForClose()
        }
    }

    @Test("other sessions of the user go on")
    func others() throws {
        try withPair { server, alice, _, chat in
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            try alice.call(LogoutRequest())
            try laptop.send("still here", to: chat, cid: 1)
            let (again, _) = try server.reconnect(laptop)
            try again.send("and here", to: chat, cid: 2)
        }
    }
}
