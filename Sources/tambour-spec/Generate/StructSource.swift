/// Generates the Swift type of one struct: properties, initializer, reader and writer.
struct StructSource {
    let type: StructType
    let specification: Specification
    /// Whether the reader rejects values over a limit.
    let isHeldAgainstLimits: Bool

    /// The maximum number of fields of an object that is stored in place. The program stores a
    /// larger object behind a reference, because the object is copied often on its way from the
    /// reader to a push. Each copy of its fields would retain a dozen references.
    private static let mostFieldsInPlace = 12

    private var isShared: Bool {
        type.role == .object && type.properties.count > Self.mostFieldsInPlace
    }

    func write(to source: inout SourceText) {
        let conformance = type.role == .object ? "WireValue" : "WirePayload"
        source.doc(type.doc)
        source.block("package struct \(type.name): \(conformance), Hashable") { source in
            for field in type.properties { writeProperty(field, to: &source) }
            if !type.properties.isEmpty { source.line() }
            if isShared { writeStorage(to: &source) }
            writeInitializer(to: &source)
            source.line()
            writeReader(to: &source)
            source.line()
            writeWriter(to: &source)
            writeProjection(to: &source)
        }
        if type.properties.contains(where: \.isSensitive) { writeMirror(to: &source) }
    }

    // MARK: Properties and initializer

    private func name(_ field: Field) -> String { Names.escaped(field.swiftName) }

    private func propertyType(_ field: Field) -> String {
        field.type.swift + (field.isOptional ? "?" : "")
    }

    private func writeProperty(_ field: Field, to source: inout SourceText) {
        let condition = field.capability.map {
            specification.isDialect($0)
                ? " Only in the dialect `\($0)`." : " Only for clients with the capability `\($0)`."
        }
        let forms = field.forms.map { " In the dialect `\($0.dialect)` \($0.text)." }
        source.doc(field.doc + (condition ?? "") + forms.joined())
        let declaration = "package var \(name(field)): \(propertyType(field))"
        guard isShared else { return source.line(declaration) }
        source.block(declaration) { source in
            source.line("get { shared.value.\(field.swiftName) }")
            source.line("set { shared = shared.changed { $0.\(field.swiftName) = newValue } }")
        }
    }

    private func writeStorage(to source: inout SourceText) {
        source.block("private struct Fields: Hashable, Sendable") { source in
            for field in type.properties {
                source.line("var \(name(field)): \(propertyType(field))")
            }
        }
        source.line()
        source.line("private var shared: Shared<Fields>")
        source.line()
    }

    private func writeInitializer(to source: inout SourceText) {
        guard !type.properties.isEmpty else {
            source.line("package init() {}")
            return
        }
        source.line("package init(")
        for (index, field) in type.properties.enumerated() {
            let comma = index == type.properties.count - 1 ? "" : ","
            source.line(
                "    \(field.swiftName): \(propertyType(field))\(initialValue(field))\(comma)"
            )
        }
        source.block(")") { source in
            guard isShared else {
                for field in type.properties {
                    source.line("self.\(field.swiftName) = \(name(field))")
                }
                return
            }
            source.block("shared = Shared(", ")") { source in
                source.block("Fields(", ")") { source in
                    for (index, field) in type.properties.enumerated() {
                        let comma = index == type.properties.count - 1 ? "" : ","
                        source.line("\(field.swiftName): \(name(field))\(comma)")
                    }
                }
            }
        }
    }

    private func initialValue(_ field: Field) -> String {
        if field.isRequired { return "" }
        guard let value = field.defaultValue else { return " = nil" }
        return " = " + swiftDefault(value, type: field.type)
    }

    private func swiftDefault(_ value: DefaultValue, type: WireType) -> String {
        switch value {
        case .bool(let bool): return String(bool)
        case .int(let int): return String(int)
        case .string(let string):
            return string.isEmpty && type == .text ? ".empty" : literal(string)
        case .emptyList:
            if case .packed(let inner) = type { return "Packed<\(inner.swift)>([])" }
            return "[]"
        case .emptyMap: return "\(type.swift)([])"
        }
    }

