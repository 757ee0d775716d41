import Glibc

/// Finds out whether files have changed, by their inodes, sizes and times.
///
/// A renewal replaces several files one after another. A change is therefore reported only when two
/// successive checks find the same state of all files.
package struct TLSFileChanges {
    private struct FileState: Equatable {
        let device: UInt
        let inode: UInt
        let bytes: Int
        let modified: Int
        let modifiedNs: Int

        init?(_ path: String) {
            var state = stat()
            // `stat` follows symbolic links. The path of a certificate often is a symbolic link.
            guard stat(path, &state) == 0 else { return nil }
            device = UInt(state.st_dev)
            inode = UInt(state.st_ino)
            bytes = Int(state.st_size)
            modified = state.st_mtim.tv_sec
            modifiedNs = state.st_mtim.tv_nsec
        }
    }

    private let paths: [String]
    private var loaded: [FileState?]
    private var seen: [FileState?]

    /// - Parameter paths: the files. The caller loads them at the same time.
    package init(_ paths: [String]) {
        self.paths = paths
        loaded = paths.map { FileState($0) }
        seen = loaded
    }

    /// Records the state of the files. The caller loads them at the same time.
    package mutating func load() {
        loaded = paths.map { FileState($0) }
        seen = loaded
    }

    /// Checks the files.
    ///
    /// - Returns: true if the files have changed since they were loaded, but not since the last
    ///   check. The caller must then load them. The same change is not reported again.
    package mutating func haveSettled() -> Bool {
        let now = paths.map { FileState($0) }
        defer { seen = now }
        guard now != loaded, now == seen else { return false }
        loaded = now
        return true
    }
}
