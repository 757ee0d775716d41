import Foundation
import TambourProtocol
import TambourTesting

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

/// A sequence of acts. Three people act on four devices. The server runs in this process.
///
/// The seed determines all choices in the sequence. The devices run on threads, so their messages
/// arrive in a different order in each run.
final class ScreenPlay {
    struct Person {
        let name: String
        var phone: String
    }

    /// An error: two screens that must show the same differ.
    struct Difference: Error, CustomStringConvertible {
        let description: String
    }

    var random: SeededGenerator
    var people: [Person] = []
    /// The invitation links that a screen has shown.
    var links: [String] = []
    private(set) var server: TestServer?
    private(set) var address = PlayDevice.nowhere
    /// The acts that the play has played so far, newest last.
    private(set) var story: [String] = []
    /// How often the play has played each act.
    private(set) var played: [String: Int] = [:]
    /// The keys in the borders of the panels that the screens have shown.
    private(set) var panelTriggers: Set<String> = []
    private(set) var devices: [PlayDevice] = []
    private let directory: String
    private let overrides: [String: Int]
    /// The login token for the device that is added at the end.
    private var freshToken = ""
    private var lastNumber = 0
    private var lastPhone: Int64
    /// The number of acts before the play starts the server again.
    private var stepsUntilServer = 0

    private static let names = ["Alice", "Bob", "Carol"]
    /// The size of the screens when they are compared. It has rows for all chats, and for all
    /// messages that the acts send to one chat.
    private static let comparedSize = Size(columns: 110, rows: 140)

    var isServerDown: Bool { server == nil }

    /// The devices of the account under test.
    private var own: [PlayDevice] { devices.filter { $0.owner == 0 } }

