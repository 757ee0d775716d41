// `Int64` is the type of every number from outside: ids, times and counts that come from the wire,
// the store and administrators. In every file that imports this module, the arithmetic operators
// below replace those of the standard library. They saturate at the bounds of the type, so a number
// from outside cannot crash the process. docs/decisions/0019-checked-arithmetic.md gives the
// reasons; TidyTests checks the imports.
extension Int64 {
    /// Returns the sum, or the bound that it exceeds.
    @inlinable package static func + (left: Int64, right: Int64) -> Int64 {
        let (sum, isTooLarge) = left.addingReportingOverflow(right)
        return isTooLarge ? (right < 0 ? .min : .max) : sum
    }

    /// Returns the difference, or the bound that it exceeds.
    @inlinable package static func - (left: Int64, right: Int64) -> Int64 {
        let (difference, isTooLarge) = left.subtractingReportingOverflow(right)
        return isTooLarge ? (right < 0 ? .max : .min) : difference
    }

    /// Returns the product, or the bound that it exceeds.
    @inlinable package static func * (left: Int64, right: Int64) -> Int64 {
        let (product, isTooLarge) = left.multipliedReportingOverflow(by: right)
        return isTooLarge ? ((left < 0) == (right < 0) ? .max : .min) : product
    }

    /// Returns the quotient. For a division by 0, returns the bound with the sign of `left`.
    /// Returns 0 for `0 / 0`.
    @inlinable package static func / (left: Int64, right: Int64) -> Int64 {
        let (quotient, isTooLarge) = left.dividedReportingOverflow(by: right)
        guard isTooLarge else { return quotient }
        return right < 0 || left > 0 ? .max : left < 0 ? .min : 0
    }

    /// Returns the remainder; 0 for a division by 0.
    @inlinable package static func % (left: Int64, right: Int64) -> Int64 {
        let (remainder, isTooLarge) = left.remainderReportingOverflow(dividingBy: right)
        return isTooLarge ? 0 : remainder
    }

    @inlinable package static func += (left: inout Int64, right: Int64) { left = left + right }
    @inlinable package static func -= (left: inout Int64, right: Int64) { left = left - right }
    @inlinable package static func *= (left: inout Int64, right: Int64) { left = left * right }
    @inlinable package static func /= (left: inout Int64, right: Int64) { left = left / right }
    @inlinable package static func %= (left: inout Int64, right: Int64) { left = left % right }

    /// Returns the negated number. For the smallest number, returns the largest.
    @inlinable package static prefix func - (number: Int64) -> Int64 { 0 - number }
}

/// Returns the absolute value. For the smallest number, returns the largest.
@inlinable package func abs(_ number: Int64) -> Int64 { number < 0 ? -number : number }

extension Int {
    /// Converts a count from outside. Clamps it to 0...`Int32.max`, so that later additions do not
    /// overflow.
    package init(count: Int64) {
        self = Int(clamping: Swift.min(Swift.max(count, 0), Int64(Int32.max)))
    }
}

extension Duration {
    /// The duration in whole milliseconds, or the bound that it exceeds.
    package var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
