#if PostgreSQL
    import CLibPQ

    /// A synchronous connection to PostgreSQL through libpq. Every call waits for the server's
    /// answer.
    ///
    /// This class proves that the store's statements run on both engines. It is not optimized for
    /// speed.
    package final class PostgresConnection: SQLConnection {
        let handle: OpaquePointer
        package internal(set) var statementCount = 0
        package internal(set) var rowsStepped = 0
        /// The names of statements that are no longer used. The server deallocates them before the
        /// next transaction.
        var abandoned: [String] = []
        private var preparedCount = 0

        /// - Parameter parameters: A libpq connection string.
        package init(_ parameters: String) throws(SQLError) {
            guard let handle = PQconnectdb(parameters) else {
                throw SQLError(kind: .io, message: "no memory for a connection")
            }
            guard PQstatus(handle) == CONNECTION_OK else {
                let error = SQLError(kind: .io, message: String(cString: PQerrorMessage(handle)))
                PQfinish(handle)
                throw error
            }
            // Discards notices such as "relation already exists, skipping".
            PQsetNoticeProcessor(handle, { _, _ in }, nil)
            self.handle = handle
        }

        deinit {
            PQfinish(handle)
        }

        package var dialect: SQLDialect { .postgreSQL }

        package var isInTransaction: Bool {
            PQtransactionStatus(handle) != PQTRANS_IDLE
        }

        package func prepare(_ sql: String) throws(SQLError) -> any SQLStatement {
            preparedCount += 1
            return try PostgresStatement(sql, name: "s\(preparedCount)", on: self)
        }

        package func execute(_ sql: String) throws(SQLError) {
            let result = try checked(PQexec(handle, sql), sql: sql)
            PQclear(result)
        }

        package func begin(_ mode: SQLTransactionMode) throws(SQLError) {
            for name in abandoned {
                try execute("DEALLOCATE \(name)")
            }
            abandoned = []
            switch mode {
            case .immediate:
                try execute("BEGIN")
            case .snapshot:
                try execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                // As in SQLite, BEGIN does not take the snapshot. The first read takes it.
                try execute("SELECT 1")
            }
        }

        package func commit() throws(SQLError) {
            let result = try checked(PQexec(handle, "COMMIT"), sql: "COMMIT")
            defer { PQclear(result) }
            // After an error inside the transaction the server answers COMMIT with ROLLBACK.
            let tag = String(cString: PQcmdStatus(result))
            guard tag == "COMMIT" else {
                throw SQLError(kind: .other, message: "COMMIT was answered with \(tag)")
            }
        }

        package func rollback() {
            guard isInTransaction else { return }
            PQclear(PQexec(handle, "ROLLBACK"))
        }

        package func checkpoint() {}

        /// Returns the result, or throws the error that it contains.
        func checked(_ result: OpaquePointer?, sql: String) throws(SQLError) -> OpaquePointer {
            let status = PQresultStatus(result)
            if let result, status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK {
                return result
            }
            defer { PQclear(result) }
            let state = field("C", of: result)
            let primary = field("M", of: result)
            let words = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
            throw SQLError(
                kind: PQstatus(handle) == CONNECTION_OK ? SQLError.Kind(sqlState: state) : .io,
                message: [primary, words].first { !$0.isEmpty }
                    ?? String(cString: PQresStatus(status)),
                engineCode: state,
                sql: sql
            )
        }

        /// Returns one field of an error. In PostgreSQL's protocol, a letter names the field.
        private func field(_ letter: Character, of result: OpaquePointer?) -> String {
            guard let code = letter.asciiValue,
                let text = PQresultErrorField(result, Int32(code))
            else { return "" }
            return String(cString: text)
        }
    }

    extension SQLError.Kind {
        /// Creates the kind for a SQLSTATE, a code of five characters. The first two characters are
        /// its class.
        init(sqlState: String) {
            self =
                switch (sqlState.prefix(2), sqlState) {
                case (_, "40001"), (_, "40P01"), (_, "55P03"): .busy
                case (_, "53100"): .full
                case ("23", _): .constraint
                case ("XX", "XX001"), ("XX", "XX002"): .corrupt
                case ("08", _), ("58", _), (_, "57P01"), (_, "57P02"), (_, "57P03"): .io
                default: .other
                }
        }
    }
#endif
