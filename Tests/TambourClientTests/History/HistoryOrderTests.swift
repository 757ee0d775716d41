import TambourTesting
import Testing

@testable import TambourClient

/// The known history does not depend on the order or the number of the facts (I3, I4).
@Suite("What is known of a chat is the same in whatever order it was learned")
struct HistoryOrderTests {
    /// A fact from a reply or push, true at some time in the life of the chat.
    private enum Fact: CustomStringConvertible {
        case evidence(Evidence, versions: [Position: Int])
        case deleted([Position])
        case island(Position, version: Int)
        case edited(Position, version: Int)

        var description: String {
            switch self {
            case .evidence(let evidence, _): "\(evidence.found) in \(evidence.interval)"
            case .deleted(let ids): "deleted \(ids)"
            case .island(let id, let version): "island \(id) v\(version)"
            case .edited(let id, let version): "edited \(id) v\(version)"
            }
        }
    }

    @Test("any order, and any of it twice")
    func anyOrder() {
        Property(
            cases: 24_000,
            steps: Self.facts,
            check: { facts in
                var random = SeededGenerator(seed: UInt64(facts.count))
                let once = try Self.learn(facts)
                for _ in 0..<2 {
                    let twice = facts + facts.filter { _ in random.below(3) == 0 }
                    let other = try Self.learn(twice.shuffled(using: &random))
                    if once != other { throw Violation("I4: \(once) or \(other)") }
                }
            }
        ).hold()
    }

    private static func learn(_ facts: [Fact]) throws -> StoredHistory {
        var history = ChatHistory()
        var stored = StoredHistory()
        for fact in facts {
            switch fact {
            case .evidence(let evidence, let versions):
                try stored.carryOut(history.apply(evidence), versions: versions)
            case .deleted(let ids):
                try stored.carryOut(history.delete(ids))
            case .island(let id, let version):
                try stored.carryOut(history.island(id), versions: [id: version])
            case .edited(let id, let version):
                let effects = history.edit([id], isReading: true)
                try stored.carryOut(effects, versions: [id: version])
            }
        }
        return stored
    }

    /// Returns facts about a chat in which messages are edited, deleted and cleared. Each fact was
    /// true at some time.
    private static func facts(_ random: inout SeededGenerator) -> [Fact] {
        var server = ServerChat()
        var facts: [Fact] = []
        for _ in 0..<3 + random.below(16) {
            server.wait(Int64(random.below(3)))
            let indices = server.messages.indices.filter { server.isVisible(server.messages[$0]) }
            let index = indices.element(random.below(64))
            switch (random.below(9), index) {
            case (0...2, _), (_, nil):
                let previous = server.head
                let id = server.append()
                if random.below(2) == 0 {
                    facts += evidence(.message(id, after: previous), versions: [id: 0])
                }
            case (3, let index?):
                server.remove(at: index)
                facts.append(.deleted([server.messages[index].id]))
            case (4, let index?):
                server.edit(at: index)
                let message = server.messages[index]
                facts.append(.edited(message.id, version: message.version))
            case (5, let index?):
                facts.append(
                    .island(server.messages[index].id, version: server.messages[index].version)
                )
            case (6, let index?) where random.below(3) == 0:
                server.setFloor(server.messages[index].id)
                facts += evidence(.cleared(through: server.floor))
            case (_, let index?):
                facts += page(from: server.messages[index].id, of: server, &random)
            }
        }
        return facts
    }

    private static func page(
        from pivot: Position,
        of server: ServerChat,
        _ random: inout SeededGenerator
    ) -> [Fact] {
        let kinds: [HistoryRequest.Kind] = [.backward, .forward, .around]
        let request = HistoryRequest(
            kinds[random.below(3)],
            from: pivot,
            count: 1 + random.below(4),
            closed: server.head ?? .min,
            generation: 0
        )
        let page = server.page(request)
        return evidence(
            request.evidence(found: page.found.map(\.id), more: page.more),
            versions: Dictionary(uniqueKeysWithValues: page.found)
        )
    }

    private static func evidence(
        _ evidence: Evidence?,
        versions: [Position: Int] = [:]
    ) -> [Fact] {
        evidence.map { [.evidence($0, versions: versions)] } ?? []
    }
}
