import TambourProtocol
import TambourTesting
import Testing

@testable import tambour_spec

/// Gives fields wrong types and sizes, removes fields, and repeats fields. The error must name the
/// mutated field.
@Suite("Mutations of example requests")
struct TypedMutationTests {
    /// A place in a payload where a field is, or where an absent field could be.
    private struct Site {
        /// The keys and indexes from the top of the payload.
        var steps: [Step]
        var field: Field
        var type: WireType
        var isPresent: Bool

        var path: String { steps.map { "/\($0)" }.joined() }
    }

    private enum Step: CustomStringConvertible {
        case key(String)
        case index(Int)

        var description: String {
            switch self {
            case .key(let key): key
            case .index(let index): "\(index)"
            }
        }
    }

    @Test("name the mutated field, in the same words as the schema's own reader")
    func nameTheField() throws {
        let specification = try Repository.specification()
        let model = PayloadModel(specification: specification)
        var requests: [(opcode: OpcodeEntry, type: StructType, value: WireNode)] = []
        for file in specification.examples {
            let opcode = try #require(specification.opcode(named: file.opcode))
            for example in file.examples where example.role == .request {
                requests.append((opcode, try #require(opcode.request), try #require(example.value)))
            }
        }
        requests.removeAll { $0.type.fields.isEmpty }

        var touched: Set<String> = []
        var kinds: [String: Int] = [:]
        for seed in 0..<500 {
            var random = SeededGenerator(seed: UInt64(seed))
            var request = requests[0]
            var found: (site: Site, mutation: Mutation)?
            while found == nil {
                request = requests[Int.random(in: requests.indices, using: &random)]
                let sites = sites(of: request.value, as: request.type, at: [], in: specification)
                let site = sites[Int.random(in: sites.indices, using: &random)]
                var mutations = mutations(of: site, in: specification)
                // Few fields have a closed set of values. So every 25th seed tries only mutations
                // with an unknown value.
                if seed.isMultiple(of: 25) { mutations.removeAll { $0.name != "unknown value" } }
                if let mutation = mutations.randomElement(using: &random) {
                    found = (site, mutation)
                }
            }
            let (site, mutation) = try #require(found)
            let mutant = apply(mutation.change, at: site.steps[...], to: request.value)
            let payload = WireEncoder.encode(mutant)
            let name = "seed \(seed): \(request.opcode.name) \(site.path) \(mutation.name)"

            let error = #expect(throws: PayloadError.self, "\(name)") {
                try ClientRequest.decode(
                    Opcode(rawValue: UInt16(request.opcode.number)),
                    payload,
                    limits: .standard
                )
            }
            #expect(error?.path == site.path, "\(name)")
            let opinion = #expect(throws: PayloadModel.Refusal.self, "\(name)") {
                try model.canonical(try WireDecoder.decode(payload), as: request.type)
            }
            #expect(error?.description == opinion?.description, "\(name)")
            touched.insert("\(request.type.name)\(site.path)")
            kinds[mutation.name, default: 0] += 1
        }
        #expect(touched.count > 100, "\(touched.count) places")
        #expect(
            kinds.keys.sorted() == [
                "duplicate", "missing", "over a limit", "unknown value", "wrong type",
            ]
        )
    }

    // MARK: Sites

    private func sites(
        of value: WireNode,
        as type: StructType,
        at steps: [Step],
        in specification: Specification
    ) -> [Site] {
        var sites: [Site] = []
        for field in type.fields {
            let present = value[field.key]
            let steps = steps + [.key(field.key)]
            sites.append(
                Site(steps: steps, field: field, type: field.type, isPresent: present != nil)
            )
            if let present { sites += inner(of: present, field.type, field, steps, specification) }
        }
        return sites
    }

    private func inner(
        of value: WireNode,
        _ type: WireType,
        _ field: Field,
        _ steps: [Step],
        _ specification: Specification
    ) -> [Site] {
        switch (type, value) {
        case (.named(let name), _):
            guard let type = specification.structType(named: name) else { return [] }
            return sites(of: value, as: type, at: steps, in: specification)
        case (.list(let element), .array(let items)):
            return items.enumerated().flatMap { index, item in
                let steps = steps + [.index(index)]
                return [Site(steps: steps, field: field, type: element, isPresent: true)]
                    + inner(of: item, element, field, steps, specification)
            }
        default: return []
        }
    }

    // MARK: Mutations

    private struct Mutation {
        enum Change {
            case set(WireNode)
            case remove
            case repeated
        }

        var name: String
        var change: Change
    }

    private func mutations(of site: Site, in specification: Specification) -> [Mutation] {
        var mutations = wrongValues(for: site.type, in: specification).map {
            Mutation(name: "wrong type", change: .set($0))
        }
        if let value = tooLarge(site, in: specification) {
            mutations.append(Mutation(name: "over a limit", change: .set(value)))
        }
        guard case .key = site.steps.last else { return mutations }
        if site.isPresent { mutations.append(Mutation(name: "duplicate", change: .repeated)) }
        if site.field.isRequired {
            mutations.append(Mutation(name: "missing", change: .remove))
            if site.type != .any {
                mutations.append(Mutation(name: "wrong type", change: .set(.null)))
            }
        }
        if case .named(let name) = site.type, specification.enumType(named: name)?.isOpen == false {
            mutations.append(Mutation(name: "unknown value", change: .set(.string("NOBODY_KNOWS"))))
        }
        return mutations
    }

    private func wrongValues(for type: WireType, in specification: Specification) -> [WireNode] {
        let isStruct =
            if case .named(let name) = type { specification.structType(named: name) != nil } else {
                false
            }
        return switch type {
        case .bool: [.int(1), .string("true"), .map([])]
        case .int, .ms: [.string("1"), .bool(true), .double(1), .uint(1 << 63), .array([])]
        case .chatID, .userID, .messageID:
            [
                .string("x1"), .string(""), .bool(true), .double(1), .uint(1 << 63),
                .string("9223372036854775808"),
            ]
        case .double: [.string("1.5"), .bool(true), .array([.double(1)])]
        case .text, .string:
            [.int(1), .bytes([0x61]), .bool(false), .badString([0xC3, 0x28]), .array([])]
        case .bytes: [.int(1), .bool(true)]
        case .any: []
        case .list, .packed: [.map([]), .string("x"), .int(0)]
        case .map, .names: [.array([]), .string("x"), .int(0)]
        case .named:
            isStruct
                ? [.array([]), .string("x"), .int(0)] : [.int(1), .map([]), .badString([0xFF])]
        }
    }

    private func tooLarge(_ site: Site, in specification: Specification) -> WireNode? {
        func size(_ limit: String?) -> Int? {
            limit.flatMap { specification.limit(named: $0)?.value }.map { $0 + 1 }
        }
        switch site.type {
        case .text, .string:
            return (size(site.field.limitUnits) ?? size(site.field.limitBytes)).map {
                .string(String(repeating: "a", count: $0))
            }
        case .list:
            return size(site.field.limitItems.first).map {
                .array(Array(repeating: .int(1), count: $0))
            }
        case .named(let name) where specification.enumType(named: name) != nil:
            return size("maxShortStringBytes").map { .string(String(repeating: "A", count: $0)) }
        default: return nil
        }
    }

    private func apply(_ change: Mutation.Change, at steps: ArraySlice<Step>, to value: WireNode)
        -> WireNode
    {
        guard let step = steps.first else {
            guard case .set(let new) = change else { return value }
            return new
        }
        switch (step, value) {
        case (.index(let index), .array(var items)):
            items[index] = apply(change, at: steps.dropFirst(), to: items[index])
            return .array(items)
        case (.key(let key), .map(var pairs)):
            let index = pairs.firstIndex { $0.key == .string(key) }
            if steps.count > 1, let index {
                pairs[index].value = apply(change, at: steps.dropFirst(), to: pairs[index].value)
                return .map(pairs)
            }
            switch (change, index) {
            case (.remove, let index?): pairs.remove(at: index)
            case (.repeated, let index?): pairs.append(pairs[index])
            case (.set(let new), let index?): pairs[index].value = new
            case (.set(let new), nil): pairs.append(.init(key: .string(key), value: new))
            default: break
            }
            return .map(pairs)
        default: return value
        }
    }
}
