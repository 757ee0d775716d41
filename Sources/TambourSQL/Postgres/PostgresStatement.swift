#if PostgreSQL
    import CLibPQ

    /// A statement that the server has prepared under a name.
    ///
    /// Integers are sent as decimal text, which the server can convert to any integer type. Text
    /// and blobs are sent unchanged. Results are received as a whole and in binary form.
    package final class PostgresStatement: SQLStatement {
        private let connection: PostgresConnection
        private let name: String
        private let sql: String
        package let columnCount: Int
        private var parameters: [Parameter]
        private var result: OpaquePointer?
        private var row: Int32 = -1
        private var state = State.ready

        private enum State {
            case ready
            case running
            case finished
        }

        private struct Parameter {
            var bytes: [UInt8]?
            var isBinary = false
        }

        init(_ sql: String, name: String, on connection: PostgresConnection) throws(SQLError) {
            let handle = connection.handle
            PQclear(try connection.checked(PQprepare(handle, name, sql, 0, nil), sql: sql))
            let description = try connection.checked(PQdescribePrepared(handle, name), sql: sql)
            let count = Int(PQnparams(description))
            columnCount = Int(PQnfields(description))
            PQclear(description)
            self.parameters = [Parameter](repeating: Parameter(), count: count)
            self.connection = connection
            self.name = name
            self.sql = sql
        }

        deinit {
            PQclear(result)
            connection.abandoned.append(name)
        }

        // MARK: - Binding

        package func bind(_ index: Int, _ value: Int64) {
            set(index, Parameter(bytes: Array(String(value).utf8) + [0]))
        }

        package func bindNull(_ index: Int) {
            set(index, Parameter())
        }

        package func bindText(_ index: Int, _ utf8: UnsafeRawBufferPointer) {
            set(index, Parameter(bytes: Array(utf8), isBinary: true))
        }

        package func bindBlob(_ index: Int, _ bytes: UnsafeRawBufferPointer) {
            set(index, Parameter(bytes: Array(bytes), isBinary: true))
        }

        package func bindText(_ index: Int, borrowed utf8: UnsafeRawBufferPointer) {
            bindText(index, utf8)
        }

        package func bindBlob(_ index: Int, borrowed bytes: UnsafeRawBufferPointer) {
            bindBlob(index, bytes)
        }

        private func set(_ index: Int, _ parameter: Parameter) {
            precondition(state == .ready, "bind before reset")
            parameters[index - 1] = parameter
        }

        // MARK: - Running

        package func step() throws(SQLError) -> Bool {
            switch state {
            case .finished: return false
            case .running: break
            case .ready:
                connection.statementCount += 1
                state = .finished
                result = try connection.checked(send(), sql: sql)
                state = .running
            }
            row += 1
            guard row < PQntuples(result) else {
                state = .finished
                return false
            }
            connection.rowsStepped += 1
            return true
        }

        package func reset() {
            PQclear(result)
            result = nil
            row = -1
            state = .ready
            for index in parameters.indices {
                parameters[index] = Parameter()
            }
        }

        package func run() throws(SQLError) -> Int {
            defer { reset() }
            while try step() {}
            // For a SELECT, libpq reports the number of returned rows. A SELECT changes no row.
            guard !String(cString: PQcmdStatus(result)).hasPrefix("SELECT") else { return 0 }
            return Int(String(cString: PQcmdTuples(result))) ?? 0
        }

        private func send() -> OpaquePointer? {
            // One buffer holds all values, because their addresses must stay valid during the call.
            // An extra byte at the end gives empty values an address too.
            var arena: [UInt8] = []
            var offsets: [Int?] = []
            for parameter in parameters {
                offsets.append(parameter.bytes.map { _ in arena.count })
                arena += parameter.bytes ?? []
            }
            arena.append(0)
            let lengths = parameters.map { Int32($0.bytes?.count ?? 0) }
            let formats = parameters.map { Int32($0.isBinary ? 1 : 0) }
            return arena.withUnsafeBufferPointer { bytes in
                bytes.withMemoryRebound(to: CChar.self) { chars in
                    let values = offsets.map { offset in
                        offset.flatMap { start in chars.baseAddress.map { $0 + start } }
                    }
                    return PQexecPrepared(
                        connection.handle,
                        name,
                        Int32(values.count),
                        values,
                        lengths,
                        formats,
                        1
                    )
                }
            }
        }

        // MARK: - Reading

        package func isNull(_ column: Int) -> Bool {
            PQgetisnull(result, row, Int32(column)) != 0
        }

        package func borrowedBytes(_ column: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(
                start: PQgetvalue(result, row, Int32(column)),
                count: Int(PQgetlength(result, row, Int32(column)))
            )
        }

        package func int(_ column: Int) -> Int64 {
            let bytes = borrowedBytes(column)
            guard !isNull(column) else { return 0 }
            switch PQftype(result, Int32(column)) {
            case 16, 21, 23, 20:  // bool, int2, int4, int8
                let negative = bytes.count > 1 && bytes.first.map { $0 >= 0x80 } == true
                return bytes.reduce(negative ? -1 : 0) { ($0 << 8) | Int64($1) }
            case 1700:
                return integer(ofNumeric: bytes)
            default:
                return Int64(String(decoding: bytes, as: UTF8.self)) ?? 0
            }
        }

        /// Returns the integer part of a `numeric`, the type of a sum of bigints.
        ///
        /// Layout: digits u16, weight i16, sign u16, scale u16, then digits of base 10,000.
        private func integer(ofNumeric bytes: UnsafeRawBufferPointer) -> Int64 {
            func word(_ index: Int) -> Int16 {
                bytes.loadUnaligned(fromByteOffset: index * 2, as: Int16.self).bigEndian
            }
            let count = Int(word(0))
            let weight = Int(word(1))
            guard weight >= 0 else { return 0 }
            var value: Int64 = 0
            for place in 0...weight {
                value = value * 10_000 + (place < count ? Int64(word(4 + place)) : 0)
            }
            return word(2) == 0 ? value : -value
        }
    }
#endif
