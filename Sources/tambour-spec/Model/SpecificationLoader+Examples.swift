import Yams

/// Reads two kinds of files: the examples, which are packets as values and bytes, and the flows,
/// which are conversations.
extension SpecificationLoader {
    mutating func loadExamples(_ file: String, into specification: inout Specification) {
        guard let map = document(file) else { return }
        var result = ExampleFile(opcode: map.required("opcode"), examples: [], origin: map.origin)
        for entry in maps(map, "examples") {
            var example = Example(
                name: entry.required("name"),
                role: entry.choice("role") ?? .request,
                dialect: entry.string("dialect"),
                sequence: entry.int("seq") ?? 0,
                value: wireValue(entry, "value"),
                plain: wireValue(entry, "plain"),
                hex: entry.string("hex"),
                hexLine: entry.line("hex"),
                accepts: [],
                rejects: [],
                origin: entry.origin
            )
            for accept in maps(entry, "accept") {
                example.accepts.append(
                    .init(
                        name: accept.required("name"),
                        wire: wireValue(accept, "wire"),
                        hex: accept.string("hex"),
                        hexLine: accept.line("hex"),
                        origin: accept.origin
                    )
                )
                finish(accept)
            }
            for reject in maps(entry, "reject") {
                var limits: [String: Int] = [:]
                if let node = reject.node("limits"), let overrides = self.map(node, file: file) {
                    for (key, value) in overrides.entries { limits[key] = value.int ?? 0 }
                }
                example.rejects.append(
                    .init(
                        name: reject.required("name"),
                        wire: wireValue(reject, "wire"),
                        hex: reject.string("hex"),
                        hexLine: reject.line("hex"),
                        limits: limits,
                        error: reject.required("error"),
                        origin: reject.origin
                    )
                )
                finish(reject)
            }
            result.examples.append(example)
            finish(entry)
        }
        specification.examples.append(result)
        finish(map)
    }

    mutating func loadFlow(_ file: String, into specification: inout Specification) {
        guard let map = document(file) else { return }
        specification.flows.append(
            Flow(
                name: map.required("flow"),
                title: map.required("title"),
                doc: map.required("doc"),
                steps: maps(map, "steps").compactMap { step(of: $0) },
                origin: map.origin
            )
        )
        finish(map)
    }

    private mutating func step(of map: YAMLMap) -> Flow.Step? {
        defer { finish(map) }
        let action: Flow.Action? =
            if let device = map.string("connect") {
                .connect(device)
            } else if let device = map.string("login") {
                .login(device)
            } else if let device = map.string("disconnect") {
                .disconnect(device)
            } else if let text = map.string("note") {
                .note(text)
            } else if let device = map.string("silence") {
                .silence(device)
            } else if let opcode = map.string("request") {
                .request(
                    opcode: opcode,
                    from: map.required("from"),
                    value: wireValue(map, "value") ?? .map([]),
                    answer: map.string("error").map { .error($0) }
                        ?? .reply(wireValue(map, "reply") ?? .map([])),
                    save: saved(map)
                )
            } else if let opcode = map.string("push") {
                .push(
                    opcode: opcode,
                    to: map.required("to"),
                    value: wireValue(map, "value") ?? .map([]),
                    save: saved(map)
                )
            } else {
                nil
            }
        guard let action else {
            problems.append(Problem(origin: map.origin, text: "is no step of a flow"))
            return nil
        }
        return Flow.Step(action: action, origin: map.origin)
    }

    private mutating func saved(_ map: YAMLMap) -> [Flow.Saved] {
        guard let node = map.node("save"), let entries = self.map(node, file: map.origin.file)
        else {
            return []
        }
        return entries.entries.map { Flow.Saved(name: $0.0, pointer: $0.1.string ?? "") }
    }

    private mutating func wireValue(_ map: YAMLMap, _ key: String) -> WireNode? {
        guard let node = map.node(key) else { return nil }
        do {
            return try WireNode(yaml: node)
        } catch {
            problems.append(Problem(origin: map.origin, text: "\(key): \(error)"))
            return nil
        }
    }
}
