import Foundation

/// Reads hand-written files.
enum TextFile {
    /// Reads a file as UTF-8.
    ///
    /// - Parameter name: The file name to use in messages.
    static func read(_ url: URL, as name: String) throws(Problem) -> String {
        func problem(_ text: String, line: Int = 0) -> Problem {
            Problem(origin: Origin(file: name, line: line), text: text)
        }
        guard FileManager.default.fileExists(atPath: url.path) else {
            throw problem("there is no such file")
        }
        guard let data = try? Data(contentsOf: url) else { throw problem("cannot be read") }
        if let text = String(validating: data, as: UTF8.self) { return text }
        // In UTF-8, the byte of a line break is never part of another character. Every line can
        // therefore be validated separately.
        let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let line = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0
        throw problem("is not UTF-8", line: line + 1)
    }
}
