import Dispatch
import Synchronization
import TambourTesting
import Testing

@testable import TambourQueues

@Suite("a mailbox")
struct MailboxTests {
    private let queue = SerialQueue(label: "test mailbox")

    @Test("keeps each producer's order and loses nothing")
    func order() throws {
        struct Item: Sendable {
            let producer: Int
            let number: Int
        }
        let (producers, count) = (4, 50_000)
        let last = Mutex([Int](repeating: -1, count: producers))
        let done = Arrivals<Bool>()
        let mailbox = Mailbox<Item>(queue: queue) { batch in
            last.withLock { last in
                for item in batch {
                    #expect(item.number == last[item.producer] + 1)
                    last[item.producer] = item.number
                }
                if last.allSatisfy({ $0 == count - 1 }) { done.add(true) }
            }
        }
        for producer in 0..<producers {
            DispatchQueue(label: "producer \(producer)").async {
                var number = 0
                while number < count {
                    if number % 10 == 0 {
                        let items = (number..<number + 5).map {
                            Item(producer: producer, number: $0)
                        }
                        mailbox.post(contentsOf: items)
                        number += 5
                    } else {
                        mailbox.post(Item(producer: producer, number: number))
                        number += 1
                    }
                }
            }
        }
        #expect(try done.next())
    }

    @Test("wakes its queue once for a batch")
    func wakes() throws {
        let batches = Arrivals<[Int]>()
        let mailbox = Mailbox<Int>(queue: queue) { batches.add($0) }
        queue.sync {
            for number in 0..<1000 { mailbox.post(number) }
            mailbox.post(contentsOf: [])
            mailbox.post(contentsOf: [1000, 1001])
        }
        queue.sync {}
        #expect(batches.waiting == [Array(0...1001)])
        #expect(mailbox.wakeCount == 1)
        mailbox.post(7)
        queue.sync {}
        #expect(batches.waiting.last == [7])
        #expect(mailbox.wakeCount == 2)
    }

    @Test("can be emptied early, and is not drained twice")
    func drainNow() throws {
        let batches = Arrivals<[Int]>()
        let mailbox = Mailbox<Int>(queue: queue) { batches.add($0) }
        queue.sync {
            mailbox.post(1)
            mailbox.post(2)
            mailbox.drainNow()
            #expect(batches.waiting == [[1, 2]])
            mailbox.drainNow()
            mailbox.post(3)
        }
        queue.sync {}
        #expect(batches.waiting == [[1, 2], [3]])
    }

    @Test("finishes a batch before what was posted meanwhile")
    func nested() throws {
        let seen = Arrivals<Int>()
        let own = Mutex<Mailbox<Int>?>(nil)
        let mailbox = Mailbox<Int>(queue: queue) { batch in
            for item in batch {
                if item == 1, let mailbox = own.withLock({ $0 }) {
                    mailbox.post(10)
                    mailbox.drainNow()
                }
                seen.add(item)
            }
        }
        own.withLock { $0 = mailbox }
        mailbox.post(contentsOf: [1, 2])
        #expect(try [seen.next(), seen.next(), seen.next()] == [1, 2, 10])
        own.withLock { $0 = nil }
    }
}
