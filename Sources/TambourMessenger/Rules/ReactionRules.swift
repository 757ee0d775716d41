import TambourProtocol

/// Decides which reactions are valid, and how a reaction changes the counters.
enum ReactionRules {
    /// Returns whether the text is a single emoji.
    static func isEmoji(_ text: Text) -> Bool {
        let string = String(text)
        guard string.count == 1 else { return false }
        return string.unicodeScalars.contains { scalar in
            // Unicode counts digits as emojis, but a digit is a reaction only with the keycap
            // U+20E3.
            scalar.properties.isEmoji && scalar.value > 0x7F || scalar == "\u{20E3}"
        }
    }

    /// Returns the counters after a member has replaced the reaction `old` with `new`. nil means no
    /// reaction.
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
        // The most frequent reactions come first. Equally frequent reactions keep their order.
        let sorted = list.enumerated().filter { $0.element.count > 0 }.sorted {
            ($1.element.count, $0.offset) < ($0.element.count, $1.offset)
        }
        return ReactionInfo(
            totalCount: sorted.reduce(0) { $0 + $1.element.count },
            counters: sorted.map(\.element)
        )
    }

    /// Returns the reaction settings of a chat whose settings nobody has changed.
    static func standard(of chat: ChatID, _ limits: Limits) -> ChatReactionsSettings {
        ChatReactionsSettings(
            chatID: chat,
            isActive: true,
            count: Int64(limits.maxReactionKinds)
        )
    }

    /// Returns whether a chat with these settings allows the emoji.
    static func allows(_ reaction: Text, _ settings: ChatReactionsSettings) -> Bool {
        guard settings.isActive else { return false }
        if settings.reactionIDs.isEmpty { return true }
        return settings.reactionIDs.contains(reaction) == settings.included
    }
}
