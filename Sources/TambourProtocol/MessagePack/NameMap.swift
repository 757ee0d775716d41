/// A map keyed by names, in the order it travels.
package struct NameMap<Value> {
    /// The entries in order.
    package var pairs: [(Text, Value)]

    package init(_ pairs: [(Text, Value)] = []) {
        self.pairs = pairs
    }

    /// Whether there is no entry.
    package var isEmpty: Bool { pairs.isEmpty }

    /// How many entries there are.
    package var count: Int { pairs.count }

    /// The value under a name; the last one if a peer sent the name twice.
    ///
    /// Looks at every entry.
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

extension NameMap: WireValue where Value: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self {
        let count = try reader.readMapHeader()
        var pairs: [(Text, Value)] = []
        pairs.reserveCapacity(min(count, MessagePackReader.reservedItems))
        for _ in 0..<count {
            let name = try reader.readText(maxBytes: reader.limits.maxShortStringBytes)
            do throws(PayloadError) {
                pairs.append((name, try Value.read(from: &reader)))
            } catch {
                throw PayloadError(path: "/\(name)\(error.path)", reason: error.reason)
            }
        }
        reader.endContainer()
        return Self(pairs)
    }

    /// Leaves out what the reader cannot be sent.
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
