import TambourTesting
import Testing

@testable import TambourNet

@Suite("bytes that wait")
struct ByteStoreTests {
    @Test("come out as they went in, however they are moved about", arguments: 0..<20)
    func model(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model: [UInt8] = [1, 2, 3]
        let store = model.withUnsafeBytes { ByteStore($0) }
        for _ in 0..<2000 {
            let bytes = (0..<random.next() % 200).map { UInt8(truncatingIfNeeded: $0 &* seed) }
            switch random.next() % 8 {
            case 0:
                bytes.withUnsafeBytes { store.replace(with: $0) }
                model = bytes
            case 1, 2:
                bytes.withUnsafeBytes { store.append($0) }
                model += bytes
            case 3, 4:
                store.room(bytes.count).copyBytes(from: bytes)
                store.grew(by: bytes.count)
                model += bytes
            default:
                let count = Int(random.next() % UInt64(model.count + 1))
                store.dropFirst(count)
                model.removeFirst(count)
            }
            #expect(store.count == model.count && store.isEmpty == model.isEmpty)
            #expect(Array(store.bytes) == model)
        }
    }
}
