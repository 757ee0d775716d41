/// What the rules of the table ask.
extension CompatibilityRule.Case {
    /// Whether a cell of the table of roles asks for more than it did.
    var isNarrowed: Bool {
        func alternatives(_ cell: String?) -> Set<Substring> {
            Set((cell ?? "").split(separator: " or "))
        }
        let was = alternatives(self.was(.text)).subtracting(["no", "unknown"])
        let becomes = alternatives(self.becomes(.text))
        return !becomes.contains("yes") && !was.isSubset(of: becomes)
    }

    /// Whether a release that clients have said that it would be gone by now.
    var isPastSunset: Bool { old?.number(.sunset).map { $0 <= after.version } ?? false }

    // MARK: Errors

    /// Whether an error's name extends that of an error clients of the old release know, asks no more of them and is not
    /// answered more widely.
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

    /// Whether what one side writes by one of the two types is read alike by the other.
    func typeIsReadAlike(_ flow: SurfaceItem.Flow) -> Bool {
        guard let was = was(.type).flatMap(WireType.init),
            let becomes = becomes(.type).flatMap(WireType.init)
        else { return false }
        return becomes.isReadAlike(was, flow)
    }

    /// Whether another limit than before lets less through. Of the same one the rules of limits speak.
    func narrows(_ fact: SurfaceItem.Fact) -> Bool {
        guard let becomes = becomes(fact) else { return false }
        guard let was = was(fact) else { return true }
        let old = was.split(separator: " ").map { value(of: String($0), in: before) }
        let new = becomes.split(separator: " ").map { value(of: String($0), in: after) }
        return new.enumerated().contains { level, value in
            value < (old.indices.contains(level) ? old[level] : .max)
        }
    }

    private func value(of limit: String, in index: SurfaceIndex) -> Int {
        index["limit \(limit)"]?.number(.value) ?? .max
    }

    // MARK: Opcodes

    /// Whether a removed opcode has another number now.
    var isServedElsewhere: Bool {
        after.items.contains { $0.kind == .opcode && $0[.name] == old?[.name] }
    }

    /// Whether a number is from our own range, or what is known of the wild is served.
    var hasOwnNumber: Bool {
        guard let new, let number = new.number(.number) else { return false }
        // A range that changed is refused by itself and gives no numbers.
        let isOwn = before.ranges.contains {
            $0.name == "tambour" && $0.from <= number && number <= $0.through
        }
        guard !isOwn, let known = before["known opcode \(number)"] else { return isOwn }
        return known[.name] == new[.name]
            && (known[.direction] == new[.direction]
                || new[.direction] == Direction.both.rawValue)
    }

    /// Whether a client that repeats a request as it may today does harm.
    var isLessRepeatable: Bool {
        let order: [OpcodeEntry.Idempotency] = [.unsafe, .keyed, .idempotent, .safe]
        func rank(_ text: String?) -> Int {
            text.flatMap(OpcodeEntry.Idempotency.init).flatMap(order.firstIndex) ?? 0
        }
        return rank(becomes(.idempotency)) < rank(was(.idempotency))
    }

    /// Whether a push is kept from all clients of the old release.
    var needsNewCapability: Bool {
        becomes(.capability).flatMap { after["capability \($0)"]?.number(.since) } == after.version
    }

    /// Whether a dialect that clients speak writes it in another form.
    var changesKnownForm: Bool {
        func known(_ text: String?) -> [Substring] {
            (text ?? "").split(separator: "; ").filter { form in
                before["capability \(form.prefix { $0 != " " })"] != nil
            }
        }
        return known(was(.form)) != known(becomes(.form))
    }

    /// Whether a feature switches an opcode that could not be switched by it.
    var takesServedOpcode: Bool {
        func names(_ text: String?) -> Set<Substring> { Set((text ?? "").split(separator: " ")) }
        let joined = names(becomes(.opcodes)).subtracting(names(was(.opcodes)))
        return before.items.contains { item in
            item.kind == .opcode && item[.name].map { joined.contains($0[...]) } == true
        }
    }

    // MARK: Texts

    /// Whether a text that binds has other words, and no note answers for their meaning the same.
    func changesWords(_ fact: SurfaceItem.Fact) -> Bool {
        !isReworded && Wording.words(was(fact) ?? "") != Wording.words(becomes(fact) ?? "")
    }
}

extension SurfaceItem {
    /// The name without its kind: the code of an error, also of one of an opcode.
    var lastWord: String { String(id.split(separator: " ").last ?? "") }
}

extension WireType {
    /// Whether values of an older type are read alike by this one: always when both mean the same on the wire.
    ///
    /// What comes from clients may also be read by a wider type; what goes to them may not be written by one.
    func isReadAlike(_ older: WireType, _ flow: SurfaceItem.Flow) -> Bool {
        switch (older, self) {
        case (self, older): true
        case (.packed(let inner), _): isReadAlike(inner, flow)
        case (_, .packed(let inner)): inner.isReadAlike(older, flow)
        case (.text, .string), (.string, .text): true
        // An id is written as an integer.
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
