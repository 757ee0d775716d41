import Testing

@testable import TambourClient

/// Examples of I8 and R10 in docs/client-sync.md.
@Suite("A list of messages shows where something may be missing")
struct HistoryGapsTests {
    private let end = ChatEnd(newest: at(50), safeTimeMs: 40)

    @Test("between rows of one chunk there is no gap, between others there is")
    func between() {
        let history = ChatHistory(holding: stretch(10...20), stretch(22...30))
        let gaps = history.gaps(in: at([11, 20, 22, 30, 40]), end: end)
        #expect(gaps.between == [false, true, false, true])
        #expect(gaps.before && gaps.behind)
    }

    @Test("a chunk from the beginning to the newest message has no gap at its ends")
    func whole() {
        let history = ChatHistory(holding: stretch(...50))
        let gaps = history.gaps(in: at([11, 50]), end: end)
        #expect(gaps == HistoryGaps(before: false, between: [false], behind: false))
    }

    @Test("the newest message counts as held when it has been deleted")
    func deletedNewest() {
        let history = ChatHistory(holding: stretch(...50))
        #expect(!history.gaps(in: at([11]), end: end).behind)
    }

    @Test("R10: until a login has told what is newest, something may be behind the last row")
    func unconfirmed() {
        let history = ChatHistory(holding: stretch(...50))
        #expect(history.gaps(in: at([11, 50]), end: nil).behind)
        #expect(!history.gaps(in: at([11, 50]), end: nil).before)
    }

    @Test("an island has a gap on both sides")
    func island() {
        let history = ChatHistory(holding: stretch(...20), stretch(30...50))
        let gaps = history.gaps(in: at([15, 25, 35]), end: end)
        #expect(gaps == HistoryGaps(before: false, between: [true, true], behind: false))
        #expect(history.gaps(in: at([25]), end: end).before)
    }

    @Test("without rows there is a gap unless the chat is known to be empty")
    func noRows() {
        #expect(ChatHistory().gaps(in: [], end: end).before)
        let empty = ChatHistory(holding: stretch(...50))
        #expect(!empty.gaps(in: [], end: end).before)
        #expect(empty.gaps(in: [], end: nil).behind)
        let partly = ChatHistory(holding: stretch(10...50))
        #expect(partly.gaps(in: [], end: end).before)
    }
}
