import TambourProtocol

/// A position on the axis of a chat's messages: the id of a message that is, was or could be in the
/// chat.
///
///     63                                        16 15            0
///     ┌───────────────────────────────────────────┬──────────────┐
///     │ time of the message, Unix ms              │ counter      │
///     └───────────────────────────────────────────┴──────────────┘
///
/// No two messages of a chat share a millisecond, so any interval of the axis can be widened to
/// whole milliseconds. Pages are requested by time. Neighbouring pages therefore leave no gap and
/// do not overlap.
package struct Position: Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// The lower end of the axis, before every message.
    package static let min = Position(.min)
    /// The upper end of the axis, after every message.
    package static let max = Position(.max)

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// Unix milliseconds.
    package var timeMs: Int64 { rawValue >> 16 }

    /// The smallest position of a millisecond; safe for any 64-bit input.
    package static func first(at timeMs: Int64) -> Position {
        if timeMs > Position.max.timeMs { return .max }
        return Position(Swift.max(timeMs, Position.min.timeMs) << 16)
    }

    /// The largest position of a millisecond; safe for any 64-bit input.
    package static func last(at timeMs: Int64) -> Position {
        if timeMs < Position.min.timeMs { return .min }
        return Position(Swift.min(timeMs, Position.max.timeMs) << 16 | 0xFFFF)
    }

    /// Nil at the end of the axis.
    package var next: Position? { self == .max ? nil : Position(rawValue + 1) }

    /// Nil at the beginning of the axis.
    package var previous: Position? { self == .min ? nil : Position(rawValue - 1) }
}

extension Position: CustomStringConvertible {
    package var description: String {
        switch self {
        case .min: "-inf"
        case .max: "+inf"
        default: "\(timeMs).\(rawValue & 0xFFFF)"
        }
    }
}
