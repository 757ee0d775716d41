import TambourEvents
import TambourMessenger
import TambourNet
import TambourProtocol
import TambourQueues

/// A message from another thread to a lane.
enum LaneMessage: Sendable {
    case events([Event])
    indirect case answered(Session, Session.Request, Session.Reply)
    indirect case tokenResolved(
        Session,
        Session.Request,
        LoginRequest,
        Result<OpenSession, RequestError>
    )
    /// Close this connection, which is one of the oldest of a token or account with too many
    /// connections.
    case superseded(Session)
    /// The token of this session was revoked.
    case tokenDied(Session, SessionID)
    /// Close this connection, which has not logged in, to free its descriptor.
    case makeRoom(Session)
    /// Count down once all earlier events are delivered.
    case delivered(Countdown)
    /// Apply new feature rules.
    case features(FeatureReload)
    /// Continue a reload with the remaining sessions. `told` is the number of sessions that have
    /// got new decisions so far.
    case tellFeatures(FeatureReload, ArraySlice<Session>, told: Int)
    case stop
}

/// The sessions of one lane and its mailbox.
///
/// `@unchecked Sendable`: all state except the mailbox is touched on the lane only.
final class LaneGateway: @unchecked Sendable {
    let lane: Lane
    let shared: SharedServices
    private let mailbox: Mailbox<LaneMessage>
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var byUser: [UserID: [Session]] = [:]
    /// The sessions whose clients named features.
    private var withFeatures: [ObjectIdentifier: Session] = [:]
    /// For each feature, the number of sessions for which it is on, and the number for which it is
    /// off.
    private(set) var featureCounts: [String: FeatureCount] = [:]
    private(set) var rules: FeatureRules
    private let pages: PageTurns
    /// The sessions that have opened the comments on posts.
    var comments: CommentReaders
    /// Whether a PING waits for the messages that are being delivered.
    private var isFence = false
    private var isStopping = false
    /// The read counters of the receivers, by chat, for the messages in the current batch of
    /// events.
    private var counters: [ChatID: ReadCounters] = [:]

    init(lane: Lane, shared: SharedServices, rules: FeatureRules) {
        self.lane = lane
        self.shared = shared
        self.rules = rules
        pages = PageTurns(lane: lane, limits: shared.limits)
        comments = CommentReaders(limits: shared.limits)
        let addressee = Addressee()
        mailbox = Mailbox(queue: lane.queue) { addressee.gateway?.handle($0) }
        addressee.gateway = self
    }

    /// Refers to the gateway, which handles the messages of the mailbox. The mailbox is created
    /// before the gateway is initialized, so the reference is set later.
    ///
    /// `@unchecked Sendable`: set once, before any message can be posted.
    private final class Addressee: @unchecked Sendable {
        weak var gateway: LaneGateway?
    }

    func post(_ message: LaneMessage) {
        mailbox.post(message)
    }

    /// Delivers all messages that other threads have posted so far, except pages. The session calls
    /// this method before it answers a PING.
    func drainMailbox() {
        isFence = true
        mailbox.drainNow()
        isFence = false
    }

    // MARK: - Sessions of this lane

    func opened(_ session: Session) {
        sessions[ObjectIdentifier(session)] = session
        if isStopping { session.closeForStop() }
    }

    func closed(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        withFeatures[ObjectIdentifier(session)] = nil
        count(session, [])
    }

    /// Records whether the client's latest SESSION_INIT named features.
    func namedFeatures(_ session: Session) {
        withFeatures[ObjectIdentifier(session)] =
            session.account.features == nil ? nil : session
        countFeatures(of: session)
    }

    /// Updates the counts. Call this method when the session's feature decisions may have changed.
    func countFeatures(of session: Session) {
        count(session, session.account.features ?? [])
    }

    private func count(_ session: Session, _ answers: [SessionFeature]) {
        func add(_ step: Int, _ answers: [SessionFeature]) {
            for answer in answers {
                let side = answer.enabled ? \FeatureCount.on : \FeatureCount.off
                featureCounts[answer.type, default: FeatureCount()][keyPath: side] += step
                if featureCounts[answer.type] == FeatureCount() { featureCounts[answer.type] = nil }
            }
        }
        add(-1, session.account.countedAnswers)
        add(1, answers)
        session.account.countedAnswers = answers
    }

    /// Subscribes the session to the events of its user.
    func register(_ session: Session, user: UserID) {
        byUser[user, default: []].append(session)
    }

    /// Returns the number of a user's connections on this lane.
    func connectionCount(of user: UserID) -> Int { byUser[user]?.count ?? 0 }

    func unregister(_ session: Session, user: UserID) {
        guard var list = byUser[user] else { return }
        list.removeAll { $0 === session }
        byUser[user] = list.isEmpty ? nil : list
    }

    // MARK: - Messages

    private func handle(_ messages: [LaneMessage]) {
        lane.round {
            var budget = pages.budget(isFence: isFence)
            for message in messages {
                if case .answered(let session, let request, let reply) = message,
                    reply.answer.isPage
                {
                    if budget > 0 {
                        budget -= session.requests.answered(request, reply)
                    } else {
                        pages.add(session, request, reply)
                    }
                } else {
                    handle(message)
                }
            }
        }
    }

