/// The rules for opcodes and their permitted numbers.
extension CompatibilityRule {
    // MARK: Opcodes

    static let opcodes = [
        CompatibilityRule(
            "opcode-renumbered",
            .opcode,
            .removed,
            "clients send or expect the old number",
            where: \.isServedElsewhere
        ),
        CompatibilityRule(
            "opcode-removed",
            .opcode,
            .removed,
            "clients send or expect it; deprecate it first",
            where: { !$0.isServedElsewhere && !$0.isPastSunset }
        ),
        CompatibilityRule(
            "opcode-renamed",
            .opcode,
            .changed(.name),
            "its name is that of its types, its documents and its handler everywhere"
        ),
        CompatibilityRule(
            "opcode-direction",
            .opcode,
            .changed(.direction),
            "clients send it or wait for it as it was",
            // If clients may now also send an opcode that they already receive, they lose nothing.
            where: { $0.was(.direction) != "serverToClient" || $0.becomes(.direction) != "both" }
        ),
        CompatibilityRule(
            "opcode-kind",
            .opcode,
            .changed(.kind),
            "clients take the answer to a command for a promise that what they asked for is stored",
            where: { $0.was(.kind) == OpcodeEntry.Kind.command.rawValue }
        ),
        CompatibilityRule(
            "opcode-retries",
            .opcode,
            .changed(.idempotency),
            "clients repeat it after a lost reply as they were told they may",
            where: \.isLessRepeatable
        ),
        CompatibilityRule(
            "opcode-key",
            .opcode,
            .changed(.key),
            "clients count on what makes two requests one"
        ),
        CompatibilityRule(
            "opcode-capability",
            .opcode,
            .changed(.capability),
            "clients of today get it, or go without it, by what they named so far"
        ),
        CompatibilityRule(
            "opcode-sunset",
            .opcode,
            .changed(.sunset),
            "clients were told that they have until then",
            where: { $0.falls(.sunset) }
        ),
        CompatibilityRule(
            "opcode-number",
            .opcode,
            .added,
            "its number is neither one of our own nor was it known under this name and direction: it may mean something else in the wild",
            where: { !$0.hasOwnNumber }
        ),
        CompatibilityRule(
            "push-added",
            .opcode,
            .added,
            "clients of today have never seen this push; let it need a capability that is new in this release",
            where: { $0.becomes(.direction) != "clientToServer" && !$0.needsNewCapability }
        ),
        CompatibilityRule(
            "opcode-state-removed",
            .opcodeState,
            .removed,
            "clients send it then"
        ),
        CompatibilityRule(
            "effect-removed",
            .effect,
            .removed,
            "other clients are no longer told what was done"
        ),
        CompatibilityRule(
            "effect-to",
            .effect,
            .changed(.to),
            "clients count on being told, and by other words others may be; if they mean the same, a note says `reworded`",
            where: { $0.changesWords(.to) }
        ),
        CompatibilityRule(
            "effect-when",
            .effect,
            .changed(.when),
            "clients count on being told, and by other words it may be at other times; if they mean the same, a note says `reworded`",
            where: { $0.changesWords(.when) }
        ),
        CompatibilityRule(
            "known-removed",
            .known,
            .removed,
            "the number means something in the wild and would become free",
            where: { known in
                known.old?[.number].map { known.after["opcode \($0)"] == nil } ?? true
            }
        ),
        CompatibilityRule(
            "known-renamed",
            .known,
            .changed(.name),
            "what a number means in the wild does not change"
        ),
        CompatibilityRule(
            "known-direction",
            .known,
            .changed(.direction),
            "who sends a number in the wild does not change"
        ),
        CompatibilityRule(
            "range-removed",
            .range,
            .removed,
            "numbers were given out by it"
        ),
        CompatibilityRule(
            "range-from",
            .range,
            .changed(.from),
            "numbers beside it mean something in the wild, and those in it are told apart by it"
        ),
        CompatibilityRule(
            "range-through",
            .range,
            .changed(.through),
            "numbers beside it mean something in the wild, and those in it are told apart by it"
        ),
    ]
}
