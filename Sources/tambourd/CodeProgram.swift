import Logging
import TambourServer
import TambourStore

/// Runs a program for each code, phone or e-mail address and code on its standard input, one line each.
///
/// A program that fails or hangs is tried again after 1, 2, 4 … s; after five tries the code is
/// given up: the person asks for another one. Nothing here ever blocks the server.
struct CodeProgram: Sendable {
    private static let tries = 5
    private static let timeout: Duration = .seconds(20)

    let program: Program
    let logger: Logger

    func deliver(_ recipient: CodeRecipient, _ code: String) {
        let input = "\(recipient.address)\n\(code)\n"
        Task {
            for number in 1...Self.tries {
                do {
                    return try await program.run(input, within: Self.timeout)
                } catch {
                    logger.warning(
                        "the login code program failed",
                        metadata: ["try": "\(number)", "reason": "\(error)"]
                    )
                }
                guard number < Self.tries else { return }
                try await Task.sleep(for: .seconds(1 << (number - 1)))
            }
        }
    }
}
