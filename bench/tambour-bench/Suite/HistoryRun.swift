import Foundation
import TambourFraming
import TambourProtocol
import TambourTesting

/// Connections that read one page after another, each on its own thread.
///
/// `@unchecked Sendable`: each thread has its own client; the results are merged at the end.
final class HistoryRun: @unchecked Sendable {
    struct Result: Sendable {
        var pages = 0
        var pagesPerSecond = 0.0
        var p50 = 0.0
        var p99 = 0.0
        var driverCores = 0.0
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

    /// Reads pages for `duration`.
    ///
    /// - Throws: if a page is incomplete.
    func perform(_ duration: Duration) async throws -> Result {
        let own = ProcessMeter.own.cpuSeconds
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
        guard let p50 = sorted.median, let p99 = sorted.percentile(99) else {
            throw BenchError("no page came in time")
        }
        var result = Result()
        result.pages = sorted.count
        result.pagesPerSecond = Double(sorted.count) / seconds
        (result.p50, result.p99) = (p50, p99)
        result.driverCores = (ProcessMeter.own.cpuSeconds - own) / seconds
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

    /// Returns the mean sizes of twenty pages, on the wire and as JSON, in bytes.
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
