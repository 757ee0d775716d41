import CAllocationCount
import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// The number of allocations for reading and writing a payload, compared with
/// `bench/thresholds/allocations.txt`. The numbers do not depend on the machine; a debug build
/// allocates a little more than a release build.
@Suite("Allocations", .enabled(if: allocation_count() >= 0, "not under a sanitizer"))
struct AllocationTests {
    /// Reads the thresholds. Each line contains a number, a space and the name of an example.
    private static func thresholds() throws -> [String: Int] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("bench/thresholds/allocations.txt")
        var thresholds: [String: Int] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let count = Int(parts[0]) else { continue }
            thresholds[String(parts[1])] = count
        }
        return thresholds
    }

    @Test("to decode and encode an example are as many as they were")
    func examples() throws {
        let thresholds = try Self.thresholds()
        var counts: [String] = []
        var isWithin = true
        for vector in ExampleVector.all {
            // Count with the plain payload, because the server only writes the dialect's changes
            // and never reads them.
            let payload = vector.plain.map { hex($0) } ?? vector.payload
            func count() throws -> Int {
                let before = allocation_count()
                _ = try ExampleVector.recode(
                    payload,
                    as: vector.type,
                    in: vector.dialect,
                    limits: .standard
                )
                return allocation_count() - before
            }
            // The first run also allocates objects that are created once.
            _ = try count()
            let allocations = try count()
            counts.append("\(allocations) \(vector.name)")
            isWithin = isWithin && allocations <= thresholds[vector.name] ?? 0
        }
        #expect(isWithin, "now these:\n\(counts.joined(separator: "\n"))")
    }
}
