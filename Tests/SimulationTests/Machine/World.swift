import Foundation
import GRDB
import Glibc
import TambourEvents
import TambourProtocol
import TambourStore
import TambourTesting

@testable import TambourClient
@testable import TambourMessenger
@testable import TambourServer

/// One run: a server, devices, and everything between them, in one thread and driven by one seed.
final class World {
    let plan: Plan
    let loop: EventLoop
    let directory: String
    /// The offset of Unix time from the machine's clock, in milliseconds.
    let wallMs: Int64 = 1_790_000_000_000
    private(set) var server: SimulatedServer?
    private(set) var devices: [Device] = []
    private(set) var links: [Link] = []
    private(set) var faults = FaultCounts()
    /// The violated properties. The run ends at the first violation.
    private(set) var violations: [String] = []
    var serverOffsetMs: Int64 = 0
    var serverWallMs: Int64 { loop.nowMs + wallMs + serverOffsetMs }
    /// The latest time that the server's clock showed before a fault set it back.
    var furthestWallMs: Int64 = 0
    var sends: [Sent] = []
    /// Chats that somebody cleared or deleted for everybody, so messages may be missing.
    var emptied: Set<ChatID> = []
    /// Chats that a user cleared only for themselves. No push announces the moved read mark.
    var cleared: Set<ChatID> = []
    /// The texts written into entities.
    var writings = Writings()
    var lastMeasured: Int64 = 0
    var photos = Photos()
    var commented: Set<CommentedPost> = []
    var backupAt: Int?
    /// Whether the backup has been restored.
    var wasRestored = false
    /// The number of entries at the start of `sends` that the restored backup may not contain.
    var forgotten = 0
    /// Actions to run when the server next receives a history request or a login.
    var atNextPage: [(Link, ChatID) -> Void] = []
    var atNextLogin: [(Link) -> Void] = []
    /// Actions to run after the server next receives a command with this opcode.
    var behindNext: [Opcode: [() -> Void]] = [:]
    private var lastLink = 0
    private var lostReplies: Set<String> = []
    private var pushedTexts: Set<String> = []

    /// A message that a user asked a device to send and that the device has stored.
    struct Sent {
        let device: Int
        let chat: ChatID
        let cid: Int64
        let task: OutgoingID
        let text: String
        var isCancelled = false
        var wasRetried = false
    }

    init(_ plan: Plan, name: String) throws {
        self.plan = plan
        loop = EventLoop(seed: plan.seed &* 0x2545_F491_4F6C_DD1D &+ 1)
        directory = try Templates.shared.makeDirectory(name)
        startServer()
        for place in plan.devices {
            let seed = loop.random.next()
            devices.append(
                try Device(world: self, user: place.user, index: place.index, seed: seed)
            )
        }
    }

    /// Ends everything and removes the files.
    func close() {
        for device in devices {
            device.isWanted = false
            device.kill()
        }
        stopServer()
        for link in links { link.closeSocket() }
        loop.clear()
        try? FileManager.default.removeItem(atPath: directory)
    }

    // MARK: - Server

    var limits: Limits {
        let overrides = Unhurried.limits.merging(plan.limits) { $1 }
        do { return try Limits(overrides: overrides) } catch { return .standard }
    }

    func startServer() {
        guard server == nil else { return }
        do {
            let made = try SimulatedServer(
                directory: directory + "/server",
                limits: limits,
                loop: loop
            ) { [unowned self] in wallMs + serverOffsetMs }
            made.life.worked = { [unowned self] in for link in links { link.drain() } }
            made.life.died = { [unowned self] death in
                hit(death == .beforeCommit ? .crashBeforeCommit : .crashAfterCommit)
                loop.after(0) { [unowned self] in crashServer() }
            }
            server = made
            loop.hash.add("server")
        } catch {
            violated("the server does not start: \(error)")
        }
    }

    /// Ends the server's process and schedules its restart.
    func crashServer() {
        guard server != nil else { return }
        stopServer()
        loop.after(loop.random.from(1000, to: 3_000_000)) { [weak self] in self?.startServer() }
    }

