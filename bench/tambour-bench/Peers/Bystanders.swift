import Foundation

/// Other servers running on this machine, which disturb the measurement.
enum Bystanders {
    private static let names: Set = ["prosody", "mosquitto", "tambourd"]

    /// Returns the names and process ids of these servers. Call this function only while the
    /// benchmark runs no server.
    static func found() -> [String] {
        ProcessTable.all.compactMap { processID in
            let words = ProcessTable.words(of: processID)
            // For a script, the name follows the interpreter's name.
            let programs = words.prefix(2).map { URL(fileURLWithPath: $0).lastPathComponent }
            if let name = programs.first(where: names.contains) {
                return "\(name) (process \(processID))"
            }
            guard let program = programs.first, program.hasPrefix("beam"),
                words.contains("ejabberd")
            else { return nil }
            return "ejabberd (process \(processID))"
        }
    }
}
