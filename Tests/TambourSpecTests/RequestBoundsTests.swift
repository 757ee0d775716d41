import TambourProtocol
import Testing

@testable import tambour_spec

/// Tests the bounds that the specification gives requests, with the generated readers. Takes all
/// fields from the specification, and so also tests fields that are added later.
@Suite("Bounds of requests")
struct RequestBoundsTests {
    private let samples: RequestSamples
    private let model: PayloadModel

    init() throws {
        let specification = try Repository.specification()
        samples = RequestSamples(specification: specification)
        model = PayloadModel(specification: specification)
    }

    /// Returns the generated reader's refusal of a request; nil if it accepts the request. Expects
    /// the same result from the schema's own reader.
    private func refusal(ofRequest request: WireNode, at site: RequestSamples.Site) throws
        -> String?
    {
        let opcode = Opcode(rawValue: UInt16(site.opcode.number))
        let type = try #require(site.opcode.request)
        var refusal: String?
        do {
            _ = try ClientRequest.decode(opcode, WireEncoder.encode(request), limits: .standard)
        } catch {
            refusal = error.description
        }
        var opinion: String?
        do {
            _ = try model.canonical(request, as: type)
        } catch {
            opinion = error.description
        }
        #expect(refusal == opinion, "\(site)")
        return refusal
    }

    private func refusal(of value: WireNode, at site: RequestSamples.Site) throws -> String? {
        let request = try #require(samples.request(with: value, at: site), "\(site)")
        return try refusal(ofRequest: request, at: site)
    }

    private func limit(_ name: String) throws -> Int {
        try #require(samples.specification.limit(named: name)?.value)
    }

    /// Puts a value into one item of each list and map that a field's type contains. Returns the
    /// result, and the path to the value in it.
    private func wrapped(_ value: WireNode, in type: WireType) -> (value: WireNode, path: String) {
        switch type {
        case .list(let inner):
            let (value, path) = wrapped(value, in: inner)
            return (.array([value]), "/0" + path)
        case .map(_, let inner):
            let (value, path) = wrapped(value, in: inner)
            return (.map([.init(key: .string("1"), value: value)]), "/1" + path)
        case .names(let inner):
            let (value, path) = wrapped(value, in: inner)
            return (.map([.init(key: .string("a"), value: value)]), "/a" + path)
        case .packed(let inner): return wrapped(value, in: inner)
        default: return (value, "")
        }
    }

    // MARK: Values of any type

    private static let hostile: [(name: String, value: WireNode, reason: String)] = {
        func lists(_ depth: Int) -> WireNode {
            (0..<depth).reduce(.null) { value, _ in .array([value]) }
        }
        return [
            (
                "a list as a key", .map([.init(key: .array([.int(1)]), value: .int(1))]),
                "expected a string as a key, found an array"
            ),
            (
                "a map as a key", .map([.init(key: .map([]), value: .int(1))]),
                "expected a string as a key, found a map"
            ),
            (
                "a timestamp with bad nanoseconds",
                .ext(type: -1, Array(repeating: 0xFF, count: 8)),
                "an extension, which clients cannot read"
            ),
            (
                "junk of type 1", .array([.ext(type: 1, [0xC1, 0xC1])]),
                "an extension, which clients cannot read"
            ),
            ("28 lists", lists(28), "nested deeper than 8"),
            ("9 lists", lists(9), "nested deeper than 8"),
        ]
    }()

    @Test("an `any` that some client cannot decode is refused in every field that keeps one")
    func hostileValues() throws {
        var fields: Set<String> = []
        for site in samples.sites() where Shape(site.field.type).leaf == .any {
            for (name, value, reason) in Self.hostile {
                let (value, path) = wrapped(value, in: site.field.type)
                let refusal = try refusal(of: value, at: site)
                guard site.field.anyCheck == .reader else {
                    #expect(refusal == nil, "\(site): \(name)")
                    continue
                }
                #expect(refusal == "\(site.path)\(path): \(reason)", "\(site): \(name)")
                fields.insert("\(site.owner.name).\(site.field.key)")
            }
        }
        #expect(fields.isSuperset(of: ["Element.attributes", "SettingsChange.chats"]), "\(fields)")
        #expect(fields.count >= 8, "\(fields)")
    }

