import Foundation
import TambourNet

/// A server that the benchmark started, on loopback, to be stopped by it.
final class ServerProcess {
    /// How long it may take to end before it is killed, seconds.
    private static let patience = 30.0

    let address: ListenAddress
    private let child: Child

    /// Starts `program` and waits until it serves.
    ///
    /// - Parameters:
    ///   - directory: Where it runs.
    ///   - port: It serves when that port of loopback answers. If nil, when it prints a line that begins
    ///     with `listening tcp `, and then what it complains of goes to standard error.
    /// - Throws: `BenchError` if it ends before, or takes longer than a minute.
    init(
        _ program: String,
        _ arguments: [String],
        environment: [String: String] = [:],
        in directory: URL? = nil,
        port: Int? = nil
    ) throws {
        guard FileManager.default.isExecutableFile(atPath: program) else {
            throw BenchError("\(program) is not there; `make bench` builds it")
        }
        child = try Child(
            program,
            arguments,
            environment: environment,
            in: directory,
            mergesErrors: port != nil
        )
        do {
            address = try Self.address(of: child, port)
        } catch {
            child.stop(patience: Self.patience)
            throw error
        }
    }

    private static func address(of child: Child, _ port: Int?) throws -> ListenAddress {
        let output = Output(child.output)
        let deadline = Date.now + 60
        while Date.now < deadline, child.isRunning {
            if let port {
                let address = ListenAddress(host: "127.0.0.1", port: UInt16(port))
                if let descriptor = try? dial(address) {
                    close(descriptor)
                    return address
                }
            } else if let place = output.line(after: "listening tcp ") {
                return try ListenAddress(place)
            }
            usleep(10_000)
        }
        let what = child.isRunning ? "does not serve after a minute" : "ended before it served"
        throw BenchError("\(child.program) \(what): \(output.text.suffix(2_000))")
    }

    var processID: pid_t { child.processID }

    /// Of the process and everything below it.
    var meter: ProcessMeter { ProcessMeter(processIDs: ProcessTable.family(of: processID)) }

    /// Stops it as an operator would; kills it if that takes too long.
    func stop() { child.stop(patience: Self.patience) }

    deinit { stop() }
}

/// The end of what a program has written; reading it keeps the pipe from filling up.
///
/// `@unchecked Sendable`: `bytes` is under the lock.
private final class Output: @unchecked Sendable {
    private let lock = NSLock()
    private var bytes = Data()

    init(_ file: FileHandle) {
        file.readabilityHandler = { [self] file in
            let new = file.availableData
            // Set to nil, it is not called again and lets go of the file.
            if new.isEmpty { file.readabilityHandler = nil }
            lock.withLock { bytes = (bytes + new).suffix(1 << 16) }
        }
    }

    var text: String { lock.withLock { String(decoding: bytes, as: UTF8.self) } }

    /// The rest of a whole line that begins with `start`.
    func line(after start: String) -> String? {
        text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .first { $0.hasPrefix(start) }
            .map { String($0.dropFirst(start.count)) }
    }
}
