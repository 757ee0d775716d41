import TambourClient
import TambourMessenger
import TambourProtocol

/// A simulated device: its entities, the database that follows their changes, and the pages and the
/// reply that are still in flight.
struct Device {
    let number: Int64
    private(set) var entities: LocalEntities
    private(set) var database: Database
    /// By how many milliseconds the device's clock is ahead of the server's clock.
    var skew: Int64
    private var cursor: Int64 = 0
    /// The server's reply to a batch while the reply is in flight; nil if no reply is in flight.
    private var reply: [EntityResult]?
    private var pages: [EntityServer.Page] = []
    private let schema: EntitySchema

    init(number: Int64, schema: EntitySchema, skew: Int64) {
        self.number = number
        self.schema = schema
        self.skew = skew
        let rows = EntityRows(counters: EntityCounters(firstOpID: number * 1_000_000))
        entities = LocalEntities(schema: schema, rows: rows)
        database = Database(counters: rows.counters)
    }

    mutating func perform(
        _ action: (inout LocalEntities) throws(LocalEntityError) -> [EntityRowChange]
    ) -> LocalEntityError? {
        do {
            database.commit(try action(&entities))
            return nil
        } catch {
            return error
        }
    }

    /// Sends a batch. The reply stays in flight. If the request is lost, there is no reply.
    ///
    /// - Returns: Whether there was anything to send.
    mutating func send(to server: inout EntityServer, isLost: Bool, now: Int64) -> Bool {
        let push = entities.nextPush()
        database.commit(push.rows)
        guard !push.operations.isEmpty else { return false }
        if !isLost {
            reply = server.push(
                push.operations,
                from: number,
                clientNow: now + skew,
                now: now
            )
        }
        return true
    }

    /// Simulates a network that delivers one batch twice.
    mutating func sendTwice(to server: inout EntityServer, now: Int64) throws {
        let push = entities.nextPush()
        database.commit(push.rows)
        guard !push.operations.isEmpty else { return }
        let first = server.push(push.operations, from: number, clientNow: now + skew, now: now)
        let entities = server.entities
        reply = server.push(push.operations, from: number, clientNow: now + skew, now: now + 1)
        guard reply?.map(\.first) == first.map(\.first), server.entities == entities else {
            throw Fault("the second delivery of a batch is not answered as the first")
        }
    }

    mutating func receiveReply(now: Int64) throws {
        guard let reply else { return }
        self.reply = nil
        database.commit(try entities.pushed(reply, at: now + skew))
    }

    mutating func drop() {
        reply = nil
        entities.dropped()
    }

    mutating func pull(from server: EntityServer, isHeld: Bool) {
        let page = server.pull(since: cursor)
        if isHeld { pages.append(page) } else { take(page) }
    }

    /// Receives one of the pages that are in flight. It may be outdated.
    mutating func receivePage(_ choice: Int) {
        guard !pages.isEmpty else { return }
        take(pages.remove(at: choice % pages.count))
    }

    mutating func pullAll(from server: EntityServer) {
        pages = []
        let types: Set<EntityType> = [.account, .profile, .note, .preference, .measurement]
        database.commit(entities.pulledAll(server.live, of: types))
        cursor = server.pull(since: 0).cursor
    }

    mutating func restart() {
        entities = LocalEntities(schema: schema, rows: database.rows)
        reply = nil
        pages = []
    }

    private mutating func take(_ page: EntityServer.Page) {
        database.commit(entities.pulled(page.entities, tombstones: page.tombstones))
        cursor = max(cursor, page.cursor)
    }
}

/// The tables of a device. Only row changes that the entities report can change them.
struct Database {
    private var entities: [EntityID: EntityRow] = [:]
    private var sent: [EntityID: LocalUpdate] = [:]
    private var open: [EntityID: LocalUpdate] = [:]
    private var aliases: [EntityID: EntityAlias] = [:]
    private var counters: EntityCounters

    init(counters: EntityCounters) { self.counters = counters }

    var rows: EntityRows {
        EntityRows(
            entities: entities.values.sorted { $0.id < $1.id },
            updates: sent.values.sorted { $0.id < $1.id } + open.values.sorted { $0.id < $1.id },
            aliases: aliases.values.sorted { $0.local < $1.local },
            counters: counters
        )
    }

    mutating func commit(_ changes: [EntityRowChange]) {
        for change in changes {
            switch change {
            case .putEntity(let row): entities[row.id] = row
            case .removeEntity(let id): entities[id] = nil
            case .putUpdate(let update) where update.slot == .sent: sent[update.id] = update
            case .putUpdate(let update): open[update.id] = update
            case .removeUpdate(let id, .sent): sent[id] = nil
            case .removeUpdate(let id, .open): open[id] = nil
            case .putAlias(let alias): aliases[alias.local] = alias
            case .removeAlias(let id): aliases[id] = nil
            case .putCounters(let counters): self.counters = counters
            }
        }
    }
}
