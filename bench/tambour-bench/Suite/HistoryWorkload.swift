import Foundation
import TambourNet
import TambourProtocol
import TambourSQL
import TambourTesting

/// W5: somebody scrolls up. A page of 50 messages out of the middle of a chat, again and again
/// elsewhere; the longest chat has a million messages, in a database of ten million.
struct HistoryWorkload: Workload {
    static let lengths = [1_000, 10_000, 100_000, 1_000_000]
    private static let longest = 1_000_000
    private static let total = 10_000_000
    private static let fillers = 2_000
    private static let page = 50

    let name = "W5"
    let title = "a page of 50 messages from the middle of a chat; 10 M messages in all"

    let claims: [Claim] = [
        .ratio(
            "1 M messages, 8 connections: pages/s, of the C reader",
            "1000000 messages, tambour, pages/s",
            to: "1000000 messages, C reader, pages/s",
            .atLeast(1.0 / 3)
        ),
        .ratio(
            "server CPU a page: 1 M messages, of 1,000 messages",
            "1000000 messages, tambour, server CPU µs/page",
            to: "1000 messages, tambour, server CPU µs/page",
            .atMost(1.5)
        ),
        .ratio(
            "1 M messages: bytes of a page, of its JSON",
            "1000000 messages, tambour, bytes/page",
            to: "1000000 messages, as JSON, bytes/page",
            .atMost(0.45)
        ),
    ]

    func round(in bench: Bench) async throws -> Figures {
        let seed = try Self.seed(bench)
        // Pages are read only: the seed itself serves.
        let server = try TambourServer(program: bench.tambourd, directory: seed)
        defer { server.process.stop() }
        let accounts = try Account.read(seed.appendingPathComponent("accounts").path)
        var figures: Figures = [:]
        for (position, length) in Self.lengths.enumerated() {
            let (a, b) = (accounts[2 * position], accounts[2 * position + 1])
            let prefix = "\(length) messages"
            let pivots = seed.appendingPathComponent("pivots-\(length)")
            let ids = try Self.ids(pivots)
            let readers = [a, b]
            for connections in length == Self.longest ? [1, 8] : [8] {
                let run = try HistoryRun(
                    address: server.process.address.description,
                    accounts: (0..<connections).map { readers[$0 % 2] },
                    chat: a.dialog(with: b),
                    times: ids.map(\.timeMs),
                    page: Self.page
                )
                _ = try await run.perform(.milliseconds(300))
                let cpu = server.process.meter.cpuSeconds
                let result = try await run.perform(bench.measured)
                let used = server.process.meter.cpuSeconds - cpu
                let label =
                    connections == 1 ? "\(prefix), tambour, 1 connection" : "\(prefix), tambour"
                figures["\(label), pages/s"] = result.pagesPerSecond
                figures["\(label), p50 ms"] = result.p50
                figures["\(label), p99 ms"] = result.p99
                figures["\(label), server CPU µs/page"] = used * 1e6 / Double(result.pages)
                let sizes = try run.sizes()
                figures["\(label), bytes/page"] = sizes.wire
                figures["\(prefix), as JSON, bytes/page"] = sizes.json
            }
            let chat = try Self.chatKey(seed, a, b)
            let reader = try Tool.run(
                "\(bench.limits)/page",
                [
                    "--db", seed.appendingPathComponent("tambour.db").path, "--chat", "\(chat)",
                    "--pivots", pivots.path, "--count", "\(Self.page)",
                    "--repeat", bench.isFull ? "50000" : "20000",
                ]
            )
            figures["\(prefix), C reader, pages/s"] = reader["pages_per_s"]
            figures["\(prefix), C reader, CPU µs/page"] = reader["cpu_us"]
        }
        return figures
    }

    /// Where the store keeps the dialog of two users.
    private static func chatKey(_ directory: URL, _ a: Account, _ b: Account) throws -> Int64 {
        let path = directory.appendingPathComponent("tambour.db").path
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let statement = try connection.prepare(
            "SELECT id FROM chat WHERE low_user = $1 AND high_user = $2"
        )
        statement.bind(1, min(a.userID, b.userID).rawValue)
        statement.bind(2, max(a.userID, b.userID).rawValue)
        defer { statement.reset() }
        guard try statement.step() else { throw BenchError("the seed has no such dialog") }
        return statement.int(0)
    }

