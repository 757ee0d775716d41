import TambourProtocol
package import TambourSQL

/// The migrations of the messenger's tables, the oldest first. A new migration is added at the end.
/// A released migration never changes.
///
/// Users' texts are stored as UTF-8 in a blob. The reason is the zero byte: it is a legal
/// character, but PostgreSQL's text type rejects it. `docs/data.md` explains the tables and the
/// reasons for their design.
package enum Schema {
    package static let migrations = versions1To12 + laterVersions

    private static let laterVersions: [Migration] = [
        Migration(
            13,
            "large chats and long histories",
            """
            ALTER TABLE account_end ADD COLUMN due {int64} NOT NULL DEFAULT 0;
            ALTER TABLE account_end ADD COLUMN erased_up_to {int64} NOT NULL DEFAULT 0;
            CREATE INDEX account_end_due ON account_end (due);

            CREATE INDEX reaction_user ON reaction (user_id, chat);
            CREATE INDEX poll_vote_user ON poll_vote (user_id, chat);
            CREATE INDEX message_hidden_chat ON message_hidden (chat);
            CREATE INDEX draft_peer ON draft (peer) WHERE saved > 0;
            CREATE INDEX delayed_message_peer ON delayed_message (peer);
            CREATE INDEX member_read ON member (chat, read_time) WHERE big = 1;
            CREATE INDEX member_floor ON member (chat, floor, user_id) WHERE floor > 0;
            """
        ),
        Migration(
            14,
            "what became of messages",
            """
            ALTER TABLE message ADD COLUMN changed {int64} NOT NULL DEFAULT 0;
            CREATE INDEX message_changed ON message (chat, changed, id) WHERE changed > 0;

            ALTER TABLE message_hidden ADD COLUMN ct {int64} NOT NULL DEFAULT 0;
            CREATE INDEX message_hidden_ct ON message_hidden (user_id, chat, ct, message);

            -- Of what happened before nothing is known; marks of then do not go beyond the lease.
            INSERT INTO meta (k, v) SELECT 'changes_unknown', v FROM meta WHERE k = 'ct_lease';
            UPDATE meta SET k = 'restored' WHERE k = 'undone_to';
            DELETE FROM meta WHERE k = 'undone_from';
            """
        ),
        Migration(
            15,
            "hidden read marks",
            """
            ALTER TABLE member ADD COLUMN shown_time {int64} NOT NULL DEFAULT 0;
            UPDATE member SET shown_time = read_time;
            """,
            fill: SettingStatements.obeyReadMarks
        ),
        Migration(
            16,
            "objects",
            """
            CREATE TABLE object (
              user_id {int64} NOT NULL,
              id {int64} NOT NULL,
              type {blob} NOT NULL,
              parent {int64} NOT NULL,
              version {int64} NOT NULL,
              modified {int64} NOT NULL,
              device {int64} NOT NULL,
              creator {int64} NOT NULL,
              created_by {int64} NOT NULL,
              deleted {int64} NOT NULL,
              content {blob} NOT NULL,
              stamps {blob},
              natural_key {blob},
              position {int64},
              ct {int64} NOT NULL,
              PRIMARY KEY (user_id, id)
            ) {without_rowid};
            CREATE INDEX object_ct ON object (user_id, ct, id) WHERE position IS NULL;
            CREATE INDEX object_parent ON object (user_id, parent, type) WHERE position IS NULL;
            CREATE INDEX object_series ON object (user_id, parent, type, position, id)
              WHERE position IS NOT NULL;
            CREATE INDEX object_key ON object (user_id, parent, natural_key)
              WHERE natural_key IS NOT NULL;
            CREATE UNIQUE INDEX object_creation ON object (user_id, creator, created_by);

            CREATE TABLE object_count (
              user_id {int64} NOT NULL PRIMARY KEY,
              live {int64} NOT NULL,
              elements {int64} NOT NULL,
              last_id {int64} NOT NULL
            ) {without_rowid};

            CREATE TABLE object_reply (
              user_id {int64} NOT NULL,
              device {int64} NOT NULL,
              op_id {int64} NOT NULL,
              ct {int64} NOT NULL,
              digest {blob} NOT NULL,
              result {blob} NOT NULL,
              PRIMARY KEY (user_id, device, op_id)
            ) {without_rowid};
            CREATE INDEX object_reply_ct ON object_reply (user_id, ct);
            """
        ),
        Migration(
            17,
            "work in steps",
            """
            CREATE TABLE object_purge (
              user_id {int64} NOT NULL,
              parent {int64} NOT NULL,
              version {int64} NOT NULL,
              modified {int64} NOT NULL,
              device {int64} NOT NULL,
              PRIMARY KEY (user_id, parent)
            ) {without_rowid};

            CREATE TABLE chat_purge (
              chat {int64} NOT NULL,
              sender {int64} NOT NULL,
              up_to {int64} NOT NULL,
              PRIMARY KEY (chat, sender)
            ) {without_rowid};

            DROP INDEX object_parent;
            CREATE INDEX object_child ON object (user_id, parent, type, id)
              WHERE position IS NULL AND deleted = 0;

            CREATE INDEX contact_added ON contact (owner, user_id) WHERE added = 1;
            CREATE INDEX contact_blocked ON contact (owner, user_id) WHERE blocked = 1;

            ALTER TABLE object_count ADD COLUMN replies {int64} NOT NULL DEFAULT 0;
            UPDATE object_count SET replies = (
              SELECT count(*) FROM object_reply r WHERE r.user_id = object_count.user_id
            );
            """
        ),
        Migration(
            18,
            "what one may see",
            """
            ALTER TABLE password ADD COLUMN version {int64} NOT NULL DEFAULT 0;

            CREATE INDEX message_hidden_message ON message_hidden (chat, message, user_id);
            DROP INDEX message_hidden_chat;

            CREATE TABLE email_code (
              recipient {blob} NOT NULL,
              user_id {int64} NOT NULL,
              created {int64} NOT NULL
            );
            CREATE INDEX email_code_recipient ON email_code (recipient, created);
            CREATE INDEX email_code_user ON email_code (user_id, created);
            CREATE INDEX email_code_created ON email_code (created);
            """
        ),
        Migration(
            19,
            "who may see whom",
            """
            CREATE TABLE introduction (
              user_id {int64} NOT NULL,
              chat {int64} NOT NULL,
              PRIMARY KEY (user_id, chat)
            ) {without_rowid};
            CREATE INDEX introduction_chat ON introduction (chat);

            CREATE INDEX chat_public_owner ON chat (owner) WHERE is_public = 1;
            """,
            fill: IntroductionStatements.introduceNamed
        ),
        Migration(
            20,
            "what leaves the index",
            """
            CREATE TABLE search_stale (
              chat {int64} NOT NULL,
              block {int64} NOT NULL,
              PRIMARY KEY (chat, block)
            ) {without_rowid};
            """
        ),
        Migration(
            21,
            "keys of deleted scheduled messages",
            """
            CREATE TABLE delayed_key (
              user_id {int64} NOT NULL,
              peer {int64} NOT NULL,
              device {int64} NOT NULL,
              cid {int64} NOT NULL,
              id {int64} NOT NULL,
              ct {int64} NOT NULL,
              PRIMARY KEY (user_id, peer, device, cid)
            ) {without_rowid};
            CREATE INDEX delayed_key_ct ON delayed_key (user_id, ct);
            """
        ),
        Migration(
            22,
            "comments",
            """
            CREATE TABLE comment_thread (
              channel {int64} NOT NULL,
              post {int64} NOT NULL,
              chat {int64} NOT NULL UNIQUE,
              comments {int64} NOT NULL,
              PRIMARY KEY (channel, post)
            ) {without_rowid};

            CREATE TABLE commenter (
              user_id {int64} NOT NULL,
              chat {int64} NOT NULL,
              PRIMARY KEY (user_id, chat)
            ) {without_rowid};
            CREATE INDEX commenter_chat ON commenter (chat);

            CREATE TABLE comment_ban (
              chat {int64} NOT NULL,
              user_id {int64} NOT NULL,
              PRIMARY KEY (chat, user_id)
            ) {without_rowid};
            CREATE INDEX comment_ban_user ON comment_ban (user_id);
            """
        ),
        Migration(
            23,
            "dialects of sessions",
            """
            ALTER TABLE session ADD COLUMN dialect {text} NOT NULL DEFAULT '';
            """
        ),
        Migration(
            24,
            "invitations",
            """
            CREATE TABLE invitation (
              id {int64} NOT NULL PRIMARY KEY,
              phone {int64} UNIQUE,
              code_hash {blob} UNIQUE,
              max_uses {int64} NOT NULL,
              uses {int64} NOT NULL,
              created {int64} NOT NULL,
              expires {int64} NOT NULL,
              user_id {int64} NOT NULL
            );
            CREATE INDEX invitation_expires ON invitation (expires);
            CREATE INDEX invitation_user ON invitation (user_id, created);

            CREATE TABLE invitation_use (
              user_id {int64} NOT NULL PRIMARY KEY,
              invitation {int64} NOT NULL,
              used {int64} NOT NULL
            ) {without_rowid};
            CREATE INDEX invitation_use_invitation ON invitation_use (invitation, user_id);

            ALTER TABLE login_code ADD COLUMN invitation {int64} NOT NULL DEFAULT 0;
            ALTER TABLE registration ADD COLUMN invitation {int64} NOT NULL DEFAULT 0;
            """
        ),
        Migration(
            25,
            "audit log, default chats and announcements",
            """
            CREATE TABLE audit (
              id {int64} NOT NULL PRIMARY KEY,
              kind {int64} NOT NULL,
              n {int64} NOT NULL,
              created {int64} NOT NULL,
              last {int64} NOT NULL,
              times {int64} NOT NULL,
              action {text} NOT NULL,
              user_id {int64} NOT NULL,
              address {text} NOT NULL,
              detail {blob} NOT NULL
            );
            CREATE INDEX audit_kind ON audit (kind, n);
            CREATE INDEX audit_user ON audit (user_id, action, created);

            CREATE TABLE default_chat (
              chat {int64} NOT NULL PRIMARY KEY,
              added {int64} NOT NULL
            ) {without_rowid};

            CREATE TABLE announcement (
              id {int64} NOT NULL PRIMARY KEY,
              chat {int64} NOT NULL,
              text {blob} NOT NULL,
              created {int64} NOT NULL,
              up_to {int64} NOT NULL,
              message {int64} NOT NULL
            );
            """
        ),
    ]
}
