package import TambourEvents
import TambourProtocol
import TambourSQL

/// The single writer of a store. It caches chats and opens a transaction for each batch. At the end
/// of the batch, it writes the changed cache entries to the database.
///
/// The engine owns the writer and uses it only on the engine's queue.
package final class StoreWriter {
    package let connection: StoreConnection
    private let transaction: WriteTransaction
    private var leaseEnd: Int64 = 0

    /// - Parameters:
    ///   - userIDs: the source of ids for new users.
    ///   - firstCounter: the first value of the 16-bit counter in message ids. Any value is valid.
    package init(
        _ connection: StoreConnection,
        userIDs: UserIDSource,
        firstCounter: UInt16 = 0
    ) throws {
        self.connection = connection
        transaction = try WriteTransaction(connection, userIDs: userIDs, counter: firstCounter)
    }

    /// Returns the end of the clock's lease that the last commit wrote to the disk; 0 in a new
    /// store.
    ///
    /// - Throws: `ImpossibleRow` for a time that does not fit into message ids.
    package func persistedLeaseEnd() throws -> Int64 {
        let clock = try time("ct")
        if let leaseEnd = try time(StoreConnection.leaseKey) { return leaseEnd }
        // Older servers did not store the end of the lease. Their lease began at the commit clock.
        return clock.map { $0 + Int64(connection.limits.commitLeaseMs) } ?? 0
    }

    private func time(_ key: String) throws -> Int64? {
        guard let time = try connection.meta.value(key) else { return nil }
        guard MessageID.times.contains(time) else { throw ImpossibleRow("meta \(key)", time) }
        return time
    }

    /// Whether the word index may lack words of stored messages.
    package var hasWordsToIndex: Bool { transaction.hasWordsToIndex }

    /// Whether deletions that run in several steps may be pending.
    package var mayHavePurges: Bool { transaction.mayHavePurges }

    /// Opens the transaction of a batch.
    package func begin(_ stamp: CommitStamp) throws -> WriteTransaction {
        try connection.sql.begin(.immediate)
        leaseEnd = stamp.leaseEnd
        transaction.open(ct: stamp.ct)
        return transaction
    }

    /// Writes the changes of the batch to the database and commits the transaction.
    ///
    /// - Returns: the events of the batch, in the order of its commands.
    /// - Throws: any error of the store. The caller must then call `rollback`.
    package func commit() throws -> [Event] {
        try transaction.flush()
        try connection.meta.set("ct", transaction.ct)
        try connection.meta.set(StoreConnection.leaseKey, leaseEnd)
        try connection.sql.commit()
        return transaction.close()
    }

    /// Ends a batch that has written nothing. Does not wait for the disk.
    package func finishUnwritten() {
        connection.sql.rollback()
        _ = transaction.close()
    }

    /// Discards the batch and the whole cache, which may contain changes of the batch.
    package func rollback() {
        connection.sql.rollback()
        transaction.abandon()
    }
}
