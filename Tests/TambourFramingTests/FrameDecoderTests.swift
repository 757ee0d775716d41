import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@Suite("cutting a stream into frames")
struct FrameDecoderTests {
    /// Three packets: one with a payload, one without, and one compressed.
    private static let packets = [
        Packet(
            header: PacketHeader(command: 0, sequence: 2, opcode: 1, length: 14),
            payload: hex("81ab696e746572616374697665c3")
        ),
        Packet(
            header: PacketHeader(
                version: 11,
                command: 0,
                sequence: 0xFFFF,
                opcode: 0xFFFF,
                length: 0
            ),
            payload: []
        ),
        Packet(
            header: PacketHeader(command: 1, sequence: 3, opcode: 49, flags: 3, length: 11),
            payload: [UInt8](repeating: 0x61, count: 20) + hex("6262626262")
        ),
    ]
    private static let stream =
        hex("0a00 0002 0001 00 00000e 81ab696e746572616374697665c3")
        + hex("0b00 ffff ffff 00 000000")
        + hex("0a01 0003 0031 03 00000b 1f 61 0100 00 50 6262626262")

    @Test("a stream that comes in two pieces, cut at every byte")
    func twoPieces() throws {
        for cut in 0...Self.stream.count {
            var reader = StreamReader()
            try reader.receive(Array(Self.stream[..<cut]))
            try reader.receive(Array(Self.stream[cut...]))
            #expect(reader.packets == Self.packets, "cut at \(cut)")
            #expect(reader.unread.isEmpty)
        }
    }

    @Test("a stream that comes byte by byte, and each frame as soon as it is whole")
    func singleBytes() throws {
        var reader = StreamReader()
        var counts: [Int] = []
        for byte in Self.stream {
            try reader.receive([byte])
            counts.append(reader.packets.count)
        }
        #expect(reader.packets == Self.packets)
        #expect(counts.firstIndex(of: 1) == 23 && counts.firstIndex(of: 2) == 33)
        #expect(counts.firstIndex(of: 3) == 54)
    }

    @Test("fifty frames at once")
    func many() throws {
        var reader = StreamReader()
        try reader.receive([UInt8](repeating: Self.stream, times: 50) + Self.stream.prefix(9))
        #expect(reader.packets.count == 150)
        #expect(reader.unread == Array(Self.stream.prefix(9)))
    }

    @Test("random streams in random pieces")
    func random() throws {
        var run = RandomRun("frames", count: 100, soak: 5000)
        for _ in 0..<run.count {
            var stream: [UInt8] = []
            var expected: [Packet] = []
            for _ in 0..<10 {
                let payload = run.random.bytes(run.random.below(300))
                let header = PacketHeader(
                    version: UInt8(10 + run.random.below(2)),
                    command: UInt8(run.random.below(4)),
                    sequence: UInt16(run.random.below(65536)),
                    opcode: UInt16(run.random.below(65536)),
                    length: payload.count
                )
                expected.append(Packet(header: header, payload: payload))
                var bytes = [UInt8](repeating: 0, count: 10)
                bytes.withUnsafeMutableBytes { header.write(to: $0) }
                stream += bytes + payload
            }
            var reader = StreamReader()
            var index = 0
            while index < stream.count {
                let end = min(index + 1 + run.random.below(200), stream.count)
                try reader.receive(Array(stream[index..<end]))
                index = end
            }
            try #require(reader.packets == expected)
        }
    }

    @Test("a frame that is not whole moves nothing")
    func partial() throws {
        let decoder = FrameDecoder(limits: .standard)
        let bytes = Array(Self.stream.prefix(23))
        var offset = 0
        let isWhole = try bytes.withUnsafeBytes { try decoder.next(in: $0, from: &offset) != nil }
        #expect(!isWhole && offset == 0)
    }

    @Test(
        "a wrong version or command is refused as soon as the byte is there",
        arguments: [
            ("09", FrameError.version(9)), ("0c", .version(12)), ("47 4554202f", .version(0x47)),
            ("00", .version(0)), ("ff 00", .version(255)), ("0a 04", .command(4)),
            ("0b ff 0000", .command(255)),
        ]
    )
    func hard(bytes: String, expected: FrameError) {
        var reader = StreamReader()
        #expect(throws: expected) { try reader.receive(hex(bytes)) }
        // A bad frame after good frames is refused, too. The good frames are still delivered.
        var later = StreamReader()
        #expect(throws: expected) { try later.receive(Self.stream + hex(bytes)) }
        #expect(later.packets == Self.packets)
    }

    @Test("strangers may send little, users more, nobody more than the limit")
    func tooLong() throws {
        func header(_ length: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: 10)
            bytes.withUnsafeMutableBytes {
                PacketHeader(command: 0, sequence: 1, opcode: 1, length: length).write(to: $0)
            }
            return bytes
        }
        var stranger = StreamReader()
        try stranger.receive(header(8192) + [UInt8](repeating: 1, count: 8192))
        #expect(stranger.packets.count == 1)
        // The decoder refuses the header without waiting for the payload.
        #expect(throws: FrameError.tooLong(length: 8193, limit: 8192)) {
            try stranger.receive(header(8193))
        }

        var user = StreamReader()
        user.decoder.authenticated = true
        try user.receive(header(1_048_576) + [UInt8](repeating: 1, count: 1_048_576))
        #expect(user.packets.count == 1)
        #expect(throws: FrameError.tooLong(length: 1_048_577, limit: 1_048_576)) {
            try user.receive(header(1_048_577))
        }
        #expect(throws: FrameError.tooLong(length: 0xFF_FFFF, limit: 1_048_576)) {
            var user = StreamReader()
            user.decoder.authenticated = true
            try user.receive(header(0xFF_FFFF))
        }
    }

    @Test("what is wrong with a stream is said in one line")
    func wording() {
        #expect(FrameError.version(71).description == "protocol version 71, expected 10 or 11")
        #expect(FrameError.command(4).description == "command 4, expected 0 to 3")
        #expect(
            FrameError.tooLong(length: 8193, limit: 8192).description
                == "a payload of 8193 bytes, limit 8192"
        )
    }
}
