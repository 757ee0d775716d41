import Testing

@testable import TambourClient

/// Each row of the table in docs/client-sync.md, section 6.2, and the restriction to the closed
/// part.
@Suite("What a reply or push proves")
struct EvidenceTests {
    // MARK: - Backward pages

    @Test("a backward page with more reaches from its first message up to the pivot")
    func backwardWithMore() {
        let evidence = Evidence.backwardPage(
            upTo: end(9),
            found: at([5, 7]),
            more: true,
            closed: end(20)
        )
        #expect(evidence?.interval == stretch(5...9))
        #expect(evidence?.found == at([5, 7]))
    }

    @Test("a backward page without more reaches from the beginning")
    func backwardToTheTop() {
        let evidence = Evidence.backwardPage(
            upTo: end(9),
            found: at([5, 7]),
            more: false,
            closed: end(20)
        )
        #expect(evidence?.interval == stretch(...9))
    }

    @Test("a backward page says nothing of what was still open when it was read")
    func backwardClipped() {
        func interval(closed: Int64) -> PositionInterval? {
            Evidence.backwardPage(
                upTo: .max,
                found: at([5, 7]),
                more: true,
                closed: end(closed)
            )?.interval
        }
        #expect(interval(closed: 3) == stretch(5...7), "its last message closes what is before")
        #expect(interval(closed: 8) == stretch(5...8))
    }

    @Test("an empty backward page proves that nothing is left")
    func backwardEmpty() {
        let empty = Evidence.backwardPage(upTo: end(9), found: [], more: false, closed: end(20))
        #expect(empty?.interval == stretch(...9))
        #expect(empty?.found == [])
    }

    @Test("a backward page that ends at a bound reaches down to it")
    func backwardBound() {
        func interval(_ found: [Int64], more: Bool) -> PositionInterval? {
            Evidence.backwardPage(
                upTo: end(9),
                downTo: .first(at: 3),
                found: at(found),
                more: more,
                closed: end(20)
            )?.interval
        }
        #expect(interval([5], more: false) == stretch(3...9))
        #expect(interval([], more: false) == stretch(3...9))
        #expect(interval([5], more: true) == stretch(5...9))
    }

    @Test("where a server does not say whether there is more, a page claims no more than itself")
    func backwardWithoutMore() {
        func interval(_ found: [Int64]) -> PositionInterval? {
            Evidence.backwardPage(upTo: end(9), found: at(found), more: nil, closed: end(20))?
                .interval
        }
        #expect(interval([5, 7]) == stretch(5...9))
        #expect(interval([]) == stretch(...9))
    }

    @Test("newest messages in place of those before the pivot are as good as a page")
    func pivotInTheFuture() {
        let evidence = Evidence.backwardPage(
            upTo: end(4),
            found: at([5, 7]),
            more: true,
            closed: end(6)
        )
        #expect(evidence?.interval == stretch(5...7))
    }

    // MARK: - Forward pages

    @Test("a forward page with more reaches from behind the pivot to its last message")
    func forwardWithMore() {
        let evidence = Evidence.forwardPage(
            after: at(3),
            found: at([5, 7]),
            more: true,
            closed: end(20)
        )
        #expect(evidence?.interval == stretch(4...7))
    }

    @Test("a forward page without more reaches as far as nothing can appear")
    func forwardToTheEnd() {
        func interval(_ found: [Int64], closed: Int64) -> PositionInterval? {
            Evidence.forwardPage(
                after: at(3),
                found: at(found),
                more: false,
                closed: end(closed)
            )?.interval
        }
        #expect(interval([5, 7], closed: 20) == stretch(4...20))
        #expect(interval([5, 7], closed: 6) == stretch(4...7))
        #expect(interval([], closed: 20) == stretch(4...20))
        #expect(interval([], closed: 3) == nil)
    }

    @Test("a forward page that ends at a bound reaches up to it")
    func forwardBound() {
        let evidence = Evidence.forwardPage(
            after: at(3),
            upTo: end(9),
            found: at([5]),
            more: false,
            closed: end(20)
        )
        #expect(evidence?.interval == stretch(4...9))
    }

    // MARK: - Both directions

    @Test("a page around a message reaches over it from end to end")
    func around() {
        func interval(_ found: [Int64], more: Bool) -> PositionInterval? {
            Evidence.pageAround(at(6), found: at(found), more: more, closed: end(20))?.interval
        }
        #expect(interval([5, 7], more: true) == stretch(5...7))
        #expect(interval([4, 5], more: true) == stretch(4...6), "nothing lies behind 5 up to 6")
        #expect(interval([5, 7], more: false) == stretch(...20))
        #expect(interval([], more: false) == stretch(...20))
    }

    @Test("a page around a message that shows nothing up to it may be one of the newest")
    func aroundTheFuture() {
        let evidence = Evidence.pageAround(at(6), found: at([8, 9]), more: true, closed: end(20))
        #expect(evidence?.interval == stretch(8...9))
    }

    // MARK: - Single messages

    @Test("a message with the one before it proves that nothing lies between")
    func message() {
        let evidence = Evidence.message(at(7), after: at(3))
        #expect(evidence?.interval == stretch(4...7))
        #expect(evidence?.found == at([7]), "the one before may be deleted")
    }

    @Test("a message without one before it is the first")
    func firstMessage() {
        #expect(Evidence.message(at(7), after: nil)?.interval == stretch(...7))
    }

    @Test("a login's newest message proves that nothing lies behind it up to the login's time")
    func newest() {
        let behind = Evidence.newest(at(7), after: at(3), safeTimeMs: 9)
        #expect(behind?.interval == stretch(4...9))
        #expect(behind?.found == at([7]))
        #expect(Evidence.newest(at(7), after: at(3), safeTimeMs: 5)?.interval == stretch(4...7))
        #expect(Evidence.newest(at(7), after: nil, safeTimeMs: 5)?.interval == stretch(...7))
    }

    @Test("a login without a newest message proves that nothing is there")
    func nothing() {
        let evidence = Evidence.newest(nil, after: nil, safeTimeMs: 9)
        #expect(evidence?.interval == stretch(...9))
        #expect(evidence?.found == [])
    }

    @Test("cleared history and a join without it prove that nothing is there up to the floor")
    func cleared() {
        let evidence = Evidence.cleared(through: at(7))
        #expect(evidence?.interval == stretch(...7))
        #expect(evidence?.found == [])
    }

    @Test("a deleted range proves that nothing is there from its first to its last millisecond")
    func emptied() {
        #expect(Evidence.emptied(fromMs: 3, throughMs: 7)?.interval == stretch(3...7))
        #expect(Evidence.emptied(fromMs: 7, throughMs: 3) == nil)
    }

    @Test("messages out of order, or out of the claim, are put right")
    func unsorted() {
        let evidence = Evidence.forwardPage(
            after: at(3),
            found: at([7, 2, 5]),
            more: true,
            closed: end(20)
        )
        #expect(evidence?.found == at([5, 7]))
    }
}
