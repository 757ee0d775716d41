import Testing

@testable import TambourClient

/// The invariants of docs/client-sync.md, section 6.5, checked against a simple model of the
/// server's chat. Replies are late, duplicated and reordered, connections break, and a backup is
/// restored.
@Suite("What the history claims is true")
struct HistoryWorldTests {
    @Test("in every world, and in the end all is held")
    func worlds() {
        Property(
            cases: 8_000,
            steps: HistoryWorld.moves,
            check: { moves in
                var world = HistoryWorld(pageSize: Self.pageSize(of: moves))
                for move in moves { try world.play(move) }
                try world.comeToRest()
                try world.checkConvergence()
            }
        ).hold()
    }

    private static func pageSize(of moves: [HistoryWorld.Move]) -> Int {
        [1, 2, 7, 50][(moves.first?.choice ?? 0) % 4]
    }
}
