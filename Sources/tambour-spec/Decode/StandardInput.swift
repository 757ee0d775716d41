import Foundation

/// Standard input as it arrives. A `FileHandle` would wait for the full requested length.
enum StandardInput {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// Returns the next bytes, at most 64 KiB, and waits for at least one byte. Nil at the end.
    static func piece() throws(Failure) -> [UInt8]? {
        while true {
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, size in
                count = read(STDIN_FILENO, buffer.baseAddress, buffer.count)
                size = max(count, 0)
            }
            if count > 0 { return bytes }
            if count == 0 { return nil }
            guard errno == EINTR else {
                throw Failure(description: "standard input: \(String(cString: strerror(errno)))")
            }
        }
    }
}
