/// A closed interval of the axis, which includes both ends and consists of whole milliseconds.
package struct PositionInterval: Hashable, Sendable {
    package let lower: Position
    package let upper: Position

    /// The interval from the millisecond of `lower` through the millisecond of `upper`.
    ///
    /// - Returns: nil when `upper` is before `lower`.
    package init?(from lower: Position = .min, through upper: Position) {
        guard lower <= upper else { return nil }
        self.lower = .first(at: lower.timeMs)
        self.upper = .last(at: upper.timeMs)
    }

    /// The interval after the millisecond of `previous` through the millisecond of `upper`.
    ///
    /// - Parameter previous: nil for the beginning of the axis.
    /// - Returns: nil when the interval is empty.
    package init?(after previous: Position?, through upper: Position) {
        guard let previous else {
            self.init(through: upper)
            return
        }
        guard let lower = Position.last(at: previous.timeMs).next else { return nil }
        self.init(from: lower, through: upper)
    }

    package func contains(_ position: Position) -> Bool { lower <= position && position <= upper }

    /// Returns whether this interval ends before `other` begins, with at least one position between
    /// them.
    func isApart(below other: PositionInterval) -> Bool {
        guard let next = upper.next else { return false }
        return next < other.lower
    }

    /// Returns the interval from the smaller lower end to the larger upper end.
    func union(_ other: PositionInterval) -> PositionInterval {
        PositionInterval(min(lower, other.lower), max(upper, other.upper))
    }

    /// Returns the part at or above `floor`; nil when the part is empty.
    func clipped(from floor: Position) -> PositionInterval? {
        upper < floor ? nil : PositionInterval(from: max(lower, floor), through: upper)
    }

    private init(_ lower: Position, _ upper: Position) {
        self.lower = lower
        self.upper = upper
    }
}

extension PositionInterval: CustomStringConvertible {
    package var description: String { "[\(lower), \(upper)]" }
}
