import Foundation
import Glibc

/// Processor time and memory of processes, read from outside.
struct ProcessMeter: Sendable {
    let processIDs: [pid_t]

    /// Processor seconds used so far, all processes and threads together.
    var cpuSeconds: Double {
        processIDs.reduce(0) { sum, processID in
            var clock = clockid_t()
            var time = timespec()
            guard clock_getcpuclockid(processID, &clock) == 0, clock_gettime(clock, &time) == 0
            else { return sum }
            return sum + Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
    }

    /// Resident memory, bytes.
    var residentBytes: Int { pages(at: 1) }

    /// The most that was ever resident, bytes.
    var peakResidentBytes: Int {
        processIDs.reduce(0) { sum, processID in
            let text = try? String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
            let line = text?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            let kib = line?.split(whereSeparator: { $0.isWhitespace }).dropFirst().first
            return sum + (kib.flatMap { Int($0) } ?? 0) * 1_024
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
