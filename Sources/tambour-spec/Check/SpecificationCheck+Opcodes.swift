/// Checks the numbers and names of opcodes, and the consistency of their attributes.
extension SpecificationCheck {
    mutating func checkOpcodes() {
        let served = specification.families.flatMap(\.opcodes)
        let known = specification.families.flatMap(\.known)
        unique(
            served.map { ("\($0.number)", $0.origin) } + known.map { ("\($0.number)", $0.origin) },
            "opcode"
        )
        unique(
            served.map { ($0.name, $0.origin) } + known.map { ($0.name, $0.origin) },
            "opcode name"
        )
        for (number, origin) in served.map({ ($0.number, $0.origin) })
            + known.map({ ($0.number, $0.origin) })
        where !specification.idRanges.contains(where: { $0.from <= number && number <= $0.through })
        {
            complain(origin, "opcode \(number) is outside every range")
        }
        unique(
            specification.idRanges.map { ($0.name, Origin(file: "protocol.yaml", line: 0)) },
            "range"
        )
        for opcode in served { check(opcode) }
    }

    private mutating func check(_ opcode: OpcodeEntry) {
        let origin = opcode.origin
        documented(opcode.doc, since: opcode.since, opcode.name, origin)
        let fromClient = opcode.direction != .serverToClient
        if (opcode.request != nil) != fromClient || (opcode.reply != nil) != fromClient {
            complain(
                origin,
                "\(opcode.name): a request has a request and a reply, a push has neither"
            )
        }
        if (opcode.push != nil) != (opcode.direction != .clientToServer) {
            complain(origin, "\(opcode.name): a push, and only a push, has \"push\"")
        }
        if fromClient != (opcode.kind != nil && opcode.idempotency != nil && !opcode.states.isEmpty)
        {
            complain(
                origin,
                "\(opcode.name): a request, and only a request, has kind, idempotency and states"
            )
        }
        if (opcode.idempotency == .keyed) != (opcode.key != nil) {
            complain(origin, "\(opcode.name): keyed goes with \"key\"")
        }
        if let capability = opcode.capability {
            check(capability: capability, opcode.name, origin)
            if opcode.push == nil {
                complain(origin, "\(opcode.name): only a push can need a capability")
            }
        }
        for state in opcode.states where !specification.states.contains(where: { $0.name == state })
        {
            complain(origin, "\(opcode.name): unknown state \(state)")
        }
        unique(opcode.errors.map { ($0, origin) }, "\(opcode.name): error")
        for code in opcode.errors where !specification.errors.contains(where: { $0.code == code }) {
            complain(origin, "\(opcode.name): unknown error \(code)")
        }
        let names = Set(specification.families.flatMap(\.opcodes).map(\.name))
        check(opcode.deprecated, opcode.name, origin) { $0 != opcode.name && names.contains($0) }
        unique(opcode.effects.map { ($0.push, origin) }, "\(opcode.name): effect")
        for effect in opcode.effects where specification.opcode(named: effect.push)?.push == nil {
            complain(origin, "\(opcode.name): unknown push \(effect.push)")
        }
    }
}
