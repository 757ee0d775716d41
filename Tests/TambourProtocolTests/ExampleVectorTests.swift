import TambourProtocol
import Testing

/// Every example of `protocol-spec/examples/` through the generated types.
@Suite("Examples of the specification")
struct ExampleVectorTests {
    @Test("decode and encode to the same bytes", arguments: ExampleVector.all)
    func roundTrip(vector: ExampleVector) throws {
        let packet = try #require(ExampleVector.bytes(vector.hex))
        let payload = Array(packet[PacketHeader.size...])
        #expect(try ExampleVector.recode(payload, as: vector.type, limits: .standard) == payload)
    }

    @Test("have the header they should", arguments: ExampleVector.all)
    func header(vector: ExampleVector) throws {
        let packet = try #require(ExampleVector.bytes(vector.hex))
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
        let canonical = try #require(ExampleVector.bytes(vector.hex))[PacketHeader.size...]
        for other in vector.accept {
            let payload = Array(try #require(ExampleVector.bytes(other.hex))[PacketHeader.size...])
            let recoded = try #require(
                try ExampleVector.recode(payload, as: vector.type, limits: .standard)
            )
            #expect(recoded.elementsEqual(canonical), "\(other.name)")
        }
    }

    @Test(
        "are refused where they should be, with the text they should",
        arguments: ExampleVector.all.filter { !$0.reject.isEmpty }
    )
    func refusals(vector: ExampleVector) throws {
        for bad in vector.reject {
            let payload = Array(try #require(ExampleVector.bytes(bad.hex))[PacketHeader.size...])
            let limits = try Limits(overrides: bad.limits)
            let error = #expect(throws: PayloadError.self, "\(bad.name)") {
                try ExampleVector.recode(payload, as: vector.type, limits: limits)
            }
            #expect(error?.description == bad.error, "\(bad.name)")
        }
    }
}
