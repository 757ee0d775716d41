import Foundation

/// A packet divided into runs of bytes, each with one meaning.
///
/// Every byte belongs to exactly one run, and the runs follow the order of the bytes, even in an
/// invalid packet.
struct PacketAnatomy {
    struct Run: Equatable {
        enum Part: Equatable {
            case header, payload
            /// Bytes that cannot be decoded.
            case unread
        }

        var part: Part
        var offset: Int
        /// The bytes of the key if the run is an entry of a map; otherwise empty.
        var key: [UInt8] = []
        var bytes: [UInt8]
        /// The name of a header field, or a JSON pointer into the payload.
        var place: String
        var meaning: String
        /// The name of the encoding in MessagePack, such as `uint 64`. Empty in the header, and for
        /// types that have only one encoding.
        var encoding = ""
        /// The nesting depth in the payload.
        var depth = 0
        /// The corresponding field of the specification.
        var field: FieldName?
        /// Whether the run is an entry whose key is unknown in the containing object.
        var isUnknown = false
    }

    /// A field of a struct.
    struct FieldName: Hashable {
        var type: String
        var key: String
    }

    /// The maximum nesting depth to decode. A value that is nested more deeply is shown in one run
    /// with all bytes after it.
    private static let mostLevels = 40

    private(set) var runs: [Run] = []
    private let bytes: [UInt8]
    private let specification: Specification
    private var position = 0

    /// - Parameter type: The type of the payload.
    init(_ bytes: [UInt8], payload type: StructType?, in specification: Specification) {
        self.bytes = bytes
        self.specification = specification
        readHeader()
        guard position == 10 else { return }
        readPayload(type)
    }

    // MARK: Header

    private mutating func readHeader() {
        let fields: [(name: String, size: Int)] = [
            ("ver", 1), ("cmd", 1), ("seq", 2), ("opcode", 2), ("flags", 1), ("length", 3),
        ]
        for field in fields {
            guard bytes.count - position >= field.size else {
                closeUnread("the header ends too early")
                return
            }
            let value = bytes[position..<position + field.size].reduce(0) { $0 << 8 | Int($1) }
            runs.append(
                Run(
                    part: .header,
                    offset: position,
                    bytes: Array(bytes[position..<position + field.size]),
                    place: field.name,
                    meaning: meaning(of: field.name, value)
                )
            )
            position += field.size
        }
    }

    private func meaning(of field: String, _ value: Int) -> String {
        switch (field, value) {
        case ("cmd", 0): return "0, request or push"
        case ("cmd", 1): return "1, reply"
        case ("cmd", 3): return "3, error"
        case ("flags", 0): return "0, not compressed"
        case ("flags", 255): return "255, zstd"
        case ("flags", _): return "\(value), LZ4 block"
        case ("length", _): return "\(value) bytes follow"
        case ("opcode", _):
            let name = specification.families.lazy.flatMap(\.opcodes)
                .first { $0.number == value }?.name
            return name.map { "\(value), \($0)" } ?? "\(value)"
        default: return "\(value)"
        }
    }

    // MARK: Payload

    private struct Stop: Error {
        var reason: String
    }

    private mutating func readPayload(_ type: StructType?) {
        guard bytes[6] == 0 else {
            closeUnread("the compressed payload")
            return
        }
        guard position < bytes.count else { return }
        do throws(Stop) {
            try readValue(
                at: "",
                depth: 0,
                key: nil,
                type: type.map { .fields($0) } ?? .anything,
                field: nil
            )
        } catch {
            closeUnread(error.reason)
            return
        }
        if position < bytes.count { closeUnread("\(bytes.count - position) bytes after the map") }
    }

    /// Puts the remaining bytes into one run.
    private mutating func closeUnread(_ reason: String) {
        let covered = runs.last.map { $0.offset + $0.key.count + $0.bytes.count } ?? 0
        guard covered < bytes.count else { return }
        runs.append(
            Run(
                part: .unread,
                offset: covered,
                bytes: Array(bytes[covered...]),
                place: "",
                meaning: reason
            )
        )
        position = bytes.count
    }

