extension MessagePackReader {
    /// Skips one value that every client can decode.
    ///
    /// - Parameter levels: The maximum nesting of lists and maps. The recursion stays shallow,
    ///   because the operator cannot set `maxAnyDepth` above a fixed maximum.
    /// - Throws: `PayloadError` for extensions, keys that are not strings, integers above `Int64`,
    ///   and deeper nesting.
    mutating func skipDecodable(levels: Int) throws(PayloadError) {
        guard let kind else { throw truncated() }
        switch kind {
        case .map:
            guard levels > 0 else { throw tooDeepForClients() }
            for _ in 0..<(try readMapHeader()) {
                guard let key = self.kind else { throw truncated() }
                guard key == .string else { throw Self.undecodableKey(key) }
                try skip()
                try skipDecodable(levels: levels - 1)
            }
            endContainer()
        case .array:
            guard levels > 0 else { throw tooDeepForClients() }
            for _ in 0..<(try readArrayHeader()) { try skipDecodable(levels: levels - 1) }
            endContainer()
        case .integer: _ = try readInt()
        case .extension: throw Self.undecodableExtension()
        case .null, .boolean, .float, .string, .binary, .unused: try skip()
        }
    }

    @inline(never)
    private func tooDeepForClients() -> PayloadError {
        PayloadError(reason: "nested deeper than \(limits.maxAnyDepth)")
    }

    @inline(never)
    private static func undecodableKey(_ kind: MessagePackKind) -> PayloadError {
        PayloadError(reason: "expected a string as a key, found \(kind.description)")
    }

    @inline(never)
    private static func undecodableExtension() -> PayloadError {
        PayloadError(reason: "an extension, which clients cannot read")
    }
}
