import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@Suite("compressed packets")
struct CompressionTests {
    @Test("a payload is compressed from 512 bytes up, if that makes it smaller")
    func threshold() throws {
        let prose = LZ4Tests.prose
        for compression in [Compression.classic, .large] {
            #expect(try header(Array(prose.prefix(511)), compression).flags == 0)
            let header = try header(Array(prose.prefix(512)), compression)
            #expect(header.flags > 0 && header.length < 512)
        }
        #expect(try header(prose, .none).flags == 0)
        var random = SeededGenerator(seed: 2)
        #expect(try header(random.bytes(2000), .large).flags == 0)
        #expect(try header([], .large, from: 1).length == 0)
        #expect(try header([UInt8](repeating: 1, count: 100), .classic, from: 50).flags > 0)
        #expect(try header([UInt8](repeating: 1, count: 100), .classic, from: 101).flags == 0)
    }

    @Test("the factor is a bound for the output buffer")
    func factor() throws {
        let payload = [UInt8](repeating: LZ4Tests.prose, times: 3)
        let header = try header(payload, .classic)
        #expect(Int(header.flags) == payload.count / header.length + 1)
        #expect(header.length * Int(header.flags) > payload.count)
    }

    @Test("classic readers get at most 99,999 bytes raw and a factor of 32")
    func classic() throws {
        let payload = LZ4Tests.chatter(lines: 1600)
        let longest = Array(payload.prefix(99_999))
        #expect(try header(longest, .classic).flags > 0)
        let longer = Array(payload.prefix(100_000))
        #expect(try header(longer, .classic).flags == 0)
        #expect(try header(longer, .large).flags > 0)

        // Random bytes at the front do not shrink, so their number sets the factor. The factor
        // passes 32 in this range.
        var factors: Set<Int> = []
        for noise in stride(from: 2300, through: 3000, by: 20) {
            var random = SeededGenerator(seed: 3)
            let payload = random.bytes(noise) + [UInt8](repeating: 0, count: 90_000)
            let large = try header(payload, .large)
            let classic = try header(payload, .classic)
            try #require(large.flags > 0)
            #expect(classic.flags == (large.flags <= 32 ? large.flags : 0))
            factors.insert(Int(large.flags))
        }
        #expect(factors.contains(32) && factors.contains(33))
    }

    @Test("a factor of 255 would mean zstd: such a payload travels as it is")
    func largest() throws {
        let payload = [UInt8](repeating: 0, count: 1_000_000)
        let block = try #require(payload.withUnsafeBytes { LZ4.compress($0) })
        let factor = payload.count / block.count + 1
        let header = try header(payload, .large)
        #expect(header.flags == (factor <= 254 ? UInt8(factor) : 0))
        #expect(try self.header(payload, .classic).flags == 0)
    }

    @Test("packets are appended, each with its own length")
    func appended() throws {
        var output: [UInt8] = [0xEE]
        for payload in [LZ4Tests.prose, [0x80], [], LZ4Tests.prose] {
            encodePacket(
                command: .ok,
                sequence: 1,
                opcode: 2,
                payload: payload,
                compression: .classic,
                into: &output
            )
        }
        var reader = StreamReader()
        try reader.receive(Array(output.dropFirst()))
        #expect(reader.packets.map(\.payload) == [LZ4Tests.prose, [0x80], [], LZ4Tests.prose])
        #expect(reader.packets.map { $0.header.flags > 0 } == [true, false, false, true])
    }

    @Test("any factor from 1 to 254 is read: some senders write a constant")
    func anyFactor() throws {
        let block = try #require(LZ4Tests.prose.withUnsafeBytes { LZ4.compress($0) })
        for flags in 1...254 {
            let header = PacketHeader(
                command: 0,
                sequence: 1,
                opcode: 1,
                flags: UInt8(flags),
                length: block.count
            )
            let payload = try block.withUnsafeBytes {
                try Frame(header: header, wirePayload: $0).payload(limits: .standard)
            }
            try #require(payload == LZ4Tests.prose)
        }
    }

    @Test("a payload that cannot be inflated is a soft error")
    func softErrors() throws {
        func says(flags: UInt8, _ bytes: [UInt8], limits: Limits = .standard) -> String {
            let header = PacketHeader(
                command: 0,
                sequence: 1,
                opcode: 1,
                flags: flags,
                length: bytes.count
            )
            return bytes.withUnsafeBytes { bytes in
                complaint { () throws(PayloadError) in
                    try Frame(header: header, wirePayload: bytes).payload(limits: limits)
                }
            }
        }
        #expect(says(flags: 255, [0x80]) == "zstd is not supported")
        #expect(says(flags: 2, [0xF0]) == "not an LZ4 block")
        #expect(says(flags: 2, []) == "not an LZ4 block")
        let limits = try Limits(overrides: ["maxInflatedBytes": 25])
        let exact = hex("1f 61 0100 00 50 6262626262")
        #expect(says(flags: 2, exact, limits: limits).hasPrefix("no error"))
        let longer = hex("1f 61 0100 01 50 6262626262")
        #expect(says(flags: 2, longer, limits: limits) == "inflates to more than 25 bytes")
    }

    @Test("strangers may not inflate to more than they may send plain")
    func strangers() throws {
        let limits = try Limits(overrides: ["maxFrameBytesBeforeLogin": 25])
        let longer = hex("1f 61 0100 01 50 6262626262")
        let header = PacketHeader(
            version: 10,
            command: 0,
            sequence: 1,
            opcode: 1,
            flags: 2,
            length: longer.count
        )
        longer.withUnsafeBytes { bytes in
            let frame = Frame(header: header, wirePayload: bytes)
            let refused = complaint { () throws(PayloadError) in
                try frame.payload(limits: limits, authenticated: false)
            }
            #expect(refused == "inflates to more than 25 bytes")
            let served = complaint { () throws(PayloadError) in
                try frame.payload(limits: limits, authenticated: true)
            }
            #expect(served.hasPrefix("no error"))
        }
    }

    private func header(
        _ payload: [UInt8],
        _ compression: Compression,
        from threshold: Int = 512
    ) throws -> PacketHeader {
        var output: [UInt8] = []
        encodePacket(
            command: .ok,
            sequence: 1,
            opcode: 2,
            payload: payload,
            compression: compression,
            compressFrom: threshold,
            into: &output
        )
        var reader = StreamReader()
        reader.decoder.authenticated = true
        try reader.receive(output)
        let packet = try #require(reader.packets.first)
        try #require(packet.payload == payload)
        return packet.header
    }
}
