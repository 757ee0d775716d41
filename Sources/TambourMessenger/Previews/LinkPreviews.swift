package import Logging
import Synchronization
package import TambourProtocol

/// Previews of links: asks for those that are not known, a few at a time, and remembers them.
///
/// It keeps everything in memory and never learns who asks. Doors and the engine call it at the same
/// time: a lock guards its state, and it calls others without holding the lock.
package final class LinkPreviews: Sendable {
    package typealias Answer = @Sendable (Attach?) -> Void

    private struct Kept {
        /// Nil when nothing was found.
        let attach: Attach?
        /// Unix milliseconds; then the link is looked at again.
        let freshUntil: Int64
        let forgottenAt: Int64
    }

    /// What was remembered lately, and what before: of two the older one is forgotten at once.
    private struct Generation {
        var byLink: [String: Kept] = [:]
        var byID: [Int64: Kept] = [:]
    }

    /// A link that is looked at, or waits for its turn.
    private struct Look {
        var answers: [Answer]
        /// What ends it; nil before its turn.
        var cancel: (@Sendable () -> Void)?
    }

    private struct State {
        var young = Generation()
        var old = Generation()
        var looks: [String: Look] = [:]
        /// Links whose turn has not come, in their order.
        var waiting: [String] = []
        var running = 0
        var isClosed = false
    }

    private let source: LinkPreviewSource?
    private let limits: Limits
    private let environment: Environment
    private let metrics: ServerMetrics
    private let logger: Logger
    private let state = Mutex(State())

    package init(
        source: LinkPreviewSource?,
        limits: Limits,
        environment: Environment,
        metrics: ServerMetrics,
        logger: Logger
    ) {
        self.source = source
        self.limits = limits
        self.environment = environment
        self.metrics = metrics
        self.logger = logger
    }

    /// Calls `answer` once, at once or on another thread: with the preview of the first link of a text, or nil.
    package func ask(_ text: Text, then answer: @escaping Answer) {
        guard let source,
            let link = LinkRules.firstLink(in: text, maxBytes: limits.maxURLBytes)
        else { return answer(nil) }
        enum Way {
            case known(Attach?)
            case busy
            case joined
            case begins
        }
        let now = environment.wallMs()
        let way: Way = state.withLock { state in
            if let kept = state.young.byLink[link] ?? state.old.byLink[link], now < kept.freshUntil
            {
                return .known(kept.attach)
            }
            if state.isClosed { return .busy }
            if state.looks[link] != nil {
                state.looks[link]?.answers.append(answer)
                return .joined
            }
            let hasRoom = state.running < limits.maxLinkPreviewsRunning
            guard hasRoom || state.waiting.count < limits.maxLinkPreviewsWaiting else {
                return .busy
            }
            state.looks[link] = Look(answers: [answer])
            guard hasRoom else {
                state.waiting.append(link)
                return .joined
            }
            state.running += 1
            return .begins
        }
        switch way {
        case .known(let attach):
            metrics.countLinkPreview(.kept)
            answer(attach)
        case .busy:
            metrics.countLinkPreview(.busy)
            answer(nil)
        case .joined: break
        case .begins: begin(link, source)
        }
    }

    /// The preview that somebody was told under this id and that is not forgotten yet.
    package func preview(_ id: Int64) -> Attach? {
        let now = environment.wallMs()
        return state.withLock { state in
            guard let kept = state.young.byID[id] ?? state.old.byID[id], now < kept.forgottenAt
            else { return nil }
            return kept.attach
        }
    }

    /// Answers whoever waits and ends what runs; from now on there are no new previews.
    package func close() {
        let (answers, cancels) = state.withLock { state in
            state.isClosed = true
            state.waiting = []
            let looks = Array(state.looks.values)
            state.looks = [:]
            return (looks.flatMap(\.answers), looks.compactMap(\.cancel))
        }
        for answer in answers { answer(nil) }
        for cancel in cancels { cancel() }
    }

    /// Whether nothing runs.
    package var isIdle: Bool { state.withLock { $0.running == 0 } }

    private func begin(_ link: String, _ source: LinkPreviewSource) {
        let cancel = source.look(link) { [self] in ended(link, source, $0) }
        let isTooLate = state.withLock { state in
            // It may have ended by now.
            state.looks[link]?.cancel = cancel
            return state.isClosed
        }
        if isTooLate { cancel() }
    }

    private func ended(
        _ link: String,
        _ source: LinkPreviewSource,
        _ finding: LinkPreviewSource.Finding
    ) {
        var attach: Attach?
        var lifetime = Int64(limits.linkPreviewLifetimeMs)
        switch finding {
        case .page(let page):
            attach = self.attach(page, of: link)
            metrics.countLinkPreview(attach == nil ? .nothing : .found)
        case .nothing:
            metrics.countLinkPreview(.nothing)
        case .failure(let reason):
            lifetime = Int64(limits.linkPreviewRetryMs)
            metrics.countLinkPreview(.failed)
            // Not the link: it is a part of what somebody writes.
            logger.warning("the link preview program failed", metadata: ["reason": "\(reason)"])
        }
        let now = environment.wallMs()
        let kept = Kept(
            attach: attach,
            freshUntil: now + lifetime,
            forgottenAt: now + 2 * lifetime
        )
        let (answers, next) = state.withLock { state in
            keep(kept, link, &state)
            state.running -= 1
            let answers = state.looks.removeValue(forKey: link)?.answers ?? []
            guard !state.waiting.isEmpty else { return (answers, String?.none) }
            state.running += 1
            return (answers, state.waiting.removeFirst())
        }
        for answer in answers { answer(attach) }
        if let next { begin(next, source) }
    }

    private func keep(_ kept: Kept, _ link: String, _ state: inout State) {
        if state.young.byLink.count >= max(1, limits.maxLinkPreviewsKept / 2) {
            state.old = state.young
            state.young = Generation()
        }
        state.young.byLink[link] = kept
        if let id = kept.attach?.shareID { state.young.byID[id] = kept }
    }

    /// Nil when a page says nothing that can be shown.
    private func attach(_ page: LinkPreviewSource.Page, of link: String) -> Attach? {
        let title = page.title.flatMap { LinkRules.line($0, maxUnits: limits.maxTitleUnits) }
        let description = page.description.flatMap {
            LinkRules.line($0, maxUnits: limits.maxDescriptionUnits)
        }
        guard title != nil || description != nil else { return nil }
        func isLink(_ url: String) -> Bool {
            LinkRules.isLink(url, maxBytes: limits.maxURLBytes)
        }
        let url = Text(page.url.flatMap { isLink($0) ? $0 : nil } ?? link)
        return Attach(
            type: .share,
            url: url,
            title: title,
            description: description,
            image: page.image.flatMap { isLink($0.url) ? Self.map($0) : nil },
            shareID: environment.randomBytes(8).reduce(into: Int64(0)) { $0 = $0 << 8 | Int64($1) }
                & .max,
            host: AttachRules.host(of: url)
        )
    }

    private static func map(_ image: LinkPreviewSource.Image) -> AnyValue {
        let sizes: [(StaticString, Int64)] = [("width", image.width), ("height", image.height)]
            .compactMap { key, size in size.flatMap { $0 > 0 ? (key, $0) : nil } }
        var writer = MessagePackWriter()
        writer.writeMapHeader(1 + sizes.count)
        writer.writeKey("url")
        writer.writeString(image.url)
        for (key, size) in sizes {
            writer.writeKey(key)
            writer.writeInt(size)
        }
        return AnyValue(unchecked: Bytes(writer.finish()))
    }
}
