import Foundation

/// Writes the JSON files that are committed to the repository. Each item has its own line, so a
/// diff contains only the changed items.
///
/// Keys are sorted. An object that contains no objects and no lists of objects is written on one
/// line.
enum CanonicalJSON {
    /// - Parameter forced: The keys of the document whose items are always written on one line.
    static func text(of document: [String: Any], itemsOnOneLine forced: Set<String>) -> String {
        var text = "{"
        for (number, key) in document.keys.sorted().enumerated() {
            text += number == 0 ? "\n" : ",\n"
            text += "  \(compact(key)): "
            let isForced = forced.contains(key)
            write(document[key] as Any, depth: 1, levels: isForced ? 1 : .max, to: &text)
        }
        return text + "\n}\n"
    }

    /// - Parameter levels: The number of nested levels that may be written on several lines.
    private static func write(_ value: Any, depth: Int, levels: Int, to text: inout String) {
        let indent = String(repeating: "  ", count: depth)
        if levels > 0, let list = value as? [Any], list.contains(where: { $0 is [String: Any] }) {
            text += "["
            for (number, item) in list.enumerated() {
                text += (number == 0 ? "\n" : ",\n") + indent + "  "
                write(item, depth: depth + 1, levels: levels - 1, to: &text)
            }
            text += "\n\(indent)]"
        } else if levels > 0, let object = value as? [String: Any], !isItem(object) {
            text += "{"
            for (number, key) in object.keys.sorted().enumerated() {
                text += (number == 0 ? "\n" : ",\n") + indent + "  \(compact(key)): "
                write(object[key] as Any, depth: depth + 1, levels: levels - 1, to: &text)
            }
            text += "\n\(indent)}"
        } else {
            text += compact(value)
        }
    }

    private static func isItem(_ object: [String: Any]) -> Bool {
        !object.values.contains { value in
            value is [String: Any]
                || (value as? [Any])?.contains { $0 is [String: Any] } == true
        }
    }

    private static func compact(_ value: Any) -> String {
        let options: JSONSerialization.WritingOptions = [
            .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed,
        ]
        guard let data = try? JSONSerialization.data(withJSONObject: value, options: options)
        else {
            preconditionFailure("the bundle holds nothing but JSON values")
        }
        return String(decoding: data, as: UTF8.self)
    }
}
