import Foundation
import TambourTesting
import Testing

/// Replays what clients of every release sent to the server of their time, and expects the same
/// replies and pushes from the present server. `Sessions/replay.py` defines which replies and
/// pushes count as the same.
@Suite(
    "Clients of earlier releases",
    // Each test runs a Python process and a server.
    .serialized,
    .enabled(if: StockClient.python != nil, "needs the Python environment `make test` makes")
)
struct SessionReplayTests {
    @Test("are answered as they were", arguments: Recording.all)
    func replay(recording: Recording) async throws {
        let (status, text) = try await Self.run("replay.py", [recording.file.path])
        #expect(status == 0, "\(text)")
        #expect(text.contains("  ok  \(recording.name) of release \(recording.release)"))
    }

    @Test("would notice if they were not")
    func faults() async throws {
        let dialog = try #require(Recording.all.first { $0.name == "dialog" })
        let (status, text) = try await Self.run("faults.py", [dialog.file.path])
        #expect(status == 0, "\(text)")
    }

    @Test("are kept for every release, and none is left out")
    func everyRelease() throws {
        let released = Recording.released
        let releases = try FileManager.default.contentsOfDirectory(atPath: released.path)
            .compactMap { Int($0) }
        #expect(!releases.isEmpty)
        #expect(Set(Recording.all.map(\.release)) == Set(releases), "a release without recordings")

        // Simulate a second release: the test must find the recordings of both releases.
        let copy = FileManager.default.temporaryDirectory.appending(
            path: "tambour-released-\(UUID())"
        )
        defer { try? FileManager.default.removeItem(at: copy) }
        try FileManager.default.copyItem(at: released, to: copy)
        let next = (releases.max() ?? 0) + 1
        let newest = copy.appending(path: "\(next - 1)")
        try FileManager.default.copyItem(at: newest, to: copy.appending(path: "\(next)"))
        let names = Recording.all(in: copy).map { "\($0)" }
        #expect(Set(names).isSuperset(of: Recording.all.map { "\($0)" }))
        #expect(names.contains("\(next)/dialog"))
        #expect(names.count == Recording.all.count + Recording.all.count { $0.release == next - 1 })
    }

    /// Runs a program of `Sessions` with the server that was built with the tests.
    private static func run(
        _ script: String,
        _ arguments: [String]
    ) async throws -> (status: Int32, text: String) {
        let program = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Sessions/\(script)")
        let child = try ChildProcess(
            try #require(StockClient.python),
            [program.path, "--tambourd", TambourdProcess.program().path] + arguments,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )
        var lines: [String] = []
        for await line in child.lines { lines.append(line) }
        let status = await child.exitStatus()
        return (status, (lines + [child.errors]).joined(separator: "\n"))
    }
}

/// A recorded conversation of clients with a server of a release:
/// `released/<release>/sessions/<name>.json`.
struct Recording: Sendable, CustomStringConvertible {
    let release: Int
    let name: String
    let file: URL

    var description: String { "\(release)/\(name)" }

    static let released = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "protocol-spec/released", directoryHint: .isDirectory)

    static let all = all(in: released)

    static func all(in released: URL) -> [Recording] {
        func names(in folder: URL) -> [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
        }
        return names(in: released).flatMap { release in
            let folder = released.appending(path: "\(release)/sessions")
            return names(in: folder).filter { $0.hasSuffix(".json") }.map { name in
                Recording(
                    release: Int(release) ?? 0,
                    name: String(name.dropLast(".json".count)),
                    file: folder.appending(path: name)
                )
            }
        }
    }
}
