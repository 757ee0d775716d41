import TambourProtocol
import TambourTesting

/// A second device of a user: it steps its registers, several at a time, until the server is gone.
///
/// `@unchecked Sendable`: used by one thread at a time, its own under load and the world's checks.
final class CrashPlayer: @unchecked Sendable {
    let place: CrashPlace
    let token: String
    let registers: [CrashRegister]

    /// How many commands of each kind were acknowledged.
    private(set) var acknowledged: [Opcode: Int] = [:]
    private(set) var hasEndedCleanly = false
    private(set) var failure: (any Error)?

    private var random: SeededGenerator
    private static let window = 6

    init(_ place: CrashPlace, token: String, seed: UInt64) {
        self.place = place
        self.token = token
        registers = CrashRegister.all(place)
        random = SeededGenerator(seed: seed &+ 1 ^ UInt64(bitPattern: place.me.rawValue))
    }

    func connect(_ address: String) throws -> WireClient {
        let client = try WireClient(address: address)
        // The device must stay the same: operations on objects are numbered per device.
        let device = "player-\(CrashPlace.phone(place.index))"
        _ = try client.call(SessionInitRequest(deviceID: device))
        client.token = token
        _ = try client.call(LoginRequest(token: token, interactive: true))
        return client
    }

    /// Steps registers until the server is gone.
    func play(at address: String) {
        failure = nil
        hasEndedCleanly = false
        do {
            let client = try connect(address)
            defer { client.close() }
            try play(on: client)
            hasEndedCleanly = client.hasEndedCleanly
        } catch WireClient.Failure.closed {
            // The server went away while this client logged in.
        } catch {
            failure = error
        }
    }

    private func play(on client: WireClient) throws {
        var waiting: [(register: CrashRegister, command: CrashCommand, number: UInt16)] = []
        func finishOldest() throws {
            let (register, command, number) = waiting.removeFirst()
            do {
                try command.finish(client, number)
            } catch WireClient.Failure.refused(let error) {
                throw WireClient.Failure.unexpected("\(register.attemptedMark) \(error)")
            }
            register.confirm()
            acknowledged[command.opcode, default: 0] += 1
        }
        do {
            while true {
                while waiting.count < Self.window {
                    let idle = registers.filter { !$0.isInFlight }
                    guard let register = idle.randomElement(using: &random) else { break }
                    let (command, number) = try register.begin(on: client)
                    waiting.append((register, command, number))
                }
                try finishOldest()
                _ = client.takePushesAtHand()
            }
        } catch WireClient.Failure.closed {
            // Replies that came before the end count.
            try client.waitForClose()
            while !waiting.isEmpty {
                do { try finishOldest() } catch WireClient.Failure.closed {}
            }
        }
    }
}
