import Foundation
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// A server, and clients with separate files.
final class World {
    let directory: String
    private(set) var server: TestServer
    private var clients: [Client] = []
    private let overrides: [String: Int]

    init(_ overrides: [String: Int] = [:]) throws {
        self.overrides = overrides
        directory = try TestServer.temporaryDirectory()
        server = try TestServer(overrides: overrides, dataDirectory: directory + "/server")
    }

    /// Stops the server and starts it again with its stored data.
    func restartServer(meanwhile: () async throws -> Void = {}) async throws {
        server.stop()
        try await meanwhile()
        server = try TestServer(overrides: overrides, dataDirectory: directory + "/server")
    }

    /// Signs up Alice and Bob, each on one device, and returns the id of their empty dialog.
    func aliceAndBob() throws -> (alice: WireClient, bob: WireClient, chat: ChatID) {
        let alice = try server.signUp("Alice")
        let bob = try server.signUp("Bob")
        return (alice, bob, alice.dialog(with: bob))
    }

    /// Returns a client as `client(of:)` does, but connected and up to date.
    func onlineClient(
        of other: WireClient,
        device: String = "tambour",
        _ change: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> Client {
        let client = try await client(of: other, device: device, change)
        try await client.startAndSync()
        return client
    }

    /// Returns a client that is signed in as the user of `other`, on another device.
    func client(
        of other: WireClient,
        device: String = "tambour",
        tapsFrames: Bool = false,
        _ change: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> Client {
        let session = try server.signIn(phoneOf: other, device: device)
        session.close()
        let client = try open(device, tapsFrames: tapsFrames, change)
        try await client.signIn(token: session.token)
        return client
    }

    /// Opens the client of a file, as a program does when it starts.
    func open(
        _ device: String,
        tapsFrames: Bool = false,
        _ change: (inout ClientOptions) -> Void = { _ in }
    ) throws -> Client {
        var options = ClientOptions()
        options.tapsFrames = tapsFrames
        options.link.backoffBaseMs = 20
        options.link.backoffCapMs = 200
        change(&options)
        let client = try Client(
            store: "\(directory)/\(device).db",
            server: server.address,
            options: options
        )
        clients.append(client)
        return client
    }

    func close() async {
        for client in clients { await client.stop() }
        server.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }
}

/// Runs `body` in a new world.
func withWorld(
    _ overrides: [String: Int] = [:],
    _ body: (World) async throws -> Void
) async throws {
    let world = try World(overrides)
    do {
        try await body(world)
    } catch {
        await world.close()
        throw error
    }
    await world.close()
}

extension Client {
    /// Waits until a condition holds; checks it after each change.
    ///
    /// - Throws: An error when the condition does not hold within two minutes.
    func until(
        _ what: String,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ holds: @escaping @Sendable (Client) async throws -> Bool
    ) async throws {
        let changes = changes()
        let states = states()
        let held = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                if try await holds(self) { return true }
                for await _ in changes where try await holds(self) { return true }
                return false
            }
            group.addTask {
                for await _ in states where try await holds(self) { return true }
                return false
            }
            group.addTask {
                // This deadline delays no test whose condition becomes true.
                try await Task.sleep(for: .seconds(120))
                return false
            }
            let first = try await group.next() ?? false
            group.cancelAll()
            return first
        }
        try #require(held, "never came true: \(what)", sourceLocation: sourceLocation)
    }

    /// Connects, and waits until the client is up to date.
    func startAndSync() async throws {
        start()
        try await until("online") { $0.state == .online }
    }

    /// Returns the texts of the held messages of a chat, oldest first; `…` stands for a gap.
    func texts(of chat: ChatID, count: Int = 100) throws -> [String] {
        let page = try history(of: chat, .newest, count: count)
        var texts = page.isGapBefore ? ["…"] : []
        for row in page.rows {
            texts.append(row.text)
            if row.isGapAfter { texts.append("…") }
        }
        return texts
    }
}
