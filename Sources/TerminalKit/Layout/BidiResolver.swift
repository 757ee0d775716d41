/// Applies rules W1 to W7, N0 to N2, I1 and I2 of UAX #9 to one paragraph, which is a single level
/// run.
package struct BidiResolver {
    private let baseLevel: UInt8
    private let clusters: [Character]
    /// The indices of the visible characters. Invisible ones are ignored (rule X9).
    private let visible: [Int]
    /// The current classes of the visible characters; each rule changes some of them.
    private var classes: [BidiClass]
    private let originalClasses: [BidiClass]

    package init(_ classes: [BidiClass], _ clusters: [Character], baseLevel: UInt8) {
        self.baseLevel = baseLevel
        self.clusters = clusters
        visible = classes.indices.filter { classes[$0] != .boundaryNeutral }
        self.classes = visible.map { classes[$0] }
        originalClasses = self.classes
    }

    /// Returns the level of every cluster. An invisible cluster gets the level of its predecessor.
    package mutating func resolve() -> [UInt8] {
        resolveWeak()
        resolveBrackets()
        resolveNeutral()
        var levels = Array(repeating: baseLevel, count: clusters.count)
        var next = 0
        var last = baseLevel
        for index in levels.indices {
            if next < visible.count, visible[next] == index {
                last = level(of: classes[next])
                next += 1
            }
            levels[index] = last
        }
        return levels
    }

    /// Rules I1 and I2.
    private func level(of resolved: BidiClass) -> UInt8 {
        switch resolved {
        case .rightToLeft: baseLevel % 2 == 0 ? baseLevel + 1 : baseLevel
        case .europeanNumber, .arabicNumber: baseLevel % 2 == 0 ? baseLevel + 2 : baseLevel + 1
        default: baseLevel % 2 == 0 ? baseLevel : baseLevel + 1
        }
    }

    private var baseClass: BidiClass { baseLevel % 2 == 0 ? .leftToRight : .rightToLeft }

    // MARK: Numbers and marks

    private mutating func resolveWeak() {
        var previous = baseClass
        for index in classes.indices {  // Rule W1
            if classes[index] == .nonspacingMark { classes[index] = previous }
            previous = classes[index]
        }
        var strong = baseClass
        for index in classes.indices {  // Rule W2
            if classes[index].isStrong { strong = classes[index] }
            if classes[index] == .europeanNumber, strong == .arabicLetter {
                classes[index] = .arabicNumber
            }
        }
        for index in classes.indices where classes[index] == .arabicLetter {  // Rule W3
            classes[index] = .rightToLeft
        }
        resolveSeparators()
        resolveTerminators()
        for index in classes.indices {  // Rule W6
            switch classes[index] {
            case .europeanSeparator, .europeanTerminator, .commonSeparator:
                classes[index] = .otherNeutral
            default: break
            }
        }
        strong = baseClass
        for index in classes.indices {  // Rule W7
            if classes[index].isStrong { strong = classes[index] }
            if classes[index] == .europeanNumber, strong == .leftToRight {
                classes[index] = .leftToRight
            }
        }
    }

    /// Rule W4: a single separator between two numbers of the same kind becomes part of the number.
    private mutating func resolveSeparators() {
        for index in classes.indices.dropFirst().dropLast() {
            let before = classes[index - 1]
            guard before == classes[index + 1] else { continue }
            switch (classes[index], before) {
            case (.europeanSeparator, .europeanNumber), (.commonSeparator, .europeanNumber),
                (.commonSeparator, .arabicNumber):
                classes[index] = before
            default: break
            }
        }
    }

    /// Rule W5: currency and per cent signs beside a European number become part of the number.
    private mutating func resolveTerminators() {
        var index = 0
        while index < classes.count {
            guard classes[index] == .europeanTerminator else {
                index += 1
                continue
            }
            let start = index
            while index < classes.count, classes[index] == .europeanTerminator { index += 1 }
            let touchesNumber =
                start > 0 && classes[start - 1] == .europeanNumber
                || index < classes.count && classes[index] == .europeanNumber
            if touchesNumber {
                for terminator in start..<index { classes[terminator] = .europeanNumber }
            }
        }
    }

    // MARK: Brackets

    /// Returns the direction that a character of this class gives to its neutral neighbours.
    /// Numbers count as right to left.
    private func direction(of resolved: BidiClass) -> BidiClass? {
        switch resolved {
        case .leftToRight: .leftToRight
        case .rightToLeft, .europeanNumber, .arabicNumber: .rightToLeft
        default: nil
        }
    }

    /// Rule N0: both brackets of a pair get the same direction, which their contents determine.
    private mutating func resolveBrackets() {
        for (open, close) in bracketPairs() {
            let inside = classes[open + 1..<close].compactMap(direction(of:))
            if inside.contains(baseClass) {
                setBracket(open, to: baseClass)
                setBracket(close, to: baseClass)
            } else if !inside.isEmpty {
                let before = classes[..<open].reversed().lazy.compactMap(direction(of:)).first
                let resolved = before ?? baseClass
                setBracket(open, to: resolved)
                setBracket(close, to: resolved)
            }
        }
    }

    /// Sets the class of a bracket and of the combining marks after it.
    private mutating func setBracket(_ index: Int, to resolved: BidiClass) {
        classes[index] = resolved
        var mark = index + 1
        while mark < classes.count, originalClasses[mark] == .nonspacingMark {
            classes[mark] = resolved
            mark += 1
        }
    }

    /// Rule BD16: returns the pairs in the order of their opening brackets.
    private func bracketPairs() -> [(open: Int, close: Int)] {
        var stack: [(closing: Unicode.Scalar, index: Int)] = []
        var pairs: [(open: Int, close: Int)] = []
        for index in classes.indices where classes[index] == .otherNeutral {
            guard let scalar = clusters[visible[index]].unicodeScalars.first else { continue }
            switch BidiMirroring.bracket(scalar) {
            case .opening(let closing):
                // If brackets are nested more deeply, rule BD16 finds no pairs at all.
                guard stack.count < 63 else { return [] }
                stack.append((closing, index))
            case .closing(let canonical):
                if let depth = stack.lastIndex(where: { $0.closing == canonical }) {
                    pairs.append((stack[depth].index, index))
                    stack.removeSubrange(depth...)
                }
            case nil: break
            }
        }
        return pairs.sorted { $0.open < $1.open }
    }

    // MARK: Neutrals

    /// Rules N1 and N2: neutrals between two equal directions get that direction. Other neutrals
    /// get the paragraph's direction.
    private mutating func resolveNeutral() {
        var index = 0
        while index < classes.count {
            guard classes[index].isNeutral else {
                index += 1
                continue
            }
            let start = index
            while index < classes.count, classes[index].isNeutral { index += 1 }
            let before = start > 0 ? direction(of: classes[start - 1]) : baseClass
            let after = index < classes.count ? direction(of: classes[index]) : baseClass
            let resolved = before == after ? before ?? baseClass : baseClass
            for neutral in start..<index { classes[neutral] = resolved }
        }
    }
}
