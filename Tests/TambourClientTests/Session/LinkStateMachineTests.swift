import Testing

@testable import TambourClient

@Suite("When a link connects, asks and gives up")
struct LinkStateMachineTests {
    private let policy = LinkPolicy()

    private func live(at now: Int64) -> LinkStateMachine {
        var link = LinkStateMachine()
        _ = link.start(nowMs: now)
        link.opened(nowMs: now)
        link.loggedIn()
        return link
    }

    @Test("pauses twice as long after each failure, and never longer than the cap")
    func backoff() {
        var link = LinkStateMachine()
        var now: Int64 = 0
        #expect(link.start(nowMs: now) == [.connect])
        var pauses: [Int64] = []
        for _ in 0..<12 {
            link.closed(nowMs: now, random: .max)
            guard case .waiting(let until) = link.phase else {
                Issue.record("\(link.phase)")
                return
            }
            pauses.append(until - now)
            #expect(link.tick(nowMs: until - 1, random: 0) == [])
            #expect(link.tick(nowMs: until, random: 0) == [.connect])
            now = until
        }
        for (index, pause) in pauses.enumerated() {
            let whole = min(policy.backoffCapMs, policy.backoffBaseMs << Int64(index))
            #expect((whole / 2...whole).contains(pause), "\(index)")
        }
    }

    @Test("begins with short pauses again after a login, and not after a mere connection")
    func forgiven() {
        func pauseAfterThreeFailures(_ isLoggedIn: Bool) -> Int64 {
            var link = LinkStateMachine()
            var now: Int64 = 0
            _ = link.start(nowMs: now)
            for _ in 0..<3 {
                link.opened(nowMs: now)
                if isLoggedIn { link.loggedIn() }
                link.closed(nowMs: now, random: 0)
                now = link.nextWakeMs ?? now
                _ = link.tick(nowMs: now, random: 0)
            }
            link.opened(nowMs: now)
            if isLoggedIn { link.loggedIn() }
            link.closed(nowMs: now, random: 0)
            return (link.nextWakeMs ?? 0) - now
        }
        #expect(pauseAfterThreeFailures(true) == policy.backoffBaseMs / 2)
        #expect(pauseAfterThreeFailures(false) == policy.backoffBaseMs * 4)
    }

    @Test("asks after a silence, and gives up when nothing answers")
    func keepAlive() {
        var link = live(at: 1000)
        #expect(link.nextWakeMs == 1000 + policy.keepAliveMs)
        #expect(link.tick(nowMs: 1000 + policy.keepAliveMs, random: 0) == [.ping])
        let due = 1000 + policy.keepAliveMs + policy.pingTimeoutMs
        #expect(link.nextWakeMs == due)
        var answered = link
        answered.heard(nowMs: due - 1)
        #expect(answered.tick(nowMs: due, random: 0) == [])
        #expect(link.tick(nowMs: due, random: 0) == [.disconnect])
        #expect(link.phase == .waiting(untilMs: due + policy.backoffBaseMs / 2))
    }

    @Test("trusts an old connection for a moment only when the network has changed")
    func kick() {
        var link = live(at: 0)
        #expect(link.networkChanged(nowMs: 50) == [.ping])
        #expect(link.tick(nowMs: 50 + policy.kickTimeoutMs, random: 0) == [.disconnect])
        #expect(link.networkChanged(nowMs: 60 + policy.kickTimeoutMs) == [.connect])
    }

    @Test("gives up a connect and a login that take too long, but not a person")
    func timeouts() {
        var link = LinkStateMachine()
        _ = link.start(nowMs: 0)
        #expect(link.tick(nowMs: policy.connectTimeoutMs - 1, random: 0) == [])
        var slow = link
        #expect(slow.tick(nowMs: policy.connectTimeoutMs, random: 0) == [.disconnect])
        link.opened(nowMs: 100)
        var person = link
        person.awaitsPerson = true
        #expect(person.tick(nowMs: 100 + policy.loginTimeoutMs, random: 0) == [])
        #expect(link.tick(nowMs: 100 + policy.loginTimeoutMs, random: 0) == [.disconnect])
    }

    @Test("gives up a handshake that takes too long, from the time when it began")
    func handshake() {
        var link = LinkStateMachine()
        _ = link.start(nowMs: 0)
        link.accepted(nowMs: 5000)
        #expect(link.isSecuring && !link.isConnected)
        #expect(link.networkChanged(nowMs: 5001) == [])
        let due = 5000 + policy.handshakeTimeoutMs
        #expect(link.nextWakeMs == due)
        #expect(link.tick(nowMs: due - 1, random: 0) == [])
        var slow = link
        #expect(slow.tick(nowMs: due, random: 0) == [.disconnect])
        #expect(slow.phase == .waiting(untilMs: due + policy.backoffBaseMs / 2))
        var stopped = link
        #expect(stopped.stop() == [.disconnect])
        link.opened(nowMs: due - 1)
        #expect(link.phase == .open(sinceMs: due - 1))
        link.accepted(nowMs: due)
        #expect(link.phase == .open(sinceMs: due - 1))
    }

    @Test("pauses for two seconds while somebody waits, and as long as the server asks for")
    func hurry() {
        var link = LinkStateMachine()
        _ = link.start(nowMs: 0)
        #expect(link.hurry(nowMs: 0) == [])
        var now: Int64 = 0
        for _ in 0..<10 {
            link.closed(nowMs: now, random: .max)
            now = link.nextWakeMs ?? now
            #expect(link.tick(nowMs: now, random: 0) == [.connect])
        }
        link.closed(nowMs: now, random: .max)
        #expect((link.nextWakeMs ?? 0) > now + policy.impatientPauseMs)
        #expect(link.hurry(nowMs: now + 1) == [])
        #expect(link.nextWakeMs == now + policy.impatientPauseMs)
        #expect(link.hurry(nowMs: now + policy.impatientPauseMs) == [.connect])
        #expect(link.hurry(nowMs: now + policy.impatientPauseMs) == [])

        var resting = live(at: 0)
        _ = resting.rest(forMs: 9000, nowMs: 10)
        #expect(resting.hurry(nowMs: 9009) == [])
        #expect(resting.nextWakeMs == 9010)
        #expect(resting.hurry(nowMs: 9010) == [.connect])
    }

    @Test("leaves a server alone that asks for it, and does nothing once stopped")
    func rest() {
        var link = live(at: 0)
        #expect(link.rest(forMs: 9000, nowMs: 10) == [.disconnect])
        #expect(link.nextWakeMs == 9010)
        #expect(link.networkChanged(nowMs: 9009) == [])
        #expect(link.nextWakeMs == 9010)
        #expect(link.stop() == [])
        #expect(link.nextWakeMs == nil)
        #expect(link.tick(nowMs: 100_000, random: 0) == [])
        #expect(link.networkChanged(nowMs: 100_000) == [])
    }
}
