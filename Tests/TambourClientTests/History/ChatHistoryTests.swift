import Testing

@testable import TambourClient

/// Examples of the rules about held messages in docs/client-sync.md, sections 6.3 and 6.4.
@Suite("What is learned of a chat joins what is held")
struct ChatHistoryTests {
    private let history = HeldHistory()

    // MARK: - Evidence

    @Test("R1: an island makes no claim")
    func islandClaimsNothing() {
        let effects = history.island(at(5))
        #expect(effects.store == at([5]))
        #expect(effects.cleared == nil)
        #expect(history.chunks == [])
    }

    @Test("R2: messages that only look adjacent stay apart")
    func apart() throws {
        _ = try history.apply(.message(at(5), after: at(4)))
        _ = try history.apply(.message(at(7), after: at(6)))
        #expect(history.chunks == [stretch(5...5), stretch(7...7)])
        _ = try history.apply(.emptied(fromMs: 6, throughMs: 6))
        #expect(history.chunks == [stretch(5...7)])
    }

    @Test("R3: a message whose predecessor ends a chunk extends it, also when that is deleted")
    func extends() throws {
        _ = try history.apply(.message(at(5), after: nil))
        _ = history.delete([at(5)])
        let effects = try history.apply(.message(at(9), after: at(5)))
        #expect(effects.store == at([9]))
        #expect(effects.chunks.removed == [stretch(...5)])
        #expect(effects.chunks.added == [stretch(...9)])
        #expect(history.chunks == [stretch(...9)])
    }

    @Test("R3: a message that is held is only brought up to date")
    func heldAlready() throws {
        _ = try history.apply(.message(at(5), after: nil))
        let effects = try history.apply(.message(at(5), after: nil))
        #expect(effects.store == [])
        #expect(effects.refresh == at([5]))
        #expect(effects.chunks.isEmpty)
    }

    @Test("R3: a message behind a missed one begins a chunk of its own")
    func missed() throws {
        _ = try history.apply(.message(at(5), after: nil))
        _ = try history.apply(.message(at(9), after: at(7)))
        #expect(history.chunks == [stretch(...5), stretch(8...9)])
    }

    @Test("R3: between a message and the one before it, what is stored has been deleted")
    func between() throws {
        let effects = try history.apply(.message(at(9), after: at(5)))
        #expect(effects.cleared == stretch(6...9))
        #expect(effects.store == at([9]))
    }

    @Test("R4: what a login calls the newest message joins what is held up to then")
    func login() throws {
        _ = try history.apply(.newest(at(5), after: nil, safeTimeMs: 8))
        #expect(history.chunks == [stretch(...8)])
        _ = try history.apply(.newest(at(12), after: at(11), safeTimeMs: 15))
        #expect(history.chunks == [stretch(...8), stretch(12...15)])
    }

    @Test("R5: deletions and edits never move the ends of a chunk")
    func endsStay() throws {
        _ = try history.apply(
            .backwardPage(upTo: end(9), found: at([5, 9]), more: true, closed: end(9))
        )
        let deleted = history.delete(at([5, 9]))
        #expect(deleted.removed == at([5, 9]))
        let edited = history.edit(at([5, 9]), isReading: false)
        #expect(edited.refresh == at([5, 9]))
        #expect(history.chunks == [stretch(5...9)])
        #expect(deleted.chunks.isEmpty && edited.chunks.isEmpty)
    }

    @Test("R8: a reply joins what is held when it comes, not what was held when it was asked for")
    func currentState() throws {
        _ = try history.apply(.message(at(20), after: at(15)))
        let reader = AskingReader()
        let viewport = HistoryViewport(
            position: at(20),
            direction: .backward,
            rowsOnScreen: 10,
            rowsAhead: 0
        )
        let request = try #require(reader.request(for: viewport, in: history.value))
        _ = try history.apply(.message(at(30), after: at(20)))
        _ = try history.apply(reader.answered(request, found: at([10, 15]), more: true))
        #expect(history.chunks == [stretch(10...30)])
    }

    @Test("R11: a page that was cut short is good up to its last message")
    func cutShort() throws {
        let page = Evidence.forwardPage(
            after: at(3),
            found: at([5]),
            more: true,
            closed: end(20)
        )
        _ = try history.apply(page)
        #expect(history.chunks == [stretch(4...5)])
    }

