import Foundation
import TambourFraming
import TambourProtocol
import Testing

/// The first example of each request in the specification: a packet that decodes, whatever its
/// result.
enum ExampleRequests {
    static let payloads: [Opcode: [UInt8]] = {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let bundle = "protocol-spec/conformance/src/tambour_conformance/protocol.json"
        struct Bundle: Decodable {
            struct Example: Decodable {
                let opcode: String
                let role: String
                let hex: String
            }
            let examples: [Example]
        }
        guard
            let data = try? Data(contentsOf: root.appendingPathComponent(bundle)),
            let examples = try? JSONDecoder().decode(Bundle.self, from: data).examples
        else { preconditionFailure("\(bundle) is committed") }
        let numbers = Dictionary(
            uniqueKeysWithValues: requests.map { ($0.name, $0.opcode) }
        )
        var payloads: [Opcode: [UInt8]] = [:]
        for example in examples where example.role == "request" {
            guard let opcode = numbers[example.opcode], payloads[opcode] == nil else { continue }
            payloads[opcode] = Array(bytes(example.hex).dropFirst(PacketHeader.size))
        }
        return payloads
    }()

    /// All requests that the server serves.
    static let requests: [OpInfo] = OpInfo.table.compactMap(\.self).filter { $0.cost != nil }

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
    }
}
