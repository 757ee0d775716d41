import Synchronization
import TambourMessenger
import Testing

/// A source of link previews. It answers a request only when the test provides the result.
final class PreviewDesk: Sendable {
    private struct Look {
        let link: String
        let done: @Sendable (LinkPreviewSource.Finding) -> Void
    }

    private struct State {
        var looks: [Look] = []
        var seen: [String] = []
        var cancelled: [String] = []
    }

    private let state = Mutex(State())
    private let answersAtOnce: Bool

    /// - Parameter answersAtOnce: Whether to answer at once, with a page whose title is the link.
    init(answersAtOnce: Bool = false) {
        self.answersAtOnce = answersAtOnce
    }

    var source: LinkPreviewSource {
        LinkPreviewSource { [self] link, done in
            state.withLock {
                $0.seen.append(link)
                if !answersAtOnce { $0.looks.append(Look(link: link, done: done)) }
            }
            if answersAtOnce { done(.page(.init(title: link))) }
            return { [self] in cancel(link) }
        }
    }

    /// All requested links, in order.
    var seen: [String] { state.withLock { $0.seen } }
    /// The links that the source is loading.
    var open: [String] { state.withLock { $0.looks.map(\.link) } }
    var cancelled: [String] { state.withLock { $0.cancelled } }

    /// Ends the loading of a link with this result.
    func finish(_ link: String, _ finding: LinkPreviewSource.Finding) throws {
        let look = state.withLock { state in
            state.looks.firstIndex { $0.link == link }.map { state.looks.remove(at: $0) }
        }
        try #require(look, "nobody looks at \(link)").done(finding)
    }

    private func cancel(_ link: String) {
        state.withLock { $0.cancelled.append(link) }
        try? finish(link, .failure("it was ended"))
    }
}
