import TambourEvents
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

/// A registry, and the timers that sessions set for it, on a clock that the test moves.
private final class PresenceDesk {
    static let delay: Int64 = 3_000
    static let user = UserID(1)

    let registry: PresenceRegistry
    private(set) var now: Int64 = 1_790_000_000_000
    /// The reported changes: time, state and recipients.
    private(set) var told: [(at: Int64, isOnline: Bool, to: [UserID])] = []
    private var timers: [(due: Int64, body: () -> Void)] = []

    init(limits: [String: Int] = [:]) throws {
        registry = PresenceRegistry(
            clock: CommitClock(persistedLeaseEnd: 0, leaseMs: 0),
            wall: now,
            limits: try Limits(overrides: limits)
        )
    }

    func wait(_ ms: Int64) {
        let end = now + ms
        while let next = timers.indices.min(by: { timers[$0].due < timers[$1].due }),
            timers[next].due <= end
        {
            let timer = timers.remove(at: next)
            now = timer.due
            timer.body()
        }
        now = end
    }

    func come() { tell(registry.entered(Self.user, wall: now)) }

    func go() {
        guard let turn = registry.left(Self.user, wall: now) else { return }
        timers.append(
            (
                now + Self.delay,
                { [unowned self] in
                    guard tell(registry.settled(Self.user, turn: turn, wall: now)) else { return }
                    let rest = { [unowned self] in _ = tell(registry.rested(Self.user)) }
                    timers.append((now + Self.delay, rest))
                }
            )
        )
    }

    /// The state that a query returns.
    var isOnline: Bool {
        registry.presence(of: [(Self.user, 0)], since: 0)[Self.user]?.status == 1
    }

    @discardableResult
    private func tell(_ event: Event?) -> Bool {
        guard case .push(.notifPresence(let push), let users, _) = event else { return false }
        told.append((now, push.presence.status == 1, users))
        return true
    }
}

@Suite("Who is told of presence, and how often")
struct PresenceRegistryTests {
    private let user = PresenceDesk.user

    @Test("reconnects in quick turns are told to nobody")
    func reconnects() throws {
        let desk = try PresenceDesk()
        desk.registry.watch([user], by: UserID(2))
        desk.come()
        // Each absence is shorter than the delay, although all absences together exceed it.
        for _ in 0..<30 {
            desk.wait(50)
            desk.go()
            desk.wait(120)
            desk.come()
        }
        desk.wait(2 * PresenceDesk.delay)
        #expect(desk.told.map(\.isOnline) == [true])
    }

    @Test("who is back right after others were told is told of once, when the delay is over")
    func backSoon() throws {
        let desk = try PresenceDesk()
        desk.registry.watch([user], by: UserID(2))
        desk.come()
        desk.go()
        desk.wait(PresenceDesk.delay)
        #expect(desk.told.map(\.isOnline) == [true, false])
        let gone = desk.now
        for _ in 0..<20 {
            desk.wait(100)
            desk.come()
            // A query sees the new state at once.
            #expect(desk.isOnline)
            desk.go()
        }
        desk.come()
        #expect(desk.told.count == 2)
        desk.wait(2 * PresenceDesk.delay)
        #expect(desk.told.map(\.isOnline) == [true, false, true])
        #expect(desk.told.last?.at == gone + PresenceDesk.delay)
    }

    @Test("who has gone again by then has not come")
    func goneAgain() throws {
        let desk = try PresenceDesk()
        desk.registry.watch([user], by: UserID(2))
        desk.come()
        desk.go()
        desk.wait(PresenceDesk.delay + 1_000)
        desk.come()
        desk.wait(1_000)
        desk.go()
        desk.wait(3 * PresenceDesk.delay)
        #expect(desk.told.map(\.isOnline) == [true, false])
        #expect(!desk.isOnline)
        desk.come()
        #expect(desk.told.map(\.isOnline) == [true, false, true])
    }

    @Test("however somebody comes and goes, others hear at most once in the delay, and how it ends")
    func play() throws {
        for seed in UInt64(1)...200 {
            var random = SeededGenerator(seed: seed)
            let desk = try PresenceDesk()
            desk.registry.watch([user], by: UserID(2))
            var sessions = 0
            for _ in 0..<60 {
                desk.wait(Int64(random.below(random.chance(20) ? 8_000 : 800)))
                if sessions == 0 || sessions < 3 && random.chance(50) {
                    desk.come()
                    sessions += 1
                } else {
                    desk.go()
                    sessions -= 1
                }
                if sessions > 0 { #expect(desk.isOnline, "seed \(seed)") }
            }
            desk.wait(3 * PresenceDesk.delay)
            let told = desk.told
            #expect(told.last?.isOnline == (sessions > 0), "seed \(seed)")
            #expect(desk.isOnline == (sessions > 0), "seed \(seed)")
            for (one, next) in zip(told, told.dropFirst()) {
                #expect(next.at - one.at >= PresenceDesk.delay, "seed \(seed)")
                #expect(next.isOnline != one.isOnline, "seed \(seed)")
            }
        }
    }

    @Test("of many who follow those are told who began last")
    func audience() throws {
        let desk = try PresenceDesk(limits: ["presencePushes": 3])
        for id in 11...15 { desk.registry.watch([user], by: UserID(Int64(id))) }
        func told() -> [Int64] {
            desk.come()
            desk.wait(2 * PresenceDesk.delay)
            desk.go()
            desk.wait(2 * PresenceDesk.delay)
            #expect(desk.told.suffix(2).map(\.isOnline) == [true, false])
            return desk.told.last?.to.map(\.rawValue) ?? []
        }
        #expect(told() == [13, 14, 15])
        // A second session of user 11 begins later, and user 15 leaves.
        desk.registry.watch([user], by: UserID(11))
        desk.registry.unwatch([user], by: UserID(15))
        #expect(told() == [11, 13, 14])
        // User 11 still watches in the first session.
        desk.registry.unwatch([user], by: UserID(11))
        #expect(told() == [11, 13, 14])
        desk.registry.unwatch([user], by: UserID(11))
        #expect(told() == [12, 13, 14])
        for id in 12...14 { desk.registry.unwatch([user], by: UserID(Int64(id))) }
        let before = desk.told.count
        desk.come()
        #expect(desk.told.count == before)
    }

    @Test("who comes and goes among those who follow leaves no others out")
    func gaps() throws {
        let limit = 5
        var random = SeededGenerator(seed: 7)
        let desk = try PresenceDesk(limits: ["presencePushes": limit])
        // The sessions in the order in which they began to watch.
        var follow: [UserID] = []
        var newest: [UserID] = []
        for _ in 0..<2_000 {
            let watcher = UserID(Int64(2 + random.below(40)))
            if random.chance(50) {
                desk.registry.watch([user], by: watcher)
                follow.append(watcher)
                newest.removeAll { $0 == watcher }
                newest.append(watcher)
            } else if let place = follow.firstIndex(of: watcher) {
                desk.registry.unwatch([user], by: watcher)
                follow.remove(at: place)
                if !follow.contains(watcher) { newest.removeAll { $0 == watcher } }
            }
            guard random.chance(5), !newest.isEmpty else { continue }
            desk.come()
            #expect(desk.told.last?.to == newest.suffix(limit).sorted())
            desk.go()
            desk.wait(2 * PresenceDesk.delay)
        }
        #expect(desk.told.count > 100)
    }
}
