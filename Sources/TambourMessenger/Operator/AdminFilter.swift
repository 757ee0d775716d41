/// The filters of an admin command that lists rows, written as words `key=value`.
package struct AdminFilter: Equatable, Sendable {
    package enum Key: String, CaseIterable, Sendable {
        case user, chat
        case state, kind, action
        /// A part of the field's text. Upper and lower case count as equal.
        case name, title, client, address
        /// The first digits of the phone.
        case phone
        /// The smallest number of days since the user or session was last seen.
        case idleDays = "idle-days"
        /// The largest number of days since the event of an audit entry last happened.
        case days
        case minMembers = "min-members"
        /// The id in the last line of the previous page.
        case after
        case limit
    }

    private var values: [Key: String] = [:]

    package init() {}

    package init(_ values: [Key: String]) {
        self.values = values
    }

    init?(words: some Sequence<String>) {
        for word in words {
            guard let equals = word.firstIndex(of: "="),
                let key = Key(rawValue: String(word[..<equals]))
            else { return nil }
            values[key] = String(word[word.index(after: equals)...])
        }
    }

    var words: [String] {
        values.map { "\($0.key.rawValue)=\($0.value)" }.sorted()
    }

    subscript(key: Key) -> String? { values[key] }

    /// - Throws: `AdminService.Failure` if there is a value that is not a number.
    func number(_ key: Key) throws -> Int64? {
        guard let value = values[key] else { return nil }
        guard let number = Int64(value) else {
            throw AdminService.Failure("\(key.rawValue) is no number", typed: value)
        }
        return number
    }

    /// Returns a number of days. The limit of a century prevents an overflow of the resulting time.
    ///
    /// - Throws: `AdminService.Failure` if there is a value that is not between 0 and a century.
    func days(_ key: Key) throws -> Int64? {
        guard let days = try number(key) else { return nil }
        guard Self.dayRange.contains(days) else {
            throw AdminService.Failure(
                description:
                    "\(key.rawValue): \(days) is not \(Self.dayRange.lowerBound) to "
                    + "\(Self.dayRange.upperBound) days"
            )
        }
        return days
    }

    private static let dayRange: ClosedRange<Int64> = 0...36_500

    /// - Throws: `AdminService.Failure` if there is a value that is not in `choices`.
    func choice(_ key: Key, of choices: [String]) throws -> String? {
        guard let value = values[key] else { return nil }
        guard choices.contains(value) else {
            throw AdminService.Failure(
                description: "\(key.rawValue): \(choices.joined(separator: ", "))"
            )
        }
        return value
    }

    /// Returns whether `text` contains the filter's value for `key`. Returns true if the filter has
    /// no such value.
    func matches(_ key: Key, _ text: String) -> Bool {
        guard let part = values[key] else { return true }
        return text.lowercased().contains(part.lowercased())
    }
}
