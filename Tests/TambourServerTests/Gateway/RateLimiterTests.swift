import Synchronization
import TambourMessenger
import TambourNet
import TambourProtocol
import Testing

@Suite("Buckets of rates")
struct RateLimiterTests {
    private let clock = ManualClock()
    private let alice = RateLimiter.Subject.user(UserID(1))
    private let bob = RateLimiter.Subject.user(UserID(2))

    private func address(_ text: String) -> RateLimiter.Subject { .address(PeerAddress(text)) }

    private func limiter(_ overrides: [String: Int]) throws -> RateLimiter {
        RateLimiter(limits: try Limits(overrides: overrides), wallMs: clock.environment.wallMs)
    }

    @Test("a bucket holds its burst and gets it back one by one")
    func refill() throws {
        let rates = try limiter(["sendBurst": 3, "sendsPerMinute": 60])
        for _ in 0..<3 { #expect(rates.take(from: .send, of: alice) == nil) }
        #expect(rates.take(from: .send, of: alice) == 1000)
        clock.advance(ms: 999)
        #expect(rates.take(from: .send, of: alice) == 1)
        clock.advance(ms: 1)
        #expect(rates.take(from: .send, of: alice) == nil)
        #expect(rates.take(from: .send, of: alice) == 1000)
        clock.advance(ms: 3_600_000)
        for _ in 0..<3 { #expect(rates.take(from: .send, of: alice) == nil) }
        #expect(rates.take(from: .send, of: alice) == 1000)
    }

    @Test("what is refused takes nothing")
    func refusal() throws {
        let rates = try limiter(["inviteBurst": 10, "invitesPerMinute": 60])
        #expect(rates.take(8, from: .invite, of: alice) == nil)
        #expect(rates.take(5, from: .invite, of: alice) == 3000)
        #expect(rates.take(2, from: .invite, of: alice) == nil)
    }

    @Test("more than a bucket can ever hold counts as all of it")
    func large() throws {
        let rates = try limiter(["inviteBurst": 10, "invitesPerMinute": 60])
        #expect(rates.take(1_000, from: .invite, of: alice) == nil)
        #expect(rates.take(from: .invite, of: alice) == 1000)
        #expect(rates.take(1_000, from: .invite, of: alice) == 10_000)
    }

    @Test("kinds, users and addresses have buckets of their own")
    func apart() throws {
        let rates = try limiter(["sendBurst": 1, "authBurst": 1])
        #expect(rates.take(from: .send, of: alice) == nil)
        #expect(rates.take(from: .send, of: alice) != nil)
        #expect(rates.take(from: .join, of: alice) == nil)
        #expect(rates.take(from: .send, of: bob) == nil)
        #expect(rates.take(from: .auth, of: address("10.0.0.1")) == nil)
        #expect(rates.take(from: .auth, of: address("10.0.0.1")) != nil)
        #expect(rates.take(from: .auth, of: address("10.0.0.2")) == nil)
        #expect(rates.take(from: .auth, of: address("2001:db8:0:1:a::1")) == nil)
        #expect(rates.take(from: .auth, of: address("2001:db8:0:1:b::2")) != nil)
        #expect(rates.take(from: .auth, of: address("2001:db8:0:2:a::1")) == nil)
    }

    @Test("a /64 of IPv6 is one address, however it is written, and IPv4 is itself")
    func networks() throws {
        let same = [
            ["2001:db8::a:b:c:d", "2001:db8::1", "2001:db8:0:0:ffff::", "2001:0DB8::a:0:0:2"],
            ["2001:db8:0:1::", "2001:db8:0:1:a:b:c:d"],
            ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1"],
            ["10.0.0.2"],
        ]
        let rates = try limiter(["authBurst": 1])
        for network in same {
            for (index, text) in network.enumerated() {
                let wait = rates.take(from: .auth, of: address(text))
                #expect((wait == nil) == (index == 0), "\(text)")
            }
        }
    }

    @Test(
        "a clock that is set back keeps nobody out, nor does it fill a bucket",
        arguments: [1, 1000, 86_400_000]
    )
    func backwards(byMs: Int64) throws {
        let rates = try limiter(["sendBurst": 3, "sendsPerMinute": 60])
        #expect(rates.take(from: .send, of: alice) == nil)
        #expect(rates.take(from: .send, of: alice) == nil)
        clock.advance(ms: -byMs)
        #expect(rates.take(from: .send, of: alice) == nil)
        #expect(rates.take(from: .send, of: alice) == 1000)
        clock.advance(ms: 1000)
        #expect(rates.take(from: .send, of: alice) == nil)
    }

    @Test("strangers with many addresses make no user's bucket forgotten")
    func strangers() throws {
        let rates = try limiter(["maxRateBuckets": 100, "sendBurst": 1])
        #expect(rates.take(from: .send, of: alice) == nil)
        for number in 0..<10_000 {
            _ = rates.take(from: .address, of: address("10.0.\(number / 250).\(number % 250)"))
        }
        #expect(rates.take(from: .send, of: alice) != nil)
        #expect(rates.count <= 200)
    }

    @Test("a bucket that its owner keeps is as large, and refills as quickly")
    func own() throws {
        let rates = try limiter(["strangerBurst": 2, "strangerRequestsPerMinute": 60])
        var bucket = RateLimiter.OwnBucket()
        for _ in 0..<2 { #expect(rates.take(from: .connection, kept: &bucket) == nil) }
        #expect(rates.take(from: .connection, kept: &bucket) == 1000)
        clock.advance(ms: 1000)
        #expect(rates.take(from: .connection, kept: &bucket) == nil)
        var other = RateLimiter.OwnBucket()
        #expect(rates.take(from: .connection, kept: &other) == nil)
    }

    @Test("what is charged afterwards takes what is left, and no more")
    func charged() throws {
        let rates = try limiter(["sendBurst": 10, "sendsPerMinute": 60])
        rates.charge(4, to: .send, of: alice)
        #expect(rates.take(6, from: .send, of: alice) == nil)
        rates.charge(1_000, to: .send, of: alice)
        rates.charge(.max, to: .send, of: alice)
        rates.charge(.min, to: .send, of: alice)
        #expect(rates.take(from: .send, of: alice) == 1_000)
        clock.advance(ms: 1_000)
        #expect(rates.take(from: .send, of: alice) == nil)
    }

    @Test("the largest limits are none", arguments: [1, 60, Int(Int32.max)])
    func extremes(perMinute: Int) throws {
        let rates = try limiter(["sendBurst": Int(Int32.max), "sendsPerMinute": perMinute])
        for _ in 0..<100 { #expect(rates.take(1_000, from: .send, of: alice) == nil) }
        _ = rates.take(.max, from: .send, of: alice)
        clock.advance(ms: 86_400_000)
        _ = rates.take(from: .send, of: alice)
    }

    @Test("any number of users takes the memory of a limited number of buckets")
    func memory() throws {
        let rates = try limiter(["maxRateBuckets": 100])
        var random = SystemRandomNumberGenerator()
        for number in 0..<20_000 {
            _ = rates.take(from: .send, of: .user(UserID(Int64(number))))
            if number % 100 == 0 { clock.advance(ms: Int64.random(in: 0...10, using: &random)) }
            #expect(rates.count <= 100)
        }
    }

    /// A drained bucket for contacts refills over hours. If the limiter forgot the bucket, the user
    /// would get a full one.
    @Test("a bucket far from full outlives any number of others", arguments: [0, 2000])
    func farFromFull(othersRefillMs: Int64) throws {
        let rates = try limiter([
            "maxRateBuckets": 100, "contactBurst": 100, "contactsPerMinute": 1,
            "sendBurst": 10, "sendsPerMinute": 60,
        ])
        #expect(rates.take(100, from: .contact, of: alice) == nil)
        for number in 0..<5_000 {
            // Depending on the argument, the other buckets all refill after every hundred users, or
            // never.
            if othersRefillMs > 0, number % 100 == 0 { clock.advance(ms: othersRefillMs) }
            _ = rates.take(from: .send, of: .user(UserID(Int64(number + 10))))
            #expect(rates.count <= 100)
        }
        #expect(rates.take(10, from: .contact, of: alice) != nil)
    }

    @Test("buckets that are full again are forgotten")
    func forgotten() throws {
        let rates = try limiter([:])
        for number in 0..<1_000 { _ = rates.take(from: .send, of: .user(UserID(Int64(number)))) }
        #expect(rates.count == 1_000)
        clock.advance(ms: 86_400_000)
        for _ in 0..<1_000 { _ = rates.take(from: .send, of: alice) }
        #expect(rates.count == 1)
    }
}
