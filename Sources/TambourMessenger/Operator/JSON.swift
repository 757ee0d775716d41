import TambourProtocol

/// A JSON value, for exports of user data.
indirect enum JSON {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])

    /// The value as one line of text, without control characters.
    var text: String {
        var text = ""
        append(to: &text)
        return text
    }

    private func append(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .int(let value): text += "\(value)"
        // Write null for NaN and infinity, which JSON cannot express.
        case .double(let value): text += value.isFinite ? "\(value)" : "null"
        case .string(let value): Self.append(value, to: &text)
        case .array(let items):
            text += "["
            for (index, item) in items.enumerated() {
                if index > 0 { text += "," }
                item.append(to: &text)
            }
            text += "]"
        case .object(let entries):
            text += "{"
            for (index, (key, value)) in entries.enumerated() {
                if index > 0 { text += "," }
                Self.append(key, to: &text)
                text += ":"
                value.append(to: &text)
            }
            text += "}"
        }
    }

    private static func append(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case _ where scalar.properties.generalCategory == .control:
                let hex = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

extension JSON {
    init(_ text: Text) { self = .string(String(text)) }
    init(_ text: String?) { self = text.map { .string($0) } ?? .null }
    init(_ id: some WireID) { self = .int(id.rawValue) }

    /// Formats a time in Unix milliseconds as text; null for the time 0.
    init(time ms: Int64) { self = ms > 0 ? .string(AdminText.time(ms)) : .null }

    /// Returns an object with the entries whose values are not null.
    static func some(_ entries: [(String, JSON)]) -> JSON {
        .object(entries.filter { if case .null = $0.1 { false } else { true } })
    }

    /// Decodes stored MessagePack; null for missing or unreadable bytes.
    init(packed bytes: Bytes?) {
        guard let bytes else {
            self = .null
            return
        }
        self =
            (try? MessagePackReader.readStored(bytes) {
                (reader: inout MessagePackReader) throws(PayloadError) in
                try JSON.read(&reader)
            }) ?? .null
    }

    private static func read(
        _ reader: inout MessagePackReader
    ) throws(PayloadError) -> JSON {
        switch reader.kind {
        case .boolean: return .bool(try reader.readBool())
        case .integer: return .int(try reader.readInt())
        case .float: return .double(try reader.readDouble())
        case .string: return .string(try reader.readString())
        case .binary:
            let digits = Array("0123456789abcdef")
            let hex = try reader.readBytes().array.flatMap {
                [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
            }
            return .object([("$bytes", .string(String(hex)))])
        case .array:
            return .array(
                try reader.readList { (reader: inout MessagePackReader) throws(PayloadError) in
                    try read(&reader)
                }
            )
        case .map:
            var entries: [(String, JSON)] = []
            for _ in 0..<(try reader.readMapHeader()) {
                let key =
                    switch try reader.readKey() {
                    case .name(let name): String(decoding: name, as: UTF8.self)
                    case .int(let number): "\(number)"
                    case .other: "?"
                    }
                entries.append((key, try read(&reader)))
            }
            reader.endContainer()
            return .object(entries)
        default:
            try reader.skip()
            return .null
        }
    }
}
