import Foundation

/// Runs programs and returns their output. The programs in `bench/limits` print JSON objects with
/// numbers.
enum Tool {
    static func run(_ program: String, _ arguments: [String]) throws -> [String: Double] {
        try lines(program, arguments).first ?? [:]
    }

    /// Returns one dictionary per line; values that are not numbers are omitted.
    static func lines(_ program: String, _ arguments: [String]) throws -> [[String: Double]] {
        try text(program, arguments).split(separator: "\n").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return (object as? [String: Any] ?? [:]).compactMapValues {
                ($0 as? NSNumber)?.doubleValue
            }
        }
    }

    static func text(_ program: String, _ arguments: [String]) throws -> String {
        let child = try Child(program, arguments)
        let data = child.output.readDataToEndOfFile()
        let code = child.exitCode
        guard code == 0 else { throw BenchError("\(program) ended with \(code)") }
        return String(decoding: data, as: UTF8.self)
    }
}
