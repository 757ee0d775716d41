import TambourEvents
import TambourMessenger
import TambourNet
import TambourProtocol
import TambourQueues

/// What other threads tell a lane.
enum LaneMessage: Sendable {
    case events([Event])
    indirect case answered(Session, Session.Request, Session.Reply)
    indirect case tokenResolved(
        Session,
        Session.Request,
        LoginRequest,
        Result<OpenSession, RequestError>
    )
    /// The oldest connection of a token that has too many.
    case superseded(Session)
    /// The token that the session was given is dead.
    case tokenDied(Session, SessionID)
    /// A connection without a login that has to go, as others need its place.
    case makeRoom(Session)
    /// Says that the events posted before are delivered.
    case delivered(Countdown)
    /// Features are decided by other rules from now on.
    case features(FeatureReload)
    /// Sessions that have still to hear of it, and how many have.
    case tellFeatures(FeatureReload, ArraySlice<Session>, told: Int)
    case stop
}

/// The sessions of one lane and its mailbox.
///
/// `@unchecked Sendable`: everything but the mailbox is touched on the lane only.
final class LaneGateway: @unchecked Sendable {
    let lane: Lane
    let shared: SharedServices
    private let mailbox: Mailbox<LaneMessage>
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var byUser: [UserID: [Session]] = [:]
    /// The sessions whose clients named features.
    private var withFeatures: [ObjectIdentifier: Session] = [:]
    /// How many sessions have which answer, by feature.
    private(set) var featureCounts: [String: FeatureCount] = [:]
    private(set) var rules: FeatureRules
    private let pages: PageTurns
    /// The sessions that have opened the comments on posts.
    var comments: CommentReaders
    /// Whether a PING waits for what is being delivered.
    private var isFence = false
    private var isStopping = false
    /// What receivers of the messages of the events under way have read.
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

    /// Lets the mailbox be made before the gateway it delivers to is complete.
    ///
    /// `@unchecked Sendable`: set once, before anything can be posted.
    private final class Addressee: @unchecked Sendable {
        weak var gateway: LaneGateway?
    }

    func post(_ message: LaneMessage) {
        mailbox.post(message)
    }

    /// Delivers everything that was posted before, but for pages; a PING does this before it is answered.
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

    /// Its client named features, or named none any more.
    func namedFeatures(_ session: Session) {
        withFeatures[ObjectIdentifier(session)] =
            session.account.features == nil ? nil : session
        countFeatures(of: session)
    }

    /// Its answers may be others now.
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

    /// From now on the session hears what its user's chats bring.
    func register(_ session: Session, user: UserID) {
        byUser[user, default: []].append(session)
    }

    /// The connections of a user on this lane.
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

    /// So many sessions hear of new rules before others of the lane get their turn.
    private static let toldAtOnce = 256

    /// Asks the new rules for every session that is concerned, and tells those whose answers changed.
    private func tellFeatures(
        _ reload: FeatureReload,
        _ sessions: ArraySlice<Session>,
        told before: Int
    ) {
        var told = before
        // Sessions are many, different answers are few.
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

    /// So many users are looked up among those online in the time that one of those is found in a long
    /// list.
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
                // A channel has more members than there are people online: those are looked up in its
                // list, which is in the order of their ids, and not the list among them.
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
        case .code, .delayed:
            break
        }
    }

    /// Tells of comments the sessions that have opened them, as long as their users see the post.
    ///
    /// - Parameter readers: those who see it, in the order of their ids.
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
                // Nobody counts what is unread among comments.
                session.push(message, to: ReadCounters.Reader(mark: 0, unread: 0))
            } else {
                session.push(&encoded)
            }
        }
    }
}

extension [UserID] {
    /// Whether a list in the order of ids holds one of them.
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
