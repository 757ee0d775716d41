import Dispatch
import TambourNet
import TambourQueues

/// Clients that log in, a few at a time, and then work together; all of them run on one lane.
///
/// `@unchecked Sendable`: only the lane uses the mutable state.
class Fleet<Outcome: Sendable>: LoadSink, @unchecked Sendable {
    let lane = Lane(
        index: 0,
        label: "bench",
        timerTick: .milliseconds(1),
        poisonAfterCallback: false
    )

    private let address: ListenAddress
    private let sources: [String]
    /// The maximum number of logins in flight.
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
    /// - sources: Source addresses of the connections, used in turn; empty means the system's
    ///   choice.
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

    /// Connects the clients, does the work, and returns its outcome.
    ///
    /// - Throws: `BenchError` if a client fails, or if some client has not logged in after two
    ///   minutes.
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

    /// The name in the progress line.
    var name: String { "fleet" }

    /// Starts the work; logs all clients in unless overridden.
    func begin() { logIn(count) { [self] in allReady() } }

    /// Called when all clients are logged in.
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

    /// Called when a client cannot continue; ends the work unless overridden.
    func failed(_ client: LoadClient, _ reason: String) {
        end(.failure(BenchError("client \(client.index): \(reason)")))
    }

    /// Called when some clients have not logged in by the deadline; ends the work unless
    /// overridden.
    func late(_ target: Int) {
        end(.failure(BenchError("\(readyCount) of \(target) clients logged in")))
    }

    // MARK: - Logging in

    private var whenReady: () -> Void = {}

    /// Logs clients in until `target` of them are logged in.
    final func logIn(_ target: Int, _ whenReady: @escaping () -> Void) {
        self.target = target
        self.whenReady = whenReady
        after(.seconds(120)) { [self] in if readyCount < target { late(target) } }
        dialMore()
    }

    private func dialMore() {
        while !isOver, dialed < target, dialed - readyCount < logins {
            // Dial the first client alone, because it may prepare data for the other clients.
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

/// Returns the nanoseconds of a monotonic clock.
func monotonicNow() -> UInt64 { DispatchTime.now().uptimeNanoseconds }
