import TambourSQL

extension Schema {
    /// The migrations up to version 12.
    static let versions1To12: [Migration] = [
        Migration(
            1,
            "first chat",
            """
            CREATE TABLE meta (
              k text PRIMARY KEY,
              v {int64} NOT NULL
            ) {without_rowid};

            CREATE TABLE account (
              id {int64} PRIMARY KEY,
              phone {int64} NOT NULL UNIQUE,
              first_name {blob} NOT NULL,
              last_name {blob},
              registered {int64} NOT NULL,
              updated {int64} NOT NULL,
              blocked {int64} NOT NULL DEFAULT 0,
              seen {int64} NOT NULL DEFAULT 0
            );

            CREATE TABLE device (
              id {int64} PRIMARY KEY,
              user_id {int64} NOT NULL,
              installation {blob} NOT NULL,
              UNIQUE (user_id, installation)
            );

            CREATE TABLE session (
              id {int64} PRIMARY KEY,
              user_id {int64} NOT NULL,
              device {int64} NOT NULL,
              token_hash {blob} NOT NULL UNIQUE,
              created {int64} NOT NULL,
              last_seen {int64} NOT NULL,
              client {blob} NOT NULL,
              info {blob} NOT NULL,
              address {text} NOT NULL
            );
            CREATE INDEX session_by_user ON session (user_id);

            CREATE TABLE login_code (
              token_hash {blob} PRIMARY KEY,
              phone {int64} NOT NULL,
              code_hash {blob} NOT NULL,
              address {text} NOT NULL,
              created {int64} NOT NULL,
              expires {int64} NOT NULL,
              tries {int64} NOT NULL
            );
            CREATE INDEX login_code_phone ON login_code (phone, created);
            CREATE INDEX login_code_address ON login_code (address, created);
            CREATE INDEX login_code_created ON login_code (created);

            CREATE TABLE registration (
              token_hash {blob} PRIMARY KEY,
              phone {int64} NOT NULL,
              expires {int64} NOT NULL
            );
            CREATE INDEX registration_expires ON registration (expires);

            CREATE TABLE chat (
              id {int64} PRIMARY KEY,
              kind {int64} NOT NULL,
              low_user {int64},
              high_user {int64},
              owner {int64} NOT NULL,
              title {blob},
              created {int64} NOT NULL,
              member_count {int64} NOT NULL,
              ct_head {int64} NOT NULL,
              UNIQUE (low_user, high_user)
            );

            CREATE TABLE member (
              user_id {int64} NOT NULL,
              chat {int64} NOT NULL,
              joined {int64} NOT NULL,
              read_time {int64} NOT NULL,
              read_n {int64} NOT NULL,
              ct {int64} NOT NULL,
              contact_ct {int64} NOT NULL,
              big {int64} NOT NULL,
              PRIMARY KEY (user_id, chat)
            ) {without_rowid};
            CREATE INDEX member_ct ON member (user_id, ct);
            CREATE INDEX member_chat ON member (chat, user_id);
            CREATE INDEX member_contact ON member (user_id, contact_ct) WHERE contact_ct > 0;
            CREATE INDEX member_big ON member (user_id, ct) WHERE big = 1;

            CREATE TABLE message (
              chat {int64} NOT NULL,
              id {int64} NOT NULL,
              n {int64} NOT NULL,
              sender {int64} NOT NULL,
              cid {int64} NOT NULL,
              device {int64} NOT NULL,
              status {int64} NOT NULL,
              updated {int64} NOT NULL,
              reply_to {int64} NOT NULL,
              text {blob} NOT NULL,
              elements {blob},
              attaches {blob},
              forward {blob},
              PRIMARY KEY (chat, id)
            ) {without_rowid};
            CREATE INDEX message_cid ON message (cid DESC, sender);
            CREATE INDEX message_removed ON message (chat, id, status) WHERE status = 2;

            CREATE TABLE message_hidden (
              user_id {int64} NOT NULL,
              chat {int64} NOT NULL,
              message {int64} NOT NULL,
              PRIMARY KEY (user_id, chat, message)
            ) {without_rowid};
            """
        ),
        Migration(
            2,
            "groups after creation",
            """
            ALTER TABLE chat ADD COLUMN description {blob};
            ALTER TABLE chat ADD COLUMN options {int64} NOT NULL DEFAULT 0;
            ALTER TABLE chat ADD COLUMN pinned {int64} NOT NULL DEFAULT 0;
            ALTER TABLE chat ADD COLUMN link {blob};
            CREATE UNIQUE INDEX chat_link ON chat (link);

            ALTER TABLE member ADD COLUMN permissions {int64} NOT NULL DEFAULT 0;
            ALTER TABLE member ADD COLUMN floor {int64} NOT NULL DEFAULT 0;
            CREATE INDEX member_admin ON member (chat, user_id) WHERE permissions > 0;

            CREATE TABLE former_member (
              user_id {int64} NOT NULL,
              chat {int64} NOT NULL,
              owner {int64} NOT NULL,
              joined {int64} NOT NULL,
              ct {int64} NOT NULL,
              PRIMARY KEY (user_id, chat)
            ) {without_rowid};
            CREATE INDEX former_member_ct ON former_member (user_id, ct);
            """
        ),
        Migration(
            3,
            "contacts and settings",
            """
            CREATE TABLE contact (
              owner {int64} NOT NULL,
              user_id {int64} NOT NULL,
              added {int64} NOT NULL,
              blocked {int64} NOT NULL,
              partner {int64} NOT NULL,
              first_name {blob},
              last_name {blob},
              ct {int64} NOT NULL,
              PRIMARY KEY (owner, user_id)
            ) {without_rowid};
            CREATE INDEX contact_ct ON contact (owner, ct);
            CREATE INDEX contact_user ON contact (user_id, owner);
            INSERT INTO contact (owner, user_id, added, blocked, partner, ct)
              SELECT m.user_id, c.low_user + c.high_user - m.user_id, 0, 0, 1, m.contact_ct
              FROM member m JOIN chat c ON c.id = m.chat WHERE c.kind = 0;
            DROP INDEX member_contact;
            ALTER TABLE member DROP COLUMN contact_ct;
            ALTER TABLE account ADD COLUMN description {blob};
            ALTER TABLE account ADD COLUMN privacy {int64} NOT NULL DEFAULT 0;
            ALTER TABLE account ADD COLUMN settings_ct {int64} NOT NULL DEFAULT 0;

            CREATE TABLE user_setting (
              user_id {int64} NOT NULL,
              name {blob} NOT NULL,
              value {blob} NOT NULL,
              PRIMARY KEY (user_id, name)
            ) {without_rowid};
            CREATE TABLE chat_setting (
              user_id {int64} NOT NULL,
              chat {int64} NOT NULL,
              value {blob} NOT NULL,
              PRIMARY KEY (user_id, chat)
            ) {without_rowid};
            """
        ),
        Migration(
            4,
            "reactions",
            """
            ALTER TABLE message ADD COLUMN reactions {blob};
            ALTER TABLE chat ADD COLUMN reactions {blob};

            CREATE TABLE reaction (
              chat {int64} NOT NULL,
              message {int64} NOT NULL,
              user_id {int64} NOT NULL,
              reaction {blob} NOT NULL,
              PRIMARY KEY (chat, message, user_id)
            ) {without_rowid};
            """
        ),
        Migration(
            5,
            "drafts",
            """
            CREATE TABLE draft (
              user_id {int64} NOT NULL,
              peer {int64} NOT NULL,
              ct {int64} NOT NULL,
              saved {int64} NOT NULL,
              text {blob} NOT NULL,
              elements {blob},
              reply_to {int64} NOT NULL,
              PRIMARY KEY (user_id, peer)
            ) {without_rowid};
            CREATE INDEX draft_ct ON draft (user_id, ct);
            """
        ),
        Migration(
            6,
            "folders",
            """
            CREATE TABLE folder (
              user_id {int64} NOT NULL,
              id {blob} NOT NULL,
              updated {int64} NOT NULL,
              body {blob} NOT NULL,
              PRIMARY KEY (user_id, id)
            ) {without_rowid};

            CREATE TABLE folder_order (
              user_id {int64} PRIMARY KEY,
              ids {blob} NOT NULL,
              sync {int64} NOT NULL
            ) {without_rowid};
            """
        ),
        Migration(
            7,
            "search and reports",
            """
            CREATE TABLE search_part (
              chat {int64} NOT NULL,
              part {int64} NOT NULL,
              ends {blob} NOT NULL,
              PRIMARY KEY (chat, part)
            ) {without_rowid};

            CREATE TABLE search_word (
              chat {int64} NOT NULL,
              scale {int64} NOT NULL,
              part {int64} NOT NULL,
              word {blob} NOT NULL,
              blocks {int64} NOT NULL,
              PRIMARY KEY (chat, scale, part, word)
            ) {without_rowid};

            CREATE INDEX message_attached ON message (chat, id)
              WHERE attaches IS NOT NULL OR forward IS NOT NULL;

            CREATE TABLE account_word (
              word {blob} NOT NULL,
              user_id {int64} NOT NULL,
              PRIMARY KEY (word, user_id)
            ) {without_rowid};
            CREATE INDEX account_word_user ON account_word (user_id);

            CREATE TABLE report (
              id {int64} PRIMARY KEY,
              reporter {int64} NOT NULL,
              chat {int64} NOT NULL,
              message {int64} NOT NULL,
              user_id {int64} NOT NULL,
              reason {int64} NOT NULL,
              words {blob} NOT NULL,
              created {int64} NOT NULL,
              UNIQUE (reporter, chat, message, user_id)
            );
            """,
            fill: PeopleStatements.indexNames
        ),
        Migration(
            8,
            "safety",
            """
            CREATE INDEX chat_begun ON chat (owner, created) WHERE kind = 0;

            ALTER TABLE login_code ADD COLUMN user_id {int64} NOT NULL DEFAULT 0;

            CREATE TABLE password (
              user_id {int64} PRIMARY KEY,
              salt {blob} NOT NULL,
              hash {blob} NOT NULL,
              log_rounds {int64} NOT NULL,
              hint {blob},
              email {blob},
              tries {int64} NOT NULL,
              tries_since {int64} NOT NULL
            );

            CREATE TABLE track (
              id_hash {blob} PRIMARY KEY,
              kind {int64} NOT NULL,
              user_id {int64} NOT NULL,
              session {int64} NOT NULL,
              link_hash {blob},
              created {int64} NOT NULL,
              expires {int64} NOT NULL,
              checked {int64} NOT NULL DEFAULT 0,
              email {blob},
              email_checked {int64} NOT NULL DEFAULT 0,
              code_hash {blob},
              code_expires {int64} NOT NULL DEFAULT 0,
              code_tries {int64} NOT NULL DEFAULT 0,
              codes_sent {int64} NOT NULL DEFAULT 0
            );
            CREATE UNIQUE INDEX track_link ON track (link_hash);
            CREATE INDEX track_user ON track (user_id, created);
            CREATE INDEX track_created ON track (created);

            CREATE TABLE account_end (
              user_id {int64} PRIMARY KEY,
              delete_at {int64} NOT NULL DEFAULT 0,
              inactive_days {int64} NOT NULL DEFAULT 0,
              erasing {int64} NOT NULL DEFAULT 0
            );
            """
        ),
        Migration(
            9,
            "scheduled messages",
            """
            CREATE TABLE delayed_message (
              user_id {int64} NOT NULL,
              peer {int64} NOT NULL,
              id {int64} NOT NULL,
              fire {int64} NOT NULL,
              failed {int64} NOT NULL DEFAULT 0,
              notify {int64} NOT NULL,
              updated {int64} NOT NULL DEFAULT 0,
              cid {int64} NOT NULL,
              device {int64} NOT NULL,
              reply_to {int64} NOT NULL,
              text {blob} NOT NULL,
              elements {blob},
              attaches {blob},
              forward {blob},
              poll {int64} NOT NULL,
              bytes {int64} NOT NULL,
              PRIMARY KEY (user_id, peer, id)
            ) {without_rowid};
            CREATE INDEX delayed_message_due ON delayed_message (fire) WHERE failed = 0;
            ALTER TABLE member ADD COLUMN delayed_updated {int64} NOT NULL DEFAULT 0;
            ALTER TABLE member ADD COLUMN delayed_failed {int64} NOT NULL DEFAULT 0;
            """
        ),
        Migration(
            10,
            "polls",
            """
            ALTER TABLE message ADD COLUMN poll {int64} NOT NULL DEFAULT 0;

            CREATE TABLE poll_vote (
              chat {int64} NOT NULL,
              message {int64} NOT NULL,
              user_id {int64} NOT NULL,
              answer {int64} NOT NULL,
              voted {int64} NOT NULL,
              PRIMARY KEY (chat, message, user_id, answer)
            ) {without_rowid};
            CREATE INDEX poll_vote_answer ON poll_vote (chat, message, answer, user_id);
            """
        ),
        Migration(
            11,
            "measurements",
            """
            CREATE TABLE measurement (
              day {int64} NOT NULL,
              name {text} NOT NULL,
              row_count {int64} NOT NULL,
              bytes {int64},
              PRIMARY KEY (day, name)
            ) {without_rowid};
            """
        ),
        Migration(
            12,
            "channels",
            """
            ALTER TABLE chat ADD COLUMN is_public {int64} NOT NULL DEFAULT 0;
            CREATE INDEX chat_public ON chat (member_count) WHERE is_public = 1;
            ALTER TABLE member ADD COLUMN hidden_n {int64} NOT NULL DEFAULT 0;

            CREATE TABLE join_request (
              chat {int64} NOT NULL,
              user_id {int64} NOT NULL,
              asked {int64} NOT NULL,
              PRIMARY KEY (chat, user_id)
            ) {without_rowid};
            CREATE INDEX join_request_user ON join_request (user_id);

            CREATE TABLE chat_word (
              word {blob} NOT NULL,
              chat {int64} NOT NULL,
              PRIMARY KEY (word, chat)
            ) {without_rowid};
            CREATE INDEX chat_word_chat ON chat_word (chat);
            """
        ),
    ]
}
