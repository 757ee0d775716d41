package import Glibc
import TambourNet
import TambourProtocol

/// Sockets between processes of this machine.
package enum UnixSocket {
    /// Calls `body` with the address of a path. A path that starts with NUL is an abstract name.
    ///
    /// - Returns: the result of `body`; nil if the path is too long for a socket.
    package static func address<Result>(
        _ path: String,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        // All bytes of an abstract name count, so the length must not include the rest.
        let length = MemoryLayout<sa_family_t>.size + bytes.count
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
        }
    }

    static func listen(_ path: String) throws -> Int32 {
        let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | flags, 0)
        guard descriptor >= 0 else {
            throw Server.StartError("no admin socket: \(DataDirectory.reason())")
        }
        // Set the mode before `bind`, because the new socket file gets the mode of the socket.
        // Other users can therefore never connect. Do not change the umask instead: it would also
        // affect other files that the process creates at the same time.
        guard fchmod(descriptor, 0o600) == 0 else {
            let reason = DataDirectory.reason()
            close(descriptor)
            throw Server.StartError("no admin socket for its owner alone: \(reason)")
        }
        let bound = address(path) { bind(descriptor, $0, $1) }
        guard let bound else {
            close(descriptor)
            throw Server.StartError("the data directory's path is too long for a socket: \(path)")
        }
        guard bound == 0, Glibc.listen(descriptor, 8) == 0 else {
            let reason = DataDirectory.reason()
            close(descriptor)
            throw Server.StartError("no admin socket at \(path): \(reason)")
        }
        return descriptor
    }

    /// Accepts one connection. Reads and writes on the connection block.
    @Sendable
    static func accept(_ listener: Int32) -> Acceptor.Acceptance {
        let descriptor = Glibc.accept(listener, nil, nil)
        guard descriptor >= 0 else { return .failed(errno) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return .socket(descriptor, peer: "admin")
    }

    /// Connects to the socket at a path.
    ///
    /// - Parameter type: the kind of socket, a stream or datagrams.
    /// - Returns: a socket that child programs do not inherit; nil if no server listens.
    package static func connect(_ path: String, type: __socket_type = SOCK_STREAM) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        guard address(path, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    static func setTimeouts(_ descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    @discardableResult
    static func write(_ descriptor: Int32, _ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    struct LineReader {
        private let descriptor: Int32
        private let limit: Int
        private var waiting: [UInt8] = []

        init(_ descriptor: Int32, limit: Int = 1 << 20) {
            self.descriptor = descriptor
            self.limit = limit
        }

        mutating func next() -> String? {
            while true {
                if let end = waiting.firstIndex(of: 10) {
                    let line = String(decoding: waiting[..<end], as: UTF8.self)
                    waiting.removeSubrange(...end)
                    return line
                }
                guard waiting.count < limit else { return nil }
                var chunk = [UInt8](repeating: 0, count: 16_384)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return nil }
                waiting += chunk[..<count]
            }
        }
    }
}
