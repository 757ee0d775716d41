import Foundation
import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting

@testable import TambourClient
@testable import TambourMessenger

/// Initial stores, made once and copied for each run.
struct Templates: Sendable {
    static let users = 5
    static let devicesPerUser = 3

    /// The directory for the files of runs, in memory if the machine has `/dev/shm`.
    let root: String
    private let users: [Int64]

    static let shared: Templates = {
        do { return try Templates() } catch { fatalError("no templates: \(error)") }
    }()

    static func token(user: Int, device: Int) -> String { "token-\(user)-\(device)" }

    func user(_ index: Int) -> UserID { UserID(users[index]) }

    /// Returns the session of a client that the simulation does not run. Session ids count from 1,
    /// and this session is the first of its user.
    func otherSession(_ index: Int) -> SessionID {
        SessionID(Int64(index * (1 + Self.devicesPerUser) + 1))
    }

    private init() throws {
        let base = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
        root = "\(base)/tambour-simulation-\(getpid())"
        try FileManager.default.createDirectory(
            atPath: "\(root)/template",
            withIntermediateDirectories: true
        )
        users = try Self.makeServerStore("\(root)/template/tambour.db")
        let store = try LocalStore(path: "\(root)/template/device.db")
        try store.write { try $0.set(.server, "server:1") }
        store.close()
    }

    private static func makeServerStore(_ path: String) throws -> [Int64] {
        let connection = try SQLiteConnection(path: path, mode: .readWrite)
        try StoreConnection.migrate(connection)
        let writer = try StoreWriter(
            StoreConnection(connection, limits: .standard),
            // The recorded seeds depend on these ids.
            userIDs: .rising(from: 1)
        )
        let tx = try writer.begin(CommitStamp(ct: 1, leaseEnd: 1))
        var made: [Int64] = []
        for user in 0..<users {
            let id = try tx.createAccount(
                phone: 79_990_000_000 + Int64(user),
                firstName: "User \(user)",
                lastName: nil
            )
            made.append(id.rawValue)
            _ = try tx.createSession(
                of: id,
                tokenHash: Tokens.hash("token-\(user)-other"),
                origin: SessionOrigin(installation: "other", client: "", info: "", address: "")
            )
            for device in 0..<devicesPerUser {
                _ = try tx.createSession(
                    of: id,
                    tokenHash: Tokens.hash(token(user: user, device: device)),
                    origin: SessionOrigin(
                        installation: "device-\(user)-\(device)",
                        client: "",
                        info: "",
                        address: ""
                    )
                )
            }
        }
        _ = try writer.commit()
        try connection.checkpoint()
        return made
    }

    /// Makes a directory for one run, with the server's store in it.
    func makeDirectory(_ name: String) throws -> String {
        let directory = "\(root)/\(name)"
        try? FileManager.default.removeItem(atPath: directory)
        try FileManager.default.createDirectory(
            atPath: directory + "/server",
            withIntermediateDirectories: true
        )
        try copy("tambour.db", to: "\(directory)/server/tambour.db")
        return directory
    }

    func copy(_ file: String, to path: String) throws {
        try FileManager.default.copyItem(atPath: "\(root)/template/\(file)", toPath: path)
    }
}
