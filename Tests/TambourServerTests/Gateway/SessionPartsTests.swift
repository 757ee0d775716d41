import TambourProtocol
import Testing

@testable import TambourServer

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
        #expect(deadlines.timer(in: situation(.connected)) == silent)
        #expect(deadlines.timer(in: situation(.initialized)) == nil)
        #expect(
            deadlines.timerFired(in: situation(.initialized), at: silent)
                == .setTimer(at: 100 + Int64(limits.loginTimeoutMs))
        )
        let loggedIn = situation(.loggedIn, isStranger: false)
        let now = 100 + Int64(limits.loginTimeoutMs)
        #expect(
            deadlines.timerFired(in: loggedIn, at: now)
                == .setTimer(at: 100 + Int64(limits.idleTimeoutMs))
        )
        #expect(
            deadlines.timerFired(in: loggedIn, at: 100 + Int64(limits.idleTimeoutMs)) == .close
        )
    }

    @Test("a frame that has begun must end, and its deadline does not begin again with each byte")
    func partialFrame() {
        let limits = Limits.standard
        var deadlines = Deadlines(limits: limits)
        deadlines.opened(at: 0)
        let loggedIn = situation(.loggedIn, isStranger: false)
        #expect(deadlines.roundEnded(isPartial: true, at: 50))
        #expect(!deadlines.roundEnded(isPartial: true, at: 60))
        let end = 50 + Int64(limits.partialFrameTimeoutMs)
        #expect(deadlines.timer(in: loggedIn) == end)
        deadlines.received(at: end)
        #expect(deadlines.timerFired(in: loggedIn, at: end) == .close)
        deadlines.frameEnded()
        #expect(
            deadlines.timerFired(in: loggedIn, at: end)
                == .setTimer(at: end + Int64(limits.idleTimeoutMs))
        )
    }

    @Test("a client that takes nothing is closed as a slow reader, not for its silence")
    func stalledReader() {
        var deadlines = Deadlines(limits: .standard)
        deadlines.opened(at: 0)
        let stalled = situation(.loggedIn, isStranger: false, stalledAtMs: 700)
        #expect(deadlines.timer(in: stalled) == 700)
        #expect(deadlines.timerFired(in: stalled, at: 700) == .closeSlowReader)
    }

    // MARK: - Presence

    @Test("presence shows while the client is in the foreground and the user hides nothing")
    func shown() {
        var presence = SessionPresence(limits: .standard)
        #expect(presence.setInteractive(true) == .shown)
        #expect(presence.setInteractive(true) == nil)
        #expect(presence.setHidden(true) == .hidden)
        #expect(presence.setInteractive(false) == nil)
        #expect(presence.setHidden(false) == nil)
        #expect(presence.setInteractive(true) == .shown)
    }

    @Test("last-seen is stored once in a while, at a login always, and after a clock was set back")
    func seen() {
        let limits = Limits.standard
        var presence = SessionPresence(limits: limits)
        let step = Int64(limits.seenStepMs)
        #expect(presence.storesSeen(at: 1_000, always: false))
        #expect(!presence.storesSeen(at: 999 + step, always: false))
        #expect(presence.storesSeen(at: 999 + step, always: true))
        #expect(!presence.storesSeen(at: 1_000 + step, always: false))
        #expect(presence.storesSeen(at: 500, always: false))
    }

    @Test("a user is followed once, and let go once")
    func followed() {
        var presence = SessionPresence(limits: .standard)
        #expect(presence.follow(dialogPartner: alice))
        #expect(!presence.follow(dialogPartner: alice))
        #expect(presence.adopt([alice, bob]) == [alice])
        #expect(presence.unfollow([bob, carol]) == [bob])
        #expect(presence.unfollowAll() == [alice])
        #expect(presence.unfollowAll().isEmpty)
    }

    @Test("a session follows few dialog partners of its own")
    func fewFollowed() throws {
        let limits = try Limits(overrides: ["presenceWatch": 1])
        var presence = SessionPresence(limits: limits)
        #expect(presence.follow(dialogPartner: alice) && presence.follow(dialogPartner: bob))
        #expect(!presence.follow(dialogPartner: carol))
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
        #expect(client.requester === first)
        client.take(token: "t", isGivenHere: true)
        #expect(client.requester !== first && client.requester.token == "t")
        #expect(client.isSignedInByCode)
        client.signOut()
        #expect(client.requester.token == nil)
    }
}
