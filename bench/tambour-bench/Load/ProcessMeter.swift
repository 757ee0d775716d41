import Foundation
import Glibc

/// Processor time and memory of processes, read from outside.
struct ProcessMeter: Sendable {
    let processIDs: [pid_t]

    /// - Throws: `BenchError` when one of them is not there: its figures would be those of nobody.
    func requireRunning() throws {
        for processID in processIDs where cpuSeconds(of: processID) == nil {
            throw BenchError("process \(processID) does not run")
        }
    }

    /// Processor seconds used so far, all processes and threads together; no number when one is gone.
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

    /// The most that was resident since the start or since `resetPeak`, bytes.
    var peakResidentBytes: Int {
        processIDs.reduce(0) { sum, processID in
            let text = try? String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
            let line = text?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            let kib = line?.split(whereSeparator: { $0.isWhitespace }).dropFirst().first
            return sum + (kib.flatMap { Int($0) } ?? 0) * 1_024
        }
    }

    /// Lets the peak begin anew at what is resident now.
    ///
    /// - Returns: whether the kernel did: the peak is that of the whole life otherwise.
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

    /// This process.
    static var own: ProcessMeter { ProcessMeter(processIDs: [getpid()]) }
}

/// A stretch of work: what it cost the server, and how much of the machine the driver took.
struct Stretch {
    private let server: ProcessMeter
    private let startedAt = monotonicNow()
    private let cpu: Double
    private let own = ProcessMeter.own.cpuSeconds

    /// Begins now.
    init(_ server: ProcessMeter) throws {
        try server.requireRunning()
        self.server = server
        cpu = server.cpuSeconds
    }

    var seconds: Double { Double(monotonicNow() - startedAt) / 1e9 }
    /// So far, of the server.
    var cpuSeconds: Double { server.cpuSeconds - cpu }
    var driverCores: Double { (ProcessMeter.own.cpuSeconds - own) / seconds }
}
