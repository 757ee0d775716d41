import TambourProtocol
import TambourStore

/// Decides which attachments may be sent, and converts them to their stored form.
enum AttachRules {
    /// Returns the attachments in the form that the store keeps and receivers get.
    ///
    /// - Parameters:
    ///   - pollID: the id of a new poll.
    ///   - old: the message whose attachments are replaced; nil for a new or a scheduled message.
    ///   - preview: returns the preview for a SHARE, by the preview's id.
    ///   - account: returns the account for a CONTACT. Returns nil if the user is unknown, or if
    ///     the sender may not see the user.
    /// - Throws: `error.message.invalid` for unsupported kinds and for an unknown preview,
    ///   `user.not.found` for an unknown contact, `proto.payload` with the name of a field that is
    ///   missing or out of range.
    static func stored(
        _ attaches: [NewAttach],
        at path: String,
        pollID: @autoclosure () -> Int64,
        instead old: MessageRecord? = nil,
        preview: (Int64) -> Attach?,
        account: (UserID) throws -> Account?
    ) throws -> (attaches: Packed<[Attach]>?, poll: PollMark?) {
        guard !attaches.isEmpty else { return (nil, nil) }
        var stored: [Attach] = []
        var mark: PollMark?
        for (index, attach) in attaches.enumerated() {
            let path = "\(path)/\(index)"
            switch attach.type {
            case .contact:
                stored.append(try contact(attach, at: path, account: account))
            case .location:
                stored.append(try location(attach, at: path))
            case .share:
                stored.append(try share(attach, at: path, preview: preview))
            case .poll:
                guard mark == nil else {
                    throw RequestError.errorMessageInvalid("\(path): a message has one poll")
                }
                let poll = try PollRules.poll(attach, at: path, id: pollID(), instead: old)
                mark = poll.mark
                stored.append(poll.attach)
            default:
                throw RequestError.errorMessageInvalid(
                    "\(path)/_type: attachments of this kind are not served"
                )
            }
        }
        return (Packed(stored), mark)
    }

    private static func contact(
        _ attach: NewAttach,
        at path: String,
        account: (UserID) throws -> Account?
    ) throws -> Attach {
        if let id = attach.contactID {
            guard let account = try account(id) else { throw RequestError.userNotFound }
            return Attach(
                type: .contact,
                contactID: id,
                firstName: Text(account.firstName),
                lastName: Text(account.lastName ?? ""),
                name: Text(account.name),
                photoUrl: ""
            )
        }
        guard let card = attach.vcfBody else {
            throw RequestError.protoPayload("\(path)/contactId: missing")
        }
        // Set all name fields, because one client requires them even if they are empty.
        return Attach(
            type: .contact,
            firstName: "",
            lastName: "",
            name: "",
            photoUrl: "",
            vcfBody: card
        )
    }

    private static func location(_ attach: NewAttach, at path: String) throws -> Attach {
        guard let latitude = attach.latitude else {
            throw RequestError.protoPayload("\(path)/latitude: missing")
        }
        guard let longitude = attach.longitude else {
            throw RequestError.protoPayload("\(path)/longitude: missing")
        }
        guard (-90...90).contains(latitude) else {
            throw RequestError.protoPayload("\(path)/latitude: not between -90 and 90")
        }
        guard (-180...180).contains(longitude) else {
            throw RequestError.protoPayload("\(path)/longitude: not between -180 and 180")
        }
        return Attach(
            type: .location,
            latitude: latitude,
            longitude: longitude,
            zoom: attach.zoom
        )
    }

    private static func share(
        _ attach: NewAttach,
        at path: String,
        preview: (Int64) -> Attach?
    ) throws -> Attach {
        if let known = attach.shareID.flatMap(preview) { return known }
        guard let url = attach.url, !url.isEmpty else {
            guard attach.shareID == nil else {
                throw RequestError.errorMessageInvalid("\(path)/shareId: no such preview")
            }
            throw RequestError.protoPayload("\(path)/url: missing")
        }
        return Attach(
            type: .share,
            url: url,
            title: attach.title,
            description: attach.description,
            shareID: attach.shareID,
            host: host(of: url)
        )
    }

    /// Returns the host in an address, between `://` and the path.
    static func host(of url: Text) -> Text? {
        let text = String(describing: url)
        guard let scheme = text.range(of: "://") else { return nil }
        let rest = text[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let host = authority.split(separator: "@").last ?? authority
        return host.isEmpty ? nil : Text(String(host))
    }
}

extension String {
    /// Returns the first occurrence of `text`. This method replaces `String.range(of:)`, which
    /// needs Foundation.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) {
                return start..<index(start, offsetBy: text.count)
            }
            start = index(after: start)
        }
        return nil
    }
}
