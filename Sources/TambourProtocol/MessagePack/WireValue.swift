/// A value that can be read from and written to MessagePack.
package protocol WireValue: Sendable {
    /// Reads one value at the cursor.
    /// - Throws: `PayloadError`. Its path is relative to this value.
    static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self

    /// Writes the value in its shortest form.
    func write(to writer: inout MessagePackWriter)

    /// The capabilities that affect the encoding of this type. For most types this set is empty,
    /// and their values are written without checks.
    static var gates: Capabilities { get }

    /// Returns whether a reader with these capabilities can receive the value.
    func canBeRead(with capabilities: Capabilities) -> Bool
}

extension WireValue {
    package static var gates: Capabilities { [] }

    package func canBeRead(with capabilities: Capabilities) -> Bool { true }
}

extension Bool: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Bool {
        try reader.readBool()
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeBool(self)
    }
}

extension Int64: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Int64 {
        try reader.readInt()
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeInt(self)
    }
}

extension Int: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Int {
        Int(clamping: try reader.readInt())
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeInt(Int64(self))
    }
}

extension Double: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Double {
        try reader.readDouble()
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeDouble(self)
    }
}

extension String: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> String {
        try reader.readString()
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeString(self)
    }
}

extension Bytes: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Bytes {
        try reader.readBytes()
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeBytes(self)
    }
}

extension Array: WireValue where Element: WireValue {
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> [Element]
    {
        try reader.readList { (reader: inout MessagePackReader) throws(PayloadError) -> Element in
            try Element.read(from: &reader)
        }
    }

    /// Writes the items that the reader supports.
    package func write(to writer: inout MessagePackWriter) {
        let capabilities = writer.capabilities
        let items =
            capabilities.isSuperset(of: Element.gates)
            ? self : filter { $0.canBeRead(with: capabilities) }
        writer.writeArrayHeader(items.count)
        for item in items { item.write(to: &writer) }
    }

    package static var gates: Capabilities { Element.gates }
}
