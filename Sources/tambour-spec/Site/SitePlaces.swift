/// Finds the page and the anchor of every possible link target on the site.
struct SitePlaces {
    /// A possible target of a link.
    enum Target: Hashable {
        case opcode(String)
        case error(String)
        case limit(String)
        case bucket(String)
        case capability(String)
        case feature(String)
        /// A struct or enumeration of `types.yaml`.
        case type(String)
        case field(PacketAnatomy.FieldName)
        case state(String)
        case chapter(String)
        case flow(String)
        case requirement(String)
    }

    /// A page and an anchor on it. `page` is the path relative to the root, without a suffix.
    struct Place: Equatable {
        var page: String
        var anchor: String?
    }

    private let pageOfOpcode: [String: String]
    private let pageOfRequirement: [String: String]
    /// For the name of each payload struct: its opcode, and its part (request, reply or push).
    private let payloads: [String: (opcode: String, part: String)]
    private let names: [String: Target]

    init(_ specification: Specification) {
        var pageOfOpcode: [String: String] = [:]
        var payloads: [String: (opcode: String, part: String)] = [:]
        var names: [String: Target] = [:]
        for type in specification.structs { names[type.name] = .type(type.name) }
        for type in specification.enums { names[type.name] = .type(type.name) }
        for state in specification.states { names[state.name] = .state(state.name) }
        for entry in specification.gates { names[entry.name] = .capability(entry.name) }
        for entry in specification.features { names[entry.name] = .feature(entry.name) }
        for limit in specification.limits { names[limit.name] = .limit(limit.name) }
        for error in specification.errors { names[error.code] = .error(error.code) }
        for family in specification.families {
            for opcode in family.opcodes {
                pageOfOpcode[opcode.name] = "\(family.name)/\(opcode.name)"
                names[opcode.name] = .opcode(opcode.name)
                for (part, type) in opcode.payloads { payloads[type.name] = (opcode.name, part) }
            }
        }
        var pageOfRequirement: [String: String] = [:]
        for requirement in specification.requirements {
            switch requirement.place {
            case .chapter(let name): pageOfRequirement[requirement.id] = Self.page(ofChapter: name)
            case .opcode(let name): pageOfRequirement[requirement.id] = pageOfOpcode[name]
            }
        }
        self.pageOfOpcode = pageOfOpcode
        self.pageOfRequirement = pageOfRequirement
        self.payloads = payloads
        self.names = names
    }

    /// Returns the link target of a word in the specification's texts; nil if the word has no
    /// target.
    func target(named name: String) -> Target? { names[name] }

    func place(of target: Target) -> Place {
        switch target {
        case .opcode(let name): Place(page: pageOfOpcode[name] ?? "opcodes", anchor: nil)
        case .error(let code): Place(page: "errors", anchor: code)
        case .limit(let name): Place(page: "limits", anchor: name)
        case .bucket(let name): Place(page: "costs", anchor: name)
        case .capability(let name), .feature(let name):
            Place(page: "capabilities", anchor: name)
        case .type(let name): Place(page: "types", anchor: name)
        case .field(let field):
            if let payload = payloads[field.type] {
                Place(
                    page: pageOfOpcode[payload.opcode] ?? "opcodes",
                    anchor: "\(payload.part).\(field.key)"
                )
            } else {
                Place(page: "types", anchor: "\(field.type).\(field.key)")
            }
        case .state(let name): Place(page: "opcodes", anchor: name)
        case .chapter(let name): Place(page: Self.page(ofChapter: name), anchor: nil)
        case .flow(let name): Place(page: "flows/\(name)", anchor: nil)
        case .requirement(let id): Place(page: pageOfRequirement[id] ?? "requirements", anchor: id)
        }
    }

    /// Returns the relative address of a target.
    ///
    /// - Parameters:
    ///   - page: The page that contains the link.
    ///   - suffix: The suffix of the page's file: `html` for links in HTML, which MkDocs leaves
    ///     unchanged; `md` for links in Markdown, which MkDocs checks and rewrites.
    func address(of target: Target, from page: String, suffix: String = "html") -> String {
        let place = place(of: target)
        let anchor = place.anchor.map { "#\($0)" } ?? ""
        if place.page == page, !anchor.isEmpty { return anchor }
        return Self.up(from: page) + "\(place.page).\(suffix)\(anchor)"
    }

    /// Chapters have their own folder, because a chapter and a family may have the same name.
    private static func page(ofChapter name: String) -> String { "protocol/\(name)" }

    /// Returns the relative path from a page to the root.
    static func up(from page: String) -> String {
        page.split(separator: "/").dropLast().map { _ in "../" }.joined()
    }
}

extension OpcodeEntry {
    /// The payloads of the opcode. `part` is the name of a payload in headings and anchors.
    var payloads: [(part: String, type: StructType)] {
        [("request", request), ("reply", reply), ("push", push)].compactMap { part, type in
            type.map { (part, $0) }
        }
    }
}
