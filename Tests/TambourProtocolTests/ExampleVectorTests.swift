import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

/// Runs every example of `protocol-spec/examples/` through the generated types.
@Suite("Examples of the specification")
struct ExampleVectorTests {
    @Test("decode and encode to the same bytes", arguments: ExampleVector.all)
    func roundTrip(vector: ExampleVector) throws {
        let packet = hex(vector.hex)
        let payload = Array(packet[PacketHeader.size...])
        let plain = vector.plain.map { hex($0) } ?? payload
        #expect(try recode(plain, vector) == payload)
    }

    @Test("have the header they should", arguments: ExampleVector.all)
    func header(vector: ExampleVector) throws {
        let packet = hex(vector.hex)
        let header = packet.withUnsafeBytes { PacketHeader($0) }
        #expect(header.version == 10)
        #expect(header.command == vector.command)
        #expect(header.sequence == vector.sequence)
        #expect(header.opcode == vector.opcode)
        #expect(header.flags == 0)
        #expect(header.length == packet.count - PacketHeader.size)
    }

    @Test(
        "are read from other legal encodings",
        arguments: ExampleVector.all.filter { !$0.accept.isEmpty }
    )
    func otherEncodings(vector: ExampleVector) throws {
        let canonical = hex(vector.hex)[PacketHeader.size...]
        for other in vector.accept {
            let payload = Array(hex(other.hex)[PacketHeader.size...])
            let recoded = try #require(try recode(payload, vector))
            #expect(recoded.elementsEqual(canonical), "\(other.name)")
        }
    }

    @Test(
        "are refused where they should be, with the text they should",
        arguments: ExampleVector.all.filter { !$0.reject.isEmpty }
    )
    func refusals(vector: ExampleVector) throws {
        for bad in vector.reject {
            let payload = Array(hex(bad.hex)[PacketHeader.size...])
            let limits = try Limits(overrides: bad.limits)
            let error = #expect(throws: PayloadError.self, "\(bad.name)") {
                try ExampleVector.recode(payload, as: vector.type, limits: limits)
            }
            #expect(error?.description == bad.error, "\(bad.name)")
        }
    }

    private func recode(_ payload: [UInt8], _ vector: ExampleVector) throws -> [UInt8]? {
        try ExampleVector.recode(
            payload,
            as: vector.type,
            in: vector.dialect,
            limits: .standard
        )
    }

    @Test("come out of one stream of them all, byte by byte")
    func stream() throws {
        var reader = StreamReader()
        reader.decoder.authenticated = true
        for vector in ExampleVector.all {
            for byte in hex(vector.hex) { try reader.receive([byte]) }
        }
        #expect(reader.unread.isEmpty)
        #expect(reader.packets.map(\.payload) == ExampleVector.all.map(\.payload))
        #expect(reader.packets.map(\.header.sequence) == ExampleVector.all.map(\.sequence))
    }
}

extension ExampleVector {
    /// The bytes after the header.
    var payload: [UInt8] { Array(TambourTesting.hex(hex)[PacketHeader.size...]) }
}
