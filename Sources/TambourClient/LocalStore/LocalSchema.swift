import Foundation
import GRDB
import TambourProtocol

/// The tables of an account's file. Migrations are append-only.
enum LocalSchema {
    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: first) }
        migrator.registerMigration("entities") { try $0.execute(sql: entities) }
        migrator.registerMigration("chat settings") { try $0.execute(sql: chatSettings) }
        migrator.registerMigration("chat refresh") { try $0.execute(sql: chatRefresh) }
        migrator.registerMigration("others") { try $0.execute(sql: others) }
        migrator.registerMigration("threads") { db in
            try db.execute(sql: threads)
            try noteAnswers(db)
        }
        migrator.registerMigration("saved drafts") { try $0.execute(sql: savedDrafts) }
        migrator.registerMigration("scheduled messages") { db in
            try db.execute(sql: scheduled)
            try noteScheduled(db)
        }
        migrator.registerMigration("folders") { try $0.execute(sql: folders) }
        migrator.registerMigration("comments") { try $0.execute(sql: comments) }
        migrator.registerMigration("server schemes") { try $0.execute(sql: serverSchemes) }
        return migrator
    }()

    /// Adds a scheme to the stored address. Earlier versions had no TLS and stored `HOST:PORT`. An
    /// address without a scheme may now mean TLS.
    private static let serverSchemes = """
        UPDATE setting SET value = 'tcp://' || value
        WHERE name = 'server' AND instr(value, '://') = 0;
        """

    /// Adds the column `replyTo`: the id of the message of the same chat that a message answers.
    private static let threads = """
        ALTER TABLE message ADD COLUMN replyTo INTEGER;
        CREATE INDEX message_by_reply ON message (chat, replyTo) WHERE replyTo IS NOT NULL;
        """

    /// Fills the column `replyTo` from the stored messages.
    private static func noteAnswers(_ db: Database) throws {
        // A byte search preselects the messages to decode.
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT row, chat, data FROM message
                WHERE instr(data, CAST('REPLY' AS BLOB)) > 0
                """
        )
        var answers: [(row: Int64, answered: MessageID)] = []
        while let row = try rows.next() {
            let message = Message(stored: row["data"])
            if let answered = message?.answered(in: ChatID(row["chat"])) {
                answers.append((row["row"], answered))
            }
        }
        for (row, answered) in answers {
            try db.execute(
                sql: "UPDATE message SET replyTo = ? WHERE row = ?",
                arguments: [answered.rawValue, row]
            )
        }
    }

    /// Scheduled messages. They are not part of the history.
    private static let scheduled = """
        CREATE TABLE scheduled (
          chat INTEGER NOT NULL,
          id INTEGER NOT NULL,
          time INTEGER NOT NULL,
          data BLOB NOT NULL,
          PRIMARY KEY (chat, id)
        ) WITHOUT ROWID;
        -- When the list of a chat changed, up to when its changes are stored, and when a message of
        -- the list last could not be sent.
        CREATE TABLE scheduled_list (
          chat INTEGER PRIMARY KEY,
          changed INTEGER NOT NULL,
          held INTEGER NOT NULL,
          failed INTEGER NOT NULL
        );
        """

    /// Adds a stale list of scheduled messages for each stored chat whose description mentions a
    /// change of the list.
    private static func noteScheduled(_ db: Database) throws {
        for row in try Row.fetchAll(db, sql: "SELECT id, data FROM chat") {
            guard let chat = Chat(stored: row["data"]), chat.lastDelayedUpdateTime > 0 else {
                continue
            }
            try db.execute(
                sql: "INSERT INTO scheduled_list VALUES (?, ?, 0, ?)",
                arguments: [
                    chat.id.rawValue, chat.lastDelayedUpdateTime, chat.lastFireDelayedErrorTime,
                ]
            )
        }
    }

    /// The folders as the server last sent them, in their order. Queued changes are not applied.
    private static let folders = """
        CREATE TABLE folder (
          id TEXT PRIMARY KEY,
          place INTEGER NOT NULL,
          data BLOB NOT NULL
        ) WITHOUT ROWID;
        """

    /// The server's draft. It is separate from the shown draft, which this device may have changed
    /// since.
    private static let savedDrafts = """
        -- Drafts as the server has them. `isOwn`: it was shown here or came from here, so that it goes with what
        -- takes its place.
        CREATE TABLE draft_saved (
          chat INTEGER PRIMARY KEY,
          text TEXT NOT NULL,
          replyTo INTEGER,
          time INTEGER NOT NULL,
          isOwn INTEGER NOT NULL
        );
        INSERT INTO draft_saved SELECT chat, text, replyTo, time, 1 FROM draft WHERE time > 0;
        ALTER TABLE draft DROP COLUMN time;
        -- What was sent to be saved and not answered: the server may have it.
        CREATE TABLE draft_sent (chat INTEGER NOT NULL, text TEXT NOT NULL, replyTo INTEGER);
        """

    /// The comments on a post are messages of a chat that has the id of the post.
    private static let comments = """
        -- `count` is the server's, NULL until it was asked. `newest` is the last comment of the newest page or of a
        -- later push. `opened` is the revision since which comments are pushed; 0 while they are not.
        CREATE TABLE comment_thread (
          post INTEGER PRIMARY KEY,
          chat INTEGER NOT NULL,
          count INTEGER,
          newest INTEGER,
          opened INTEGER NOT NULL DEFAULT 0,
          generation INTEGER NOT NULL DEFAULT 0
        );
        CREATE INDEX comment_thread_by_chat ON comment_thread (chat, post);
        """

    /// Settings have their own table, because they may arrive before their chats.
    private static let chatSettings = """
        CREATE TABLE chat_setting (
          chat INTEGER PRIMARY KEY,
          mutedUntil INTEGER,
          favourite INTEGER
        );
        INSERT INTO chat_setting SELECT id, mutedUntil, favourite FROM chat;
        """

    /// Chats whose stored data may be stale. A login may omit these chats, so the client requests
    /// each of them until a reply arrives.
    private static let chatRefresh = """
        CREATE TABLE chat_refresh (chat INTEGER PRIMARY KEY);
        """

    /// Requests from other processes to the process that owns the connection.
    private static let others = """
        -- Where somebody looks; `place` is a `SharedLook`. The connected process takes it off.
        CREATE TABLE look (
          owner TEXT NOT NULL,
          chat INTEGER NOT NULL,
          place BLOB NOT NULL,
          PRIMARY KEY (owner, chat)
        ) WITHOUT ROWID;

        -- A request, and what came of it: `reply` as it travels, or `failure`, an `ErrandFailure`.
        -- `sentBy` is the process that has sent it; who asked takes it off. No id comes twice: an
        -- answer may come when nobody waits for it any more.
        CREATE TABLE errand (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          opcode INTEGER NOT NULL,
          payload BLOB NOT NULL,
          askedAtHere INTEGER NOT NULL,
          sentBy TEXT,
          reply BLOB,
          failure BLOB
        );
        """

    /// The first tables. Columns of times hold Unix milliseconds of the server's clock; columns
    /// whose name ends with `Here` use this device's clock. Columns named `data` hold the object in
    /// wire format.
    private static let first = """
        CREATE TABLE setting (
          name TEXT PRIMARY KEY,
          value BLOB NOT NULL
        ) WITHOUT ROWID;

        -- What the marks of the next login promise but the store does not hold yet.
        CREATE TABLE sync_range (
          kind TEXT NOT NULL,
          since INTEGER NOT NULL,
          upTo INTEGER NOT NULL,
          PRIMARY KEY (kind, since)
        ) WITHOUT ROWID;

        CREATE TABLE person (
          id INTEGER PRIMARY KEY,
          name TEXT NOT NULL,
          isContact INTEGER NOT NULL,
          isStale INTEGER NOT NULL DEFAULT 0,
          updateTime INTEGER NOT NULL,
          seen INTEGER,
          isOnline INTEGER NOT NULL DEFAULT 0,
          data BLOB NOT NULL
        );

        CREATE TABLE chat (
          id INTEGER PRIMARY KEY,
          type TEXT NOT NULL,
          status TEXT NOT NULL,
          title TEXT,
          lastEventTime INTEGER NOT NULL,
          lastMessage INTEGER,
          readMark INTEGER NOT NULL,
          othersReadMark INTEGER NOT NULL,
          unread INTEGER NOT NULL,
          mutedUntil INTEGER NOT NULL DEFAULT 0,
          favourite INTEGER NOT NULL DEFAULT 0,
          isStale INTEGER NOT NULL DEFAULT 0,
          changesMark INTEGER NOT NULL DEFAULT 0,
          changesMessage INTEGER,
          changesWanted INTEGER NOT NULL DEFAULT 0,
          historyGeneration INTEGER NOT NULL DEFAULT 0,
          data BLOB NOT NULL
        );
        CREATE INDEX chat_by_time ON chat (lastEventTime DESC, id);

        CREATE TABLE message (
          row INTEGER PRIMARY KEY,
          chat INTEGER NOT NULL,
          id INTEGER NOT NULL,
          sender INTEGER,
          cid INTEGER,
          updateTime INTEGER NOT NULL,
          revision INTEGER NOT NULL,
          text TEXT NOT NULL,
          data BLOB NOT NULL,
          UNIQUE (chat, id)
        );
        CREATE INDEX message_by_cid ON message (chat, cid) WHERE cid IS NOT NULL;

        CREATE VIRTUAL TABLE message_search USING fts5 (
          text, content = 'message', content_rowid = 'row',
          tokenize = "unicode61 remove_diacritics 2", prefix = '2 3'
        );
        CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
          INSERT INTO message_search (rowid, text) VALUES (new.row, new.text);
        END;
        CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN
          INSERT INTO message_search (message_search, rowid, text) VALUES ('delete', old.row, old.text);
        END;
        CREATE TRIGGER message_changed AFTER UPDATE OF text ON message
        WHEN old.text IS NOT new.text BEGIN
          INSERT INTO message_search (message_search, rowid, text) VALUES ('delete', old.row, old.text);
          INSERT INTO message_search (rowid, text) VALUES (new.row, new.text);
        END;

        -- Which stretches of a chat's history are held whole, and what is known to be deleted
        -- outside of them.
        CREATE TABLE history_chunk (
          chat INTEGER NOT NULL,
          low INTEGER NOT NULL,
          high INTEGER NOT NULL,
          PRIMARY KEY (chat, low)
        ) WITHOUT ROWID;
        CREATE TABLE history_tomb (
          chat INTEGER NOT NULL,
          id INTEGER NOT NULL,
          PRIMARY KEY (chat, id)
        ) WITHOUT ROWID;

        CREATE TABLE draft (
          chat INTEGER PRIMARY KEY,
          text TEXT NOT NULL,
          replyTo INTEGER,
          time INTEGER NOT NULL
        );

        CREATE TABLE task (
          id INTEGER PRIMARY KEY,
          kind TEXT NOT NULL,
          codecVersion INTEGER NOT NULL,
          payload BLOB NOT NULL,
          lane TEXT,
          coalescingKey TEXT,
          requires INTEGER NOT NULL,
          place INTEGER NOT NULL,
          state TEXT NOT NULL,
          attempts INTEGER NOT NULL,
          runs INTEGER NOT NULL,
          round INTEGER NOT NULL,
          nextAtHere INTEGER,
          wakesOn INTEGER NOT NULL,
          createdAtHere INTEGER NOT NULL,
          deadlineHere INTEGER,
          opKey TEXT NOT NULL,
          leaseOwner TEXT,
          leaseUntilHere INTEGER,
          isCancelRequested INTEGER NOT NULL,
          hasNewInput INTEGER NOT NULL,
          lastError TEXT,
          output BLOB
        );
        CREATE TABLE task_dependency (
          task INTEGER NOT NULL,
          dependsOn INTEGER NOT NULL,
          mode TEXT NOT NULL,
          PRIMARY KEY (task, dependsOn)
        ) WITHOUT ROWID;

        -- What tasks have changed on the screen before the server knows of it.
        CREATE TABLE overlay (
          task INTEGER NOT NULL,
          chat INTEGER NOT NULL,
          message INTEGER,
          kind TEXT NOT NULL,
          cid INTEGER,
          createdAtHere INTEGER NOT NULL,
          value BLOB NOT NULL,
          PRIMARY KEY (task, kind)
        ) WITHOUT ROWID;
        CREATE INDEX overlay_by_chat ON overlay (chat);
        """

    /// Entities that are edited offline. An id is a number that the server assigned, or a local id
    /// such as `#l7`.
    private static let entities = """
        CREATE TABLE entity (
          id TEXT PRIMARY KEY,
          type TEXT NOT NULL,
          parent TEXT,
          uiKey INTEGER NOT NULL,
          server BLOB
        ) WITHOUT ROWID;

        -- Changes on their way: in flight (sent), or pending or in conflict (open).
        CREATE TABLE entity_update (
          id TEXT NOT NULL,
          slot TEXT NOT NULL,
          sequence INTEGER NOT NULL,
          change BLOB NOT NULL,
          state BLOB NOT NULL,
          PRIMARY KEY (id, slot)
        ) WITHOUT ROWID;

        CREATE TABLE entity_alias (
          local TEXT PRIMARY KEY,
          server TEXT NOT NULL,
          sinceHere INTEGER NOT NULL
        ) WITHOUT ROWID;
        """
}
