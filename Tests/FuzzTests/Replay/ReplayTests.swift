import Foundation
import FuzzTargets
import Testing

@testable import tambour_spec

/// Runs the fuzz targets without a fuzzer. The inputs are those that once broke a target, and
/// examples of the specification in which one byte is changed.
@Suite("Fuzz targets")
struct ReplayTests {
    private static let here = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("inputs that once broke a target do so no longer", arguments: FuzzTarget.allCases)
    func regressions(target: FuzzTarget) throws {
        let folder = Self.here.appending(path: "Regressions/\(target.rawValue)")
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        for name in (names ?? []).sorted() {
            target.run([UInt8](try Data(contentsOf: folder.appending(path: name))))
        }
    }

    @Test("every example passes each target that reads packets, whole and with any byte changed")
    func examples() throws {
        let root = Self.here.deletingLastPathComponent().deletingLastPathComponent()
        var loader = SpecificationLoader(root: root.appending(path: "protocol-spec"))
        let specification = loader.load()
        let served = specification.clientOpcodes.map(\.number)
        var count = 0
        for file in specification.examples {
            let number = specification.opcode(named: file.opcode)?.number ?? 0
            for example in file.examples {
                guard let packet = example.hex.flatMap(Hex.bytes) else { continue }
                let payload = Array(packet.dropFirst(10))
                FuzzTarget.frame.run([1] + packet)
                FuzzTarget.messagepack.run(payload)
                guard example.role == .request, let index = served.firstIndex(of: number) else {
                    continue
                }
                let head = [UInt8(index >> 8), UInt8(index & 0xFF)]
                FuzzTarget.request.run(head + payload)
                for place in payload.indices {
                    var changed = payload
                    changed[place] ^= 1 << UInt8(place % 8)
                    FuzzTarget.request.run(head + changed)
                }
                count += 1
            }
        }
        #expect(count > 100)
    }
}
