/// Generates `Limits`: every limit with its value.
struct LimitsSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/limits.yaml")
        source.doc("Every limit there is. Immutable; an override makes another one.")
        source.block("package final class Limits: Sendable") { source in
            for limit in specification.limits {
                source.doc("\(literal(limit.value)) \(limit.unit). \(limit.reason)")
                source.line("package let \(limit.name): Int")
            }
            source.line()
            source.doc("The values of the specification.")
            source.line("package static let standard = Limits()")
            source.line()
            source.doc("For what was checked before: nothing is over a limit.")
            source.line("static let unlimited = Limits(unlimited: ())")
            source.line()
            source.block("private init(_ overrides: inout LimitOverrides)") { source in
                for limit in specification.limits {
                    let most = limit.max.map { ", max: \(literal($0))" } ?? ""
                    source.line(
                        "\(limit.name) = overrides.value(of: \(literal(limit.name)), standard: \(literal(limit.value))\(most))"
                    )
                }
            }
            source.line()
            source.block("private convenience init()") { source in
                source.line("var none = LimitOverrides([:])")
                source.line("self.init(&none)")
            }
            source.line()
            source.block("private convenience init(unlimited: Void)") { source in
                source.line("var all = LimitOverrides.unlimited")
                source.line("self.init(&all)")
            }
            source.line()
            source.doc("The values of the specification but for some.")
            source.doc("- Throws: `LimitError` naming what is unknown or out of range.")
            source.block("package convenience init(overrides: [String: Int]) throws(LimitError)") {
                source in
                source.line("var left = LimitOverrides(overrides)")
                source.line("self.init(&left)")
                source.line("try left.finish()")
            }
        }
        return source.text
    }
}
