import TambourQueues
import TambourTesting
import Testing

@Suite("A fair queue")
struct FairQueueTests {
    private func takeAll(_ queue: inout FairQueue<String, Int>) -> [String] {
        var taken: [String] = []
        while let (subject, job) = queue.take() {
            taken.append("\(subject)\(job)")
            queue.finish(subject)
        }
        return taken
    }

    @Test("gives subjects their turns, and keeps the order of each")
    func turns() {
        var queue = FairQueue<String, Int>()
        for job in 1...4 { queue.add(job, of: "a") }
        for job in 1...2 { queue.add(job, of: "b") }
        queue.add(1, of: "c")
        #expect(queue.count == 7)
        #expect(takeAll(&queue) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"])
        #expect(queue.isEmpty && !queue.hasReady)
    }

    @Test("takes the rest of a job before the other jobs of its subject, and others in between")
    func rest() {
        var queue = FairQueue<String, Int>()
        queue.add(1, of: "a")
        queue.add(2, of: "a")
        queue.add(1, of: "b")
        #expect(queue.take()?.job == 1)
        queue.addRest(9, of: "a")
        #expect(queue.count == 3 && queue.count(of: "a") == 2 && queue.rests == 1)
        queue.finish("a")
        #expect(takeAll(&queue) == ["b1", "a9", "a2"])
        #expect(queue.isEmpty && !queue.hasReady && queue.rests == 0)
    }

    @Test("has one job of a subject out at a time")
    func oneOut() throws {
        var queue = FairQueue<String, Int>()
        queue.add(1, of: "a")
        queue.add(2, of: "a")
        #expect(queue.take()?.job == 1)
        #expect(queue.take() == nil && !queue.hasReady && !queue.isEmpty)
        queue.add(3, of: "b")
        #expect(queue.take()?.job == 3)
        queue.finish("a")
        #expect(queue.take()?.job == 2)
        queue.finish("b")
        queue.finish("a")
        #expect(queue.take() == nil && queue.isEmpty)
    }

    @Test("lets a subject rest that has used up a round")
    func rounds() {
        var queue = FairQueue<String, Int>(budget: 10)
        for job in 1...4 { queue.add(job, of: "a") }
        for job in 1...2 { queue.add(job, of: "b") }
        func round() -> [String] {
            queue.beginRound()
            var taken: [String] = []
            while let (subject, job) = queue.take() {
                taken.append("\(subject)\(job)")
                queue.finish(subject, cost: subject == "a" ? 6 : 1)
            }
            return taken
        }
        // Two jobs of a, which cost 6 each, exceed the round's budget of 10.
        #expect(round() == ["a1", "b1", "a2", "b2"])
        #expect(round() == ["a3", "a4"])
        #expect(round() == [])
        #expect(queue.isEmpty)
    }

    @Test("agrees with a plain list of lines, whatever is done", arguments: 0..<50)
    func oracle(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var queue = FairQueue<Int, Int>()
        var lines: [Int: [Int]] = [:]
        var ring: [Int] = []
        var out: Set<Int> = []
        for job in 0..<2_000 {
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                let subject = Int.random(in: 0..<8, using: &random)
                queue.add(job, of: subject)
                if lines[subject, default: []].isEmpty, !out.contains(subject) {
                    ring.append(subject)
                }
                lines[subject, default: []].append(job)
            case 1:
                let taken = queue.take()
                #expect(taken?.subject == ring.first)
                guard let taken else { continue }
                ring.removeFirst()
                out.insert(taken.subject)
                #expect(lines[taken.subject]?.removeFirst() == taken.job)
            default:
                guard let subject = out.sorted().first else { continue }
                out.remove(subject)
                queue.finish(subject)
                if lines[subject]?.isEmpty == false { ring.append(subject) }
            }
            #expect(queue.count == lines.values.reduce(0) { $0 + $1.count })
            #expect(queue.hasReady == !ring.isEmpty)
        }
    }
}