    /// What the schema expects at the place of a value.
    private enum Schema {
        case fields(StructType)
        case type(WireType)
        case anything
    }

    private func schema(of type: WireType) -> Schema {
        switch type {
        case .packed(let inner): return schema(of: inner)
        case .named(let name):
            return specification.structType(named: name).map { .fields($0) } ?? .type(type)
        default: return .type(type)
        }
    }

    /// Reads a value and everything in it.
    ///
    /// - Parameters:
    ///   - key: The offset of the preceding key; nil if there is no key.
    ///   - field: The field that contains this value; nil for the payload itself and for items of
    ///     lists.
    private mutating func readValue(
        at path: String,
        depth: Int,
        key: Int?,
        type: Schema,
        field: FieldName?,
        isUnknown: Bool = false
    ) throws(Stop) {
        guard depth < Self.mostLevels else {
            throw Stop(reason: "nested deeper than this page shows")
        }
        let start = position
        let token = try readToken()
        let run = Run(
            part: .payload,
            offset: key ?? start,
            key: key.map { Array(bytes[$0..<start]) } ?? [],
            bytes: Array(bytes[start..<position]),
            place: path,
            meaning: meaning(of: token, as: type),
            encoding: token.encoding,
            depth: depth,
            field: field,
            isUnknown: isUnknown
        )
        runs.append(run)
        switch token.kind {
        case .scalar: break
        case .array(let count):
            var element = Schema.anything
            if case .type(.list(let inner)) = type { element = schema(of: inner) }
            for index in 0..<count {
                try readValue(
                    at: "\(path)/\(index)",
                    depth: depth + 1,
                    key: nil,
                    type: element,
                    field: nil
                )
            }
        case .map(let count):
            for _ in 0..<count { try readItem(of: type, at: path, depth: depth + 1) }
        }
    }

    private mutating func readItem(of type: Schema, at path: String, depth: Int) throws(Stop) {
        let start = position
        let token = try readToken()
        guard case .scalar(let value) = token.kind else {
            position = start
            throw Stop(reason: "a key that is no string")
        }
        var schema = Schema.anything
        var field: FieldName?
        var isUnknown = false
        switch type {
        case .fields(let owner):
            if let found = owner.field(under: value.keyText) {
                schema = self.schema(of: found.type)
                field = FieldName(type: owner.name, key: found.key)
            } else {
                isUnknown = true
            }
        case .type(.map(_, let inner)), .type(.names(let inner)): schema = self.schema(of: inner)
        case .type, .anything: break
        }
        try readValue(
            at: "\(path)/\(value.keyText)",
            depth: depth,
            key: start,
            type: schema,
            field: field,
            isUnknown: isUnknown
        )
    }

    private func meaning(of token: Token, as type: Schema) -> String {
        switch token.kind {
        case .array(let count): return "array of \(count)"
        case .map(let count): return "map of \(count)"
        case .scalar(let value):
            let text = JSONText(value).compact(most: 80)
            if case .type(.ms) = type, case .int(let ms) = value, ms > 0 {
                let date = Date(timeIntervalSince1970: Double(ms) / 1000)
                return "\(text) = \(date.formatted(Self.dates))"
            }
            return text
        }
    }

    private static let dates = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    // MARK: Tokens

    /// A scalar, or the header of a container.
    private struct Token {
        enum Kind {
            case scalar(WireNode)
            case array(Int)
            case map(Int)
        }

        var kind: Kind
        var encoding: String
    }