    private static func ids(_ file: URL) throws -> [MessageID] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .compactMap { Int64($0).map { MessageID($0) } }
    }

    private static func seed(_ bench: Bench) throws -> URL {
        try Seeder.cached("history-1", in: bench.cache) { folder in
            bench.say("W5: seeding \(total) messages, once; this takes some minutes")
            let accounts = try TambourServer.makeUsers(
                2 * (lengths.count + fillers),
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let lines = accounts.map { "\($0.phone) \($0.userID.rawValue) \($0.token)\n" }.joined()
            try Data(lines.utf8).write(to: folder.appendingPathComponent("accounts"))
            let perBatch = 1_000
            let seeder = try Seeder(folder, corpus: bench.corpus, batches: total / perBatch)
            // Turn by turn, as chats grow in life: a chat's pages lie all over the file.
            var left =
                lengths
                + Array(
                    repeating: (total - lengths.reduce(0, +)) / fillers,
                    count: fillers
                )
            var pivots = lengths.map { _ in [MessageID]() }
            while left.contains(where: { $0 > 0 }) {
                for index in left.indices where left[index] > 0 {
                    // The long chats take their turn more often.
                    let turns = max(1, left[index] / 100_000)
                    for _ in 0..<turns where left[index] > 0 {
                        let count = min(perBatch, left[index])
                        let ids = try seeder.dialog(
                            accounts[2 * index].userID,
                            accounts[2 * index + 1].userID,
                            messages: count
                        )
                        left[index] -= count
                        guard index < lengths.count else { continue }
                        let every = max(1, lengths[index] / 2_000)
                        pivots[index] += ids.enumerated().filter { $0.offset % every == 0 }.map(
                            \.element
                        )
                    }
                }
            }
            for (length, ids) in zip(lengths, pivots) {
                // Not from the first page and not from the last.
                let middle = ids[(ids.count / 10)..<(ids.count - ids.count / 10)].shuffled()
                let text = middle.map { "\($0.rawValue)\n" }.joined()
                try Data(text.utf8).write(to: folder.appendingPathComponent("pivots-\(length)"))
            }
        }
    }
}

/// Connections that read pages one after another, each on a thread of its own.
///
/// `@unchecked Sendable`: each thread has its own client; the results are put together at the end.
final class HistoryRun: @unchecked Sendable {
    struct Result: Sendable {
        var pages = 0
        var pagesPerSecond = 0.0
        var p50 = 0.0
        var p99 = 0.0
    }

    private let clients: [WireClient]
    private let chat: ChatID
    private let times: [Int64]
    private let page: Int

    init(address: String, accounts: [Account], chat: ChatID, times: [Int64], page: Int) throws {
        clients = try accounts.map { account in
            let client = try WireClient(address: address)
            _ = try client.call(SessionInitRequest(deviceID: "bench-\(account.userID.rawValue)"))
            _ = try client.call(account.loginRequest(since: 1 << 52))
            return client
        }
        self.chat = chat
        self.times = times
        self.page = page
    }

