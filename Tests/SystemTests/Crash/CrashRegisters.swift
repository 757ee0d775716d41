import TambourProtocol
import TambourTesting

/// The durable facts that commands other than those of `CrashWriter` change.
extension CrashRegister {
    static func all(_ place: CrashPlace) -> [CrashRegister] {
        own(place) + contacts(place) + yard(place) + members(place) + messages(place)
            + things(place)
    }

    /// Commands that the load leaves out, and why.
    static let leftOut: [Opcode: String] = {
        let signIn: [Opcode] = [
            .authRequest, .auth, .authConfirm, .authCreateTrack, .authCheckPassword, .authSet2fa,
            .authVerifyEmail, .authCheckEmail, .authLoginCheckPassword, .authLoginRestorePassword,
            .phoneBindRequest, .phoneBindConfirm, .getQr, .authQrApprove, .loginByQr,
        ]
        let reasons: [(Opcode, String)] =
            signIn.map { ($0, "signs in or changes how to: one-time codes and costly hashes") } + [
                (.logout, "ends the session that would step the register"),
                (.sessionsClose, "ends the sessions of the load"),
            ]
        return Dictionary(uniqueKeysWithValues: reasons)
    }()

    /// What `CrashWriter` plays and its ledger checks.
    static let written: Set<Opcode> = [.msgSend, .msgEdit, .msgDelete, .chatMark]

    // MARK: - The own account

    private static func own(_ place: CrashPlace) -> [CrashRegister] {
        let (me, yard, square) = (place.me, place.yard.chat, place.square.chat)
        return [
            CrashRegister("about", of: me) {
                CrashCommand(ProfileRequest(description: Text($1($0))))
            } value: {
                $1($0)
            } read: {
                try $0.login.get().profile.contact.description.described
            },
            CrashRegister("setting", of: me) { step, mark in
                let value = AnyValue(Text(mark(step)))
                let change = SettingsChange(user: NameMap([("CRASH", value)]), chats: IDMap())
                return CrashCommand(ConfigRequest(settings: change))
            } value: {
                $1($0)
            } read: {
                try $0.userSetting("CRASH")?.text.described ?? "none"
            },
            CrashRegister("chat setting", of: me) { step, mark in
                let settings: NameMap<AnyValue> = NameMap([("crash", AnyValue(Text(mark(step))))])
                let change = SettingsChange(user: NameMap(), chats: IDMap([(yard, settings)]))
                return CrashCommand(ConfigRequest(settings: change))
            } value: {
                $1($0)
            } read: {
                try $0.chatSetting("crash", of: yard)?.text.described ?? "none"
            },
            CrashRegister("pinned", of: me, initial: "shown") { step, _ in
                CrashCommand(ChatPinSetVisibilityRequest(chatID: square, show: step % 2 == 1))
            } value: { step, _ in
                step % 2 == 1 ? "shown" : "hidden"
            } read: {
                try $0.chatSetting("hidePinned", of: square)?.bool == true ? "hidden" : "shown"
            },
            CrashRegister("erasure", of: me) { step, _ in
                CrashCommand(ProfileDeleteRequest(cancel: step % 2 == 1))
            } value: { step, _ in
                step % 2 == 1 ? "none" : "set"
            } read: {
                try $0.client.call(ProfileDeleteTimeRequest()).time == 0 ? "none" : "set"
            },
        ]
    }

    // MARK: - Contacts

    private static func contacts(_ place: CrashPlace) -> [CrashRegister] {
        let contact = place.user(3)
        let phone = CrashPlace.phone((place.index + 3) % place.users.count)
        let blocked = place.user(2)
        return [
            CrashRegister("contact", of: place.me) { step, mark in
                let name = Text(mark(step))
                func update(_ action: ContactAction, _ name: Text? = nil) -> CrashCommand {
                    CrashCommand(
                        ContactUpdateRequest(contactID: contact, action: action, firstName: name)
                    )
                }
                switch step % 6 {
                case 0: return CrashCommand(ContactCreateRequest(phone: phone, firstName: name))
                case 1: return update(.update, name)
                case 3:
                    let entry = PhoneBookEntry(firstName: name)
                    return CrashCommand(SyncRequest(contactList: NameMap([(Text(phone), entry)])))
                case 4: return update(.add, name)
                default: return update(.remove)
                }
            } value: { step, mark in
                step % 3 == 2 ? "none" : mark(step)
            } read: {
                let names = try $0.login.get().contacts.first { $0.id == contact }?.names ?? []
                return names.compactMap(\.firstName).first { $0.hasPrefix("contact ") } ?? "none"
            },
            CrashRegister("block", of: place.me) { step, _ in
                CrashCommand(
                    ContactUpdateRequest(
                        contactID: blocked,
                        action: step % 2 == 0 ? .block : .unblock
                    )
                )
            } value: { step, _ in
                step % 2 == 0 ? "blocked" : "none"
            } read: {
                let list = try $0.client.call(ContactListRequest(status: "BLOCKED")).contacts
                return list.contains { $0.id == blocked } ? "blocked" : "none"
            },
        ]
    }

