import TambourProtocol

/// Requests to the server while another process of this account owns the connection.
extension Client {
    /// The time limit for the other process to deliver the server's answer.
    private static let patience = Duration.seconds(30)

    /// Lets the connected process send a request to the server, and waits for the reply.
    ///
    /// - Throws: `ClientError.timedOut` if no answer arrives, for example because that process is
    ///   offline.
    func askByOther<Request: WireRequest & Sendable>(
        _ request: Request
    ) async throws(ClientError) -> Request.Reply where Request.Reply: Sendable {
        let changes = changes()
        let id = try await wish { core, tx in
            try core.leaveErrand(Request.opcode, request.encoded(), tx)
        }
        let answer = await withTaskGroup(of: Result<[UInt8], ClientError>?.self) { group in
            group.addTask {
                if let answer = self.answer(to: id) { return answer }
                for await change in changes where change.everything || change.queue {
                    if let answer = self.answer(to: id) { return answer }
                }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: Self.patience)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        try await wish { _, tx in try tx.removeErrand(id) }
        guard let answer else { throw .timedOut }
        let reply = try answer.get()
        do throws(PayloadError) {
            return try Request.Reply.decode(reply, limits: .standard)
        } catch {
            throw .unreadable(reason: "\(error)")
        }
    }

    /// Returns the result of an errand; nil until the result arrives.
    private func answer(to errand: Int64) -> Result<[UInt8], ClientError>? {
        try? store.read { try $0.answer(toErrand: errand) }
    }
}
