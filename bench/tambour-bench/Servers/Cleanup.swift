import Foundation
import Glibc

/// What must not be left behind: children and scratch folders.
///
/// They go when the benchmark ends, by itself or by SIGHUP, SIGINT or SIGTERM; it then ends with 128 and
/// the signal's number, as shells expect.
///
/// `@unchecked Sendable`: everything that changes is under `lock`.
final class Cleanup: @unchecked Sendable {
    static let shared = Cleanup()

    /// How long children have to end by themselves, seconds.
    private static let patience = 5.0

    private let lock = NSLock()
    private var children: [pid_t: Child] = [:]
    private var folders: Set<URL> = []
    private var isEnding = false
    /// Taken once and never given back: who comes second waits for the end of the process.
    private let ending = NSLock()

    private init() {
        let said: Int32
        do { (said, signalPipe) = try Child.pipe() } catch {
            preconditionFailure("a process that starts has descriptors left")
        }
        atexit { Cleanup.shared.end() }
        for number in [SIGHUP, SIGINT, SIGTERM] { Self.catchSignal(number) }
        Thread.detachNewThread { [self] in
            var number: UInt8 = 0
            while read(said, &number, 1) != 1 { continue }
            end()
            _exit(128 + Int32(number))
        }
    }

    /// Handlers may do next to nothing: this one wakes the thread that does it. Handlers, unlike ignored
    /// and blocked signals, are not handed on to children.
    private static func catchSignal(_ number: Int32) {
        var action = sigaction()
        sigaction(number, nil, &action)
        // Under `nohup` a hang-up is ignored, and stays so.
        let ignored = 1
        guard unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) != ignored else {
            return
        }
        action.__sigaction_handler.sa_handler = { number in
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(signalPipe, &byte, 1)
        }
        action.sa_flags = SA_RESTART
        sigaction(number, &action, nil)
    }

    /// Takes care that `folder` is gone at the end, whoever makes it.
    func removeAtEnd(_ folder: URL) {
        lock.withLock { _ = folders.insert(folder) }
    }

    /// - Returns: false when it is too late to start anything.
    func add(_ child: Child) -> Bool {
        lock.withLock {
            // One that has ended already is forgotten: its number may be another's next.
            if !isEnding, child.isRunning { children[child.processID] = child }
            return !isEnding
        }
    }

    func remove(_ child: Child) {
        lock.withLock {
            if children[child.processID] === child { children[child.processID] = nil }
        }
    }

    private func end() {
        ending.lock()
        let (children, folders) = lock.withLock {
            isEnding = true
            return (Array(self.children.values), self.folders)
        }
        for child in children { child.terminate() }
        let deadline = Date.now + Self.patience
        for child in children where !child.hasEnded(by: deadline) { child.killGroup() }
        for folder in folders {
            // Whoever still writes there may add a file while others are removed.
            for _ in 0..<3 where FileManager.default.fileExists(atPath: folder.path) {
                try? FileManager.default.removeItem(at: folder)
            }
        }
    }
}

/// Where the signal handler writes; set once, before there is a handler.
nonisolated(unsafe) private var signalPipe: Int32 = -1
