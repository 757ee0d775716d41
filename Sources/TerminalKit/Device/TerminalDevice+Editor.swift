import Glibc

extension TerminalDevice {
    /// Opens a text in the user's editor: the program that `VISUAL` or `EDITOR` names, or else vi.
    ///
    /// The editor opens a temporary file that contains the text. Only the file's owner can read it.
    /// - Parameters:
    ///   - maxBytes: The maximum number of bytes to read back. A longer text counts as unreadable.
    ///   - completion: Called on the queue with the edited text, from which final line breaks are
    ///     removed. The argument is nil if the editor failed or left no readable text.
    package func edit(
        _ text: String,
        maxBytes: Int = 1 << 20,
        completion: @escaping @Sendable (String?) -> Void
    ) {
        guard let path = EditedFile.create(with: text, in: options.environment["XDG_RUNTIME_DIR"])
        else { return completion(nil) }
        let editor =
            [options.environment["VISUAL"], options.environment["EDITOR"]].lazy
            .compactMap { $0 }.first { !$0.isEmpty } ?? "vi"
        // `VISUAL` and `EDITOR` may contain arguments, and a shell splits them. The path is passed
        // separately, so the shell does not parse it.
        run(["sh", "-c", "exec \(editor) \"$1\"", "sh", path]) { result in
            let edited = EditedFile.read(path, maxBytes: maxBytes)
            unlink(path)
            guard case .success(0) = result, var edited else { return completion(nil) }
            while edited.last?.isNewline == true { edited.removeLast() }
            completion(edited)
        }
    }
}

private enum EditedFile {
    /// - Returns: The path of a new file of mode 0600.
    static func create(with text: String, in directory: String?) -> String? {
        for directory in [directory, "/tmp"].compactMap(\.self) where !directory.isEmpty {
            var template = Array("\(directory)/tambour-XXXXXX.txt".utf8CString)
            let descriptor = mkstemps(&template, 4)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            let path = String(
                decoding: template.dropLast().map(UInt8.init(bitPattern:)),
                as: UTF8.self
            )
            if writeAll(Array(text.utf8), to: descriptor) { return path }
            unlink(path)
        }
        return nil
    }

    static func read(_ path: String, maxBytes: Int) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while bytes.count <= maxBytes {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return String(validating: bytes, as: UTF8.self) }
            if count > 0 { bytes += buffer[..<count] } else if errno != EINTR { return nil }
        }
        return nil
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
        }
        return true
    }
}
