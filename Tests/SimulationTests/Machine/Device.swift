import Foundation
import GRDB
import TambourProtocol
import TambourTesting

@testable import TambourClient

/// One device of a user. It drives the client's core as a program does, and simulates the faults
/// that can hit the program.
final class Device: ClientHost {
    /// Whether the program ends just before or just after the next commit.
    enum Death {
        case beforeCommit
        case afterCommit
    }

    struct DiskFull: Error {}

    let name: String
    let user: Int
    let index: Int
    unowned let world: World
    private let path: String
    private(set) var core: ClientCore?
    private(set) var store: LocalStore?
    private(set) var link: Link?
    private var attempt = 0
    private var wakeTurn = 0
    private let fate = Fate()
    /// The offset of the device's wall clock from the machine's clock.
    var offsetMs: Int64 = 0
    var isOffline = false
    var isWanted = true
    /// Messages whose deletion the server has reported to the device.
    var removed: Set<MessageID> = []
    /// The runs of photo tasks that are in progress on the device.
    var photoRuns: Set<TaskRun> = []
    /// Chats that the user was removed from while the device was away.
    var takenOutWhileAway: Set<ChatID> = []
    private(set) var lastText = 0
    private var random: SeededGenerator
    var loop: EventLoop { world.loop }

    /// The fault at the next commits: a full disk, or the end of the program.
    ///
    /// `@unchecked Sendable`: everything happens on the thread that runs the simulation.
    private final class Fate: @unchecked Sendable {
        var death: Death?
        var isDead = false
        var failures = 0
        var commits = 0
        var isAnswering = false
        var diedAnswering = false
    }

    init(world: World, user: Int, index: Int, seed: UInt64) throws {
        self.world = world
        self.user = user
        self.index = index
        name = "\(user).\(index)"
        random = SeededGenerator(seed: seed)
        path = "\(world.directory)/device-\(name).db"
        try Templates.shared.copy("device.db", to: path)
        try boot()
        _ = call { core in
            try? core.signIn(token: Templates.token(user: user, device: index), phone: nil)
            core.start()
        }
    }

    var me: UserID { Templates.shared.user(user) }
    var isAlive: Bool { core != nil }
    var isOnline: Bool { core?.state == .online }

    // MARK: - Start and end

    private func boot() throws {
        fate.death = nil
        fate.isDead = false
        fate.failures = 0
        let fate = fate
        let store = try LocalStore(path: path) {
            if fate.isDead { throw DiskFull() }
            if fate.failures > 0 {
                fate.failures -= 1
                throw DiskFull()
            }
            if fate.death == .beforeCommit {
                fate.isDead = true
                fate.diedAnswering = fate.isAnswering
                throw DiskFull()
            }
            fate.commits += 1
            // The commit succeeds, but the program dies before it sends anything.
            if fate.death == .afterCommit {
                fate.death = nil
                fate.isDead = true
                fate.diedAnswering = fate.isAnswering
            }
        }
        self.store = store
        var options = ClientOptions()
        options.chatsAtOnce = world.plan.chatsAtOnce
        options.historyPage = world.plan.historyPage
        core = ClientCore(
            store: store,
            host: self,
            environment: ClientEnvironment(
                wallMs: { [unowned self] in loop.nowMs + world.wallMs + offsetMs },
                nowMs: { [unowned self] in loop.nowMs },
                random: { [unowned self] in random.next() }
            ),
            options: options
        )
    }

    /// Starts the program again from its files.
    func start() {
        guard core == nil else { return }
        do { try boot() } catch { return world.violated("\(name) cannot open its store: \(error)") }
        _ = call { $0.start() }
    }

    /// Kills the program at its next commit.
    func dieAt(_ death: Death) {
        guard isAlive else { return }
        fate.death = death
    }

    /// Makes the next `commits` commits fail with a full disk.
    func fillDisk(for commits: Int) {
        guard isAlive else { return }
        fate.failures = commits
    }

    /// Kills the program.
    func kill() {
        guard let core else { return }
        fate.isDead = true
        link?.hangUp(afterUs: loop.random.from(0, to: 200_000))
        link = nil
        attempt += 1
        wakeTurn += 1
        photoRuns = []
        // Writes fail from here on; this call only releases the callers that wait for answers.
        core.stop()
        self.core = nil
        store?.close()
        store = nil
        loop.hash.add("killed \(name)")
        world.deviceDied(self)
    }

