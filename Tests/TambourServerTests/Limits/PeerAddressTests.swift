import Testing

@testable import TambourMessenger

@Suite("the address of a peer")
struct PeerAddressTests {
    @Test(
        "stands for itself, or for the /64 of an IPv6 address",
        arguments: [
            ("10.0.0.1", "10.0.0.1"),
            ("255.255.255.255", "255.255.255.255"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            // The compressed form omits groups of the first half.
            ("2001:db8::a:b:c:d", "2001:db8:0:0::/64"),
            ("2001:db8::b:b:c:d", "2001:db8:0:0::/64"),
            ("2001:db8:0:1::", "2001:db8:0:1::/64"),
            ("1::", "1:0:0:0::/64"),
            ("::1", "0:0:0:0::/64"),
            ("[2001:db8::1]", "2001:db8:0:0::/64"),
            ("fe80::1%eth0", "fe80:0:0:0::/64"),
            ("fe80::2%1", "fe80:0:0:0::/64"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:a00:1", "10.0.0.1"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            // This is an ordinary address, although it ends like a mapped IPv4 address.
            ("1::ffff:10.0.0.1", "1:0:0:0::/64"),
            ("unknown", "unknown"),
            ("", ""),
            ("10.0.0", "10.0.0"),
        ]
    )
    func subject(text: String, subject: String) {
        #expect(PeerAddress(text).description == subject)
    }

    @Test("is equal for every spelling, and for every host of a /64")
    func equality() {
        let spellings = [
            "2001:db8::a:b:c:d", "2001:0db8:0:0:1:2:3:4", "2001:DB8:0:0::", "[2001:db8::ffff]",
        ]
        #expect(Set(spellings.map { PeerAddress($0) }).count == 1)
        // 65,536 hosts that differ only in the fifth group are one subject.
        let hosts = (0..<65_536).map { PeerAddress("2001:db8::\(String($0, radix: 16)):1:1:1") }
        #expect(Set(hosts).count == 1)
        #expect(PeerAddress("2001:db8:0:1::1") != PeerAddress("2001:db8:0:2::1"))
        #expect(PeerAddress("10.0.0.1") != PeerAddress("10.0.0.2"))
        #expect(PeerAddress("::") != PeerAddress("0.0.0.0"))
    }

    @Test("is read from what a listener says of a peer")
    func peer() {
        #expect(PeerAddress(peer: "127.0.0.1:43211") == PeerAddress("127.0.0.1"))
        #expect(PeerAddress(peer: "[2001:db8::1]:1") == PeerAddress("2001:db8::2"))
        #expect(PeerAddress(peer: "pair").description == "pair")
    }
}
