import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@Suite("LZ4 blocks")
struct LZ4Tests {
    /// Chat-like text that LZ4 compresses to about half.
    static let prose = chatter(lines: 40)

    static func chatter(lines: Int) -> [UInt8] {
        var random = SeededGenerator(seed: 4)
        return (0..<lines).flatMap { _ in
            Array("сообщение номер \(random.next()), how are you? ".utf8)
        }
    }

    @Test("what is compressed comes back")
    func roundTrip() throws {
        let block = try #require(Self.prose.withUnsafeBytes { LZ4.compress($0) })
        #expect(block.count < Self.prose.count)
        #expect(try inflate(block, limit: 1 << 20) == Self.prose)
        #expect(try inflate(block, limit: Self.prose.count) == Self.prose)
    }

    @Test("what does not shrink is not compressed")
    func noGain() {
        var random = SeededGenerator(seed: 1)
        #expect(random.bytes(600).withUnsafeBytes { LZ4.compress($0) } == nil)
        #expect(([] as [UInt8]).withUnsafeBytes { LZ4.compress($0) } == nil)
        #expect(([7] as [UInt8]).withUnsafeBytes { LZ4.compress($0) } == nil)
    }

    @Test(
        "blocks of other senders are read",
        arguments: [
            ("00", ""),
            ("10 80", "80"),
            ("50 68656c6c6f", "68656c6c6f"),
            // 15 + 75 literals, as real servers send them; the last block has a match that overlaps
            // itself.
            ("f04b" + String(repeating: "61", count: 90), String(repeating: "61", count: 90)),
            ("f000" + String(repeating: "62", count: 15), String(repeating: "62", count: 15)),
            ("1f 61 0100 00 50 6262626262", String(repeating: "61", count: 20) + "6262626262"),
        ]
    )
    func foreign(block: String, raw: String) throws {
        #expect(try inflate(hex(block), limit: 1000) == hex(raw))
    }

    @Test("a block cut anywhere is damaged or shorter, never the whole")
    func truncated() throws {
        let block = try #require(Self.prose.withUnsafeBytes { LZ4.compress($0) })
        for cut in 0..<block.count {
            let part = try? inflate(Array(block[..<cut]), limit: 1 << 20)
            #expect(part.map { $0.count < Self.prose.count } ?? true)
        }
        #expect(Self.failure([], limit: 10) == .damaged)
    }

    @Test(
        "a block that makes no sense is damaged",
        arguments: [
            "1f 61 0000 00 50 6262626262",  // offset 0
            "1f 61 0200 00 50 6262626262",  // offset before the beginning
            "f0", "f0ff", "f0ffff", "20 61", "10 61 01", "1f 61 0100 ff",
            "1f 61 0100 00",  // ends with a match
            "1f 61 0100 00 10 62",  // the format requires five literals at the end
        ]
    )
    func nonsense(block: String) {
        #expect(Self.failure(hex(block), limit: 100_000) == .damaged)
    }

    @Test("the limit is exact: a byte more is refused")
    func limit() throws {
        let length = 1 << 20
        let bomb = Self.bomb(length: length)
        #expect(try inflate(bomb, limit: length).count == length)
        #expect(Self.failure(bomb, limit: length - 1) == .tooLong(limit: length - 1))
        // The block ends in the middle of the run's length.
        let endless = hex("1f 00 0100") + [UInt8](repeating: 255, count: 1 << 20)
        #expect(Self.failure(endless, limit: 1 << 20) == .damaged)
    }

    @Test("no room is made for a bomb")
    func bombs() async {
        // Use a separate process, because other tests allocate memory at the same time.
        await #expect(processExitsWith: .success) {
            let bomb = LZ4Tests.bomb(length: 16 << 20)
            precondition(bomb.count < 66000)
            let before = peakResidentBytes()
            for _ in 0..<20 {
                precondition(LZ4Tests.failure(bomb, limit: 1 << 20) == .tooLong(limit: 1 << 20))
            }
            precondition(peakResidentBytes() - before < 4 << 20)
        }
    }

    /// Returns a block that inflates to `length` equal bytes and has about 1/255 of that size.
    private static func bomb(length: Int) -> [UInt8] {
        let run = length - 5 - 1 - 4 - 15
        return hex("1f 00 0100") + [UInt8](repeating: 255, count: run / 255)
            + [UInt8(run % 255)] + hex("50 0000000000")
    }

    @Test("damaged blocks are errors or bytes, never a crash")
    func mutations() throws {
        var run = RandomRun("LZ4", count: 3000, soak: 500_000)
        let block = try #require(Self.prose.withUnsafeBytes { LZ4.compress($0) })
        for _ in 0..<run.count {
            var bytes = run.random.below(3) == 0 ? run.random.bytes(run.random.below(40)) : block
            for _ in 0...run.random.below(4) where !bytes.isEmpty {
                bytes[run.random.below(bytes.count)] = UInt8(run.random.below(256))
            }
            if run.random.below(4) == 0 { bytes.removeLast(run.random.below(bytes.count + 1)) }
            if let raw = try? inflate(bytes, limit: 5000) { try #require(raw.count <= 5000) }
        }
    }

    private func inflate(_ block: [UInt8], limit: Int) throws -> [UInt8] {
        try block.withUnsafeBytes { try LZ4.decompress($0, limit: limit) }
    }

    private static func failure(_ block: [UInt8], limit: Int) -> LZ4.Failure? {
        block.withUnsafeBytes { block in
            do throws(LZ4.Failure) {
                _ = try LZ4.decompress(block, limit: limit)
                return nil
            } catch {
                return error
            }
        }
    }
}
