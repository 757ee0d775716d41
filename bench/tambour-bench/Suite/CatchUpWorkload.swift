import Foundation
import TambourNet
import TambourProtocol
import TambourTesting

/// W4: a phone comes back. It has 200 chats (or 1,000, or 10,000), and in five of them somebody wrote.
struct CatchUpWorkload: Workload {
    static let sizes = [200, 1_000, most]
    private static let most = 10_000
    static let changed = 5

    let name = "W4"
    let title = "catching up: 5 chats changed of 200, 1,000 and 10,000"

    let claims: [Claim] = [
        .figure(
            "200 chats: bytes of the login's answer",
            "200 chats, tambour, bytes in",
            .atMost(1_500)
        ),
        .figure(
            "200 chats: requests after the handshake",
            "200 chats, tambour, requests",
            .atMost(1)
        ),
        .ratio(
            "200 chats: server CPU a login, of the C reader's",
            "200 chats, tambour, server CPU µs/login",
            to: "200 chats, C reader, CPU µs/login",
            .atMost(5)
        ),
        .ratio(
            "10,000 chats: server CPU a login, of 200 chats'",
            "10000 chats, tambour, server CPU µs/login",
            to: "200 chats, tambour, server CPU µs/login",
            .atMost(1.1)
        ),
    ]

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
            let account = accounts[position]
            let client = try Self.client(server, account)
            let mark = try client.call(account.loginRequest(since: Self.farFuture)).time
            // The mark lies below what is now written, also where both share a millisecond.
            for partner in accounts[Self.sizes.count...].prefix(Self.changed) {
                let writer = try Self.client(server, partner)
                _ = try writer.call(partner.loginRequest(since: Self.farFuture))
                try writer.send("Are you still awake?", to: partner.dialog(with: account), cid: 1)
                writer.close()
            }
            // The first one in a while finds cold pages.
            let request = account.loginRequest(since: mark)
            for _ in 0..<20 { _ = try client.call(request) }

            let before = client.receivedBytes
            var reply: LoginReply?
            var latencies: [Double] = []
            let cpu = server.process.meter.cpuSeconds
            for _ in 0..<repeats {
                let started = monotonicNow()
                reply = try client.call(request)
                latencies.append(Double(monotonicNow() - started) / 1e6)
            }
            let used = server.process.meter.cpuSeconds - cpu
            guard let reply, reply.chats.count == Self.changed else {
                throw BenchError(
                    "\(prefix): \(reply?.chats.count ?? 0) chats came of \(Self.changed)"
                )
            }
            figures["\(prefix), tambour, server CPU µs/login"] = used * 1e6 / Double(repeats)
            figures["\(prefix), tambour, bytes in"] =
                Double(client.receivedBytes - before) / Double(repeats)
            // A marker would send the client on to CHATS_LIST.
            figures["\(prefix), tambour, requests"] = (reply.chatMarker ?? 0) == 0 ? 1 : 2
            figures["\(prefix), tambour, p50 ms"] = latencies.sorted().median
            client.close()

            let whole = try Self.reconnects(server, account, request, count: repeats / 5)
            figures["\(prefix), tambour, reconnect server CPU µs"] = whole.cpu
            figures["\(prefix), tambour, reconnect p50 ms"] = whole.p50

            let reader = try Tool.run(
                "\(bench.limits)/catchup",
                [
                    "--db", folder.appendingPathComponent("tambour.db").path,
                    "--user", "\(account.userID.rawValue)", "--since", "\(mark)",
                    "--repeat", "\(repeats)",
                ]
            )
            figures["\(prefix), C reader, CPU µs/login"] = reader["cpu_us"]
        }
        return figures
    }

    /// A mark that nothing is newer than.
    private static let farFuture: Int64 = 1 << 52

    private static func client(_ server: TambourServer, _ account: Account) throws -> WireClient {
        let client = try WireClient(address: server.process.address.description)
        _ = try client.call(SessionInitRequest(deviceID: "bench-\(account.userID.rawValue)"))
        return client
    }

    /// The whole way back: connection, handshake, login.
    private static func reconnects(
        _ server: TambourServer,
        _ account: Account,
        _ request: LoginRequest,
        count: Int
    ) throws -> (cpu: Double, p50: Double) {
        var latencies: [Double] = []
        let cpu = server.process.meter.cpuSeconds
        for _ in 0..<count {
            let started = monotonicNow()
            let client = try client(server, account)
            _ = try client.call(request)
            latencies.append(Double(monotonicNow() - started) / 1e6)
            client.close()
        }
        let used = server.process.meter.cpuSeconds - cpu
        return (used * 1e6 / Double(count), latencies.sorted().median ?? 0)
    }

    /// Three people with many dialogs, and as many partners as the one with most has.
    private static func seed(_ bench: Bench) throws -> URL {
        try Seeder.cached("catchup-1", in: bench.cache) { folder in
            bench.say("W4: seeding \(most) dialogs")
            let accounts = try TambourServer.makeUsers(
                sizes.count + most,
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let lines = accounts.map { "\($0.phone) \($0.userID.rawValue) \($0.token)\n" }.joined()
            try Data(lines.utf8).write(to: folder.appendingPathComponent("accounts"))
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