    private func handle(_ message: LaneMessage) {
        switch message {
        case .events(let events):
            counters = [:]
            for event in events { deliver(event) }
        case .answered(let session, let request, let reply):
            session.requests.answered(request, reply)
        case .tokenResolved(let session, let request, let login, let found):
            session.account.tokenResolved(request, login, found)
        case .superseded(let session):
            session.close(reason: "more connections of this token or account than allowed")
        case .tokenDied(let session, let id):
            if session.caller?.sessionID == id { session.tokenDied() }
        case .makeRoom(let session):
            session.makeRoom()
        case .delivered(let receipt):
            receipt.step()
        case .features(let reload):
            rules = reload.rules
            tellFeatures(reload, Array(withFeatures.values)[...], told: 0)
        case .tellFeatures(let reload, let rest, let told):
            tellFeatures(reload, rest, told: told)
        case .stop:
            isStopping = true
            for session in sessions.values { session.closeForStop() }
        }
    }

    /// The number of sessions that get new rules at once. Then other work of the lane gets its
    /// turn.
    private static let toldAtOnce = 256

    /// Evaluates the new rules for the given sessions, and pushes the new decisions to sessions
    /// whose decisions changed.
    private func tellFeatures(
        _ reload: FeatureReload,
        _ sessions: ArraySlice<Session>,
        told before: Int
    ) {
        var told = before
        // Many sessions get the same decisions, so each distinct set of decisions is encoded once.
        var encoded: [LoginConfig: EncodedPush<Push>] = [:]
        for session in sessions.prefix(Self.toldAtOnce) {
            guard let answers = session.account.featuresChanged() else { continue }
            let config = shared.settings.change(
                to: answers,
                version: session.account.settingsVersion
            )
            let push = Push.notifConfig(NotifConfig(config: config))
            var packets = encoded[config] ?? EncodedPush(push, limits: shared.limits)
            if session.push(&packets) { told += 1 }
            encoded[config] = packets
        }
        let rest = sessions.dropFirst(Self.toldAtOnce)
        if rest.isEmpty {
            reload.laneIsDone(told: told)
        } else {
            mailbox.post(.tellFeatures(reload, rest, told: told))
        }
    }

    /// One binary search in a long list of users costs as much as this many lookups in `byUser`.
    private static let listedUsers = 8

    private func deliver(_ event: Event) {
        switch event {
        case .push(let push, let users, let except):
            if let address = push.comments {
                return tell(push, of: address, to: users, except: except)
            }
            var encoded = EncodedPush(push, limits: shared.limits)
            var dialog: ChatID?
            var counted: (message: NotifMessage, readers: ReadCounters)?
            if case .notifMessage(let message) = push {
                if !message.chatID.isGroup { dialog = message.chatID }
                counted = counters[message.chatID].map { (message, $0) }
            }
            func deliver(to sessions: [Session], of user: UserID) {
                let reader = counted?.readers.readers[user]
                for session in sessions {
                    if let except, session.caller?.connectionID == except { continue }
                    if let dialog { session.account.noteDialog(dialog) }
                    if let reader, let counted, session.account.isCounted {
                        session.push(counted.message, to: reader)
                    } else {
                        session.push(&encoded)
                    }
                }
            }
            if users.count > Self.listedUsers * byUser.count {
                // A channel may have many members, of whom few are online. In this case, look up
                // each online user in the list of members, which is sorted by id.
                for (user, sessions) in byUser where users.holdsSorted(user) {
                    deliver(to: sessions, of: user)
                }
            } else {
                for user in users {
                    if let sessions = byUser[user] { deliver(to: sessions, of: user) }
                }
            }
        case .counters(let readers):
            counters[readers.chatID] = readers
        case .sessionsClosed(let ids, let user):
            for session in byUser[user] ?? [] {
                if let id = session.caller?.sessionID, ids.contains(id) { session.tokenDied() }
            }
        case .unfollowed(let users, let watcher):
            for session in byUser[watcher] ?? [] { session.account.unfollow(users) }
        case .settingsChanged(let news, let user, let except):
            for session in byUser[user] ?? [] {
                session.account.settingsChanged(news.version, isHidden: news.isHidden)
                if let except, session.caller?.connectionID == except { continue }
                let config = shared.settings.change(
                    to: news,
                    for: session.account.features
                )
                let push = Push.notifConfig(NotifConfig(config: config))
                var packets = EncodedPush(push, limits: shared.limits)
                session.push(&packets)
            }
        case .code, .codeWithheld, .delayed:
            break
        }
    }

    /// Pushes an event about the comments on a post. The receivers are the sessions that have
    /// opened these comments and whose users still see the post.
    ///
    /// - Parameter readers: the users who see the post, in the order of their ids.
    private func tell(
        _ push: Push,
        of address: MessageAddress,
        to readers: [UserID],
        except: ConnectionID?
    ) {
        var encoded = EncodedPush(push, limits: shared.limits)
        for session in comments[address] {
            guard let caller = session.caller, caller.connectionID != except,
                readers.holdsSorted(caller.userID)
            else { continue }
            if case .notifMessage(let message) = push, session.account.isCounted {
                // Unread comments are not counted.
                session.push(message, to: ReadCounters.Reader(mark: 0, unread: 0))
            } else {
                session.push(&encoded)
            }
        }
    }
}

extension [UserID] {
    /// Returns whether a list that is sorted by id contains the user.
    func holdsSorted(_ user: UserID) -> Bool {
        var low = startIndex
        var high = endIndex
        while low < high {
            let middle = low + (high - low) / 2
            if self[middle] < user { low = middle + 1 } else { high = middle }
        }
        return low < endIndex && self[low] == user
    }
}
