import Foundation
import GRDB
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting

@testable import TambourClient
@testable import TambourGateway
@testable import TambourMessenger
@testable import TambourServer

/// Faults of devices, network and server, and actions of other clients of the same users.
extension World {
    private static let hourMs: Int64 = 3_600_000
    private static let dayMs: Int64 = 24 * hourMs

    func fault(_ move: Move, _ device: Device) {
        switch move.kind {
        case .cut: device.link?.lose(loss(move))
        case .cutQuietly:
            device.link?.lose(
                Link.Loss(
                    serverAfterUs: move.b % 2 == 0 ? nil : 200_000,
                    deviceAfterUs: move.b % 2 == 0 ? 200_000 : nil
                )
            )
        case .stall: device.link?.stall(forUs: Int64(1 + move.b % 90) * 1_000_000)
        case .slow: device.link?.rate = 1 + move.b % 4
        case .offline:
            let seconds = Int64(1 + move.b % (move.c % 4 == 0 ? 600 : 20))
            device.loseNetwork(forUs: seconds * 1_000_000, loss(move))
        case .networkChanged: _ = device.call { $0.networkChanged() }
        case .kill: device.kill()
        case .killAtCommit: device.dieAt(.beforeCommit)
        case .killAfterCommit: device.dieAt(.afterCommit)
        case .diskFull: device.fillDisk(for: 1 + move.b % 3)
        case .crash: crashServer()
        case .crashAtCommit: server?.life.death = .beforeCommit
        case .crashAfterCommit: server?.life.death = .afterCommit
        case .wallBack:
            furthestWallMs = max(furthestWallMs, serverWallMs)
            serverOffsetMs -= Self.hourMs
            // Discard the backup: the server has issued sync marks that are ahead of its clock now.
            // The backup does not record how far ahead they are.
            backupAt = nil
            hit(.wallBack)
        case .wallForward:
            // Set the clock ahead only if it is not far ahead already.
            guard serverOffsetMs < Self.dayMs / 2 else { return }
            serverOffsetMs += Self.dayMs
            hit(.wallForward)
        case .deviceClock:
            device.offsetMs = [365 * Self.dayMs, -Self.hourMs, 0][move.b % 3]
            if device.offsetMs > 0 { hit(.wrongClock) }
        case .backup: backUp()
        case .restore: restore()
        case .awayForMonths:
            for link in links { link.lose(.atOnce) }
            loop.run(forMs: 1000)
            loop.leap(byMs: 91 * Self.dayMs)
            hit(.away)
        case .otherCodec: changeCodec(on: device)
        case .raceLogins: raceLogins(on: device)
        case .deleteUnderPage, .clearUnderPage: emptyUnderPage(move, device)
        case .crossThreshold: crossThreshold(move, device)
        case .flipDuringLogin: flipDuringLogin(move, device)
        case .readdWhileAway: readd(move, device)
        case .manyChats: makeManyChats(move, device)
        case .newsDuringLogin: tellDuringLogin(device)
        case .deleteDuringPage: deleteDuringPage(move, device)
        case .clear, .clearForAll, .deleteChat: empty(move, device)
        default: break
        }
    }

    private func loss(_ move: Move) -> Link.Loss {
        Link.Loss(
            serverAfterUs: Int64(move.b % 3000) * 1000,
            deviceAfterUs: Int64(move.c % 3000) * 1000
        )
    }

    /// Makes the device lose its connection and dial again. The server may notice the loss much
    /// later.
    private func redial(_ device: Device, serverAfterUs: Int64) {
        device.link?.lose(Link.Loss(serverAfterUs: serverAfterUs, deviceAfterUs: 0))
        loop.after(20_000) { [weak device] in _ = device?.call { $0.networkChanged() } }
    }

    // MARK: - Backups

    private var files: [String] { ["tambour.db", "tambour.db-wal"] }

    private func backUp() {
        guard server?.life.isDead == false else { return }
        for file in files {
            try? FileManager.default.removeItem(atPath: "\(directory)/backup-\(file)")
            try? FileManager.default.copyItem(
                atPath: "\(directory)/server/\(file)",
                toPath: "\(directory)/backup-\(file)"
            )
        }
        backupAt = sends.count
        wasRestored = false
    }

