import TambourProtocol

/// Selects and orders the messages of a thread for display.
struct ThreadTree {
    enum Node: Hashable {
        case sent(MessageID)
        /// An own queued message.
        case waiting(cid: Int64)

        var message: MessageID? {
            if case .sent(let message) = self { message } else { nil }
        }
    }

    /// A message, and the length of the chain of answers from the root to this message.
    typealias Place = (node: Node, depth: Int)

    /// The first message of the thread.
    let root: MessageID
    private var answers: [MessageID: [Node]] = [:]
    private var answered: [Node: MessageID] = [:]

    init(root: MessageID) {
        self.root = root
    }

    /// Adds an answer. Answers must be added oldest first; a second answer with the same id is
    /// ignored. The root answers no message.
    mutating func add(_ answer: Node, to message: MessageID) {
        guard answer != .sent(root), answered[answer] == nil else { return }
        answered[answer] = message
        answers[message, default: []].append(answer)
    }

    /// Returns the first message of the thread, then each answer followed by its own answers,
    /// oldest first.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of messages.
    ///   - kept: messages to include in addition to the root; at most `limit`. The remaining room
    ///     is filled with the newest messages that fit, each together with the messages that lead
    ///     to it.
    /// - Returns: the messages, and whether they include all direct and indirect answers to the
    ///   root.
    func shown(atMost limit: Int, with kept: [MessageID]) -> (places: [Place], isWhole: Bool) {
        let all = places { _ in true }
        guard all.count > limit else { return (all, true) }
        var chosen: Set<Node> = [.sent(root)]
        chosen.formUnion(kept.map(Node.sent))
        for node in all.map(\.node).sorted(by: isNewer) where chosen.count < limit {
            if let chain = chain(from: node, to: chosen, atMost: limit - chosen.count) {
                chosen.formUnion(chain)
            }
        }
        return (places(where: chosen.contains), false)
    }

    private func isNewer(_ one: Node, _ other: Node) -> Bool {
        switch (one, other) {
        case (.sent(let one), .sent(let other)): one > other
        case (.waiting(let one), .waiting(let other)): one > other
        case (.waiting, .sent): true
        case (.sent, .waiting): false
        }
    }

    /// Returns a message and the messages it answers, up to the first message in `chosen`, which is
    /// omitted; nil when there is too little room.
    private func chain(from node: Node, to chosen: Set<Node>, atMost room: Int) -> [Node]? {
        var chain: [Node] = []
        var next = node
        while !chosen.contains(next) {
            guard chain.count < room else { return nil }
            chain.append(next)
            guard let message = answered[next] else { return nil }
            next = .sent(message)
        }
        return chain
    }

    private func places(where isChosen: (Node) -> Bool) -> [Place] {
        var places: [Place] = []
        var open: [Place] = [(.sent(root), 0)]
        while let next = open.popLast() {
            places.append(next)
            guard let message = next.node.message else { continue }
            for answer in (answers[message] ?? []).reversed() where isChosen(answer) {
                open.append((answer, next.depth + 1))
            }
        }
        return places
    }
}
