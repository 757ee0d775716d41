/// The error for a stored number that no server writes, such as a number out of its range. The
/// request that reads the number fails; if the server reads it at its start, the start fails.
package struct ImpossibleRow: Error, Equatable, CustomStringConvertible {
    /// The row and its column, such as `meta ct_lease`.
    package let place: String
    package let value: Int64

    package init(_ place: String, _ value: Int64) {
        self.place = place
        self.value = value
    }

    package var description: String {
        "\(place) is \(value), which no server writes: the store is damaged. "
            + "`tambourd admin check` lists such rows; restore a backup"
    }
}
