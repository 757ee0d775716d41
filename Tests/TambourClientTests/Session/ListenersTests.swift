import Dispatch
import Testing

@testable import TambourClient

/// Whoever listens may end that at any time.
@Suite("Listeners")
struct ListenersTests {
    @Test("are told while others end listening, and neither waits for the other")
    func ending() async {
        let listeners = Listeners()
        let done = DispatchSemaphore(value: 0)
        let lane = DispatchQueue(label: "tambour.listeners")
        Task {
            for _ in 0..<5000 {
                let task = Task { for await _ in listeners.changes() {} }
                lane.async { for _ in 0..<3 { listeners.tell(.changes(ChangeSet())) } }
                await Task.yield()
                task.cancel()
            }
            lane.async { done.signal() }
        }
        let isDone = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: done.wait(timeout: .now() + 60) == .success)
            }
        }
        #expect(isDone, "telling waits for who ends listening, who waits for telling")
    }
}
