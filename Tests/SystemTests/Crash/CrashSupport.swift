import Foundation
import Synchronization
import TambourProtocol

/// A chat as one of its members sees it.
struct CrashChat: Hashable {
    let of: UserID
    let chat: ChatID
}

final class CrashCounter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}

/// How many messages, and which.
struct CrashDigest: Equatable {
    var count = 0
    var hash = 0

    mutating func add(_ message: Message) {
        count += 1
        hash = hash &* 31 &+ message.hashValue
    }
}

/// Runs `body` on a thread of its own: those that tests run on are few and must not wait.
func blocking<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            continuation.resume(with: Swift.Result { try body() })
        }
    }
}
