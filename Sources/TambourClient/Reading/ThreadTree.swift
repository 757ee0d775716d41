import TambourProtocol

/// Which messages of a thread are shown, and in what order.
struct ThreadTree {
    enum Node: Hashable {
        case sent(MessageID)
        /// One's own message that is not sent yet.
        case waiting(cid: Int64)

        var message: MessageID? {
            if case .sent(let message) = self { message } else { nil }
        }
    }

    /// A message, and how many answers lead to it.
    typealias Place = (node: Node, depth: Int)

    /// What began the thread.
    let root: MessageID
    private var answers: [MessageID: [Node]] = [:]
    private var answered: [Node: MessageID] = [:]

    init(root: MessageID) {
        self.root = root
    }

    /// Adds an answer, which is newer than those that were added before; once only. What began the thread
    /// answers nothing.
    mutating func add(_ answer: Node, to message: MessageID) {
        guard answer != .sent(root), answered[answer] == nil else { return }
        answered[answer] = message
        answers[message, default: []].append(answer)
    }

    /// The message that began it, then each answer with the answers to it behind it, oldest first.
    ///
    /// - Parameters:
    ///   - limit: how many at most.
    ///   - kept: are there in any case, with what they answer; not more than the limit. Of the others it
    ///     is the newest that fit with all that leads to them.
    /// - Returns: as many as there are, and whether these are all that answer what began it or an answer to it.
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

    /// A message and what it answers, up to one that is chosen; nil when there is no room for so many.
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