    private func restore() {
        guard backupAt != nil else { return }
        // Only the wall clock distinguishes two servers restored from one backup, so the clock must
        // have passed its earlier maximum.
        if wasRestored, serverWallMs < furthestWallMs + Int64(limits.commitLeaseMs) { return }
        wasRestored = true
        stopServer()
        for file in files + ["tambour.db-shm"] {
            try? FileManager.default.removeItem(atPath: "\(directory)/server/\(file)")
        }
        for file in files {
            try? FileManager.default.copyItem(
                atPath: "\(directory)/backup-\(file)",
                toPath: "\(directory)/server/\(file)"
            )
        }
        do {
            let connection = try SQLiteConnection(
                path: "\(directory)/server/tambour.db",
                mode: .readWrite
            )
            let store = try StoreConnection(connection, limits: limits)
            try store.noteRestore(at: serverWallMs)
            try connection.checkpoint()
        } catch {
            return violated("a backup cannot be restored: \(error)")
        }
        forgotten = sends.count
        writings.forget()
        hit(.restored)
        loop.after(loop.random.from(1000, to: 3_000_000)) { [weak self] in self?.startServer() }
    }

    // MARK: - Devices

    /// Makes the device's tasks unreadable for a while, as if a later version had stored them.
    private func changeCodec(on device: Device) {
        let changed = device.rewrite { tx in
            try tx.execute(
                """
                UPDATE task SET codecVersion = 99
                WHERE state IN ('ready', 'waiting', 'blocked', 'running')
                """
            )
            return tx.db.changesCount
        }
        guard let changed, changed > 0 else { return }
        device.kill()
        hit(.codecChanged)
        for place in sends.indices where devices[sends[place].device] === device {
            // A parked task is sent after tasks that were queued later.
            sends[place].wasRetried = true
        }
        loop.after(8_000_000) { [weak self, weak device] in
            if let device { self?.putCodecBack(on: device) }
        }
    }

    private func putCodecBack(on device: Device) {
        guard device.isWanted else { return }
        let isRead: Void? = device.rewrite { tx in
            try tx.execute("UPDATE task SET codecVersion = 1 WHERE codecVersion = 99")
        }
        if isRead != nil { return device.kill() }
        // The device was dead already, or this write killed it.
        loop.after(1_000_000) { [weak self, weak device] in
            if let device { self?.putCodecBack(on: device) }
        }
    }

    private func raceLogins(on device: Device) {
        atNextLogin.append { [weak self] link in
            guard let self, let device = link.device, device.link === link else { return }
            loop.after(0) { [weak self] in self?.redial(device, serverAfterUs: 10_000_000) }
        }
        redial(device, serverAfterUs: 10_000_000)
    }

    // MARK: - Other clients of the same users

    private func empty(_ move: Move, _ device: Device) {
        let chat = chat(on: device, move.b)
        switch move.kind {
        case .clear: clear(chat, by: device.user)
        case .clearForAll:
            emptied.insert(chat)
            command(.chatClear(ChatClearRequest(chatID: chat, forAll: true)), by: device.user)
        default:
            guard move.c % 3 == 0 else { return }
            emptied.insert(chat)
            command(.chatDelete(ChatDeleteRequest(chatID: chat, forAll: true)), by: device.user)
        }
    }

    private func clear(_ chat: ChatID, by user: Int) {
        cleared.insert(chat)
        command(.chatClear(ChatClearRequest(chatID: chat)), by: user)
    }

    private func emptyUnderPage(_ move: Move, _ device: Device) {
        let isClear = move.kind == .clearUnderPage
        atNextPage.append { [weak self] link, chat in
            guard let self, let user = link.device?.user else { return }
            emptied.insert(chat)
            if isClear {
                clear(chat, by: user)
                hit(.clearedWhileScrolling)
            } else {
                for user in 0...(plan.devices.map(\.user).max() ?? 0) {
                    let request = ChatDeleteRequest(chatID: chat, forAll: true)
                    command(.chatDelete(request), by: user)
                }
                hit(.chatGoneUnderPage)
            }
        }
        let chat = chat(on: device, move.b)
        // A device requests no history that it holds completely. So make it distrust its histories
        // first, as after a restored backup.
        _ = device.wish { core, tx in try core.distrustHistories(tx) }
        lookAtNewest(chat, on: device)
    }

