/// One numbered sentence of the specification that an implementation can keep or break.
struct Requirement: Sendable {
    /// The strength of a requirement, in the words of RFC 2119.
    enum Level: String, Sendable {
        case must = "MUST"
        case should = "SHOULD"
    }

    /// The place that contains a requirement.
    enum Place: Equatable, Sendable {
        /// A chapter of the prose. The text is the name of the chapter's file without the
        /// extension.
        case chapter(String)
        /// An edge case of an opcode. The text is the name of the opcode.
        case opcode(String)
    }

    /// The id: a group and a number, for example `FRM-04`. An id is never reused.
    var id: String
    var level: Level
    /// Markdown.
    var text: String
    /// The title that lists show; nil for requirements that are not edge cases.
    var title: String?
    var place: Place
    var origin: Origin

    /// Returns whether a text has the format of an id.
    static func isID(_ text: String) -> Bool { text.wholeMatch(of: /[A-Z]{3}-[0-9]{2}/) != nil }
}

/// An edge case of an opcode: a condition and the required result.
struct Edge: Sendable {
    var id: String
    var level: Requirement.Level
    var title: String
    var given: String
    var then: String
    var origin: Origin

    var requirement: String { "Given \(given): \(then)" }
}

/// Prose about a subject that concerns several opcodes, from one file under `prose/`.
struct Chapter: Sendable {
    /// The name of the chapter's file, without the extension.
    var name: String
    var title: String
    /// Markdown below the title.
    var body: String
    var requirements: [Requirement]
    /// Normative sentences without an id.
    var unnumbered: [Problem]
    var origin: Origin
}

/// A conversation of one or more devices with a server. The site shows it as a diagram, and the
/// conformance suite runs it.
struct Flow: Sendable {
    var name: String
    var title: String
    var doc: String
    var steps: [Step]
    var origin: Origin

    struct Step: Sendable {
        var action: Action
        var origin: Origin
    }

    enum Action: Sendable {
        /// A device opens a connection. The text names the device: `alice.phone`, or `alice` for
        /// Alice's first device.
        case connect(String)
        /// A device connects and sends SESSION_INIT and LOGIN. Serves flows that are about another
        /// subject.
        case login(String)
        case disconnect(String)
        /// A note for the reader.
        case note(String)
        case request(opcode: String, from: String, value: WireNode, answer: Answer, save: [Saved])
        case push(opcode: String, to: String, value: WireNode, save: [Saved])
        /// The device sends PING, and no other packet arrives before the reply.
        case silence(String)
    }

    enum Answer: Sendable {
        /// The reply must contain at least these fields.
        case reply(WireNode)
        case error(String)
    }

    /// A part of a reply or push. Later steps refer to it as `$name`.
    struct Saved: Sendable {
        var name: String
        /// A JSON pointer.
        var pointer: String
    }
}

extension Specification {
    /// All requirements: first from the chapters, then from the opcodes.
    var requirements: [Requirement] {
        chapters.flatMap(\.requirements)
            + families.flatMap(\.opcodes).flatMap { opcode in
                opcode.edges.map { edge in
                    Requirement(
                        id: edge.id,
                        level: edge.level,
                        text: edge.requirement,
                        title: edge.title,
                        place: .opcode(opcode.name),
                        origin: edge.origin
                    )
                }
            }
    }
}
