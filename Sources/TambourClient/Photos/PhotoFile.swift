import Glibc
import TambourProtocol

/// Properties of the copy of a photo.
package struct PhotoFile: Codable, Hashable, Sendable {
    /// Kinds of photos; the raw values are media types.
    package enum Kind: String, Codable, Sendable {
        case jpeg = "image/jpeg"
        case png = "image/png"
        case gif = "image/gif"
        case webp = "image/webp"
    }

    package let kind: Kind
    package let bytes: Int64

    /// The size limit, larger than a picture from an ordinary camera.
    package static let maxBytes: Int64 = 32 << 20

    package init(kind: Kind, bytes: Int64) {
        self.kind = kind
        self.bytes = bytes
    }
}

extension PhotoFile.Kind {
    /// Determines the kind of a file by its first twelve bytes; nil when it is not a photo.
    init?(firstBytes bytes: some Sequence<UInt8>) {
        let head = Array(bytes.prefix(12))
        func begins(_ signature: [UInt8], at offset: Int = 0) -> Bool {
            head.dropFirst(offset).starts(with: signature)
        }
        if begins([0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if begins([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if begins(Array("GIF87a".utf8)) || begins(Array("GIF89a".utf8)) {
            self = .gif
        } else if begins(Array("RIFF".utf8)), begins(Array("WEBP".utf8), at: 8) {
            self = .webp
        } else {
            return nil
        }
    }
}

extension PhotoFile {
    private static let pieceBytes = 1 << 16

    /// Copies a photo to a file that only its owner can read. The copy is either complete and
    /// flushed to disk, or absent.
    ///
    /// - Parameter path: the path of the copy. Its folder is created if needed; an existing file is
    ///   replaced.
    /// - Throws: `PhotoError`: `.never` when the source is not a photo, too large, or cannot be
    ///   opened; `.later` when reading the source or writing the copy fails.
    static func keep(_ source: String, as path: String) throws(PhotoError) -> PhotoFile {
        // Without O_NONBLOCK, opening a pipe would block.
        let input = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard input >= 0 else { throw PhotoError(.never, "\(source): \(lastSystemError)") }
        defer { close(input) }
        var status = stat()
        guard fstat(input, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw PhotoError(.never, "\(source) is not a file")
        }
        guard status.st_size <= maxBytes else {
            throw PhotoError(.never, "\(source) is larger than \(maxBytes >> 20) MiB")
        }
        let folder = path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)
        mkdir(String(folder), 0o700)
        let part = path + ".part"
        let output = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw PhotoError(.later, "\(part): \(lastSystemError)") }
        defer { close(output) }
        let file: PhotoFile
        do throws(PhotoError) {
            fchmod(output, 0o600)
            file = try copy(input, to: output, of: source)
            guard fsync(output) == 0, rename(part, path) == 0 else {
                throw PhotoError(.later, "\(path): \(lastSystemError)")
            }
        } catch {
            unlink(part)
            throw error
        }
        let directory = open(String(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if directory >= 0 {
            fsync(directory)
            close(directory)
        }
        return file
    }

    private static func copy(
        _ input: Int32,
        to output: Int32,
        of source: String
    ) throws(PhotoError) -> PhotoFile {
        var piece = [UInt8](repeating: 0, count: pieceBytes)
        var kind: Kind?
        var total: Int64 = 0
        while true {
            let count = read(input, &piece, piece.count)
            guard count >= 0 else { throw PhotoError(.later, "\(source): \(lastSystemError)") }
            if kind == nil { kind = Kind(firstBytes: piece.prefix(count)) }
            guard let kind else {
                throw PhotoError(.never, "\(source) is no photo: JPEG, PNG, GIF and WebP are")
            }
            if count == 0 { return PhotoFile(kind: kind, bytes: total) }
            total += Int64(count)
            // The source may grow while it is being read.
            guard total <= maxBytes else {
                throw PhotoError(.never, "\(source) is larger than \(maxBytes >> 20) MiB")
            }
            var written = 0
            while written < count {
                let done = piece[written..<count].withUnsafeBytes {
                    write(output, $0.baseAddress, $0.count)
                }
                guard done > 0 else { throw PhotoError(.later, lastSystemError) }
                written += done
            }
        }
    }

    private static var lastSystemError: String { String(cString: strerror(errno)) }
}
