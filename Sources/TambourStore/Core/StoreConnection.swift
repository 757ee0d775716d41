package import TambourProtocol
package import TambourSQL

/// A database connection on which all statements of the messenger are prepared.
///
/// Only one thread at a time may use the connection. The engine owns a connection that writes; each
/// reader owns a connection that reads.
package final class StoreConnection {
    package let sql: any SQLConnection
    package let limits: Limits
    /// The number of rows that statements have counted or compared, but not returned.
    private var rowsCounted = 0
    let accounts: AccountStatements
    let sessions: SessionStatements
    let chats: ChatStatements
    let members: MemberStatements
    let messages: MessageStatements
    let contacts: ContactStatements
    let settings: SettingStatements
    let reactions: ReactionStatements
    let polls: PollStatements
    let drafts: DraftStatements
    let delayed: DelayedStatements
    let folders: FolderStatements
    let entities: EntityStatements
    let entityPurges: EntityPurgeStatements
    let chatPurges: ChatPurgeStatements
    let search: SearchStatements
    let attached: AttachedStatements
    let people: PeopleStatements
    let meetings: MeetingStatements
    let introductions: IntroductionStatements
    let comments: CommentStatements
    let publicChats: PublicChatStatements
    let joinRequests: JoinRequestStatements
    let reports: ReportStatements
    let meta: MetaStatements
    let passwords: PasswordStatements
    let tracks: TrackStatements
    let invitations: InvitationStatements
    let erasure: ErasureStatements
    let audit: AuditStatements
    let announcements: AnnouncementStatements

    /// Prepares all statements. The schema must exist; see `migrate`.
    package init(_ sql: any SQLConnection, limits: Limits) throws {
        self.sql = sql
        self.limits = limits
        accounts = try AccountStatements(sql)
        sessions = try SessionStatements(sql)
        chats = try ChatStatements(sql)
        members = try MemberStatements(sql)
        messages = try MessageStatements(sql)
        contacts = try ContactStatements(sql)
        settings = try SettingStatements(sql)
        reactions = try ReactionStatements(sql)
        polls = try PollStatements(sql)
        drafts = try DraftStatements(sql)
        delayed = try DelayedStatements(sql)
        folders = try FolderStatements(sql)
        entities = try EntityStatements(sql)
        entityPurges = try EntityPurgeStatements(sql)
        chatPurges = try ChatPurgeStatements(sql)
        search = try SearchStatements(sql)
        attached = try AttachedStatements(sql)
        people = try PeopleStatements(sql)
        meetings = try MeetingStatements(sql)
        introductions = try IntroductionStatements(sql)
        comments = try CommentStatements(sql)
        publicChats = try PublicChatStatements(sql)
        joinRequests = try JoinRequestStatements(sql)
        reports = try ReportStatements(sql)
        meta = try MetaStatements(sql)
        passwords = try PasswordStatements(sql)
        tracks = try TrackStatements(sql)
        invitations = try InvitationStatements(sql)
        erasure = try ErasureStatements(sql)
        audit = try AuditStatements(sql)
        announcements = try AnnouncementStatements(sql)
    }

    /// Migrates the schema of `sql` to the current version.
    ///
    /// - Parameter willApply: Called before each missing migration.
    /// - Returns: The versions of the applied migrations.
    @discardableResult
    package static func migrate(
        _ sql: any SQLConnection,
        willApply: (Migration) -> Void = { _ in }
    ) throws -> [Int] {
        try MigrationRunner.migrate(sql, with: Schema.migrations, willApply: willApply)
    }

    // MARK: - Restored backups

    /// Returns the latest login mark (commit clock) that the server may have issued before a backup
    /// was restored. Returns 0 if no backup was ever restored. A client with this mark or an older
    /// mark may have data that the store has lost, including pushes that arrived after the mark.
    package func restored() throws -> Int64 {
        try meta.value(Self.restoredKey) ?? 0
    }

    /// Returns the latest login mark (commit clock) from the time before the store recorded when
    /// messages changed. Returns 0 if the store has always recorded this.
    package func changesUnknown() throws -> Int64 {
        try meta.value(Self.changesUnknownKey) ?? 0
    }

    /// Records that the store is restored from a backup at `now` (Unix milliseconds).
    package func noteRestore(at now: Int64) throws {
        // Login marks that were issued before the restore may be ahead of the wall clock by the
        // length of a lease. If the wall clock was set back, they may reach the end of the backup's
        // lease. They may even be a little later, if `settle` has moved the clock after the backup.
        // New login marks start above all these marks.
        let lease = try meta.value(Self.leaseKey) ?? 0
        let end = max(try restored(), max(now, lease) + Int64(limits.commitLeaseMs))
        try sql.transaction(.immediate) {
            try meta.set(Self.restoredKey, end)
            try meta.set(Self.leaseKey, max(end + 1, lease))
        }
    }

    /// The key in `meta` for the end of the clock's lease.
    static let leaseKey = "ct_lease"
    private static let restoredKey = "restored"
    private static let changesUnknownKey = "changes_unknown"

    /// The number of rows that statements have returned so far, plus a fraction of the rows that
    /// were only counted or compared.
    package var rowsRead: Int { sql.rowsStepped + rowsCounted / Self.countedRowsPerRow }

    /// The number of rows that the database can count in the time in which it returns one row.
    private static let countedRowsPerRow = 8

    func noteCounted(_ rows: Int) { rowsCounted += rows }

    /// Runs `body`, which reads from one snapshot.
    package func read<Result>(_ body: (ReadTransaction) throws -> Result) throws -> Result {
        try sql.begin(.snapshot)
        defer { sql.rollback() }
        return try body(ReadTransaction(self))
    }
}

struct MetaStatements {
    let get: any SQLStatement
    let put: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        get = try sql.prepare("SELECT v FROM meta WHERE k = $1")
        put = try sql.prepare(
            """
            INSERT INTO meta (k, v) VALUES ($1, $2)
            ON CONFLICT (k) DO UPDATE SET v = excluded.v
            """
        )
    }

    func value(_ key: String) throws -> Int64? {
        try get.oneInt { $0.bindText(1, key) }
    }

    func set(_ key: String, _ value: Int64) throws {
        try put.run {
            $0.bindText(1, key)
            $0.bind(2, value)
        }
    }
}

/// The functions that read the store. A reader uses them on a snapshot; the engine uses them inside
/// its transaction, after a flush.
package struct ReadTransaction {
    let store: StoreConnection
    private let rowsBefore: Int

    init(_ store: StoreConnection) {
        self.store = store
        rowsBefore = store.rowsRead
    }

    package var limits: Limits { store.limits }

    /// The number of rows read so far.
    package var rowsRead: Int { store.rowsRead - rowsBefore }

    /// The value of `rowsRead` at which a page that starts now must end. This is the end of the
    /// current step, or half a step from now, whichever is later.
    package var pageEnd: Int {
        max(limits.rowsPerReadStep, rowsRead + limits.rowsPerReadStep / 2)
    }
}
