/// Runs requests to the library one after another, in the order in which they were added.
final class Wishes: Sendable {
    typealias Wish = @Sendable () async -> Void

    private let asked: AsyncStream<Wish>.Continuation
    private let doing: Task<Void, Never>

    init() {
        let (wishes, asked) = AsyncStream<Wish>.makeStream()
        self.asked = asked
        doing = Task {
            for await wish in wishes { await wish() }
        }
    }

    deinit { asked.finish() }

    func add(_ wish: @escaping Wish) {
        asked.yield(wish)
    }

    /// Accepts no further requests. Calls `body` when all requests are done.
    func finish(then body: @escaping @Sendable () -> Void) {
        asked.finish()
        let doing = doing
        Task {
            await doing.value
            body()
        }
    }
}
