import Glibc

/// Notices that files have changed, by their inodes, sizes and times.
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
            // Follows symbolic links: a certificate's path often is one.
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

    /// - Parameter paths: files that are being loaded now.
    package init(_ paths: [String]) {
        self.paths = paths
        loaded = paths.map { FileState($0) }
        seen = loaded
    }

    /// Records that the files are being loaded.
    package mutating func load() {
        loaded = paths.map { FileState($0) }
        seen = loaded
    }

    /// Checks the files.
    ///
    /// - Returns: whether they have changed since they were loaded, and not since the last check.
    ///   The caller then loads them; the same change is not reported again.
    package mutating func haveSettled() -> Bool {
        let now = paths.map { FileState($0) }
        defer { seen = now }
        guard now != loaded, now == seen else { return false }
        loaded = now
        return true
    }
}
