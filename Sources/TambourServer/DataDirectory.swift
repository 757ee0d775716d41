import Glibc

/// The directory that holds all data of one server. A lock on the directory ensures that only one
/// process uses it.
package final class DataDirectory {
    /// The reason why a data directory cannot be used.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package let path: String
    private var lock: Int32

    package var databasePath: String { "\(path)/tambour.db" }
    package var adminSocketPath: String { "\(path)/admin.sock" }

    /// Creates the directory when it is missing and takes its lock.
    ///
    /// - Throws: when another process holds the lock, when the directory cannot be written, when
    ///   root opens the directory of another user, and when the directory is a backup. Opening a
    ///   backup would change its database file, so that the digests in the backup would no longer
    ///   match.
    package init(_ path: String) throws(Failure) {
        self.path = path
        guard access("\(path)/\(Backup.digests)", F_OK) != 0 else {
            throw Failure(
                description: "\(path) is a backup: `tambourd restore` makes a data directory of it"
            )
        }
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw Failure(description: "cannot create \(path): \(Self.reason())")
        }
        try Self.checkOwner(of: path)
        lock = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else {
            throw Failure(description: "cannot write in \(path): \(Self.reason())")
        }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw Failure(description: "another process serves \(path)")
        }
    }

    /// Refuses root in the directory of another user: the owner's server could not open the files
    /// that root would create there.
    private static func checkOwner(of path: String) throws(Failure) {
        var status = stat()
        guard geteuid() == 0, stat(path, &status) == 0, status.st_uid != 0 else { return }
        let name = getpwuid(status.st_uid).map { String(cString: $0.pointee.pw_name) }
        let owner = name ?? "#\(status.st_uid)"
        throw Failure(
            description: """
                \(path) belongs to \(owner), and root would leave files that \(owner) cannot open: \
                enter `sudo -u '\(owner)' tambourd …`
                """
        )
    }

    /// Releases the lock. Another server can then use the directory. Further calls do nothing.
    func release() {
        guard lock >= 0 else { return }
        close(lock)
        lock = -1
    }

    deinit { release() }

    static func reason() -> String { String(cString: strerror(errno)) }
}
