/// Admits a limited number of callers at once; the remaining callers wait in order of arrival.
actor Seats {
    private var free: Int
    private var queue: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) {
        free = count
    }

    /// Runs `body` as soon as a seat is free.
    nonisolated func taking<Value: Sendable>(
        _ body: () async throws -> Value
    ) async throws -> Value {
        await take()
        do {
            let value = try await body()
            await leave()
            return value
        } catch {
            await leave()
            throw error
        }
    }

    private func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { queue.append($0) }
        }
    }

    private func leave() {
        if queue.isEmpty {
            free += 1
        } else {
            queue.removeFirst().resume()
        }
    }
}