    /// Generates the mirror that printing and logging use. The mirror masks secrets.
    private func writeMirror(to source: inout SourceText) {
        source.line()
        source.block("extension \(type.name): CustomReflectable") { source in
            source.doc("What printing shows: no secrets.")
            source.block("package var customMirror: Mirror") { source in
                source.block("Mirror(self, children: [", "], displayStyle: .struct)") { source in
                    for field in type.properties {
                        let value = field.isSensitive ? "\"(secret)\"" : "\(name(field)) as Any"
                        source.line("\(literal(field.swiftName)): \(value),")
                    }
                }
            }
        }
    }

    // MARK: Reader

    private func writeReader(to source: inout SourceText) {
        source.block(
            "package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self"
        ) { source in
            guard !type.properties.isEmpty else {
                source.lines(
                    """
                    for _ in 0..<(try reader.readMapHeader()) {
                        _ = try reader.readKey()
                        try reader.skip()
                    }
                    reader.endContainer()
                    return Self()
                    """
                )
                return
            }
            for field in type.properties {
                if let value = field.defaultValue {
                    source.line(
                        "var \(name(field)): \(field.type.swift) = \(swiftDefault(value, type: field.type))"
                    )
                } else {
                    source.line("var \(name(field)): \(field.type.swift)?")
                }
            }
            source.line("var fieldsSeen: UInt64 = 0")
            source.line("var fieldName: StaticString = \"\"")
            source.block("do throws(PayloadError)", "} catch {") { source in
                source.block("for _ in 0..<(try reader.readMapHeader())") { source in
                    source.line("fieldName = \"\"")
                    source.line("let wireKey = try reader.readKey()")
                    for (index, field) in type.properties.enumerated() {
                        source.line(
                            (index == 0 ? "" : "} else ")
                                + "if \(keys(of: field)) {"
                        )
                        source.line("    fieldName = \(literal(field.key))")
                        source.line("    try claim(\(index), in: &fieldsSeen)")
                        let assignment =
                            "\(name(field)) = \(readExpression(field.type, field: field))"
                        source.line(
                            field.isRequired
                                ? "    " + assignment
                                : "    if !reader.readNilIfPresent() { \(assignment) }"
                        )
                    }
                    source.line("} else {")
                    source.line("    try reader.skip()")
                    source.line("}")
                }
            }
            source.line("    throw error.within(fieldName)")
            source.line("}")
            source.line("reader.endContainer()")
            for field in type.properties where field.isRequired {
                source.line(
                    "guard let \(name(field)) else { throw missing(\(literal(field.key))) }"
                )
            }
            source.line(
                "return Self("
                    + type.properties.map { "\($0.swiftName): \(name($0))" }.joined(separator: ", ")
                    + ")"
            )
        }
    }

    private func keys(of field: Field) -> String {
        ([field.key] + field.aliases).map { "reader.matches(wireKey, \(literal($0)))" }
            .joined(separator: " || ")
    }

    private func readExpression(_ type: WireType, field: Field) -> String {
        ReadExpression(field: field, isHeldAgainstLimits: isHeldAgainstLimits).swift(of: type)
    }

    // MARK: Writer

    private func writeWriter(to source: inout SourceText) {
        source.block("package func write(to writer: inout MessagePackWriter)") { source in
            let always = type.fields.filter(isAlwaysWritten).count
            let optional = type.fields.filter { !isAlwaysWritten($0) }
            if optional.isEmpty {
                source.line("writer.writeMapHeader(\(always))")
            } else {
                source.line("var fieldCount = \(always)")
                for field in optional {
                    let condition = presence(field, bound: mayBeLeftOut(field.type))
                    source.line("if \(condition) { fieldCount += 1 }")
                }
                source.line("writer.writeMapHeader(fieldCount)")
            }
            for field in type.fields {
                let key = "writer.writeKey(\(literal(field.key)))"
                let isAlways = isAlwaysWritten(field)
                let lines =
                    [key] + fewerItems(field)
                    + writeStatements(field.type, isAlways ? name(field) : value(of: field), field)
                if isAlways {
                    for line in lines { source.line(line) }
                } else {
                    source.block("if \(presence(field, bound: true))") { source in
                        for line in lines { source.line(line) }
                    }
                }
            }
        }
    }

    private func isAlwaysWritten(_ field: Field) -> Bool {
        !field.isOptional && field.absentIn.isEmpty
    }

    /// Returns the Swift condition that is true if the receiver of the packet uses a dialect.
    private func speaks(_ dialect: String) -> String {
        "writer.capabilities.contains(.\(Names.camel(fromSeparated: dialect)))"
    }

