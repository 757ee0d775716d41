import Foundation
import Subprocess
import SystemPackage

/// An operator's program that the server runs with a given standard input, never through a shell.
/// It shares the server's standard error.
struct Program: Sendable {
    let path: String

    /// - Parameter purpose: the purpose of the program, for the error text.
    init(path: String, for purpose: String) throws {
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Failure("\(purpose): \(path) is not a program")
        }
        self.path = path
    }

    /// The reason why a run failed, described for the log.
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs the program once. After a success its children may continue; otherwise they are killed.
    ///
    /// - Throws: `Failed` unless the program exits with 0 in time. Cancelling the task kills the
    ///   program and throws too.
    func run(_ input: String, within time: Duration) async throws {
        try await run(input, output: .discarded, within: time, leavesChildren: true).get()
    }

    /// Runs the program once. Children that remain in the program's session are killed with the
    /// program.
    ///
    /// - Parameter maxBytes: the limit of the program's standard output. A program that prints more
    ///   is killed.
    /// - Returns: the program's standard output.
    /// - Throws: like `run`.
    func output(
        of input: String,
        within time: Duration,
        maxBytes: Int
    ) async throws -> [UInt8] {
        try await run(
            input,
            output: .bytes(limit: maxBytes),
            within: time,
            leavesChildren: false
        ).get()
    }

    private func run<Output: OutputProtocol>(
        _ input: String,
        output: Output,
        within time: Duration,
        leavesChildren: Bool
    ) async -> Result<Output.OutputType, Failed> {
        await withTaskGroup(of: Result<Output.OutputType, Failed>.self) { group in
            group.addTask {
                await run(input, output: output, leavesChildren: leavesChildren)
            }
            group.addTask {
                do {
                    try await Task.sleep(for: time)
                    return .failure(Failed(description: "it took longer than \(time)"))
                } catch {
                    return .failure(Failed(description: "it was ended"))
                }
            }
            // Cancel the remaining task, which kills a program that is still running.
            defer { group.cancelAll() }
            guard let first = await group.next() else {
                preconditionFailure("a group of two tasks has a first")
            }
            return first
        }
    }

    private func run<Output: OutputProtocol>(
        _ input: String,
        output: Output,
        leavesChildren: Bool
    ) async -> Result<Output.OutputType, Failed> {
        var options = PlatformOptions()
        // Create a separate session, so that the program's children can be killed with it.
        options.createSession = true
        options.teardownSequence = [
            .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
        ]
        var group: pid_t?
        var mayLeave = false
        // Children may outlive the program. While their process group exists, the system does not
        // reuse its number. If the group has ended, the number was released only a moment ago and
        // is not reused yet.
        defer { if let group, !mayLeave { kill(-group, SIGKILL) } }
        do {
            let result = try await Subprocess.run(
                .path(FilePath(path)),
                platformOptions: options,
                input: .inputWriter,
                output: output,
                error: .currentStandardError
            ) { execution in
                group = execution.processIdentifier.value
                // A program that does not read its input may still do its work.
                _ = try? await execution.standardInputWriter.write(input)
                try? await execution.standardInputWriter.finish()
            }
            switch result.terminationStatus {
            case .exited(0):
                mayLeave = leavesChildren
                return .success(result.standardOutput)
            case .exited(let code): return .failure(Failed(description: "status \(code)"))
            case .signaled(let number): return .failure(Failed(description: "signal \(number)"))
            }
        } catch let error as SubprocessError where error.code == .outputLimitExceeded {
            return .failure(Failed(description: "it printed too much"))
        } catch {
            return .failure(Failed(description: "it could not be run: \(error)"))
        }
    }
}
