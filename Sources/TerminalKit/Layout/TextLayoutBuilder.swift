/// Builds the lines of a `TextLayout`.
package struct TextLayoutBuilder {
    /// A glyph of a paragraph, in the order of the text.
    private struct Item {
        var glyph: Glyph
        var cluster: Character
        /// The index of the glyph's cluster in the text; for an added item, the index of the
        /// following cluster.
        var position: Int
        var isAdded = false
        var traits: TextTraits
        var link: Int?

        var isSpace: Bool { LineBreaking.isSpace(cluster) }
    }

    private let options: TextLayout.Options
    /// The spans, sorted by start.
    private let spans: [TextSpan]
    private var nextSpan = 0
    private var open: [(span: TextSpan, link: Int?)] = []
    /// `traits` are the traits of all open spans, `link` is the link that was opened last, and
    /// `nextEnd` is the next end of an open span. They change only when a span opens or closes.
    private var traits = TextTraits()
    private var link: Int?
    private var nextEnd = Int.max

    private var items: [Item] = []
    /// The total width of `items`, in columns.
    private var columns = 0
    private var paragraphStart = 0

    package private(set) var lines: [TextLayout.Line] = []
    package private(set) var links: [TextLayout.Link] = []
    package private(set) var count = 0
    /// The number of items and spans visited so far. The sender chooses the text, so this number
    /// must stay small. It is linear in the number of clusters, plus the number of open spans at
    /// each start or end of a span.
    package private(set) var steps = 0

    package init(spans: [TextSpan], options: TextLayout.Options) {
        self.options = options
        self.spans = spans.filter { !$0.range.isEmpty && $0.range.upperBound > 0 }.sorted {
            $0.range.lowerBound < $1.range.lowerBound
        }
    }

    package mutating func add(_ text: String) {
        var units = 0
        for cluster in text {
            let end = units + cluster.utf16.count
            closeSpans(before: units)
            openSpans(before: end)
            if cluster.isNewline {
                finishParagraph()
                paragraphStart = count + 1
            } else {
                add(cluster)
            }
            units = end
            count += 1
        }
        closeSpans(before: .max)
        finishParagraph()
    }

    // MARK: Items

    private mutating func add(_ cluster: Character) {
        let head = cluster.head
        let isTab = head == "\t"
        append(
            Item(
                glyph: isTab ? .space : Glyph(cluster),
                cluster: head,
                position: count,
                traits: traits,
                link: link
            )
        )
        guard isTab else { return }
        let stop = max(1, options.tabWidth)
        while columns % stop != 0 {
            append(
                Item(
                    glyph: .space,
                    cluster: "\t",
                    position: count + 1,
                    isAdded: true,
                    traits: traits,
                    link: link
                )
            )
        }
    }

    private mutating func append(_ item: Item) {
        items.append(item)
        columns += item.glyph.width
        steps += 1
    }

    private mutating func openSpans(before end: Int) {
        let openBefore = open.count
        while nextSpan < spans.count, spans[nextSpan].range.lowerBound < end {
            let span = spans[nextSpan]
            nextSpan += 1
            var link: Int?
            if span.traits.contains(.link), let address = span.address {
                link = links.count
                let number = options.firstLinkNumber.map { $0 + links.count }
                links.append(TextLayout.Link(number: number, address: address))
            }
            open.append((span, link))
        }
        if open.count != openBefore { spansChanged() }
    }

    private mutating func closeSpans(before units: Int) {
        guard nextEnd <= units else { return }
        for (span, link) in open where span.range.upperBound <= units {
            guard let link, let number = links[link].number else { continue }
            for character in "[\(number)]" {
                append(
                    Item(
                        glyph: Glyph(character),
                        cluster: character,
                        position: count,
                        isAdded: true,
                        traits: .linkNumber,
                        link: link
                    )
                )
            }
        }
        open.removeAll { $0.span.range.upperBound <= units }
        spansChanged()
    }

    private mutating func spansChanged() {
        traits = open.reduce(into: TextTraits()) { $0.formUnion($1.span.traits) }
        link = open.last { $0.link != nil }?.link
        nextEnd = open.reduce(Int.max) { min($0, $1.span.range.upperBound) }
        steps += open.count
    }

    // MARK: Lines

    private mutating func finishParagraph() {
        let bidi = BidiParagraph(items.map(\.cluster))
        var start = 0
        repeat {
            let end = lineEnd(from: start)
            addLine(start..<end, bidi)
            start = end
        } while start < items.count
        items.removeAll(keepingCapacity: true)
        columns = 0
    }

    private var indent: Int {
        min(lines.isEmpty ? options.firstIndent : options.indent, max(0, options.width - 1))
    }

    /// The columns available for the text of the next line.
    private var available: Int { max(1, options.width - indent - (options.hasCursor ? 1 : 0)) }

    /// Returns the latest possible end of the line that begins with item `start`.
    private mutating func lineEnd(from start: Int) -> Int {
        let available = available
        var used = 0
        var lastBreak: Int?
        for index in start..<items.count {
            let item = items[index]
            steps += 1
            // White space may extend beyond the width.
            if !item.isSpace, item.glyph.width > 0, used + item.glyph.width > available,
                index > start
            {
                return lastBreak ?? index
            }
            used += item.glyph.width
            if index + 1 < items.count, canBreak(after: index) { lastBreak = index + 1 }
        }
        return items.count
    }

    private func canBreak(after index: Int) -> Bool {
        // A link number stays on the line of its link.
        if items[index + 1].isAdded { return false }
        return LineBreaking.isAllowed(
            after: items[index].cluster,
            before: items[index + 1].cluster,
            following: index > 0 ? items[index - 1].cluster : nil
        )
    }

    private mutating func addLine(_ range: Range<Int>, _ bidi: BidiParagraph) {
        steps += range.count
        let hanging = hangingItems(of: range)
        var glyphs: [TextLayout.Placed] = []
        var columns = 0
        for (index, level) in bidi.visualOrder(ofLine: range) where !hanging.contains(index) {
            let item = items[index]
            guard item.glyph.width > 0 else { continue }
            let image = level % 2 == 1 ? BidiMirroring.mirrored(item.cluster) : item.cluster
            glyphs.append(
                TextLayout.Placed(
                    glyph: image == item.cluster ? item.glyph : Glyph(image),
                    column: columns,
                    offset: item.isAdded ? nil : item.position,
                    traits: item.traits,
                    link: item.link
                )
            )
            columns += item.glyph.width
        }
        let first =
            bidi.isRightToLeft ? max(0, options.width - indent - columns) : indent
        for index in glyphs.indices { glyphs[index].column += first }
        let isContinued = range.upperBound < items.count
        let start = range.lowerBound == 0 ? paragraphStart : items[range.lowerBound].position
        let end = isContinued ? items[range.upperBound].position : count
        let endColumn =
            bidi.isRightToLeft
            ? max(0, first - 1) : min(first + columns, max(0, options.width - 1))
        lines.append(
            TextLayout.Line(
                glyphs: glyphs,
                range: start..<end,
                isRightToLeft: bidi.isRightToLeft,
                endColumn: endColumn,
                isContinued: isContinued
            )
        )
    }

    /// Returns the items at the end of a line that are white space beyond the width.
    private func hangingItems(of range: Range<Int>) -> Range<Int> {
        let available = available
        var used = range.reduce(0) { $0 + items[$1].glyph.width }
        var start = range.upperBound
        while used > available, start > range.lowerBound,
            items[start - 1].isSpace || items[start - 1].glyph.width == 0
        {
            start -= 1
            used -= items[start].glyph.width
        }
        return start..<range.upperBound
    }
}

extension Character {
    /// The first scalars of a cluster, which suffice for layout.
    ///
    /// When a cluster is compared or hashed, the standard library sorts its marks. The time is
    /// quadratic in the number of marks. A message can have thousands of marks on one letter.
    package var head: Character {
        let most = 16
        guard utf8.count > 4 * most else { return self }
        let head = String(String.UnicodeScalarView(unicodeScalars.prefix(most)))
        return head.dropFirst().isEmpty ? Character(head) : "\u{FFFD}"
    }
}
