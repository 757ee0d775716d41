import Dispatch
import Glibc

extension TerminalDevice {
    /// Browsers that run in the terminal.
    private static let terminalBrowsers: Set<String> = [
        "browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser",
    ]

    /// Opens an address in the user's browser. Starts the browser that the variable `BROWSER`
    /// names; without the variable, starts `xdg-open`.
    ///
    /// - Parameters:
    ///   - address: Must have a scheme and be safe to pass to a program as an argument.
    ///   - completion: Called on the queue. The argument is true if a program was started. A
    ///     graphical browser that `BROWSER` names counts as started, even if it does not exist.
    package func browse(_ address: String, completion: @escaping @Sendable (Bool) -> Void) {
        // If `BROWSER` is a list, its first entry is used. `%s` in the entry stands for the
        // address, which is always passed as the last argument.
        let browser = options.environment["BROWSER"]?.split(separator: ":").first.map(String.init)
        guard let browser, !browser.isEmpty else {
            return completion(launch(["xdg-open", address]))
        }
        let program = browser.split(separator: " ").first?.split(separator: "/").last ?? ""
        let command = browser.split(separator: " ").filter { $0 != "%s" }.joined(separator: " ")
        let arguments = ["sh", "-c", "exec \(command) \"$1\"", "sh", address]
        if Self.terminalBrowsers.contains(String(program)) {
            run(arguments) { result in
                guard case .success(let status) = result else { return completion(false) }
                completion(status != 127)
            }
        } else {
            completion(launch(arguments))
        }
    }

    /// Starts an independent program without access to the terminal.
    private func launch(_ arguments: [String]) -> Bool {
        let null = Glibc.open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { return false }
        defer { close(null) }
        guard
            let program = try? ChildProgram(
                arguments,
                environment: options.environment,
                terminal: null
            )
        else { return false }
        DispatchQueue.global().async { _ = program.wait() }
        return true
    }
}
