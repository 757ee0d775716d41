import Glibc
import TambourNet

/// A connection with blocking reads, for one request at a time.
final class BlockingConnection {
    private(set) var bytesIn = 0
    private(set) var bytesOut = 0
    let descriptor: Int32
    private var buffer: [UInt8]
    private var begin = 0
    private var end = 0

    /// Connects; a read that takes more than 30 s fails.
    init(_ address: ListenAddress) throws {
        descriptor = try dial(address)
        buffer = Array(repeating: 0, count: 256 << 10)
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(
            descriptor,
            SOL_SOCKET,
            SO_RCVTIMEO,
            &patience,
            socklen_t(MemoryLayout<timeval>.size)
        )
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) throws {
        bytesOut += bytes.count
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor,
                    $0.baseAddress.map { $0 + sent },
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
            }
            guard count > 0 else { throw BenchError("write: \(String(cString: strerror(errno)))") }
            sent += count
        }
    }

    /// Reads until `parse` returns a result.
    ///
    /// - Parameter parse: Returns a result and moves the offset past it, or returns nil to request
    ///   more bytes.
    func read<Result>(
        _ parse: (_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws -> Result?
    ) throws -> Result {
        while true {
            var offset = 0
            let found = try buffer.withUnsafeBytes {
                try parse(UnsafeRawBufferPointer(rebasing: $0[begin..<end]), &offset)
            }
            begin += offset
            if let found { return found }
            try fill()
        }
    }

    private func fill() throws {
        if begin > 0 {
            buffer.withUnsafeMutableBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                _ = memmove(base, base + begin, end - begin)
            }
            end -= begin
            begin = 0
        }
        if end == buffer.count {
            buffer.append(contentsOf: repeatElement(0, count: buffer.count))
        }
        let room = buffer.count - end
        let count = buffer.withUnsafeMutableBytes {
            recv(descriptor, $0.baseAddress.map { $0 + end }, room, 0)
        }
        guard count > 0 else {
            throw BenchError(count == 0 ? "the server closed" : String(cString: strerror(errno)))
        }
        bytesIn += count
        end += count
    }
}
