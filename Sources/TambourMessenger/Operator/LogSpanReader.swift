import TambourProtocol

/// Reads the timings of a telemetry event in one pass over its bytes, without an allocation per
/// span.
///
/// Clients can send telemetry before login, and one frame can contain thousands of spans. Reading a
/// span must therefore cost hardly more than skipping it.
enum LogSpanReader {
    /// A name of `LogSpan`, or `other`, and the duration in milliseconds.
    typealias Span = (name: String, ms: Int64)

    private static let longestMs: Int64 = 86_400_000

    /// Appends the spans in the event's `params.spans`. Skips malformed spans.
    static func append(spansOf event: LogEvent, to spans: inout [Span]) {
        guard let params = event.params else { return }
        let known = spans.count
        do throws(PayloadError) {
            try MessagePackReader.read(params.bytes, limits: .standard) {
                (reader: inout MessagePackReader) throws(PayloadError) in
                try readParams(&reader, into: &spans)
            }
        } catch {
            spans.removeSubrange(known...)
        }
    }

    private static func readParams(
        _ reader: inout MessagePackReader,
        into spans: inout [Span]
    ) throws(PayloadError) {
        guard reader.kind == .map else { return try reader.skip() }
        for _ in 0..<(try reader.readMapHeader()) {
            let key = try reader.readKey()
            if reader.matches(key, "spans"), reader.kind == .array {
                for _ in 0..<(try reader.readArrayHeader()) {
                    if let span = try readSpan(&reader) { spans.append(span) }
                }
                reader.endContainer()
            } else {
                try reader.skip()
            }
        }
        reader.endContainer()
    }

    private static func readSpan(_ reader: inout MessagePackReader) throws(PayloadError) -> Span? {
        guard reader.kind == .map else {
            try reader.skip()
            return nil
        }
        var name: Text?
        var ms: Int64?
        for _ in 0..<(try reader.readMapHeader()) {
            let key = try reader.readKey()
            if reader.matches(key, "name"), reader.kind == .string {
                name = try reader.readText()
            } else if reader.matches(key, "duration"), let duration = try? reader.readInt() {
                ms = duration
            } else {
                // `readInt` does not advance past a value that it cannot read.
                try reader.skip()
            }
        }
        reader.endContainer()
        guard let name, let ms, (0...longestMs).contains(ms) else { return nil }
        return (label(of: name), ms)
    }

    private static func label(of name: Text) -> String {
        if case .other = LogSpan(name: name) { return ClientTimings.other }
        return String(name)
    }
}
