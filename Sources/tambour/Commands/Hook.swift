import Foundation
import Glibc
import TerminalKit

/// A shell command that runs once for each message.
///
/// The message is never part of the command. The command reads the message from standard input.
struct Hook {
    let command: String

    /// Runs the command with a line as its standard input, and waits until it exits.
    ///
    /// - Returns: The exit status of the command. If a signal ended the command: 128 plus the
    ///   signal's number.
    /// - Throws: `Failure` when the command cannot be started.
    func run(_ line: String) throws -> Int32 {
        // Uses a socket pair instead of a pipe. Writing to a pipe that no process reads would end
        // this program with SIGPIPE.
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            throw Failure("socketpair: \(String(cString: strerror(errno)))")
        }
        let (here, there) = (ends[0], ends[1])
        let program: ChildProgram
        do {
            defer { close(there) }
            program = try ChildProgram(
                ["sh", "-c", command],
                environment: ProcessInfo.processInfo.environment,
                input: there
            )
        } catch {
            close(here)
            throw Failure("sh: \(error)")
        }
        var rest = Array("\(line)\n".utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(here, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            // The command may close its input without reading everything.
            if count <= 0 { break }
            rest = rest.dropFirst(count)
        }
        close(here)
        return program.wait()
    }
}
