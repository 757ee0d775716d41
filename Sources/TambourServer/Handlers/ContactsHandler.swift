import TambourProtocol
import TambourStore

/// Family `contacts`: users by id and by phone. Wire: protocol-spec/opcodes/contacts.yaml
struct ContactsHandler: Sendable {
    /// Answers `CONTACT_INFO` (32): unknown ids are left out.
    ///
    /// - Note: A query.
    func contactInfo(
        _ request: ContactInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ContactInfoReply {
        var seen: Set<UserID> = []
        let contacts = try request.contactIDs.compactMap { id -> User? in
            guard seen.insert(id).inserted, let account = try snapshot.account(id) else {
                return nil
            }
            return account.user(showingPhone: id == caller.userID)
        }
        return ContactInfoReply(contacts: contacts)
    }

    /// Answers `CONTACT_INFO_BY_PHONE` (46).
    ///
    /// - Throws: `user.not.found` for a number nobody has, one that is none, or a blocked account.
    /// - Note: A query.
    func contactInfoByPhone(
        _ request: ContactInfoByPhoneRequest,
        in snapshot: ReadTransaction
    ) throws -> ContactInfoByPhoneReply {
        guard let phone = PhoneNumber.parse(request.phone),
            let account = try snapshot.account(phone: phone), !account.isBlocked
        else { throw RequestError.userNotFound }
        return ContactInfoByPhoneReply(contact: account.user(showingPhone: true))
    }
}
