/// Checks every example with the schema and an independent codec. The value must encode to the
/// bytes of the example. The bytes of `accept` must decode to the value, and the bytes of `reject`
/// must fail with the given error.
struct ExampleCheck {
    let specification: Specification
    private(set) var problems: [Problem] = []

    static func problems(of specification: Specification) -> [Problem] {
        var check = ExampleCheck(specification: specification)
        for file in specification.examples { check.check(file) }
        check.checkCoverage()
        return check.problems
    }

    /// Returns the packet of an example: its header and the payload.
    static func packet(_ example: Example, opcode: Int, payload: [UInt8]) -> [UInt8] {
        let sequence = UInt16(truncatingIfNeeded: example.sequence)
        let number = UInt16(truncatingIfNeeded: opcode)
        return [
            10, example.command, UInt8(sequence >> 8), UInt8(sequence & 0xFF), UInt8(number >> 8),
            UInt8(number & 0xFF), 0, UInt8(payload.count >> 16 & 0xFF),
            UInt8(payload.count >> 8 & 0xFF),
            UInt8(payload.count & 0xFF),
        ] + payload
    }

    /// Returns the struct of an example's payload; nil if the opcode has no payload for this role.
    static func type(of example: Example, opcode: OpcodeEntry, in specification: Specification)
        -> StructType?
    {
        switch example.role {
        case .request: opcode.request
        case .reply: opcode.reply
        case .push: opcode.push
        case .error: specification.structType(named: "ErrorReply")
        }
    }

    private mutating func complain(_ origin: Origin, _ text: String) {
        problems.append(Problem(origin: origin, text: text))
    }

    private mutating func check(_ file: ExampleFile) {
        guard let opcode = specification.opcode(named: file.opcode) else {
            complain(file.origin, "unknown opcode \(file.opcode)")
            return
        }
        for example in file.examples {
            guard let type = Self.type(of: example, opcode: opcode, in: specification) else {
                complain(example.origin, "\(opcode.name) has no \(example.role.rawValue)")
                continue
            }
            check(example, of: opcode, as: type)
        }
    }

    private mutating func check(_ example: Example, of opcode: OpcodeEntry, as type: StructType) {
        guard let value = example.value else {
            complain(example.origin, "has no value")
            return
        }
        let model = PayloadModel(specification: specification)
        let plain = example.plain ?? value
        var canonical: WireNode
        do {
            canonical = try model.canonical(plain, as: type)
        } catch {
            complain(example.origin, "the value is refused: \(error)")
            return
        }
        let isPlain = canonical == plain
        if let dialect = example.dialect {
            if !specification.isDialect(dialect) {
                complain(example.origin, "unknown dialect \(dialect)")
            }
            canonical = model.projected(canonical, as: type, in: dialect)
        }
        if example.plain == value {
            complain(example.origin, "the dialect changes nothing of it: leave out \"plain\"")
        }
        if !isPlain || canonical != value {
            complain(
                example.origin,
                "the value is not what the server would write: unknown keys, another order or a missing default"
            )
        }
        let expected = Hex.text(
            Self.packet(example, opcode: opcode.number, payload: WireEncoder.encode(canonical))
        )
        if example.hex != expected { complain(example.origin, "the value encodes to \(expected)") }
        if example.role == .error { checkError(value, example, of: opcode) }
        for accept in example.accepts {
            if let wire = accept.wire { compare(accept.hex, wire, example, opcode, accept.origin) }
            switch payload(accept.hex, accept.origin) {
            case .success(let node)?:
                do {
                    if try model.canonical(node, as: type) != canonical {
                        complain(accept.origin, "decodes to another value")
                    }
                } catch {
                    complain(accept.origin, "is refused: \(error)")
                }
            case .failure(let failure)?: complain(accept.origin, "is refused: \(failure)")
            case nil: break
            }
        }
        for reject in example.rejects {
            if let wire = reject.wire { compare(reject.hex, wire, example, opcode, reject.origin) }
            var model = model
            model.overrides = reject.limits
            for name in reject.limits.keys where specification.limit(named: name) == nil {
                complain(reject.origin, "unknown limit \(name)")
            }
            guard let payload = payload(reject.hex, reject.origin) else { continue }
            switch payload {
            case .failure(let failure):
                // The decoder rejects malformed MessagePack before the schema applies, so this
                // error contains no path to a field.
                if reject.error != "\(failure)", !reject.error.hasSuffix(": \(failure)") {
                    complain(reject.origin, "is refused with: \(failure)")
                }
            case .success(let node):
                do throws(PayloadModel.Refusal) {
                    _ = try model.canonical(node, as: type)
                    complain(reject.origin, "is not refused")
                } catch {
                    if reject.error != error.description {
                        complain(reject.origin, "is refused with: \(error)")
                    }
                }
            }
        }
    }

    private mutating func compare(
        _ hex: String?,
        _ wire: WireNode,
        _ example: Example,
        _ opcode: OpcodeEntry,
        _ origin: Origin
    ) {
        let expected = Hex.text(
            Self.packet(example, opcode: opcode.number, payload: WireEncoder.encode(wire))
        )
        if hex != expected { complain(origin, "encodes to \(expected)") }
    }

    /// Decodes the payload of a packet. If the bytes are not a packet, reports a problem and
    /// returns nil.
    private mutating func payload(
        _ hex: String?,
        _ origin: Origin
    ) -> Result<WireNode, WireDecoder.Failure>? {
        guard let hex, let bytes = Hex.bytes(hex), bytes.count >= 10,
            Int(bytes[7]) << 16 | Int(bytes[8]) << 8 | Int(bytes[9]) == bytes.count - 10
        else {
            complain(origin, "the bytes are no packet")
            return nil
        }
        return Result { () throws(WireDecoder.Failure) in
            try WireDecoder.decode(Array(bytes[10...]))
        }
    }

    private mutating func checkError(_ value: WireNode, _ example: Example, of opcode: OpcodeEntry)
    {
        guard case .string(let code)? = value["error"],
            let error = specification.errors.first(where: { $0.code == code })
        else {
            complain(example.origin, "the code is not in errors.yaml")
            return
        }
        if !error.isCommon, !opcode.errors.contains(code) {
            complain(example.origin, "\(opcode.name) does not answer \(code)")
        }
        if let message = error.message, value["message"] != .string(message) {
            complain(example.origin, "the message of \(code) is \"\(message)\"")
        }
    }

    /// Checks that every opcode has an example of each of its payloads and of each of its own
    /// errors. Also checks that every common error has at least one example.
    private mutating func checkCoverage() {
        let answered = Set(
            specification.examples.flatMap(\.examples).filter { $0.role == .error }
                .compactMap { $0.value?["error"] }
                .compactMap { if case .string(let code) = $0 { code } else { nil } }
        )
        for error in specification.errors where error.isCommon && !answered.contains(error.code) {
            complain(error.origin, "\(error.code) has no example")
        }
        for opcode in specification.families.flatMap(\.opcodes) {
            let examples = specification.examples.filter { $0.opcode == opcode.name }
                .flatMap(\.examples)
            let roles = Set(examples.map(\.role))
            var needed: [Example.Role] = []
            if opcode.request != nil { needed += [.request, .reply] }
            if opcode.push != nil { needed.append(.push) }
            for role in needed where !roles.contains(role) {
                complain(opcode.origin, "\(opcode.name) has no example of its \(role.rawValue)")
            }
            for code in opcode.errors
            where !examples.contains(where: { $0.value?["error"] == .string(code) }) {
                complain(opcode.origin, "\(opcode.name) has no example of its error \(code)")
            }
        }
    }
}
