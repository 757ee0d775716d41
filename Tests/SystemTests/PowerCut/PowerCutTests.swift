import Foundation
import TambourSQL
import TambourTesting
import Testing

/// The layer must lose what was not synced, or tests that use it prove nothing.
@Suite("The power-cut layer loses what was not synced, and only that")
struct PowerCutTests {
    /// What one run of `writer.c` told before the cut, and what was on disk after it.
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
    ) throws -> Outcome {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("test.db").path

        let writer = Process()
        let output = Pipe()
        let errors = Pipe()
        writer.executableURL = URL(fileURLWithPath: try PowerCut.writer.get())
        writer.arguments = [file, synchronous]
        writer.environment = try PowerCut(
            directory: folder.path,
            seed: seed,
            afterOperations: operations,
            policy: policy
        ).environment
        writer.standardOutput = output
        writer.standardError = errors
        try writer.run()

        var told = Data()
        if operations == nil {
            // Some commits, then the signal; what is told meanwhile counts as well.
            while told.filter({ $0 == UInt8(ascii: "\n") }).count < 20 {
                told += output.fileHandleForReading.availableData
            }
            kill(writer.processIdentifier, SIGUSR2)
        }
        told += try output.fileHandleForReading.readToEnd() ?? Data()
        let report = try errors.fileHandleForReading.readToEnd() ?? Data()
        let status = writer.waitForEnd()
        #expect(status == SIGKILL)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasSuffix("-shm") })
        #expect(!FileManager.default.fileExists(atPath: folder.path + ".powercut"))

        // Opened by the same code as the server's; SQLite recovers what the log holds.
        let connection = try SQLiteConnection(path: file, mode: .readWrite)
        var outcome = Outcome(
            acknowledged: Int64(told.split(separator: UInt8(ascii: "\n")).count),
            stored: 0,
            last: 0,
            isWhole: try connection.quickCheck().isEmpty,
            report: String(decoding: report, as: UTF8.self)
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
    func full(seed: UInt64) throws {
        // Early ones fall into the creation of the file, late ones between checkpoints.
        let outcome = try cutWriter(
            synchronous: "FULL",
            seed: seed,
            after: Int(seed * seed % 1_009 + seed)
        )
        #expect(outcome.isWhole, "\(outcome.report)")
        #expect(outcome.stored >= outcome.acknowledged, "\(outcome.report)")
        // At most the one commit that was under way may be there without having been told.
        #expect(outcome.stored <= outcome.acknowledged + 1, "\(outcome.report)")
        #expect(outcome.last == outcome.stored, "\(outcome.report)")
    }

    @Test("with synchronous NORMAL the last commits are lost, and the rest is whole")
    func normal() throws {
        var lost = 0
        for seed in UInt64(1)...20 {
            let outcome = try cutWriter(
                synchronous: "NORMAL",
                seed: seed,
                after: 400 + Int(seed * 7)
            )
            #expect(outcome.isWhole, "\(outcome.report)")
            #expect(outcome.last == outcome.stored, "\(outcome.report)")
            #expect(outcome.acknowledged > 20)
            if outcome.stored < outcome.acknowledged { lost += 1 }
        }
        // In order, block by block or torn: nearly every cut takes a commit.
        #expect(lost >= 10)
    }

    @Test("without any syncs the file is damaged or empty")
    func off() throws {
        let outcomes = (UInt64(1)...10).map { seed in
            Result {
                try cutWriter(
                    synchronous: "OFF",
                    seed: seed,
                    after: 800,
                    policy: .blocks
                )
            }
        }
        let damaged = outcomes.count { outcome in
            guard let outcome = try? outcome.get() else { return true }
            return !outcome.isWhole || outcome.stored < outcome.acknowledged
        }
        #expect(damaged >= 8)
    }

    @Test("a policy that keeps everything is no more than a killed process")
    func keep() throws {
        let outcome = try cutWriter(
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
    func signal() throws {
        // Without syncs all is lost wherever the signal falls, even the file's name.
        let outcome = try cutWriter(synchronous: "OFF", seed: 1, after: nil, policy: .drop)
        #expect(outcome.acknowledged >= 20)
        #expect(outcome.stored == 0)
        #expect(!outcome.report.contains("names kept 0, lost 0"))
    }

    @Test("the same seed loses the same bytes")
    func repeatable() throws {
        let reports = try (1...3).map { _ in
            try cutWriter(synchronous: "NORMAL", seed: 11, after: 700, policy: .sectors).report
        }
        #expect(Set(reports).count == 1)
        #expect(!reports[0].contains("torn 0"))
    }
}
