import TambourEvents
import TambourProtocol
import TambourStore
import Testing

@testable import TambourGateway
@testable import TambourMessenger

@Suite("The parts of a session decide without a socket")
struct SessionPartsTests {
    private let alice = UserID(1001)
    private let bob = UserID(1002)
    private let carol = UserID(1003)

    // MARK: - Deadlines

    private func situation(
        _ phase: SessionStateMachine.Phase,
        isStranger: Bool = true,
        stalledAtMs: Int64? = nil
    ) -> Deadlines.Situation {
        .init(phase: phase, isStranger: isStranger, stalledAtMs: stalledAtMs)
    }

    @Test("the nearest deadline has the timer, and a later one does not move it")
    func nearestDeadline() {
        let limits = Limits.standard
        var deadlines = Deadlines(limits: limits)
        deadlines.opened(at: 100)
        let silent = 100 + Int64(limits.sessionInitTimeoutMs)
        let timers = [
            deadlines.timer(in: situation(.connected)),
            deadlines.timer(in: situation(.initialized)),
        ]
        #expect(timers == [silent, nil])
        let login = 100 + Int64(limits.loginTimeoutMs)
        let idle = 100 + Int64(limits.idleTimeoutMs)
        let loggedIn = situation(.loggedIn, isStranger: false)
        let actions = [
            deadlines.timerFired(in: situation(.initialized), at: silent),
            deadlines.timerFired(in: loggedIn, at: login),
            deadlines.timerFired(in: loggedIn, at: idle),
        ]
        #expect(actions == [.setTimer(at: login), .setTimer(at: idle), .close])
    }

    @Test("a handshake has its own deadline, and SESSION_INIT has its time afterwards")
    func handshakeDeadline() throws {
        let limits = try Limits(overrides: ["handshakeTimeoutMs": 3000])
        var deadlines = Deadlines(limits: limits)
        deadlines.opened(at: 100, isOpening: true)
        let timer = deadlines.timer(in: situation(.connected))
        #expect(timer == 3100)
        var late = deadlines
        let action = late.timerFired(in: situation(.connected), at: 3100)
        #expect(action == .close)
        deadlines.layersOpened(at: 2000)
        let next = deadlines.timerFired(in: situation(.connected), at: 3100)
        #expect(next == .setTimer(at: 2000 + Int64(limits.sessionInitTimeoutMs)))
    }

    @Test("a frame that has begun must end, and its deadline does not begin again with each byte")
    func partialFrame() {
        let limits = Limits.standard
        var deadlines = Deadlines(limits: limits)
        deadlines.opened(at: 0)
        let loggedIn = situation(.loggedIn, isStranger: false)
        let isNew = [
            deadlines.roundEnded(isPartial: true, at: 50),
            deadlines.roundEnded(isPartial: true, at: 60),
        ]
        #expect(isNew == [true, false])
        let end = 50 + Int64(limits.partialFrameTimeoutMs)
        let timer = deadlines.timer(in: loggedIn)
        #expect(timer == end)
        deadlines.received(at: end)
        let late = deadlines.timerFired(in: loggedIn, at: end)
        #expect(late == .close)
        deadlines.frameEnded()
        let whole = deadlines.timerFired(in: loggedIn, at: end)
        #expect(whole == .setTimer(at: end + Int64(limits.idleTimeoutMs)))
    }

    @Test("a client that takes nothing is closed as a slow reader, not for its silence")
    func stalledReader() {
        var deadlines = Deadlines(limits: .standard)
        deadlines.opened(at: 0)
        let stalled = situation(.loggedIn, isStranger: false, stalledAtMs: 700)
        let timer = deadlines.timer(in: stalled)
        #expect(timer == 700)
        let action = deadlines.timerFired(in: stalled, at: 700)
        #expect(action == .closeSlowReader)
    }

    // MARK: - Presence

    @Test("presence shows while the client is in the foreground and the user hides nothing")
    func shown() {
        var presence = SessionPresence(limits: .standard)
        let changes = [
            presence.setInteractive(true), presence.setInteractive(true), presence.setHidden(true),
            presence.setInteractive(false), presence.setHidden(false),
            presence.setInteractive(true),
        ]
        #expect(changes == [.shown, nil, .hidden, nil, nil, .shown])
    }

