import TambourProtocol

/// What a reaction may be, and what one more does to the others.
enum ReactionRules {
    /// Whether the text is one character that is drawn as a picture.
    static func isEmoji(_ text: Text) -> Bool {
        let string = String(text)
        guard string.count == 1 else { return false }
        return string.unicodeScalars.contains { scalar in
            // Digits are emojis too, but only inside a key.
            scalar.properties.isEmoji && scalar.value > 0x7F || scalar == "\u{20E3}"
        }
    }

    /// The counters after one member says `new` instead of `old`; nil is nothing.
    static func counters(
        _ counters: ReactionInfo,
        replacing old: Text?,
        by new: Text?
    ) -> ReactionInfo {
        var list = counters.counters
        func count(_ reaction: Text?, _ change: Int64) {
            guard let reaction else { return }
            if let index = list.firstIndex(where: { $0.reaction == reaction }) {
                list[index].count += change
            } else {
                list.append(ReactionCounter(count: change, reaction: reaction.detached))
            }
        }
        count(old, -1)
        count(new, 1)
        // The most frequent first; of equal ones that which was there first.
        let sorted = list.enumerated().filter { $0.element.count > 0 }.sorted {
            ($1.element.count, $0.offset) < ($0.element.count, $1.offset)
        }
        return ReactionInfo(
            totalCount: sorted.reduce(0) { $0 + $1.element.count },
            counters: sorted.map(\.element)
        )
    }

    /// What holds in a chat that nobody has set anything for.
    static func standard(of chat: ChatID, _ limits: Limits) -> ChatReactionsSettings {
        ChatReactionsSettings(
            chatID: chat,
            isActive: true,
            count: Int64(limits.maxReactionKinds)
        )
    }

    /// Whether a chat with these settings allows the emoji.
    static func allows(_ reaction: Text, _ settings: ChatReactionsSettings) -> Bool {
        guard settings.isActive else { return false }
        if settings.reactionIDs.isEmpty { return true }
        return settings.reactionIDs.contains(reaction) == settings.included
    }
}
