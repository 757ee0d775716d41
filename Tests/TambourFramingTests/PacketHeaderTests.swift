import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@Suite("packet headers")
struct PacketHeaderTests {
    @Test("the ten bytes are read and written where they belong")
    func layout() {
        let bytes = hex("0b 03 012c 0040 7f 123456")
        let header = bytes.withUnsafeBytes { PacketHeader($0) }
        #expect(
            header
                == PacketHeader(
                    version: 11,
                    command: 3,
                    sequence: 300,
                    opcode: 64,
                    flags: 127,
                    length: 0x123456
                )
        )
        var written = [UInt8](repeating: 0xEE, count: 11)
        written.withUnsafeMutableBytes { header.write(to: $0) }
        #expect(written == bytes + [0xEE])
    }

    @Test("examples seen on the wire")
    func examples() {
        var output: [UInt8] = []
        encodePacket(
            command: .request,
            sequence: 2,
            opcode: 1,
            payload: hex("81ab696e746572616374697665c3"),
            into: &output
        )
        encodePacket(command: .ok, sequence: 2, opcode: 1, payload: [0x80], into: &output)
        #expect(
            output
                == hex("0a000002000100 00000e 81ab696e746572616374697665c3")
                + hex("0a010002000100 000001 80")
        )
    }
}
