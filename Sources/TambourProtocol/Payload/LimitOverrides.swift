/// An override of a limit that makes no sense.
package enum LimitError: Error, Equatable, Sendable, CustomStringConvertible {
    case unknown(String)
    case outOfRange(String, value: Int, max: Int?)

    package var description: String {
        switch self {
        case .unknown(let name): "there is no limit \(name)"
        case .outOfRange(let name, let value, nil): "\(name) cannot be \(value): it is at least 1"
        case .outOfRange(let name, let value, let max?): "\(name) cannot be \(value): it is from 1 to \(max)"
        }
    }
}

/// Hands out overrides by name and remembers what was wrong with them.
struct LimitOverrides {
    private var left: [String: Int]
    private var error: LimitError?

    init(_ overrides: [String: Int]) { left = overrides }

    mutating func value(of name: String, standard: Int, max: Int? = nil) -> Int {
        guard let value = left.removeValue(forKey: name) else { return standard }
        guard value >= 1, value <= max ?? .max else {
            error = error ?? .outOfRange(name, value: value, max: max)
            return standard
        }
        return value
    }

    /// - Throws: The first thing that was wrong; a name nobody asked for is unknown.
    func finish() throws(LimitError) {
        if let error { throw error }
        if let name = left.keys.min() { throw .unknown(name) }
    }
}
