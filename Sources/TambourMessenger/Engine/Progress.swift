import TambourProtocol
import TambourStore

/// The result of one step of a request that takes several transactions. Other requests run between
/// the steps.
package enum Progress<Transaction, Reply: Sendable>: Sendable {
    case finished(Reply)
    /// The next step. A crash may lose the later steps of a command. Therefore a command has
    /// several steps only if clients may retry it. Each step of a query sees a later snapshot.
    case more(@Sendable (Transaction) throws -> Progress)
}

extension ReadTransaction {
    /// Calls `take` for one item after another until it returns false. A step ends after
    /// `itemsPerReadStep` items or after reading `rowsPerReadStep` rows. The next step takes the
    /// remaining items.
    ///
    /// - Parameters:
    ///   - state: the results that `take` collects.
    ///   - resume: called at the start of each further step. Each step sees a later snapshot than
    ///     the previous one.
    ///   - finish: called at the end of the last step.
    func inSteps<Item: Sendable, State: Sendable, Reply: Sendable>(
        _ items: ArraySlice<Item>,
        _ state: State,
        resume: @escaping @Sendable (inout State, ReadTransaction) throws -> Void = { _, _ in },
        take: @escaping @Sendable (Item, inout State, ReadTransaction) throws -> Bool,
        finish: @escaping @Sendable (State, ReadTransaction) throws -> Reply
    ) throws -> Progress<ReadTransaction, Reply> {
        var state = state
        for (place, item) in zip(items.indices, items) {
            let taken = place - items.startIndex
            if taken >= limits.itemsPerReadStep || taken > 0 && rowsRead >= limits.rowsPerReadStep {
                return .more { [state] next in
                    var state = state
                    try resume(&state, next)
                    return try next.inSteps(
                        items[place...],
                        state,
                        resume: resume,
                        take: take,
                        finish: finish
                    )
                }
            }
            guard try take(item, &state, self) else { break }
        }
        return .finished(try finish(state, self))
    }
}
