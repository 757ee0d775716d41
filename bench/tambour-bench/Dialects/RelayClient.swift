/// Speaks the protocol of `bench/limits/relay`. A packet has a length, a type, a number and a body.
final class RelayClient: LoadClient {
    enum Target {
        case nobody
        case user(UInt32)
        case group(UInt32)
    }

    private enum Kind {
        static let hello: UInt8 = 0
        static let toUser: UInt8 = 1
        static let toGroup: UInt8 = 2
        static let join: UInt8 = 3
        static let acknowledgement: UInt8 = 4
    }

    private static let headerSize = 9

    private let target: Target
    private let group: UInt32?

    init(index: Int, sink: any LoadSink, target: Target, group: UInt32? = nil) {
        self.target = target
        self.group = group
        super.init(index: index, sink: sink)
    }

    override func opened() {
        write(kind: Kind.hello, number: UInt32(index))
    }

    override func send(_ text: Bytes100, number: UInt32) {
        switch target {
        case .nobody: break
        case .user(let user): write(kind: Kind.toUser, number: user, body: text)
        case .group(let group): write(kind: Kind.toGroup, number: group, body: text)
        }
    }

    override func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        var offset = 0
        while bytes.count - offset >= Self.headerSize {
            let length = Int(
                UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            )
            let end = offset + 4 + length
            guard end <= bytes.count else { break }
            let body = UnsafeRawBufferPointer(rebasing: bytes[(offset + Self.headerSize)..<end])
            switch bytes[offset + 4] {
            case Kind.hello:
                if let group { write(kind: Kind.join, number: group) } else { sink.ready(self) }
            case Kind.join: sink.ready(self)
            case Kind.acknowledgement: sink.acknowledged(self)
            default:
                if let number = Corpus.number(in: body) { sink.delivered(number, to: self) }
            }
            offset = end
        }
        return offset
    }

    private func write(kind: UInt8, number: UInt32, body: [UInt8] = []) {
        withUnsafeTemporaryAllocation(
            byteCount: Self.headerSize + body.count,
            alignment: 1
        ) { frame in
            let length = UInt32(5 + body.count)
            frame.storeBytes(of: length.bigEndian, toByteOffset: 0, as: UInt32.self)
            frame[4] = kind
            frame.storeBytes(of: number.bigEndian, toByteOffset: 5, as: UInt32.self)
            UnsafeMutableRawBufferPointer(rebasing: frame[Self.headerSize...]).copyBytes(from: body)
            write(UnsafeRawBufferPointer(frame))
        }
    }
}
