import Dispatch
import Testing

@testable import TambourClient

/// A listener may stop at any time.
@Suite("Listeners")
struct ListenersTests {
    private static let listening = 300
    /// Seconds until waiting counts as a deadlock. Other tests may keep every thread busy for over
    /// a minute.
    private static let patience = 300

    @Test("are told while others end listening, and neither waits for the other")
    func ending() async {
        let listeners = Listeners()
        let isDone = await race(
            each: { listeners.changes() },
            telling: { listeners.tell(.changes(ChangeSet())) }
        )
        #expect(isDone, "telling waits for who ends listening, who waits for telling")
    }

    @Test("are told of the state and of events while others end listening")
    func endingOthers() async {
        let listeners = Listeners()
        let states = await race(
            each: { listeners.states() },
            telling: { listeners.tell(.state(.online)) }
        )
        #expect(states)
        let events = await race(
            each: { listeners.events() },
            telling: { listeners.tell(.event(.signedOut(reason: "elsewhere"))) }
        )
        #expect(events)
    }

    /// Notifies many listeners once. Then notifies them again while another thread stops them.
    ///
    /// - Returns: Whether both threads finished.
    private func race<Item: Sendable>(
        each: () -> AsyncStream<Item>,
        telling: @escaping @Sendable () -> Void
    ) async -> Bool {
        let waiting = DispatchSemaphore(value: 0)
        let tasks = (0..<Self.listening).map { _ in
            let stream = each()
            return Task { for await _ in stream { waiting.signal() } }
        }
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let deadline = DispatchTime.now() + .seconds(Self.patience)
                telling()
                for _ in tasks where waiting.wait(timeout: deadline) == .timedOut {
                    return continuation.resume(returning: false)
                }
                let both = DispatchGroup()
                DispatchQueue(label: "tambour.listeners.told").async(group: both, execute: telling)
                DispatchQueue(label: "tambour.listeners.ended").async(group: both) {
                    for task in tasks { task.cancel() }
                }
                continuation.resume(returning: both.wait(timeout: deadline) == .success)
            }
        }
    }
}