    /// Returns statements that replace a list with a copy that lacks the items that dialects omit.
    private func fewerItems(_ field: Field) -> [String] {
        field.forms.compactMap { form in
            guard case .leavesOut(let key, let value) = form.change,
                case .list(.named(let item)) = field.type,
                let of = specification.structType(named: item)?.field(under: key)
            else { return nil }
            let number = of.type == .int ? "" : ".rawValue"
            let list = name(field)
            return
                "let \(list) = \(speaks(form.dialect)) ? \(list).filter { $0.\(of.swiftName)\(number) != \(value) } : \(list)"
        }
    }

    /// Returns the condition under which an optional field is written.
    ///
    /// - Parameter bound: Whether the condition also unwraps the value and binds it to a name.
    private func presence(_ field: Field, bound: Bool) -> String {
        var conditions: [String] = []
        if !field.isCopy {
            if field.isOptional {
                conditions.append(bound ? "let \(name(field))" : "\(field.swiftName) != nil")
            }
        } else if let source = source(of: field), source.isOptional {
            conditions.append(
                bound ? "let \(name(field)) = \(source.path)" : "\(source.path) != nil"
            )
        }
        if let capability = field.capability {
            let name = Names.camel(fromSeparated: capability)
            conditions.append("writer.capabilities.contains(.\(name))")
        }
        conditions += field.absentIn.map { "!\(speaks($0))" }
        if mayBeLeftOut(field.type) {
            conditions.append("\(name(field)).canBeRead(with: writer.capabilities)")
        }
        return conditions.joined(separator: ", ")
    }

    /// Returns the expression for the field's value when the field is present.
    private func value(of field: Field) -> String {
        guard field.isCopy, let source = source(of: field), !source.isOptional else {
            return name(field)
        }
        return source.path
    }

    /// Returns the path to the value of a copied field.
    private func source(of copy: Field) -> (path: String, isOptional: Bool)? {
        var fields = type.properties
        var path: [String] = []
        var isOptional = false
        for key in copy.copyOf {
            guard let field = fields.first(where: { $0.key == key }) else { return nil }
            path.append(name(field) + (field.isOptional && key != copy.copyOf.last ? "?" : ""))
            isOptional = isOptional || field.isOptional
            guard case .named(let name) = field.type else { break }
            fields = specification.structType(named: name)?.properties ?? []
        }
        return (path.joined(separator: "."), isOptional)
    }

    private func mayBeLeftOut(_ type: WireType) -> Bool {
        Projection(specification: specification).mayBeLeftOut(type)
    }

    private func writeStatements(_ type: WireType, _ value: String, _ field: Field) -> [String] {
        switch type {
        case .bool: ["writer.writeBool(\(value))"]
        case .int, .ms: ["writer.writeInt(\(value))"]
        case .double: ["writer.writeDouble(\(value))"]
        case .chatID, .userID, .messageID: ["writer.writeInt(\(value).rawValue)"]
        case .text: ["writer.writeText(\(value)\(prefix(field)))"]
        case .string: ["writer.writeString(\(inWords(value, field))\(prefix(field)))"]
        case .bytes: ["writer.writeBytes(\(value))"]
        // The generated code calls `write` of the array, which omits the items that the reader does
        // not support.
        case .list(let element) where mayBeLeftOut(element): ["\(value).write(to: &writer)"]
        case .list(let element):
            ["writer.writeArrayHeader(\(value).count)", "for item in \(value) {"]
                + writeStatements(element, "item", field).map { "    " + $0 } + ["}"]
        case .any, .map, .names, .packed, .named: ["\(value).write(to: &writer)"]
        }
    }

    /// Returns the expression for a string. The expression replaces the words that a dialect writes
    /// differently.
    private func inWords(_ value: String, _ field: Field) -> String {
        field.forms.reduce(value) { said, form in
            guard case .words(let words) = form.change else { return said }
            return words.sorted { $0.key < $1.key }.reduce(said) { said, word in
                "\(speaks(form.dialect)) && \(value) == \(literal(word.key)) ? \(literal(word.value)) : \(said)"
            }
        }
    }

    /// Returns the argument for the prefix that a dialect puts before the text.
    private func prefix(_ field: Field) -> String {
        for form in field.forms {
            if case .prefix(let prefix) = form.change {
                return ", after: \(speaks(form.dialect)) ? \(literal(prefix)) : \"\""
            }
        }
        return ""
    }
}

