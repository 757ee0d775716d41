import Foundation
import TambourNet

/// A server that the benchmark started, on loopback, to be stopped by it.
final class ServerProcess {
    let address: ListenAddress
    let meter: ProcessMeter
    private let process: Process

    /// Starts `program` and waits until it prints a line that begins with `listening tcp `.
    ///
    /// - Throws: `BenchError` if it ends before, or takes longer than 30 s.
    init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        guard FileManager.default.isExecutableFile(atPath: program) else {
            throw BenchError("\(program) is not there; `make bench` builds it")
        }
        process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        meter = ProcessMeter(processIDs: [process.processIdentifier])
        let impatience = DispatchWorkItem { [process] in process.terminate() }
        DispatchQueue.global().asyncAfter(deadline: .now() + 30, execute: impatience)
        defer { impatience.cancel() }
        var text = ""
        while true {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw BenchError("\(program) ended before it listened") }
            text += String(decoding: data, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            guard let line = lines.first(where: { $0.hasPrefix("listening tcp ") }) else {
                continue
            }
            address = try ListenAddress(String(line.dropFirst("listening tcp ".count)))
            break
        }
        // What else it says must not fill the pipe and stop it.
        output.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
    }

    /// Stops it as an operator would and waits for its end.
    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
    }

    deinit { stop() }
}
