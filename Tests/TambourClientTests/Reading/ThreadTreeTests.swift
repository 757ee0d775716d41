import TambourProtocol
import Testing

@testable import TambourClient

@Suite("What is shown of a thread")
struct ThreadTreeTests {
    /// Returns a thread below message 1; each key is a message that answers the message in its
    /// value.
    private static func tree(_ answers: KeyValuePairs<Int64, Int64>) -> ThreadTree {
        var tree = ThreadTree(root: MessageID(1))
        for (answer, answered) in answers {
            tree.add(.sent(MessageID(answer)), to: MessageID(answered))
        }
        return tree
    }

    /// Returns the places as `number.depth`; waiting messages have negative numbers.
    private static func shown(
        _ tree: ThreadTree,
        atMost limit: Int = 100,
        with kept: [Int64] = [1]
    ) -> (places: [String], isWhole: Bool) {
        let shown = tree.shown(atMost: limit, with: kept.map { MessageID($0) })
        let places = shown.places.map { place in
            switch place.node {
            case .sent(let message): "\(message).\(place.depth)"
            case .waiting(let cid): "-\(cid).\(place.depth)"
            }
        }
        return (places, shown.isWhole)
    }

    @Test("answers stand behind what they answer, oldest first")
    func order() {
        var tree = Self.tree([2: 1, 3: 1, 4: 2, 5: 3, 6: 2, 7: 4])
        tree.add(.waiting(cid: 8), to: MessageID(2))
        tree.add(.waiting(cid: 9), to: MessageID(99))
        let shown = Self.shown(tree)
        #expect(
            shown.places == ["1.0", "2.1", "4.2", "7.3", "6.2", "-8.2", "3.1", "5.2"]
        )
        #expect(shown.isWhole)
    }

    @Test("a circle of answers is walked once")
    func circle() {
        let shown = Self.shown(Self.tree([1: 3, 2: 1, 3: 2, 4: 4]))
        #expect(shown.places == ["1.0", "2.1", "3.2"])
        #expect(shown.isWhole)
    }

    @Test("of too many the newest are there, with what they answer, and what is to be kept")
    func bound() {
        let tree = Self.tree([2: 1, 3: 1, 4: 1, 5: 2, 6: 1, 7: 6])
        #expect(Self.shown(tree, atMost: 7).isWhole)
        let six = Self.shown(tree, atMost: 6)
        #expect(six.places == ["1.0", "2.1", "5.2", "4.1", "6.1", "7.2"])
        #expect(!six.isWhole)
        // Messages 5 and 2, the parent of 5, do not both fit. Message 4 fits.
        let four = Self.shown(tree, atMost: 4)
        #expect(four.places == ["1.0", "4.1", "6.1", "7.2"])
        let kept = Self.shown(tree, atMost: 4, with: [1, 3])
        #expect(kept.places == ["1.0", "3.1", "6.1", "7.2"])
    }
}
