import Foundation
import Subprocess
import SystemPackage

/// A program of the operator. The server runs it without a shell and writes its standard input. The
/// program shares the server's standard error.
struct Program: Sendable {
    let path: String

    /// - Parameter purpose: What the program is for. The error message contains this text.
    init(path: String, for purpose: String) throws {
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Failure("\(purpose): \(path) is not a program")
        }
        self.path = path
    }

    /// The reason why a run failed, as the log shows it.
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs the program once. If it succeeds, its child processes may continue; otherwise they are
    /// killed.
    ///
    /// - Throws: `Failed` if the program does not exit with 0 in time. If the task is cancelled,
    ///   kills the program and throws `Failed` too.
    func run(_ input: String, within time: Duration) async throws {
        try await run(input, output: .discarded, within: time, leavesChildren: true).get()
    }

    /// Runs the program once. When it ends, kills the child processes that remain in its session.
    ///
    /// - Parameter maxBytes: The maximum size of the program's standard output. A program that
    ///   prints more is killed.
    /// - Returns: The program's standard output.
    /// - Throws: `Failed`, under the same conditions as `run`.
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
        // The program's children may outlive it. While their process group exists, the system does
        // not reuse the group's number. If the group has ended, it ended only a moment ago, and the
        // number is not reused yet.
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
                // Ignore errors of the input, because a program may do its work without reading it.
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
