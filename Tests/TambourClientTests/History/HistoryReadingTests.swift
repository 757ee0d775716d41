import Testing

@testable import TambourClient

/// The number of requests that reading needs (I6, I7), independent of the page size (I11).
@Suite("Reading a history asks for each part of it once")
struct HistoryReadingTests {
    @Test("10,000 messages take exactly 200 pages, and none when they are read again")
    func exactly() throws {
        var server = ServerChat()
        for _ in 0..<10_000 { _ = server.append() }
        let newest = try #require(server.head)
        let end = ChatEnd(newest: newest, safeTimeMs: server.safeTime)
        var history = ChatHistory()
        var reader = HistoryReader()
        var rows = 1
        let previous = server.previous(of: newest)
        let login = Evidence.newest(newest, after: previous, safeTimeMs: end.safeTimeMs)
        _ = history.apply(try #require(login))

        func scroll() throws -> Int {
            var requests = 0
            // Scroll one row at a time, as a mouse wheel does. `place` is the number of rows that
            // are newer than the row at the top edge of the screen.
            var place = 0
            while place < 10_000 {
                let viewport = HistoryViewport(
                    position: server.messages[server.messages.count - 1 - place].id,
                    direction: .backward,
                    rowsOnScreen: 30,
                    rowsAhead: rows - 1 - place
                )
                if let request = reader.request(for: viewport, in: history, end: end) {
                    requests += 1
                    #expect(reader.request(for: viewport, in: history, end: end) == nil)
                    let page = server.page(request)
                    let found = page.found.map(\.id)
                    let evidence = reader.answered(request, found: found, more: page.more)
                    rows += history.apply(try #require(evidence)).store.count
                }
                try #require(
                    rows - 1 - place > 0 || rows == 10_000,
                    "the reader waits at row \(place)"
                )
                place += 1
            }
            return requests
        }

        #expect(try scroll() == 200)
        #expect(rows == 10_000)
        #expect(history.chunks.count == 1)
        #expect(try scroll() == 0)
    }

    @Test("scrolling up takes no more than one page for each pageful and each gap")
    func progress() {
        Property(
            cases: 2_000,
            steps: HistoryWorld.moves,
            check: { moves in
                let pageSize = [1, 2, 7, 50][moves.count % 4]
                var world = HistoryWorld(pageSize: pageSize)
                for move in moves { try world.play(move) }
                try world.settleDown()
                try world.logInAgain()
                let unknown = world.server.visible.filter { !world.history.covers($0.id) }.count
                let allowed = (unknown + pageSize - 1) / pageSize + world.history.chunks.count + 1
                let before = world.requests
                var busy = moves.makeIterator()
                while try world.scrollUp() {
                    // Messages arrive and disappear while the pages arrive.
                    if let move = busy.next() {
                        for step in [HistoryWorld.Step.append, .receivePush, .remove, .receivePush]
                        {
                            try world.play(.init(step: step, choice: move.choice))
                        }
                    }
                    if world.requests - before > allowed {
                        throw Violation("I7: \(world.requests - before) requests of \(allowed)")
                    }
                }
                let asked = world.requests
                if try world.scrollUp() || world.requests != asked {
                    throw Violation("I6: asks again when all is read")
                }
            }
        ).hold()
    }

    @Test("whatever the size of pages, the same is held in the end")
    func pageSizes() {
        Property(
            cases: 500,
            steps: HistoryWorld.moves,
            check: { moves in
                let ends = try [1, 2, 7, 50].map { pageSize in
                    var world = HistoryWorld(pageSize: pageSize)
                    for move in moves { try world.play(move) }
                    try world.comeToRest()
                    return world
                }
                for end in ends.dropFirst()
                where end.stored.messages != ends[0].stored.messages
                    || end.stored.chunks != ends[0].stored.chunks
                {
                    throw Violation("I11: \(end.stored) and \(ends[0].stored)")
                }
            }
        ).hold()
    }
}
