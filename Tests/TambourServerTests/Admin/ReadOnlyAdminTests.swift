import Foundation
import TambourMessenger
import TambourServer
import TambourTesting
import Testing

/// Operators can inspect a backup in place, even on a read-only file system.
@Suite("Admin commands on a store that cannot be written")
struct ReadOnlyAdminTests {
    private func withStore(_ body: (_ directory: String) throws -> Void) throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        try makeUsers(in: directory)
        try body(directory)
    }

    /// Creates users and closes the store, so that its log is empty.
    private func makeUsers(in directory: String) throws {
        let admin = AdminService(try OfflineAdminBackend(dataDirectory: directory))
        try admin.run(.createUsers(count: 3, firstPhone: 79_990_000_001)) { _ in }
    }

    private func answer(to request: AdminService.Request, in directory: String) throws -> [String] {
        let admin = AdminService(try ReadOnlyAdminBackend(dataDirectory: directory))
        var lines: [String] = []
        try admin.run(request) { lines.append($0) }
        return lines
    }

    private func files(in directory: String) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        return Dictionary(
            uniqueKeysWithValues: names.map { name in
                (name, FileManager.default.contents(atPath: "\(directory)/\(name)") ?? Data())
            }
        )
    }

    @Test("read it, refuse to change it, and leave nothing beside it")
    func inspected() throws {
        try withStore { directory in
            let copy = "\(directory)/copy"
            try FileManager.default.createDirectory(
                atPath: copy,
                withIntermediateDirectories: false
            )
            try FileManager.default.copyItem(
                atPath: "\(directory)/tambour.db",
                toPath: "\(copy)/tambour.db"
            )
            let before = try files(in: copy)
            #expect(try answer(to: .check, in: copy) == ["ok"])
            let backend = try ReadOnlyAdminBackend(dataDirectory: copy)
            var users = 0
            try AdminService(backend).run(.users(AdminFilter([:]))) { _ in users += 1 }
            #expect(users == 3)
            #expect(throws: AdminService.Failure.self) {
                try answer(to: .createUsers(count: 1, firstPhone: 79_990_000_009), in: copy)
            }
            // Compare the files while the store is still open.
            #expect(try files(in: copy) == before)
            withExtendedLifetime(backend) {}
        }
    }

    @Test("refuse a store with changes that only its log holds")
    func unwrittenLog() throws {
        try withStore { directory in
            let log = "\(directory)/tambour.db-wal"
            try Data([1]).write(to: URL(fileURLWithPath: log))
            let failure = try #require(throws: AdminService.Failure.self) {
                try answer(to: .check, in: directory)
            }
            #expect(failure.description.contains("tambour.db-wal holds changes"))
        }
    }
}
