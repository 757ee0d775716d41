import Foundation
import Glibc

/// Removes the leftovers of the benchmark: child processes and scratch folders.
///
/// The cleanup runs when the benchmark ends normally or by SIGHUP, SIGINT or SIGTERM. After a
/// signal the benchmark exits with 128 plus the signal's number, as shells expect.
///
/// `@unchecked Sendable`: `lock` guards all mutable state.
final class Cleanup: @unchecked Sendable {
    static let shared = Cleanup()

    /// The time in seconds that children get to exit by themselves.
    private static let patience = 5.0

    private let lock = NSLock()
    private var children: [pid_t: Child] = [:]
    private var folders: Set<URL> = []
    private var isEnding = false
    /// Locked once and never unlocked, so a second thread waits here until the process exits.
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

    /// A signal handler may do almost nothing, so this handler only wakes the thread that cleans
    /// up. Children do not inherit handlers, but they would inherit ignored and blocked signals.
    private static func catchSignal(_ number: Int32) {
        var action = sigaction()
        sigaction(number, nil, &action)
        // Under `nohup` SIGHUP is ignored, and must stay ignored.
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

    /// Removes `folder` when the benchmark ends, whichever code created it.
    func removeAtEnd(_ folder: URL) {
        lock.withLock { _ = folders.insert(folder) }
    }

    /// - Returns: false if cleanup has already started; the caller must then stop the child.
    func add(_ child: Child) -> Bool {
        lock.withLock {
            // Do not keep a child that has already exited, because its number may be reused.
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
            // A process that still writes to the folder may add a file during the removal, so the
            // removal is repeated.
            for _ in 0..<3 where FileManager.default.fileExists(atPath: folder.path) {
                try? FileManager.default.removeItem(at: folder)
            }
        }
    }
}

/// The descriptor that the signal handler writes to; set once, before the first handler.
nonisolated(unsafe) private var signalPipe: Int32 = -1
