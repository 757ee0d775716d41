import Foundation
import Synchronization

/// A program that a test started: its output line by line as it comes, its errors, its end.
final class ChildProcess: Sendable {
    struct Failed: Error, CustomStringConvertible {
        var description: String
    }

    /// Lines of standard output, to be read once. Ends when the program closes it.
    let lines: AsyncStream<String>

    private static let births = Mutex(())

    private let process: Process
    /// The ends we read from; a handle that nobody holds closes, and reads no more.
    private let readers: [FileHandle]
    private let ending: Ending
    private let errorText = Mutex(Data())

    /// Starts `program` at once.
    ///
    /// - Throws: What `Process.run()` throws, and `Failed` when there are no descriptors left.
    init(_ program: URL, _ arguments: [String], environment: [String: String] = [:]) throws {
        let (lines, feed) = AsyncStream.makeStream(of: String.self)
        self.lines = lines
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let ending = Ending()
        self.ending = ending
        process.terminationHandler = { ending.reached($0.terminationStatus) }
        // One at a time: between making a pipe and keeping it from being inherited, nobody is born.
        let (output, errors) = try Self.births.withLock { _ in
            let output = try PrivatePipe()
            let errors = try PrivatePipe()
            process.standardOutput = output.writer
            process.standardError = errors.writer
            try withAllSignals { try process.run() }
            // While our copies of the ends the program writes to are open, reading never ends.
            try output.writer.close()
            try errors.writer.close()
            return (output.reader, errors.reader)
        }
        self.process = process
        readers = [output, errors]

        let partial = Mutex(Data())
        output.readabilityHandler = { handle in
            let bytes = handle.availableData
            let whole = partial.withLock { partial in
                partial += bytes
                return Self.takeLines(of: &partial, includingLast: bytes.isEmpty)
            }
            for line in whole { feed.yield(line) }
            if bytes.isEmpty {
                handle.readabilityHandler = nil
                feed.finish()
            }
        }
        errors.readabilityHandler = { [weak self] handle in
            let bytes = handle.availableData
            if bytes.isEmpty { handle.readabilityHandler = nil }
            self?.errorText.withLock { $0 += bytes }
        }
    }

    /// What was written to standard error so far.
    var errors: String { errorText.withLock { String(decoding: $0, as: UTF8.self) } }

    /// What the program holds in memory right now, bytes; 0 when it has ended.
    var residentBytes: Int {
        let statm = "/proc/\(process.processIdentifier)/statm"
        guard let text = try? String(contentsOfFile: statm, encoding: .utf8) else { return 0 }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    func signal(_ number: Int32) {
        if ending.status == nil { kill(process.processIdentifier, number) }
    }

    /// Waits for the end of the program. The status of a program ended by a signal is the signal.
    func exitStatus() async -> Int32 {
        await ending.wait()
    }

    /// Waits for the end of the program, and kills it when it takes too long.
    ///
    /// - Throws: `Failed` if it had to be killed.
    func exitStatus(within deadline: Duration) async throws -> Int32 {
        let killer = Task {
            try await Task.sleep(for: deadline)
            signal(SIGKILL)
            return true
        }
        let status = await exitStatus()
        killer.cancel()
        if (try? await killer.value) == true {
            throw Failed(description: "did not end within \(deadline)\n\(errors)")
        }
        return status
    }

    private static func takeLines(of bytes: inout Data, includingLast: Bool) -> [String] {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let rest = lines.removeLast()
        defer { bytes = includingLast ? Data() : Data(rest) }
        if includingLast && !rest.isEmpty { lines.append(rest) }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The end of a program, to be waited for by anybody.
private final class Ending: Sendable {
    private struct State {
        var status: Int32?
        var waiting: [CheckedContinuation<Int32, Never>] = []
    }

    private let state = Mutex(State())

    var status: Int32? { state.withLock { $0.status } }

    func wait() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = state.withLock { state in
                if state.status == nil { state.waiting.append(continuation) }
                return state.status
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    func reached(_ status: Int32) {
        let waiting = state.withLock { state in
            state.status = status
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: status) }
    }
}

/// Runs `body` on a thread that blocks no signal. A child inherits what its parent's thread blocks,
/// and the threads that tests run on block all of them.
private func withAllSignals(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
}

/// A pipe whose ends no other child inherits: a test that reads to the end must not wait for
/// somebody else's server to close the copy it was born with.
private struct PrivatePipe {
    let reader: FileHandle
    let writer: FileHandle

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw ChildProcess.Failed(description: "pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        reader = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        writer = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
    }
}
