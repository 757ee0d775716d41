import Glibc

/// Stores pending bytes: an incomplete frame, or output that the socket did not accept.
///
/// A store exists only while bytes are pending. An idle connection therefore has no buffer.
final class ByteStore {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private var start = 0
    private var end = 0
    /// The time when the newest bytes were read from the socket, in microseconds of the lane's
    /// clock; zero for output.
    var arrivalUs: Int64

    init(_ bytes: UnsafeRawBufferPointer, arrivalUs: Int64 = 0) {
        self.arrivalUs = arrivalUs
        capacity = max(64, bytes.count)
        base = .allocate(byteCount: capacity, alignment: 16)
        append(bytes)
    }

    deinit { base.deallocate() }

    var count: Int { end - start }

    var isEmpty: Bool { start == end }

    /// The contents, which are valid until the next mutation.
    var bytes: UnsafeRawBufferPointer { .init(start: base + start, count: count) }

    func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        (base + end).copyMemory(from: source, byteCount: bytes.count)
        end += bytes.count
    }

    /// Replaces the contents with `bytes`. `bytes` must not point into this store.
    func replace(with bytes: UnsafeRawBufferPointer) {
        start = 0
        end = 0
        append(bytes)
    }

    func overwrite(with byte: UInt8) {
        memset(base, Int32(byte), capacity)
    }

    func dropFirst(_ count: Int) {
        precondition(count <= self.count, "more dropped than is kept")
        start += count
    }

    /// Returns room for at least `count` bytes after the contents. The caller then reports the
    /// number of written bytes with `grew(by:)`.
    func room(_ count: Int) -> UnsafeMutableRawBufferPointer {
        reserve(count)
        return .init(start: base + end, count: capacity - end)
    }

    func grew(by count: Int) {
        precondition(end + count <= capacity, "more written than there was room for")
        end += count
    }

    private func reserve(_ extra: Int) {
        if end + extra <= capacity { return }
        // Move the contents to the front only if the free space at the front is at least as large
        // as they are. This makes appending amortised O(1).
        if start >= count, count + extra <= capacity {
            memmove(base, base + start, count)
        } else {
            let larger = max(capacity * 2, count + extra)
            let fresh = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
            fresh.copyMemory(from: base + start, byteCount: count)
            base.deallocate()
            base = fresh
            capacity = larger
        }
        end -= start
        start = 0
    }
}
