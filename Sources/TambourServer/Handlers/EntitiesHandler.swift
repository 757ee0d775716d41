import Crypto
import TambourProtocol
import TambourStore

/// Family `entities`: objects that several devices of a user edit offline. Wire:
/// protocol-spec/opcodes/entities.yaml
struct EntitiesHandler: Sendable {
    private let limits: Limits
    private let schema: EntitySchema
    private let rules: ObjectRules
    private let restored: RestoredMarks
    private let clock: CommitClock

    init(limits: Limits, restored: RestoredMarks, clock: CommitClock) {
        self.limits = limits
        self.restored = restored
        self.clock = clock
        schema = .standard(limits)
        rules = ObjectRules(schema: schema)
    }

    // MARK: OBJ_PULL

    /// Answers `OBJ_PULL` (1040): what changed after a mark, or a range of a series.
    ///
    /// - Parameter time: safe time read before the snapshot opened; becomes the next mark.
    /// - Throws: `proto.payload` for a negative mark, a count below 1, and a series that is none.
    /// - Note: A query.
    func objPull(
        _ request: ObjPullRequest,
        from caller: Caller,
        time: Int64,
        in snapshot: ReadTransaction
    ) throws -> ObjPullReply {
        guard request.count ?? 1 > 0 else { throw RequestError.protoPayload("/count: below 1") }
        guard request.since >= 0 else { throw RequestError.protoPayload("/since: below 0") }
        let count = Int(
            min(request.count ?? Int64(limits.objectsPageSize), Int64(limits.maxObjectsPage))
        )
        if let range = request.series {
            return try elements(range, after: request.after, count, time, caller, snapshot)
        }
        let isEverything = request.since == 0 || restored.contains(request.since, at: time)
        let isFirst = request.after == 0
        let since = isEverything && isFirst ? 0 : min(request.since, time)
        let found = try snapshot.objects(
            changedAfter: ObjectPlace(position: since, id: isFirst ? .max : request.after),
            // What goes while the pages are read was in one of them.
            isLive: isEverything && isFirst,
            of: caller.userID,
            limit: count,
            room: limits.maxReplyBytes
        )
        var page = found.objects[...]
        var reply = ObjPullReply(
            resync: isEverything && isFirst ? true : nil,
            time: time
        )
        if found.isMore {
            // Of the clock's last moment something may still appear between what is read already.
            let settled = page.prefix { $0.place.position <= time }
            if !settled.isEmpty {
                page = settled
            } else if let last = page.last {
                // While the clock stands, that moment would not end before the wall has passed it.
                clock.settle(through: last.place.position)
            }
            reply.more = true
            reply.time = settled.last?.place.position ?? since
            reply.last = settled.last?.place.id
        }
        reply.objects = page.map { ObjectCopy($0.object.copy) }
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
        // A later client may know more types.
        guard let kind = schema[type] else { return ObjPullReply(time: time) }
        guard kind.policy == .append else {
            throw RequestError.protoPayload("/series/type: not a series")
        }
        let found = try snapshot.elements(
            of: type,
            below: range.parent,
            after: ObjectPlace(position: range.from, id: id),
            upTo: range.to ?? .max,
            of: caller.userID,
            limit: count,
            room: limits.maxReplyBytes
        )
        var reply = ObjPullReply(
            objects: found.objects.map { ObjectCopy($0.object.copy) },
            time: time
        )
        if found.isMore, let last = found.objects.last {
            reply.more = true
            reply.time = last.place.position
            reply.last = last.place.id
        }
        return reply
    }

    // MARK: OBJ_PUSH

