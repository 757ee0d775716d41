import Foundation
import Glibc
package import TambourTLS

/// A certificate authority for a test. It creates certificates with the program `openssl` in its
/// own directory. The directory is removed together with this object.
package final class TestAuthority: Sendable {
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    /// The directory that contains all files of the authority.
    package let directory: String
    /// The path of the authority's own certificate.
    package var certificate: String { "\(directory)/ca.pem" }

    /// Returns the authority's own certificate as a text in PEM format.
    package func pem() throws -> String { try String(contentsOfFile: certificate, encoding: .utf8) }

    package init() throws {
        directory = try TestServer.temporaryDirectory()
        try run(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
                -keyout ca.key -out ca.pem -subj '/CN=Authority of a test'
            """
        )
    }

    deinit { TestServer.removeDirectory(directory) }

    /// Returns the path of a file in the authority's directory.
    package func path(_ file: String) -> String { "\(directory)/\(file)" }

    /// Returns the paths of the pair `FILE.pem` and `FILE.key`.
    package func pair(_ file: String) -> TLSPair {
        TLSPair(certificate: path("\(file).pem"), key: path("\(file).key"))
    }

    /// Creates `FILE.pem` and `FILE.key`. Replaces them if they exist.
    ///
    /// - Parameters:
    ///   - names: the names in the certificate, such as `DNS:example.org`, `DNS:*.example.org` or
    ///     `IP:127.0.0.1`.
    ///   - days: the number of days for which the certificate is valid. A negative number creates
    ///     an expired certificate.
    @discardableResult
    package func issue(_ file: String, _ names: [String], days: Int = 30) throws -> TLSPair {
        try run(
            """
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout \(file).new \
                -subj '/CN=\(file)' -addext 'subjectAltName=\(names.joined(separator: ","))' |
            openssl x509 -req -CA ca.pem -CAkey ca.key -days \(days) -copy_extensions copy \
                -out \(file).pem
            mv \(file).new \(file).key
            """
        )
        return pair(file)
    }

    /// Runs a script in the authority's directory.
    package func run(_ script: String) throws {
        let arguments = ["/bin/sh", "-ec", "cd '\(directory)'\nexec 2>log\n\(script)"]
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        var child: pid_t = 0
        var status: Int32 = 0
        guard posix_spawn(&child, arguments[0], nil, nil, pointers, environ) == 0 else {
            throw Failed(description: "no shell")
        }
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        if status != 0 { throw Failed(description: "status \(status): \(script)") }
    }
}
