import TambourProtocol

/// Checks names of people: trims white space and refuses control characters.
enum PersonName {
    /// - Throws: `proto.payload` for a name of white space only, and for control characters.
    static func required(_ text: Text, _ path: String) throws -> String {
        guard let name = try optional(text, path) else {
            throw RequestError.protoPayload("\(path): empty")
        }
        return name
    }

    /// Returns nil for a name of white space only.
    ///
    /// - Throws: `proto.payload` for control characters.
    static func optional(_ text: Text, _ path: String) throws -> String? {
        let text = String(describing: text)
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { throw RequestError.protoPayload("\(path): a control character") }
        var name = text[...]
        while name.first?.isWhitespace == true { name.removeFirst() }
        while name.last?.isWhitespace == true { name.removeLast() }
        return name.isEmpty ? nil : String(name)
    }
}
