import TambourFraming
import TambourProtocol

/// A push for the receivers on one lane. Receivers that need the same bytes share one encoding.
///
/// The bytes depend on compression and on the capabilities that affect this push. Only the sequence
/// number differs for each receiver. It is set when the packet is written.
struct EncodedPush<Content: WirePush> {
    /// The form of a push for one receiver.
    enum Delivery {
        /// The whole packet with sequence number 0.
        case packet([UInt8])
        /// No packet, because the receiver lacks a capability that the push needs.
        case nothing
        /// No packet, because the payload is longer than clients accept. The value is its length in
        /// bytes.
        case tooLong(Int)
    }

    /// The form for receivers with these capabilities. The set contains only capabilities that
    /// affect the bytes.
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
    /// The capabilities that affect the bytes.
    private let matters: Capabilities
    /// Two forms are stored inline, because most pushes have at most two forms: with and without
    /// `lz4Large`.
    private var first: Form?
    private var second: Form?
    private var others: [Form] = []

    /// Creates a push without encoding it. The first delivery encodes it.
    ///
    /// - Parameter isCompressed: false for a push to a single receiver.
    init(_ push: Content, limits: Limits, isCompressed: Bool = true) {
        self.push = push
        self.isCompressed = isCompressed
        compressFrom = limits.compressFromBytes
        mostBytes = limits.mostPayloadBytes
        needs = push.needs
        matters = push.gates.union(.lz4Large)
    }

    /// Returns the form for these capabilities. The first call for each set of capabilities encodes
    /// the push.
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
