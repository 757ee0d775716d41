import TambourProtocol
import TambourTesting

extension CommandPlay {
    /// Plays PROFILE, PROFILE_DELETE, CONFIG, DRAFT_SAVE, DRAFT_DISCARD, FOLDERS_UPDATE,
    /// FOLDERS_REORDER, FOLDERS_DELETE and OBJ_PUSH.
    static let own: [Maker] = [profile, leaving, settings, drafts, folders, entities]

    private static let profile: Maker = { player, mark in
        CommandPlay(
            "what the user says of themselves",
            mark,
            change: { ChangeRequest(ProfileRequest(description: mark.text($0))) },
            read: { player in
                try mark.numbers(in: player.own.payload(of: Login2Request(needProfile: true)))
            },
            after: { $0 == 0 ? [] : [$0] }
        )
    }

    /// Sets the time at which the server erases the account, and clears it.
    private static let leaving: Maker = { player, mark in
        CommandPlay(
            "time of erasure",
            mark,
            change: { ChangeRequest(ProfileDeleteRequest(cancel: $0 % 2 == 0)) },
            read: { player in
                [try player.own.call(ProfileDeleteTimeRequest()).time > 0 ? 1 : 0]
            },
            after: { [$0 % 2] }
        )
    }

    private static let settings: Maker = { player, mark in
        CommandPlay(
            "settings",
            mark,
            change: { number in
                let name = Text("crash\(number % 3)")
                let settings = NameMap([(name, AnyValue(mark.text(number)))])
                return ChangeRequest(ConfigRequest(settings: SettingsChange(user: settings)))
            },
            read: { player in
                let user = try player.own.call(ConfigRequest()).user
                return (0..<3).map { place in
                    let text = user[Text("crash\(place)")]?.text
                    return mark.numbers(in: String(describing: text ?? "")).first ?? 0
                }
            },
            after: { inTurn(3, $0) }
        )
    }

    /// Saves drafts; every third change discards the draft.
    private static let drafts: Maker = { player, mark in
        let chat = try player.group()
        return CommandPlay(
            "drafts",
            mark,
            change: { number in
                number % 3 == 0
                    ? ChangeRequest(DraftDiscardRequest(chatID: chat))
                    : ChangeRequest(DraftSaveRequest(chatID: chat, text: mark.text(number)))
            },
            read: { player in
                let request = LoginRequest(token: player.own.token, draftsSync: 0)
                let draft = try player.own.call(request).drafts?.chats?.saved[chat]
                return mark.numbers(in: String(describing: draft?.text ?? ""))
            },
            after: { $0 % 3 == 0 ? [] : [$0] }
        )
    }

    /// Creates three folders, reverses their order, and deletes first one, then the rest.
    private static let folders: Maker = { player, mark in
        let ids = (0..<3).map { Text("crash-\($0)") }
        return CommandPlay(
            "folders",
            mark,
            change: { number in
                switch number % 6 {
                case 4: ChangeRequest(FoldersReorderRequest(foldersOrder: ids.reversed()))
                case 5: ChangeRequest(FoldersDeleteRequest(folderIDs: [ids[1]]))
                case 0: ChangeRequest(FoldersDeleteRequest(folderIDs: [ids[0], ids[2]]))
                case let step:
                    ChangeRequest(
                        FoldersUpdateRequest(id: ids[step - 1], title: mark.text(number))
                    )
                }
            },
            read: { player in
                let reply = try player.own.call(FoldersGetRequest())
                return reply.foldersOrder.flatMap { id in
                    reply.folders.filter { $0.id == id }
                        .flatMap { mark.numbers(in: String(describing: $0.title)) }
                }
            },
            after: { number in
                switch number % 6 {
                case 4: [number - 1, number - 2, number - 3]
                case 5: [number - 2, number - 4]
                case 0: []
                case let step: Array((number - step + 1)...number)
                }
            }
        )
    }

    /// Creates an entity, changes it, deletes it.
    private static let entities: Maker = { player, mark in
        var last: (id: Int64, version: Int64) = (0, 0)
        func fields(_ number: Int) -> NameMap<AnyValue>? {
            let value = AnyValue(mark.text(number))
            switch number % 3 {
            case 0: return nil
            case 1: return NameMap([(Text("name"), value)])
            // The name cannot change.
            default: return NameMap([(Text("settings"), AnyValue(NameMap([(Text("a"), value)])))])
            }
        }
        return CommandPlay(
            "entities",
            mark,
            change: { number in
                let isNew = number % 3 == 1
                let operation = ObjectOperation(
                    opID: mark.cid(number),
                    op: [.delete, .create, .update][number % 3],
                    id: isNew ? AnyValue(Text("#l\(number)")) : AnyValue(last.id),
                    type: "account",
                    base: isNew ? 0 : last.version,
                    modified: Int64(number),
                    fields: fields(number)
                )
                return ChangeRequest(
                    ObjPushRequest(clientNow: Int64(number), ops: [operation])
                )
            },
            learn: { number, payload in
                let results = try ObjPushReply.decode(payload, limits: .standard).results
                guard let result = results.first, result.status == .applied else {
                    throw WireClient.Failure.unexpected("entity change \(number): \(results)")
                }
                last = (result.id ?? last.id, result.version ?? last.version)
            },
            read: { player in
                var found: [Int] = []
                var request = ObjPullRequest(since: 0, count: 1_000)
                while true {
                    let payload = try player.own.payload(of: request)
                    found += mark.numbers(in: payload)
                    let reply = try ObjPullReply.decode(payload, limits: .standard)
                    guard reply.more == true else { return found.sorted() }
                    request = ObjPullRequest(
                        since: reply.time,
                        count: 1_000,
                        after: reply.last ?? 0
                    )
                }
            },
            after: { [[], [$0], [$0 - 1, $0]][$0 % 3] }
        )
    }
}
