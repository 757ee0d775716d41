import Foundation

/// The folder `protocol-spec/released/`: a folder for each release, named by its number.
///
/// The release that `version:` of `protocol.yaml` names is being written and may be written again; those before it are frozen.
struct Releases {
    static let surfaceFile = "surface.json"

    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// The folder `released`.
    let folder: URL
    private let root: URL

    /// - Parameter root: of the repository.
    init(root: URL) {
        self.root = root
        folder = root.appending(path: "protocol-spec/released", directoryHint: .isDirectory)
    }

    /// Numbers of the releases, rising.
    var versions: [Int] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.compactMap { Int($0) }.sorted()
    }

    func folder(of version: Int) -> URL {
        folder.appending(path: "\(version)", directoryHint: .isDirectory)
    }

    /// The surface of a release.
    ///
    /// - Throws: `Failure` if there is none or it cannot be read.
    func surface(of version: Int) throws -> Surface {
        try Self.surface(at: folder(of: version))
    }

    /// The surface in a file or in a folder's `surface.json`.
    static func surface(at place: URL) throws -> Surface {
        var isFolder: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: place.path, isDirectory: &isFolder)
        let file = isFolder.boolValue ? place.appending(path: surfaceFile) : place
        do {
            return try Surface(json: String(contentsOf: file, encoding: .utf8))
        } catch {
            throw Failure(description: "\(file.relativePath): no surface can be read: \(error)")
        }
    }

    /// The newest release below a version; nil before the first.
    func newest(below version: Int = .max) throws -> Surface? {
        try versions.last { $0 < version }.map { try surface(of: $0) }
    }

    /// Writes the surface of the release that is being written.
    ///
    /// - Parameter again: whether one that is there already may be replaced.
    /// - Returns: whether anything changed.
    /// - Throws: `Failure` if it is there and differs, if a later one is there, or if it breaks the one before.
    func write(_ specification: Specification, again: Bool) throws -> Bool {
        let version = specification.version
        if let later = versions.last, later > version {
            throw Failure(description: "release \(later) is there; release \(version) is frozen")
        }
        if let frozen = try newest(below: version),
            let broken = CompatibilityCheck.problems(of: specification, against: frozen).first
        {
            throw Failure(description: "\(broken)")
        }
        let file = folder(of: version).appending(path: Self.surfaceFile)
        let text = ProtocolBundle(specification: specification).surface()
        if let present = try? String(contentsOf: file, encoding: .utf8) {
            if present == text { return false }
            guard again else {
                throw Failure(
                    description: "release \(version) is there and differs; "
                        + "if it is not out yet, --again replaces it"
                )
            }
        }
        try FileManager.default.createDirectory(
            at: folder(of: version),
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: file)
        return true
    }

    /// What is wrong with the releases, and with the specification in their light.
    func problems(of specification: Specification) -> [Problem] {
        let versions = versions
        var problems: [Problem] = []
        func complain(_ text: String) {
            problems.append(
                Problem(origin: Origin(file: "protocol-spec/released", line: 0), text: text)
            )
        }
        for version in 1..<max(specification.version, 1) where !versions.contains(version) {
            complain("release \(version) was never written; it must be before the next one begins")
        }
        for version in versions where version > specification.version {
            complain("release \(version) is later than the one being written")
        }
        var surfaces: [Surface] = []
        for version in versions {
            do {
                let surface = try surface(of: version)
                surfaces.append(surface)
                if surface.version != version {
                    complain("\(version)/\(Self.surfaceFile) is of release \(surface.version)")
                }
            } catch {
                complain("\(error)")
            }
        }
        guard problems.isEmpty else { return problems }
        if let newest = surfaces.popLast() {
            problems += CompatibilityCheck.problems(
                of: specification,
                against: newest,
                after: surfaces
            )
            if !problems.isEmpty, newest.version == specification.version {
                complain(
                    "release \(newest.version) is being written: if nobody has it yet, make release-spec accepts this"
                )
            }
        }
        return problems + problemsOfNotes(specification)
    }

    /// Every difference from the last frozen release has its reason in a note.
    private func problemsOfNotes(_ specification: Specification) -> [Problem] {
        let (notes, problems) = ChangeNote.load(specification.version, root: root)
        guard let frozen = try? newest(below: specification.version) else { return problems }
        return problems
            + ChangeNote.problems(
                of: notes,
                for: CompatibilityCheck(from: frozen, to: Surface(of: specification)),
                origins: SurfaceOrigins(specification)
            )
    }
}
