import Foundation
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

extension Message {
    /// The message that this message replies to.
    fileprivate var answered: Message? {
        get { try? link?.value(limits: .standard).message }
        set {
            guard let newValue, var inner = try? link?.value(limits: .standard) else { return }
            inner.message = newValue
            link = Packed(inner)
        }
    }
}

/// A client that keeps a history and updates it.
private struct Keeper {
    let client: WireClient
    let chat: ChatID
    var held: [MessageID: Message] = [:]
    var mark: Int64

    init(_ client: WireClient, _ chat: ChatID, login: LoginReply) throws {
        self.client = client
        self.chat = chat
        mark = login.time
        for message in try page() { held[message.id] = message }
    }

    func page() throws -> [Message] {
        try client.call(ChatHistoryRequest(chatID: chat, backward: 200)).messages ?? []
    }

    /// Requests changes until none are left. Also stops at a page that makes no progress, because
    /// all its changes belong to the current millisecond.
    mutating func update(count: Int64) throws {
        var (since, last) = (mark, MessageID?.none)
        while true {
            let page = try client.call(
                ChatChangesRequest(chatID: chat, since: since, messageID: last, count: count)
            )
            for message in page.messages { hold(message) }
            for id in page.removedIDs { forget { $0 == id } }
            if let cleared = page.clearedID { forget { $0 <= cleared } }
            let isStuck = (page.time, page.messageID) == (since, last)
            (since, last) = (page.time, page.messageID)
            if last == nil || isStuck { break }
        }
        mark = since
    }

    private mutating func hold(_ changed: Message) {
        for (id, message) in held where message.answered?.id == changed.id {
            held[id]?.answered?.text = changed.text
        }
        // Ignore a change of a message that the client does not hold. A later page of the history
        // contains the current version of that message.
        if held[changed.id] != nil { held[changed.id] = changed }
    }

    private mutating func forget(_ isGone: (MessageID) -> Bool) {
        for (id, message) in held {
            if isGone(id) {
                held[id] = nil
            } else if let answered = message.answered, isGone(answered.id) {
                held[id]?.link = nil
            }
        }
    }
}

@Suite("CHAT_CHANGES (1030)")
struct ChatChangesTests {
    /// The seeds of the runs. `TAMBOUR_SEED=17` plays only seed 17.
    private static let seeds: [UInt64] =
        ProcessInfo.processInfo.environment["TAMBOUR_SEED"].flatMap(UInt64.init).map { [$0] }
        ?? [1, 2, 3, 4]

    @Test(
        "what a client holds and brings up to date is what a fresh one gets",
        arguments: seeds
    )
    func random(seed: UInt64) throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            var random = SeededGenerator(seed: seed)
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let chat = try alice.createGroup("G", with: [bob], cid: 1)
            var ids: [MessageID] = []
            func say(_ count: Int) throws {
                for number in 0..<count {
                    let isPoll = number % 4 == 0
                    let message = NewMessage(
                        cid: Int64(10 + ids.count),
                        text: "x",
                        attaches: isPoll ? [.poll(settings: .mayRevote)] : [],
                        link: number % 4 == 1
                            ? NewLink(type: .reply, messageID: ids[ids.count - 1]) : nil
                    )
                    ids.append(
                        try alice.call(MsgSendRequest(chatID: chat, message: message)).message.id
                    )
                }
            }
            try say(40)
            clock.advance(ms: 2)
            let (client, login) = try server.reconnect(bob)
            var keeper = try Keeper(client, chat, login: login)
            for round in 0..<60 {
                // Most changes share one millisecond, in which the client also requests changes.
                for _ in 0..<random.below(6) {
                    guard let id = random.any(of: ids) else { continue }
                    try change(id, of: ids, alice, bob, chat, round, &random)
                    if random.chance(30) { try keeper.update(count: Int64(1 + random.below(3))) }
                    if random.chance(20) { clock.advance(ms: 1) }
                }
                if round == 40 {
                    _ = try bob.call(ChatClearRequest(chatID: chat, forAll: false))
                    try keeper.update(count: 200)
                    #expect(keeper.held.isEmpty)
                    clock.advance(ms: 2)
                    try say(12)
                    for message in try keeper.page() { keeper.held[message.id] = message }
                }
                clock.advance(ms: 2)
                try keeper.update(count: Int64(1 + random.below(5)))
                try compare(keeper, with: keeper.page().filter { ids.contains($0.id) }, ids)
            }
        }
    }

    private func compare(_ keeper: Keeper, with fresh: [Message], _ ids: [MessageID]) throws {
        let held = keeper.held.values.filter { ids.contains($0.id) }.sorted { $0.id < $1.id }
        #expect(held.map(\.id) == fresh.map(\.id))
        for (held, fresh) in zip(held, fresh) {
            var (held, fresh) = (held, fresh)
            // The reader may have deleted the answered message for themselves. The held reply may
            // still show it, so compare only answered messages that the client holds.
            if let answered = fresh.answered, keeper.held[answered.id] != nil {
                #expect(held.answered?.text == answered.text)
            }
            (held.link, fresh.link) = (nil, nil)
            #expect(Packed(held).bytes == Packed(fresh).bytes)
        }
    }

    private func change(
        _ id: MessageID,
        of ids: [MessageID],
        _ alice: WireClient,
        _ bob: WireClient,
        _ chat: ChatID,
        _ round: Int,
        _ random: inout SeededGenerator
    ) throws {
        let message = try bob.call(MsgGetRequest(chatID: chat, messageIDs: [id])).messages.first
        guard let message else { return }
        let poll = message.attaches.stored?.first
        switch random.below(10) {
        case 0..<3:
            guard poll == nil else { return }
            let edit = MsgEditRequest(chatID: chat, messageID: id, text: Text("round \(round)"))
            try alice.call(edit)
        case 3..<6:
            let who = random.chance(50) ? alice : bob
            let reaction = NewReaction(id: random.chance(50) ? "🔥" : "👍")
            try who.call(MsgReactionRequest(chatID: chat, messageID: id, reaction: reaction))
        case 6..<8:
            guard let pollID = poll?.pollID else { return }
            let vote = SendVoteRequest(
                chatID: chat,
                messageID: id,
                pollID: pollID,
                answersIDs: [Int64(1 + random.below(3))]
            )
            try (random.chance(50) ? alice : bob).call(vote)
        case 8:
            try alice.delete([id], in: chat)
        default:
            try bob.delete([id], in: chat, forMe: true)
        }
    }
}