    @Test("last-seen is stored once in a while, at a login always, and after a clock was set back")
    func seen() {
        let limits = Limits.standard
        var presence = SessionPresence(limits: limits)
        let step = Int64(limits.seenStepMs)
        let stored = [
            presence.storesSeen(at: 1_000, always: false),
            presence.storesSeen(at: 999 + step, always: false),
            presence.storesSeen(at: 999 + step, always: true),
            presence.storesSeen(at: 1_000 + step, always: false),
            presence.storesSeen(at: 500, always: false),
        ]
        #expect(stored == [true, false, true, false, true])
    }

    @Test("a user is followed once, and let go once")
    func followed() {
        var presence = SessionPresence(limits: .standard)
        let isNew = [
            presence.follow(dialogPartner: alice), presence.follow(dialogPartner: alice),
        ]
        #expect(isNew == [true, false])
        let before = presence.adopt([alice, bob])
        #expect(before == [alice])
        let gone = presence.unfollow([bob, carol])
        #expect(gone == [bob])
        let rest = [presence.unfollowAll(), presence.unfollowAll()]
        #expect(rest == [[alice], []])
    }

    @Test("a session follows few dialog partners of its own")
    func fewFollowed() throws {
        let limits = try Limits(overrides: ["presenceWatch": 1])
        var presence = SessionPresence(limits: limits)
        let isNew = [alice, bob, carol].map { presence.follow(dialogPartner: $0) }
        #expect(isNew == [true, true, false])
    }

    // MARK: - Login

    private func following(_ partners: [UserID]) -> Answer.Following {
        Answer.Following(watcher: alice, partners: partners, settingsVersion: 5, isHidden: false)
    }

    @Test("a login begins with what its snapshot says")
    func quietLogin() {
        let start = LoginFlow(LoginRequest(token: "t", interactive: false))
            .accepted(following([bob]))
        #expect(!start.isInteractive && !start.isHidden && start.settingsVersion == 5)
        #expect(start.followed == [bob] && start.unfollowed.isEmpty)
        #expect(LoginFlow(LoginRequest(token: "t")).accepted(following([])).isInteractive)
    }

    @Test("what happens while the LOGIN is in flight is newer than its snapshot")
    func eventfulLogin() {
        var login = LoginFlow(LoginRequest(token: "t", interactive: true))
        login.noted(interactive: false)
        login.noted(settingsVersion: 6, isHidden: true)
        login.noted(unfollowed: [carol])
        let start = login.accepted(following([bob, carol]))
        #expect(!start.isInteractive && start.isHidden && start.settingsVersion == 6)
        #expect(start.followed == [bob] && start.unfollowed == [carol])
    }

    // MARK: - Client

    @Test("what a client named decides what it reads; without a name its dialect does")
    func capabilities() {
        var client = SessionClient(dialect: nil)
        #expect(client.capabilities == .classic && client.isCounted)
        client.initialize(SessionInitRequest(capabilities: ["lz4-large"]))
        #expect(client.capabilities == .lz4Large && !client.isCounted)
        client.speak([.classic, .tamtam])
        #expect(client.capabilities == .lz4Large)
        client.initialize(SessionInitRequest())
        #expect(client.capabilities == [.classic, .tamtam])
        client.speak(.classic)
        #expect(client.capabilities == [.classic, .tamtam], "the first clue holds")
    }

    @Test("handlers get the same requester until something about the client changes")
    func requester() {
        var client = SessionClient(dialect: nil)
        client.connected(from: "[2001:db8::1]:7770")
        #expect(client.origin.address == "2001:db8::1")
        let first = client.requester
        let same = client.requester
        #expect(same === first)
        client.take(token: "t", isGivenHere: true)
        let other = client.requester
        #expect(other !== first && other.token == "t")
        #expect(client.isSignedInByCode)
        client.signOut()
        let last = client.requester
        #expect(last.token == nil)
    }
}
