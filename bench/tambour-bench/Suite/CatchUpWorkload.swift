import Foundation
import TambourNet
import TambourProtocol
import TambourTesting

/// W4: a phone reconnects. It has 200, 1,000 or 10,000 chats, and five of them have new messages.
struct CatchUpWorkload: Workload {
    static let sizes = [200, 1_000, most]
    private static let most = 10_000
    static let changed = 5

    let name = "W4"
    let title = "catching up: 5 chats changed of 200, 1,000 and 10,000"

    func claims(isFull: Bool) -> [Claim] {
        [
            .figure(
                "200 chats: bytes of the login's answer",
                "200 chats, tambour, LOGIN, bytes in",
                .atMost(1_500)
            ),
            .figure(
                "200 chats: requests after the handshake",
                "200 chats, tambour, requests",
                .atMost(1),
                isStrict: true
            ),
            .ratio(
                "200 chats: server CPU of the LOGIN request, of the C reader's",
                "200 chats, tambour, LOGIN, server CPU µs",
                to: "200 chats, C reader, CPU µs",
                .atMost(5)
            ),
            .ratio(
                "10,000 chats: server CPU of the LOGIN request, of 200 chats'",
                "10000 chats, tambour, LOGIN, server CPU µs",
                to: "200 chats, tambour, LOGIN, server CPU µs",
                .atMost(1.1)
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        let seed = try Self.seed(bench)
        let folder = try bench.folder("catchup").appendingPathComponent("data")
        try Seeder.copy(seed, to: folder)
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let accounts = try Account.read(folder.appendingPathComponent("accounts").path)
        let repeats = bench.isFull ? 2_000 : 500

        var figures: Figures = [:]
        for (position, size) in Self.sizes.enumerated() {
            let prefix = "\(size) chats"
            Progress.show("W4: \(prefix)")
            let account = accounts[position]
            let client = try Self.client(server, account)
            let mark = try client.call(account.loginRequest(since: Self.farFuture)).time
            // The server counts the following messages as later than this login mark, even if they
            // get the same millisecond.
            for partner in accounts[Self.sizes.count...].prefix(Self.changed) {
                let writer = try Self.client(server, partner)
                _ = try writer.call(partner.loginRequest(since: Self.farFuture))
                try writer.send("Are you still awake?", to: partner.dialog(with: account), cid: 1)
                writer.close()
            }
            let request = account.loginRequest(since: mark)
            // Not measured: the first requests fill the caches.
            for _ in 0..<20 { _ = try client.call(request) }

            // Measures only the request, on an existing session: the C reader does the same work.
            let login = try Self.measure(server, "LOGIN", repeats) {
                let before = client.receivedBytes
                let requests = try Self.catchUp(client, request)
                return (client.receivedBytes - before, requests)
            }
            figures.merge(login.figures(as: "\(prefix), tambour, LOGIN")) { $1 }
            client.close()

            // Measures the work of a phone: connection, handshake, login, and further pages if the
            // reply requires them.
            let whole = try Self.measure(server, "whole return", repeats / 5) {
                let client = try Self.client(server, account)
                defer { client.close() }
                let requests = try Self.catchUp(client, request)
                return (client.receivedBytes, requests)
            }
            figures.merge(whole.figures(as: "\(prefix), tambour, whole return")) { $1 }
            figures["\(prefix), tambour, requests"] = Double(whole.mostRequests)

            let reader = try Tool.run(
                "\(bench.limits)/catchup",
                [
                    "--db", folder.appendingPathComponent("tambour.db").path,
                    "--user", "\(account.userID.rawValue)", "--since", "\(mark)",
                    "--repeat", "\(repeats)",
                ]
            )
            guard let limit = reader["cpu_us"] else { throw BenchError("catchup gave no figure") }
            figures["\(prefix), C reader, CPU µs"] = limit
            figures["\(prefix), whole return, multiple of the C reader's CPU"] =
                whole.cpuMicroseconds / limit
        }
        return figures
    }

    /// The results of a repeated action.
    private struct Repeated {
        var cpuMicroseconds: Double
        var driverCores: Double
        var p50: Double
        var bytesIn: Double
        var mostRequests: Int

        func figures(as prefix: String) -> Figures {
            [
                "\(prefix), server CPU µs": cpuMicroseconds,
                "\(prefix), driver cores": driverCores,
                "\(prefix), p50 ms": p50,
                "\(prefix), bytes in": bytesIn,
            ]
        }
    }

    private static func measure(
        _ server: TambourServer,
        _ what: String,
        _ count: Int,
        _ body: () throws -> (bytes: Int, requests: Int)
    ) throws -> Repeated {
        var latencies: [Double] = []
        var (bytes, most) = (0, 0)
        let stretch = try Stretch(server.process.meter)
        for _ in 0..<count {
            let started = monotonicNow()
            let one = try body()
            latencies.append(Double(monotonicNow() - started) / 1e6)
            bytes += one.bytes
            most = max(most, one.requests)
            Progress.show("W4: \(what), \(latencies.count) of \(count)")
        }
        return Repeated(
            cpuMicroseconds: stretch.cpuSeconds * 1e6 / Double(count),
            driverCores: stretch.driverCores,
            p50: latencies.sorted().median ?? .nan,
            bytesIn: Double(bytes) / Double(count),
            mostRequests: most
        )
    }

    /// Logs in and requests pages until every changed chat has arrived with its new message.
    ///
    /// - Returns: the number of requests.
    private static func catchUp(
        _ client: WireClient,
        _ request: LoginRequest
    ) throws -> Int {
        let reply = try client.call(request)
        var (chats, marker, requests) = (reply.chats, reply.chatMarker ?? 0, 1)
        while marker != 0 {
            let page = try client.call(ChatsListRequest(marker: marker))
            chats += page.chats
            marker = page.marker
            requests += 1
        }
        guard chats.count == changed, chats.allSatisfy({ $0.lastMessage != nil }) else {
            throw BenchError("\(chats.count) chats came of \(changed)")
        }
        return requests
    }

    /// A login mark later than all data.
    private static let farFuture: Int64 = 1 << 52

    private static func client(_ server: TambourServer, _ account: Account) throws -> WireClient {
        let client = try WireClient(address: server.process.address.description)
        _ = try client.call(SessionInitRequest(deviceID: "bench-\(account.userID.rawValue)"))
        return client
    }

    /// Seeds three users with many dialogs, and enough partners for the user with the most dialogs.
    private static func seed(_ bench: Bench) throws -> URL {
        try Seeder.cached("catchup-1", in: bench.cache) { folder in
            Progress.note("W4: seeding \(most) dialogs")
            let accounts = try TambourServer.makeUsers(
                sizes.count + most,
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let partners = accounts[sizes.count...]
            let seeder = try Seeder(folder, corpus: bench.corpus, batches: sizes.reduce(0, +) / 100)
            for (account, size) in zip(accounts, sizes) {
                for first in stride(from: 0, to: size, by: 100) {
                    try seeder.batch { tx in
                        for partner in partners.dropFirst(first).prefix(100) {
                            try seeder.dialog(
                                account.userID,
                                partner.userID,
                                messages: 3,
                                in: tx
                            )
                        }
                    }
                }
            }
        }
    }
}