    func owner(of chat: ChatID, on device: Device) -> (user: Int, members: [UserID])? {
        let data = device.read { reader in
            try Data.fetchOne(
                reader.store.db,
                sql: "SELECT data FROM chat WHERE id = ?",
                arguments: [chat.rawValue]
            )
        }
        guard let data = data ?? nil, let chat = Chat(stored: data) else { return nil }
        let owner = (0..<Templates.users).first { Templates.shared.user($0) == chat.owner }
        return owner.map { ($0, chat.participants.pairs.map(\.0)) }
    }

    private func crossThreshold(_ move: Move, _ device: Device) {
        let groups = groups(on: device)
        guard !groups.isEmpty else { return }
        let chat = groups[move.b % groups.count]
        guard let (owner, members) = owner(of: chat, on: device) else { return }
        let others = (0..<Templates.users).map { Templates.shared.user($0) }
            .filter { !members.contains($0) }
        let threshold = limits.fanOutMembers
        atNextLogin.append { [weak self] _ in
            guard let self else { return }
            if members.count <= threshold, members.count + others.count > threshold {
                let add = ChatMembersUpdateRequest(
                    chatID: chat,
                    userIDs: others,
                    operation: .add,
                    showHistory: true
                )
                command(.chatMembersUpdate(add), by: owner)
                hit(.thresholdCrossed)
            } else if members.count > threshold, threshold <= 3 {
                let gone = members.filter { $0 != Templates.shared.user(owner) }
                    .suffix(members.count - threshold + 1)
                let remove = ChatMembersUpdateRequest(
                    chatID: chat,
                    userIDs: Array(gone),
                    operation: .remove,
                    showHistory: true
                )
                command(.chatMembersUpdate(remove), by: owner)
                hit(.thresholdCrossed)
            }
        }
        redial(devices[move.c % devices.count], serverAfterUs: 1000)
    }

    /// Stores messages while a login is in flight.
    private func tellDuringLogin(_ device: Device) {
        atNextLogin.append { [weak self] link in
            guard let self, let device = link.device else { return }
            let user = device.user
            unsettle()
            let other = (user + 1) % ((plan.devices.map(\.user).max() ?? 0) + 1)
            let chat = ChatID.dialog(Templates.shared.user(user), Templates.shared.user(other))
            for number in 0..<4 {
                loop.after(Int64(number) * 300) { [weak self] in
                    self?.say("news \(number)", in: chat, by: other)
                }
            }
            if plan.hasMoreMoves { changeSilently(chat, by: other, on: device) }
        }
        redial(device, serverAfterUs: 1000)
    }

    /// Makes changes that no later message repeats: a moved read mark and a new title.
    private func changeSilently(_ dialog: ChatID, by user: Int, on device: Device) {
        let mark = (server?.server.messenger.environment.wallMs() ?? 0) + 1000
        later {
            $0.command(
                .chatMark(ChatMarkRequest(type: .readMessage, chatID: dialog, mark: mark)),
                by: user
            )
        }
        for group in groups(on: device) {
            guard let (owner, _) = owner(of: group, on: device) else { continue }
            let title = Text("Renamed \(loop.random.below(1000))")
            later {
                $0.command(.chatUpdate(ChatUpdateRequest(chatID: group, theme: title)), by: owner)
            }
        }
    }

    /// Runs a change at a random time within the duration of a login.
    private func later(_ change: @escaping (World) -> Void) {
        loop.after(loop.random.from(0, to: 2500)) { [weak self] in self.map(change) }
    }

    /// Deletes a message while a history page that contains it is being read.
    private func deleteDuringPage(_ move: Move, _ device: Device) {
        let chat = chat(on: device, move.b)
        guard let row = row(on: device, in: chat, 0), let id = row.message else { return }
        atNextPage.append { [weak self] _, asked in
            guard let self, asked == chat else { return }
            unsettle()
            for user in Set(plan.devices.map(\.user)).sorted() {
                let request = MsgDeleteRequest(chatID: chat, messageIDs: [id], forMe: false)
                command(.msgDelete(request), by: user)
            }
        }
        _ = device.wish { core, tx in try core.distrustHistories(tx) }
        lookAtNewest(chat, on: device)
    }

