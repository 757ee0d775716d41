#if TLS
    import Glibc
    import TambourNet
    import TambourTLS

    /// Measures the server's side of TLS connections. Both sides of each connection are in memory.
    final class TLSMeter {
        /// Both sides of a connection.
        struct Pair {
            let server: any ConnectionLayer
            let client: any ConnectionLayer
        }

        private static let passes = 5

        private let tls: TLSServer
        private let authority: String
        /// The processor time of the server's side so far, in nanoseconds.
        private var spent: Int64 = 0

        init(_ pair: TLSPair, authority: String) throws {
            self.authority = authority
            tls = try TLSServer(
                TLSFiles(pairs: [pair]),
                ticketKeyLifetimeMs: 1_000_000,
                nowMs: { 0 },
                report: { _ in }
            )
        }

        /// Returns the server's microseconds for one handshake, in the best pass.
        ///
        /// - Parameter resumes: whether each handshake after the first one resumes a session.
        func handshakes(_ count: Int, resumes: Bool) throws -> Double {
            let client = try TLSClient(.authorities(pem: authority))
            return try best(of: count) {
                let fresh = resumes ? client : try TLSClient(.authorities(pem: authority))
                var pair: Pair? = try connect(fresh)
                let kept = pair?.client
                measure { pair = nil }
                withExtendedLifetime(kept) {}
            }
        }

        /// Returns the server's microseconds for one echo, in the best pass.
        func echoes(_ count: Int, bytes: Int) throws -> Double {
            let pair = try connect(TLSClient(.authorities(pem: authority)))
            let text = [UInt8](repeating: 7, count: bytes)
            return try best(of: count) { try echo(text, pair) }
        }

        /// Returns the resident bytes of one idle session of the server, after an echo.
        func idle(_ count: Int) throws -> Double {
            let client = try TLSClient(.authorities(pem: authority))
            let text = [UInt8](repeating: 7, count: 1024)
            var servers: [any ConnectionLayer] = []
            servers.reserveCapacity(count)
            let before = Self.residentBytes()
            for _ in 0..<count {
                let pair = try connect(client)
                try echo(text, pair)
                servers.append(pair.server)
            }
            return withExtendedLifetime(servers) {
                Double(Self.residentBytes() - before) / Double(count)
            }
        }

        private func best(of count: Int, _ body: () throws -> Void) rethrows -> Double {
            var best = Int64.max
            for _ in 0..<Self.passes {
                spent = 0
                for _ in 0..<count { try body() }
                best = min(best, spent)
            }
            return Double(best) / 1000 / Double(count)
        }

        private func connect(_ client: TLSClient) throws -> Pair {
            let server = measure { tls.makeLayer() }
            let pair = Pair(
                server: server,
                client: try client.makeLayer(host: "localhost") { _ in }
            )
            var (toServer, toClient, input): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
            pair.client.open(into: &toServer)
            repeat {
                try measure { try Self.pass(toServer, to: pair.server, &input, &toClient) }
                toServer = []
                try Self.pass(toClient, to: pair.client, &input, &toServer)
                toClient = []
            } while !toServer.isEmpty
            return pair
        }

        private func echo(_ text: [UInt8], _ pair: Pair) throws {
            var (toServer, toClient, input): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
            text.withUnsafeBytes { pair.client.enclose($0, into: &toServer) }
            try measure {
                var answer: [UInt8] = []
                try Self.pass(toServer, to: pair.server, &input, &answer)
                input.withUnsafeBytes { pair.server.enclose($0, into: &toClient) }
            }
            precondition(input.count == text.count, "an echo of the wrong length")
            var (output, answer): ([UInt8], [UInt8]) = ([], [])
            try Self.pass(toClient, to: pair.client, &output, &answer)
        }

        private static func pass(
            _ bytes: [UInt8],
            to layer: any ConnectionLayer,
            _ input: inout [UInt8],
            _ answer: inout [UInt8]
        ) throws {
            _ = try bytes.withUnsafeBytes { bytes throws(LayerError) in
                try layer.received(bytes, into: &input, answering: &answer)
            }
        }

        /// Runs work of the server's side, and adds its processor time to `spent`.
        private func measure<Result>(_ body: () throws -> Result) rethrows -> Result {
            let start = Self.threadNs()
            defer { spent += Self.threadNs() - start }
            return try body()
        }

        private static func threadNs() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }

        private static func residentBytes() -> Int {
            guard let file = fopen("/proc/self/statm", "r") else { return 0 }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 128)
            guard fgets(&line, 128, file) != nil else { return 0 }
            let words = line.withUnsafeBufferPointer { characters in
                characters.baseAddress.map { String(cString: $0) } ?? ""
            }.split(separator: " ")
            return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
        }
    }
#endif
