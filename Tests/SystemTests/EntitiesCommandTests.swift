import Foundation
import TambourTesting
import Testing

/// `tambour entities` as a person or a script uses it.
@Suite("The command line of entities")
struct EntitiesCommandTests {
    private func token(on server: TambourdProcess) async throws -> String {
        let made = try ChildProcess(
            TambourdProcess.program(),
            [
                "admin", "users", "create", "--data", server.dataDirectory, "--count", "1",
                "--first-phone", "+79990000001",
            ]
        )
        var words: [String] = []
        for await line in made.lines { words = line.split(separator: " ").map(String.init) }
        try #require(await made.exitStatus() == 0, "\(made.errors)")
        return try #require(words.last)
    }

    @Test("ends when the server has heard of a deletion, and says when it has not")
    func deletion() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-entities-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let phone = TambourAccount(directory: directory, name: "phone")
        let laptop = TambourAccount(directory: directory, name: "laptop")
        try await TambourdProcess.run { server in
            let token = try await token(on: server)
            for device in [phone, laptop] {
                try await device.logIn(to: server.address, token: token)
            }
            var kept: [String] = []
            for name in ["Home", "Work"] {
                let added = try await phone.run(["entities", "add", "account", "name=\(name)"])
                try #require(added.status == 0, "\(added.errors)")
                kept += added.lines
            }
            #expect(try await phone.run(["entities", "rm", kept[0]]).status == 0)
            let seen = try await laptop.run(["entities", "list"])
            #expect(seen.lines.map { $0.hasSuffix("name=Work") } == [true])
        }
        // The server is down, so it cannot receive this deletion.
        let removed = try await phone.run(["entities", "rm", "l2", "--wait", "1"])
        #expect(removed.status == 2)
        #expect(removed.errors.contains("Some changes wait for the server"))
        #expect(try await phone.run(["entities", "list", "--wait", "0"]).lines.isEmpty)
    }
}
