import TambourProtocol

/// A push on its way out of one lane: encoded once for all readers who are sent the same bytes.
///
/// These differ by compression, and by the capabilities that decide what is written. Only the
/// sequence number differs between receivers; it is put in when the packet leaves.
struct EncodedPush<Content: WirePush> {
    /// What a reader gets.
    enum Delivery {
        /// The whole packet with sequence number 0.
        case packet([UInt8])
        /// Nothing: the reader did not name a capability that the push needs.
        case nothing
        /// Nothing, although the push is for this reader: its payload has more bytes than clients read.
        case tooLong(Int)
    }

    /// What goes to readers with these of the capabilities that matter.
    private struct Form {
        let capabilities: Capabilities
        let delivery: Delivery
    }

    private let push: Content

    var opcode: Opcode { push.opcode }
    private let compressFrom: Int
    private let isCompressed: Bool
    private let mostBytes: Int
    private let needs: Capabilities
    /// Capabilities that make a difference to the bytes.
    private let matters: Capabilities
    /// Two in place: most pushes differ by compression alone.
    private var first: Form?
    private var second: Form?
    private var others: [Form] = []

    /// Costs nothing until somebody is to receive it.
    ///
    /// - Parameter isCompressed: false for what one reader alone gets.
    init(_ push: Content, limits: Limits, isCompressed: Bool = true) {
        self.push = push
        self.isCompressed = isCompressed
        compressFrom = limits.compressFromBytes
        mostBytes = limits.mostPayloadBytes
        needs = push.needs
        matters = push.gates.union(.lz4Large)
    }

    /// What a reader with these capabilities gets; encoded when the first such reader is met.
    mutating func delivery(for capabilities: Capabilities) -> Delivery {
        guard capabilities.isSuperset(of: needs) else { return .nothing }
        let capabilities = capabilities.intersection(matters)
        if let first, first.capabilities == capabilities { return first.delivery }
        if let second, second.capabilities == capabilities { return second.delivery }
        if let other = others.first(where: { $0.capabilities == capabilities }) {
            return other.delivery
        }
        let form = Form(capabilities: capabilities, delivery: encode(for: capabilities))
        if first == nil {
            first = form
        } else if second == nil {
            second = form
        } else {
            others.append(form)
        }
        return form.delivery
    }

    private func encode(for capabilities: Capabilities) -> Delivery {
        push.withEncoded(for: capabilities) { payload in
            guard payload.count <= mostBytes else { return .tooLong(payload.count) }
            var packet: [UInt8] = []
            encodePacket(
                command: .request,
                sequence: 0,
                opcode: push.opcode.rawValue,
                payload: payload,
                compression: isCompressed ? Compression(for: capabilities) : .none,
                compressFrom: compressFrom,
                into: &packet
            )
            return .packet(packet)
        }
    }
}

extension Limits {
    /// What a reply may hold beyond the page it is cut to, bytes: with the standard limits 1 MiB in all,
    /// which every known client reads.
    private static let replySlack = 124 * 1024

    /// The longest payload that is sent: a page with what surrounds it, and what a frame can hold.
    var mostPayloadBytes: Int {
        min(
            maxReplyBytes.addingReportingOverflow(Self.replySlack).partialValue,
            PacketHeader.maxLength
        )
    }
}
