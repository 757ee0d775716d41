import Foundation
import Synchronization
import TambourEvents
import TambourMessenger
import TambourProtocol
import TambourStore
import Testing

/// Tests that a client's old state, merged with the delta of a login, equals the state that a fresh
/// client gets at the same moment.
///
/// Each sequence depends only on its seed. `TAMBOUR_SEED=17` plays only seed 17. `TAMBOUR_SOAK=1`
/// plays 5,000 seeds instead of 100. `Tests/mutants/README.md` lists the writes that these
/// sequences guard.
@Suite("Delta equals fresh")
struct DeltaEqualsFreshTests {
    @Test("state kept from old logins plus deltas equals a full login, whatever happened between")
    func sequences() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
        let isSoak = environment["TAMBOUR_SOAK"] == "1"
        let seeds = seed.map { [$0] } ?? Array(1...(isSoak ? 5_000 : 100))
        var total = SyncSequence.Counts()
        for seed in seeds {
            do {
                let sequence = try SyncSequence(seed: seed)
                try sequence.run()
                #expect(sequence.counts.steps >= 60 && sequence.counts.logins >= 3)
                total.add(sequence.counts)
            } catch {
                Issue.record("TAMBOUR_SEED=\(seed): \(error)")
                return
            }
        }
        let accepted = SyncSequence.mutating.map { "\($0.rawValue): \(total.accepted[$0] ?? 0)" }
        print(
            "delta equals fresh: \(seeds.count) sequences, \(total.steps) steps, "
                + "\(total.logins) logins, \(total.chats) chats (\(total.bigChats) big, \(total.grown) of them grown), "
                + "\(total.morePages) pages of SYNC_MORE, \(total.brokenOff) logins that broke off, "
                + "\(total.restarts) restarts, \(total.refused) refusals; accepted "
                + accepted.joined(separator: ", ")
        )
        guard seed == nil else { return }
        #expect(total.bigChats > 0)
        #expect(total.grown > 0)
        #expect(total.fired > 0)
        #expect(total.morePages * 2 > seeds.count && total.brokenOff > 0)
        for opcode in SyncSequence.mutating {
            #expect(
                total.accepted[opcode, default: 0] * 2_000 >= 500 * seeds.count,
                "opcode \(opcode.rawValue) is too rare"
            )
        }
    }

    @Test("a chat is in the delta from the moment it is made, before its first message")
    func newChats() throws {
        let machine = try SyncMachine(
            seed: 1,
            limits: Limits(overrides: ["fanOutMembers": 3]),
            wall: 1_700_000_000_000
        )
        defer { machine.remove() }
        let (users, token, caller) = try machine.signedUp(5)
        machine.world.wallMs += 10
        let mark = machine.safeTime
        _ = machine.run([
            Command { tx in
                let user = users[0]
                _ = try tx.createPairChat(user, user, by: user)
                _ = try tx.createPairChat(user, users[1], by: users[1])
                _ = try tx.createGroup(title: "three", owner: user, members: Array(users[..<3]))
                _ = try tx.createGroup(title: "five", owner: users[4], members: users)
                return .done
            }
        ])
        machine.world.wallMs += 1

        let request = LoginRequest(token: token, chatsSync: mark, contactsSync: mark)
        let reply = try machine.login(request, from: caller)

        #expect(reply.chats.count == 4)
        #expect(reply.contacts.map(\.id) == [users[1]])
    }

    @Test("contacts that do not fit one delta come with the next logins, none is lost")
    func contactsInParts() throws {
        // Each reply has room for two contacts and 500 bytes of settings.
        let machine = try SyncMachine(
            seed: 1,
            limits: Limits(overrides: ["maxReplyBytes": 1_600]),
            wall: 1_700_000_000_000
        )
        defer { machine.remove() }
        let (users, token, caller) = try machine.signedUp(9)
        _ = machine.run([
            Command { tx in
                for partner in users.dropFirst() {
                    _ = try tx.createPairChat(users[0], partner, by: users[0])
                }
                return .done
            }
        ])
        machine.world.wallMs += 10
        var mark = machine.safeTime
        // Three contacts change in the first batch, and they do not fit into one reply. The others
        // change in the batches after it.
        let changes = [[1, 2, 3], [4], [5], [6, 7], [8]]
        for change in changes {
            machine.world.wallMs += 1
            _ = machine.run(
                change.map { index in
                    Command { tx in
                        try tx.setBlocked(true, users[index])
                        return .done
                    }
                }
            )
        }
        machine.world.wallMs += 1

        var blocked: [[UserID]] = []
        while blocked.count < 10 {
            let reply = try machine.login(
                LoginRequest(token: token, chatsSync: mark, contactsSync: mark),
                from: caller
            )
            if reply.contacts.isEmpty { break }
            #expect(reply.contacts.allSatisfy { $0.accountStatus == 1 })
            blocked.append(reply.contacts.map(\.id).sorted())
            mark = reply.time
        }
        #expect(
            blocked == [[1, 2, 3], [4, 5], [6, 7], [8]].map { $0.map { users[$0] }.sorted() }
        )
    }

    @Test("contacts with the longest names come in replies that fit, none is lost")
    func longNamesInParts() throws {
        let limits = try Limits(overrides: ["maxReplyBytes": 20_000])
        let machine = try SyncMachine(seed: 1, limits: limits, wall: 1_700_000_000_000)
        defer { machine.remove() }
        let (users, token, caller) = try machine.signedUp(1)
        let name = String(repeating: "\u{20AC}", count: limits.maxNameUnits)
        let partners = Mutex<[UserID]>([])
        _ = machine.run([
            Command { tx in
                for number in 0..<60 {
                    let partner = try tx.createAccount(
                        phone: 79_990_001_000 + Int64(number),
                        firstName: name,
                        lastName: name
                    )
                    _ = try tx.createPairChat(users[0], partner, by: users[0])
                    partners.withLock { $0.append(partner) }
                }
                return .done
            }
        ])
        machine.world.wallMs += 10
        var mark = machine.safeTime
        for partner in partners.withLock({ $0 }) {
            machine.world.wallMs += 1
            _ = machine.run([
                Command { tx in
                    try tx.setBlocked(true, partner)
                    return .done
                }
            ])
        }
        machine.world.wallMs += 1

        let blocked = partners.withLock { $0 }
        var told: [Int] = []
        while told.count < 60 {
            let reply = try machine.login(
                LoginRequest(token: token, chatsSync: mark, contactsSync: mark),
                from: caller
            )
            #expect(reply.encoded().count <= limits.maxReplyBytes)
            guard !reply.contacts.isEmpty else { break }
            told += reply.contacts.compactMap { blocked.firstIndex(of: $0.id) }.sorted()
            mark = reply.time
        }
        #expect(told == Array(0..<60))

        let contacts = try machine.ask(
            .login2(Login2Request(contactsSync: 0)),
            from: Requester(
                caller: caller,
                origin: SessionOrigin(installation: "", client: "", info: "", address: "")
            ),
            as: Login2Reply.self
        )
        #expect(!contacts.contacts.isEmpty)
        #expect(contacts.encoded().count <= limits.maxReplyBytes)
    }
}
