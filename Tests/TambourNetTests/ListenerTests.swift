import Dispatch
import Glibc
import Synchronization
import TambourTesting
import Testing

@testable import TambourNet

@Suite("a listener")
struct ListenerTests {
    @Test(
        "names what it bound, and the peers",
        arguments: ["127.0.0.1:0", "[::1]:0", "localhost:0"]
    )
    func bound(text: String) throws {
        let listener = try Listener(address: ListenAddress(text))
        defer { listener.stop() }
        let bound = try ListenAddress(listener.boundAddress)
        #expect(bound.port != 0 && bound.isLoopback)
        let accepted = Arrivals<String>()
        listener.start { socket, peer in
            close(socket)
            accepted.add(peer)
        }
        let peer = try Peer(to: listener.boundAddress)
        let seen = try ListenAddress(accepted.next())
        #expect(seen.isLoopback && seen.port != 0 && seen.port != bound.port)
        #expect(try peer.receiveAll().isEmpty)
    }

    @Test("refuses at once when stopped", arguments: [false, true])
    func stop(isStarted: Bool) throws {
        let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
        if isStarted {
            listener.start { socket, _ in close(socket) }
            // The server closes this connection first, so the port has a socket in TIME_WAIT.
            #expect(try Peer(to: listener.boundAddress).receiveAll().isEmpty)
        }
        listener.stop()
        #expect(throws: SystemError(number: ECONNREFUSED)) {
            try Peer(to: listener.boundAddress)
        }
        listener.stop()
        let again = try Listener(address: ListenAddress(listener.boundAddress))
        again.stop()
    }

    @Test("says why it cannot listen")
    func errors() throws {
        let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
        defer { listener.stop() }
        func reason(_ text: String) -> String {
            do {
                try Listener(address: ListenAddress(text)).stop()
                return "listens"
            } catch {
                return "\(error)"
            }
        }
        let taken = "cannot listen on \(listener.boundAddress): Address already in use"
        #expect(reason(listener.boundAddress) == taken)
        #expect(
            reason("192.0.2.1:0") == "cannot listen on 192.0.2.1:0: Cannot assign requested address"
        )
        #expect(
            reason("no.such.host.invalid:0").hasPrefix("cannot listen on no.such.host.invalid:0: ")
        )
    }

    @Test("rests when descriptors run out, and carries on")
    func exhausted() throws {
        let attempts = Atomic<Int>(0)
        let listener = try Listener(
            address: ListenAddress("127.0.0.1:0"),
            backlog: 16,
            pauseWhenExhausted: .milliseconds(1)
        ) { listening in
            if attempts.add(1, ordering: .relaxed).newValue <= 3 { return .failed(EMFILE) }
            let socket = accept(listening, nil, nil)
            return socket < 0 ? .failed(errno) : .socket(socket, peer: "somebody")
        }
        defer { listener.stop() }
        let accepted = Arrivals<String>()
        listener.start { socket, peer in
            close(socket)
            accepted.add(peer)
        }
        let peer = try Peer(to: listener.boundAddress)
        #expect(try accepted.next() == "somebody")
        #expect(listener.exhaustedCount == 3)
        #expect(try peer.receiveAll().isEmpty)
    }

    @Test("can be stopped while it rests")
    func stopWhileResting() throws {
        let listener = try Listener(
            address: ListenAddress("127.0.0.1:0"),
            backlog: 16,
            pauseWhenExhausted: .seconds(1000)
        ) { _ in .failed(ENFILE) }
        listener.start { _, _ in }
        let peer = try Peer(to: listener.boundAddress)
        while listener.exhaustedCount == 0 { sched_yield() }
        listener.stop()
        #expect(throws: SystemError(number: ECONNRESET)) { try peer.receiveAll() }
    }

    @Test("goes on after a connection that was aborted before it was accepted")
    func aborted() throws {
        let attempts = Atomic<Int>(0)
        let listener = try Listener(
            address: ListenAddress("127.0.0.1:0"),
            backlog: 16,
            pauseWhenExhausted: .seconds(1000)
        ) { listening in
            if attempts.add(1, ordering: .relaxed).newValue == 1 { return .failed(ECONNABORTED) }
            let socket = accept(listening, nil, nil)
            return socket < 0 ? .failed(errno) : .socket(socket, peer: "somebody")
        }
        defer { listener.stop() }
        let accepted = Arrivals<String>()
        listener.start { socket, peer in
            close(socket)
            accepted.add(peer)
        }
        _ = try Peer(to: listener.boundAddress)
        #expect(try accepted.next() == "somebody")
    }
}

@Suite("an address to listen on")
struct ListenAddressTests {
    @Test("is a host and a port")
    func parse() throws {
        #expect(try ListenAddress("127.0.0.1:7770") == ListenAddress(host: "127.0.0.1", port: 7770))
        #expect(try ListenAddress("[::1]:0") == ListenAddress(host: "::1", port: 0))
        #expect(try ListenAddress("[::]:65535").description == "[::]:65535")
        #expect(try ListenAddress("chat.example.org:1").description == "chat.example.org:1")
    }

    @Test(
        "is refused with a reason",
        arguments: [
            ("", "expected HOST:PORT"),
            ("7770", "expected HOST:PORT"),
            ("localhost", "expected HOST:PORT"),
            (":7770", "the host is missing; every interface is 0.0.0.0 or [::]"),
            ("*:7770", "the host is missing; every interface is 0.0.0.0 or [::]"),
            ("localhost:", "the port \"\" is not a number"),
            ("localhost:http", "the port \"http\" is not a number"),
            ("localhost:-1", "the port \"-1\" is not a number"),
            ("localhost:+1", "the port \"+1\" is not a number"),
            ("localhost:65536", "the port is above 65535"),
            ("::1:7770", "an IPv6 address needs brackets, as in [::1]:7770"),
            ("[::1]", "expected a port after the bracket, as in [::1]:7770"),
            ("[::1:7770", "expected a port after the bracket, as in [::1]:7770"),
            ("[localhost]:1", "\"localhost\" is not an IPv6 address"),
            ("local host:1", "the host contains a blank or a control character"),
        ]
    )
    func refuse(text: String, reason: String) {
        let error = #expect(throws: ListenAddress.ParseError.self) { try ListenAddress(text) }
        #expect(error?.description == "address \"\(text)\": \(reason)")
    }

    @Test(
        "tells whether others can reach it",
        arguments: [
            ("127.0.0.1", true), ("127.8.9.10", true), ("::1", true), ("0:0::0:1", true),
            ("::ffff:127.0.0.1", true), ("localhost", true), ("0.0.0.0", false), ("::", false),
            ("128.0.0.1", false), ("::ffff:10.0.0.1", false), ("::2", false), ("fe80::1", false),
            ("127.0.0.1.example.org", false), ("localhost.example.org", false),
        ]
    )
    func loopback(host: String, isLoopback: Bool) {
        #expect(ListenAddress(host: host, port: 1).isLoopback == isLoopback)
    }
}
