import Testing

@testable import TambourClient

/// The client's tables for one chat, which change only through `HistoryEffects`.
struct StoredHistory: Equatable {
    /// The version of each stored message.
    private(set) var messages: [Position: Int] = [:]
    private(set) var chunks: Set<PositionInterval> = []
    private(set) var tombs: Set<Position> = []
    private(set) var generation: Int64 = 0

    /// The history that a program loads when it starts.
    var history: ChatHistory {
        ChatHistory(chunks: chunks, tombs: tombs, generation: generation)
    }

    var rows: [Position] { messages.keys.sorted() }

    /// - Parameter versions: The versions of the messages in the reply or push.
    mutating func carryOut(_ effects: HistoryEffects, versions: [Position: Int] = [:]) throws {
        if effects.distrustsContents { messages = messages.mapValues { _ in .min } }
        if let cleared = effects.cleared {
            let kept = Set(effects.store + effects.refresh)
            messages = messages.filter { !cleared.contains($0.key) || kept.contains($0.key) }
        }
        for id in effects.removed { messages[id] = nil }
        for id in effects.store { messages[id] = max(messages[id] ?? .min, versions[id] ?? 0) }
        for id in effects.refresh {
            if let held = messages[id] { messages[id] = max(held, versions[id] ?? 0) }
        }
        for chunk in effects.chunks.removed {
            guard chunks.remove(chunk) != nil else { throw Violation("no row for chunk \(chunk)") }
        }
        for chunk in effects.chunks.added {
            guard chunks.insert(chunk).inserted else { throw Violation("two rows for \(chunk)") }
        }
        for tomb in effects.tombs.removed {
            guard tombs.remove(tomb) != nil else { throw Violation("no row for tomb \(tomb)") }
        }
        for tomb in effects.tombs.added {
            guard tombs.insert(tomb).inserted else { throw Violation("two rows for tomb \(tomb)") }
        }
        if let generation = effects.generation { self.generation = generation }
    }
}
