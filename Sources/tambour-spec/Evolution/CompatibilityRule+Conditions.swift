/// The conditions of the rules in the table.
extension CompatibilityRule.Case {
    /// Whether a cell of the role table now requires more than in the old release.
    var isNarrowed: Bool {
        func alternatives(_ cell: String?) -> Set<Substring> {
            Set((cell ?? "").split(separator: " or "))
        }
        let was = alternatives(self.was(.text)).subtracting(["no", "unknown"])
        let becomes = alternatives(self.becomes(.text))
        return !becomes.contains("yes") && !was.isSubset(of: becomes)
    }

    /// Whether the old release announced that the item would be removed, in the new release at the
    /// latest.
    var isPastSunset: Bool { old?.number(.sunset).map { $0 <= after.version } ?? false }

    // MARK: Errors

    /// Whether a new error refines an error that clients of the old release know. The new code must
    /// extend the known code, and both errors must have the same class. The new error may be common
    /// only if the known error is common.
    var hasParent: Bool {
        guard let new else { return false }
        var code = new.lastWord[...]
        while let dot = code.lastIndex(of: ".") {
            code = code[..<dot]
            if let parent = before["error \(code)"] {
                return parent[.class] == new[.class]
                    && (parent[.common] == "true" || new[.common] == "false")
            }
        }
        return false
    }

    // MARK: Fields

    /// Returns whether readers still decode the field's values identically, for values that travel
    /// in this direction.
    func typeIsReadAlike(_ flow: Promise.Flow) -> Bool {
        guard let was = was(.type).flatMap(WireType.init),
            let becomes = becomes(.type).flatMap(WireType.init)
        else { return false }
        return becomes.isReadAlike(was, flow)
    }

    /// Returns whether the field now refers to a limit with a smaller value. Other rules cover
    /// changes of a limit's value.
    func narrows(_ fact: Promise.Fact) -> Bool {
        guard let becomes = becomes(fact) else { return false }
        guard let was = was(fact) else { return true }
        let old = was.split(separator: " ").map { value(of: String($0), in: before) }
        let new = becomes.split(separator: " ").map { value(of: String($0), in: after) }
        return new.enumerated().contains { level, value in
            value < (old.indices.contains(level) ? old[level] : .max)
        }
    }

    private func value(of limit: String, in index: Promises) -> Int {
        index["limit \(limit)"]?.number(.value) ?? .max
    }

    // MARK: Opcodes

    /// Whether the new release contains a removed opcode under a new number.
    var isServedElsewhere: Bool {
        after.items.contains { $0.kind == .opcode && $0[.name] == old?[.name] }
    }

    /// Whether the opcode may have its number. The number must be in Tambour's own range, or the
    /// list of known opcodes must assign it to this opcode.
    var hasOwnNumber: Bool {
        guard let new, let number = new.number(.number) else { return false }
        // Uses the ranges of the old release. A rule for ranges rejects changes of them.
        let isOwn = before.ranges.contains {
            $0.name == "tambour" && $0.from <= number && number <= $0.through
        }
        guard !isOwn, let known = before["known opcode \(number)"] else { return isOwn }
        return known[.name] == new[.name]
            && (known[.direction] == new[.direction]
                || new[.direction] == Direction.both.rawValue)
    }

    /// Whether a retry that was safe for clients of the old release can now cause harm.
    var isLessRepeatable: Bool {
        let order: [OpcodeEntry.Idempotency] = [.unsafe, .keyed, .idempotent, .safe]
        func rank(_ text: String?) -> Int {
            text.flatMap(OpcodeEntry.Idempotency.init).flatMap(order.firstIndex) ?? 0
        }
        return rank(becomes(.idempotency)) < rank(was(.idempotency))
    }

    /// Whether the push needs a capability that clients of the old release cannot have.
    var needsNewCapability: Bool {
        becomes(.capability).flatMap { after["capability \($0)"]?.number(.since) } == after.version
    }

    /// Whether the form of the field changes in a dialect that existing clients may use.
    var changesKnownForm: Bool {
        func known(_ text: String?) -> [Substring] {
            (text ?? "").split(separator: "; ").filter { form in
                before["capability \(form.prefix { $0 != " " })"] != nil
            }
        }
        return known(was(.form)) != known(becomes(.form))
    }

    /// Whether a feature now controls an opcode that the server used to serve without this feature.
    var takesServedOpcode: Bool {
        func names(_ text: String?) -> Set<Substring> { Set((text ?? "").split(separator: " ")) }
        let joined = names(becomes(.opcodes)).subtracting(names(was(.opcodes)))
        return before.items.contains { item in
            item.kind == .opcode && item[.name].map { joined.contains($0[...]) } == true
        }
    }

    // MARK: Texts

    /// Returns whether the wording of a normative text has changed. Returns false if a note
    /// declares the meaning unchanged.
    func changesWords(_ fact: Promise.Fact) -> Bool {
        !isReworded && Wording.words(was(fact) ?? "") != Wording.words(becomes(fact) ?? "")
    }
}

extension Promise {
    /// The last word of the id. For most kinds, this is the item's name. For an error, also an
    /// error of an opcode, it is the code.
    var lastWord: String { String(id.split(separator: " ").last ?? "") }
}

extension WireType {
    /// Returns whether a reader of this type decodes values of an older type identically. This is
    /// always true if values of both types look the same on the wire.
    ///
    /// The server may read values from clients with a wider type. It must not write values to
    /// clients with a wider type.
    func isReadAlike(_ older: WireType, _ flow: Promise.Flow) -> Bool {
        switch (older, self) {
        case (self, older): true
        case (.packed(let inner), _): isReadAlike(inner, flow)
        case (_, .packed(let inner)): inner.isReadAlike(older, flow)
        case (.text, .string), (.string, .text): true
        // Ids are written as integers.
        case (.int, .chatID), (.int, .userID), (.int, .messageID): true
        case (.list(let older), .list(let newer)), (.names(let older), .names(let newer)):
            newer.isReadAlike(older, flow)
        case (.map(let olderKey, let older), .map(let newerKey, let newer)):
            olderKey == newerKey && newer.isReadAlike(older, flow)
        case (.int, .double), (.text, .bytes), (.string, .bytes), (_, .any): flow == .toServer
        default: false
        }
    }
}
