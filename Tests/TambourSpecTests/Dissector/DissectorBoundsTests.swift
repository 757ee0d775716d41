import Foundation
import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour_spec

/// Tests packets that demand far more memory or work than their size suggests.
@Suite(
    "Dissector on greedy packets",
    .enabled(if: Wireshark.isInstalled, "\(Wireshark.missing)"),
    .timeLimit(.minutes(10))
)
struct DissectorBoundsTests {
    private static func packet(flags: UInt8 = 0, _ payload: [UInt8], length: Int? = nil) -> [UInt8]
    {
        let length = length ?? payload.count
        return [10, 0, 0, 1, 0, 64, flags]
            + [16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) } + payload
    }

    private static func compressed(_ payload: [UInt8]) throws -> [UInt8] {
        packet(flags: 254, try #require(payload.withUnsafeBytes { LZ4.compress($0) }))
    }

    /// Returns an LZ4 block that inflates to `count` zeros. Does not allocate the zeros.
    private static func zeros(_ count: Int) -> [UInt8] {
        let run = count - 1 - 4 - 15 - 5
        return [0x1F, 0, 1, 0] + Array(repeating: 255, count: run / 255) + [UInt8(run % 255)]
            + [0x50, 0, 0, 0, 0, 0]
    }

    struct Greedy: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let packet: [UInt8]
        /// The problem that the tree must show.
        let problem: String
    }

    private static let greedy: [Greedy] = {
        let nested = Array(repeating: UInt8(0x91), count: 100_000) + [0xC0]
        return [
            Greedy(
                testDescription: "16 MiB in 65 KiB",
                packet: packet(flags: 254, zeros(16 << 20)),
                problem: "inflates to more than 1048576 bytes"
            ),
            Greedy(
                testDescription: "one byte too many",
                packet: packet(flags: 254, zeros((1 << 20) + 1)),
                problem: "inflates to more than 1048576 bytes"
            ),
            Greedy(
                testDescription: "100,000 arrays in each other",
                packet: packet([0x81, 0xA1, 0x61] + nested),
                problem: "nested deeper than 32"
            ),
            Greedy(
                testDescription: "four billion items that are not there",
                packet: packet([0x81, 0xA1, 0x61, 0xDD, 0xFF, 0xFF, 0xFF, 0xFF]),
                problem: "ends after 8 bytes"
            ),
            Greedy(
                testDescription: "65,537 elements",
                packet: packet(
                    [0x81, 0xA1, 0x61, 0xDD, 0, 1, 0, 1] + [UInt8](repeating: 1, count: 65_537)
                ),
                problem: "more than 65536 elements"
            ),
            Greedy(
                testDescription: "four gigabytes of text",
                packet: packet([0x81, 0xA1, 0x61, 0xDB, 0xFF, 0xFF, 0xFF, 0xFF]),
                problem: "ends after 8 bytes"
            ),
        ]
    }()

    /// Splits a packet into segments as a network would.
    private func segments(_ bytes: [UInt8]) -> [Segment] {
        stride(from: 0, to: bytes.count, by: 1400).map { first in
            Segment(
                isToServer: true,
                bytes: Array(bytes[first..<min(first + 1400, bytes.count)])
            )
        }
    }

    @Test("says what a packet asks too much of", arguments: greedy)
    func refusal(greedy: Greedy) throws {
        let wireshark = try Wireshark()
        let rows = try wireshark.rows(
            try wireshark.capture(segments(greedy.packet)),
            ["tambour.problem"],
            ["-Y", "tambour"]
        )
        #expect(rows.map { $0["tambour.problem"] } == [greedy.problem])
    }

    @Test(
        "keeps of a bomb no more than the limit",
        .enabled(if: PlainLua.isInstalled, "\(PlainLua.missing)")
    )
    func memory() throws {
        // The block has one megabyte and inflates to 254 MiB. As a Lua table, the result would take
        // four gigabytes.
        let bomb = Self.packet(flags: 254, Self.zeros(254 << 20))
        let trees = try PlainLua.trees([bomb], megabytes: 400)
        #expect(
            trees.first?.header.contains("[Problem: inflates to more than 1048576 bytes]") == true
        )
    }

    @Test("does not wait for what a header only claims")
    func claimedLength() throws {
        let wireshark = try Wireshark()
        let ping: [UInt8] = [10, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0x80]
        let liar = Self.packet([], length: 0xFF_FFFF)
        let capture = try wireshark.capture(
            [liar, ping].map { Segment(isToServer: true, bytes: $0) }
        )
        let rows = try wireshark.rows(
            capture,
            ["tambour.seq", "_ws.expert.message"],
            ["-Y", "tambour"]
        )
        #expect(
            rows == [
                [
                    "tambour.seq": "",
                    "_ws.expert.message": "a payload of 16777215 bytes, limit 1048576",
                ],
                ["tambour.seq": "2", "_ws.expert.message": ""],
            ]
        )
    }

    @Test("adds only so much of one frame to the tree")
    func crowdedFrames() throws {
        let wireshark = try Wireshark()
        // An array of 65,000 items compresses to about 270 bytes. A segment contains 100 such
        // packets.
        let items = [0x81, 0xA1, 0x61, 0xDC, 0xFD, 0xE8] + [UInt8](repeating: 1, count: 65_000)
        let wide = Array(repeating: try Self.compressed(items), count: 100).flatMap { $0 }
        // A megabyte of text compresses to 4 KiB. A segment contains 12 such packets.
        let text: [UInt8] =
            [0x81, 0xA1, 0x61, 0xDB, 0, 0x0F, 0, 0] + [UInt8](repeating: 0x61, count: 0x0F_0000)
        let long = Array(repeating: try Self.compressed(text), count: 12).flatMap { $0 }
        // A packet of less than 50 bytes has fifty errors. A segment contains 1,400 such packets.
        let wrong: [UInt8] =
            [0x81, 0xA7] + Array("message".utf8) + [0x81, 0xA8] + Array("elements".utf8)
            + [0xDC, 0, 50] + [UInt8](repeating: 0xC3, count: 50)
        let worst = Array(repeating: try Self.compressed(wrong), count: 1400).flatMap { $0 }
        // A segment with as many packets as fit. In each packet, the required fields are missing.
        let many = Array(repeating: Self.packet([]), count: 5000).flatMap { $0 }

        for (bytes, packets, isCut) in [
            (wide, 100, true), (long, 12, true), (worst, 1400, true), (many, 5000, false),
        ] {
            try #require(bytes.count < 65_000)
            let capture = try wireshark.capture([Segment(isToServer: true, bytes: bytes)])
            let text = try wireshark.read(capture, ["-V", "-O", "tambour"])
            let lines = text.split(separator: "\n")
            #expect(lines.count < 400_000)
            #expect(!lines.contains { $0.hasPrefix("Lua Error") })
            #expect(lines.count { $0.hasPrefix("Tambour, ") } == packets)
            #expect(lines.contains { $0.contains("too much in one frame") } == isCut)
        }
    }

    @Test("tells of many problems only some")
    func manyProblems() throws {
        let wireshark = try Wireshark()
        let keys = (0..<500).flatMap { index -> [UInt8] in
            let key = Array("k\(index)".utf8)
            return [0xA0 | UInt8(key.count)] + key + [1]
        }
        let capture = try wireshark.capture([
            Segment(isToServer: true, bytes: Self.packet([0xDE, 1, 0xF4] + keys))
        ])
        let trees = try wireshark.trees(capture)
        #expect(trees.first?.payload.count == 500)
        let rows = try wireshark.rows(capture, ["_ws.expert.message"])
        let messages = rows.first?["_ws.expert.message"]?.split(separator: "|") ?? []
        #expect(messages.count < 60)
    }

    @Test("says when the capture lacks a part of a packet")
    func cutCapture() throws {
        let wireshark = try Wireshark()
        let packet = Self.packet([0x80, 0x80, 0x80])
        for (bytes, message) in [
            (Array(packet.dropLast()), "the capture holds only a part of the payload"),
            (Array(packet.prefix(9)), "the capture holds only a part of the header"),
        ] {
            let rows = try wireshark.rows(
                try wireshark.capture(frames: [bytes]),
                ["_ws.expert.message", "tambour.problem"]
            )
            #expect(rows == [["_ws.expert.message": message, "tambour.problem": ""]])
        }
    }
}
