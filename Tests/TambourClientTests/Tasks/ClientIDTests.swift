import TambourClient
import TambourTesting
import Testing

@Suite("Client ids are negative, tell their time, and never come twice")
struct ClientIDTests {
    @Test("the layout is the negated millisecond with 20 random bits below")
    func layout() {
        var ids = ClientIDGenerator()
        let id = ids.next(nowMs: 1_700_000_000_000, random: 0xFFFF_FFFF_FFF1_2345)
        #expect(id.rawValue == -((1_700_000_000_000 << 20) | 0x12345))
    }

    @Test("one millisecond, one random number and a clock that goes back give different ids")
    func distinct() {
        var ids = ClientIDGenerator()
        var seen: Set<ClientID> = []
        var random = SeededGenerator(seed: 1)
        for step in 0..<20_000 {
            let nowMs = 1000 + Int64(step / 100) - (step % 7 == 0 ? 500 : 0)
            let bits = random.chance(50) ? 5 : random.next()
            #expect(seen.insert(ids.next(nowMs: nowMs, random: bits)).inserted)
        }
    }

    @Test("any clock gives a negative number", arguments: [.min, -1, 0, 1 << 43, .max] as [Int64])
    func anyClock(nowMs: Int64) {
        var ids = ClientIDGenerator()
        #expect(ids.next(nowMs: nowMs, random: 0).rawValue < 0)
        #expect(ids.next(nowMs: nowMs, random: .max).rawValue < 0)
        #expect(ids.next(nowMs: nowMs, random: .max).rawValue < 0)
    }
}
