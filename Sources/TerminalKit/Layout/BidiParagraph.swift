/// The direction of a paragraph and of each of its clusters, by the implicit rules of UAX #9.
///
/// Explicit embeddings, overrides and isolates are not supported, because a message must not
/// reorder the text around it. The control characters for them count as invisible.
package struct BidiParagraph: Sendable {
    package enum Direction: Sendable {
        /// The direction of the first strong character (rules P2 and P3); left to right if there is
        /// no strong character.
        case automatic
        case leftToRight
        case rightToLeft
    }

    let isRightToLeft: Bool
    /// The embedding level of each cluster. Clusters with an odd level run from right to left.
    let levels: [UInt8]

    private let classes: [BidiClass]

    /// - Parameter clusters: One paragraph, without its paragraph separator.
    package init(_ clusters: [Character], direction: Direction = .automatic) {
        let classes = clusters.map { cluster in
            cluster.unicodeScalars.first.map(BidiClass.init(of:)) ?? .boundaryNeutral
        }
        self.classes = classes
        switch direction {
        case .automatic:
            let first = classes.first(where: \.isStrong)
            isRightToLeft = first == .rightToLeft || first == .arabicLetter
        case .leftToRight: isRightToLeft = false
        case .rightToLeft: isRightToLeft = true
        }
        if isRightToLeft || classes.contains(where: \.needsReordering) {
            var resolver = BidiResolver(classes, clusters, baseLevel: isRightToLeft ? 1 : 0)
            levels = resolver.resolve()
        } else {
            levels = Array(repeating: 0, count: clusters.count)
        }
    }

    /// Returns the clusters of a line in visual order (rules L1 and L2).
    ///
    /// - Parameter line: A range of the paragraph's clusters.
    /// - Returns: The indices of the clusters from left to right, each with its level.
    func visualOrder(ofLine line: Range<Int>) -> [(index: Int, level: UInt8)] {
        let base: UInt8 = isRightToLeft ? 1 : 0
        var entries = line.map { (index: $0, level: levels[$0]) }
        resetTrailingSpace(&entries, to: base)
        guard let highest = entries.map(\.level).max(), highest > 0 else { return entries }
        let lowestOdd = entries.lazy.map(\.level).filter { $0 % 2 == 1 }.min() ?? highest + 1
        for level in stride(from: highest, through: lowestOdd, by: -1) {
            var start = 0
            while start < entries.count {
                guard entries[start].level >= level else {
                    start += 1
                    continue
                }
                var end = start
                while end < entries.count, entries[end].level >= level { end += 1 }
                entries[start..<end].reverse()
                start = end
            }
        }
        return entries
    }

    /// Rule L1: white space before a tab and at the end of a line gets the paragraph's level.
    private func resetTrailingSpace(_ entries: inout [(index: Int, level: UInt8)], to base: UInt8) {
        var isTrailing = true
        for position in entries.indices.reversed() {
            switch classes[entries[position].index] {
            case .segmentSeparator, .paragraphSeparator:
                isTrailing = true
                entries[position].level = base
            case .whiteSpace, .boundaryNeutral:
                if isTrailing { entries[position].level = base }
            default: isTrailing = false
            }
        }
    }
}