    init(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        // Put the stores in memory if possible, so that they need not wait for a disk.
        let base = FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
        directory = "\(base)/tambour-screens-\(getpid())-\(seed)-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true
        )
        // If a chat has more members than this, the server handles it in another way.
        overrides = random.chance(30) ? ["fanOutMembers": 2] : [:]
        lastPhone = 79_995_000_000
        self.random = random
        do {
            try await setUp()
        } catch {
            await remove()
            throw error
        }
    }

    /// Creates the accounts, some chats and the devices.
    private func setUp() async throws {
        let server = try startServer()
        let wires = try Self.names.map { try server.signUp($0) }
        let (alice, bob, carol) = (wires[0], wires[1], wires[2])
        for (wire, name) in zip(wires, Self.names) {
            let info = try wire.call(ContactInfoRequest(contactIDs: [wire.userID]))
            people.append(Person(name: name, phone: "+\(info.contacts.first?.phone ?? 0)"))
        }
        try bob.send("good morning", to: alice.dialog(with: bob), cid: 1)
        try carol.send("good evening", to: alice.dialog(with: carol), cid: 2)
        let friends = try alice.createGroup("Friends", with: [bob, carol], cid: 3)
        let band = try bob.createGroup("Band", with: [alice], cid: 4)
        let news = try bob.createGroup("News", with: [alice, carol], type: "CHANNEL", cid: 5)
        for number in 0..<3 as Range<Int64> {
            try carol.send("before \(number)", to: friends, cid: 10 + number)
            try bob.send("rehearsal \(number)", to: band, cid: 20 + number)
        }
        try bob.send("news https://example.org", to: news, cid: 30)
        let second = try server.signIn(phoneOf: alice, device: "second")
        let fresh = try server.signIn(phoneOf: alice, device: "fresh")
        for wire in wires + [second, fresh] { wire.close() }
        freshToken = fresh.token
        let seats = [
            ("alice1", 0, alice), ("alice2", 0, second), ("bob", 1, bob), ("carol", 2, carol),
        ]
        for (name, owner, wire) in seats {
            devices.append(try await device(name, owner: owner, token: wire.token))
        }
    }

    private func device(_ name: String, owner: Int, token: String) async throws -> PlayDevice {
        var options = ClientOptions()
        options.chatsAtOnce = random.pick([2, 5, 40])
        options.historyPage = random.pick([3, 10, 50])
        options.link.backoffBaseMs = 2
        options.link.backoffCapMs = 50
        options.link.impatientPauseMs = 2
        return try await PlayDevice(
            name,
            owner: owner,
            path: "\(directory)/\(name)",
            server: address,
            token: token,
            options: options
        )
    }

    @discardableResult
    private func startServer() throws -> TestServer {
        let server = try TestServer(
            overrides: overrides,
            dataDirectory: "\(directory)/server",
            logs: false
        )
        self.server = server
        address = server.address
        return server
    }

    /// Ends all clients and the server, and removes their files.
    func remove() async {
        for device in devices { await device.close() }
        devices = []
        server?.stop()
        server = nil
        try? FileManager.default.removeItem(atPath: directory)
    }

    // MARK: - What acts need

    func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    func nextPhone() -> Int64 {
        lastPhone += 1
        return lastPhone
    }

    func note(_ panel: Panel) { panelTriggers.formUnion(panel.triggers) }

    func restart(_ device: PlayDevice, isKilled: Bool) async throws {
        try await device.restart(isKilled: isKilled, server: address)
    }

    /// Stops the server. A few acts later, the play starts it again.
    func loseServer() async throws {
        guard let server else { return }
        self.server = nil
        server.stop()
        stepsUntilServer = random.below(4)
    }

    private func findServer() async throws {
        guard server == nil else { return }
        try startServer()
        for device in devices where !device.isOffline { try await device.connect(to: address) }
    }

    // MARK: - Playing

    /// Plays `steps` acts. Then compares the screens of the account under test.
    func run(steps: Int) async throws {
        var deck: [Act] = []
        for _ in 0..<steps {
            if server == nil {
                if stepsUntilServer == 0 { try await findServer() }
                stepsUntilServer -= 1
            }
            for device in devices where device.isOffline && random.chance(20) {
                try await device.goOnline(at: address)
            }
            if deck.isEmpty { deck = Act.all.shuffled(using: &random) }
            let act = deck.removeLast()
            let isOwn = random.chance(60)
            let device = random.pick(isOwn ? own : devices)
            story.append("\(device.name): \(act.name)")
            played[act.name, default: 0] += 1
            try await act.play(Hand(play: self, device: device))
            // Usually, the next act begins before the effects of this act have arrived on other
            // devices. Sometimes, it begins after they have arrived.
            if random.chance(25), server != nil { try await rest(devices.filter { !$0.isOffline }) }
        }
        try await compare()
    }

    /// Waits until no work is in progress on the devices.
    private func rest(_ devices: [PlayDevice]) async throws {
        for _ in 0..<100 {
            var isQuiet = true
            for device in devices {
                let wasResting = try await device.rest()
                isQuiet = isQuiet && wasResting
            }
            for device in devices { await device.waitForScreen() }
            if isQuiet { return }
        }
        throw Difference(description: "the devices never rest")
    }

    // MARK: - Comparing

    /// Ends all simulated faults. Then compares the screens of the account with each other and with
    /// the screen of a fresh device.
    private func compare() async throws {
        story.append("compare")
        try await findServer()
        for device in devices {
            if device.isOffline { try await device.goOnline(at: address) }
            Hand(play: self, device: device).endEdit()
            device.passTime()
        }
        try await rest(devices)
        for device in own { try await discardRefused(device) }
        try await rest(devices)
        // Check this before the screens are resized, because a new size draws everything again.
        try requireShown()
        let fresh = try await device("alice3", owner: 0, token: freshToken)
        devices.append(fresh)
        for device in own { await prepare(device) }
        try await rest(own)
        for device in own where device !== fresh { try await compareAsLeft(device, with: fresh) }
        // An open chat looks different in the list, so the same chat is opened everywhere.
        try await openWithoutRule(0, on: own)
        try compare(own, at: "the first chat")
        try await readEverything(on: own[0])
        let titles = try keptChats(of: own[0]).map(\.title)
        for (place, title) in titles.enumerated() {
            try await openWithoutRule(place, on: own)
            try compare(own, at: title)
        }
        try requireShown()
    }

    /// Throws an error if a screen does not show the contents of its store.
    private func requireShown() throws {
        guard let late = own.first(where: { $0.lag != nil }) else { return }
        throw Difference(description: "\(late.name): \(late.lag ?? "")")
    }

    /// Discards the refused actions of a device. No other device shows them.
    private func discardRefused(_ device: PlayDevice) async throws {
        let hand = Hand(play: self, device: device)
        hand.goToLine()
        device.press(.alt("q"))
        guard try await hand.waitForPanel({ $0.name == "Queue" }) else { return }
        for _ in 0..<200 where device.look({ $0.panel?.items.isEmpty == false }) {
            device.type("x")
            await device.waitForWishes()
        }
        device.press(KeyPress(.escape))
    }

    /// Brings a screen into the state in which the play compares it.
    private func prepare(_ device: PlayDevice) async {
        let hand = Hand(play: self, device: device)
        // A refused command stays in the input line, but is not a draft.
        if device.look({ $0.open == nil || $0.input.text.hasPrefix("/") }) { hand.clearLine() }
        device.tell([.focusGained])
        hand.endEdit()
        // An answer is not a draft as long as it has no text.
        if device.look({ $0.intent != .new && $0.input.isEmpty }) {
            device.press(KeyPress(.escape))
            hand.goToLine()
        }
        device.passTime()
        await device.waitForWishes()
        device.type("/theme dark\n")
        device.resize(to: Self.comparedSize)
    }

    /// Opens each chat on one device, so that its messages become read.
    private func readEverything(on device: PlayDevice) async throws {
        for place in try keptChats(of: device).indices {
            try open(place, on: device)
            try await rest([device])
        }
        try await rest(own)
    }

    /// Compares the chat that is open on a device with the same chat on a fresh device. Does not
    /// open the chat again on the first device, because this would update an outdated screen.
    private func compareAsLeft(_ device: PlayDevice, with fresh: PlayDevice) async throws {
        device.press(KeyPress(.end, .alt))
        // The rule above unread messages differs between devices.
        guard device.look(\.newAfterMs) == nil,
            let place = try keptChats(of: device).firstIndex(where: \.isOpen)
        else { return }
        try await openWithoutRule(place, on: [fresh])
        try compare([device, fresh], at: "the chat that was open")
    }

    private func compare(_ devices: [PlayDevice], at place: String) throws {
        let first = try parse(devices[0])
        for device in devices.dropFirst() {
            guard let difference = first.difference(to: try parse(device)) else { continue }
            let lags = devices.compactMap { device in device.lag.map { "\(device.name): \($0)" } }
            let names = "\(devices[0].name) and \(device.name), at \(place)"
            let lines = ["\(names): \(difference)"] + lags
            throw Difference(description: lines.joined(separator: "\n  "))
        }
    }

    private func parse(_ device: PlayDevice) throws -> ParsedScreen {
        guard let surface = device.surface else {
            throw Difference(description: "\(device.name) shows nothing")
        }
        return ParsedScreen(surface)
    }

    /// Returns the chats that a screen shows, without lost groups.
    private func keptChats(of device: PlayDevice) throws -> [ParsedScreen.Chat] {
        try parse(device).chats.filter { !$0.isGone }
    }

    /// Opens a chat on devices. If a device shows a rule above unread messages, opens the chat
    /// there a second time. The rule and the header below it differ between devices.
    private func openWithoutRule(_ place: Int, on devices: [PlayDevice]) async throws {
        for device in devices { try open(place, on: device) }
        try await rest(own)
        let readers = devices.filter { $0.look(\.newAfterMs) != nil }
        for device in readers { try open(place, on: device) }
        if !readers.isEmpty { try await rest(own) }
    }

    /// Opens a chat with keys, at its newest message.
    ///
    /// - Parameter place: The position of the chat in the list. Lost groups do not count.
    private func open(_ place: Int, on device: PlayDevice) throws {
        let chats = try parse(device).chats
        let kept = chats.indices.filter { !chats[$0].isGone }
        guard kept.indices.contains(place) else { return }
        let wanted = kept[place]
        var now = chats.firstIndex(where: \.isOpen)
        if now == nil {
            // If no chat is open, the key opens the first chat.
            device.press(KeyPress(.down, .alt))
            now = 0
        }
        let steps = wanted - (now ?? 0)
        if steps == 0, device.look(\.newAfterMs) != nil, chats.count > 1 {
            // The rule above unread messages stays as long as the chat is open. So open another
            // chat, and then this chat again.
            let isLast = wanted == chats.count - 1
            device.press(KeyPress(isLast ? .up : .down, .alt), KeyPress(isLast ? .down : .up, .alt))
        }
        for _ in 0..<abs(steps) { device.press(KeyPress(steps > 0 ? .down : .up, .alt)) }
        device.press(KeyPress(.end, .alt))
        // If the chat contains an unfinished edit, opening the chat shows this edit again. So end
        // it.
        Hand(play: self, device: device).endEdit()
    }
}
