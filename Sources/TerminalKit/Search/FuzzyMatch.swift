/// A match of a query with a name in the quick switcher: the score of the match, and the matching
/// characters of the name.
///
/// The characters of each word of the query must appear in the name in the same order. Case and
/// accents do not matter. Characters that match at the start of the name, at the start of a word or
/// next to each other score higher; gaps lower the score a little. The result is the best of all
/// possible matches. It depends only on the query and the name.
package struct FuzzyMatch: Hashable, Sendable {
    /// The score. Scores of different names for the same query can be compared. A greater score is
    /// better.
    let score: Int
    /// The ranges of the matching clusters in the name. They are in ascending order and do not
    /// touch.
    package let ranges: [Range<Int>]

    /// - Returns: nil if the name does not match. An empty query matches every name with score
    ///   zero.
    package init?(_ query: String, in name: String) {
        self.init(query, in: FoldedText(name))
    }

    /// Matches a name that is already folded. Use it for names that are searched repeatedly.
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

    /// Returns the matching names, best first. Names with equal scores are ordered by length, and
    /// names of equal length keep the given order.
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
    /// The maximum length of a gap that counts. A longer gap costs the same.
    static let widestGap = 6

    private let query: [Unicode.Scalar]
    private let name: FoldedText

    package init(_ query: [Unicode.Scalar], in name: FoldedText) {
        self.query = query
        self.name = name
    }

    /// Returns the greatest score, and the positions of the hits in the folded name. If several
    /// positions give this score, returns the earliest ones.
    func best() -> (score: Int, positions: [Int])? {
        guard !query.isEmpty, isSubsequence else { return nil }
        let count = name.scalars.count
        // For each character of the name, the best score of a match that ends at it. Each pass of
        // the loop adds one character of the query to the match.
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

    /// Returns what a hit in `column` adds to the score if the previous hit is in `origin`. The
    /// value is negative if there is a gap.
    static func transition(from origin: Int, to column: Int) -> Int {
        let gap = column - origin - 1
        return gap == 0 ? consecutive : Self.gap * min(gap, widestGap)
    }

    func bonus(at column: Int) -> Int {
        if column == 0 { return Self.nameStart }
        return name.wordStarts[column] ? Self.wordStart : 0
    }
}