    func stopServer() {
        guard let server else { return }
        noteSlowReaders()
        server.crash()
        self.server = nil
        for link in links { link.serverDied() }
        loop.hash.add("crash")
    }

    func noteSlowReaders() {
        guard let closed = server?.server.metrics.slowReadersClosed.count else { return }
        for _ in 0..<closed { hit(.slowReader) }
    }

    /// Runs a command on the server, as if from another client of the user.
    func command(_ request: CommandRequest, by user: Int) {
        guard let server else { return }
        let messenger = server.server.messenger
        let requester = requester(user)
        messenger.engine.post(
            Command { try messenger.dispatcher.command(request, from: requester, in: $0) }
        )
    }

    func requester(_ user: Int) -> Requester {
        Requester(
            caller: Caller(
                userID: Templates.shared.user(user),
                sessionID: Templates.shared.otherSession(user),
                deviceID: DeviceID(1_000_000),
                connectionID: ConnectionID(UInt64.max),
                replyBudget: limits.maxReplyBytes
            ),
            origin: SessionOrigin(installation: "", client: "", info: "", address: ""),
            capabilities: [.lz4Large, .historyMore, .resync, .syncMore]
        )
    }

    // MARK: - Network

    /// Connects a device; returns nil when the server is down.
    func openLink(for device: Device) -> Link? {
        guard let server else { return nil }
        var ends: [Int32] = [-1, -1]
        let type =
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            | Int32(SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            violated("no sockets are left: \(errno)")
            return nil
        }
        if plan.limits["maxOutboundPushBytes"] != nil {
            // A small buffer lets the server notice a stalled reader soon.
            var size: Int32 = 4096
            setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(4))
        }
        lastLink += 1
        let latency = [200, 2000, 20_000, 150_000][loop.random.below(4)]
        let link = Link(
            number: lastLink,
            world: self,
            device: device,
            socket: ends[0],
            latencyUs: Int64(latency)
        )
        links.removeAll { $0.isOver }
        links.append(link)
        server.server.accept(ends[1], "10.0.0.\(device.user):\(lastLink)")
        return link
    }

    // MARK: - Findings

    func hit(_ fault: Fault) { faults.add(fault) }

    func violated(_ what: String) {
        if violations.count < 5 { violations.append(what) }
    }

    func deviceDied(_ device: Device) {
        guard device.isWanted else { return }
        loop.after(loop.random.from(1000, to: 2_000_000)) { [weak device] in device?.start() }
    }

    func loginAsked(on link: Link) {
        let rivals = links.filter {
            $0 !== link && $0.device === link.device && $0.isServerOpen && $0.traffic.isOpen(.login)
        }
        if !rivals.isEmpty { hit(.loginsRacing) }
        let waiting = atNextLogin
        atNextLogin = []
        for body in waiting { body(link) }
    }

    func commandAsked(_ opcode: Opcode) {
        for body in behindNext.removeValue(forKey: opcode) ?? [] {
            loop.after(loop.random.from(0, to: 1000), body)
        }
    }

    func pageAsked(_ chat: ChatID, on link: Link) {
        let waiting = atNextPage
        atNextPage = []
        for body in waiting { body(link, chat) }
    }

    func pageArrived(_ messages: [Message], on device: Device) {
        if messages.contains(where: { device.removed.contains($0.id) }) { hit(.olderPage) }
    }

    func pushed(_ push: NotifMessage, to device: Device) {
        if push.message.status == .removed { device.removed.insert(push.message.id) }
        let text = "\(push.message.text)"
        pushedTexts.insert(text)
        if lostReplies.remove(text) != nil { hit(.replyLostPushDelivered) }
        let isHeld = device.read { reader in
            try Int64.fetchOne(
                reader.store.db,
                sql: "SELECT 1 FROM message WHERE chat = ? AND id = ?",
                arguments: [push.chatID.rawValue, push.message.id.rawValue]
            )
        }
        if let isHeld, isHeld != nil, push.message.status == nil { hit(.duplicatePush) }
    }

    func replyLost(of text: String) {
        if pushedTexts.contains(text) {
            hit(.replyLostPushDelivered)
        } else {
            lostReplies.insert(text)
        }
    }
}
