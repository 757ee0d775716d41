import TambourProtocol
import TambourTesting
import Testing

@Suite("values kept as their bytes")
struct PackedTests {
    @Test("a packed value is read, written and unpacked without change")
    func roundTrip() throws {
        let value = [SampleAttach(type: "SHARE", size: 1), SampleAttach(type: "CONTACT", size: -1)]
        let packed = Packed(value)
        #expect(packed.bytes.array == encode(value))
        #expect(try packed.value(limits: .standard) == value)
        #expect(try decode(Packed<[SampleAttach]>.self, encode(packed)) == packed)
        #expect(encode(packed) == encode(value))
        // Decoding from the middle of a longer array works, too.
        let pair = try decode([Packed<[SampleAttach]>].self, encode([packed, packed]))
        #expect(try pair == [packed, packed] && pair[1].value(limits: .standard) == value)
    }

    @Test("what a store hands back broken is an error, not a crash")
    func broken() {
        let packed = Packed<[SampleAttach]>(unchecked: Bytes([0x91]))
        #expect(
            complaint { () throws(PayloadError) in try packed.value(limits: .standard) }
                == "ends after 1 byte"
        )
        let longer = Packed<[SampleAttach]>(unchecked: Bytes([0x90, 0]))
        #expect(
            complaint { () throws(PayloadError) in try longer.value(limits: .standard) }
                == "1 byte after the payload"
        )
        #expect(
            complaint { () throws(PayloadError) in
                try Packed<Int64>(unchecked: .empty).value(limits: .standard)
            } == "ends after 0 bytes"
        )
    }

    @Test("any value is kept as it came, long forms and all")
    func anyValue() throws {
        let bytes = hex("de0002 a161 cd0001 05 93 c0 d40505 ca3f000000")
        let value = try decode(AnyValue.self, bytes)
        #expect(value.bytes.array == bytes && encode(value) == bytes)
        #expect(try decode([AnyValue].self, hex("92 01") + bytes)[1] == value)
    }
}
