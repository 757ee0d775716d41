import Logging
import Synchronization
import TambourMessenger
import TambourProtocol
import Testing

@Suite("Previews that are made and kept")
struct LinkPreviewsTests {
    private let clock = ManualClock()
    private let desk = PreviewDesk()
    private let metrics = ServerMetrics(startedMs: 0)

    private func previews(_ overrides: [String: Int] = [:]) throws -> LinkPreviews {
        LinkPreviews(
            source: desk.source,
            limits: try Limits(overrides: overrides),
            environment: clock.environment,
            metrics: metrics,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// The answers so far; nil for no preview.
    private final class Answers: Sendable {
        private let list = Mutex<[Attach?]>([])

        var all: [Attach?] { list.withLock { $0 } }
        var titles: [String?] { all.map { $0.flatMap { $0.title.map { String($0) } } } }
        func add(_ attach: Attach?) { list.withLock { $0.append(attach) } }
    }

    private func ask(_ previews: LinkPreviews, _ text: Text, _ answers: Answers) {
        previews.ask(text) { answers.add($0) }
    }

    private func page(_ title: String) -> LinkPreviewSource.Finding { .page(.init(title: title)) }

    @Test("who asks for a link that is looked at, or was lately, shares what is found")
    func shared() throws {
        let (previews, answers) = (try previews(), Answers())
        ask(previews, "see https://a.b/c", answers)
        ask(previews, "https://a.b/c!", answers)
        #expect(desk.open == ["https://a.b/c"] && answers.all.isEmpty)
        try desk.finish("https://a.b/c", page("C"))
        ask(previews, "https://a.b/c", answers)
        #expect(answers.titles == ["C", "C", "C"])
        #expect(Set(answers.all.map { $0?.shareID }).count == 1)
        #expect(desk.seen.count == 1)
        #expect(metrics.linkPreviewCounts == ["found": 1, "kept": 1])
    }

    @Test("a page is shown as one SHARE: what is too long is cut, and what is no link left out")
    func attach() throws {
        let (previews, answers) = (try previews(["maxTitleUnits": 5]), Answers())
        let image = LinkPreviewSource.Image(url: "https://a.b/i.png", width: 6, height: 0)
        for (path, page) in [
            ("1", LinkPreviewSource.Page(url: "http://c.d/", title: "A title", image: image)),
            ("2", .init(url: "javascript:x", description: "D\nd", image: .init(url: "data:x"))),
            ("3", .init(title: " ", description: "", image: image)),
        ] {
            ask(previews, Text("https://a.b/\(path)"), answers)
            try desk.finish("https://a.b/\(path)", .page(page))
        }
        let (first, second) = (try #require(answers.all[0]), try #require(answers.all[1]))
        #expect(first.type == .share)
        #expect(first.url == "http://c.d/" && first.host == "c.d" && first.title == "A tit")
        #expect(first.description == nil)
        let map = try MessagePackReader.read(try #require(first.image).bytes, limits: .standard) {
            (reader) throws(PayloadError) in
            try NameMap<AnyValue>.read(from: &reader)
        }
        #expect(map.count == 2 && map["width"]?.int == 6)
        #expect(map["url"]?.text == "https://a.b/i.png")
        #expect(second.url == "https://a.b/2" && second.host == "a.b")
        #expect(second.description == "D d" && second.title == nil && second.image == nil)
        #expect(first.shareID != second.shareID && (first.shareID ?? 0) > 0)
        #expect(answers.all[2] == nil, "a picture alone is none")
    }

    @Test("what was found, and that nothing was, is asked again after a time, a failure sooner")
    func lifetimes() throws {
        let limits = ["linkPreviewLifetimeMs": 1000, "linkPreviewRetryMs": 100]
        let (previews, answers) = (try previews(limits), Answers())
        let findings: [(String, LinkPreviewSource.Finding)] = [
            ("https://page", page("P")), ("https://nothing", .nothing),
            ("https://failure", .failure("x")),
        ]
        for (link, finding) in findings {
            ask(previews, Text(link), answers)
            try desk.finish(link, finding)
        }
        func askAll() { for (link, _) in findings { ask(previews, Text(link), answers) } }
        clock.advance(ms: 99)
        askAll()
        #expect(desk.open == [])
        clock.advance(ms: 1)
        askAll()
        #expect(desk.open == ["https://failure"])
        clock.advance(ms: 899)
        askAll()
        #expect(desk.open == ["https://failure"])
        clock.advance(ms: 1)
        askAll()
        #expect(desk.open == ["https://failure", "https://page", "https://nothing"])
        #expect(metrics.linkPreviewCounts["failed"] == 1)
    }

    @Test("an id is good for as long after it was told as a preview is kept")
    func ids() throws {
        let (previews, answers) = (try previews(["linkPreviewLifetimeMs": 1000]), Answers())
        ask(previews, "https://a.b", answers)
        try desk.finish("https://a.b", page("A"))
        clock.advance(ms: 999)
        ask(previews, "https://a.b", answers)
        let id = try #require(answers.all[1]?.shareID)
        clock.advance(ms: 1000)
        #expect(previews.preview(id) == answers.all[0])
        #expect(previews.preview(id + 1) == nil)
        clock.advance(ms: 1)
        #expect(previews.preview(id) == nil)
    }

    @Test("the number of kept previews is limited; the oldest is dropped")
    func bounded() throws {
        let (previews, answers) = (try previews(["maxLinkPreviewsKept": 4]), Answers())
        for number in 0..<7 {
            ask(previews, Text("https://a.b/\(number)"), answers)
            try desk.finish("https://a.b/\(number)", page("\(number)"))
        }
        let known = answers.all.map { $0?.shareID.flatMap { previews.preview($0) } != nil }
        #expect(known == [false, false, false, false, true, true, true])
        ask(previews, "https://a.b/5", answers)
        #expect(desk.open == [])
        ask(previews, "https://a.b/3", answers)
        #expect(desk.open == ["https://a.b/3"])
    }

    @Test("a few are looked at together, some wait in their order, and the others get nothing")
    func queue() throws {
        let limits = ["maxLinkPreviewsRunning": 2, "maxLinkPreviewsWaiting": 2]
        let (previews, answers) = (try previews(limits), Answers())
        for number in 0..<5 { ask(previews, Text("https://a.b/\(number)"), answers) }
        #expect(desk.open == ["https://a.b/0", "https://a.b/1"])
        #expect(answers.titles == [nil], "the last one")
        #expect(metrics.linkPreviewCounts == ["busy": 1])
        // A second request for a pending link takes no place in the queue.
        ask(previews, "https://a.b/3", answers)
        try desk.finish("https://a.b/1", page("1"))
        #expect(desk.open == ["https://a.b/0", "https://a.b/2"])
        try desk.finish("https://a.b/0", .failure("x"))
        try desk.finish("https://a.b/3", page("3"))
        try desk.finish("https://a.b/2", .nothing)
        #expect(answers.titles == [nil, "1", nil, "3", "3", nil])
        #expect(desk.open == [] && previews.isIdle)
    }

    @Test("a source that answers at once does")
    func atOnce() throws {
        let limits = try Limits(overrides: ["maxLinkPreviewsRunning": 1])
        let desk = PreviewDesk(answersAtOnce: true)
        let previews = LinkPreviews(
            source: desk.source,
            limits: limits,
            environment: clock.environment,
            metrics: metrics,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let answers = Answers()
        for number in 0..<3 { ask(previews, Text("https://a.b/\(number)"), answers) }
        #expect(answers.titles == (0..<3).map { "https://a.b/\($0)" })
        #expect(previews.isIdle)
    }

    @Test("when it closes, everybody is answered and what runs is ended")
    func close() throws {
        let (previews, answers) = (try previews(["maxLinkPreviewsRunning": 1]), Answers())
        ask(previews, "https://a.b/0", answers)
        ask(previews, "https://a.b/1", answers)
        previews.close()
        #expect(answers.titles == [nil, nil])
        #expect(desk.cancelled == ["https://a.b/0"])
        #expect(desk.seen == ["https://a.b/0"] && previews.isIdle)
        ask(previews, "https://a.b/2", answers)
        #expect(answers.titles == [nil, nil, nil] && desk.open == [])
    }
}
