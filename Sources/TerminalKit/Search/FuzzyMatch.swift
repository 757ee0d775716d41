/// A match of a query with a name in the quick switcher: its score and the matching characters.
///
/// The characters of each word of the query must appear in the name in the same order. Case and
/// accents do not matter. Hits at the start of the name, at word starts and next to each other
/// score higher; gaps lower the score a little. The result is the best of all possible matches. It
/// depends only on the two texts.
package struct FuzzyMatch: Hashable, Sendable {
    /// Comparable between names for the same query. A greater score is better.
    let score: Int
    /// The matching clusters of the name, in ascending ranges that do not touch.
    package let ranges: [Range<Int>]

    /// - Returns: nil if the name does not match. An empty query matches every name with score
    ///   zero.
    package init?(_ query: String, in name: String) {
        self.init(query, in: FoldedText(name))
    }

    /// Matches a name that is already folded, for names that are searched repeatedly.
    package init?(_ query: String, in name: FoldedText) {
        self.init(words: Self.words(of: query), in: name)
    }

    private init?(words: [[Unicode.Scalar]], in name: FoldedText) {
        var score = 0
        var hits: [Int] = []
        for word in words {
            guard let match = FuzzyAlignment(word, in: name).best() else { return nil }
            score += match.score
            hits += match.positions.map { name.clusters[$0] }
        }
        self.score = score
        ranges = Self.ranges(of: hits.sorted())
    }

    private static func words(of query: String) -> [[Unicode.Scalar]] {
        query.split(whereSeparator: \.isWhitespace).map { FoldedText(String($0)).scalars }
            .filter { !$0.isEmpty }
    }

    /// Returns the matching names, best first. Equal scores are ordered by length, then in the
    /// given order.
    package static func rank(
        _ query: String,
        _ names: [FoldedText]
    ) -> [(index: Int, match: FuzzyMatch)] {
        let words = words(of: query)
        let matches = names.indices.compactMap { index in
            FuzzyMatch(words: words, in: names[index]).map { (index: index, match: $0) }
        }
        return matches.sorted { first, second in
            if first.match.score != second.match.score {
                return first.match.score > second.match.score
            }
            let lengths = (
                names[first.index].scalars.count, names[second.index].scalars.count
            )
            return lengths.0 != lengths.1 ? lengths.0 < lengths.1 : first.index < second.index
        }
    }

    private static func ranges(of hits: [Int]) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        for hit in hits {
            if let last = ranges.last, last.upperBound >= hit {
                ranges[ranges.count - 1] = last.lowerBound..<hit + 1
            } else {
                ranges.append(hit..<hit + 1)
            }
        }
        return ranges
    }
}

/// The alignment of one word of a query with a name, by dynamic programming.
package struct FuzzyAlignment {
    package static let hit = 16
    static let nameStart = 12
    static let wordStart = 10
    static let consecutive = 8
    package static let gap = -1
    /// The gap length beyond which the cost no longer grows.
    static let widestGap = 6

    private let query: [Unicode.Scalar]
    private let name: FoldedText

    package init(_ query: [Unicode.Scalar], in name: FoldedText) {
        self.query = query
        self.name = name
    }

    /// Returns the greatest score, and the earliest positions in the folded name that achieve it.
    func best() -> (score: Int, positions: [Int])? {
        guard !query.isEmpty, isSubsequence else { return nil }
        let count = name.scalars.count
        // For each column, the best score of a match that ends there. Each row of the loop adds one
        // character of the query to the match.
        var scores = [Int](repeating: Self.none, count: count)
        var origins = [Int](repeating: -1, count: count * query.count)
        for row in query.indices {
            var line = [Int](repeating: Self.none, count: count)
            for column in row..<count where name.scalars[column] == query[row] {
                if row == 0 {
                    line[column] = Self.hit + bonus(at: column)
                    continue
                }
                for origin in row - 1..<column where scores[origin] != Self.none {
                    let score =
                        scores[origin] + Self.transition(from: origin, to: column) + Self.hit
                        + bonus(at: column)
                    if score > line[column] {
                        line[column] = score
                        origins[row * count + column] = origin
                    }
                }
            }
            scores = line
        }
        guard let score = scores.max(), var column = scores.firstIndex(of: score) else {
            return nil
        }
        var positions = [column]
        for row in query.indices.dropFirst().reversed() {
            column = origins[row * count + column]
            positions.append(column)
        }
        return (score, positions.reversed())
    }

    private static let none = Int.min

    private var isSubsequence: Bool {
        var rest = query[...]
        for scalar in name.scalars where scalar == rest.first { rest.removeFirst() }
        return rest.isEmpty
    }

    /// Returns the bonus, or the negative cost, of a hit in `column` whose previous hit is in
    /// `origin`.
    static func transition(from origin: Int, to column: Int) -> Int {
        let gap = column - origin - 1
        return gap == 0 ? consecutive : Self.gap * min(gap, widestGap)
    }

    func bonus(at column: Int) -> Int {
        if column == 0 { return Self.nameStart }
        return name.wordStarts[column] ? Self.wordStart : 0
    }
}
