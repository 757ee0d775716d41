package import Logging
import Synchronization
package import TambourProtocol

/// Caches link previews. Looks up links that are not in the cache, a few at a time.
///
/// The cache is in memory only and does not record which user requested a link. Doors and the
/// engine call this object concurrently. A lock guards its state. Callbacks run without the lock.
package final class LinkPreviews: Sendable {
    package typealias Answer = @Sendable (Attach?) -> Void

    private struct Kept {
        /// The preview; nil when the lookup found nothing to show.
        let attach: Attach?
        /// The time, in Unix milliseconds, after which a new request starts a new lookup of the
        /// link.
        let freshUntil: Int64
        let forgottenAt: Int64
    }

    /// A part of the cache. There are two generations. The cache drops the older one as a whole.
    private struct Generation {
        var byLink: [String: Kept] = [:]
        var byID: [Int64: Kept] = [:]
    }

    /// A lookup that runs or waits for its turn.
    private struct Look {
        var answers: [Answer]
        /// Cancels the lookup; nil if the lookup has not started yet.
        var cancel: (@Sendable () -> Void)?
    }

    private struct State {
        var young = Generation()
        var old = Generation()
        var looks: [String: Look] = [:]
        /// The links that wait for their lookups, in order.
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

    /// Calls `answer` once, with the preview of the first link in a text, or with nil if there is
    /// no preview. The call happens before this method returns, or later on another thread.
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

    /// Returns the preview that a client received under this id; nil if the cache has dropped it.
    package func preview(_ id: Int64) -> Attach? {
        let now = environment.wallMs()
        return state.withLock { state in
            guard let kept = state.young.byID[id] ?? state.old.byID[id], now < kept.forgottenAt
            else { return nil }
            return kept.attach
        }
    }

    /// Answers all waiting callers with nil, and cancels running lookups. From now on, no lookup
    /// starts.
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

    /// Whether no lookup is running.
    package var isIdle: Bool { state.withLock { $0.running == 0 } }

    private func begin(_ link: String, _ source: LinkPreviewSource) {
        let cancel = source.look(link) { [self] in ended(link, source, $0) }
        let isTooLate = state.withLock { state in
            // The lookup may have ended already, and then has no entry.
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
            // The log omits the link, because it is a part of a user's message.
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

    /// Returns the preview of a page; nil when the page has nothing to show.
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
