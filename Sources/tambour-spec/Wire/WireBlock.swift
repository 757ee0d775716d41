/// Reads LZ4 blocks.
///
/// This implementation is independent: it shares no code with `TambourProtocol`, which uses the LZ4
/// library.
enum WireBlock {
    struct Failure: Error, Equatable, CustomStringConvertible {
        var description: String

        static let damaged = Failure(description: "not an LZ4 block")
    }

    /// Returns the decompressed bytes of a block.
    ///
    /// - Throws: `Failure` if the block is invalid or inflates to more than `limit` bytes. The
    ///   wording equals the wording of the runtime's errors.
    static func inflate(_ block: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var index = 0
        // `lastOffset` is the position in the block of the last match's offset. `lastMatch` is the
        // range of bytes that this match wrote.
        var lastOffset = -1
        var lastMatch = 0..<0

        while index < block.count {
            let token = block[index]
            index += 1
            let literals = try length(from: Int(token >> 4), in: block, at: &index)
            guard literals <= block.count - index else { throw .damaged }
            guard literals <= limit - bytes.count else {
                throw Failure(description: "inflates to more than \(limit) bytes")
            }
            bytes += block[index..<index + literals]
            index += literals

            if index == block.count {
                // If the output is empty, zero is the only valid token.
                guard !bytes.isEmpty || token == 0 else { throw .damaged }
                // The format requires that a block ends with literals. Readers may therefore copy
                // several bytes at a time before the end.
                let isEnd =
                    lastOffset < 0
                    || lastOffset <= block.count - 8 && lastMatch.lowerBound <= bytes.count - 12
                        && lastMatch.upperBound <= bytes.count - 5
                guard isEnd else { throw .damaged }
                return bytes
            }

            guard block.count - index >= 2 else { throw .damaged }
            let distance = Int(block[index]) | Int(block[index + 1]) << 8
            guard distance > 0, distance <= bytes.count else { throw .damaged }
            lastOffset = index
            index += 2
            let count = try length(from: Int(token & 0x0F), in: block, at: &index) + 4
            guard count <= limit - bytes.count else {
                throw Failure(description: "inflates to more than \(limit) bytes")
            }
            lastMatch = bytes.count..<bytes.count + count
            // Copies byte by byte, because a match may overlap its own output.
            for _ in 0..<count { bytes.append(bytes[bytes.count - distance]) }
        }
        throw .damaged
    }

    /// Reads a length. If `start` is 15, adds the following bytes, up to and including the first
    /// byte below 255.
    private static func length(
        from start: Int,
        in block: [UInt8],
        at index: inout Int
    ) throws(Failure) -> Int {
        var length = start
        guard length == 15 else { return length }
        while index < block.count {
            let byte = block[index]
            index += 1
            length += Int(byte)
            if byte != 255 { return length }
        }
        throw .damaged
    }
}
