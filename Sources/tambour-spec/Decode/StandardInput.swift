import Foundation

/// Reads standard input in pieces as they arrive. A `FileHandle` would wait until all requested
/// bytes have arrived.
enum StandardInput {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// Waits for at least one byte, and returns the next bytes, at most 64 KiB. Returns nil at the
    /// end of the input.
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
