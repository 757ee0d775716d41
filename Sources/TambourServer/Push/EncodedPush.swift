import TambourProtocol

/// A push on its way out of one lane: encoded once for all readers who are sent the same bytes.
///
/// These differ by compression, and by the capabilities that decide what is written. Only the
/// sequence number differs between receivers; it is put in when the packet leaves.
struct EncodedPush<Content: WirePush> {
    /// What goes to readers with these of the capabilities that matter.
    private struct Form {
        let capabilities: Capabilities
        let packet: [UInt8]
    }

    private let push: Content
    private let compressFrom: Int
    private let needs: Capabilities
    /// Capabilities that make a difference to the bytes.
    private let matters: Capabilities
    /// Two in place: most pushes differ by compression alone.
    private var first: Form?
    private var second: Form?
    private var others: [Form] = []

    /// Costs nothing until somebody is to receive it.
    init(_ push: Content, limits: Limits) {
        self.push = push
        compressFrom = limits.compressFromBytes
        needs = push.needs
        matters = push.gates.union(.lz4Large)
    }

    /// The whole packet with sequence number 0; nil when such a client is not sent it.
    mutating func packet(for capabilities: Capabilities) -> [UInt8]? {
        guard capabilities.isSuperset(of: needs) else { return nil }
        let capabilities = capabilities.intersection(matters)
        if let first, first.capabilities == capabilities { return first.packet }
        if let second, second.capabilities == capabilities { return second.packet }
        if let other = others.first(where: { $0.capabilities == capabilities }) {
            return other.packet
        }
        let form = Form(capabilities: capabilities, packet: encode(for: capabilities))
        if first == nil {
            first = form
        } else if second == nil {
            second = form
        } else {
            others.append(form)
        }
        return form.packet
    }

    private func encode(for capabilities: Capabilities) -> [UInt8] {
        push.withEncoded(for: capabilities) { payload in
            var packet: [UInt8] = []
            encodePacket(
                command: .request,
                sequence: 0,
                opcode: push.opcode.rawValue,
                payload: payload,
                compression: Compression(for: capabilities),
                compressFrom: compressFrom,
                into: &packet
            )
            return packet
        }
    }
}
