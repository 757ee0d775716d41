import Foundation
import Glibc

/// Measures the processor time and memory of processes from outside.
struct ProcessMeter: Sendable {
    let processIDs: [pid_t]

    /// - Throws: `BenchError` if one of the processes does not exist, because its figures would be
    ///   meaningless.
    func requireRunning() throws {
        for processID in processIDs where cpuSeconds(of: processID) == nil {
            throw BenchError("process \(processID) does not run")
        }
    }

    /// The processor seconds that the processes with all their threads have used; NaN if one of the
    /// processes has exited.
    var cpuSeconds: Double {
        processIDs.reduce(0) { $0 + (cpuSeconds(of: $1) ?? .nan) }
    }

    private func cpuSeconds(of processID: pid_t) -> Double? {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(processID, &clock) == 0, clock_gettime(clock, &time) == 0
        else { return nil }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Resident memory, bytes.
    var residentBytes: Int { pages(at: 1) }

    /// The peak of resident memory since the process started or since `resetPeak`, bytes.
    var peakResidentBytes: Int {
        processIDs.reduce(0) { sum, processID in
            let text = try? String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
            let line = text?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            let kib = line?.split(whereSeparator: { $0.isWhitespace }).dropFirst().first
            return sum + (kib.flatMap { Int($0) } ?? 0) * 1_024
        }
    }

    /// Resets the peak to the current resident memory.
    ///
    /// - Returns: whether the kernel reset the peak; otherwise the peak covers the whole life of
    ///   the process.
    func resetPeak() -> Bool {
        processIDs.allSatisfy { processID in
            let file = open("/proc/\(processID)/clear_refs", O_WRONLY | O_CLOEXEC)
            defer { if file >= 0 { close(file) } }
            return file >= 0 && write(file, "5", 1) == 1
        }
    }

    private func pages(at position: Int) -> Int {
        processIDs.reduce(0) { sum, processID in
            let text = try? String(contentsOfFile: "/proc/\(processID)/statm", encoding: .utf8)
            let words = text?.split(separator: " ") ?? []
            guard words.count > position, let pages = Int(words[position]) else { return sum }
            return sum + pages * sysconf(Int32(_SC_PAGESIZE))
        }
    }

    /// The meter of this process.
    static var own: ProcessMeter { ProcessMeter(processIDs: [getpid()]) }
}

/// Measures a period of work: the processor time of the server, and the cores that the driver uses.
struct Stretch {
    private let server: ProcessMeter
    private let startedAt = monotonicNow()
    private let cpu: Double
    private let own = ProcessMeter.own.cpuSeconds

    /// Starts measuring.
    init(_ server: ProcessMeter) throws {
        try server.requireRunning()
        self.server = server
        cpu = server.cpuSeconds
    }

    var seconds: Double { Double(monotonicNow() - startedAt) / 1e9 }
    /// The server's processor seconds since the start of the measurement.
    var cpuSeconds: Double { server.cpuSeconds - cpu }
    var driverCores: Double { (ProcessMeter.own.cpuSeconds - own) / seconds }
}