    @Test("R12: an island within a page becomes ordinary, or goes")
    func islandsBecomeOrdinary() throws {
        _ = history.island(at(5))
        _ = history.island(at(6))
        let page = Evidence.backwardPage(
            upTo: end(9),
            found: at([4, 5]),
            more: true,
            closed: end(9)
        )
        let effects = try history.apply(page)
        #expect(effects.cleared == stretch(4...9), "so 6 goes")
        #expect(effects.store == at([4, 5]))
        #expect(history.island(at(6)).store == [], "and does not come back")
        #expect(history.island(at(5)).refresh == at([5]))
    }

    // MARK: - Deletions

    @Test("a message that a newer page misses does not come back with an older one")
    func olderPage() throws {
        _ = try history.apply(
            .backwardPage(upTo: end(9), found: at([4, 8]), more: true, closed: end(9))
        )
        let older = try history.apply(
            .backwardPage(upTo: end(9), found: at([4, 6, 8]), more: true, closed: end(9))
        )
        #expect(older.store == [])
        #expect(older.refresh == at([4, 6, 8]), "where there is no row, nothing is stored")
    }

    @Test("a message that an older page misses goes, however new what is held is")
    func olderPageMisses() throws {
        _ = try history.apply(
            .backwardPage(upTo: end(9), found: at([4, 6, 8]), more: true, closed: end(9))
        )
        let older = try history.apply(
            .backwardPage(upTo: end(7), found: at([4]), more: true, closed: end(7))
        )
        #expect(older.cleared == stretch(4...7))
        #expect(older.refresh == at([4]))
    }

    @Test("a deleted message does not come with a page that was read before")
    func tomb() throws {
        let deletion = history.delete([at(5)])
        #expect(deletion.tombs.added == at([5]))
        let page = try history.apply(
            .backwardPage(upTo: end(9), found: at([4, 5]), more: true, closed: end(9))
        )
        #expect(page.store == at([4]))
        #expect(page.tombs.removed == at([5]), "the chunk says it now")
        #expect(history.tombs == [])
    }

    @Test("a deleted message does not come back as an island, nor by an edit")
    func tombAndIsland() {
        _ = history.delete([at(5)])
        #expect(history.island(at(5)).store == [])
        #expect(history.edit([at(5)], isReading: true).store == [])
    }

    @Test("a deletion within a chunk leaves no tomb, and the message does not come back")
    func noTombWithinAChunk() throws {
        _ = try history.apply(.message(at(5), after: nil))
        let deletion = history.delete([at(5)])
        #expect(deletion.removed == at([5]))
        #expect(deletion.tombs.isEmpty)
        #expect(try history.apply(.message(at(5), after: nil)).store == [])
    }

    @Test("what was cleared does not come back with a page that was read before")
    func cleared() throws {
        let clear = try history.apply(.cleared(through: at(7)))
        #expect(clear.cleared == stretch(...7))
        let page = try history.apply(
            .backwardPage(upTo: end(9), found: at([4, 5, 8]), more: false, closed: end(9))
        )
        #expect(page.store == at([8]))
        #expect(history.chunks == [stretch(...9)])
    }

    // MARK: - Eviction

    @Test("R9: eviction takes the lower edge, rows and claims together")
    func evict() throws {
        _ = try history.apply(.message(at(3), after: nil))
        _ = try history.apply(
            .backwardPage(upTo: end(9), found: at([5, 7, 9]), more: true, closed: end(9))
        )
        let effects = history.evict(below: at(7))
        #expect(effects.cleared == stretch(...6))
        #expect(history.chunks == [stretch(7...9)])
        #expect(history.value.covers(at(7)), "the row itself stays")
    }

    @Test("R9: a page that was asked for before an eviction is not believed")
    func evictInFlight() throws {
        _ = try history.apply(.message(at(9), after: nil))
        let page = Evidence.backwardPage(
            upTo: end(9),
            found: at([5, 9]),
            more: true,
            closed: end(9),
            generation: history.generation
        )
        _ = history.evict(below: at(9))
        #expect(try history.apply(page) == HistoryEffects())
        #expect(history.chunks == [stretch(9...9)])
    }

    @Test("R13: a resync drops all claims and no message, and doubts what is stored")
    func resync() throws {
        _ = try history.apply(.message(at(5), after: nil))
        _ = history.delete([at(8)])
        let effects = history.resync()
        #expect(effects.cleared == nil)
        #expect(effects.removed == [])
        #expect(effects.distrustsContents)
        #expect(effects.chunks.removed == [stretch(...5)])
        #expect(effects.tombs.removed == at([8]))
        #expect(effects.generation == 1)
        #expect(history.chunks == [] && history.tombs == [])
    }

