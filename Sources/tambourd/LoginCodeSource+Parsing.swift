import Foundation
import Logging
import TambourProtocol
import TambourServer

extension LoginCodeSource {
    /// Reads `console`, `file:PATH`, `exec:PROGRAM` or `fixed:DIGITS`.
    static func parse(_ text: String, limits: Limits, logger: Logger) throws -> LoginCodeSource {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let argument = parts.count == 2 ? String(parts[1]) : nil
        switch (parts[0], argument) {
        case ("console", nil):
            return LoginCodeSource { phone, code in
                StandardOutput.writeLine("login code for \(PhoneNumber.format(phone)): \(code)")
            }
        case ("file", let path?) where !path.isEmpty:
            return LoginCodeSource { phone, code in
                do {
                    try append("\(PhoneNumber.format(phone)) \(code)\n", to: path)
                } catch {
                    logger.error(
                        "a login code could not be written",
                        metadata: ["error": "\(error)"]
                    )
                }
            }
        case ("exec", let program?) where !program.isEmpty:
            guard FileManager.default.isExecutableFile(atPath: program) else {
                throw Failure("login codes: \(program) is not a program")
            }
            let runner = CodeProgram(path: program, logger: logger)
            return LoginCodeSource { phone, code in runner.deliver(phone, code) }
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

    /// One write of one line: readers of the file never see half of it.
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

/// Runs a program for each code, phone and code on its standard input, one line each.
///
/// A program that fails or hangs is tried again after 1, 2, 4 … s; after five tries the code is
/// given up: the person asks for another one. Nothing here ever blocks the server.
final class CodeProgram: Sendable {
    private static let tries = 5
    private static let timeout: Duration = .seconds(20)

    private let path: String
    private let logger: Logger

    init(path: String, logger: Logger) {
        self.path = path
        self.logger = logger
    }

    func deliver(_ phone: Int64, _ code: String) {
        attempt(1, input: "\(PhoneNumber.format(phone))\n\(code)\n")
    }

    private func attempt(_ number: Int, input: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        let pipe = Pipe()
        process.standardInput = pipe
        process.standardOutput = FileHandle.nullDevice
        process.terminationHandler = { [self] process in
            guard process.terminationStatus != 0 || process.terminationReason != .exit else {
                return
            }
            retry(number, input: input, reason: "status \(process.terminationStatus)")
        }
        do {
            try Signals.unblocked { try process.run() }
        } catch {
            return retry(number, input: input, reason: "\(error)")
        }
        // A program that does not read its input must not end the server with SIGPIPE.
        try? pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try? pipe.fileHandleForWriting.close()
        let identifier = process.processIdentifier
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.timeout.seconds) {
            if process.isRunning { kill(identifier, SIGKILL) }
        }
    }

    private func retry(_ number: Int, input: String, reason: String) {
        logger.warning(
            "the login code program failed",
            metadata: ["try": "\(number)", "reason": "\(reason)"]
        )
        guard number < Self.tries else { return }
        let delay = Double(1 << (number - 1))
        DispatchQueue.global().asyncAfter(deadline: .now() + delay) { [self] in
            attempt(number + 1, input: input)
        }
    }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
