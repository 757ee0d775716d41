import TambourFraming
import TambourProtocol
import Testing

@testable import tambour_spec

/// A packet from the specification's examples, and what the dissector must show for it.
struct Specimen {
    var name: String
    var opcode: OpcodeEntry
    var role: Example.Role
    var packet: [UInt8]
    /// The decoded payload; nil if the payload is not MessagePack.
    var value: WireNode?
    var type: StructType
    /// The problem that the specification states for this packet.
    var problem: String?

    var isToServer: Bool { role == .request }
    var segment: Segment { Segment(isToServer: isToServer, bytes: packet) }

    /// Fields of the header. `wireLength` is the real number of payload bytes. The length in the
    /// header may differ.
    var sequence: Int { Int(packet[2]) << 8 | Int(packet[3]) }
    var flags: Int { Int(packet[6]) }
    var wireLength: Int { packet.count - 10 }

    /// Returns all examples, all their alternative encodings, and all refusals that do not need a
    /// lowered limit.
    static func all(in specification: Specification) throws -> [Specimen] {
        var specimens: [Specimen] = []
        for file in specification.examples {
            let opcode = try #require(specification.opcode(named: file.opcode))
            for example in file.examples {
                let type = try #require(
                    ExampleCheck.type(of: example, opcode: opcode, in: specification)
                )
                func add(_ name: String, _ hex: String?, _ value: WireNode?, _ problem: String?)
                    throws
                {
                    let packet = try #require(hex.flatMap(Hex.bytes))
                    specimens.append(
                        Specimen(
                            name: "\(opcode.name) \(example.role.rawValue): \(name)",
                            opcode: opcode,
                            role: example.role,
                            packet: packet,
                            value: value ?? (try? WireDecoder.decode(Array(packet[10...]))),
                            type: type,
                            problem: problem
                        )
                    )
                }
                try add(example.name, example.hex, example.value, nil)
                for accept in example.accepts { try add(accept.name, accept.hex, nil, nil) }
                for reject in example.rejects where reject.limits.isEmpty {
                    try add(reject.name, reject.hex, nil, reject.error)
                }
            }
        }
        try #require(specimens.count > 150)
        return specimens
    }

    /// Returns the packet with its payload in an LZ4 block. If compression saves no bytes, the
    /// block contains only literals.
    func compressed() -> Specimen {
        let payload = Array(packet[10...])
        let block =
            payload.withUnsafeBytes { LZ4.compress($0) } ?? Self.literals(payload)
        var specimen = self
        specimen.name += ", compressed"
        specimen.packet = Array(packet[..<6])
        specimen.packet.append(UInt8(payload.count / block.count + 1))
        specimen.packet += [16, 8, 0].map { UInt8(truncatingIfNeeded: block.count >> $0) }
        specimen.packet += block
        return specimen
    }

    private static func literals(_ payload: [UInt8]) -> [UInt8] {
        guard payload.count >= 15 else { return [UInt8(payload.count << 4)] + payload }
        let left = payload.count - 15
        return [0xF0] + Array(repeating: 255, count: left / 255) + [UInt8(left % 255)] + payload
    }
}

/// LZ4 blocks with one match near the end of the block. Some are legal, others are illegal.
enum EdgeBlocks {
    static let all: [[UInt8]] = {
        var blocks: [[UInt8]] = []
        for before in [1, 2, 8, 14] {
            for match in [4, 5, 7, 8, 11, 12, 18, 19, 20, 33] {
                for after in 0...9 {
                    let more = match - 4
                    let token = UInt8(before << 4 | min(more, 15))
                    blocks.append(
                        [token] + Array(repeating: 0x80, count: before) + [1, 0]
                            + (more < 15 ? [] : [UInt8(more - 15)]) + [UInt8(after << 4)]
                            + Array(repeating: 0x80, count: after)
                    )
                }
            }
        }
        return blocks
    }()
}
