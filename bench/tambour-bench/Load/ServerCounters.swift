import Dispatch
import Glibc

/// The metrics of a running `tambourd`, read through the socket in its data directory.
struct ServerCounters: Sendable {
    private let path: String

    init(dataDirectory: String) { path = "\(dataDirectory)/admin.sock" }

    /// Returns every metric by its name, including labels, such as
    /// `tambour_lane_delay_seconds{lane="0"}`.
    ///
    /// - Throws: `BenchError` if the server does not answer within ten seconds.
    func all() throws -> [String: Double] {
        var values: [String: Double] = [:]
        for line in try answer().split(separator: "\n") where line.hasPrefix(">") {
            let words = line.dropFirst().split(separator: " ")
            guard words.count == 2, let value = Double(words[1]) else { continue }
            values[String(words[0])] = value
        }
        return values
    }

    /// Returns the number of transactions so far.
    func commits() throws -> Double {
        guard let commits = try all()["tambour_commits_total"] else {
            throw BenchError("the server does not count its commits")
        }
        return commits
    }

    private func answer() throws -> String {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isWhole = withUnsafeMutableBytes(of: &address.sun_path) { room in
            room.copyBytes(from: path.utf8.prefix(room.count - 1))
            return path.utf8.count < room.count
        }
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, size)
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        let request = Array("metrics\n".utf8)
        guard isWhole, connected == 0,
            Glibc.send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count
        else { throw BenchError("\(path): \(String(cString: strerror(errno)))") }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count >= 0 else { throw BenchError("\(path) does not answer") }
            if count == 0 { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }
}

/// The growth rate of a server counter between two readings. A separate queue reads the counter, so
/// that the lane that loads the server does not wait.
///
/// `@unchecked Sendable`: the queue owns `marks`.
final class CounterRate: @unchecked Sendable {
    private let queue = DispatchQueue(label: "bench.counter")
    private let read: @Sendable () throws -> Double
    private var marks: [(at: UInt64, value: Double)] = []

    init(_ read: @escaping @Sendable () throws -> Double) { self.read = read }

    func mark() {
        queue.async { [self] in
            if let value = try? read() { marks.append((monotonicNow(), value)) }
        }
    }

    /// The growth per second; nil if a reading failed.
    var perSecond: Double? {
        queue.sync {
            guard marks.count == 2, marks[1].at > marks[0].at else { return nil }
            return (marks[1].value - marks[0].value) * 1e9 / Double(marks[1].at - marks[0].at)
        }
    }
}
