import TambourProtocol
import TambourTesting
import Testing

/// The unread count that clients without capabilities get with each message.
@Suite("Unread messages in NOTIF_MESSAGE")
struct ReadCounterTests {
    @Test("are those that the chat has, whatever happened before", arguments: 1...6)
    func sequence(seed: UInt64) throws {
        // With the small limits, the server looks up one unread count per batch. For other
        // receivers, it omits a count that is not in memory.
        let limits = seed % 2 == 0 ? [:] : ["maxUnreadCounts": 1, "fanOutMembers": 3]
        try withServer(limits: limits) { server in
            var random = SeededGenerator(seed: seed)
            let people = try ["Alice", "Bob", "Carol", "Dave"].map { try server.signUp($0) }
            let modern = try server.signIn(
                phoneOf: people[1],
                device: "tablet",
                capabilities: ["history-more"]
            )
            let chats = [
                try people[0].createGroup("Group", with: Array(people.dropFirst()), cid: 1),
                people[0].dialog(with: people[1]),
            ]
            var sent: [ChatID: [Message]] = [:]
            var cid: Int64 = 100
            var counted = 0
            for _ in 0..<120 {
                let chat = chats.randomElement(using: &random) ?? chats[0]
                let members = chat == chats[0] ? people : Array(people.prefix(2))
                let actor = members.randomElement(using: &random) ?? people[0]
                let known = sent[chat]?.randomElement(using: &random)
                switch (Int.random(in: 0..<10, using: &random), known) {
                case (0, let message?):
                    try actor.call(
                        ChatMarkRequest(
                            type: .readMessage,
                            chatID: chat,
                            messageID: message.id,
                            mark: message.time
                        )
                    )
                case (1, let message?):
                    try actor.call(
                        ChatMarkRequest(
                            type: .setAsUnread,
                            chatID: chat,
                            messageID: message.id,
                            mark: message.time
                        )
                    )
                case (2, let message?): _ = try actor.delete([message.id], in: chat)
                case (3, let message?): _ = try actor.delete([message.id], in: chat, forMe: true)
                case (4, _): try actor.call(ChatClearRequest(chatID: chat, forAll: false))
                default:
                    for each in people + [modern] { _ = try each.takePushes() }
                    cid += 1
                    let message = try actor.send("\(cid)", to: chat, cid: cid).message
                    sent[chat, default: []].append(message)
                    for reader in members where reader !== actor {
                        let push = try #require(try told(reader))
                        guard let unread = push.unread else { continue }
                        counted += 1
                        let seen = try #require(try reader.chat(chat))
                        #expect(unread == seen.newMessages, "seed \(seed), cid \(cid)")
                        #expect(push.mark == seen.participants[reader.userID])
                        #expect(push.ttl == false && push.prevMessageID == nil)
                    }
                    if members.contains(where: { $0 === people[1] }) {
                        let push = try told(modern)
                        #expect(push?.unread == nil && push?.mark == nil && push?.ttl == nil)
                    }
                }
            }
            #expect(counted > 40)
        }
    }

    private func told(_ client: WireClient) throws -> NotifMessage? {
        try client.takePushes().first { $0.opcode == .notifMessage }?.decode(as: NotifMessage.self)
    }
}
