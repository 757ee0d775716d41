import TambourNet
import TambourProtocol
import Testing

@testable import TambourMessenger

@Suite("The line before the password hasher")
struct PasswordLineTests {
    private func user(_ id: Int64) -> WorkSubject { .user(UserID(id)) }

    /// Takes all waiting jobs, and finishes each job before it takes the next one. Returns the jobs
    /// in this order.
    private func drain(_ line: inout PasswordLine<Int>) -> [Int] {
        var jobs: [Int] = []
        while let (subject, job) = line.next() {
            jobs.append(job)
            line.finished(subject)
        }
        return jobs
    }

    @Test("subjects take turns, however much one of them has sent")
    func turns() {
        var line = PasswordLine<Int>(capacity: 64, share: 8)
        for job in 0..<8 { _ = line.add(job, of: user(1)) }
        _ = line.add(100, of: user(2))
        _ = line.add(101, of: user(2))
        _ = line.add(200, of: .address(PeerAddress("10.0.0.1")))
        let served = drain(&line)
        #expect(served == [0, 100, 200, 1, 101, 2, 3, 4, 5, 6, 7])
        #expect(line.count == 0)
    }

    @Test("a subject has one turn at a time: the next one sees what the last one changed")
    func oneAtATime() {
        var line = PasswordLine<Int>(capacity: 64, share: 8)
        for job in 0..<3 { _ = line.add(job, of: user(1)) }
        let first = line.next()
        #expect(first?.job == 0)
        var second = line.next()
        #expect(second == nil)
        _ = line.add(7, of: user(1))
        second = line.next()
        #expect(second == nil)
        _ = line.add(100, of: user(2))
        second = line.next()
        #expect(second?.job == 100)
        line.finished(user(1))
        let served = drain(&line)
        #expect(served == [1, 2, 7])
    }

    @Test("a subject holds its share and no more")
    func share() {
        var line = PasswordLine<Int>(capacity: 64, share: 2)
        for job in 0..<2 { _ = line.add(job, of: user(1)) }
        guard case .refused = line.add(2, of: user(1)) else {
            Issue.record("a third job was taken")
            return
        }
        guard case .taken = line.add(3, of: user(2)) else {
            Issue.record("a job of another subject was refused")
            return
        }
        #expect(line.count == 3)
    }

    @Test("a full line takes a newcomer in place of the newest job of whoever holds the most")
    func displacement() {
        var line = PasswordLine<Int>(capacity: 4, share: 4)
        for job in 0..<3 { _ = line.add(job, of: user(1)) }
        _ = line.add(100, of: user(2))
        guard case .displaced(let job) = line.add(200, of: user(3)) else {
            Issue.record("the newcomer was not taken in place of another")
            return
        }
        #expect(job == 2)
        // No subject has more jobs than the newcomer would have.
        guard case .refused = line.add(101, of: user(2)) else {
            Issue.record("a job was displaced by somebody with as many")
            return
        }
        #expect(line.count == 4)
        let served = drain(&line)
        #expect(served == [0, 100, 200, 1])
    }

    @Test(
        "random arrivals: counts agree, no job is lost or served twice, each subject keeps its order"
    )
    func random() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let capacity = Int.random(in: 1...12, using: &random)
            let share = Int.random(in: 1...6, using: &random)
            var line = PasswordLine<Int>(capacity: capacity, share: share)
            var waiting: [Int64: [Int]] = [:]
            var busy: Set<Int64> = []
            for job in 0..<60 {
                let id = Int64.random(in: 1...5, using: &random)
                if Bool.random(using: &random) {
                    switch line.add(job, of: user(id)) {
                    case .taken: waiting[id, default: []].append(job)
                    case .refused:
                        let held = waiting[id, default: []].count
                        let most = waiting.values.map(\.count).max() ?? 0
                        #expect(held >= share || line.count == capacity && most <= held + 1)
                    case .displaced(let other):
                        for key in waiting.keys where waiting[key]?.last == other {
                            waiting[key]?.removeLast()
                        }
                        waiting[id, default: []].append(job)
                    }
                } else if let (subject, job) = line.next() {
                    guard case .user(let user) = subject else { continue }
                    let isNew = busy.insert(user.rawValue).inserted
                    #expect(isNew)
                    let first = waiting[user.rawValue]?.removeFirst()
                    #expect(first == job)
                } else if let id = busy.first {
                    busy.remove(id)
                    line.finished(user(id))
                }
                #expect(line.count == waiting.values.reduce(0) { $0 + $1.count })
                #expect(line.count <= capacity)
            }
        }
    }
}
