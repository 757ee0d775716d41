import TambourTesting
import Testing

@testable import TambourNet

@Suite("the timer queue")
struct TimerQueueTests {
    @Test("gives timers by deadline, then by the order they were scheduled")
    func order() {
        var queue = TimerQueue<String>()
        _ = queue.schedule(atMs: 20, "c")
        _ = queue.schedule(atMs: 10, "a")
        _ = queue.schedule(atMs: 20, "d")
        _ = queue.schedule(atMs: 10, "b")
        #expect(queue.nextDeadlineMs == 10)
        #expect(queue.step(nowMs: 9) == nil)
        #expect(queue.step(nowMs: 10) == "a")
        #expect(queue.step(nowMs: 10) == "b")
        #expect(queue.step(nowMs: 19) == nil)
        #expect(queue.step(nowMs: 100) == "c")
        #expect(queue.step(nowMs: 100) == "d")
        #expect(queue.nextDeadlineMs == nil)
    }

    @Test("does not take an old token for the timer that reuses its place")
    func tokens() {
        var queue = TimerQueue<String>()
        let first = queue.schedule(atMs: 1, "first")
        #expect(queue.step(nowMs: 1) == "first")
        let second = queue.schedule(atMs: 2, "second")
        #expect(queue.cancel(first) == nil)
        #expect(queue.cancel(second) == "second")
        #expect(queue.cancel(second) == nil)
        #expect(queue.count == 0)
    }

    @Test("agrees with a sorted list, whatever is scheduled and cancelled", arguments: 0..<50)
    func model(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = TimerQueue<Int>()
        var model: [(deadline: Int64, number: Int, token: TimerToken)] = []
        var now: Int64 = 0
        for number in 0..<2000 {
            switch random.next() % 4 {
            case 0, 1:
                let deadline = now + Int64(random.next() % 100)
                model.append((deadline, number, queue.schedule(atMs: deadline, number)))
            case 2 where !model.isEmpty:
                let victim = model.remove(at: Int(random.next() % UInt64(model.count)))
                #expect(queue.cancel(victim.token) == victim.number)
            default:
                now += Int64(random.next() % 30)
                var due: [Int] = []
                while let payload = queue.step(nowMs: now) { due.append(payload) }
                let expected = model.filter { $0.deadline <= now }
                    .sorted { ($0.deadline, $0.number) < ($1.deadline, $1.number) }
                #expect(due == expected.map(\.number))
                model.removeAll { $0.deadline <= now }
            }
            #expect(queue.count == model.count)
            #expect(queue.nextDeadlineMs == model.map(\.deadline).min())
        }
    }
}
