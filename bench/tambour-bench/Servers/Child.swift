import Foundation
import Glibc

/// A program that the benchmark starts and that ends together with the benchmark.
///
/// When the benchmark receives a termination signal, `Cleanup` ends the child. When the benchmark
/// is killed, the kernel kills the child, because `setpriv` requests this (`PR_SET_PDEATHSIG`,
/// which survives `exec`). A child outlives a killed benchmark in two cases: the installed
/// `setpriv` lacks this option, or the kill comes in the millisecond before `setpriv` runs.
///
/// The tests' `ChildProcess` is unsuitable: it outlives a killed parent, has no process group or
/// working directory of its own, and only tasks can wait for it.
///
/// `@unchecked Sendable`: `processID` is written before `init` returns; `state` guards the rest.
final class Child: @unchecked Sendable {
    let program: String
    private(set) var processID: pid_t = 0
    /// The child's standard output.
    let output: FileHandle
    private let state = NSCondition()
    /// The status from `waitpid`; nil while the child runs.
    private var status: Int32?

    /// Starts `program`, a path.
    ///
    /// - Parameters:
    /// - environment: Variables that differ from the benchmark's environment.
    /// - directory: The working directory; nil means the benchmark's working directory.
    /// - mergesErrors: Whether `output` includes standard error; otherwise the benchmark's standard
    ///   error receives it.
    init(
        _ program: String,
        _ arguments: [String],
        environment: [String: String] = [:],
        in directory: URL? = nil,
        mergesErrors: Bool = false
    ) throws {
        self.program = program
        let folder = directory.map { ["/usr/bin/env", "--chdir=\($0.path)"] } ?? []
        let words = (Self.dyingWithParent ?? []) + folder + [program] + arguments
        let settings = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            .map { "\($0.key)=\($0.value)" }
        let (reading, writing) = try Self.pipe()
        output = FileHandle(fileDescriptor: reading, closeOnDealloc: true)
        let started = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var failure: Int32 = 0
        // For the kernel, the parent of a child is the thread that starts it, so this thread must
        // live as long as the child.
        Thread.detachNewThread { [self] in
            failure = spawn(words, settings, writing, mergesErrors)
            started.signal()
            if failure == 0 { waitForEnd() }
        }
        started.wait()
        close(writing)
        guard failure == 0 else {
            throw BenchError("\(program) does not start: \(String(cString: strerror(failure)))")
        }
        guard Cleanup.shared.add(self) else {
            stop(patience: 0)
            throw BenchError("\(program) was not started: the benchmark is ending")
        }
    }

    /// Creates a pipe that no other child inherits.
    static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else {
            throw BenchError("no pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// The command prefix that makes a child die with its parent; nil if the prefix does not work
    /// here.
    private static let dyingWithParent: [String]? = {
        let words = ["/usr/bin/setpriv", "--pdeathsig", "KILL"]
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: words[0])
        probe.arguments = words.dropFirst() + ["/bin/true"]
        probe.standardError = FileHandle.nullDevice
        guard (try? probe.run()) != nil else { return nil }
        probe.waitUntilExit()
        return probe.terminationStatus == 0 ? words : nil
    }()

    /// - Returns: 0, or the error number.
    private func spawn(
        _ words: [String],
        _ settings: [String],
        _ writing: Int32,
        _ mergesErrors: Bool
    ) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, writing, 1)
        if mergesErrors { posix_spawn_file_actions_adddup2(&actions, writing, 2) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The child handles all signals in the default way, even if this thread blocks or ignores
        // some. It has its own process group, so that Ctrl-C reaches only the benchmark and
        // `killGroup` also kills the child's children.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP)
        )
        var arguments = words.map { strdup($0) } + [nil]
        var environment = settings.map { strdup($0) } + [nil]
        defer { for word in arguments + environment { free(word) } }
        return posix_spawn(
            &processID,
            words[0],
            &actions,
            &attributes,
            &arguments,
            &environment
        )
    }

    private func waitForEnd() {
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {
            continue
        }
        // After `waitpid` the process id may be reused. The lock therefore prevents other threads
        // from sending a signal until `status` is set.
        state.withLock {
            var found: Int32 = 0
            waitpid(processID, &found, 0)
            status = found
            state.broadcast()
        }
        Cleanup.shared.remove(self)
    }

    var isRunning: Bool { state.withLock { status == nil } }

    /// Waits until the child has exited.
    ///
    /// - Returns: whether it exited before the deadline.
    func hasEnded(by deadline: Date) -> Bool {
        state.withLock {
            while status == nil, state.wait(until: deadline) { continue }
            return status != nil
        }
    }

    private func waitUntilExit() {
        state.withLock { while status == nil { state.wait() } }
    }

    /// Waits until the child has exited, and returns its exit code, or 128 plus the number of the
    /// signal that ended it.
    var exitCode: Int32 {
        waitUntilExit()
        let status = state.withLock { self.status ?? 0 }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }

    /// Sends SIGTERM, as an operator would.
    func terminate() {
        state.withLock { if status == nil { _ = kill(processID, SIGTERM) } }
    }

    /// Kills the child and its children.
    func killGroup() {
        state.withLock { if status == nil { _ = kill(-processID, SIGKILL) } }
        waitUntilExit()
    }

    /// Stops the child as an operator would; kills it if it still runs after `patience` seconds.
    func stop(patience: Double) {
        terminate()
        guard !hasEnded(by: Date.now + patience) else { return }
        killGroup()
    }
}
