import TambourMessenger
import TambourNet
import TambourProtocol
import TambourQueues

/// Writes pages to the sockets of a lane in rounds of `maxReplyBytesPerRound`. Accounts take turns.
///
/// A page may have a million bytes. Pushes and replies to commands and PINGs overtake pages. The
/// lane serves its sockets between two rounds, so one account's pages delay other accounts by at
/// most one round. Clients cannot rely on the order of replies anyway, because any query may take
/// long.
///
/// `@unchecked Sendable`: only the lane touches this object.
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

    /// Returns the number of page bytes that a batch of messages may write at once. Further pages
    /// wait for their turns.
    ///
    /// - Parameter isFence: whether a PING waits for the end of the batch.
    func budget(isFence: Bool) -> Int {
        isFence || !pages.isEmpty ? 0 : bytesPerRound
    }

    /// Queues a page for a later round.
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
        // Between two rounds of pages, ready sockets get their turns.
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
