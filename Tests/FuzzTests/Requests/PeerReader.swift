@testable import tambour_spec

/// Reads the server's packets as the strictest known client does: string or integer keys, no
/// extensions, valid UTF-8, and limited nesting.
///
/// It shares no code with the server's own reader.
struct PeerReader {
    private struct Unreadable: Error {
        let reason: String
    }

    private let maxDepth: Int

    init(_ specification: Specification) {
        maxDepth = specification.limit(named: "maxDepth")?.value ?? 32
    }

    /// Returns the reason why a client cannot read a payload; nil if the client can read it.
    func problem(of payload: [UInt8]) -> String? {
        if payload.isEmpty { return nil }
        return payload.withUnsafeBufferPointer { bytes in
            var cursor = Cursor(bytes: bytes, maxDepth: maxDepth)
            do {
                try cursor.value(depth: 0)
                return cursor.position == bytes.count ? nil : "bytes after the payload"
            } catch {
                return (error as? Unreadable)?.reason ?? "\(error)"
            }
        }
    }

    private struct Cursor {
        let bytes: UnsafeBufferPointer<UInt8>
        let maxDepth: Int
        var position = 0

        mutating func value(depth: Int) throws {
            let first = try number(1)
            switch first {
            case 0x00...0x7F, 0xC0, 0xC2, 0xC3, 0xE0...0xFF: break
            case 0x80...0x8F: try map(first & 0x0F, depth)
            case 0x90...0x9F: try array(first & 0x0F, depth)
            case 0xA0...0xBF: try text(first & 0x1F)
            case 0xC4...0xC6: try skip(try number(1 << (first - 0xC4)))
            case 0xC7...0xC9, 0xD4...0xD8: throw Unreadable(reason: "an extension")
            case 0xCA: try skip(4)
            case 0xCB: try skip(8)
            case 0xCC...0xCF: try skip(1 << (first - 0xCC))
            case 0xD0...0xD3: try skip(1 << (first - 0xD0))
            case 0xD9...0xDB: try text(try number(1 << (first - 0xD9)))
            case 0xDC: try array(try number(2), depth)
            case 0xDD: try array(try number(4), depth)
            case 0xDE: try map(try number(2), depth)
            case 0xDF: try map(try number(4), depth)
            default: throw Unreadable(reason: "the byte \(first)")
            }
        }

        private mutating func array(_ count: Int, _ depth: Int) throws {
            try enter(depth)
            for _ in 0..<count { try value(depth: depth + 1) }
        }

        private mutating func map(_ count: Int, _ depth: Int) throws {
            try enter(depth)
            for _ in 0..<count {
                guard position < bytes.count else { throw Unreadable(reason: "it is cut") }
                switch bytes[position] {
                case 0xA0...0xBF, 0xD9...0xDB, 0x00...0x7F, 0xE0...0xFF, 0xCC...0xCF, 0xD0...0xD3:
                    try value(depth: depth + 1)
                default: throw Unreadable(reason: "a key that is neither a text nor a number")
                }
                try value(depth: depth + 1)
            }
        }

        private func enter(_ depth: Int) throws {
            guard depth < maxDepth else {
                throw Unreadable(reason: "nested deeper than \(maxDepth)")
            }
        }

        private mutating func text(_ count: Int) throws {
            let start = position
            try skip(count)
            let content = UnsafeBufferPointer(rebasing: bytes[start..<position])
            if content.allSatisfy({ $0 < 0x80 }) { return }
            guard String(validating: content, as: UTF8.self) != nil else {
                throw Unreadable(reason: "a text that is not UTF-8")
            }
        }

        private mutating func skip(_ count: Int) throws {
            guard count <= bytes.count - position else { throw Unreadable(reason: "it is cut") }
            position += count
        }

        private mutating func number(_ width: Int) throws -> Int {
            let start = position
            try skip(width)
            var number = 0
            for index in start..<position { number = number << 8 | Int(bytes[index]) }
            return number
        }
    }
}
