import Foundation

/// The processes of this machine, as `/proc` shows them.
enum ProcessTable {
    /// Their numbers.
    static var all: [pid_t] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc")
        return (names ?? []).compactMap { pid_t($0) }
    }

    /// A process and everything below it.
    static func family(of processID: pid_t) -> [pid_t] {
        var children: [pid_t: [pid_t]] = [:]
        for child in all {
            // The second field may hold anything; the parent is the second one behind it.
            let stat = String(decoding: content(of: child, "stat"), as: UTF8.self)
            guard let fields = stat.split(separator: ")").last?.split(separator: " "),
                fields.count > 1, let parent = pid_t(fields[1])
            else { continue }
            children[parent, default: []].append(child)
        }
        var family = [processID]
        var next = 0
        while next < family.count {
            family += children[family[next]] ?? []
            next += 1
        }
        return family
    }

    /// The words a process was started with; empty for one of the kernel, or one that is gone.
    static func words(of processID: pid_t) -> [String] {
        content(of: processID, "cmdline").split(separator: 0).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// What a process has mapped into its memory, a line each, as in `man 5 proc_pid_maps`.
    static func maps(of processID: pid_t) -> [Substring] {
        String(decoding: content(of: processID, "maps"), as: UTF8.self).split(separator: "\n")
    }

    /// Read to the end: these files have no length, and what reads "the whole file" takes a page of them.
    private static func content(of processID: pid_t, _ name: String) -> Data {
        let file = FileHandle(forReadingAtPath: "/proc/\(processID)/\(name)")
        return (try? file?.readToEnd()) ?? Data()
    }
}
