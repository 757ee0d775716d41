import Foundation
import TambourNet

/// A server on loopback that the benchmark starts and stops.
final class ServerProcess {
    /// The time in seconds that the server gets to exit before it is killed.
    private static let patience = 30.0

    let address: ListenAddress
    private let child: Child

    /// Starts `program` and waits until it is ready.
    ///
    /// - Parameters:
    /// - directory: The server's working directory.
    /// - port: The server is ready when this loopback port answers. If nil, the server is ready
    ///   when it prints a line that starts with `listening tcp `, and its errors go to standard
    ///   error.
    /// - Throws: `BenchError` if the server exits before it is ready, or takes longer than a
    ///   minute.
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

    /// The meter of the server process and its descendants.
    var meter: ProcessMeter { ProcessMeter(processIDs: ProcessTable.family(of: processID)) }

    /// Stops the server as an operator would; kills it if it does not exit in time.
    func stop() { child.stop(patience: Self.patience) }

    deinit { stop() }
}

/// The last part of a program's output. Reading the output prevents the pipe from filling up.
///
/// `@unchecked Sendable`: the lock guards `bytes`.
private final class Output: @unchecked Sendable {
    private let lock = NSLock()
    private var bytes = Data()

    init(_ file: FileHandle) {
        file.readabilityHandler = { [self] file in
            let new = file.availableData
            // Setting the handler to nil ends the calls and releases the file.
            if new.isEmpty { file.readabilityHandler = nil }
            lock.withLock { bytes = (bytes + new).suffix(1 << 16) }
        }
    }

    var text: String { lock.withLock { String(decoding: bytes, as: UTF8.self) } }

    /// Returns the rest of a complete line that starts with `start`.
    func line(after start: String) -> String? {
        text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .first { $0.hasPrefix(start) }
            .map { String($0.dropFirst(start.count)) }
    }
}
