import Logging
import Subprocess
import SystemPackage
import TambourServer
import TambourStore

/// Runs a program for each code, phone or e-mail address and code on its standard input, one line each.
///
/// A program that fails or hangs is tried again after 1, 2, 4 … s; after five tries the code is
/// given up: the person asks for another one. Nothing here ever blocks the server.
struct CodeProgram: Sendable {
    private static let tries = 5
    private static let timeout: Duration = .seconds(20)

    let path: String
    let logger: Logger

    func deliver(_ recipient: CodeRecipient, _ code: String) {
        let input = "\(recipient.address)\n\(code)\n"
        Task {
            for number in 1...Self.tries {
                guard let reason = await failure(input) else { return }
                logger.warning(
                    "the login code program failed",
                    metadata: ["try": "\(number)", "reason": "\(reason)"]
                )
                guard number < Self.tries else { return }
                try await Task.sleep(for: .seconds(1 << (number - 1)))
            }
        }
    }

    /// Runs the program once; nil when it did what it should.
    private func failure(_ input: String) async -> String? {
        await withTaskGroup(of: String?.self) { group in
            group.addTask {
                do {
                    switch try await run(input) {
                    case .exited(0): return nil
                    case .exited(let code): return "status \(code)"
                    case .signaled(let number): return "signal \(number)"
                    }
                } catch {
                    return "it could not be run: \(error)"
                }
            }
            group.addTask {
                try? await Task.sleep(for: Self.timeout)
                return "it took longer than \(Self.timeout)"
            }
            // The one that is left is cancelled, which kills a program that is still running.
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    private func run(_ input: String) async throws -> TerminationStatus {
        var options = PlatformOptions()
        // A session of its own, so that what it has started goes with it.
        options.createSession = true
        options.teardownSequence = [
            .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
        ]
        return try await Subprocess.run(
            .path(FilePath(path)),
            platformOptions: options,
            input: .inputWriter,
            output: .discarded,
            error: .currentStandardError
        ) { execution in
            // A program that does not read its input may do its work all the same.
            _ = try? await execution.standardInputWriter.write(input)
            try? await execution.standardInputWriter.finish()
        }.terminationStatus
    }
}
