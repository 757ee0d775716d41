// What the generated readers and writers lean on beside the codec itself.

/// Notes that a struct's field was read.
/// - Throws: `PayloadError` when it was read before: a key may come once.
@inline(__always)
func claim(_ index: UInt64, in seen: inout UInt64) throws(PayloadError) {
    guard seen & (1 << index) == 0 else { throw PayloadError(path: "", reason: "duplicate key") }
    seen |= 1 << index
}

/// An error as seen from the struct: below the field being read, or between fields where the name is empty.
func located(_ error: PayloadError, in fieldName: StaticString) -> PayloadError {
    fieldName.utf8CodeUnitCount == 0 ? error : error.within(fieldName)
}

/// A required field that did not come.
func missing(_ key: StaticString) -> PayloadError {
    PayloadError(path: "", reason: "missing").within(key)
}

/// A name that a closed enumeration does not have.
func unknownValue(_ name: Text) -> PayloadError {
    PayloadError(path: "", reason: "unknown value \"\(name)\"")
}

extension Text {
    /// Whether it is exactly this text; makes no copy.
    package func equals(_ other: StaticString) -> Bool {
        bytes.withUnsafeBytes { own in
            own.elementsEqual(UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount))
        }
    }
}

extension MessagePackReader {
    /// Reads an array; the error's path names the element.
    /// - Throws: `PayloadError` also when there are more than `maxItems`.
    @inline(__always)
    mutating func readList<Element>(
        maxItems: Int, _ element: (inout MessagePackReader) throws(PayloadError) -> Element
    ) throws(PayloadError) -> [Element] {
        let count = try readArrayHeader()
        guard count <= maxItems else {
            throw PayloadError(path: "", reason: "\(count) items, limit \(maxItems)")
        }
        var items: [Element] = []
        items.reserveCapacity(min(count, 1_024))
        for index in 0..<count {
            do throws(PayloadError) {
                items.append(try element(&self))
            } catch {
                throw error.within(index: index)
            }
        }
        endContainer()
        return items
    }
}

/// A value on the heap: lets a struct hold one of its own kind.
package struct Boxed<Value: Hashable & Sendable>: Hashable, Sendable {
    private final class Storage: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private let storage: Storage

    package init(_ value: Value) { storage = Storage(value) }

    package var value: Value { storage.value }

    package static func == (left: Self, right: Self) -> Bool {
        left.storage === right.storage || left.value == right.value
    }

    package func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}

/// A map whose keys are names, in the order it came or was made.
package struct NameMap<Value: WireValue & Hashable>: WireValue, Hashable {
    /// One entry.
    package struct Entry: Hashable, Sendable {
        package var name: Text
        package var value: Value

        package init(name: Text, value: Value) {
            self.name = name
            self.value = value
        }
    }

    package var entries: [Entry]

    package init(_ entries: [(Text, Value)]) {
        self.entries = entries.map { Entry(name: $0.0, value: $0.1) }
    }

    package var isEmpty: Bool { entries.isEmpty }

    package subscript(name: Text) -> Value? { entries.first { $0.name == name }?.value }

    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self {
        var map = NameMap([])
        for _ in 0..<(try reader.readMapHeader()) {
            let name = try reader.readText(maxUTF16: .max, maxBytes: reader.limits.maxShortStringBytes)
            map.entries.append(Entry(name: name, value: try Value.read(from: &reader)))
        }
        reader.endContainer()
        return map
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeMapHeader(entries.count)
        for entry in entries {
            writer.writeText(entry.name)
            entry.value.write(to: &writer)
        }
    }
}
