import Foundation
import Logging
import TambourMessenger
import TambourProtocol

extension LoginCodeSource {
    /// Parses `console`, `file:PATH`, `exec:PROGRAM` or `fixed:DIGITS`.
    static func parse(
        _ text: String,
        limits: Limits,
        logger: Logger
    ) throws -> LoginCodeSource {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let argument = parts.count == 2 ? String(parts[1]) : nil
        switch (parts[0], argument) {
        case ("console", nil):
            return LoginCodeSource { recipient, code in
                StandardOutput.writeLine("login code for \(recipient.address): \(code)")
            }
        case ("file", let path?) where !path.isEmpty:
            do {
                try append("", to: path)
            } catch {
                throw Failure("login codes: \(path) cannot be written: \(error)")
            }
            return LoginCodeSource { recipient, code in
                do {
                    try append("\(recipient.address) \(code)\n", to: path)
                } catch {
                    logger.error(
                        "a login code could not be written",
                        metadata: ["error": "\(error)"]
                    )
                }
            }
        case ("exec", let program?) where !program.isEmpty:
            let runner = CodeProgram(
                program: try Program(path: program, for: "login codes"),
                limits: limits,
                logger: logger
            )
            return LoginCodeSource(
                hasRoom: { runner.hasRoom },
                stop: { runner.stop(then: $0) },
                deliver: { runner.deliver($0, $1) },
                runs: { runner.runs }
            )
        case ("fixed", let digits?):
            guard (1...9).contains(digits.count), digits.allSatisfy({ ("0"..."9").contains($0) })
            else { throw Failure("login codes: fixed:DIGITS takes 1 to 9 digits") }
            return LoginCodeSource(fixedDigits: digits) { _, _ in }
        default:
            throw Failure(
                "login codes: \"\(text)\" is none of console, file:PATH, exec:PROGRAM, fixed:DIGITS"
            )
        }
    }

    /// Appends one line to the file. Uses a single write, so that a reader of the file never sees
    /// only a part of the line.
    private static func append(_ line: String, to path: String) throws {
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Failure(String(cString: strerror(errno))) }
        defer { close(file) }
        let bytes = Array(line.utf8)
        guard write(file, bytes, bytes.count) == bytes.count else {
            throw Failure(String(cString: strerror(errno)))
        }
    }
}
