import Foundation
import Glibc
import TambourNet

/// A server of somebody else's that the benchmark started, on loopback, to be stopped by it.
final class PeerProcess {
    let address: ListenAddress
    private let process = Process()

    /// Starts `program` and waits until its port answers.
    ///
    /// - Parameters:
    ///   - directory: Where it runs; what it says goes to `output` there.
    ///   - patience: How long it may take, seconds.
    init(
        _ program: String,
        _ arguments: [String],
        environment: [String: String] = [:],
        in directory: URL,
        port: Int,
        patience: Double = 60
    ) throws {
        address = try ListenAddress("127.0.0.1:\(port)")
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.currentDirectoryURL = directory
        let output = directory.appendingPathComponent("output")
        try Data().write(to: output)
        let file = try FileHandle(forWritingTo: output)
        process.standardOutput = file
        process.standardError = file
        process.standardInput = FileHandle.nullDevice
        // Threads of queues block signals, and a child inherits that: it could not be told to stop.
        var none = sigset_t()
        var before = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
        let deadline = Date.now + patience
        while Date.now < deadline, process.isRunning {
            if let descriptor = try? dial(address) {
                close(descriptor)
                return
            }
            usleep(50_000)
        }
        stop()
        let said = (try? String(contentsOf: output, encoding: .utf8)) ?? ""
        throw BenchError("\(program) did not answer on port \(port): \(said.suffix(2_000))")
    }

    /// Of the process and everything below it.
    var meter: ProcessMeter {
        var parents: [pid_t: pid_t] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            // The second field may hold anything; the parent is the second one behind it.
            guard let processID = pid_t(name),
                let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                let fields = stat.split(separator: ")").last?.split(separator: " "),
                fields.count > 1
            else { continue }
            parents[processID] = pid_t(fields[1])
        }
        var family = [process.processIdentifier]
        var next = 0
        while next < family.count {
            let parent = family[next]
            family += parents.filter { $0.value == parent }.keys
            next += 1
        }
        return ProcessMeter(processIDs: family)
    }

    /// Stops it as an operator would; kills it if that takes more than 20 s.
    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        let deadline = Date.now + 20
        while process.isRunning, Date.now < deadline { usleep(20_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    deinit { stop() }

    // MARK: - What is installed

    /// The full path of a program; nil if it is not installed.
    static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin"]
        return folders.map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// The version of an installed package, as Debian writes it.
    static func version(of package: String) -> String {
        (try? Tool.text("/usr/bin/dpkg-query", ["-W", "-f=${Version}", package]))
            ?? "of unknown version"
    }

    /// A port of loopback that nobody listens on now.
    static func freePort() throws -> Int {
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
}
