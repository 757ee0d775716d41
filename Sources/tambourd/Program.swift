import Foundation
import Subprocess
import SystemPackage

/// A program of the operator that the server runs with something on its standard input, never through
/// a shell. Its standard error is the server's.
struct Program: Sendable {
    let path: String

    /// - Parameter purpose: what it is for, as the refusal says it.
    init(path: String, for purpose: String) throws {
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Failure("\(purpose): \(path) is not a program")
        }
        self.path = path
    }

    /// Why a run came to nothing, in words for a log.
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs it once. When it has done what it should, what it has started may go on; otherwise that is ended too.
    ///
    /// - Throws: `Failed` unless it exits with 0 in time; so does cancelling the task, which ends it.
    func run(_ input: String, within time: Duration) async throws {
        try await run(input, output: .discarded, within: time, leavesChildren: true).get()
    }

    /// Runs it once. Whatever it has started and left in its session is ended with it.
    ///
    /// - Parameter maxBytes: of its standard output; what prints more is ended.
    /// - Returns: what it printed.
    /// - Throws: as `run`.
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
            // The one that is left is cancelled, which kills a program that is still running.
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
        // A session of its own, so that what it has started goes with it.
        options.createSession = true
        options.teardownSequence = [
            .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
        ]
        var group: pid_t?
        var mayLeave = false
        // What it has started may outlive it. A number is not given to another process while a group has it;
        // if the group is gone, there is nobody under this number yet.
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
                // A program that does not read its input may do its work all the same.
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
