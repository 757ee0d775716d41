import Foundation

/// Formats packets as text for people, and checks them against the specification.
///
///     offset 0: MSG_SEND request, seq 23
///       ver 10, cmd 0 (request or push), seq 23, opcode 64 (MSG_SEND), flags 0 (plain), length 22
///       chatId: 3
///       message: 1 key
///         text: "hi"
///         # /message/cid: missing
struct PacketText {
    let specification: Specification
    private var payloadText: PayloadText

    init(specification: Specification) {
        self.specification = specification
        payloadText = PayloadText(specification: specification)
    }

    /// Whether the text shows tokens, codes and phone numbers.
    var showsSecrets: Bool {
        get { payloadText.showsSecrets }
        set { payloadText.showsSecrets = newValue }
    }

    static let headerSize = 10

    /// The reason why the bytes are not a valid packet. `offset` is the position in bytes.
    struct Failure: Error, Equatable, CustomStringConvertible {
        var offset: Int
        var reason: String

        var description: String { "offset \(offset): \(reason)" }
    }

    /// The ten bytes before a payload.
    struct Header {
        var version: Int
        var command: Int
        var sequence: Int
        var opcode: Int
        var flags: Int
        var length: Int

        /// - Parameter bytes: The ten bytes.
        init(_ bytes: ArraySlice<UInt8>) {
            func number(_ from: Int, _ width: Int) -> Int {
                bytes.dropFirst(from).prefix(width).reduce(0) { $0 << 8 | Int($1) }
            }
            version = number(0, 1)
            command = number(1, 1)
            sequence = number(2, 2)
            opcode = number(4, 2)
            flags = number(6, 1)
            length = number(7, 3)
        }
    }

    /// Returns the reason why a header is invalid; nil if the header is valid. The wording equals
    /// the wording of the runtime's errors.
    func problem(of header: Header) -> String? {
        guard specification.acceptedVersions.contains(header.version) else {
            let accepted = specification.acceptedVersions.map(String.init)
            return
                "protocol version \(header.version), expected \(accepted.joined(separator: " or "))"
        }
        guard header.command <= 3 else { return "command \(header.command), expected 0 to 3" }
        let limit = limit("maxFrameBytes")
        guard header.length <= limit else {
            return "a payload of \(header.length) bytes, limit \(limit)"
        }
        return nil
    }

    private func limit(_ name: String) -> Int {
        specification.limit(named: name)?.value ?? .max
    }

    /// Writes one packet as lines.
    /// - Parameter wire: The payload as it was sent, possibly compressed. Its size is the length in
    ///   the header.
    /// - Throws: `Failure` if the payload cannot be read. The lines of the header are written
    ///   before that.
    func decode(
        _ header: Header,
        _ wire: [UInt8],
        at offset: Int,
        line: (String) -> Void
    ) throws(Failure) {
        var facts = [
            "ver \(header.version)", "cmd \(header.command) (\(command(of: header)))",
            "seq \(header.sequence)", "opcode \(header.opcode) (\(name(of: header) ?? "unknown"))",
            "flags \(header.flags) (\(compression(of: header)))", "length \(header.length)",
        ]
        let payload: [UInt8]
        var problem: Failure?
        do throws(WireBlock.Failure) {
            payload = try inflate(wire, header.flags)
            if header.flags != 0 { facts.append("inflated \(payload.count)") }
        } catch {
            payload = []
            problem = Failure(
                offset: offset + Self.headerSize,
                reason: "payload: \(error.description)"
            )
        }
        var node: WireNode?
        if problem == nil {
            do throws(WireDecoder.Failure) {
                node = try WireDecoder.decode(
                    payload,
                    bounds: .init(depth: limit("maxDepth"), elements: limit("maxElements"))
                )
            } catch {
                // If the payload is compressed, only the position of its start is known.
                problem =
                    header.flags == 0
                    ? Failure(
                        offset: offset + Self.headerSize + error.offset,
                        reason: "payload: \(error.description)"
                    )
                    : Failure(
                        offset: offset + Self.headerSize,
                        reason:
                            "payload: byte \(error.offset) of what it inflates to: \(error.description)"
                    )
            }
        }

        let opcode = opcode(of: header)
        let role = role(of: header, opcode, node)
        let title = name(of: header) ?? "opcode \(header.opcode)"
        line("offset \(offset): \(title) \(role.name), seq \(header.sequence)")
        line("  " + facts.joined(separator: ", "))
        if let node {
            for one in payloadText.lines(of: node, as: role.type) { line("  " + one) }
            if role.name == "error", let meaning = meaning(of: node) { line("  # \(meaning)") }
        }
        if let problem { throw problem }
    }

    private func inflate(
        _ wire: [UInt8],
        _ flags: Int
    ) throws(WireBlock.Failure) -> [UInt8] {
        switch flags {
        case 0: wire
        case 255: throw WireBlock.Failure(description: "zstd is not supported")
        default: try WireBlock.inflate(wire, limit: limit("maxInflatedBytes"))
        }
    }

    private func command(of header: Header) -> String {
        switch header.command {
        case 0: "request or push"
        case 1: "reply"
        case 2: "not found"
        default: "error"
        }
    }

    private func compression(of header: Header) -> String {
        switch header.flags {
        case 0: "plain"
        case 255: "zstd"
        default: "LZ4 block"
        }
    }

    private func opcode(of header: Header) -> OpcodeEntry? {
        specification.families.lazy.flatMap(\.opcodes).first { $0.number == header.opcode }
    }

    private func known(_ header: Header) -> Specification.KnownOpcode? {
        specification.families.lazy.flatMap(\.known).first { $0.number == header.opcode }
    }

    private func name(of header: Header) -> String? {
        opcode(of: header)?.name ?? known(header)?.name
    }

    /// Returns the role of a packet and the struct of its payload; nil if the specification defines
    /// no struct.
    private func role(
        of header: Header,
        _ opcode: OpcodeEntry?,
        _ node: WireNode?
    ) -> (name: String, type: StructType?) {
        switch header.command {
        case 1: return ("reply", opcode?.reply)
        case 2: return ("not found", nil)
        case 3: return ("error", specification.structType(named: "ErrorReply"))
        default: break
        }
        switch opcode?.direction ?? known(header)?.direction {
        case .clientToServer?: return ("request", opcode?.request)
        case .serverToClient?: return ("push", opcode?.push)
        default: break
        }
        // Both sides may send this opcode. A payload that fits only the request counts as a
        // request; any other payload counts as a push.
        let model = PayloadModel(specification: specification)
        guard let push = opcode?.push, let request = opcode?.request else {
            return ("request or push", opcode?.push ?? opcode?.request)
        }
        let isPush = node.map { (try? model.canonical($0, as: push)) != nil } ?? false
        let isRequest = node.map { (try? model.canonical($0, as: request)) != nil } ?? false
        return isRequest && !isPush ? ("request", request) : ("push", push)
    }

    /// Returns the meaning of the error code in an error payload; nil if the payload contains no
    /// code.
    private func meaning(of node: WireNode) -> String? {
        guard case .string(let code)? = node["error"] else { return nil }
        guard let error = specification.errors.first(where: { $0.code == code }) else {
            return "\(PayloadText.escaped(code)): a code the specification does not know"
        }
        return
            "\(code) (\(error.errorClass.rawValue), retry \(error.retry.rawValue)): \(error.when)"
    }
}
