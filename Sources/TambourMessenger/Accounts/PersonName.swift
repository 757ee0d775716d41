import TambourProtocol

/// Checks names of people: trims white space and refuses control characters.
enum PersonName {
    /// - Throws: `proto.payload` if the name consists only of white space, or contains control
    ///   characters.
    static func required(_ text: Text, _ path: String) throws -> String {
        guard let name = try optional(text, path) else {
            throw RequestError.protoPayload("\(path): empty")
        }
        return name
    }

    /// Returns the trimmed name; nil if it consists only of white space.
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
