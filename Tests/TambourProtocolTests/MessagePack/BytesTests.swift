import TambourProtocol
import Testing

@Suite("bytes")
struct BytesTests {
    @Test("a range of an array is equal to another array with those bytes")
    func ranges() {
        let owner: [UInt8] = [1, 2, 3, 4, 5]
        let range = Bytes(owner, range: 1..<4)
        #expect(range == Bytes([2, 3, 4]) && range.hashValue == Bytes([2, 3, 4]).hashValue)
        #expect(range != Bytes([2, 3, 5]) && range != Bytes([2, 3]))
        #expect(range.count == 3 && !range.isEmpty && range.array == [2, 3, 4])
        #expect(Bytes(owner).array == owner)
        #expect(Bytes.empty.isEmpty && Bytes.empty == Bytes(owner, range: 5..<5))
        #expect(Bytes.empty.withUnsafeBytes { $0.count } == 0)
        #expect(range.withUnsafeBytes { Array($0) } == [2, 3, 4])
    }

    @Test("what a payload holds is not copied out of it")
    func noCopies() throws {
        let payload = SampleMessage.full.encoded()
        let message = try SampleMessage.decode(payload, limits: .standard)
        let text = message.text.bytes
        let hash = try #require(message.hash)
        let packed = try #require(message.packed?.bytes)
        payload.withUnsafeBytes { owner in
            let whole = address(owner)..<address(owner) + owner.count
            for bytes in [text, hash, packed] {
                #expect(whole.contains(bytes.withUnsafeBytes { address($0) }))
            }
        }
    }

    private func address(_ bytes: UnsafeRawBufferPointer) -> Int {
        Int(bitPattern: bytes.baseAddress)
    }
}
