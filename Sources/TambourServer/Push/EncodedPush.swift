import TambourProtocol

/// A push on its way out of one lane: encoded once for everybody, compressed once a way.
///
/// Only the sequence number differs between receivers; it is put in when the packet leaves.
struct EncodedPush {
    private let push: Push
    private let compressFrom: Int
    private var classic: [UInt8]?
    private var large: [UInt8]?

    /// Costs nothing until somebody is to receive it.
    init(_ push: Push, limits: Limits) {
        self.push = push
        compressFrom = limits.compressFromBytes
    }

    /// The whole packet with sequence number 0.
    mutating func packet(_ compression: Compression) -> [UInt8] {
        switch compression {
        case .large:
            if let large { return large }
            let packet = encode(.large)
            large = packet
            return packet
        case .classic, .none:
            if let classic { return classic }
            let packet = encode(.classic)
            classic = packet
            return packet
        }
    }

    private func encode(_ compression: Compression) -> [UInt8] {
        push.withEncoded { payload in
            var packet: [UInt8] = []
            encodePacket(
                command: .request,
                sequence: 0,
                opcode: push.opcode.rawValue,
                payload: payload,
                compression: compression,
                compressFrom: compressFrom,
                into: &packet
            )
            return packet
        }
    }
}
