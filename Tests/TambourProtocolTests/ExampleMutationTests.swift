import Foundation
import TambourProtocol
import Testing

/// Cuts every example at every byte and changes every byte. The decoder must decode or refuse the
/// result.
///
/// `TAMBOUR_SOAK=1` tries every value of every byte; otherwise the tests flip each bit and try the
/// bytes that start containers.
@Suite("Examples with a byte changed")
struct ExampleMutationTests {
    private static let isSoak = ProcessInfo.processInfo.environment["TAMBOUR_SOAK"] != nil

    @Test("are refused when cut short", arguments: ExampleVector.all)
    func prefixes(vector: ExampleVector) throws {
        let payload = vector.payload
        for count in 1..<max(payload.count, 1) {
            #expect(throws: PayloadError.self, "\(count) bytes") {
                try ExampleVector.recode(
                    Array(payload.prefix(count)),
                    as: vector.type,
                    limits: .standard
                )
            }
        }
    }

    @Test("encode to what decodes to the same", arguments: ExampleVector.all)
    func mutations(vector: ExampleVector) throws {
        let payload = vector.payload
        var mutant = payload
        for index in payload.indices {
            for value in Self.values(insteadOf: payload[index]) {
                mutant[index] = value
                guard let once = try? recode(mutant, vector) else { continue }
                let twice = try recode(once, vector)
                if twice != once {
                    Issue.record("byte \(index) as \(value): not the same twice")
                }
            }
            mutant[index] = payload[index]
        }
    }

    private func recode(_ payload: [UInt8], _ vector: ExampleVector) throws -> [UInt8]? {
        try ExampleVector.recode(payload, as: vector.type, limits: .standard)
    }

    private static func values(insteadOf byte: UInt8) -> [UInt8] {
        if isSoak { return (0...255).filter { $0 != byte } }
        return (0..<8).map { byte ^ (1 << $0) } + [0x8F, 0x9F, 0xC0, 0xC1, 0xDB, 0xDD, 0xDF, 0xC9]
    }
}