    /// Makes the network unreachable for `us` microseconds.
    func loseNetwork(forUs us: Int64, _ loss: Link.Loss = .atOnce) {
        isOffline = true
        link?.lose(loss)
        loop.after(us) { [weak self] in self?.isOffline = false }
    }

    /// Calls the core. One call stands for one block of work on the core's lane.
    func call<Value>(_ body: (ClientCore) -> Value) -> Value? {
        guard let core, !fate.isDead else { return nil }
        let value = body(core)
        if fate.isDead {
            if fate.diedAnswering { world.hit(.killedAtReply) }
            fate.diedAnswering = false
            kill()
            return nil
        }
        return value
    }

    /// Runs a user's request to the client in one transaction of the core.
    func wish<Value>(_ body: @escaping (ClientCore, StoreTransaction) throws -> Value) -> Value? {
        guard let core, !fate.isDead else { return nil }
        var value: Value?
        do {
            value = try core.attempt { tx in
                guard try tx.userID() != nil else { throw ClientError.signedOut }
                return try body(core, tx)
            }
        } catch {
            value = nil
        }
        if fate.isDead { kill() }
        return value
    }

    /// Changes the store without the core's knowledge.
    func rewrite<Value>(_ body: (StoreTransaction) throws -> Value) -> Value? {
        guard let store, !fate.isDead else { return nil }
        let value = try? store.write(body)
        if fate.isDead { kill() }
        return value
    }

    /// Reads the device's store.
    func read<Value>(_ body: (Reader) throws -> Value) -> Value? {
        guard let store else { return nil }
        do {
            return try store.read { try body(Reader($0)) }
        } catch {
            world.violated("\(name) cannot read: \(error)")
            return nil
        }
    }

    func nextText() -> String {
        lastText += 1
        return "\(name)#\(lastText)"
    }

    // MARK: - Calls from the core

    func connect(to server: ServerAddress, trusting trust: ServerTrust) {
        guard !fate.isDead else { return }
        disconnect()
        let turn = attempt
        loop.after(loop.random.from(500, to: 60_000)) { [weak self] in
            guard let self, attempt == turn, isAlive else { return }
            if isOffline || world.server == nil {
                // Either packets get lost, or the host refuses the connection.
                if loop.random.chance(300, in: 1000) { return }
                _ = call { $0.connectionClosed() }
            } else if let link = world.openLink(for: self) {
                self.link = link
                loop.hash.add("connected \(name)")
                _ = call { $0.connectionOpened() }
            }
        }
    }

    func disconnect() {
        attempt += 1
        link?.hangUp(afterUs: loop.random.from(0, to: world.plan.serverLagUs))
        link = nil
    }

    func send(_ bytes: [UInt8]) {
        guard !fate.isDead else { return }
        link?.send(bytes)
    }

    func wake(afterMs: Int64?) {
        wakeTurn += 1
        guard let afterMs, !fate.isDead else { return }
        let turn = wakeTurn
        loop.after(afterMs * 1000) { [weak self] in
            guard let self, wakeTurn == turn else { return }
            _ = call { $0.wake() }
        }
    }

    func publish(_ changes: ChangeSet) {
        loop.hash.add(name)
        for chat in changes.chats.sorted(by: { $0.rawValue < $1.rawValue }) {
            loop.hash.add(Int(chat.rawValue))
        }
        loop.hash.add(changes.queue ? 1 : 0)
        if changes.queue, let store, !fate.isDead {
            let rows = try? store.read {
                try String.fetchAll($0, sql: "SELECT id || state || attempts FROM task ORDER BY id")
            }
            for row in rows ?? [] { loop.hash.add(row) }
        }
    }

    func publish(_ state: ConnectionState) { loop.hash.add("\(name) \(state)") }

    func publish(_ event: ClientEvent) {
        guard !fate.isDead else { return }
        if case .storeFailed(let reason) = event {
            if reason.contains("\(DiskFull.self)") {
                world.hit(.diskFull)
            } else {
                world.violated("the store of \(name) failed: \(reason)")
            }
        }
        if case .signedOut(let reason) = event {
            world.violated("\(name) was signed out: \(reason)")
        }
    }

    // MARK: - Events from the network

    func received(_ bytes: UnsafeRawBufferPointer, on link: Link) {
        guard self.link === link else { return }
        fate.isAnswering = true
        _ = call { $0.connectionReceived(bytes) }
        fate.isAnswering = false
    }

    func lost(_ link: Link) {
        guard self.link === link else { return }
        self.link = nil
        _ = call { $0.connectionClosed() }
    }
}
