/// Computes the largest size and depth of every payload and object from its types and limits.
///
/// Optional fields, and fields that need a capability, count as present. An enumeration counts as
/// the longest of its values and fallbacks. A bound therefore holds for every set of capabilities.
struct Bounds {
    let specification: Specification
    private let limits: [String: Int]
    private let structs: [String: StructType]
    private let enums: [String: EnumType]
    private let inboundTypes: Set<String>
    /// The extents computed so far. A struct has a separate entry for each set of omitted fields,
    /// and a separate entry if its pages count as one item.
    private var known: [String: Extent] = [:]
    private var open: [String] = []

    init(_ specification: Specification) {
        self.specification = specification
        limits = Dictionary(specification.limits.map { ($0.name, $0.value) }) { first, _ in first }
        structs = Dictionary(specification.structs.map { ($0.name, $0) }) { first, _ in first }
        enums = Dictionary(specification.enums.map { ($0.name, $0) }) { first, _ in first }
        inboundTypes = specification.inboundTypes
    }

    func limit(_ name: String?) -> Int? { name.flatMap { limits[$0] } }

    // MARK: Payloads and objects

    /// Returns the extent of a struct with all its fields.
    ///
    /// - Parameter oneItem: Whether each page counts as a single item. The server sends one item
    ///   even if this item alone exceeds `maxReplyBytes`.
    mutating func extent(of type: StructType, oneItem: Bool = false) -> Extent {
        extent(of: type, without: [], oneItem: oneItem)
    }

    private mutating func extent(
        of type: StructType,
        without: [String],
        oneItem: Bool = false
    ) -> Extent {
        let fields = type.fields.filter { !without.contains($0.key) }
        var sum = Extent.bytes(Self.headerSize(ofContainer: fields.count))
        for field in fields {
            sum.add(bytes: Self.size(ofString: field.key.utf8.count))
            sum.add(extent(of: field, oneItem: oneItem), at: field.key)
        }
        return sum.contained.capped(at: limit(type.limitBytes))
    }

    /// - Parameter oneItem: Whether a page counts as one item.
    mutating func extent(of field: Field, oneItem: Bool = false) -> Extent {
        var extent = extent(of: field.type, in: field, level: 0, oneItem: oneItem)
        if field.isPage, !oneItem { extent = extent.capped(at: limit("maxReplyBytes")) }
        return extent.capped(at: limit(field.totalBytes))
    }

    private mutating func extent(
        named name: String,
        without: [String],
        oneItem: Bool
    ) -> Extent {
        if let type = enums[name] { return extent(of: type) }
        guard let type = structs[name] else { return .failing(.unlimited) }
        let key = ([name, "\(oneItem)"] + without.sorted()).joined(separator: " ")
        if let known = known[key] { return known }
        // A recursive struct has unbounded depth. Its size is bounded only if an enclosing value
        // has a limit.
        guard !open.contains(key) else { return .failing(.endless) }
        open.append(key)
        let extent = extent(of: type, without: without, oneItem: oneItem)
        open.removeLast()
        known[key] = extent
        return extent
    }

    private func extent(of type: EnumType) -> Extent {
        let longest = type.values.map(\.value.utf8.count).max() ?? 0
        // An open enumeration keeps any string that a client sends.
        let isAnything = type.isOpen && inboundTypes.contains(type.name)
        let most = isAnything ? limit("maxShortStringBytes") ?? longest : longest
        return .bytes(Self.size(ofString: most))
    }

    // MARK: Types

    private mutating func extent(
        of type: WireType,
        in field: Field,
        level: Int,
        oneItem: Bool
    ) -> Extent {
        switch type {
        case .bool: return .bytes(1)
        case .int, .ms, .double, .chatID, .userID, .messageID: return .bytes(9)
        case .text, .string, .bytes:
            // A UTF-16 unit takes at most three bytes, because a scalar of four bytes has two
            // units.
            let units = limit(field.limitUnits).map { Extent.bytes(3).times($0) }
            guard let most = [units?.bytes, limit(field.limitBytes)].compactMap(\.self).min()
            else { return leafWithoutLimit(field) }
            let prefix = field.forms.map { form in
                if case .prefix(let prefix) = form.change { prefix.utf8.count } else { 0 }
            }
            let (sum, overflow) = most.addingReportingOverflow(prefix.max() ?? 0)
            return overflow || sum == .max
                ? .failing(.overflow) : .bytes(Self.size(ofString: sum))
        case .any:
            guard field.anyCheck == .reader else {
                // The reader stores or skips these bytes without decoding them, so their nesting
                // does not count.
                return .bytes(limit("maxInflatedBytes") ?? .max)
            }
            guard let most = limit(field.limitBytes) else { return leafWithoutLimit(field) }
            return Extent(bytes: most, depth: limit("maxAnyDepth") ?? .max)
        case .list(let item):
            let one = extent(of: item, in: field, level: level + 1, oneItem: oneItem)
            return container(of: one, in: field, level: level, oneItem: oneItem)
        case .map(_, let value):
            var one = extent(of: value, in: field, level: level + 1, oneItem: oneItem)
            // An id that is a key is written as a string of digits.
            one.add(bytes: Self.size(ofString: 20))
            return container(of: one, in: field, level: level, oneItem: oneItem)
        case .names(let value):
            var one = extent(of: value, in: field, level: level + 1, oneItem: oneItem)
            one.add(bytes: Self.size(ofString: limit("maxShortStringBytes") ?? 0))
            return container(of: one, in: field, level: level, oneItem: oneItem)
        case .packed(let inner):
            return extent(of: inner, in: field, level: level, oneItem: oneItem)
        case .named(let name):
            return extent(named: name, without: field.without, oneItem: oneItem)
        }
    }

    private func container(
        of one: Extent,
        in field: Field,
        level: Int,
        oneItem: Bool
    ) -> Extent {
        let most = oneItem && field.isPage ? 1 : limit(field.limitItems(at: level))
        guard let most else {
            // The caller limits the extent of a page, and the extent of a field with `totalBytes`.
            var unlimited = one
            unlimited.failure = one.failure ?? .unlimited
            return unlimited.contained
        }
        var all = one.times(most)
        all.add(bytes: Self.headerSize(ofContainer: most))
        return all.contained
    }

    private func leafWithoutLimit(_ field: Field) -> Extent {
        Extent(failure: .unlimited, depth: 0)
    }

    // MARK: Sizes of MessagePack

    static func size(ofString count: Int) -> Int {
        count.addingReportingOverflow(count < 32 ? 1 : count < 256 ? 2 : count < 65_536 ? 3 : 5)
            .partialValue
    }

    static func headerSize(ofContainer count: Int) -> Int {
        count < 16 ? 1 : count < 65_536 ? 3 : 5
    }
}
