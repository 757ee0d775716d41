import TambourProtocol
import TambourStore

extension AdminService {
    private static let reportsPerRead = 200

    /// Prints a line for each report: id, time, reporter, subject and reason. The line ends with
    /// two quoted texts: the reporter's words, and the current text of the message or comment.
    func reports(_ output: (String) throws -> Void) throws {
        var last: Int64 = 0
        while true {
            let after = last
            let page = Box<[(id: Int64, line: String)]>([])
            try backend.read { store in
                page.value = try store.read { snapshot in
                    try snapshot.reports(after: after, limit: Self.reportsPerRead).map {
                        ($0.id, try Self.line($0, in: snapshot))
                    }
                }
            }
            guard let newest = page.value.last else { return }
            for (_, line) in page.value { try output(line) }
            last = newest.id
        }
    }

    private static func line(_ report: Report, in snapshot: ReadTransaction) throws -> String {
        var words = [
            "\(report.id)", AdminText.time(report.created), "by", "\(report.reporter.rawValue)",
        ]
        switch report.subject {
        case .user(let user):
            words += ["user", "\(user.rawValue)"]
            if let account = try snapshot.account(user) {
                words.append(AdminText.quoted(account.name))
            }
        case .chat(let chat):
            words += ["chat", "\(chat.rawValue)"]
        case .message(let id, let chat):
            if let post = try snapshot.post(of: chat) {
                words += ["comment", "\(id.rawValue)", "post", "\(post.id.rawValue)"]
                words += ["chat", "\(post.channel.rawValue)"]
            } else {
                words += ["message", "\(id.rawValue)", "chat", "\(chat.rawValue)"]
            }
            if let record = try snapshot.record(id, in: chat) {
                words += ["from", "\(record.sender.rawValue)"]
                words.append(
                    record.status == .removed ? "deleted" : AdminText.quoted(record.text)
                )
            }
        }
        words += ["reason", "\(report.reason)"]
        if !report.words.isEmpty { words.append(AdminText.quoted(report.words)) }
        return words.joined(separator: " ")
    }

    func closeReport(_ id: String, _ output: (String) throws -> Void) throws {
        guard let id = Int64(id) else {
            throw Failure("this is no number of a report", typed: id)
        }
        try backend.write { tx in
            guard try tx.closeReport(id) else {
                throw Failure("there is no report with this number", typed: "\(id)")
            }
            try tx.record(.closeReport, about: nil, "report \(id)")
        }
        try output("\(id) closed")
    }
}
