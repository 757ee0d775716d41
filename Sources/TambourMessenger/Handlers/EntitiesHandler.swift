import Crypto
import TambourEvents
import TambourProtocol
import TambourStore

/// Family `entities`: entities that several devices of a user edit offline. Wire:
/// protocol-spec/opcodes/entities.yaml
struct EntitiesHandler: Sendable {
    private let limits: Limits
    private let schema: EntitySchema
    private let rules: EntityRules
    private let restored: RestoredMarks
    private let clock: CommitClock
    private let purger: EntityPurger

    init(limits: Limits, restored: RestoredMarks, clock: CommitClock) {
        self.limits = limits
        self.restored = restored
        self.clock = clock
        schema = .standard(limits)
        rules = EntityRules(schema: schema)
        purger = EntityPurger(limits: limits)
    }

    // MARK: OBJ_PULL

    /// Answers `OBJ_PULL` (1040): returns the entities that changed after a cursor, or a range of
    /// elements from a series.
    ///
    /// - Throws: `proto.payload` for a negative cursor, a count below 1, and a type that is not a
    ///   series.
    /// - Note: A query.
    func objPull(
        _ request: ObjPullRequest,
        from call: QueryCall,
        in snapshot: ReadTransaction
    ) throws -> ObjPullReply {
        let (caller, time) = (call.caller, call.time)
        guard request.count ?? 1 > 0 else { throw RequestError.protoPayload("/count: below 1") }
        guard request.since >= 0 else { throw RequestError.protoPayload("/since: below 0") }
        let count = Int(
            clamping: min(
                request.count ?? Int64(limits.objectsPageSize),
                Int64(limits.maxObjectsPage)
            )
        )
        if let range = request.series {
            return try elements(range, after: request.after, count, time, caller, snapshot)
        }
        let isEverything = request.since == 0 || restored.contains(request.since, at: time)
        let isFirst = request.after == 0
        let since = isEverything && isFirst ? 0 : min(request.since, time)
        let found = try snapshot.entities(
            changedAfter: EntityPlace(position: since, id: isFirst ? .max : request.after),
            // Only the first page skips tombstones. Later pages must contain them, because a
            // deleted entity may be in an earlier page.
            isLive: isEverything && isFirst,
            of: caller.userID,
            limit: count,
            room: caller.replyBudget
        )
        var page = found.entities[...]
        var reply = ObjPullReply(
            resync: isEverything && isFirst ? true : nil,
            time: time
        )
        if found.isMore {
            // After `time`, more entities may still appear between the entities read here. Return
            // only entities up to `time`.
            let settled = page.prefix { $0.place.position <= time }
            if !settled.isEmpty {
                page = settled
            } else if let last = page.last {
                // Advance the commit clock past the last entity. On an idle server, the client
                // would otherwise have to wait until the wall clock passes the entity's time.
                clock.settle(through: last.place.position)
            }
            reply.more = true
            reply.time = settled.last?.place.position ?? since
            reply.last = settled.last?.place.id
        }
        // Show descendants of a deleted entity as deleted, even before the purge reaches them.
        let mayBeGone = try snapshot.hasEntityPurges(of: caller.userID)
        reply.objects = try page.map { stored, _ in
            let copy = stored.copy
            guard mayBeGone, !copy.isDeleted,
                let purge = try snapshot.purge(of: caller.userID, at: copy.parent?.number)
            else { return ObjectCopy(copy) }
            return ObjectCopy(copy.tombstone(of: purge))
        }
        return reply
    }

    private func elements(
        _ range: ObjectRange,
        after id: Int64,
        _ count: Int,
        _ time: Int64,
        _ caller: Caller,
        _ snapshot: ReadTransaction
    ) throws -> ObjPullReply {
        let type = EntityType(range.type)
        // An unknown type is not an error, because a newer client may know more types.
        guard let kind = schema[type] else { return ObjPullReply(time: time) }
        guard kind.policy == .append else {
            throw RequestError.protoPayload("/series/type: not a series")
        }
        if try snapshot.hasEntityPurges(of: caller.userID),
            try snapshot.purge(of: caller.userID, at: range.parent) != nil
        {
            return ObjPullReply(time: time)
        }
        let found = try snapshot.elements(
            of: type,
            below: range.parent,
            after: EntityPlace(position: range.from, id: id),
            upTo: range.to ?? .max,
            of: caller.userID,
            limit: count,
            room: caller.replyBudget
        )
        var reply = ObjPullReply(
            objects: found.entities.map { ObjectCopy($0.stored.copy) },
            time: time
        )
        if found.isMore, let last = found.entities.last {
            reply.more = true
            reply.time = last.place.position
            reply.last = last.place.id
        }
        return reply
    }