    @Test("R13: what was asked for before a resync is not believed")
    func floor() throws {
        let asked = history.generation
        _ = history.resync()
        let page = Evidence.backwardPage(
            upTo: end(9),
            found: at([5]),
            more: false,
            closed: end(9),
            generation: asked
        )
        #expect(try history.apply(page) == HistoryEffects())
        #expect(history.island(at(5), asked: asked) == HistoryEffects())
        let changes = MessageChanges(removed: at([5]), timeMs: 9)
        #expect(history.apply(changes, asked: asked, isReading: false) == nil)
        #expect(history.value == ChatHistory(chunks: [], tombs: [], generation: 1))
    }

    @Test("R14: a chat that was left leaves nothing, and begins anew with its floor")
    func removed() throws {
        let asked = history.generation
        _ = try history.apply(.message(at(5), after: nil))
        let effects = history.removed()
        #expect(effects.cleared == PositionInterval(through: .max))
        #expect(history.chunks == [])
        _ = try history.apply(.cleared(through: at(8)))
        let late = Evidence.backwardPage(
            upTo: end(9),
            found: at([5]),
            more: false,
            closed: end(9),
            generation: asked
        )
        #expect(try history.apply(late) == HistoryEffects())
        #expect(history.chunks == [stretch(...8)])
    }

    @Test("settling drops tombs, and from then on a reply from before is not believed")
    func settle() throws {
        let asked = history.generation
        #expect(history.settle() == HistoryEffects(), "nothing to drop")
        _ = history.delete([at(5)])
        #expect(history.settle().tombs.removed == at([5]))
        let page = Evidence.backwardPage(
            upTo: end(9),
            found: at([5]),
            more: true,
            closed: end(9),
            generation: asked
        )
        #expect(try history.apply(page) == HistoryEffects())
    }

    // MARK: - Changes

    @Test("6.6: a reply of changes removes, clears and brings up to date")
    func changes() throws {
        _ = try history.apply(
            .backwardPage(upTo: end(9), found: at([4, 6, 8]), more: true, closed: end(9))
        )
        let changes = MessageChanges(
            changed: at([3, 8]),
            removed: at([6]),
            clearedThrough: at(4),
            timeMs: 20
        )
        let effects = try #require(history.apply(changes, asked: 0, isReading: false))
        #expect(effects.cleared == stretch(...4))
        #expect(effects.removed == at([6]))
        #expect(effects.refresh == at([8]), "3 was cleared")
        #expect(effects.store == [])
        #expect(history.chunks == [stretch(...9)])
    }

    @Test("6.6: a change of what is not held is kept while a page is read that may hold it older")
    func changeWhileReading() throws {
        let changes = MessageChanges(changed: at([5]), timeMs: 20)
        let idle = try #require(history.apply(changes, asked: 0, isReading: false))
        #expect(idle.store == [])
        #expect(idle.refresh == at([5]), "there may be an island")
        let reading = try #require(history.apply(changes, asked: 0, isReading: true))
        #expect(reading.store == at([5]))
    }

    @Test("6.6: a change of a message whose push has not come yet is kept")
    func changeAheadOfPush() throws {
        _ = try history.apply(.message(at(5), after: at(4)))
        let changes = MessageChanges(changed: at([3, 7]), timeMs: 20)
        let effects = try #require(history.apply(changes, asked: 0, isReading: false))
        #expect(effects.store == at([7]))
        #expect(effects.refresh == at([3]))
    }

    @Test("6.6: changes that tell of a restored server drop all claims")
    func changesResync() throws {
        _ = try history.apply(.message(at(5), after: nil))
        let changes = MessageChanges(isResync: true, timeMs: 20)
        let effects = try #require(history.apply(changes, asked: 0, isReading: false))
        #expect(effects.chunks.removed == [stretch(...5)])
        #expect(effects.distrustsContents)
    }

    // MARK: - Storing

    @Test("rows in any order, and broken ones, make a proper history")
    func stored() {
        let history = ChatHistory(
            chunks: [stretch(8...9), stretch(1...3), stretch(4...5), stretch(2...4)]
                .compactMap { $0 },
            tombs: at([7, 2, 7]),
            generation: 4
        )
        #expect(history.chunks == [stretch(1...5), stretch(8...9)])
        #expect(history.tombs == at([7]))
        #expect(history.generation == 4)
    }
}