    @Test("an `any` over its bound of bytes is refused, one at its bound is read")
    func largeValues() throws {
        for site in samples.sites()
        where Shape(site.field.type).leaf == .any && site.field.anyCheck == .reader {
            let most = try limit(try #require(site.field.limitBytes, "\(site)"))
            // The header of a string has three bytes if the string has 256 bytes or more.
            let header = most - 2 < 256 ? 2 : 3
            for (length, excess) in [(most - header, 0), (most - header + 1, 1)] {
                let text = WireNode.string(String(repeating: "a", count: length))
                let (value, path) = wrapped(text, in: site.field.type)
                let reason = "\(site.path)\(path): \(most + 1) bytes, limit \(most)"
                #expect(try refusal(of: value, at: site) == (excess == 0 ? nil : reason))
            }
        }
    }

    // MARK: Lists and maps

    /// Returns a container with `count` items or entries, which differ where possible.
    private func filled(_ type: WireType, _ count: Int) -> WireNode {
        switch type {
        case .list(let item):
            return .array(
                (0..<count).map { index in
                    item.isID || item == .int ? .int(Int64(index)) : samples.least(item)
                }
            )
        case .map(_, let value), .names(let value):
            return .map(
                (0..<count).map { .init(key: .string("\($0)"), value: samples.least(value)) }
            )
        case .packed(let inner): return filled(inner, count)
        default: return samples.least(type)
        }
    }

    @Test("a list or map of a request with one entry too many is refused, at every level")
    func tooManyItems() throws {
        var count = 0
        for site in samples.sites() {
            var type = site.field.type
            var outer: [WireType] = []
            for name in site.field.limitItems {
                let most = try limit(name)
                // A frame has no room for more items than 20,000.
                guard most <= 20_000 else { continue }
                let container = outer.reduce(filled(type, most + 1)) { value, outer in
                    if case .list = outer { return .array([value]) }
                    return .map([.init(key: .string("1"), value: value)])
                }
                let path = site.path + outer.map { _ in "/1" }.joined()
                #expect(
                    try refusal(of: container, at: site)
                        == "\(path): \(most + 1) items, limit \(most)"
                )
                count += 1
                outer.insert(type, at: 0)
                switch type {
                case .list(let inner), .map(_, let inner), .names(let inner): type = inner
                default: break
                }
            }
        }
        #expect(count > 40)
    }

    @Test("no list or map of a request is without a bound, and none may name a thing twice unsaid")
    func everythingIsBounded() throws {
        for site in samples.sites() {
            let shape = Shape(site.field.type)
            #expect(site.field.limitItems.count == shape.containers.count, "\(site)")
            if shape.containers.contains(where: { $0 != .list }) {
                #expect(site.field.duplicates != nil, "\(site)")
            }
        }
    }

    @Test("a thing that is named twice is merged or refused as the field says")
    func duplicates() throws {
        var merged = 0
        for site in samples.sites() {
            guard let duplicates = site.field.duplicates else { continue }
            let twice: WireNode
            switch site.field.type {
            case .map(_, let value), .names(let value):
                let pair = WireNode.Pair(key: .string("1"), value: samples.least(value))
                twice = .map([pair, pair])
            case .list(let item): twice = .array([samples.least(item), samples.least(item)])
            default: continue
            }
            let refusal = try refusal(of: twice, at: site)
            #expect((refusal != nil) == (duplicates == .refused), "\(site): \(refusal ?? "")")
            if duplicates == .merged { merged += 1 }
        }
        #expect(merged > 20)
    }
}
