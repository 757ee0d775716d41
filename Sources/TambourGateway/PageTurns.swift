import TambourMessenger
import TambourNet
import TambourProtocol
import TambourQueues

/// Pages on their way to the sockets of a lane: accounts in turn, `maxReplyBytesPerRound` a round.
///
/// A page may have a million bytes. Pushes, replies of commands and PINGs overtake pages, and the lane
/// serves its sockets between two rounds: one account's pages delay others by those of one round. An
/// order that clients could rely on is not lost: a reader can be late at any time.
///
/// `@unchecked Sendable`: touched on its lane only.
final class PageTurns: @unchecked Sendable {
    private struct Page {
        let session: Session
        let request: Session.Request
        let reply: Session.Reply
    }

    private let lane: Lane
    private let bytesPerRound: Int
    private var pages = FairQueue<WorkSubject, Page>()
    private var isRoundPosted = false

    init(lane: Lane, limits: Limits) {
        self.lane = lane
        bytesPerRound = max(1, limits.maxReplyBytesPerRound)
    }

    /// The bytes that a batch of messages may have written before the rest takes turns.
    ///
    /// - Parameter isFence: whether somebody waits for the end of the batch.
    func budget(isFence: Bool) -> Int {
        isFence || !pages.isEmpty ? 0 : bytesPerRound
    }

    /// Has a page written in a later round.
    func add(_ session: Session, _ request: Session.Request, _ reply: Session.Reply) {
        let page = Page(session: session, request: request, reply: reply)
        pages.add(page, of: session.account.subject)
        postRound()
    }

    private func postRound() {
        guard !isRoundPosted, pages.hasReady else { return }
        isRoundPosted = true
        lane.queue.async { [weak self] in self?.round() }
    }

    private func round() {
        isRoundPosted = false
        // Between two rounds of pages those who are ready get their turns.
        lane.serve()
        lane.round {
            var left = bytesPerRound
            while left > 0, let (subject, page) = pages.take() {
                left -= page.session.requests.answered(page.request, page.reply)
                pages.finish(subject)
            }
        }
        postRound()
    }
}
