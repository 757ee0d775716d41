import Foundation
import TambourProtocol
import TambourTesting

/// One client that writes as fast as it can and keeps a ledger of the replies.
///
/// `@unchecked Sendable`: one thread uses it at a time. This is the writer's own thread while it
/// writes, and the world's thread during checks.
final class CrashWriter: @unchecked Sendable {
    struct Sent {
        let chat: ChatID
        let text: String
    }

    struct Acknowledged {
        let cid: Int64
        let chat: ChatID
        let id: MessageID
        let time: Int64
        let previous: MessageID?
    }

    struct MemberMark: Hashable {
        let chat: ChatID
        let user: UserID
    }

    let userID: UserID
    let token: String
    let chats: [ChatID]

    /// The messages sent since the last `settle`, by `cid`.
    private(set) var sent: [Int64: Sent] = [:]
    /// The acknowledged messages, in the order of the replies.
    private(set) var acknowledged: [Acknowledged] = []
    /// The text of the last acknowledged edit (initially the first text), and the text of the last
    /// requested edit.
    private(set) var edits: [MessageID: (confirmed: String, attempted: String)] = [:]
    private(set) var removed: Set<MessageID> = []
    private(set) var maybeRemoved: Set<MessageID> = []
    /// Read marks that the server has confirmed, in Unix milliseconds.
    private(set) var marks: [ChatID: Int64] = [:]

    /// Pushes that this client received: messages of other users with their latest text, removals
    /// and read marks.
    private(set) var heard: [MessageID: String] = [:]
    private(set) var heardRemoved: Set<MessageID> = []
    private(set) var heardMarks: [MemberMark: Int64] = [:]

    /// The number of edits, removals and marks confirmed in the last run.
    private(set) var changesConfirmed = 0
    /// Whether the last run's stream ended after a complete frame.
    private(set) var hasEndedCleanly = false
    /// The error of the last run, unless the end of the server caused it.
    private(set) var failure: (any Error)?

    private var nextCID: Int64
    private var random: SeededGenerator
    private static let window = 8

    init(userID: UserID, token: String, chats: [ChatID], seed: UInt64) {
        self.userID = userID
        self.token = token
        self.chats = chats
        nextCID = userID.rawValue * 1_000_000
        random = SeededGenerator(seed: seed ^ UInt64(bitPattern: userID.rawValue))
    }

    /// Forgets the data of a checked cycle, but keeps the read marks.
    func settle() {
        sent = [:]
        acknowledged = []
        edits = [:]
        removed = []
        maybeRemoved = []
        heard = [:]
        heardRemoved = []
    }

    func connect(_ address: String) throws -> WireClient {
        let client = try WireClient(address: address)
        _ = try client.call(SessionInitRequest(deviceID: "crash-\(userID.rawValue)"))
        client.token = token
        let login = try client.call(LoginRequest(token: token, interactive: true))
        client.userID = login.profile.contact.id
        return client
    }

    // MARK: - Writing

    /// Writes until the server is gone; calls `confirmed` after each acknowledged message.
    func write(to address: String, confirmed: () -> Void) {
        failure = nil
        changesConfirmed = 0
        hasEndedCleanly = false
        do {
            let client = try connect(address)
            defer { client.close() }
            try write(on: client, confirmed: confirmed)
            hasEndedCleanly = client.hasEndedCleanly
        } catch WireClient.Failure.closed {
            // The server went away during this client's login.
        } catch {
            failure = error
        }
    }

    private func write(on client: WireClient, confirmed: () -> Void) throws {
        var waiting: [(number: UInt16, cid: Int64)] = []
        do {
            while true {
                while waiting.count < Self.window {
                    let cid = makeMessage()
                    waiting.append((try send(cid, on: client), cid))
                }
                let oldest = waiting.removeFirst()
                note(try client.reply(to: oldest.number, as: MsgSendReply.self), cid: oldest.cid)
                confirmed()
                try listen(to: client)
                try changeSomething(on: client)
            }
        } catch WireClient.Failure.closed {
            // Count every reply that arrived before the end, not only the one this thread waited
            // for.
            try client.waitForClose()
            for (number, cid) in waiting {
                do {
                    note(try client.reply(to: number, as: MsgSendReply.self), cid: cid)
                    confirmed()
                } catch WireClient.Failure.closed {}
            }
            try listen(to: client)
        }
    }

    private func makeMessage() -> Int64 {
        let cid = nextCID
        nextCID += 1
        let chat = chats.randomElement(using: &random) ?? chats[0]
        let text = "message \(cid) " + String(repeating: "x", count: Int(cid % 97))
        sent[cid] = Sent(chat: chat, text: text)
        return cid
    }

    /// Sends a message for the first time, or again with the same cid.
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

    private func note(_ reply: MsgSendReply, cid: Int64) {
        acknowledged.append(
            Acknowledged(
                cid: cid,
                chat: reply.chatID,
                id: reply.message.id,
                time: reply.message.time,
                previous: reply.prevMessageID
            )
        )
    }

    /// Sometimes edits or deletes the last acknowledged message, or marks the chat as read.
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
            changesConfirmed += 1
        case 2:
            maybeRemoved.insert(last.id)
            _ = try client.call(MsgDeleteRequest(chatID: last.chat, messageIDs: [last.id]))
            removed.insert(last.id)
            changesConfirmed += 1
        case 3:
            // A mark in the far future marks everything as read.
            let reply = try client.call(
                ChatMarkRequest(type: .readMessage, chatID: last.chat, mark: Int64.max >> 17)
            )
            marks[last.chat] = reply.mark
            changesConfirmed += 1
        default:
            break
        }
    }

    private func listen(to client: WireClient) throws {
        for push in client.takePushesAtHand() {
            switch push.opcode {
            case .notifMessage:
                let message = try push.decode(as: NotifMessage.self).message
                heard[message.id] = String(describing: message.text)
            case .notifMsgDelete:
                heardRemoved.formUnion(try push.decode(as: NotifMsgDelete.self).messageIDs)
            case .notifMark:
                let mark = try push.decode(as: NotifMark.self)
                heardMarks[MemberMark(chat: mark.chatID, user: mark.userID)] = mark.mark
            default:
                break
            }
        }
    }
}
