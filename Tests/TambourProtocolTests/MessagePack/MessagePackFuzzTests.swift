import TambourProtocol
import TambourTesting
import Testing

@Suite("random MessagePack")
struct MessagePackFuzzTests {
    @Test("what is written is read again, stepped over exactly, and never longer than it must be")
    func roundTrip() throws {
        var run = RandomRun("round trip", count: 1500, soak: 100_000)
        for _ in 0..<run.count {
            let tree = Tree.random(depth: 4, using: &run.random)
            let bytes = encode(tree)
            try #require(try decode(Tree.self, bytes) == tree, "\(hexText(bytes))")
            try skip(bytes)
            try #require(try decode(AnyValue.self, bytes).bytes.array == bytes)
            try #require(try decode(Packed<Tree>.self, bytes).value(limits: .standard) == tree)
            // The same value in longer forms than necessary.
            var long: [UInt8] = []
            writeLong(tree, to: &long, using: &run.random)
            try #require(long.count >= bytes.count)
            try skip(long)
            try #require(try decode(Tree.self, long) == tree, "\(hexText(long))")
            try #require(encode(try decode(Tree.self, long)) == bytes)
        }
    }

    @Test("damaged payloads are errors or values, never a crash")
    func mutations() throws {
        var run = RandomRun("mutations", count: 4000, soak: 500_000)
        var pool = [SampleMessage.full.encoded()]
        for _ in 0..<20 { pool.append(encode(Tree.random(depth: 4, using: &run.random))) }
        let small = try Limits(overrides: ["maxDepth": 3, "maxElements": 12, "maxTextUnits": 5])

        for _ in 0..<run.count {
            var bytes = pool[run.random.below(2) == 0 ? 0 : run.random.below(pool.count)]
            for _ in 0...run.random.below(4) { mutate(&bytes, using: &run.random) }
            let limits = run.random.below(4) == 0 ? small : .standard

            if let message = try? SampleMessage.decode(bytes, limits: limits) {
                try #require(message.text.utf16Count <= limits.maxTextUnits)
                try #require(Text(validating: message.text.bytes) != nil)
                let again = try SampleMessage.decode(message.encoded(), limits: .standard)
                // NaN is not equal to itself.
                try #require(again == message || message.ratio?.isNaN == true)
            }
            let skipped = (try? skip(bytes, limits: limits)) != nil
            let kept = try? decode(AnyValue.self, bytes, limits: limits)
            let tree = try? decode(Tree.self, bytes, limits: limits)
            // Decoding checks more than skipping, so it must not accept bytes that skipping
            // refuses.
            try #require(skipped || (kept == nil && tree == nil), "\(hexText(bytes))")
            try #require(kept != nil || tree == nil, "\(hexText(bytes))")
            if let kept { try #require(kept.bytes.array == bytes) }
            if let tree { try #require(try decode(Tree.self, encode(tree)) == tree) }
            _ = try? decode([Packed<Tree>].self, bytes, limits: limits)
            _ = try? decode(IDMap<ChatID, AnyValue>.self, bytes, limits: limits)
        }
    }

    @Test("bytes that mean nothing are errors or values, never a crash")
    func noise() {
        var run = RandomRun("noise", count: 4000, soak: 500_000)
        for _ in 0..<run.count {
            let bytes = run.random.bytes(run.random.below(24))
            _ = try? SampleMessage.decode([0x81] + bytes, limits: .standard)
            _ = try? decode(Tree.self, bytes)
            _ = try? decode(AnyValue.self, bytes)
        }
    }

    /// Makes one change that tends to find bugs: flips a bit, changes a byte, cuts, deletes or
    /// copies bytes, or falsifies a length.
    private func mutate(_ bytes: inout [UInt8], using random: inout SeededGenerator) {
        guard !bytes.isEmpty else {
            bytes = random.bytes(3)
            return
        }
        let index = random.below(bytes.count)
        switch random.below(8) {
        case 0: bytes[index] ^= 1 << UInt8(random.below(8))
        case 1: bytes[index] = UInt8(random.below(256))
        case 2: bytes.removeSubrange(index...)
        case 3: bytes.removeSubrange(index..<min(index + 1 + random.below(4), bytes.count))
        case 4: bytes.insert(contentsOf: random.bytes(1 + random.below(4)), at: index)
        case 5:
            let end = min(index + random.below(32), bytes.count)
            bytes.insert(contentsOf: Array(bytes[index..<end]), at: random.below(bytes.count))
        case 6:
            let headers: [[UInt8]] = [
                [0xDD, 0xFF, 0xFF, 0xFF, 0xFF], [0xDF, 0, 0, 0, 9], [0xDB, 0x7F, 0xFF, 0xFF, 0xFF],
                [0xC9, 0xFF, 0xFF, 0xFF, 0xFF, 1], [0xC1], [0xD9, 200], [0xDC, 0, 3], [0xDE, 0, 2],
            ]
            bytes.insert(contentsOf: headers[random.below(headers.count)], at: index)
        default: bytes[index] = [0x91, 0x81, 0xA1, 0xC0, 0xCF, 0xD3, 0xD9, 0xFF][random.below(8)]
        }
    }

    /// Writes a tree with headers and integers of any legal width.
    private func writeLong(
        _ tree: Tree,
        to bytes: inout [UInt8],
        using random: inout SeededGenerator
    ) {
        func bigEndian(_ number: UInt64, _ size: Int) -> [UInt8] {
            (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
        }
        func header(_ count: Int, _ forms: [(first: UInt8, size: Int)]) -> [UInt8] {
            let fitting = forms.filter { $0.size == 4 || count < 1 << ($0.size * 8) }
            let form = fitting[random.below(fitting.count)]
            return [form.first] + bigEndian(UInt64(count), form.size)
        }
        switch tree {
        case .int(let value):
            var forms: [[UInt8]] = [[0xD3] + bigEndian(UInt64(bitPattern: value), 8)]
            if let number = UInt64(exactly: value) { forms.append([0xCF] + bigEndian(number, 8)) }
            if let number = UInt32(exactly: value) {
                forms.append([0xCE] + bigEndian(UInt64(number), 4))
            }
            if Int32(exactly: value) != nil {
                forms.append([0xD2] + bigEndian(UInt64(bitPattern: value), 4))
            }
            if Int16(exactly: value) != nil {
                forms.append([0xD1] + bigEndian(UInt64(bitPattern: value), 2))
            }
            if Int8(exactly: value) != nil {
                forms.append([0xD0] + bigEndian(UInt64(bitPattern: value), 1))
            }
            bytes += forms[random.below(forms.count)]
        case .text(let text):
            bytes += header(text.bytes.count, [(0xD9, 1), (0xDA, 2), (0xDB, 4)])
            bytes += text.bytes.array
        case .bytes(let content):
            bytes += header(content.count, [(0xC4, 1), (0xC5, 2), (0xC6, 4)]) + content.array
        case .array(let items):
            bytes += header(items.count, [(0xDC, 2), (0xDD, 4)])
            for item in items { writeLong(item, to: &bytes, using: &random) }
        case .map(let entries):
            bytes += header(entries.count, [(0xDE, 2), (0xDF, 4)])
            for entry in entries {
                writeLong(entry.key, to: &bytes, using: &random)
                writeLong(entry.value, to: &bytes, using: &random)
            }
        case .null, .bool, .float, .extension: bytes += encode(tree)
        }
    }
}
