import Foundation
import Glibc

/// Looks up programs and packages installed by Debian.
enum Installed {
    /// Returns the full path of a program; nil if it is not installed.
    static func program(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin"]
        return folders.map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns the version of a package in Debian's format.
    static func version(of package: String) -> String {
        (try? Tool.text("/usr/bin/dpkg-query", ["-W", "-f=${Version}", package]))
            ?? "of unknown version"
    }
}

/// Returns a loopback port that no process listens on at this moment.
func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var own = sockaddr_in()
    own.sin_family = sa_family_t(AF_INET)
    own.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failed = withUnsafeMutablePointer(to: &own) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, size) != 0 || getsockname(descriptor, $0, &size) != 0
        }
    }
    guard !failed else { throw BenchError("no free port") }
    return Int(UInt16(bigEndian: own.sin_port))
}
