import Foundation
import TambourTesting
import Testing

/// `tambour keys` as the author of a preferences file uses it.
@Suite("The command line of keys")
struct KeysCommandTests {
    private func withAccount(
        _ preferences: String,
        _ body: (TambourAccount, String) async throws -> Void
    ) async throws {
        let directory = URL(filePath: try TestServer.temporaryDirectory())
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: "chosen.json")
        try preferences.write(to: file, atomically: true, encoding: .utf8)
        let account = TambourAccount(directory: directory, name: "alice")
        try await body(account, file.path)
    }

    @Test("what it prints as JSON is a file that chooses the same")
    func printed() async throws {
        let chosen = #"{"keys": {"contacts": "F5", "next-unread": "Ctrl-n F7"}, "theme": "light"}"#
        try await withAccount(chosen) { account, file in
            let list = try await account.run(["keys", "--preferences", file])
            #expect(list.status == 0)
            #expect(list.lines.contains("contacts\tF5\tcontacts"))
            #expect(list.lines.contains { $0.hasPrefix("next-unread\tCtrl-N F7\t") })
            let json = try await account.run(["keys", "--json", "--preferences", file])
            #expect(json.status == 0)
            let copy = "\(file).copy"
            try json.lines.joined(separator: "\n").write(
                toFile: copy,
                atomically: true,
                encoding: .utf8
            )
            let again = try await account.run(["keys", "--preferences", copy])
            #expect(again.status == 0)
            #expect(again.lines == list.lines)
        }
    }

    @Test("mistakes are told, each in a line, and end it with 1")
    func mistakes() async throws {
        let chosen = #"{"keys": {"contacts": "x", "dance": "F5"}, "sound": "on"}"#
        try await withAccount(chosen) { account, file in
            let list = try await account.run(["keys", "--preferences", file])
            #expect(list.status == 1)
            #expect(list.lines.contains("contacts\tAlt-c\tcontacts"))
            #expect(list.errors.split(separator: "\n").count == 3)
            let missing = try await account.run(["keys", "--preferences", "\(file).not"])
            #expect(missing.status == 1)
            #expect(missing.errors.contains("there is no such file"))
        }
    }
}
