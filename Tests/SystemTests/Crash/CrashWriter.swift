import Foundation
import Synchronization
import TambourProtocol
import TambourTesting

/// One client that writes as fast as it can and keeps a ledger of what it was told.
///
/// Used by one thread at a time: its own while it writes, the test's while it checks.
final class CrashWriter: @unchecked Sendable {
    struct Sent {
        let chat: ChatID
        let text: String
    }

    struct Acknowledged {
        let cid: Int64
        let chat: ChatID
        let id: MessageID
        let previous: MessageID?
    }

    let userID: UserID
    let token: String
    let chats: [ChatID]

    /// What was sent under each `cid` since the last `settle`.
    private(set) var sent: [Int64: Sent] = [:]
    /// In the order the replies came.
    private(set) var acknowledged: [Acknowledged] = []
    /// Texts of acknowledged edits, the newest last; with the one whose reply never came.
    private(set) var edits: [MessageID: (confirmed: String, attempted: String)] = [:]
    private(set) var removed: Set<MessageID> = []
    private(set) var maybeRemoved: Set<MessageID> = []
    /// Read marks that the server confirmed, Unix milliseconds.
    private(set) var marks: [ChatID: Int64] = [:]
    /// Messages of others that were pushed here.
    private(set) var pushed: Set<MessageID> = []

    private var nextCID: Int64
    private var random: SeededGenerator
    private static let window = 8

    init(userID: UserID, token: String, chats: [ChatID], seed: UInt64) {
        self.userID = userID
        self.token = token
        self.chats = chats
        nextCID = userID.rawValue * 1_000_000_000
        random = SeededGenerator(seed: seed ^ UInt64(bitPattern: userID.rawValue))
    }

    /// Forgets a cycle that was checked.
    func settle() {
        sent = [:]
        acknowledged = []
        edits = [:]
        removed = []
        maybeRemoved = []
        pushed = []
    }

    func connect(_ address: String) throws -> WireClient {
        let client = try WireClient(address: address)
        _ = try client.call(SessionInitRequest(deviceID: "crash-\(userID.rawValue)"))
        client.token = token
        let login = try client.call(LoginRequest(token: token, interactive: true))
        client.userID = login.profile.contact.id
        return client
    }

    /// Writes until the server is gone; `acknowledged` is called after each confirmed message.
    func write(to address: String, acknowledged confirmed: () -> Void) {
        guard let client = try? connect(address) else { return }
        var waiting: [(number: UInt16, cid: Int64)] = []
        do {
            while true {
                while waiting.count < Self.window {
                    let cid = nextCID
                    nextCID += 1
                    let chat = chats.randomElement(using: &random) ?? chats[0]
                    let text = "message \(cid) " + String(repeating: "x", count: Int(cid % 97))
                    sent[cid] = Sent(chat: chat, text: text)
                    waiting.append((try send(cid, on: client), cid))
                }
                let oldest = waiting.removeFirst()
                let reply = try client.reply(to: oldest.number, as: MsgSendReply.self)
                note(reply, cid: oldest.cid)
                confirmed()
                for push in client.takePushesAtHand() where push.opcode == .notifMessage {
                    pushed.insert(try push.decode(as: NotifMessage.self).message.id)
                }
                try changeSomething(on: client)
            }
        } catch {
            client.close()
        }
    }

    private func changeSomething(on client: WireClient) throws {
        guard let last = acknowledged.last, !removed.contains(last.id) else { return }
        switch Int.random(in: 0..<24, using: &random) {
        case 0, 1:
            let text = "edited \(last.cid) \(acknowledged.count)"
            let before = edits[last.id]?.confirmed ?? sent[last.cid]?.text ?? ""
            edits[last.id] = (before, text)
            _ = try client.call(
                MsgEditRequest(chatID: last.chat, messageID: last.id, text: Text(text))
            )
            edits[last.id] = (text, text)
        case 2:
            maybeRemoved.insert(last.id)
            _ = try client.call(MsgDeleteRequest(chatID: last.chat, messageIDs: [last.id]))
            removed.insert(last.id)
        case 3:
            let reply = try client.call(
                ChatMarkRequest(
                    type: .readMessage,
                    chatID: last.chat,
                    mark: Int64.max >> 17
                )
            )
            marks[last.chat] = reply.mark
        default: break
        }
    }

    private func note(_ reply: MsgSendReply, cid: Int64) {
        acknowledged.append(
            Acknowledged(
                cid: cid,
                chat: reply.chatID,
                id: reply.message.id,
                previous: reply.prevMessageID
            )
        )
    }

    /// Sends a cid again, or for the first time.
    @discardableResult
    func send(_ cid: Int64, on client: WireClient) throws -> UInt16 {
        guard let message = sent[cid] else {
            throw WireClient.Failure.unexpected("cid \(cid) was never made")
        }
        return try client.send(
            MsgSendRequest(
                chatID: message.chat,
                message: NewMessage(cid: cid, text: Text(message.text))
            )
        )
    }
}
