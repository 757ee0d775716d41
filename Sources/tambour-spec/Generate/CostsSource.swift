/// Generates `RateBucket`, `RequestCost`, and the function that counts the items of a request.
struct CostsSource {
    let specification: Specification

    func text() -> String {
        var source = SourceText(from: "protocol-spec/protocol.yaml and protocol-spec/opcodes/")
        writeBuckets(to: &source)
        source.line()
        writeCost(to: &source)
        let kinds: [(OpcodeEntry.Kind, String)] = [
            (.session, "SessionRequest"), (.query, "QueryRequest"), (.command, "CommandRequest"),
        ]
        for (kind, type) in kinds {
            source.line()
            writeItems(of: kind, type: type, to: &source)
        }
        source.line()
        source.doc(
            "How many items of a page are paid: what is above the limit is not served. No limit of an operator lets a price overflow."
        )
        source.block("private func paid(_ asked: Int64?, page: Int, most: Int) -> Int") { source in
            source.line("Int(min(max(asked ?? Int64(page), 0), Int64(most), 1 << 32))")
        }
        return source.text
    }

    private func writeBuckets(to source: inout SourceText) {
        let buckets = specification.buckets
        source.doc("A token bucket that requests are paid from.")
        source.block("package enum RateBucket: UInt8, CaseIterable, Sendable") { source in
            for bucket in buckets {
                source.doc(bucket.doc)
                source.line("case \(bucket.name)")
            }
            source.line()
            source.doc(
                "Whose bucket it is: an account's; before login an address's as well; a connection's or an address's, before login."
            )
            let owners = RateBucketEntry.Owner.allCases.map(\.rawValue).joined(separator: ", ")
            source.line("package enum Owner: Sendable { case \(owners) }")
            source.line()
            func property(_ opening: String, _ value: (RateBucketEntry) -> String) {
                source.block(opening) { source in
                    source.block("switch self") { source in
                        for bucket in buckets {
                            source.line("case .\(bucket.name): \(value(bucket))")
                        }
                    }
                }
            }
            property("package var owner: Owner") { ".\($0.owner.rawValue)" }
            source.line()
            source.doc("How many units it holds.")
            property("package func burst(in limits: Limits) -> Int") { "limits.\($0.burst)" }
            source.line()
            source.doc("How many units it gets back.")
            property("package func perMinute(in limits: Limits) -> Int") {
                "limits.\($0.perMinute)"
            }
            source.line()
            source.doc("The names of these two limits.")
            property("package var limitNames: (burst: String, perMinute: String)") {
                "(\(literal($0.burst)), \(literal($0.perMinute)))"
            }
        }
    }

    private func writeCost(to source: inout SourceText) {
        source.doc("What a request costs.")
        source.block("package struct RequestCost: Sendable") { source in
            source.doc("What it is paid from.")
            source.line("package let bucket: RateBucket")
            source.doc("What other forms of the request are paid from.")
            source.line("package let also: [RateBucket]")
            source.doc("What it costs by itself.")
            source.line("package let units: Int")
            source.doc("What each item that it asks for costs.")
            source.line("package let itemUnits: Int")
            source.doc("The most rows that it reads and writes, in any store.")
            source.line("package let rowsRead: Int")
            source.line("package let rowsWritten: Int")
            source.doc("By how much it can grow the store, bytes.")
            source.line("package let bytesStored: Int")
            source.doc("The most bytes of pushes for each receiver.")
            source.line("package let bytesTold: Int")
            source.doc("Who is told, beside the session that asks.")
            let audiences = CostEntry.Audience.allCases.map(\.rawValue).joined(separator: ", ")
            source.line("package enum Audience: Sendable { case \(audiences) }")
            source.line("package let tells: Audience")
            source.doc(
                "How long it keeps its queue busy: up to a millisecond, up to ten, or longer on a queue of its own."
            )
            let classes = CostEntry.Processor.allCases.map(\.rawValue).joined(separator: ", ")
            source.line("package enum Processor: Sendable { case \(classes) }")
            source.line("package let processor: Processor")
        }
    }

    private func writeItems(
        of kind: OpcodeEntry.Kind,
        type: String,
        to source: inout SourceText
    ) {
        let opcodes = specification.families.flatMap(\.opcodes)
            .filter { $0.kind == kind && $0.cost?.perItem.isEmpty == false }
            .sorted { $0.number < $1.number }
        source.block("extension \(type)") { source in
            source.doc("How many items it asks for, of those that each cost something.")
            source.block("package func items(in limits: Limits) -> Int") { source in
                guard !opcodes.isEmpty else { return source.line("0") }
                source.block("switch self") { source in
                    for opcode in opcodes {
                        source.line(
                            "case .\(Names.camel(fromUpper: opcode.name))(let request): \(items(of: opcode))"
                        )
                    }
                    source.line("default: 0")
                }
            }
        }
    }

    /// Returns the Swift expression for the number of items of a request.
    private func items(of opcode: OpcodeEntry) -> String {
        guard let cost = opcode.cost, let request = opcode.request else { return "0" }
        let counts = cost.perItem.compactMap { path in
            specification.field(at: path, of: request).map { found in
                let value = "request.\(found.swift)"
                let isMissing = found.field.isOptional || found.swift.contains("?")
                guard found.field.type == .int else {
                    return isMissing
                        ? "(\(value)\(found.field.isOptional ? "?" : "").count ?? 0)"
                        : "\(value).count"
                }
                let page = cost.pageSize.map { "limits.\($0)" } ?? "0"
                return "paid(\(value), page: \(page), most: limits.\(cost.maxPage ?? "?"))"
            }
        }
        return counts.joined(separator: " + ")
    }

    /// Returns the Swift expression that creates the `RequestCost` of an entry.
    static func argument(_ cost: CostEntry) -> String {
        let also = cost.also.map { ".\($0)" }.joined(separator: ", ")
        return
            "RequestCost(bucket: .\(cost.bucket), also: [\(also)], units: \(cost.units), itemUnits: \(cost.itemUnits), rowsRead: \(cost.rowsRead), rowsWritten: \(cost.rowsWritten), bytesStored: \(cost.bytesStored), bytesTold: \(cost.bytesTold), tells: .\(cost.tells.rawValue), processor: .\(cost.processor.rawValue))"
    }
}
