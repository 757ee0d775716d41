/// Checks that the cost of every request names existing buckets and existing fields.
extension SpecificationCheck {
    mutating func checkCosts() {
        unique(specification.buckets.map { ($0.name, $0.origin) }, "bucket")
        let opcodes = specification.families.flatMap(\.opcodes)
        let used = Set(opcodes.compactMap(\.cost).flatMap { [$0.bucket] + $0.also })
        for bucket in specification.buckets {
            documented(bucket.doc, since: 1, "bucket \(bucket.name)", bucket.origin)
            for limit in [bucket.burst, bucket.perMinute]
            where specification.limit(named: limit) == nil {
                complain(bucket.origin, "bucket \(bucket.name): unknown limit \(limit)")
            }
            if bucket.isNamed, !used.contains(bucket.name) {
                complain(bucket.origin, "bucket \(bucket.name): nothing is paid from it")
            }
        }
        for opcode in opcodes { checkCost(of: opcode) }
    }

    private mutating func checkCost(of opcode: OpcodeEntry) {
        guard let request = opcode.request else {
            if let cost = opcode.cost {
                complain(cost.origin, "\(opcode.name): only a request has a cost")
            }
            return
        }
        guard let cost = opcode.cost else {
            complain(opcode.origin, "\(opcode.name): has no cost, so nobody pays for it")
            return
        }
        for name in [cost.bucket] + cost.also {
            if specification.bucket(named: name)?.isNamed != true {
                complain(cost.origin, "\(opcode.name): unknown bucket \(name)")
            }
        }
        if cost.units < 0 || cost.itemUnits < 1 || cost.units == 0 && cost.perItem.isEmpty {
            complain(cost.origin, "\(opcode.name): costs nothing")
        }
        for limit in [cost.pageSize, cost.maxPage].compactMap(\.self)
        where specification.limit(named: limit) == nil {
            complain(cost.origin, "\(opcode.name): unknown limit \(limit)")
        }
        checkWork(of: opcode, cost)
        var numbers = 0
        for path in cost.perItem {
            guard let field = specification.field(at: path, of: request)?.field else {
                complain(cost.origin, "\(opcode.name): its request has no \(path) to pay for")
                continue
            }
            switch field.type {
            case .list, .map, .names: break
            case .int: numbers += 1
            default:
                complain(cost.origin, "\(opcode.name): \(path) is no list, map or number")
            }
        }
        if (numbers > 0) != (cost.maxPage != nil) {
            complain(cost.origin, "\(opcode.name): maxPage goes with a number of items")
        }
    }

    /// Checks that the declared rows and bytes agree with `tells`, and with the kind and the
    /// effects of the opcode.
    private mutating func checkWork(of opcode: OpcodeEntry, _ cost: CostEntry) {
        let amounts = [cost.rowsRead, cost.rowsWritten, cost.bytesStored, cost.bytesTold]
        if amounts.contains(where: { $0 < 0 }) {
            complain(cost.origin, "\(opcode.name): a cost cannot be negative")
        }
        if opcode.kind == .query, cost.rowsWritten > 0 || cost.bytesStored > 0 {
            complain(cost.origin, "\(opcode.name): a query writes nothing")
        }
        if (cost.tells == .nobody) != (cost.bytesTold == 0) {
            complain(cost.origin, "\(opcode.name): bytesTold goes with tells")
        }
        if cost.tells == .nobody, !opcode.effects.isEmpty {
            complain(cost.origin, "\(opcode.name): has effects and tells nobody")
        }
    }
}
