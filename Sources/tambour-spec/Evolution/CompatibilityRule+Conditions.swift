/// The conditions of the rules in the table.
extension CompatibilityRule.Case {
    /// Whether a cell of the role table requires more than before.
    var isNarrowed: Bool {
        func alternatives(_ cell: String?) -> Set<Substring> {
            Set((cell ?? "").split(separator: " or "))
        }
        let was = alternatives(self.was(.text)).subtracting(["no", "unknown"])
        let becomes = alternatives(self.becomes(.text))
        return !becomes.contains("yes") && !was.isSubset(of: becomes)
    }

    /// Whether the old release announced the removal for the new release or an earlier one.
    var isPastSunset: Bool { old?.number(.sunset).map { $0 <= after.version } ?? false }

    // MARK: Errors

    /// Whether a new error refines an error that clients of the old release know: its code extends
    /// the known code, its class is the same, and it is common only if the known error is common.
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

    /// Returns whether values of the field that travel in this direction are still read
    /// identically.
    func typeIsReadAlike(_ flow: Promise.Flow) -> Bool {
        guard let was = was(.type).flatMap(WireType.init),
            let becomes = becomes(.type).flatMap(WireType.init)
        else { return false }
        return becomes.isReadAlike(was, flow)
    }

    /// Whether the field now names a smaller limit. Changes to the value of a limit have their own
    /// rules.
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

    /// Whether a removed opcode continues under a new number.
    var isServedElsewhere: Bool {
        after.items.contains { $0.kind == .opcode && $0[.name] == old?[.name] }
    }

    /// Whether the number is in Tambour's own range, or the list of known opcodes assigns the
    /// number to this opcode.
    var hasOwnNumber: Bool {
        guard let new, let number = new.number(.number) else { return false }
        // A changed range provides no numbers; a rule for ranges rejects the change.
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

    /// Whether a dialect that clients use changes the form of the field.
    var changesKnownForm: Bool {
        func known(_ text: String?) -> [Substring] {
            (text ?? "").split(separator: "; ").filter { form in
                before["capability \(form.prefix { $0 != " " })"] != nil
            }
        }
        return known(was(.form)) != known(becomes(.form))
    }

    /// Whether a feature now controls an opcode that was served without it.
    var takesServedOpcode: Bool {
        func names(_ text: String?) -> Set<Substring> { Set((text ?? "").split(separator: " ")) }
        let joined = names(becomes(.opcodes)).subtracting(names(was(.opcodes)))
        return before.items.contains { item in
            item.kind == .opcode && item[.name].map { joined.contains($0[...]) } == true
        }
    }

    // MARK: Texts

    /// Whether the wording of a normative text has changed and no note declares the meaning
    /// unchanged.
    func changesWords(_ fact: Promise.Fact) -> Bool {
        !isReworded && Wording.words(was(fact) ?? "") != Wording.words(becomes(fact) ?? "")
    }
}

extension Promise {
    /// The name without its kind; for an error, including an error of an opcode, its code.
    var lastWord: String { String(id.split(separator: " ").last ?? "") }
}

extension WireType {
    /// Returns whether this type reads values of an older type identically. This is always true if
    /// both types have the same wire meaning.
    ///
    /// Values from clients may also be read with a wider type. Values to clients must not be
    /// written with a wider type.
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