    /// Makes preemption very likely for a short time.
    private func unsettle() {
        guard let life = server?.life else { return }
        life.restlessness = 900
        loop.after(30_000) { [weak life] in life?.restlessness = 120 }
    }

    private func say(_ text: String, in chat: ChatID, by user: Int) {
        let cid = -Int64(loop.random.next() >> 2) - 1
        let message = NewMessage(cid: cid, text: Text(text))
        command(.msgSend(MsgSendRequest(chatID: chat, message: message)), by: user)
    }

    private func flipDuringLogin(_ move: Move, _ device: Device) {
        atNextLogin.append { [weak self] link in
            guard let self, let user = link.device?.user, let device = link.device else { return }
            let chat = chat(on: device, move.b)
            let names: [(Text, AnyValue)] = [("dontDisturbUntil", AnyValue(Int64(-(move.c % 2))))]
            let settings = SettingsChange(chats: IDMap([(chat, NameMap(names))]))
            command(.config(ConfigRequest(settings: settings)), by: user)
            if let server {
                server.server.gateway.router.post(.features(FeatureReload(.none, lanes: 2)))
            }
            hit(.configFlip)
        }
        redial(device, serverAfterUs: 1000)
    }

    private func readd(_ move: Move, _ device: Device) {
        let groups = groups(on: device)
        guard !groups.isEmpty, !device.isOffline else { return }
        let chat = groups[move.b % groups.count]
        guard let (owner, members) = owner(of: chat, on: device), owner != device.user,
            members.contains(device.me)
        else { return }
        for other in devices where other.user == device.user {
            other.isOffline = true
            other.link?.lose(Link.Loss(serverAfterUs: 1000, deviceAfterUs: 1000))
            loop.after(12_000_000) { [weak other] in other?.isOffline = false }
        }
        func later(_ ms: Int64, _ request: CommandRequest) {
            loop.after(ms * 1000) { [weak self] in self?.command(request, by: owner) }
        }
        func update(_ operation: MemberOperation) -> CommandRequest {
            .chatMembersUpdate(
                ChatMembersUpdateRequest(
                    chatID: chat,
                    userIDs: [device.me],
                    operation: operation,
                    showHistory: move.c % 2 == 0
                )
            )
        }
        func said(_ text: String) -> CommandRequest {
            .msgSend(
                MsgSendRequest(
                    chatID: chat,
                    message: NewMessage(cid: -Int64(move.c) - Int64(text.count), text: Text(text))
                )
            )
        }
        later(3000, update(.remove))
        later(4000, said("while away"))
        later(5000, update(.add))
        later(6000, said("after that one"))
        hit(.readded)
    }

    /// Changes many chats while a device is away. Its next connection is slow and breaks.
    private func makeManyChats(_ move: Move, _ device: Device) {
        device.isOffline = true
        device.link?.lose(Link.Loss(serverAfterUs: 1000, deviceAfterUs: 1000))
        let other = (device.user + 1) % ((plan.devices.map(\.user).max() ?? 0) + 1)
        for number in 0..<14 {
            let event = NewAttach(
                type: .control,
                title: Text("Many \(number)"),
                event: "new",
                chatType: "CHAT",
                userIDs: [device.me]
            )
            let cid = -Int64(move.b) * 100 - Int64(number) - 1
            let request = MsgSendRequest(message: NewMessage(cid: cid, attaches: [event]))
            command(.msgSend(request), by: other)
        }
        atNextLogin.append { [weak self] link in
            link.rate = 2
            self?.loop.after(Int64(20 + move.c % 800) * 1000) { [weak link] in
                link?.lose(Link.Loss(serverAfterUs: 300_000, deviceAfterUs: 1000))
            }
        }
        loop.after(2_000_000) { [weak device] in
            device?.isOffline = false
            _ = device?.call { $0.networkChanged() }
        }
    }
}
