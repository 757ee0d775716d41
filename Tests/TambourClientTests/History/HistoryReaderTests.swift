import Testing

@testable import TambourClient

/// Examples of the rules R6, R7 and R10 in docs/client-sync.md, section 6.4, and of encoded
/// requests.
@Suite("A reader asks for what is missing, early enough and once")
struct HistoryReaderTests {
    private let reader = AskingReader()

    private func viewport(
        _ position: Int64?,
        _ direction: HistoryViewport.Direction,
        ahead: Int = 0,
        last: Int64? = nil
    ) -> HistoryViewport {
        HistoryViewport(
            position: position.map { at($0) },
            direction: direction,
            rowsOnScreen: 20,
            rowsAhead: ahead,
            lastRowAhead: last.map { at($0) }
        )
    }

    // MARK: - Backward

    @Test("R6: from the end of the chunk, never within it")
    func fromTheChunk() throws {
        let history = ChatHistory(holding: stretch(60...100))
        let request = try #require(
            reader.request(for: viewport(80, .backward, ahead: 3), in: history)
        )
        #expect(request.kind == .backward)
        #expect(request.fromMs == 59)
        #expect(request.backward == 50 && request.forward == 0)
        #expect(request.backwardTimeMs == nil)
    }

    @Test("R6: nothing once the chunk reaches the beginning")
    func beginning() {
        let history = ChatHistory(holding: stretch(...100))
        #expect(reader.request(for: viewport(80, .backward), in: history) == nil)
    }

    @Test("R6: nothing from before there was time")
    func beforeTime() {
        let history = ChatHistory(holding: stretch(1...100))
        #expect(reader.request(for: viewport(80, .backward), in: history) == nil)
    }

    @Test("R6: a page ends where the next chunk begins")
    func bound() throws {
        let history = ChatHistory(holding: stretch(10...30), stretch(60...100))
        let request = try #require(
            reader.request(for: viewport(80, .backward), in: history)
        )
        #expect(request.fromMs == 59)
        #expect(request.backwardTimeMs == 31)
        #expect(request.evidence(found: [], more: false)?.interval == stretch(31...59))
    }

    @Test("R6: more than a page where more rows are missing, within what a server sends")
    func count() throws {
        let history = ChatHistory(holding: stretch(60...100))
        func count(rowsOnScreen: Int) -> Int? {
            let reader = AskingReader()
            let tall = HistoryViewport(
                position: at(80),
                direction: .backward,
                rowsOnScreen: rowsOnScreen,
                rowsAhead: 0
            )
            return reader.request(for: tall, in: history)?.backward
        }
        #expect(count(rowsOnScreen: 20) == 50)
        #expect(count(rowsOnScreen: 60) == 90)
        #expect(count(rowsOnScreen: 600) == 200)
    }

    @Test("R7: as soon as less than one and a half screens are ahead")
    func early() {
        let history = ChatHistory(holding: stretch(60...100))
        #expect(
            reader.request(for: viewport(80, .backward, ahead: 30), in: history) == nil
        )
        #expect(
            reader.request(for: viewport(80, .backward, ahead: 29), in: history) != nil
        )
    }

    @Test("R6: one at a time in a direction, until it is answered, refused or lost")
    func oneAtATime() throws {
        let history = ChatHistory(holding: stretch(10...30), stretch(60...70))
        let back = viewport(65, .backward)
        let request = try #require(reader.request(for: back, in: history))
        #expect(reader.isReading)
        #expect(reader.request(for: back, in: history) == nil)
        let forward = viewport(20, .forward)
        #expect(reader.request(for: forward, in: history) != nil, "the other direction")

        _ = reader.answered(request, found: [], more: false)
        let again = try #require(reader.request(for: back, in: history))
        reader.ended(again)
        #expect(reader.request(for: back, in: history) != nil)
        reader.disconnected()
        #expect(!reader.isReading)
        #expect(reader.request(for: back, in: history) != nil)
    }

    // MARK: - Opening

    @Test("a chat opens with the newest messages where these are not held")
    func opens() throws {
        let history = ChatHistory(holding: stretch(10...30))
        #expect(reader.request(for: viewport(nil, .forward), in: history) == nil)
        let request = try #require(
            reader.request(for: viewport(nil, .backward), in: history)
        )
        #expect(request.fromMs == nil)
        #expect(request.backwardTimeMs == 31)
        let evidence = request.evidence(found: at([80, 95]), more: true)
        #expect(evidence?.interval == stretch(80...100), "the newest message closes what is before")
    }

    @Test("a chat that is held at its newest end opens from there")
    func opensHeld() throws {
        let history = ChatHistory(holding: stretch(60...100))
        #expect(
            reader.request(for: viewport(nil, .backward, ahead: 40), in: history) == nil
        )
        let request = reader.request(for: viewport(nil, .backward, ahead: 4), in: history)
        #expect(request?.fromMs == 59)
    }

    @Test("an empty chat is asked for once")
    func empty() throws {
        reader.end = ChatEnd(newest: nil, safeTimeMs: 90)
        var history = ChatHistory()
        let open = viewport(nil, .backward)
        let request = try #require(reader.request(for: open, in: history))
        let evidence = try #require(reader.answered(request, found: [], more: false))
        _ = history.apply(evidence)
        #expect(reader.request(for: open, in: history) == nil)
        let gaps = history.gaps(in: [], end: reader.end)
        #expect(!gaps.before && !gaps.behind)
    }

    // MARK: - Forward

    @Test("R6: forward from the last row that is held, up to the next chunk")
    func forward() throws {
        let history = ChatHistory(holding: stretch(10...30), stretch(60...100))
        let request = try #require(
            reader.request(for: viewport(20, .forward, ahead: 1, last: 28), in: history)
        )
        #expect(request.kind == .forward)
        #expect(request.fromMs == 28, "the time of a message, which no server takes for the future")
        #expect(request.forward == 50 && request.backward == 0)
        #expect(request.forwardTimeMs == 59)
        #expect(request.evidence(found: [], more: false)?.interval == stretch(29...59))
    }

    @Test("R6: forward where the newest message is not held")
    func forwardToTheEnd() throws {
        let history = ChatHistory(holding: stretch(10...30))
        let request = try #require(
            reader.request(for: viewport(20, .forward), in: history)
        )
        #expect(request.fromMs == 20)
        #expect(request.forwardTimeMs == nil)
    }

    @Test("R10: nothing is asked for at the newest end: it comes by login and pushes")
    func tail() {
        let history = ChatHistory(holding: stretch(60...100))
        #expect(reader.request(for: viewport(99, .forward), in: history) == nil)
        reader.end = ChatEnd(newest: nil, safeTimeMs: 90)
        #expect(reader.request(for: viewport(99, .forward), in: history) == nil)
    }

    // MARK: - Islands and gaps

    @Test("what lies around an island is asked for on both sides, and alone")
    func island() throws {
        let history = ChatHistory(holding: stretch(60...100))
        let request = try #require(
            reader.request(for: viewport(40, .backward), in: history)
        )
        #expect(request.kind == .around)
        #expect(request.fromMs == 40)
        #expect(request.backward == 25 && request.forward == 25)
        #expect(reader.request(for: viewport(80, .backward), in: history) == nil)
        #expect(reader.request(for: viewport(40, .forward), in: history) == nil)
        reader.ended(request)
        #expect(reader.request(for: viewport(80, .backward), in: history) != nil)
        #expect(reader.request(for: viewport(40, .forward), in: history) == nil)
    }

    @Test("an island that no page reaches is approached from above")
    func stranded() throws {
        var history = ChatHistory(holding: stretch(60...100))
        let request = try #require(
            reader.request(for: viewport(40, .backward), in: history)
        )
        let evidence = reader.answered(request, found: at([95, 100]), more: true)
        _ = history.apply(try #require(evidence))
        let next = reader.request(for: viewport(40, .backward), in: history)
        #expect(next?.kind == .backward)
        #expect(next?.fromMs == 59)
    }

    @Test("R6: the newest gap between visible rows is filled first")
    func gaps() throws {
        let history = ChatHistory(
            holding: stretch(10...20),
            stretch(30...40),
            stretch(60...100)
        )
        let rows = at([15, 35, 38, 70])
        let first = try #require(reader.request(toFillGapsBetween: rows, in: history))
        #expect(first.fromMs == 59)
        #expect(first.backwardTimeMs == 41)
        #expect(reader.request(toFillGapsBetween: rows, in: history) == nil)

        let filled = ChatHistory(holding: stretch(10...20), stretch(30...100))
        _ = reader.answered(first, found: [], more: false)
        let second = reader.request(toFillGapsBetween: rows, in: filled)
        #expect(second?.fromMs == 29)

        let other = AskingReader()
        let whole = ChatHistory(holding: stretch(10...100))
        #expect(other.request(toFillGapsBetween: rows, in: whole) == nil)
        #expect(
            other.request(toFillGapsBetween: at([15, 50, 70]), in: history)?.fromMs == 59
        )
        other.disconnected()
        #expect(
            other.request(toFillGapsBetween: at([15, 50]), in: history)?.kind == .around
        )
    }

    // MARK: - A server whose clock is behind

    @Test("a pivot that a server takes for its future is asked for by a message's own time")
    func clockBehind() throws {
        var history = ChatHistory(holding: stretch(60...100))
        let back = viewport(80, .backward)
        let first = try #require(reader.request(for: back, in: history))
        #expect(first.fromMs == 59)
        let evidence = reader.answered(first, found: at([90, 100]), more: true)
        _ = history.apply(try #require(evidence))

        let second = try #require(reader.request(for: back, in: history))
        #expect(second.fromMs == 60)
        #expect(second.backward == 51, "one of them is held")
        _ = reader.answered(first, found: at([90, 100]), more: true)
        let evidence2 = reader.answered(second, found: at([50, 60]), more: true)
        _ = history.apply(try #require(evidence2))
        #expect(history.chunks == [stretch(50...100)])
        #expect(reader.request(for: back, in: history)?.fromMs == 50, "it is remembered")
    }
}
