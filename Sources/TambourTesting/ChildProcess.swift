package import Foundation
import Synchronization

/// A program that a test has started. Provides the program's output line by line, its error text
/// and its exit status.
///
/// Three separate threads read the program's pipes and wait for its exit. They do not block the
/// threads of tests, and may run longer than this object exists.
package final class ChildProcess: Sendable {
    package struct Failed: Error, CustomStringConvertible {
        package var description: String

        package init(description: String) { self.description = description }
    }

    /// The lines of standard output. The stream can be iterated once, and ends when the program
    /// closes its output.
    package let lines: AsyncStream<String>

    private let processID: pid_t
    private let ending = Ending()
    private let errorText = ErrorText()

    /// Starts `program`.
    ///
    /// - Parameter input: the path of a file for its standard input.
    /// - Throws: `Failed` if the program cannot be started.
    package init(
        _ program: URL,
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = "/dev/null"
    ) throws {
        let (lines, feed) = AsyncStream.makeStream(of: String.self)
        self.lines = lines
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let child = try Self.births.withLock { _ in
            try Self.spawn(
                [program.path] + arguments,
                environment: variables.map { "\($0.key)=\($0.value)" },
                input: input
            )
        }
        processID = child.processID

        let readers = DispatchGroup()
        readers.enter()
        Thread.detachNewThread {
            var partial: [UInt8] = []
            Self.readToEnd(of: child.output) { bytes in
                partial += bytes
                for line in Self.takeLines(of: &partial) { feed.yield(line) }
            }
            if !partial.isEmpty { feed.yield(String(decoding: partial, as: UTF8.self)) }
            feed.finish()
            readers.leave()
        }
        let errorText = errorText
        readers.enter()
        Thread.detachNewThread {
            Self.readToEnd(of: child.errors) { errorText.append($0) }
            errorText.finish()
            readers.leave()
        }
        let ending = ending
        Thread.detachNewThread {
            let status = ending.reap(child.processID)
            readers.wait()
            ending.reached(status)
        }
    }

    /// The outcome of a program that has exited.
    package struct Outcome: Sendable {
        /// The exit status; see `exitStatus()`.
        package let status: Int32
        package let output: String
        package let errors: String
    }

    /// Runs `program` and blocks until it exits. Foundation's `Process` is unsuitable, because
    /// `waitUntilExit` also waits for other programs that have inherited the descriptors of this
    /// program.
    ///
    /// - Parameters:
    ///   - input: the path of a file for its standard input.
    ///   - deadline: the time after which the program is killed.
    /// - Throws: `Failed` if the program cannot be started.
    package static func run(
        _ program: URL,
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = "/dev/null",
        within deadline: DispatchTimeInterval = .seconds(120)
    ) throws -> Outcome {
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let child = try births.withLock { _ in
            try spawn(
                [program.path] + arguments,
                environment: variables.map { "\($0.key)=\($0.value)" },
                input: input
            )
        }
        let errorText = ErrorText()
        let hasErrors = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            readToEnd(of: child.errors) { errorText.append($0) }
            hasErrors.signal()
        }
        let ending = Ending()
        let killer = DispatchSource.makeTimerSource()
        killer.schedule(deadline: .now() + deadline)
        killer.setEventHandler { ending.signal(SIGKILL, to: child.processID) }
        killer.activate()
        defer { killer.cancel() }
        var output: [UInt8] = []
        readToEnd(of: child.output) { output += $0 }
        hasErrors.wait()
        return Outcome(
            status: ending.reap(child.processID),
            output: String(decoding: output, as: UTF8.self),
            errors: errorText.string
        )
    }

    /// Waits for a line of output that starts with `prefix`. Kills the program when the deadline
    /// expires.
    ///
    /// - Returns: the rest of the line; nil if the program exited without such a line.
    package func line(after prefix: String, within deadline: Duration = .seconds(120)) async
        -> String?
    {
        let killer = killer(after: deadline)
        defer { killer.cancel() }
        for await line in lines where line.hasPrefix(prefix) {
            return String(line.dropFirst(prefix.count))
        }
        return nil
    }

    /// Waits until standard error contains a text. Kills the program when the deadline expires.
    /// Only one task may wait at a time.
    ///
    /// - Returns: false if the program exited without writing this text.
    package func errors(contain text: String, within deadline: Duration = .seconds(120)) async
        -> Bool
    {
        if errors.contains(text) { return true }
        let killer = killer(after: deadline)
        defer { killer.cancel() }
        for await _ in errorText.changes where errors.contains(text) { return true }
        return errors.contains(text)
    }

    /// Kills the program after a deadline. The caller can prevent this by cancelling the returned
    /// task.
    private func killer(after deadline: Duration) -> Task<Void, any Error> {
        Task {
            try await Task.sleep(for: deadline)
            signal(SIGKILL)
        }
    }

    /// The text written to standard error so far.
    package var errors: String { errorText.string }

    /// The program's current memory in bytes; 0 after its exit.
    package var residentBytes: Int {
        let statm = "/proc/\(processID)/statm"
        guard let text = try? String(contentsOfFile: statm, encoding: .utf8) else { return 0 }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// The program's peak memory in bytes; 0 after its exit.
    package var peakResidentBytes: Int {
        let status = "/proc/\(processID)/status"
        guard let text = try? String(contentsOfFile: status, encoding: .utf8) else { return 0 }
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
    }

    package func signal(_ number: Int32) {
        ending.signal(number, to: processID)
    }

    /// Waits until the program exits and its output ends.
    ///
    /// - Returns: the exit status of the program. If a signal killed the program, 128 plus the
    ///   number of the signal.
    package func exitStatus() async -> Int32 {
        await ending.wait()
    }

    /// Waits until the program exits, and kills it when the deadline expires.
    ///
    /// - Throws: `Failed` if the deadline expired.
    package func exitStatus(within deadline: Duration) async throws -> Int32 {
        let killer = killer(after: deadline)
        let status = await exitStatus()
        killer.cancel()
        if (try? await killer.value) != nil {
            throw Failed(description: "did not end within \(deadline)\n\(errors)")
        }
        return status
    }

    /// Creates an executable script.
    ///
    /// A child process writes the file. If this process wrote it, a program that another test
    /// starts could inherit the open file. A file that is open for writing cannot be executed.
    ///
    /// - Throws: `Failed` if the script cannot be created.
    package static func makeProgram(at path: String, _ text: String) throws {
        let made = try run(
            URL(fileURLWithPath: "/bin/sh"),
            ["-c", "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"", "sh", text, path]
        )
        guard made.status == 0 else { throw Failed(description: "\(path): \(made.errors)") }
    }

    // MARK: - Starting

    /// A number above all open descriptors. It leaves room for descriptors that other threads open
    /// in the meantime.
    private static var endOfDescriptors: Int32 {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return 64 + (open.compactMap { Int32($0) }.max() ?? 256)
    }

    /// The lock that is held while a child starts or a pipe is created. No child may start between
    /// the creation of a pipe and the setting of the pipe's close-on-exec flag. Otherwise the child
    /// would inherit the pipe. A test that reads the pipe to its end would then wait for the child
    /// of another test.
    private static let births = Mutex(())

    private static func spawn(
        _ arguments: [String],
        environment: [String],
        input: String = "/dev/null"
    ) throws -> (processID: pid_t, output: Int32, errors: Int32) {
        let output = try privatePipe()
        let errors = try privatePipe()
        defer {
            // Close the write ends in this process. Otherwise reading from the pipes would never
            // end.
            close(output.writer)
            close(errors.writer)
        }
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writer, 1)
        posix_spawn_file_actions_adddup2(&actions, errors.writer, 2)
        // Close all other descriptors in the child. Inherited sockets of other tests would count
        // towards the child's limit of descriptors, and would stay open while the child runs.
        for descriptor in 3..<endOfDescriptors {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        // Unblock all signals in the child, because a child inherits the mask of the test's thread,
        // which blocks all signals.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        var argumentPointers = arguments.map { strdup($0) } + [nil]
        var environmentPointers = environment.map { strdup($0) } + [nil]
        defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
        var processID = pid_t()
        let result = posix_spawn(
            &processID,
            arguments[0],
            &actions,
            &attributes,
            &argumentPointers,
            &environmentPointers
        )
        guard result == 0 else {
            close(output.reader)
            close(errors.reader)
            throw Failed(description: "\(arguments[0]): \(String(cString: strerror(result)))")
        }
        return (processID, output.reader, errors.reader)
    }

    private static func privatePipe() throws -> (reader: Int32, writer: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw Failed(description: "pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    // MARK: - Reading

    private static func readToEnd(of end: Int32, _ consume: ([UInt8]) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(end, &buffer, buffer.count)
            if count > 0 {
                consume(Array(buffer[..<count]))
            } else if count == 0 || errno != EINTR {
                break
            }
        }
        close(end)
    }

    private static func takeLines(of bytes: inout [UInt8]) -> [String] {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        bytes = Array(lines.removeLast())
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }
}

private final class ErrorText: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    /// Contains a value for each change of the text, and ends when the program closes standard
    /// error. Only one task at a time may iterate the stream.
    let changes: AsyncStream<Void>
    private let feed: AsyncStream<Void>.Continuation

    init() {
        (changes, feed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var string: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }

    func append(_ more: [UInt8]) {
        bytes.withLock { $0 += more }
        feed.yield()
    }

    func finish() { feed.finish() }
}

/// The exit of a program. Any number of tasks may wait for it.
private final class Ending: Sendable {
    private struct State {
        var isReaped = false
        var status: Int32?
        var waiting: [CheckedContinuation<Int32, Never>] = []
    }

    private let state = Mutex(State())

    func signal(_ number: Int32, to processID: pid_t) {
        state.withLock { state in
            // After the program has been reaped, another process may have the same process id.
            if !state.isReaped { kill(processID, number) }
        }
    }

    /// Blocks until the program exits.
    func reap(_ processID: pid_t) -> Int32 {
        var info = siginfo_t()
        while waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) == -1, errno == EINTR {}
        return state.withLock { state in
            state.isReaped = true
            var status: Int32 = 0
            while waitpid(processID, &status, 0) == -1, errno == EINTR {}
            let signal = status & 0x7F
            return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        }
    }

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
