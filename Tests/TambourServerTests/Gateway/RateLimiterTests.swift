import Synchronization
import TambourProtocol
import TambourServer
import Testing

@Suite("Buckets of rates")
struct RateLimiterTests {
    private let clock = ManualClock()
    private let alice = RateLimiter.Subject.user(UserID(1))
    private let bob = RateLimiter.Subject.user(UserID(2))

    private func limiter(_ overrides: [String: Int]) throws -> RateLimiter {
        RateLimiter(limits: try Limits(overrides: overrides), wallMs: clock.environment.wallMs)
    }

    @Test("a bucket holds its burst and gets it back one by one")
    func refill() throws {
        let rates = try limiter(["sendBurst": 3, "sendsPerMinute": 60])
        for _ in 0..<3 { #expect(rates.take(.send, of: alice) == nil) }
        #expect(rates.take(.send, of: alice) == 1000)
        clock.advance(ms: 999)
        #expect(rates.take(.send, of: alice) == 1)
        clock.advance(ms: 1)
        #expect(rates.take(.send, of: alice) == nil)
        #expect(rates.take(.send, of: alice) == 1000)
        clock.advance(ms: 3_600_000)
        for _ in 0..<3 { #expect(rates.take(.send, of: alice) == nil) }
        #expect(rates.take(.send, of: alice) == 1000)
    }

    @Test("what is refused takes nothing")
    func refusal() throws {
        let rates = try limiter(["inviteBurst": 10, "invitesPerMinute": 60])
        #expect(rates.take(.invite, of: alice, cost: 8) == nil)
        #expect(rates.take(.invite, of: alice, cost: 5) == 3000)
        #expect(rates.take(.invite, of: alice, cost: 2) == nil)
    }

    @Test("more than a bucket can ever hold counts as all of it")
    func large() throws {
        let rates = try limiter(["inviteBurst": 10, "invitesPerMinute": 60])
        #expect(rates.take(.invite, of: alice, cost: 1_000) == nil)
        #expect(rates.take(.invite, of: alice) == 1000)
        #expect(rates.take(.invite, of: alice, cost: 1_000) == 10_000)
    }

    @Test("kinds, users and addresses have buckets of their own")
    func apart() throws {
        let rates = try limiter(["sendBurst": 1, "authBurst": 1])
        #expect(rates.take(.send, of: alice) == nil)
        #expect(rates.take(.send, of: alice) != nil)
        #expect(rates.take(.join, of: alice) == nil)
        #expect(rates.take(.send, of: bob) == nil)
        #expect(rates.take(.auth, of: .init(address: "10.0.0.1")) == nil)
        #expect(rates.take(.auth, of: .init(address: "10.0.0.1")) != nil)
        #expect(rates.take(.auth, of: .init(address: "10.0.0.2")) == nil)
        #expect(rates.take(.auth, of: .init(address: "2001:db8:0:1:a::1")) == nil)
        #expect(rates.take(.auth, of: .init(address: "2001:db8:0:1:b::2")) != nil)
        #expect(rates.take(.auth, of: .init(address: "2001:db8:0:2:a::1")) == nil)
    }

    @Test("a clock that is set back keeps nobody out for longer than a bucket takes")
    func backwards() throws {
        let rates = try limiter(["sendBurst": 2, "sendsPerMinute": 60])
        for _ in 0..<2 { #expect(rates.take(.send, of: alice) == nil) }
        clock.advance(ms: -86_400_000)
        #expect(rates.take(.send, of: alice) == 1000)
        clock.advance(ms: 1000)
        #expect(rates.take(.send, of: alice) == nil)
    }

    @Test("any number of users takes the memory of so many buckets")
    func memory() throws {
        let rates = try limiter(["maxRateBuckets": 100])
        var random = SystemRandomNumberGenerator()
        for number in 0..<20_000 {
            _ = rates.take(.send, of: .user(UserID(Int64(number))))
            if number % 100 == 0 { clock.advance(ms: Int64.random(in: 0...10, using: &random)) }
            #expect(rates.count <= 100)
        }
    }

    @Test("buckets that are full again are forgotten")
    func forgotten() throws {
        let rates = try limiter([:])
        for number in 0..<1_000 { _ = rates.take(.send, of: .user(UserID(Int64(number)))) }
        #expect(rates.count == 1_000)
        for _ in 0..<2 {
            clock.advance(ms: 86_400_000)
            _ = rates.take(.send, of: alice)
        }
        #expect(rates.count == 1)
    }
}
