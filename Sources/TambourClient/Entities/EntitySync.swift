import TambourProtocol

/// Synchronises entities with the server; one pull or push is in flight at a time.
final class EntitySync {
    private unowned let core: ClientCore
    /// The stored entities; nil until they are read from the store.
    private var held: LocalEntities?
    private var link = Link()

    init(_ core: ClientCore) { self.core = core }

    /// The state of synchronisation on the current connection.
    private struct Link {
        enum Request {
            case pull
            case push
        }

        var underWay: Request?
        /// Whether the server may have changes that this device lacks.
        var wantsPull = false
        /// Whether this connection has pulled a page.
        var hasPulled = false
        /// Whether the server does not support entities or has refused a request. In that case,
        /// this connection makes no further attempts.
        var isRefused = false
        /// The entities received so far in a full pull; nil when only changes are pulled.
        var everything: [Entity]?
        /// The start of the next page; nil to start at the stored mark.
        var next: Mark?
    }

    /// The place of the last change before the next page.
    private struct Mark {
        var time: Int64
        var last: Int64
    }

    // MARK: The user's changes

    /// Runs a call on the entities and stores the changed rows.
    ///
    /// - Throws: `ClientError` for an invalid call.
    func change<Value>(
        _ tx: StoreTransaction,
        _ body: (inout LocalEntities) throws(LocalEntityError) -> (Value, [EntityRowChange])
    ) throws -> Value {
        var entities = try use(tx)
        // Clearing `held` leaves a single reference, which avoids a copy. A call that throws has
        // changed nothing.
        held = nil
        defer { held = entities }
        let (value, rows): (Value, [EntityRowChange])
        do throws(LocalEntityError) {
            (value, rows) = try body(&entities)
        } catch {
            throw ClientError(error)
        }
        try tx.apply(rows)
        return value
    }

    /// Returns the stored entities, and keeps them up to date from now on.
    func use(_ tx: StoreTransaction) throws -> LocalEntities {
        if try tx.value(of: .entitiesMark) as Int64? == nil {
            try tx.set(.entitiesMark, 0)
            try tx.set(.entityTypes, LocalEntities.knownTypes)
            link.wantsPull = true
        }
        return try stored(tx)
    }

    private func stored(_ tx: StoreTransaction) throws -> LocalEntities {
        if let held { return held }
        var read = LocalEntities(
            schema: .standard(.standard),
            rows: try tx.entityRows(random: core.environment.random)
        )
        // If a batch is in flight, the reread entities must wait for its reply.
        if link.underWay == .push { read.resume() }
        held = read
        return read
    }

    /// Whether all changes from the server have arrived. The user's changes may still be queued.
    var isInSync: Bool {
        core.isLive && link.hasPulled && !link.isRefused && !link.wantsPull
            && link.underWay != .pull
    }

    // MARK: The connection

    /// After a login, requests the changes since the last connection.
    func loggedIn(_ tx: StoreTransaction) throws {
        guard try tx.value(of: .entitiesMark) as Int64? != nil else { return }
        link.wantsPull = true
        // Older versions skipped entities of types they did not know. The stored mark is already
        // past these entities, so a new type requires a full pull.
        let known: String? = try tx.value(of: .entityTypes)
        guard known != LocalEntities.knownTypes else { return }
        try tx.set(.entitiesMark, 0)
        try tx.set(.entityTypes, LocalEntities.knownTypes)
    }

    /// Pulls if another process was the first to use entities.
    func pullForOthers(_ tx: StoreTransaction) throws {
        guard !link.hasPulled, link.underWay == nil,
            try tx.value(of: .entitiesMark) as Int64? != nil
        else { return }
        link.wantsPull = true
    }

    func disconnected() {
        link = Link()
        held?.dropped()
    }

    /// Resets the state. The next account has its own entities, and replies to this account's
    /// requests must be ignored.
    func signedOut() {
        link = Link()
        held = nil
    }

    /// Discards the entities in memory. The next use rereads them.
    func forget() { held = nil }

    /// Runs at the end of every transaction: sends the requests that are now possible.
    func run(_ tx: StoreTransaction) throws {
        guard core.isLive, link.underWay == nil, !link.isRefused else { return }
        if link.wantsPull {
            link.wantsPull = false
            try pull(tx)
        } else if held != nil || tx.changes.entities || tx.changes.everything {
            try push(tx)
        }
    }

    private func push(_ tx: StoreTransaction) throws {
        guard try tx.value(of: .entitiesMark) as Int64? != nil else { return }
        var entities = try stored(tx)
        held = nil
        defer { held = entities }
        let push = entities.nextPush()
        try tx.apply(push.rows)
        guard !push.operations.isEmpty else { return }
        link.underWay = .push
        let request = ObjPushRequest(
            clientNow: core.environment.wallMs(),
            ops: push.operations.map { ObjectOperation($0) }
        )
        let (asked, operations) = (core.life.number, push.operations.map(\.opID))
        core.call(request) { [self] answer, tx in
            guard asked == core.life.number else { return }
            let results: [EntityResult]
            do {
                results = try answer.get().results.map { try EntityResult($0) }
                guard results.count == operations.count else {
                    throw ClientError(LocalEntityError.unexpectedReply)
                }
            } catch {
                link.underWay = nil
                return try refused(error, tx)
            }
            // This runs last: entities that are reread in the meantime must still wait for this
            // reply.
            defer { link.underWay = nil }
            try store(tx) { entities throws(LocalEntityError) in
                try entities.pushed(results, to: operations, at: core.environment.wallMs())
            }
        }
    }