    private mutating func readToken() throws(Stop) -> Token {
        let first = UInt8(truncatingIfNeeded: try number(1))
        switch first {
        case 0x00...0x7F: return Token(kind: .scalar(.int(Int64(first))), encoding: "fixint")
        case 0x80...0x8F: return try map(Int(first & 0x0F), "fixmap")
        case 0x90...0x9F: return try array(Int(first & 0x0F), "fixarray")
        case 0xA0...0xBF: return try string(Int(first & 0x1F), "fixstr")
        case 0xC0: return Token(kind: .scalar(.null), encoding: "")
        case 0xC2: return Token(kind: .scalar(.bool(false)), encoding: "")
        case 0xC3: return Token(kind: .scalar(.bool(true)), encoding: "")
        case 0xC4...0xC6:
            let width = 1 << Int(first - 0xC4)
            let content = try take(try size(width))
            return Token(kind: .scalar(.bytes(content)), encoding: "bin \(width * 8)")
        case 0xC7...0xC9:
            let width = 1 << Int(first - 0xC7)
            return try ext(try size(width), "ext \(width * 8)")
        case 0xCA:
            let bits = UInt32(truncatingIfNeeded: try number(4))
            return Token(
                kind: .scalar(.double(Double(Float(bitPattern: bits)))),
                encoding: "float 32"
            )
        case 0xCB:
            return Token(
                kind: .scalar(.double(Double(bitPattern: try number(8)))),
                encoding: "float 64"
            )
        case 0xCC...0xCF:
            let width = 1 << Int(first - 0xCC)
            let value = try number(width)
            return Token(
                kind: .scalar(Int64(exactly: value).map { .int($0) } ?? .uint(value)),
                encoding: "uint \(width * 8)"
            )
        case 0xD0...0xD3:
            let width = 1 << Int(first - 0xD0)
            let shift = UInt64(64 - width * 8)
            let value = Int64(bitPattern: try number(width) << shift) >> Int64(shift)
            return Token(kind: .scalar(.int(value)), encoding: "int \(width * 8)")
        case 0xD4...0xD8: return try ext(1 << Int(first - 0xD4), "fixext")
        case 0xD9...0xDB:
            let width = 1 << Int(first - 0xD9)
            return try string(try size(width), "str \(width * 8)")
        case 0xDC: return try array(try size(2), "array 16")
        case 0xDD: return try array(try size(4), "array 32")
        case 0xDE: return try map(try size(2), "map 16")
        case 0xDF: return try map(try size(4), "map 32")
        case 0xE0...0xFF:
            return Token(kind: .scalar(.int(Int64(Int8(bitPattern: first)))), encoding: "fixint")
        default:
            throw Stop(reason: "the byte \(Hex.text([first])) starts no value")
        }
    }

    private mutating func number(_ width: Int) throws(Stop) -> UInt64 {
        try take(width).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func size(_ width: Int) throws(Stop) -> Int { Int(try number(width)) }

    private mutating func take(_ count: Int) throws(Stop) -> [UInt8] {
        guard count <= bytes.count - position else {
            throw Stop(reason: "ends before its time")
        }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    private mutating func string(_ count: Int, _ encoding: String) throws(Stop) -> Token {
        let content = try take(count)
        let value = String(validating: content, as: UTF8.self).map { WireNode.string($0) }
        return Token(kind: .scalar(value ?? .badString(content)), encoding: encoding)
    }

    private mutating func ext(_ count: Int, _ encoding: String) throws(Stop) -> Token {
        let type = Int8(truncatingIfNeeded: try number(1))
        return Token(kind: .scalar(.ext(type: type, try take(count))), encoding: encoding)
    }

    private func array(_ count: Int, _ encoding: String) throws(Stop) -> Token {
        guard count <= bytes.count - position else {
            throw Stop(reason: "claims \(count) items, more than there are bytes")
        }
        return Token(kind: .array(count), encoding: encoding)
    }

    private func map(_ count: Int, _ encoding: String) throws(Stop) -> Token {
        guard count * 2 <= bytes.count - position else {
            throw Stop(reason: "claims \(count) items, more than there are bytes")
        }
        return Token(kind: .map(count), encoding: encoding)
    }
}

extension WireNode {
    /// The map key as text, for a path.
    fileprivate var keyText: String {
        switch self {
        case .string(let text): text
        default: JSONText(self).compact()
        }
    }
}
