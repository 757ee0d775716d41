/// How large an encoded value may be, and how deep lists and maps may lie inside each other in it.
struct Extent: Sendable {
    /// Why there is no bound of bytes.
    enum Failure: Sendable {
        /// A field has no limit; the check of fields says so.
        case unlimited
        /// The limits multiply to more than an `Int` holds.
        case overflow
        /// An object may hold one of its own kind, which may hold another.
        case endless
    }

    var bytes = 0
    var failure: Failure?
    var depth = 0
    /// The keys to where it is deepest.
    var deepest: [String] = []

    static func bytes(_ count: Int) -> Extent { Extent(bytes: count) }

    static func failing(_ failure: Failure) -> Extent { Extent(failure: failure) }

    /// This value and another one beside it.
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

    /// As many of these one after the other.
    func times(_ count: Int) -> Extent {
        var all = self
        let (product, overflow) = bytes.multipliedReportingOverflow(by: count)
        all.bytes = overflow ? .max : product
        if overflow, failure == nil { all.failure = .overflow }
        return all
    }

    /// This in a list or map.
    var contained: Extent {
        var outer = self
        outer.depth += 1
        return outer
    }

    /// At most `count` bytes, whatever the parts say.
    func capped(at count: Int?) -> Extent {
        guard let count, failure != nil || bytes > count else { return self }
        var capped = self
        capped.bytes = count
        capped.failure = nil
        return capped
    }
}