extension StructSource {
    /// Generates the members that depend on the reader's capabilities. Most types have none.
    private func writeProjection(to source: inout SourceText) {
        let projection = Projection(specification: specification)
        let gates = projection.gates(of: type)
        guard !gates.isEmpty else { return }
        source.line()
        source.line("package static var gates: Capabilities { \(swiftSet(gates)) }")
        let needed = type.properties.filter { $0.isRequired && projection.mayBeLeftOut($0.type) }
        guard !needed.isEmpty else { return }
        source.line()
        source.block("package func canBeRead(with capabilities: Capabilities) -> Bool") { source in
            let conditions = needed.map {
                "\(Names.escaped($0.swiftName)).canBeRead(with: capabilities)"
            }
            source.line(conditions.joined(separator: " && "))
        }
    }
}

/// Generates the Swift type of one enum.
struct EnumSource {
    let type: EnumType
    let specification: Specification

    func write(to source: inout SourceText) {
        source.doc(type.doc)
        source.block("package enum \(type.name): WireValue, Hashable") { source in
            for value in type.values {
                source.doc(value.doc)
                source.line("case \(Names.escaped(value.swiftName))")
            }
            if type.isOpen {
                source.doc("A value this build does not know.")
                source.line("case other(Text)")
            }
            source.line()
            source.doc("The value as it travels.")
            source.block("package var name: Text") { source in
                source.block("switch self") { source in
                    for value in type.values {
                        source.line("case .\(value.swiftName): \(literal(value.value))")
                    }
                    if type.isOpen { source.line("case .other(let name): name") }
                }
            }
            source.line()
            source.doc(
                type.isOpen
                    ? "The value of a name; an unknown one becomes `other`."
                    : "The value of a name, nil if unknown."
            )
            source.block(type.isOpen ? "package init(name: Text)" : "package init?(name: Text)") {
                source in
                for (index, value) in type.values.enumerated() {
                    source.line(
                        (index == 0 ? "" : "} else ") + "if \(names(of: value)) {"
                    )
                    source.line("    self = .\(value.swiftName)")
                }
                source.line("} else {")
                source.line(type.isOpen ? "    self = .other(name)" : "    return nil")
                source.line("}")
            }
            source.line()
            source.block(
                "package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self"
            ) { source in
                source.line(
                    "let name = try reader.readText(maxBytes: reader.limits.maxShortStringBytes)"
                )
                if type.isOpen {
                    source.line("return Self(name: name)")
                } else {
                    source.line(
                        "guard let value = Self(name: name) else { throw unknownValue(name) }"
                    )
                    source.line("return value")
                }
            }
            source.line()
            source.block("package func write(to writer: inout MessagePackWriter)") { source in
                source.block("switch self") { source in
                    for value in type.values {
                        source.line("case .\(value.swiftName): writer.writeKey(\(written(value)))")
                    }
                    if type.isOpen { source.line("case .other(let name): writer.writeText(name)") }
                }
            }
            writeProjection(to: &source)
        }
    }

    private func names(of value: EnumType.Value) -> String {
        ([value.value] + value.aliases).map { "name.equals(\(literal($0)))" }
            .joined(separator: " || ")
    }

    /// Returns the expression for the name that the server writes. A value without a fallback is
    /// always written under its own name, because a reader without the capability does not receive
    /// the object that contains it.
    private func written(_ value: EnumType.Value) -> String {
        guard let capability = value.capability, let fallback = value.fallback else {
            return literal(value.value)
        }
        let name = Names.camel(fromSeparated: capability)
        return
            "writer.capabilities.contains(.\(name)) ? \(literal(value.value)) : \(literal(fallback))"
    }

    /// Generates the members that depend on the reader's capabilities. Most types have none.
    private func writeProjection(to source: inout SourceText) {
        let gates = Projection(specification: specification).gates(of: type)
        guard !gates.isEmpty else { return }
        source.line()
        source.line("package static var gates: Capabilities { \(swiftSet(gates)) }")
        let gated = type.values.filter { $0.capability != nil && $0.fallback == nil }
        guard !gated.isEmpty else { return }
        source.line()
        source.block("package func canBeRead(with capabilities: Capabilities) -> Bool") { source in
            source.block("switch self") { source in
                for value in gated {
                    let name = Names.camel(fromSeparated: value.capability ?? "")
                    source.line("case .\(value.swiftName): capabilities.contains(.\(name))")
                }
                source.line("default: true")
            }
        }
    }
}
