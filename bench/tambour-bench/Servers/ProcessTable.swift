import Foundation

/// The processes of this machine, read from `/proc`.
enum ProcessTable {
    /// The ids of all processes.
    static var all: [pid_t] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc")
        return (names ?? []).compactMap { pid_t($0) }
    }

    /// Returns a process and its descendants.
    static func family(of processID: pid_t) -> [pid_t] {
        var children: [pid_t: [pid_t]] = [:]
        for child in all {
            // The second field may contain any character. The parent is the second field after it.
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

    /// Returns the command line of a process; empty for a kernel thread or an exited process.
    static func words(of processID: pid_t) -> [String] {
        content(of: processID, "cmdline").split(separator: 0).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Returns the memory mappings of a process, one per line, as in `man 5 proc_pid_maps`.
    static func maps(of processID: pid_t) -> [Substring] {
        String(decoding: content(of: processID, "maps"), as: UTF8.self).split(separator: "\n")
    }

    /// Reads until the end, because these files report no length, and whole-file functions read
    /// only one page.
    private static func content(of processID: pid_t, _ name: String) -> Data {
        let file = FileHandle(forReadingAtPath: "/proc/\(processID)/\(name)")
        return (try? file?.readToEnd()) ?? Data()
    }
}