    // MARK: OBJ_PUSH

    /// Answers `OBJ_PUSH` (1041): applies a device's changes. Each change is accepted or refused
    /// separately.
    ///
    /// - Throws: `proto.payload` for an invalid id or value; in this case no change is applied.
    /// - Note: A command in steps of at most `objectOperationsPerStep` operations.
    func objPush(
        _ request: ObjPushRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, ObjPushReply> {
        let batch = Batch(
            clientNow: request.clientNow,
            unread: request.ops.enumerated().map { ($0, $1) }[...],
            // Reserve room for one result for each operation. Even an operation that is skipped for
            // lack of room has a result.
            room: caller.replyBudget - request.ops.count * EntityResult.bareWireSize
        )
        return try read(batch, from: caller, in: tx)
    }

    /// The state of one OBJ_PUSH between its steps.
    private struct Batch {
        let clientNow: Int64
        var unread: ArraySlice<(index: Int, operation: ObjectOperation)>
        var waiting: ArraySlice<(operation: EntityOperation, bytes: Int)> = []
        /// The number of bytes that are left in the reply for copies of entities.
        var room: Int
        var order = EntityBatch()
        var results: [ObjectResult] = []
    }

    /// Decodes the fields of all operations. Only then does the handler try the first operation.
    private func read(
        _ batch: Batch,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, ObjPushReply> {
        var batch = batch
        let part = batch.unread.prefix(
            stepLength(of: batch.unread.lazy.map(\.operation.fieldBytes))
        )
        for (index, operation) in part {
            do throws(PayloadError) {
                batch.waiting.append((try EntityOperation(operation, limits), operation.fieldBytes))
            } catch {
                let error = error.within(index: index).within("ops")
                throw RequestError.protoPayload(error.description)
            }
        }
        batch.unread = batch.unread.dropFirst(part.count)
        guard !batch.unread.isEmpty else { return try step(batch, from: caller, in: tx) }
        return .more { [batch] in try read(batch, from: caller, in: $0) }
    }

    /// Returns the number of operations that run in one transaction, at least one.
    private func stepLength(of bytes: some Sequence<Int>) -> Int {
        var left = Self.bytesPerStep
        return bytes.prefix(limits.objectOperationsPerStep).prefix { bytes in
            defer { left -= bytes }
            return left > 0
        }.count
    }

    /// The limit of field bytes in one transaction. The last operation of the transaction may
    /// exceed it.
    private static let bytesPerStep = 32_768

    private func step(
        _ batch: Batch,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, ObjPushReply> {
        var batch = batch
        let before = try tx.reader.entityCounts(of: caller.userID)
        var push = Push(
            caller: caller,
            clientNow: batch.clientNow,
            budget: limits.purgedRowsPerStep,
            changes: EntityChanges(counts: before)
        )
        let part = batch.waiting.prefix(stepLength(of: batch.waiting.lazy.map(\.bytes)))
        for (operation, _) in part {
            let decision: EntityDecision
            switch batch.order.admit(operation) {
            case .settled(let settled): decision = settled
            case .tried where batch.room < 0:
                // The reply has no room left for copies of conflicting entities. Skip the
                // operation, which the device then retries.
                decision = .skipped(because: operation.opID)
            case .tried(let resolved):
                decision = try decide(resolved, sentAs: operation, in: &push, tx)
            }
            batch.order.record(decision, of: operation)
            batch.room -= decision.result.copiesWireSize
            batch.results.append(ObjectResult(decision.result))
        }
        batch.waiting = batch.waiting.dropFirst(part.count)
        if push.changes.counts.replies > before.replies {
            let forgotten = try forgetReplies(push.changes.counts.replies, caller, tx)
            push.changes.counts.replies = max(0, push.changes.counts.replies - forgotten)
        }
        if push.changes.counts != before {
            try tx.setEntityCounts(push.changes.counts, of: caller.userID)
        }
        tx.tell(push.changes.entities, of: caller.userID, except: caller.connectionID, limits)
        guard !batch.waiting.isEmpty else {
            return .finished(ObjPushReply(results: batch.results))
        }
        return .more { [batch] in try step(batch, from: caller, in: $0) }
    }

    /// Deletes stored results that are too old. Also deletes the oldest results if there are too
    /// many. Each call deletes a limited number.
    ///
    /// - Returns: the number of deleted results.
    private func forgetReplies(
        _ count: Int64,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) throws -> Int64 {
        let step = limits.purgedRowsPerStep
        let old = try tx.forgetEntityReplies(
            before: tx.ct - Int64(limits.objectRepliesDays) * 86_400_000,
            limit: step,
            of: caller.userID
        )
        let surplus = max(0, count - Int64(old) - Int64(limits.maxObjectReplies))
        let oldest = try tx.forgetEntityReplies(
            before: .max,
            limit: Int(clamping: min(surplus, Int64(step))),
            of: caller.userID
        )
        return Int64(old + oldest)
    }

    /// The state of one OBJ_PUSH within one step.
    private struct Push {
        let caller: Caller
        let clientNow: Int64
        /// The number of descendant rows that this step may still delete. Later steps delete the
        /// rest.
        var budget: Int
        var changes: EntityChanges
    }

    /// - Parameter sent: the operation in the form that the client sent, with local ids. The digest
    ///   of this form identifies a retry.
    private func decide(
        _ operation: EntityOperation,
        sentAs sent: EntityOperation,
        in push: inout Push,
        _ tx: WriteTransaction
    ) throws -> EntityDecision {
        let caller = push.caller
        let digest = Self.digest(of: sent)
        var known: EntityResult?
        if let reply = try tx.reader.entityReply(
            to: operation.opID,
            of: caller.deviceID,
            of: caller.userID
        ) {
            guard reply.digest == digest else {
                return .rejected(.reusedOperation, at: "/opId")
            }
            let result = try MessagePackReader.readStored(reply.result) {
                (reader) throws(PayloadError) in try ObjectResult.read(from: &reader)
            }
            known = try EntityResult(result)
        } else if operation.kind == .create {
            known = try tx.reader.entity(
                createdBy: operation.opID,
                on: caller.deviceID,
                of: caller.userID
            )?.creationResult
        }
        let decision = rules.decide(
            operation,
            in: try situation(of: operation, known: known, in: push, tx)
        )
        // The store keeps only the results of applied operations. If any other operation is
        // retried, it gets a new decision.
        if case .apply(let stored, _) = decision {
            try apply(stored, in: &push, tx)
            push.changes.counts.replies += 1
            var writer = MessagePackWriter()
            ObjectResult(decision.result.first).write(to: &writer)
            try tx.putEntityReply(
                EntityReply(digest: digest, result: Bytes(writer.finish())),
                to: operation.opID,
                of: caller.deviceID,
                of: caller.userID
            )
        }
        return decision
    }

    private func situation(
        of operation: EntityOperation,
        known: EntityResult?,
        in push: Push,
        _ tx: WriteTransaction
    ) throws -> EntityRules.Situation {
        let (user, reader) = (push.caller.userID, tx.reader)
        var current: StoredEntity?
        if case .server(let id) = operation.id { current = try reader.entity(id, of: user) }
        let parent = current?.entity.parent ?? operation.parent
        var parentState = EntityRules.ParentState.none
        if let parent {
            let stored = try reader.entity(parent.number, of: user)
            parentState =
                stored.flatMap { $0.entity.isDeleted ? nil : .live($0.entity.type) } ?? .gone
            if try reader.hasEntityPurges(of: user),
                let purge = try reader.purge(of: user, at: parent.number)
            {
                parentState = .gone
                if let entity = current?.entity, !entity.isDeleted {
                    current?.entity = entity.tombstone(of: purge)
                }
            }
        }
        let kind = schema[operation.type]
        var twin: StoredEntity?
        if let kind, let key = kind.key(of: current?.entity.fields ?? operation.fields) {
            twin = try reader.entity(
                below: parent?.number,
                withKey: key,
                but: current?.entity.id.number,
                of: user
            )
        }
        let isElement = kind?.policy == .append
        return EntityRules.Situation(
            current: current,
            parent: parentState,
            twin: twin?.entity,
            hasRemainingChildren: try operation.kind == .delete
                && hasRemainingChildren(operation.id, push, tx),
            isPurging: try isPurging(current, of: user, reader),
            hasRoom: isElement
                ? push.changes.counts.elements < Int64(limits.maxSeriesElements)
                : push.changes.counts.live < Int64(limits.maxObjects),
            known: known,
            device: push.caller.deviceID.rawValue,
            newID: max(tx.ct << 16, push.changes.counts.lastID + 1),
            now: tx.ct,
            clientNow: push.clientNow
        )
    }

    private func isPurging(
        _ stored: StoredEntity?,
        of user: UserID,
        _ reader: ReadTransaction
    ) throws -> Bool {
        guard let stored, stored.entity.isDeleted, try reader.hasEntityPurges(of: user) else {
            return false
        }
        return try reader.purge(of: user, at: stored.entity.id.number) != nil
    }

    private func hasRemainingChildren(
        _ id: EntityID,
        _ push: Push,
        _ tx: WriteTransaction
    ) throws -> Bool {
        try schema.remaining.contains {
            try tx.reader.hasEntity(of: $0, below: id.number, of: push.caller.userID)
        }
    }

    /// Stores an entity. If the entity is deleted, also deletes its descendants.
    private func apply(
        _ stored: StoredEntity,
        in push: inout Push,
        _ tx: WriteTransaction
    ) throws {
        let (id, user) = (stored.entity.id.number, push.caller.userID)
        let isElement = schema[stored.entity.type]?.policy == .append
        let before = try tx.reader.entity(id, of: user)
        let wasLive = before.map { !$0.entity.isDeleted } ?? false
        let change: Int64 = (stored.entity.isDeleted ? 0 : 1) - (wasLive ? 1 : 0)
        push.changes.counts.lastID = max(push.changes.counts.lastID, id)
        if isElement {
            push.changes.counts.elements += change
        } else {
            push.changes.counts.live += change
        }
        try write(stored, of: user, tx)
        push.changes.entities.append(stored.copy)
        if stored.entity.isDeleted {
            let purge = EntityPurge(user: user, parent: id, stamp: stored.stamp)
            try purger.run(purge, stored.entity.type, &push.budget, into: &push.changes, tx)
        }
    }

    private func write(
        _ stored: StoredEntity,
        of user: UserID,
        _ tx: WriteTransaction
    ) throws {
        let kind = schema[stored.entity.type]
        var position: Int64?
        if kind?.policy == .append, let name = kind?.position {
            position = 0
            if case .int(let value) = stored.entity.fields[name] { position = value }
        }
        try tx.putEntity(
            stored,
            key: kind?.key(of: stored.entity.fields),
            position: position,
            of: user
        )
    }

    private static func digest(of operation: EntityOperation) -> Bytes {
        var writer = MessagePackWriter()
        ObjectOperation(operation).write(to: &writer)
        return Bytes(Array(SHA256.hash(data: writer.finish())))
    }
}

extension ObjectOperation {
    /// The approximate size of the fields in bytes.
    fileprivate var fieldBytes: Int {
        fields?.pairs.reduce(0) { $0 + $1.0.bytes.count + $1.1.bytes.count } ?? 0
    }
}

extension EntitySchema.Kind {
    /// Returns the natural key of an entity with these fields; nil for a type without a natural
    /// key.
    fileprivate func key(of fields: [String: FieldValue]) -> EntityKey? {
        guard !naturalKey.isEmpty else { return nil }
        return EntityKey(type, fields.filter { naturalKey.contains($0.key) && $0.value != .null })
    }
}

extension EntityResult {
    /// An upper bound for the wire size of a result without its entities, in bytes.
    fileprivate static let bareWireSize = 200

    /// An upper bound for the wire size of the entities in the result, in bytes.
    fileprivate var copiesWireSize: Int {
        let copies: [Entity?] =
            switch first {
            case .applied(let applied): [applied.entity, applied.loser]
            case .conflict(_, let server): [server]
            case .rejected, .skipped, .replayed: []
            }
        return copies.reduce(0) { $0 + ($1?.wireSizeEstimate ?? 0) }
    }
}
