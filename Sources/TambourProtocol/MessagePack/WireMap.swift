/// A key of a map on the wire: an id or a name.
package protocol WireKey: Hashable, Sendable, CustomStringConvertible {
    static func readKey(from reader: inout MessagePackReader) throws(PayloadError) -> Self
    func writeKey(to writer: inout MessagePackWriter)
}

/// A map whose keys are ids.
///
/// Keys are written as strings of digits, because JSON allows only string keys. The reader also
/// accepts integer keys.
package typealias IDMap<Key: WireID, Value> = WireMap<Key, Value>

/// A map whose keys are names of at most `maxShortStringBytes` bytes.
package typealias NameMap<Value> = WireMap<Text, Value>

/// A map whose entries have the same order as on the wire.
package struct WireMap<Key: WireKey, Value> {
    /// The entries in order.
    package var pairs: [(Key, Value)]

    package init(_ pairs: [(Key, Value)] = []) {
        self.pairs = pairs
    }

    package var isEmpty: Bool { pairs.isEmpty }

    /// The number of entries.
    package var count: Int { pairs.count }

    /// The value of a key, found by linear search. If a peer sent the key more than once, this is
    /// the last value.
    package subscript(key: Key) -> Value? {
        pairs.last { $0.0 == key }?.1
    }
}

extension WireMap: Sendable where Value: Sendable {}

extension WireMap: Equatable where Value: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        left.pairs.elementsEqual(right.pairs) { $0.0 == $1.0 && $0.1 == $1.1 }
    }
}

extension WireMap: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) {
        hasher.combine(pairs.count)
        for (key, value) in pairs {
            hasher.combine(key)
            hasher.combine(value)
        }
    }
}

extension WireMap {
    /// Reads a map and uses `value` to read its values. Rejects a map with more than `maxItems`
    /// entries before reserving memory.
    package static func read(
        from reader: inout MessagePackReader,
        maxItems: Int?,
        duplicates: Duplicates = .kept,
        _ value: (inout MessagePackReader) throws(PayloadError) -> Value
    ) throws(PayloadError) -> Self {
        let count = try reader.readMapHeader()
        if let maxItems, count > maxItems { throw .tooManyItems(count, limit: maxItems) }
        var pairs: [(Key, Value)] = []
        var seen = SeenKeys<Key>()
        let looksForDuplicates = duplicates != .kept && count > 1
        let compares = count <= SeenKeys<Key>.comparedKeys
        pairs.reserveCapacity(min(count, MessagePackReader.reservedItems))
        for _ in 0..<count {
            let key = try Key.readKey(from: &reader)
            do throws(PayloadError) {
                guard looksForDuplicates,
                    let place = compares
                        ? pairs.firstIndex(where: { $0.0 == key }) : seen.place(of: key)
                else {
                    pairs.append((key, try value(&reader)))
                    continue
                }
                guard duplicates == .merged else { throw .duplicateKey() }
                pairs[place].1 = try value(&reader)
            } catch {
                throw error.within(key: key)
            }
        }
        reader.endContainer()
        return Self(pairs)
    }
}

extension WireMap: WireValue where Value: WireValue {
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
        for (key, value) in pairs {
            key.writeKey(to: &writer)
            value.write(to: &writer)
        }
    }

    package static var gates: Capabilities { Value.gates }
}
