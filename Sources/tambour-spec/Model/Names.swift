/// Converts wire names to Swift names.
enum Names {
    /// `MSG_SEND` → `MsgSend`.
    static func pascal(fromOpcode name: String) -> String {
        name.split(separator: "_").map { word in
            word.prefix(1).uppercased() + word.dropFirst().lowercased()
        }.joined()
    }

    /// `MSG_SEND` → `msgSend`, `READ_MESSAGE` → `readMessage`.
    static func camel(fromUpper name: String) -> String {
        let pascal = pascal(fromOpcode: name)
        return pascal.prefix(1).lowercased() + pascal.dropFirst()
    }

    /// `chat.not.found` → `chatNotFound`, `lz4-large` → `lz4Large`.
    static func camel(fromSeparated name: String) -> String {
        let words = name.split { $0 == "." || $0 == "-" || $0 == "_" }
        return words.enumerated().map { index, word in
            index == 0 ? String(word) : word.prefix(1).uppercased() + word.dropFirst()
        }.joined()
    }

    /// `chatId` → `chatID`, `messageIds` → `messageIDs`, `_type` → `type`, `app-update-type` →
    /// `appUpdateType`.
    static func property(fromKey key: String) -> String {
        let name = camel(fromSeparated: key)
        if name.hasSuffix("Id") { return name.dropLast(2) + "ID" }
        if name.hasSuffix("Ids") { return name.dropLast(3) + "IDs" }
        return name
    }

    /// Returns the name, in backticks if Swift reserves the word.
    static func escaped(_ name: String) -> String {
        reserved.contains(name) ? "`\(name)`" : name
    }

    private static let reserved: Set<String> = [
        "internal", "public", "private", "default", "case", "in", "is", "as", "self", "init",
        "func", "var", "let",
        "for", "switch", "where", "while", "return", "repeat", "import", "operator", "protocol",
        "static", "struct",
    ]
}
