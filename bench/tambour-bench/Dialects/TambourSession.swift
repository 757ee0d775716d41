import Foundation
import TambourNet
import TambourProtocol

/// A logged-in Tambour user who asks one thing at a time.
final class TambourSession {
    private static let limits = Limits.standard

    let connection: BlockingConnection
    private let account: Account
    private var decoder = FrameDecoder(limits: TambourSession.limits)
    private var sequence: UInt16 = 0
    private var cid = Int64(Date.now.timeIntervalSince1970) * 1_000_000

    init(_ address: ListenAddress, account: Account) throws {
        self.account = account
        connection = try BlockingConnection(address)
        decoder.authenticated = true
        _ = try ask(
            .sessionInit,
            SessionInitRequest(deviceID: "session-\(account.userID.rawValue)")
        ) { _ in }
    }

    /// Logs in with what it knows already.
    func logIn(since mark: Int64 = 0, configHash: Text? = nil) throws -> LoginReply {
        var request = account.loginRequest(since: mark)
        request.configHash = configHash
        return try ask(.login, request) { try LoginReply.decode($0, limits: Self.limits) }
    }

    /// Sends the texts to the dialog with `other`, many at a time, and waits for all answers.
    func write(_ texts: some Collection<Bytes100>, to other: Account) throws {
        var output: [UInt8] = []
        for text in texts {
            cid += 1
            let message = NewMessage(cid: cid, text: Text(unchecked: Bytes(text)))
            append(
                .msgSend,
                MsgSendRequest(chatID: account.dialog(with: other), message: message),
                to: &output
            )
        }
        try connection.write(output)
        for _ in texts { try answer { _ in } }
    }

    /// The messages of the dialog with `other` behind a time, oldest first.
    ///
    /// - Parameter decoding: Whether to look at them; the reply is empty otherwise.
    func page(
        with other: Account,
        after time: Int64,
        limit: Int64,
        decoding: Bool = true
    ) throws -> [Message] {
        let request = ChatHistoryRequest(
            chatID: account.dialog(with: other),
            from: time,
            forward: limit
        )
        return try ask(.chatHistory, request) { payload in
            guard decoding else { return [] }
            return try ChatHistoryReply.decode(payload, limits: Self.limits).messages ?? []
        }
    }

    private func ask<Result>(
        _ opcode: Opcode,
        _ payload: some WirePayload,
        _ take: ([UInt8]) throws -> Result
    ) throws -> Result {
        var output: [UInt8] = []
        append(opcode, payload, to: &output)
        try connection.write(output)
        return try answer(take)
    }

    private func append(_ opcode: Opcode, _ payload: some WirePayload, to output: inout [UInt8]) {
        encodePacket(
            command: .request,
            sequence: sequence,
            opcode: opcode.rawValue,
            payload: payload.encoded(),
            into: &output
        )
        sequence &+= 1
    }

    /// Reads the next answer and passes over what is pushed.
    private func answer<Result>(_ take: ([UInt8]) throws -> Result) throws -> Result {
        try connection.read { bytes, offset in
            while let frame = try decoder.next(in: bytes, from: &offset) {
                switch frame.header.command {
                case PacketCommand.request.rawValue: continue
                case PacketCommand.ok.rawValue:
                    return try take(frame.payload(limits: Self.limits))
                default:
                    let error = try ErrorReply.decode(
                        frame.payload(limits: Self.limits),
                        limits: Self.limits
                    )
                    throw BenchError("opcode \(frame.header.opcode): \(error.message)")
                }
            }
            return nil
        }
    }
}
