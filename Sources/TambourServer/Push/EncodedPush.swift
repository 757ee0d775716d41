import TambourProtocol
import TambourStore

extension Push {
    /// The opcode and payload that travel.
    func encoded() -> (opcode: Opcode, payload: [UInt8]) {
        switch self {
        case .message(let push): (.notifMessage, push.encoded())
        case .typing(let push): (.notifTyping, push.encoded())
        case .mark(let push): (.notifMark, push.encoded())
        case .presence(let push): (.notifPresence, push.encoded())
        case .chat(let push): (.notifChat, push.encoded())
        case .messagesDeleted(let push): (.notifMsgDelete, push.encoded())
        }
    }
}

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
        let (opcode, payload) = push.encoded()
        var packet: [UInt8] = []
        encodePacket(
            command: .request,
            sequence: 0,
            opcode: opcode.rawValue,
            payload: payload,
            compression: compression,
            compressFrom: compressFrom,
            into: &packet
        )
        return packet
    }
}
