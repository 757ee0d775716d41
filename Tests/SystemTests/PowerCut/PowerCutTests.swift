import Foundation
import TambourSQL
import TambourTesting
import Testing

/// The layer must lose unsynced data; otherwise tests that use it prove nothing.
@Suite("The power-cut layer loses what was not synced, and only that")
struct PowerCutTests {
    /// The commits that `writer.c` reported before the cut, and the rows on disk afterwards.
    private struct Outcome {
        var acknowledged: Int64
        var stored: Int64
        var last: Int64
        var isWhole: Bool
        var report: String
    }

    private func cutWriter(
        synchronous: String,
        seed: UInt64,
        after operations: Int?,
        policy: PowerCut.Policy? = nil
    ) async throws -> Outcome {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("test.db").path

        let writer = try ChildProcess(
            URL(filePath: try PowerCut.writer.get()),
            [file, synchronous],
            environment: try PowerCut(
                directory: folder.path,
                seed: seed,
                afterOperations: operations,
                policy: policy
            ).environment
        )
        var acknowledged: Int64 = 0
        for await _ in writer.lines {
            acknowledged += 1
            // Send the signal after some commits; commits reported until it takes effect also
            // count.
            if operations == nil, acknowledged == 20 { writer.signal(SIGUSR2) }
        }
        let status = await writer.exitStatus()
        #expect(status == 128 + SIGKILL)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasSuffix("-shm") })
        #expect(!FileManager.default.fileExists(atPath: folder.path + ".powercut"))

        // Open the file with the server's own code; SQLite recovers the content of the log.
        let connection = try SQLiteConnection(path: file, mode: .readWrite)
        var outcome = Outcome(
            acknowledged: acknowledged,
            stored: 0,
            last: 0,
            isWhole: try connection.quickCheck().isEmpty,
            report: writer.errors
        )
        let tables = try connection.prepare("SELECT count(*) FROM sqlite_schema")
        _ = try tables.step()
        guard tables.int(0) == 2 else { return outcome }
        let rows = try connection.prepare("SELECT id, length(body) FROM row ORDER BY id")
        while try rows.step() {
            outcome.stored += 1
            let isExpected =
                rows.int(0) == outcome.stored && rows.int(1) == 100 + outcome.stored * 37 % 900
            outcome.isWhole = outcome.isWhole && isExpected
        }
        let last = try connection.prepare("SELECT id FROM last")
        if try last.step() { outcome.last = last.int(0) }
        return outcome
    }

    @Test("with synchronous FULL nothing acknowledged is lost", arguments: UInt64(1)...40)
    func full(seed: UInt64) async throws {
        // Early cuts hit the creation of the file, late cuts hit the time between checkpoints.
        let outcome = try await cutWriter(
            synchronous: "FULL",
            seed: seed,
            after: Int(seed * seed % 1_009 + seed)
        )
        #expect(outcome.isWhole, "\(outcome.report)")
        #expect(outcome.stored >= outcome.acknowledged, "\(outcome.report)")
        // Only the commit in flight may be stored without having been reported.
        #expect(outcome.stored <= outcome.acknowledged + 1, "\(outcome.report)")
        #expect(outcome.last == outcome.stored, "\(outcome.report)")
    }

    @Test("with synchronous NORMAL the last commits are lost, and the rest is whole")
    func normal() async throws {
        var lost = 0
        for seed in UInt64(1)...20 {
            let outcome = try await cutWriter(
                synchronous: "NORMAL",
                seed: seed,
                after: 400 + Int(seed * 7)
            )
            #expect(outcome.isWhole, "\(outcome.report)")
            #expect(outcome.last == outcome.stored, "\(outcome.report)")
            #expect(outcome.acknowledged > 20)
            if outcome.stored < outcome.acknowledged { lost += 1 }
        }
        // Under every policy, nearly every cut loses a commit.
        #expect(lost >= 10)
    }

    @Test("without any syncs the file is damaged or empty")
    func off() async throws {
        var damaged = 0
        for seed in UInt64(1)...10 {
            let outcome = try? await cutWriter(
                synchronous: "OFF",
                seed: seed,
                after: 800,
                policy: .blocks
            )
            // A file that cannot be opened is damaged, too.
            guard let outcome, outcome.isWhole, outcome.stored >= outcome.acknowledged else {
                damaged += 1
                continue
            }
        }
        #expect(damaged >= 8)
    }

    @Test("a policy that keeps everything is no more than a killed process")
    func keep() async throws {
        let outcome = try await cutWriter(
            synchronous: "NORMAL",
            seed: 1,
            after: 500,
            policy: .keep
        )
        #expect(outcome.isWhole)
        #expect(outcome.stored >= outcome.acknowledged)
        #expect(outcome.report.contains("blocks kept"))
        #expect(outcome.report.contains("lost 0, torn 0; names kept"))
    }

    @Test("a signal cuts too")
    func signal() async throws {
        // Because the writer never syncs, a cut at any time loses everything, even the file's name.
        let outcome = try await cutWriter(synchronous: "OFF", seed: 1, after: nil, policy: .drop)
        #expect(outcome.acknowledged >= 20)
        #expect(outcome.stored == 0)
        #expect(!outcome.report.contains("names kept 0, lost 0"))
    }

    @Test("the same seed loses the same bytes")
    func repeatable() async throws {
        var reports: [String] = []
        for _ in 1...3 {
            reports.append(
                try await cutWriter(synchronous: "NORMAL", seed: 11, after: 700, policy: .sectors)
                    .report
            )
        }
        #expect(Set(reports).count == 1)
        #expect(!reports[0].contains("torn 0"))
    }
}