    /// Reads pages for so long.
    ///
    /// - Throws: when a page is not whole.
    func perform(_ duration: Duration) async throws -> Result {
        let start = monotonicNow()
        let end = start + UInt64(duration / .nanoseconds(1))
        let parts = try await withThrowingTaskGroup(of: [Double].self) { group in
            for (index, client) in clients.enumerated() {
                nonisolated(unsafe) let client = client
                group.addTask {
                    try await withCheckedThrowingContinuation { continuation in
                        Thread.detachNewThread {
                            continuation.resume(
                                with: Swift.Result {
                                    try self.read(client, from: index, until: end)
                                }
                            )
                        }
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let seconds = Double(monotonicNow() - start) / 1e9
        let sorted = parts.sorted()
        var result = Result()
        result.pages = sorted.count
        result.pagesPerSecond = Double(sorted.count) / seconds
        result.p50 = sorted.median ?? 0
        result.p99 = sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
        return result
    }

    private func read(_ client: WireClient, from index: Int, until end: UInt64) throws -> [Double] {
        var latencies: [Double] = []
        var position = index * 257
        while monotonicNow() < end {
            position = (position + 1) % times.count
            let started = monotonicNow()
            let number = try client.send(request(times[position]))
            let packet = try client.reply(to: number)
            latencies.append(Double(monotonicNow() - started) / 1e6)
            guard packet.header.command == PacketCommand.ok.rawValue, packet.payload.count > 1_000
            else { throw BenchError("a page did not come") }
        }
        return latencies
    }

    private func request(_ time: Int64) -> ChatHistoryRequest {
        ChatHistoryRequest(
            chatID: chat,
            from: time,
            forward: 0,
            backward: Int64(page),
            getMessages: true,
            getChat: false
        )
    }

    /// Twenty pages as they travel and as JSON, bytes each.
    func sizes() throws -> (wire: Double, json: Double) {
        var (wire, json) = (0, 0)
        for time in times.prefix(20) {
            let before = clients[0].receivedBytes
            let number = try clients[0].send(request(time))
            let packet = try clients[0].reply(to: number)
            wire += clients[0].receivedBytes - before
            json += try JSONSize.of(packet.payload)
        }
        return (Double(wire) / 20, Double(json) / 20)
    }
}

/// How long MessagePack would be as JSON without blanks.
enum JSONSize {
    static func of(_ payload: [UInt8]) throws -> Int {
        var offset = 0
        return try size(payload, &offset)
    }

    private static func number(_ bytes: [UInt8], _ offset: inout Int, _ width: Int) throws -> UInt64
    {
        guard offset + width <= bytes.count else { throw BenchError("not MessagePack") }
        defer { offset += width }
        return bytes[offset..<(offset + width)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func text(_ bytes: [UInt8], _ offset: inout Int, _ count: Int) throws -> Int {
        guard offset + count <= bytes.count else { throw BenchError("not MessagePack") }
        defer { offset += count }
        // Quotes, and a backslash before what JSON escapes.
        return bytes[offset..<(offset + count)].reduce(2) { sum, byte in
            sum + (byte == 0x22 || byte == 0x5C || byte == 0x0A ? 2 : byte < 0x20 ? 6 : 1)
        }
    }

    private static func items(_ bytes: [UInt8], _ offset: inout Int, _ count: Int) throws -> Int {
        var sum = 2 + max(0, count - 1)
        for _ in 0..<count { sum += try size(bytes, &offset) }
        return sum
    }

    private static func entries(_ bytes: [UInt8], _ offset: inout Int, _ count: Int) throws -> Int {
        var sum = 2 + max(0, count - 1)
        for _ in 0..<count {
            sum += try size(bytes, &offset) + 1
            sum += try size(bytes, &offset)
        }
        return sum
    }

    private static func size(_ bytes: [UInt8], _ offset: inout Int) throws -> Int {
        let head = UInt8(try number(bytes, &offset, 1))
        switch head {
        case 0x00...0x7F: return "\(head)".count
        case 0x80...0x8F: return try entries(bytes, &offset, Int(head & 0xF))
        case 0x90...0x9F: return try items(bytes, &offset, Int(head & 0xF))
        case 0xA0...0xBF: return try text(bytes, &offset, Int(head & 0x1F))
        case 0xC0: return 4
        case 0xC2: return 5
        case 0xC3: return 4
        case 0xC4...0xC6, 0xD9...0xDB:
            let width = 1 << Int((head - (head < 0xC7 ? 0xC4 : 0xD9)))
            let count = Int(try number(bytes, &offset, width))
            return try text(bytes, &offset, count)
        case 0xCA, 0xCB:
            let bits = try number(bytes, &offset, head == 0xCA ? 4 : 8)
            let value =
                head == 0xCB
                ? Double(bitPattern: bits) : Double(Float(bitPattern: UInt32(bits)))
            return "\(value)".count
        case 0xCC...0xCF: return "\(try number(bytes, &offset, 1 << Int(head - 0xCC)))".count
        case 0xD0...0xD3:
            let width = 1 << Int(head - 0xD0)
            let raw = try number(bytes, &offset, width)
            let shift = UInt64(64 - 8 * width)
            return "\(Int64(bitPattern: raw << shift) >> Int64(shift))".count
        case 0xDC, 0xDD:
            let count = Int(try number(bytes, &offset, head == 0xDC ? 2 : 4))
            return try items(bytes, &offset, count)
        case 0xDE, 0xDF:
            let count = Int(try number(bytes, &offset, head == 0xDE ? 2 : 4))
            return try entries(bytes, &offset, count)
        case 0xE0...0xFF: return "\(Int8(bitPattern: head))".count
        default: throw BenchError("no JSON for MessagePack \(head)")
        }
    }
}