    // MARK: - A group

    private static func yard(_ place: CrashPlace) -> [CrashRegister] {
        let (me, chat, posts) = (place.me, place.yard.chat, place.yard.posts)
        return [
            CrashRegister("title", of: me, initial: "yard") {
                CrashCommand(ChatUpdateRequest(chatID: chat, theme: Text($1($0))))
            } value: {
                $1($0)
            } read: {
                try $0.chat(chat)?.title.described ?? "none"
            },
            CrashRegister("description", of: me) {
                CrashCommand(ChatUpdateRequest(chatID: chat, description: Text($1($0))))
            } value: {
                $1($0)
            } read: {
                try $0.chat(chat)?.description.described ?? "none"
            },
            CrashRegister("option", of: me, initial: "false") { step, _ in
                let options: NameMap<Bool> = NameMap([("ALL_CAN_PIN_MESSAGE", step % 2 == 0)])
                return CrashCommand(ChatUpdateRequest(chatID: chat, options: options))
            } value: { step, _ in
                "\(step % 2 == 0)"
            } read: {
                "\(try $0.chat(chat)?.options?["ALL_CAN_PIN_MESSAGE"] ?? false)"
            },
            CrashRegister("pin", of: me) { step, _ in
                CrashCommand(ChatUpdateRequest(chatID: chat, pinMessageID: posts[step % 2]))
            } value: { step, _ in
                "\(posts[step % 2])"
            } read: {
                try $0.chat(chat)?.pinnedMessage.map { "\($0.id)" } ?? "none"
            },
            CrashRegister("reaction kinds", of: me, initial: "8") { step, _ in
                let count = Int64(1 + step % 8)
                return CrashCommand(ChatReactionsSettingsSetRequest(chatID: chat, count: count))
            } value: { step, _ in
                "\(1 + step % 8)"
            } read: {
                let request = ChatReactionsSettingsGetByChatIdRequest(chatIDs: [chat])
                return "\(try $0.client.call(request).chatReactionsSettings.first?.count ?? 0)"
            },
        ]
    }

    private static func members(_ place: CrashPlace) -> [CrashRegister] {
        let (me, chat, other) = (place.me, place.yard.chat, place.yard(1))
        let (member, admin) = (place.user(3), place.user(2))
        func update(_ user: UserID, _ operation: MemberOperation, _ rights: Int64?) -> CrashCommand
        {
            CrashCommand(
                ChatMembersUpdateRequest(
                    chatID: chat,
                    userIDs: [user],
                    operation: operation,
                    type: rights == nil ? nil : .admin,
                    permissions: rights
                )
            )
        }
        return [
            CrashRegister("member", of: me, initial: "in") { step, _ in
                update(member, step % 2 == 0 ? .remove : .add, nil)
            } value: { step, _ in
                step % 2 == 0 ? "out" : "in"
            } read: {
                try $0.members(of: chat).contains { $0.contact.id == member } ? "in" : "out"
            },
            CrashRegister("rights", of: me) { step, _ in
                step % 3 == 2 ? update(admin, .remove, 0) : update(admin, .add, [8, 24][step % 3])
            } value: { step, _ in
                ["8", "24", "none"][step % 3]
            } read: {
                let admins = try $0.members(of: chat, .admin)
                let rights = admins.first { $0.contact.id == admin }?.permissions
                return rights.map { "\($0)" } ?? "none"
            },
            CrashRegister("joined", of: me, initial: "in", refusedAgain: .chatNotFound) { step, _ in
                step % 2 == 0
                    ? CrashCommand(ChatLeaveRequest(chatID: other.chat))
                    : CrashCommand(ChatJoinRequest(link: other.link))
            } value: { step, _ in
                step % 2 == 0 ? "out" : "in"
            } read: {
                try $0.chat(other.chat)?.status == .active ? "in" : "out"
            },
            groups(place),
        ]
    }

