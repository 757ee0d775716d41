import Dispatch
import Glibc

extension TerminalDevice {
    /// Browsers that need the terminal for themselves.
    private static let terminalBrowsers: Set<String> = [
        "browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser",
    ]

    /// Opens an address with the browser a person likes: `BROWSER`, or else what `xdg-open` starts.
    ///
    /// - Parameters:
    ///   - address: must be safe to give to a program as an argument: with a scheme.
    ///   - completion: gets whether a program was found, on the queue.
    func browse(_ address: String, completion: @escaping @Sendable (Bool) -> Void) {
        // A list is tried from its first entry on; a %s in it stands for the address.
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

    /// Starts a program that goes on by itself, without the terminal.
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
