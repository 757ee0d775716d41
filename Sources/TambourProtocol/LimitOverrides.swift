/// Supplies overrides by name while `Limits` is created. `finish` reports invalid overrides.
struct LimitOverrides {
    private var left: [String: Int]
    private var errors: [LimitError] = []
    private var areLimitsOff = false

    /// Overrides that set every limit to its highest legal value.
    static var unlimited: LimitOverrides {
        var overrides = LimitOverrides([:])
        overrides.areLimitsOff = true
        return overrides
    }

    init(_ overrides: [String: Int]) {
        left = overrides
    }

    /// Returns the override of a limit. If there is no valid override, returns `standard`. If
    /// limits are off, returns `max`.
    mutating func value(of name: String, standard: Int, max: Int = Int(Int32.max)) -> Int {
        if areLimitsOff { return max }
        guard let override = left.removeValue(forKey: name) else { return standard }
        if override < 1 {
            errors.append(LimitError(name: name, reason: "\(override) is below 1"))
            return standard
        }
        if override > max {
            errors.append(LimitError(name: name, reason: "\(override) is above \(max)"))
            return standard
        }
        return override
    }

    /// - Throws: `LimitError` for an invalid override or an unknown limit. Of several errors,
    ///   throws the one whose limit comes first in the alphabet.
    func finish() throws(LimitError) {
        let unknown = left.keys.map { LimitError(name: $0, reason: "there is no such limit") }
        guard let first = (errors + unknown).min(by: { $0.name < $1.name }) else { return }
        throw first
    }
}
