import TambourProtocol

/// Clips formatting ranges to the text. Ranges count UTF-16 units. If a range does not fit the
/// text, it is clipped instead of refused, because one client counts in other units.
enum ElementRules {
    static func clipped(_ elements: [Element], to text: Text) -> [Element] {
        guard !elements.isEmpty else { return [] }
        let units = Int64(text.utf16Count)
        return elements.compactMap { element in
            let start = min(max(0, element.from), units)
            let wanted = element.length ?? units
            let length = min(max(0, wanted), units - start)
            guard length > 0 else { return nil }
            var clipped = element.withAttributes
            clipped.from = start
            clipped.length = length
            return clipped
        }
    }

    /// Returns the stored form of the elements; nil when the text has no formatting.
    ///
    /// - Parameter path: the path of the field, for errors.
    /// - Throws: `proto.payload` for attributes that exceed `maxElementAttributesBytes`. This limit
    ///   does not apply to a LINK, because decoding limits its attributes to
    ///   `maxLinkAttributesBytes`.
    static func packed(
        _ elements: [Element],
        for text: Text,
        limits: Limits,
        at path: String
    ) throws -> Packed<[Element]>? {
        let most = limits.maxElementAttributesBytes
        for (index, element) in elements.enumerated() {
            guard let bytes = element.withAttributes.attributes?.bytes.count, bytes > most,
                !element.type.equals("LINK")
            else { continue }
            throw RequestError.protoPayload(
                "\(path)/\(index)/attributes: \(bytes) bytes, limit \(most)"
            )
        }
        let kept = clipped(elements, to: text)
        return kept.isEmpty ? nil : Packed(kept)
    }
}

extension Element {
    /// The element with `url` and `language` moved into its attributes. Some clients send these
    /// fields outside the attributes.
    fileprivate var withAttributes: Element {
        guard url != nil || language != nil else { return self }
        var element = self
        element.url = nil
        element.language = nil
        if attributes == nil {
            // Keep only one of the two, because both together could exceed the limit of a LINK.
            let field: (Text, Text)? =
                url.map { ("url", $0) } ?? language.map { ("language", $0) }
            element.attributes = field.map { AnyValue(NameMap([$0])) }
        }
        return element
    }
}
