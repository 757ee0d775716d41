// `Int64` is the type of every number that comes from outside: ids, times and counts of the wire, the
// store, and an operator. These operators take the place of the standard library's in every file that
// imports this module, and stop at the ends of the type: no such number can end the process.
// docs/decisions/0019-checked-arithmetic.md says why; TidyTests checks that the files import it.
extension Int64 {
    /// The sum, or the end of the type that it passes.
    @inlinable package static func + (left: Int64, right: Int64) -> Int64 {
        let (sum, isTooLarge) = left.addingReportingOverflow(right)
        return isTooLarge ? (right < 0 ? .min : .max) : sum
    }

    /// The difference, or the end of the type that it passes.
    @inlinable package static func - (left: Int64, right: Int64) -> Int64 {
        let (difference, isTooLarge) = left.subtractingReportingOverflow(right)
        return isTooLarge ? (right < 0 ? .max : .min) : difference
    }

    /// The product, or the end of the type that it passes.
    @inlinable package static func * (left: Int64, right: Int64) -> Int64 {
        let (product, isTooLarge) = left.multipliedReportingOverflow(by: right)
        return isTooLarge ? ((left < 0) == (right < 0) ? .max : .min) : product
    }

    /// The quotient; by 0 it is the end of the type on the side of `left`, and 0 for 0.
    @inlinable package static func / (left: Int64, right: Int64) -> Int64 {
        let (quotient, isTooLarge) = left.dividedReportingOverflow(by: right)
        guard isTooLarge else { return quotient }
        return right < 0 || left > 0 ? .max : left < 0 ? .min : 0
    }

    /// The remainder, 0 where there is none.
    @inlinable package static func % (left: Int64, right: Int64) -> Int64 {
        let (remainder, isTooLarge) = left.remainderReportingOverflow(dividingBy: right)
        return isTooLarge ? 0 : remainder
    }

    @inlinable package static func += (left: inout Int64, right: Int64) { left = left + right }
    @inlinable package static func -= (left: inout Int64, right: Int64) { left = left - right }
    @inlinable package static func *= (left: inout Int64, right: Int64) { left = left * right }
    @inlinable package static func /= (left: inout Int64, right: Int64) { left = left / right }
    @inlinable package static func %= (left: inout Int64, right: Int64) { left = left % right }

    /// The opposite; that of the smallest number is the largest.
    @inlinable package static prefix func - (number: Int64) -> Int64 { 0 - number }
}

/// The distance from 0; that of the smallest number is the largest.
@inlinable package func abs(_ number: Int64) -> Int64 { number < 0 ? -number : number }

extension Int {
    /// Takes a count from outside; what is no count becomes the nearest of 0 to `Int32.max`, so that
    /// counting on from it stays inside the type.
    package init(count: Int64) {
        self = Int(clamping: Swift.min(Swift.max(count, 0), Int64(Int32.max)))
    }
}

extension Duration {
    /// The whole milliseconds in it, or the end of the type that they pass.
    package var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