    /// Groups that are created, reported and deleted.
    private static func groups(_ place: CrashPlace) -> CrashRegister {
        var group = ChatID(0)
        let me = place.me
        return CrashRegister(
            "group",
            of: me,
            initial: "[] 0",
            refusedAgain: .chatNotFound
        ) { step, mark in
            switch step % 3 {
            case 0:
                let request = MsgSendRequest.group(
                    mark(step),
                    [place.user(1)],
                    cid: 1_000_000_000 + Int64(step)
                )
                return CrashCommand(request) { group = $0.chatID }
            case 1: return CrashCommand(ChatComplainRequest(chatID: group, reasonID: 1))
            default: return CrashCommand(ChatDeleteRequest(chatID: group, forAll: true))
            }
        } value: { step, mark in
            let titles = step % 3 == 2 ? [] : [mark(step - step % 3)]
            return "\(titles) \((step + 2) / 3)"
        } read: { view in
            let chats = try view.client.call(ChatsListRequest(count: 200)).chats
            let titles = chats.filter { $0.status == .active && $0.owner == me }
                .map { $0.title.described }.filter { $0.hasPrefix("group ") }
            return "\(titles) \(view.reports.count { $0.contains("by \(me) chat ") })"
        }
    }

    // MARK: - Drafts, folders, objects

    private static func things(_ place: CrashPlace) -> [CrashRegister] {
        let chat = place.yard.chat
        return [
            CrashRegister("draft", of: place.me) { step, mark in
                step % 3 == 2
                    ? CrashCommand(DraftDiscardRequest(chatID: chat))
                    : CrashCommand(DraftSaveRequest(chatID: chat, text: Text(mark(step))))
            } value: { step, mark in
                step % 3 == 2 ? "none" : mark(step)
            } read: {
                try $0.login.get().drafts?.chats?.saved[chat].map { "\($0.text)" } ?? "none"
            },
            folders(place), note(place),
        ]
    }

    /// Two folders: one is renamed, the other made, put before it and back, and deleted.
    private static func folders(_ place: CrashPlace) -> CrashRegister {
        CrashRegister("folders", of: place.me, initial: "[]") { step, mark in
            switch step % 5 {
            case 0: CrashCommand(FoldersUpdateRequest(id: "a", title: Text(mark(step))))
            case 1: CrashCommand(FoldersUpdateRequest(id: "b", title: Text(mark(step))))
            case 2: CrashCommand(FoldersReorderRequest(foldersOrder: ["b", "a"]))
            case 3: CrashCommand(FoldersReorderRequest(foldersOrder: ["a", "b"]))
            default: CrashCommand(FoldersDeleteRequest(folderIDs: ["b"]))
            }
        } value: { step, mark in
            let (a, b) = (mark(step - step % 5), mark(step - step % 5 + 1))
            return "\([[a], [a, b], [b, a], [a, b], [a]][step % 5])"
        } read: {
            let reply = try $0.client.call(FoldersGetRequest())
            let titles = reply.foldersOrder.compactMap { id in
                reply.folders.first { $0.id == id && (id == "a" || id == "b") }
            }
            return "\(titles.map { "\($0.title)" })"
        }
    }

    private static func note(_ place: CrashPlace) -> CrashRegister {
        var id: Int64 = 0
        return CrashRegister("note", of: place.me, initial: "[]") { step, mark in
            let change = [ObjectChange.create, .update, .delete][step % 3]
            let title = mark(step)
            let fields: NameMap<AnyValue> = NameMap([("title", AnyValue(Text(title)))])
            let operation = ObjectOperation(
                opID: 100 + Int64(step),
                op: change,
                id: change == .create ? AnyValue(Text("#l1")) : AnyValue(id),
                type: "note",
                parent: change == .create ? AnyValue(place.profile) : nil,
                base: Int64(step % 3),
                modified: 1,
                fields: change == .delete ? nil : fields
            )
            return CrashCommand(ObjPushRequest(clientNow: 1, ops: [operation])) { reply in
                guard let result = reply.results.first, result.status == .applied else {
                    throw WireClient.Failure.unexpected("\(title) \(reply)")
                }
                if change == .create { id = result.id ?? 0 }
            }
        } value: { step, mark in
            step % 3 == 2 ? "[]" : "\(["\(mark(step)) version \(step % 3 + 1)"])"
        } read: {
            let objects = try $0.client.call(ObjPullRequest(since: 0, count: 1000)).objects
            let notes = objects.filter { $0.type == "note" && $0.deleted != true }
            return
                "\(notes.map { "\($0.fields?["title"]?.text.described ?? "") version \($0.version)" })"
        }
    }
}

extension Text? {
    var described: String { map { "\($0)" } ?? "none" }
}
