import Foundation
import Testing

@testable import TerminalKit

/// Runs the test cases that Unicode publishes for UAX #9.
struct BidiConformanceTests {
    /// The Debian package `unicode-data` contains this file.
    private static let path = "/usr/share/unicode/BidiCharacterTest.txt"

    /// A test case from one line of the file. Rule X9 removes some characters; they have no level
    /// and no place in the order.
    private struct Case {
        let clusters: [Character]
        let direction: BidiParagraph.Direction
        let isRightToLeft: Bool
        let levels: [UInt8?]
        let order: [Int]

        init?(_ line: Substring) {
            let fields = line.split(separator: ";").map { $0.split(separator: " ") }
            guard fields.count == 5, let paragraph = fields[1].first else { return nil }
            // Make each scalar a separate cluster, even a combining mark.
            clusters = fields[0].compactMap { value in
                UInt32(value, radix: 16).flatMap(Unicode.Scalar.init).map(Character.init)
            }
            switch paragraph {
            case "0": direction = .leftToRight
            case "1": direction = .rightToLeft
            default: direction = .automatic
            }
            isRightToLeft = fields[2] == ["1"]
            levels = fields[3].map { UInt8($0) }
            order = fields[4].compactMap { Int($0) }
        }

        /// Whether the case contains explicit embeddings, overrides or isolates. These tests skip
        /// such cases.
        var isExplicit: Bool {
            clusters.contains {
                ("\u{202A}"..."\u{202E}").contains($0) || ("\u{2066}"..."\u{2069}").contains($0)
            }
        }

        var holds: Bool {
            let paragraph = BidiParagraph(clusters, direction: direction)
            let shown = paragraph.visualOrder(ofLine: clusters.indices)
                .filter { levels[$0.index] != nil }
            return paragraph.isRightToLeft == isRightToLeft && shown.map(\.index) == order
                && shown.allSatisfy { $0.level == levels[$0.index] }
        }
    }

    @Test(
        "levels and order are Unicode's",
        .enabled(if: FileManager.default.isReadableFile(atPath: path))
    )
    func cases() throws {
        let text = try String(contentsOfFile: Self.path, encoding: .utf8)
        let cases = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map { ($0, Case($0)) }
        #expect(cases.allSatisfy { $0.1 != nil })
        let implicit = cases.filter { $0.1.map { !$0.isExplicit } ?? false }
        #expect(implicit.count > 90_000)
        let failed = implicit.filter { $0.1.map { !$0.holds } ?? true }.map(\.0)
        #expect(
            failed.isEmpty,
            "\(failed.count), such as\n\(failed.prefix(5).joined(separator: "\n"))"
        )
    }
}