    private func refused(_ error: any Error, _ tx: StoreTransaction) throws {
        held?.dropped()
        switch error as? ClientError {
        case .disconnected: return
        // The link handles timeouts; the batch is sent again under the same operation ids.
        case .timedOut: return
        case .refused(_, _, let pause?): return try core.rest(forMs: pause.wholeMilliseconds, tx)
        default: break
        }
        link.isRefused = true
        core.publish(.refused("entities: \(error)"))
    }

    private func store(
        _ tx: StoreTransaction,
        _ body: (inout LocalEntities) throws(LocalEntityError) -> [EntityRowChange]
    ) throws {
        try change(tx) { entities throws(LocalEntityError) in ((), try body(&entities)) }
    }

    // MARK: Pulling

    private func pull(_ tx: StoreTransaction) throws {
        guard let mark: Int64 = try tx.value(of: .entitiesMark) else { return }
        pull(behind: link.next ?? Mark(time: mark, last: 0))
    }

    private func pull(behind mark: Mark) {
        link.underWay = .pull
        let asked = core.life.number
        core.call(ObjPullRequest(since: mark.time, after: mark.last)) { [self] answer, tx in
            guard asked == core.life.number else { return }
            link.underWay = nil
            do {
                let reply = try answer.get()
                link.hasPulled = true
                let page = try reply.objects.map { try Entity($0) }
                try take(page, of: reply, tx)
                // Wakes callers that wait for other devices' changes, even after an empty page.
                if isInSync { tx.changes.entities = true }
            } catch let error as ClientError {
                link.wantsPull = error == .timedOut
                try refused(error, tx)
            } catch let error as PayloadError {
                try refused(error, tx)
            }
        }
    }

    private func take(
        _ page: [Entity],
        of reply: ObjPullReply,
        _ tx: StoreTransaction
    ) throws {
        let isMore = reply.more == true
        let next = Mark(time: reply.time, last: reply.last ?? 0)
        link.next = isMore ? next : nil
        if reply.resync == true { link.everything = [] }
        if var everything = link.everything {
            everything += page
            link.everything = isMore ? everything : nil
            if isMore { return pull(behind: next) }
            let types = Set(LocalEntities.listedTypes)
            // If an entity changed between two pages, the later copy wins.
            let copies = Dictionary(everything.map { ($0.id, $0) }) { $1 }.values
            try store(tx) {
                $0.pulledAll(copies.filter { !$0.isDeleted }, of: types)
                    + $0.pulled([], tombstones: copies.filter(\.isDeleted))
                    // A full pull omits elements of series, so it does not show which elements were
                    // deleted. `Client.elements` requests them again, range by range.
                    + $0.evictElements()
            }
            // The list may lack entities that were pushed during the pull. They are now marked as
            // deleted, and the next pull restores them.
            link.wantsPull = true
        } else {
            try store(tx) {
                $0.pulled(
                    page.filter { !$0.isDeleted },
                    tombstones: page.filter(\.isDeleted)
                )
            }
            if isMore { link.wantsPull = true } else { try prune(tx) }
        }
        // A page may end in the middle of a millisecond. After a restart, that millisecond is
        // requested again.
        try tx.set(.entitiesMark, isMore ? max(0, next.time - 1) : next.time)
    }

    private func prune(_ tx: StoreTransaction) throws {
        let time = core.environment.wallMs() - Self.keptMs
        try store(tx) { $0.prune(before: time) }
    }

    /// The retention of tombstones and replaced ids, in milliseconds.
    private static let keptMs: Int64 = 30 * 86_400_000

    /// Applies a change by another device of the account.
    func told(_ push: NotifObj, _ tx: StoreTransaction) throws {
        guard try tx.value(of: .entitiesMark) as Int64? != nil else { return }
        let told = try push.objects.map { try Entity($0) }
        try store(tx) {
            $0.pulled(told.filter { !$0.isDeleted }, tombstones: told.filter(\.isDeleted))
        }
    }

    /// Stores elements of a series that the server returned for a range.
    func keep(_ elements: [Entity], _ tx: StoreTransaction) throws {
        try store(tx) { $0.pulled(elements) }
    }
}

extension LocalEntities {
    /// The names of all types, as stored beside the mark.
    static var knownTypes: String {
        EntitySchema.standard(.standard).types.map(\.rawValue).sorted().joined(separator: " ")
    }

    /// The types whose entities the reply to a full pull contains.
    fileprivate static var listedTypes: [EntityType] {
        EntitySchema.standard(.standard).types.filter {
            EntitySchema.standard(.standard)[$0]?.policy != .append
        }
    }
}

extension ClientError {
    init(_ error: LocalEntityError) {
        self =
            switch error {
            case .refused(let refusal):
                .refused(
                    code: "\(refusal.error.name)",
                    text: "\(refusal.error.name) at \(refusal.path)"
                )
            case .notFound: .invalid(reason: "there is no such entity")
            case .notDeleted: .invalid(reason: "the entity is not deleted here")
            case .noConflict: .invalid(reason: "the entity is in no conflict")
            case .choiceNotOffered: .invalid(reason: "the conflict does not offer this choice")
            case .parentNeeded: .invalid(reason: "name another parent, for the old one is gone")
            case .unexpectedReply: .unreadable(reason: "results for operations that were not sent")
            }
    }
}
