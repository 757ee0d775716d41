import Testing

@testable import TambourClient

@Suite("The address of a server")
struct ServerAddressTests {
    @Test(
        "means TLS without a scheme, except on this machine",
        arguments: [
            ("chat.example.org", "tls://chat.example.org:443"),
            ("chat.example.org:7770", "tls://chat.example.org:7770"),
            ("Chat.Example.ORG", "tls://chat.example.org:443"),
            ("chat.example.org.", "tls://chat.example.org.:443"),
            ("10.0.0.1", "tls://10.0.0.1:443"),
            ("[2001:db8::1]", "tls://[2001:db8::1]:443"),
            ("[2001:DB8::1]:7770", "tls://[2001:db8::1]:7770"),
            ("0.0.0.0:7770", "tls://0.0.0.0:7770"),
            ("localhost.example.org", "tls://localhost.example.org:443"),
            ("127.example.org", "tls://127.example.org:443"),
            ("localhost", "tcp://localhost:7770"),
            ("LOCALHOST:1", "tcp://localhost:1"),
            ("localhost.:1", "tcp://localhost.:1"),
            ("chat.localhost", "tcp://chat.localhost:7770"),
            ("127.0.0.1:7770", "tcp://127.0.0.1:7770"),
            ("127.8.9.10", "tcp://127.8.9.10:7770"),
            ("[::1]:7770", "tcp://[::1]:7770"),
            ("tls://localhost:7443", "tls://localhost:7443"),
            ("tls://127.0.0.1", "tls://127.0.0.1:443"),
            ("TLS://chat.example.org", "tls://chat.example.org:443"),
            ("tcp://chat.example.org", "tcp://chat.example.org:7770"),
            ("tcp://[2001:db8::1]:65535", "tcp://[2001:db8::1]:65535"),
        ]
    )
    func scheme(text: String, whole: String) throws {
        let address = try ServerAddress(text)
        #expect(address.description == whole)
        #expect(try ServerAddress(whole) == address)
    }

    @Test(
        "is refused with the reason",
        arguments: [
            ("", "the name is missing"), (":7770", "the name is missing"),
            ("tls://", "the name is missing"), ("tcp://:1", "the name is missing"),
            ("http://chat.example.org", "tls://HOST or tcp://HOST:PORT"),
            ("://chat.example.org", "tls://HOST or tcp://HOST:PORT"),
            ("chat.example.org/path", "no “/”"), ("tls://chat.example.org/", "no “/”"),
            ("anna@chat.example.org", "no “@”"), ("chat.example.org?a=b", "no “?”"),
            ("chat.example.org:0", "from 1 to 65535"), ("chat.example.org:", "from 1 to 65535"),
            ("chat.example.org:70000", "from 1 to 65535"), ("a:+1", "from 1 to 65535"),
            ("::1", "needs brackets"), ("2001:db8::1", "needs brackets"),
            ("[::1", "bracket"), ("[chat.example.org]", "no IPv6 address"),
            ("[::1]7770", "after the bracket"), ("7770", "the name is missing before the port"),
            ("127.1", "no IPv4 address"), ("1.2.3.4.5:1", "no IPv4 address"),
            ("chat..example.org", "no name of a host"), (".example.org", "no name of a host"),
            ("a b", "no name of a host"), ("*", "no name of a host"),
            ("a\u{0}.example.org", "no name of a host"), ("чат.example.org", "xn--"),
            (String(repeating: "a", count: 64) + ".org", "no name of a host"),
        ]
    )
    func mistakes(text: String, reason: String) throws {
        let error = #expect(throws: ClientError.self) { try ServerAddress(text) }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
    }

    @Test("has the name that a certificate contains, and knows names of this machine")
    func names() throws {
        #expect(try ServerAddress("chat.example.org.").name == "chat.example.org")
        #expect(try ServerAddress("tls://a.localhost.").isLocalName)
        #expect(try !ServerAddress("127.0.0.1").isLocalName)
    }
}

@Suite("The servers that a client trusts")
struct ServerTrustTests {
    private static let hex = String(repeating: "0af1", count: 16)

    @Test("are pinned by a digest in several forms")
    func digest() throws {
        let key = try #require(ServerKeyDigest(Self.hex))
        #expect(key.description == "sha256:\(Self.hex)")
        let base64 = "CvEK8QrxCvEK8QrxCvEK8QrxCvEK8QrxCvEK8QrxCvE="
        let colons = String(repeating: "0A:F1:", count: 16).dropLast()
        for text in ["sha256:\(Self.hex)", Self.hex.uppercased(), "SHA256:\(Self.hex)"]
            + [base64, "sha256/\(base64)", "sha256//\(base64)", String(colons)]
        {
            #expect(ServerKeyDigest(text) == key, "\(text)")
        }
        for text in [
            "", "sha256:", String(Self.hex.dropLast()), Self.hex + "0", "+" + Self.hex.dropFirst(),
        ]
            + [String(base64.dropFirst(4)), "md5:\(Self.hex)"]
        {
            #expect(ServerKeyDigest(text) == nil, "\(text)")
        }
    }

    @Test("are read from the store as they were written")
    func stored() throws {
        let pin = ServerTrust.pinned(try #require(ServerKeyDigest(Self.hex)))
        for trust in [ServerTrust.system, .authorities(pem: "-----BEGIN CERTIFICATE-----"), pin] {
            #expect(ServerTrust(stored: trust.stored) == trust)
        }
    }

    @Test("keep certificates of a text, and no key")
    func onlyCertificates() {
        let text = """
            a comment
            -----BEGIN PRIVATE KEY-----
            c2VjcmV0
            -----END PRIVATE KEY-----
            -----BEGIN CERTIFICATE-----
            AAAA
            -----END CERTIFICATE-----
            more
            -----BEGIN TRUSTED CERTIFICATE-----
            BBBB
            -----END TRUSTED CERTIFICATE-----
            """
        guard case .authorities(let pem) = ServerTrust.authorities(pem: text).withCertificatesOnly
        else {
            Issue.record("other trust")
            return
        }
        let lines = pem.split(separator: "\n")
        #expect(lines.count == 6 && pem.contains("AAAA") && pem.contains("BBBB"))
        #expect(!pem.contains("c2VjcmV0") && !pem.contains("PRIVATE"))
    }

    @Test("of an address without TLS cannot be chosen")
    func plain() throws {
        let plain = try ServerAddress("tcp://chat.example.org")
        let pin = ServerTrust.pinned(try #require(ServerKeyDigest(Self.hex)))
        #expect(throws: ClientError.self) { try pin.requireTLS(at: plain) }
        try ServerTrust.system.requireTLS(at: plain)
    }
}
