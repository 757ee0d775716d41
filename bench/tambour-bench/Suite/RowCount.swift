import Foundation
import TambourNet
import TambourProtocol
import TambourSQL
import TambourTesting

/// Counts the rows that one message to a group writes, by reading the database.
enum RowCount {
    private struct Rows {
        var messages = 0
        var marks: [[Int64]: Int64] = [:]
    }

    /// Sends one message to the sender's group.
    ///
    /// - Returns: the rows added to `message`, and the rows of `member` whose change clock moved.
    static func ofOneMessage(
        _ server: TambourServer,
        from account: Account
    ) throws -> (messages: Int, members: Int) {
        let path = server.directory.appendingPathComponent("tambour.db").path
        let database = try SQLiteConnection(path: path, mode: .readOnly)
        let client = try WireClient(address: server.process.address.description)
        defer { client.close() }
        _ = try client.call(SessionInitRequest(deviceID: "bench-rows"))
        let login = try client.call(account.loginRequest())
        guard let group = login.chats.first(where: { $0.type == .chat }) else {
            throw BenchError("the sender has no group")
        }
        let before = try rows(database)
        let message = NewMessage(cid: 1, text: Text("How many rows is this?"))
        _ = try client.call(MsgSendRequest(chatID: group.id, message: message))
        let after = try rows(database)
        return (
            after.messages - before.messages,
            after.marks.count { before.marks[$0.key] != $0.value }
        )
    }

    private static func rows(_ database: SQLiteConnection) throws -> Rows {
        var rows = Rows()
        let count = try database.prepare("SELECT count(*) FROM message")
        defer { count.reset() }
        if try count.step() { rows.messages = Int(count.int(0)) }
        let members = try database.prepare("SELECT user_id, chat, ct FROM member")
        defer { members.reset() }
        while try members.step() {
            rows.marks[[members.int(0), members.int(1)]] = members.int(2)
        }
        return rows
    }
}
