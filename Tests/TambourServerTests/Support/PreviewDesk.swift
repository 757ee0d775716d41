import Synchronization
import TambourMessenger
import Testing

/// A source of previews that waits for a test to say what it finds.
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

    /// - Parameter answersAtOnce: with a page whose title is the link.
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

    /// All links that were looked at, in their order.
    var seen: [String] { state.withLock { $0.seen } }
    /// Those that are looked at now.
    var open: [String] { state.withLock { $0.looks.map(\.link) } }
    var cancelled: [String] { state.withLock { $0.cancelled } }

    /// Ends looking at a link.
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
