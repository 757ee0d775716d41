import Foundation
import TambourTesting
import Testing

/// Real programs on a bad network: each message is stored once and in order, and all devices end
/// with the same messages.
///
/// The short form sends some hundred messages, `TAMBOUR_SOAK=1` sends 10,000. `TAMBOUR_SEED`
/// repeats the byte at which each connection is cut, and the choice of the program that is killed
/// then. The machine's timing still decides to which message this byte belongs.
@Suite("Devices whose connections are cut and whose programs are killed", .serialized)
struct DevicesTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let isSoak = environment["TAMBOUR_SOAK"] == "1"
    private static let seed =
        environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000)

    @Test("send each message once and in order, and end identical")
    func exactlyOnce() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-devices-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        do {
            try await TambourdProcess.run { server in
                let world = try await DeviceWorld(
                    on: server,
                    directory: directory,
                    seed: Self.seed,
                    perDevice: Self.isSoak ? 2_500 : 60,
                    typicalBytes: Self.isSoak ? 20_000 : 8_000
                )
                defer {
                    world.stop()
                    print(world.summary)
                }
                try await world.play()
                try await world.verify()
            }
            try FileManager.default.removeItem(at: directory)
        } catch {
            Issue.record("TAMBOUR_SEED=\(Self.seed): \(error); it is all in \(directory.path)")
        }
    }
}
