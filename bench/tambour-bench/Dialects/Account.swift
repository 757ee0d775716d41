import Foundation
import TambourProtocol

/// The account that a client logs in with: one line `PHONE USER_ID TOKEN` from `tambourd admin
/// users create`.
struct Account: Sendable {
    let phone: String
    let userID: UserID
    let token: String

    /// Returns the chat of two users.
    func dialog(with other: Account) -> ChatID {
        .dialog(userID, other.userID)
    }

    var hello: SessionInitRequest {
        SessionInitRequest(deviceID: "bench-\(userID.rawValue)")
    }

    /// Returns a LOGIN request with all four marks set to `mark`; -1 requests everything.
    func loginRequest(since mark: Int64 = 0) -> LoginRequest {
        LoginRequest(
            token: token,
            interactive: true,
            chatsSync: mark,
            contactsSync: mark,
            draftsSync: mark,
            presenceSync: mark
        )
    }

    static func read(_ path: String) throws -> [Account] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw BenchError("\(path) cannot be read")
        }
        return try String(decoding: data, as: UTF8.self).split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            guard words.count == 3, let id = Int64(words[1]) else {
                throw BenchError("\(path): expected lines PHONE USER_ID TOKEN, found \"\(line)\"")
            }
            return Account(
                phone: String(words[0]),
                userID: UserID(id),
                token: String(words[2])
            )
        }
    }
}
