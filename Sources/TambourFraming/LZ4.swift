internal import CLZ4
import TambourProtocol

/// Compresses and decompresses bare LZ4 blocks, without a frame or a size prefix.
package enum LZ4 {
    /// The reason why a block cannot be decompressed.
    package enum Failure: Error, Hashable, Sendable {
        /// The bytes are not a complete LZ4 block.
        case damaged
        /// The output would exceed the limit, in bytes.
        case tooLong(limit: Int)
    }

    /// Returns a compressed block; nil if the block would not be smaller than the input.
    package static func compress(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard bytes.count > 1 else { return nil }
        let block = [UInt8](unsafeUninitializedCapacity: bytes.count - 1) { room, count in
            count = compress(bytes, into: UnsafeMutableRawBufferPointer(room))
        }
        return block.isEmpty ? nil : block
    }

    /// Compresses into `room` and returns the size of the block; 0 if the block does not fit.
    static func compress(
        _ bytes: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        guard let source = bytes.baseAddress, let target = room.baseAddress,
            let size = Int32(exactly: bytes.count), let roomSize = Int32(exactly: room.count)
        else { return 0 }
        return Int(
            LZ4_compress_default(
                source.assumingMemoryBound(to: CChar.self),
                target.assumingMemoryBound(to: CChar.self),
                size,
                roomSize
            )
        )
    }

    /// Decompresses a whole block to at most `limit` bytes.
    ///
    /// First computes the output size without allocating. A decompression bomb is therefore
    /// rejected before any allocation, and the allocation has exactly the right size.
    /// - Throws: `Failure`.
    package static func decompress(
        _ block: UnsafeRawBufferPointer,
        limit: Int
    ) throws(Failure) -> [UInt8] {
        let size = try inflatedSize(block, limit: limit)
        guard let source = block.baseAddress, let blockSize = Int32(exactly: block.count),
            let roomSize = Int32(exactly: size)
        else { throw .damaged }
        var written: Int32 = 0
        // Allocate at least one byte, because the library needs a pointer even for empty output.
        let inflated = [UInt8](unsafeUninitializedCapacity: max(size, 1)) { room, count in
            if let target = room.baseAddress {
                written = LZ4_decompress_safe(
                    source.assumingMemoryBound(to: CChar.self),
                    UnsafeMutableRawPointer(target).assumingMemoryBound(to: CChar.self),
                    blockSize,
                    roomSize
                )
            }
            count = max(Int(written), 0)
        }
        guard written == roomSize else { throw .damaged }
        return inflated
    }

    /// Computes the decompressed size of a block by walking over its sequences. The last sequence
    /// ends after its literals.
    ///
    ///     ┌───────┬──────────────────┬──────────┬────────┬────────────────┐
    ///     │ token │ literal length…  │ literals │ offset │ match length…  │  …
    ///     │ 1     │ 0… (token hi 15) │ n        │ 2, LE  │ 0… (lo 15) + 4 │
    ///     └───────┴──────────────────┴──────────┴────────┴────────────────┘
    private static func inflatedSize(
        _ block: UnsafeRawBufferPointer,
        limit: Int
    ) throws(Failure) -> Int {
        let end = block.count
        var index = 0
        var size = 0

        while index < end {
            let token = block[index]
            index += 1
            let literals = try runLength(Int(token >> 4), in: block, at: &index)
            guard literals <= end - index else { throw .damaged }
            index += literals
            size += literals
            guard size <= limit else { throw .tooLong(limit: limit) }
            if index == end { return size }

            guard end - index >= 2 else { throw .damaged }
            let offset = Int(block[index]) | Int(block[index + 1]) << 8
            // Reject an offset of 0. With such an offset, the library would copy bytes of older,
            // unrelated data.
            guard offset > 0, offset <= size else { throw .damaged }
            index += 2
            size += try runLength(Int(token & 0x0F), in: block, at: &index) + 4
        }
        throw .damaged
    }

    /// Reads a length. If `start` is 15, further bytes follow, and their values are added to it.
    /// The first byte below 255 is the last one.
    private static func runLength(
        _ start: Int,
        in block: UnsafeRawBufferPointer,
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
