import TambourProtocol
import TambourStore

extension AdminService {
    /// Erases a user at once. The effect is the same as for a PROFILE_DELETE that is due. Each step
    /// is a separate command, and other commands run between the steps.
    ///
    /// - Parameter isConfirmed: if false, the method only prints a summary of the data to erase.
    func erase(
        _ user: String,
        isConfirmed: Bool,
        _ output: (String) throws -> Void
    ) throws {
        let found = Box<(account: Account, counts: UserCounts)?>(nil)
        try backend.read { store in
            found.value = try store.read { snapshot in
                try Self.account(user, in: snapshot).map { ($0, try snapshot.counts(of: $0.id)) }
            }
        }
        guard let (account, counts) = found.value else { throw Self.unknown(user: user) }
        guard !account.isErased || isConfirmed else {
            throw Failure(description: "\(account.id) is erased already")
        }
        guard isConfirmed else {
            try output(
                "\(PhoneNumber.format(account.phone)) \(account.id) "
                    + "\(AdminText.quoted(account.name)), everything written in every chat; "
                    + "sessions \(counts.sessions), chats \(counts.chats), "
                    + "contacts \(counts.contacts), drafts \(counts.drafts), "
                    + "folders \(counts.folders), entities \(counts.entities)"
            )
            throw Failure(description: "nothing is erased without --yes, and nothing comes back")
        }
        let id = account.id
        let eraser = AccountEraser(limits: backend.limits)
        if !account.isErased {
            try backend.write { tx in
                // Another erasure may have begun in the meantime.
                guard let account = try tx.reader.account(id), !account.isErased else { return }
                try eraser.begin(account, in: tx)
                // Record only the id, because nothing else remains of the account.
                try tx.record(.erase, about: nil, "user \(id)")
            }
        }
        let isMore = Box(true)
        while isMore.value {
            try backend.write { tx in isMore.value = try eraser.step(of: id, in: tx) }
        }
        try output("\(id) erased")
        try output("`tambourd admin vacuum` overwrites what is left in the file")
    }
}