    /// Answers `OBJ_PUSH` (1041): changes of a device, each decided for itself.
    ///
    /// - Throws: `proto.payload` for an id or a value that is none; nothing is applied then.
    /// - Note: A command.
    func objPush(
        _ request: ObjPushRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ObjPushReply {
        var operations: [EntityOperation] = []
        for (index, operation) in request.ops.enumerated() {
            do throws(PayloadError) {
                operations.append(try EntityOperation(operation, limits))
            } catch {
                let error = error.within(index: index).within("ops")
                throw RequestError.protoPayload(error.description)
            }
        }
        var push = Push(
            caller: caller,
            clientNow: request.clientNow,
            counts: try tx.reader.objectCounts(of: caller.userID)
        )
        let before = push.counts
        var batch = ObjectBatch()
        var results: [ObjectResult] = []
        var room = limits.maxReplyBytes
        for operation in operations {
            let decision: ObjectDecision
            switch batch.admit(operation) {
            case .settled(let settled): decision = settled
            case .tried where room < 0:
                // Copies of what it meets would not fit the reply; the device sends it again.
                decision = .skipped(because: operation.opID)
            case .tried(let resolved):
                decision = try decide(resolved, sentAs: operation, in: &push, tx)
            }
            batch.record(decision, of: operation)
            room -= decision.result.wireSizeEstimate
            results.append(ObjectResult(decision.result))
        }
        if push.counts != before { try tx.setObjectCounts(push.counts, of: caller.userID) }
        if push.hasStored {
            try tx.forgetObjectReplies(
                before: tx.ct - Int64(limits.objectRepliesDays) * 86_400_000,
                of: caller.userID
            )
        }
        if !push.changed.isEmpty { tell(push.changed, of: caller, tx) }
        return ObjPushReply(results: results)
    }

    /// What a push has come to so far.
    private struct Push {
        let caller: Caller
        let clientNow: Int64
        var counts: ObjectCounts
        var changed: [Entity] = []
        /// Whether a reply was noted.
        var hasStored = false
    }

    /// - Parameter sent: the operation with the local ids it was sent with: by them it is known again.
    private func decide(
        _ operation: EntityOperation,
        sentAs sent: EntityOperation,
        in push: inout Push,
        _ tx: WriteTransaction
    ) throws -> ObjectDecision {
        let caller = push.caller
        let digest = Self.digest(of: sent)
        var known: EntityResult?
        if let reply = try tx.reader.objectReply(
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
            known = try tx.reader.object(
                createdBy: operation.opID,
                on: caller.deviceID,
                of: caller.userID
            )?.creationResult
        }
        let decision = rules.decide(
            operation,
            in: try situation(of: operation, known: known, in: push, tx)
        )
        if case .apply(let object, _) = decision { try apply(object, in: &push, tx) }
        // A conflict has changed nothing: deciding it again is as good, and its copies are large.
        if known == nil, !decision.isConflict {
            push.hasStored = true
            var writer = MessagePackWriter()
            ObjectResult(decision.result.first).write(to: &writer)
            try tx.putObjectReply(
                ObjectReply(digest: digest, result: Bytes(writer.finish())),
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
    ) throws -> ObjectRules.Situation {
        let (user, reader) = (push.caller.userID, tx.reader)
        var current: StoredObject?
        if case .server(let id) = operation.id { current = try reader.object(id, of: user) }
        let parent = current?.entity.parent ?? operation.parent
        var parentState = ObjectRules.ParentState.none
        if let parent {
            let object = try reader.object(parent.number, of: user)
            parentState =
                object.flatMap { $0.entity.isDeleted ? nil : .live($0.entity.type) } ?? .gone
        }
        let kind = schema[operation.type]
        var twin: StoredObject?
        if let kind, let key = kind.key(of: current?.entity.fields ?? operation.fields) {
            twin = try reader.object(
                below: parent?.number,
                withKey: key,
                but: current?.entity.id.number,
                of: user
            )
        }
        let isElement = kind?.policy == .append
        return ObjectRules.Situation(
            current: current,
            parent: parentState,
            twin: twin?.entity,
            hasRemainingChildren: try operation.kind == .delete
                && hasRemainingChildren(operation.id, push, tx),
            hasRoom: isElement
                ? push.counts.elements < Int64(limits.maxSeriesElements)
                : push.counts.live < Int64(limits.maxObjects),
            known: known,
            device: push.caller.deviceID.rawValue,
            newID: max(tx.ct << 16, push.counts.lastID + 1),
            now: tx.ct,
            clientNow: push.clientNow
        )
    }

    private func hasRemainingChildren(
        _ id: EntityID,
        _ push: Push,
        _ tx: WriteTransaction
    ) throws -> Bool {
        try schema.remaining.contains {
            try tx.reader.hasObject(of: $0, below: id.number, of: push.caller.userID)
        }
    }

    /// Writes what was decided; what is deleted takes along what stands below it.
    private func apply(
        _ object: StoredObject,
        in push: inout Push,
        _ tx: WriteTransaction
    ) throws {
        let (id, user) = (object.entity.id.number, push.caller.userID)
        let isElement = schema[object.entity.type]?.policy == .append
        let before = try tx.reader.object(id, of: user)
        let wasLive = before.map { !$0.entity.isDeleted } ?? false
        let change: Int64 = (object.entity.isDeleted ? 0 : 1) - (wasLive ? 1 : 0)
        push.counts.lastID = max(push.counts.lastID, id)
        if isElement { push.counts.elements += change } else { push.counts.live += change }
        try write(object, of: user, tx)
        push.changed.append(object.copy)
        if object.entity.isDeleted {
            try cascade(object.stamp, below: id, object.entity.type, in: &push, tx)
        }
    }

    /// Deletes what stands below an object, `ObjectRules.cascade` for all of one parent at once:
    /// they may be as many as a user has, and nothing has to be known of what they hold.
    private func cascade(
        _ stamp: StoredObject.Stamp,
        below id: Int64,
        _ type: EntityType,
        in push: inout Push,
        _ tx: WriteTransaction
    ) throws {
        let kinds = schema.kinds(below: type)
        if kinds.contains(where: { $0.policy == .append }) {
            push.counts.elements -= Int64(
                try tx.deleteElements(below: id, of: push.caller.userID)
            )
        }
        for kind in kinds where kind.policy != .append {
            let tombstones = try tx.deleteObjects(
                of: kind.type,
                below: id,
                by: stamp,
                keepsFields: kind.deletion == .updateWins,
                of: push.caller.userID
            )
            push.counts.live -= Int64(tombstones.count)
            push.changed += tombstones
            guard schema.isParent(kind.type) else { continue }
            for tombstone in tombstones {
                try cascade(stamp, below: tombstone.id.number, kind.type, in: &push, tx)
            }
        }
    }

    private func write(
        _ object: StoredObject,
        of user: UserID,
        _ tx: WriteTransaction
    ) throws {
        let kind = schema[object.entity.type]
        var position: Int64?
        if kind?.policy == .append, let name = kind?.position {
            position = 0
            if case .int(let value) = object.entity.fields[name] { position = value }
        }
        try tx.putObject(
            object,
            key: kind?.key(of: object.entity.fields),
            position: position,
            of: user
        )
    }

    private static func digest(of operation: EntityOperation) -> Bytes {
        var writer = MessagePackWriter()
        ObjectOperation(operation).write(to: &writer)
        return Bytes(Array(SHA256.hash(data: writer.finish())))
    }

    // MARK: NOTIF_OBJ

    /// In parts that a connection with little room left can still take.
    private func tell(_ entities: [Entity], of caller: Caller, _ tx: WriteTransaction) {
        let most = limits.maxOutboundPushBytes / 4
        var (part, bytes) = ([ObjectCopy](), 0)
        func emit() {
            let push = NotifObj(objects: part)
            tx.emit(.push(.notifObj(push), to: [caller.userID], except: caller.connectionID))
        }
        for entity in entities {
            if bytes + entity.wireSizeEstimate > most, !part.isEmpty {
                emit()
                (part, bytes) = ([], 0)
            }
            part.append(ObjectCopy(entity))
            bytes += entity.wireSizeEstimate
        }
        emit()
    }
}

extension EntitySchema.Kind {
    /// The natural key of an object with these fields; nil for a type without one.
    fileprivate func key(of fields: [String: FieldValue]) -> ObjectKey? {
        guard !naturalKey.isEmpty else { return nil }
        return ObjectKey(type, fields.filter { naturalKey.contains($0.key) && $0.value != .null })
    }
}

extension ObjectDecision {
    fileprivate var isConflict: Bool {
        if case .conflict = self { true } else { false }
    }
}

extension EntityResult {
    /// About how many bytes it takes on the wire, never fewer.
    fileprivate var wireSizeEstimate: Int {
        let copies: [Entity?] =
            switch first {
            case .applied(let applied): [applied.object, applied.loser]
            case .conflict(_, let server): [server]
            case .rejected, .skipped, .replayed: []
            }
        return copies.reduce(200) { $0 + ($1?.wireSizeEstimate ?? 0) }
    }
}
