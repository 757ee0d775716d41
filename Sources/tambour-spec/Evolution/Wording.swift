/// Compares normative texts by their words, and finds texts that bind clients.
enum Wording {
    /// Returns the words of a text, so that two texts can be compared.
    ///
    /// Texts with the same words differ only in white space, markup, or punctuation at the ends of
    /// words. All other characters count, because a short word, a number, a dot in an error code or
    /// a parenthesis in a formula may change the meaning.
    static func words(_ text: String) -> [Substring] {
        text.split(whereSeparator: \.isWhitespace).map { word in
            let bare = trimmed(word)
            return bare.isEmpty ? word : bare
        }
    }

    private static func trimmed(_ word: Substring) -> Substring {
        let edges: Set<Character> = ["`", "*", "\"", "“", "”", ",", ";", ":", ".", "!", "?"]
        var word = word.drop { edges.contains($0) }
        while let last = word.last, edges.contains(last) { word.removeLast() }
        return word
    }

    // MARK: Bound parties

    private static let actors: Set<Substring> = [
        "client", "clients", "sender", "senders", "caller", "callers", "peer", "peers", "device",
        "devices", "app", "apps",
    ]
    /// Words that may precede the subject at the start of a sentence.
    private static let determiners: Set<Substring> = [
        "a", "an", "the", "every", "each", "all", "any", "no", "both", "known", "new", "old",
        "older", "such", "other", "stock", "given",
    ]
    private static let prepositions: Set<Substring> = [
        "to", "of", "from", "for", "by", "with", "without", "at", "on", "in", "about", "against",
        "between", "behind", "before", "after", "through", "than", "as", "toward", "towards",
    ]
    private static let adverbs: Set<Substring> = [
        "not", "all", "each", "both", "always", "never", "still", "again", "also", "then", "first",
    ]
    /// Verbs in the passive, as in "a client MUST be told". The client is the subject, but the
    /// sentence binds the server.
    private static let suffered: Set<Substring> = [
        "told", "answered", "served", "sent", "given", "refused", "closed", "disconnected", "shown",
        "asked", "accepted", "ignored", "treated", "counted",
    ]

    /// Returns whether a text contains an obligation of clients.
    ///
    /// Examines the words around each MUST. A client is the subject of the MUST if it starts the
    /// clause, or if it stands directly before the MUST and no preposition precedes it. An unclear
    /// text counts as binding clients. If it binds the server, its author can rewrite it with the
    /// server as its subject.
    static func bindsClients(_ text: String) -> Bool {
        var subject = false
        for sentence in text.split(whereSeparator: { ";:".contains($0) }) {
            for part in sentence.split(separator: ". ") {
                var rest = part[...]
                while let must = rest.firstRange(of: "MUST") {
                    let before = rest[..<must.lowerBound]
                    let after = lowercased(rest[must.upperBound...])
                    let isActor = isOfActor(before, pronoun: subject)
                    if isActor, !isSuffered(after) { return true }
                    rest = rest[must.upperBound...]
                }
                // In the next clause, "it" refers to this subject.
                subject = isOfActor(part, pronoun: subject, isWhole: true)
            }
        }
        return false
    }

    private static func lowercased(_ text: Substring) -> [Substring] {
        words(text.lowercased()).filter { !$0.isEmpty }
    }

    /// - Parameters:
    ///   - pronoun: Whether "it" means a client.
    ///   - isWhole: Whether the words are a complete clause. The last word of a complete clause is
    ///     not a subject.
    private static func isOfActor(
        _ clause: Substring,
        pronoun: Bool,
        isWhole: Bool = false
    ) -> Bool {
        func isActor(_ word: Substring?) -> Bool {
            word.map { actors.contains($0) || pronoun && ["it", "they"].contains($0) } ?? false
        }
        for part in clause.split(separator: ",") {
            if isActor(lowercased(part).first(where: { !determiners.contains($0) })) { return true }
        }
        guard !isWhole else { return false }
        var words = lowercased(clause)
        guard isActor(words.popLast()) else { return false }
        while let last = words.last, determiners.contains(last) { words.removeLast() }
        return words.last.map { !prepositions.contains($0) } ?? true
    }

    private static func isSuffered(_ verb: [Substring]) -> Bool {
        let verb = verb.drop { adverbs.contains($0) }
        return verb.first == "be"
            && verb.dropFirst().first(where: { !adverbs.contains($0) }).map(suffered.contains)
                == true
    }
}
