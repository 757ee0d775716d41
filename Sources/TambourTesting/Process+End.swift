import Foundation

extension Process {
    /// Waits until it has ended; returns its exit code, or the signal that ended it.
    ///
    /// `waitUntilExit` waits for a socket to close that every process started meanwhile has inherited: beside a server that
    /// another test has started it may wait for ever.
    package func waitForEnd() -> Int32 {
        var info = siginfo_t()
        while waitid(P_PID, id_t(processIdentifier), &info, WEXITED | WNOWAIT) != 0 {
            guard errno == EINTR else {
                // Foundation has seen the end first.
                waitUntilExit()
                return terminationStatus
            }
        }
        return info._sifields._sigchld.si_status
    }
}
