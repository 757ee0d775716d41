import Glibc

/// A child program, such as an editor that uses the terminal while it runs.
///
/// A program that uses the terminal may be suspended, and this process must then be suspended too.
/// swift-subprocess reports only that a program has exited, so this type does not use it.
package struct ChildProgram {
    private let processID: pid_t

    /// Starts a program found in `PATH`, in the foreground, with the terminal as input and output.
    ///
    /// - Parameter arguments: The program's name first.
    package init(
        _ arguments: [String],
        environment: [String: String],
        terminal descriptor: Int32
    ) throws(TerminalError) {
        try self.init(
            arguments,
            environment: environment,
            input: descriptor,
            output: descriptor,
            errors: descriptor
        )
    }

    /// Starts a program found in `PATH`.
    ///
    /// - Parameter arguments: The program's name first.
    package init(
        _ arguments: [String],
        environment: [String: String],
        input: Int32,
        output: Int32 = STDOUT_FILENO,
        errors: Int32 = STDERR_FILENO
    ) throws(TerminalError) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (target, descriptor) in [input, output, errors].enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(target))
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))

        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] =
            environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for word in words + variables { free(word) } }
        var child: pid_t = 0
        let code = arguments[0].withCString { name in
            posix_spawnp(&child, name, &actions, &attributes, &words, &variables)
        }
        guard code == 0 else { throw .system(call: "posix_spawnp", code: code) }
        processID = child
    }

    /// Blocks until the program has exited. When the program is suspended, suspends this process
    /// too.
    ///
    /// - Returns: The exit status of the program. If a signal ended the program: 128 plus the
    ///   signal's number. If `waitpid` fails: 127.
    package func wait() -> Int32 {
        var status: Int32 = 0
        while true {
            guard waitpid(processID, &status, WUNTRACED) == processID else {
                if errno == EINTR { continue }
                return 127
            }
            // These bit operations equal the macros WIFSTOPPED, WTERMSIG and WEXITSTATUS.
            guard status & 0xFF == 0x7F else {
                return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
            }
            raise(SIGSTOP)
        }
    }
}
