/// The maximum size of an encoded value, and the maximum nesting of lists and maps in it.
struct Extent: Sendable {
    /// The reason why the size is unbounded.
    enum Failure: Sendable {
        /// A field has no limit; `FieldLimitCheck` reports it.
        case unlimited
        /// The product of the limits does not fit into an `Int`.
        case overflow
        /// An object may contain an object of its own type, to any depth.
        case endless
    }

    var bytes = 0
    var failure: Failure?
    var depth = 0
    /// The keys on the path to the most deeply nested value.
    var deepest: [String] = []

    static func bytes(_ count: Int) -> Extent { Extent(bytes: count) }

    static func failing(_ failure: Failure) -> Extent { Extent(failure: failure) }

    /// Adds the extent of another value that is at the same nesting level.
    mutating func add(_ other: Extent, at key: String? = nil) {
        add(bytes: other.bytes)
        failure = failure ?? other.failure
        if other.depth > depth || deepest.isEmpty {
            depth = max(depth, other.depth)
            deepest = (key.map { [$0] } ?? []) + other.deepest
        }
    }

    mutating func add(bytes count: Int) {
        let (sum, overflow) = bytes.addingReportingOverflow(count)
        bytes = overflow ? .max : sum
        if overflow { failure = failure ?? .overflow }
    }

    /// Returns the extent of `count` consecutive values of this extent.
    func times(_ count: Int) -> Extent {
        var all = self
        let (product, overflow) = bytes.multipliedReportingOverflow(by: count)
        all.bytes = overflow ? .max : product
        if overflow, failure == nil { all.failure = .overflow }
        return all
    }

    /// The extent of this value after it is put inside a list or map.
    var contained: Extent {
        var outer = self
        outer.depth += 1
        return outer
    }

    /// Returns the extent capped at `count` bytes.
    func capped(at count: Int?) -> Extent {
        guard let count, failure != nil || bytes > count else { return self }
        var capped = self
        capped.bytes = count
        capped.failure = nil
        return capped
    }
}
