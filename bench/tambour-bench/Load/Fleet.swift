import Dispatch
import TambourNet

/// Clients that log in, a few at a time, and do something together; everything on one lane.
///
/// `@unchecked Sendable`: all but the constants is touched on the lane.
class Fleet<Outcome: Sendable>: LoadSink, @unchecked Sendable {
    let lane = Lane(
        index: 0,
        label: "bench",
        timerTick: .milliseconds(1),
        poisonAfterCallback: false
    )

    private let address: ListenAddress
    private let sources: [String]
    /// Logins on their way at a time.
    private let logins: Int
    private let count: Int
    private let makeClient: (Int, any LoadSink) -> LoadClient

    final private(set) var clients: [LoadClient] = []
    final private(set) var readyCount = 0
    final private(set) var isOver = false
    private var dialed = 0
    private var target = 0
    private var finish: ((Result<Outcome, any Error>) -> Void)?

    /// - Parameters:
    ///   - sources: Source addresses of the connections, taken in turn; the system's choice if empty.
    init(
        count: Int,
        address: ListenAddress,
        sources: [String] = [],
        logins: Int = 64,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        self.count = count
        self.address = address
        self.sources = sources
        self.logins = logins
        self.makeClient = makeClient
    }

    /// Connects and does the work.
    ///
    /// - Throws: `BenchError` when a client fails, or when two minutes do not bring all of them in.
    func perform() async throws -> Outcome {
        lane.start()
        let result = await withCheckedContinuation { continuation in
            lane.queue.async {
                self.finish = { continuation.resume(returning: $0) }
                self.clients = (0..<self.count).map { self.makeClient($0, self) }
                self.begin()
            }
        }
        await withCheckedContinuation { done in lane.stop { done.resume() } }
        return try result.get()
    }

    /// For the progress line.
    var name: String { "fleet" }

    /// What to do first; logs everybody in unless overridden.
    func begin() { logIn(count) { [self] in allReady() } }

    /// Everybody is logged in.
    func allReady() {}

    func acknowledged(_ client: LoadClient) {}
    func delivered(_ number: UInt32, to client: LoadClient) {}

    final func end(_ result: Result<Outcome, any Error>) {
        guard !isOver else { return }
        isOver = true
        for client in clients { client.close() }
        finish?(result)
        finish = nil
    }

    final func after(_ delay: Duration, _ body: @escaping () -> Void) {
        _ = lane.schedule(after: delay) { [self] in if !isOver { body() } }
    }

    /// A client cannot go on; that ends the work unless overridden.
    func failed(_ client: LoadClient, _ reason: String) {
        end(.failure(BenchError("client \(client.index): \(reason)")))
    }

    /// Not everybody came in in time; that ends the work unless overridden.
    func late(_ target: Int) {
        end(.failure(BenchError("\(readyCount) of \(target) clients logged in")))
    }

    // MARK: - Logging in

    private var whenReady: () -> Void = {}

    /// Logs clients in until there are `target` of them.
    final func logIn(_ target: Int, _ whenReady: @escaping () -> Void) {
        self.target = target
        self.whenReady = whenReady
        after(.seconds(120)) { [self] in if readyCount < target { late(target) } }
        dialMore()
    }

    private func dialMore() {
        while !isOver, dialed < target, dialed - readyCount < logins {
            // The first one alone: it may have something to prepare for the others.
            if dialed == 1, readyCount == 0 { return }
            nonisolated(unsafe) let client = clients[dialed]
            let source = sources.isEmpty ? nil : sources[dialed % sources.count]
            dialed += 1
            client.dialedAt = monotonicNow()
            do {
                let descriptor = try dial(address, from: source)
                lane.adopt(fileDescriptor: descriptor, peer: "", delegate: client)
            } catch {
                failed(client, "\(error)")
            }
        }
    }

    final func ready(_ client: LoadClient) {
        readyCount += 1
        Progress.show("\(name): \(readyCount) of \(target) logged in")
        if readyCount == target { whenReady() } else { dialMore() }
    }
}

/// Nanoseconds of a clock that only goes forward.
func monotonicNow() -> UInt64 { DispatchTime.now().uptimeNanoseconds }
