import Foundation
import TambourFraming
import TambourNet
import TambourProtocol

/// A logged-in Tambour user that sends one request at a time.
final class TambourSession {
    let connection: BlockingConnection
    private let account: Account
    private var packets = TambourPackets()
    private var cid = Int64(Date.now.timeIntervalSince1970) * 1_000_000

    init(_ address: ListenAddress, account: Account) throws {
        self.account = account
        connection = try BlockingConnection(address)
        _ = try ask(.sessionInit, account.hello) { _ in }
    }

    /// Logs in as a client that already has all changes up to `mark`.
    func logIn(since mark: Int64 = 0, configHash: Text? = nil) throws -> LoginReply {
        var request = account.loginRequest(since: mark)
        request.configHash = configHash
        return try ask(.login, request) { try $0.decode(LoginReply.self) }
    }

    /// Sends the texts to the dialog with `other` without waiting in between, and then waits for
    /// all replies.
    func write(_ texts: some Collection<Bytes100>, to other: Account) throws {
        var output: [UInt8] = []
        for text in texts {
            cid += 1
            let message = NewMessage(cid: cid, text: Text(unchecked: Bytes(text)))
            packets.append(
                .msgSend,
                MsgSendRequest(chatID: account.dialog(with: other), message: message),
                to: &output
            )
        }
        try connection.write(output)
        for _ in texts { try answer { _ in } }
    }

    /// Returns the messages of the dialog with `other` after a time, oldest first.
    func page(with other: Account, after time: Int64, limit: Int64) throws -> [Message] {
        let request = ChatHistoryRequest(
            chatID: account.dialog(with: other),
            from: time,
            forward: limit
        )
        return try ask(.chatHistory, request) {
            try $0.decode(ChatHistoryReply.self).messages ?? []
        }
    }

    private func ask<Result>(
        _ opcode: Opcode,
        _ payload: some WirePayload,
        _ take: (Frame) throws -> Result
    ) throws -> Result {
        var output: [UInt8] = []
        packets.append(opcode, payload, to: &output)
        try connection.write(output)
        return try answer(take)
    }

    /// Reads the next reply and skips pushes.
    private func answer<Result>(_ take: (Frame) throws -> Result) throws -> Result {
        try connection.read { bytes, offset in
            while let packet = try packets.next(in: bytes, from: &offset) {
                if case .answered(let frame) = packet { return try take(frame) }
            }
            return nil
        }
    }
}
