/// A map keyed by names, in wire order.
package struct NameMap<Value> {
    /// The entries in order.
    package var pairs: [(Text, Value)]

    package init(_ pairs: [(Text, Value)] = []) {
        self.pairs = pairs
    }

    package var isEmpty: Bool { pairs.isEmpty }

    /// The number of entries.
    package var count: Int { pairs.count }

    /// The value of a name; the last one if a peer sent the name twice. Linear search.
    package subscript(name: Text) -> Value? {
        pairs.last { $0.0 == name }?.1
    }
}

extension NameMap: Sendable where Value: Sendable {}

extension NameMap: Equatable where Value: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        left.pairs.elementsEqual(right.pairs) { $0.0 == $1.0 && $0.1 == $1.1 }
    }
}

extension NameMap: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) {
        hasher.combine(pairs.count)
        for (name, value) in pairs {
            hasher.combine(name)
            hasher.combine(value)
        }
    }
}

extension NameMap {
    /// Reads a map and uses `value` to read its values. A map with more than `maxItems` entries is
    /// rejected before memory is reserved for it; a name has at most `maxShortStringBytes`.
    package static func read(
        from reader: inout MessagePackReader,
        maxItems: Int?,
        duplicates: Duplicates = .kept,
        _ value: (inout MessagePackReader) throws(PayloadError) -> Value
    ) throws(PayloadError) -> Self {
        let count = try reader.readMapHeader()
        if let maxItems, count > maxItems { throw .tooManyItems(count, limit: maxItems) }
        var pairs: [(Text, Value)] = []
        var seen = SeenKeys<Text>()
        let looksForDuplicates = duplicates != .kept && count > 1
        let compares = count <= SeenKeys<Text>.comparedKeys
        pairs.reserveCapacity(min(count, MessagePackReader.reservedItems))
        for _ in 0..<count {
            let name = try reader.readText(maxBytes: reader.limits.maxShortStringBytes)
            do throws(PayloadError) {
                guard looksForDuplicates,
                    let place = compares
                        ? pairs.firstIndex(where: { $0.0 == name }) : seen.place(of: name)
                else {
                    pairs.append((name, try value(&reader)))
                    continue
                }
                guard duplicates == .merged else { throw .duplicateKey() }
                pairs[place].1 = try value(&reader)
            } catch {
                throw PayloadError(path: "/\(name)\(error.path)", reason: error.reason)
            }
        }
        reader.endContainer()
        return Self(pairs)
    }
}

extension NameMap: WireValue where Value: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self {
        try read(from: &reader, maxItems: nil) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try Value.read(from: &reader)
        }
    }

    /// Writes the entries that the reader supports.
    package func write(to writer: inout MessagePackWriter) {
        let capabilities = writer.capabilities
        let pairs =
            capabilities.isSuperset(of: Value.gates)
            ? pairs : pairs.filter { $0.1.canBeRead(with: capabilities) }
        writer.writeMapHeader(pairs.count)
        for (name, value) in pairs {
            writer.writeText(name)
            value.write(to: &writer)
        }
    }

    package static var gates: Capabilities { Value.gates }
}
