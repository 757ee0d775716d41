import Crypto
import Foundation

/// The folder `protocol-spec/released/`. It contains one folder for each release, named by the
/// release's number. Such a folder contains a copy of the files that declare what the release
/// promises.
///
/// The key `version:` in `protocol.yaml` is the number of the draft release, which may be
/// rewritten. Earlier releases are frozen.
struct Releases {
    /// The file with one line for every frozen release: its number and the SHA-256 of its files.
    static let digestFile = "digests"

    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// The folder `released`.
    let folder: URL
    private let root: URL

    /// - Parameter root: The root of the repository.
    init(root: URL) {
        self.root = root
        folder = root.appending(path: "protocol-spec/released", directoryHint: .isDirectory)
    }

    /// The numbers of the releases, ascending.
    var versions: [Int] { names.compactMap(Self.version).sorted() }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    }

    /// Returns the number of the release in a folder; nil if the folder's name is not a number in
    /// canonical form.
    private static func version(_ name: String) -> Int? {
        guard let version = Int(name), version > 0, "\(version)" == name else { return nil }
        return version
    }

    func folder(of version: Int) -> URL {
        folder.appending(path: "\(version)", directoryHint: .isDirectory)
    }

    /// Loads a release from its copy.
    ///
    /// - Throws: `Failure` if the copy is missing or cannot be read.
    func release(_ version: Int) throws -> Specification {
        try Self.release(at: folder(of: version))
    }

    /// Loads the specification from a folder that contains the same files as `protocol-spec/`.
    static func release(at folder: URL) throws -> Specification {
        var loader = SpecificationLoader(root: folder)
        let specification = loader.load()
        if let problem = loader.problems.first {
            throw Failure(description: "\(folder.relativePath): no release can be read: \(problem)")
        }
        return specification
    }

    /// Returns the newest release; nil if there is no release yet.
    func newest() throws -> Specification? { try versions.last.map(release) }

    /// Copies the files of the draft release. The first copy also records the digest of the
    /// previous release.
    ///
    /// - Parameters:
    ///   - specification: The specification that the repository currently contains.
    ///   - again: Whether an existing copy may be replaced.
    /// - Returns: Whether anything changed.
    /// - Throws: `Failure` if a different copy exists, if a frozen release was modified, or if
    ///   the draft breaks a frozen release.
    func write(_ specification: Specification, again: Bool) throws -> Bool {
        let version = specification.version
        let (found, releases) = read(for: version)
        if let problem = found.first(where: { !$0.isOfWhatIsWritten }) {
            throw Failure(description: "\(problem.problem)")
        }
        if let frozen = releases.last(where: { $0.version < version }),
            let broken = problems(of: specification, against: frozen).first
        {
            throw Failure(description: "\(broken)")
        }
        let place = folder(of: version)
        let files = try Self.files(in: root.appending(path: "protocol-spec"))
        let present = isWritten(version) ? try Self.files(in: place) : [:]
        if present == files { return false }
        guard again || present.isEmpty else {
            throw Failure(
                description: "release \(version) is there and differs; "
                    + "if it is not out yet, --again replaces it"
            )
        }
        // The first copy of a release seals the previous release. From then on, no command changes
        // the previous release.
        if version > 1, present.isEmpty { try seal(version - 1) }
        for path in present.keys where files[path] == nil {
            try FileManager.default.removeItem(at: place.appending(path: path))
        }
        for (path, data) in files {
            let file = place.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try data.write(to: file)
        }
        return true
    }

    private func isWritten(_ version: Int) -> Bool {
        let file = folder(of: version).appending(path: "protocol.yaml")
        return FileManager.default.fileExists(atPath: file.path)
    }

    /// Returns the files that declare promises, by path. These are all files that a loader reads,
    /// except examples and flows.
    private static func files(in folder: URL) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for (part, type) in [("", ".yaml"), ("opcodes/", ".yaml"), ("prose/", ".md")] {
            let place = folder.appending(path: part).path
            let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
            for name in names where name.hasSuffix(type) {
                files[part + name] = try Data(contentsOf: folder.appending(path: part + name))
            }
        }
        return files
    }

    // MARK: Digests

    /// Records the digest of a release, unless a digest is already recorded.
    private func seal(_ version: Int) throws {
        var digests = try digests()
        guard digests[version] == nil else { return }
        digests[version] = try digest(of: version)
        let lines = digests.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }
        try Data(lines.joined().utf8).write(to: folder.appending(path: Self.digestFile))
    }

    /// Returns a SHA-256 over the paths, sizes and contents of a release's files, in lower-case
    /// hexadecimal digits.
    func digest(of version: Int) throws -> String {
        var hash = SHA256()
        let files = try Self.files(in: folder(of: version))
        for (path, data) in files.sorted(by: { $0.key < $1.key }) {
            hash.update(data: Data("\(path) \(data.count)\n".utf8))
            hash.update(data: data)
        }
        return Hex.text(Array(hash.finalize()))
    }

    private func digests() throws -> [Int: String] {
        let file = folder.appending(path: Self.digestFile)
        guard FileManager.default.fileExists(atPath: file.path) else { return [:] }
        let place = "protocol-spec/released/\(Self.digestFile)"
        var digests: [Int: String] = [:]
        let lines = try TextFile.read(file, as: place).split(separator: "\n")
        for (index, line) in lines.enumerated() {
            guard let match = line.wholeMatch(of: /([0-9]+) ([0-9a-f]{64})/),
                let version = Self.version(String(match.output.1)), digests[version] == nil
            else {
                throw Problem(
                    origin: Origin(file: place, line: index + 1),
                    text: "is not the number of a release that is not there yet, and a SHA-256"
                )
            }
            digests[version] = String(match.output.2)
        }
        return digests
    }

    // MARK: Problems

    private struct FolderProblem {
        var problem: Problem
        /// Whether the problem disappears when the draft release is written.
        var isOfWhatIsWritten = false
    }

    /// Reports problems of the release folders. `version` is the version of the current
    /// specification.
    ///
    /// A missing folder is always a problem, because the comparison needs the folders of all
    /// releases.
    func folderProblems(for version: Int) -> [Problem] {
        read(for: version).problems.map(\.problem)
    }

    /// Reads the releases, ascending, and reports the problems of their folders.
    private func read(
        for version: Int
    ) -> (problems: [FolderProblem], releases: [Specification]) {
        let versions = versions
        let newest = versions.last ?? 0
        func problem(_ text: String, _ isOfWhatIsWritten: Bool = false) -> FolderProblem {
            FolderProblem(
                problem: Problem(
                    origin: Origin(file: "protocol-spec/released", line: 0),
                    text: text
                ),
                isOfWhatIsWritten: isOfWhatIsWritten
            )
        }
        var found = names.sorted().filter { Self.version($0) == nil && $0 != Self.digestFile }
            .map { problem("\($0) is neither the number of a release nor \(Self.digestFile)") }
        // Reports only the first missing release, even if several follow.
        if let missing = zip(1..., versions).first(where: { $0 != $1 })?.0 {
            found.append(
                problem(
                    "release \(missing) was never written; it must be before the next one begins"
                )
            )
        } else if version < 1 || version > newest && version != newest + 1 {
            found.append(
                FolderProblem(
                    problem: Problem(
                        origin: Origin(file: "protocol.yaml", line: 0),
                        text: newest == 0 && version > 1
                            ? "version \(version): release 1 was never written"
                            : "version \(version) is not from 1 to \(newest + 1), the release after the newest"
                    )
                )
            )
        } else if newest > version {
            found.append(problem("release \(newest) is later than the one being written"))
        } else if newest == 0 {
            found.append(
                problem("there is no release to compare with; make release-spec writes it", true)
            )
        }
        guard found.isEmpty else { return (found, []) }
        var releases: [Specification] = []
        for release in versions {
            do {
                let read = try self.release(release)
                releases.append(read)
                if read.version != release {
                    found.append(
                        problem(
                            "\(release)/protocol.yaml is of release \(read.version)",
                            release == version
                        )
                    )
                }
            } catch {
                found.append(problem("\(error)", release == version))
            }
        }
        do {
            let digests = try digests()
            for frozen in versions where frozen < version {
                guard let digest = digests[frozen] else {
                    // Only the last frozen release may have no digest. Its digest is recorded when
                    // the next release is written for the first time.
                    found.append(
                        problem(
                            "release \(frozen) has no digest in \(Self.digestFile); make release-spec writes it "
                                + "when the next release begins, and never later",
                            frozen == version - 1 && !isWritten(version)
                        )
                    )
                    continue
                }
                if try digest != self.digest(of: frozen) {
                    found.append(
                        problem("release \(frozen) is frozen, and its files are not what they were")
                    )
                }
            }
            for release in digests.keys.sorted() where release >= version {
                found.append(problem("release \(release) has a digest and is not frozen"))
            }
        } catch {
            found.append(problem("\(error)"))
        }
        return (found, releases)
    }

    /// Reports the changes of a specification that break a release. Reads the notes since that
    /// release, which may declare that only the wording has changed.
    func problems(
        of specification: Specification,
        against release: Specification,
        after earlier: [Specification] = []
    ) -> [Problem] {
        let notes = ChangeNote.load(
            after: release.version,
            through: specification.version,
            root: root
        ).notes
        return CompatibilityCheck.problems(
            of: specification,
            against: release,
            after: earlier,
            reworded: Set(notes.flatMap(\.reworded))
        )
    }

    /// Reports changes that break the newest release. While the newest release is a draft, also
    /// reports changes that break the last frozen release. The second check is needed because two
    /// changes that are each allowed may together break the frozen release.
    func compatibilityProblems(of specification: Specification) throws -> [Problem] {
        compatibilityProblems(of: specification, with: try versions.map(release))
    }

    private func compatibilityProblems(
        of specification: Specification,
        with releases: [Specification]
    ) -> [Problem] {
        var releases = releases
        var problems: [Problem] = []
        while let release = releases.popLast() {
            for problem in self.problems(of: specification, against: release, after: releases)
            where !problems.contains(problem) {
                problems.append(problem)
            }
            if release.version < specification.version { break }
        }
        return problems
    }

    /// Reports problems of the release folders. Without such problems, reports changes of the
    /// specification that break a release or have no note.
    func problems(of specification: Specification) -> [Problem] {
        let (found, releases) = read(for: specification.version)
        guard found.isEmpty else { return found.map(\.problem) }
        var problems = compatibilityProblems(of: specification, with: releases)
        if !problems.isEmpty, versions.last == specification.version {
            problems.append(
                Problem(
                    origin: Origin(file: "protocol-spec/released", line: 0),
                    text:
                        "release \(specification.version) is being written: if nobody has it yet, make release-spec accepts this"
                )
            )
        }
        let frozen = releases.last { $0.version < specification.version }
        return problems + problemsOfNotes(specification, since: frozen)
    }

    /// Checks that every difference from the last frozen release has a note.
    private func problemsOfNotes(
        _ specification: Specification,
        since frozen: Specification?
    ) -> [Problem] {
        let (notes, problems) = ChangeNote.load(specification.version, root: root)
        guard let frozen else { return problems }
        return problems
            + ChangeNote.problems(
                of: notes,
                for: CompatibilityCheck(from: frozen, to: specification)
            )
    }
}
