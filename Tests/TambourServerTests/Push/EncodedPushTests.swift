import Synchronization
import TambourProtocol
import Testing

@testable import TambourGateway

/// The recipients of a push, and the number of its encodings.
@Suite("Encoding a push")
struct EncodedPushTests {
    private static let first = Capabilities(rawValue: 1 << 61)
    private static let second = Capabilities(rawValue: 1 << 62)
    private static let third = Capabilities(rawValue: 1 << 63)

    /// A push whose payload contains the capabilities for which it was encoded.
    private final class Sample: WirePush {
        let opcode = Opcode.notifTyping
        let needs: Capabilities
        let gates: Capabilities
        private let padding: Int
        private let encodings = Mutex<[Capabilities]>([])

        /// - Parameter padding: The number of extra bytes, which compress well.
        init(needs: Capabilities = [], gates: Capabilities = [], padding: Int = 0) {
            self.needs = needs
            self.gates = gates
            self.padding = padding
        }

        var encoded: Int { encodings.withLock { $0.count } }

        func withEncoded<R>(
            for capabilities: Capabilities,
            _ body: (UnsafeRawBufferPointer) -> R
        ) -> R {
            encodings.withLock { $0.append(capabilities) }
            var bytes = withUnsafeBytes(of: capabilities.rawValue.bigEndian) { [UInt8]($0) }
            bytes += [UInt8](repeating: 0, count: padding)
            return bytes.withUnsafeBytes(body)
        }
    }

    /// Returns a function that gives the packet of one push for a client's capabilities.
    private func packets(of sample: Sample) -> (Capabilities) -> [UInt8]? {
        var push = EncodedPush(sample, limits: .standard)
        return {
            guard case .packet(let packet) = push.delivery(for: $0) else { return nil }
            return packet
        }
    }

    private func payload(_ packet: [UInt8]?) -> [UInt8]? { packet.map { Array($0.dropFirst(10)) } }

    @Test("once for everybody, when nothing in it needs a capability")
    func once() {
        let sample = Sample()
        let packet = packets(of: sample)
        let packets = [[], Self.first, .historyMore, [Self.first, Self.second]].map(packet)
        #expect(Set(packets).count == 1 && packets[0] != nil)
        #expect(sample.encoded == 1)
    }

    @Test("once for all who can read the same of it")
    func forms() {
        let sample = Sample(gates: [Self.first, Self.second])
        let packet = packets(of: sample)
        let forms: [Capabilities] = [
            [], Self.first, Self.second, [Self.first, Self.second],
        ]
        for _ in 0..<3 {
            for form in forms {
                for other in [Capabilities(), Self.third, .historyMore] {
                    let expected = withUnsafeBytes(of: form.rawValue.bigEndian) { [UInt8]($0) }
                    #expect(payload(packet(form.union(other))) == expected)
                }
            }
        }
        #expect(sample.encoded == forms.count)
    }

    @Test("compressed each way a client can inflate")
    func compression() throws {
        let sample = Sample(padding: 150_000)
        let packet = packets(of: sample)
        let plain = try #require(packet([]))
        let large = try #require(packet(.lz4Large))
        #expect(plain.count > 150_000 && large.count < 2_000)
        #expect(packet(.historyMore) == plain)
        #expect(sample.encoded == 2)
    }

    @Test("not at all for who lacks what it needs")
    func needs() {
        let sample = Sample(needs: [Self.first, Self.second])
        let packet = packets(of: sample)
        #expect(packet([]) == nil)
        #expect(packet(Self.first) == nil)
        #expect(packet([Self.second, Self.third]) == nil)
        #expect(sample.encoded == 0)
        #expect(packet([Self.first, Self.second, Self.third]) != nil)
    }

    @Test("what no client can read is not sent", arguments: [(1 << 20) - 7, 1 << 24])
    func tooLong(padding: Int) {
        var push = EncodedPush(Sample(padding: padding), limits: .standard)
        guard case .tooLong(let bytes) = push.delivery(for: []) else {
            Issue.record("a payload of \(padding) bytes has a packet")
            return
        }
        #expect(bytes == 8 + padding)
    }
}
