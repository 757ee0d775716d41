import TambourProtocol
import Testing

@testable import tambour

@Suite("Ids of groups on the command line")
struct ChatNameTests {
    @Test("do not look like options, and are found again", arguments: [Int64.min, -73_539_952_480])
    func ids(id: Int64) {
        let marked = ChatName.marked("\(id)")
        #expect(!marked.hasPrefix("-"))
        #expect(ChatName.plain(marked) == "\(id)")
    }

    @Test(
        "leave everything else as it is",
        arguments: [
            "-n", "--json", "-5", "73539952480", "-735399524x", "id:Bob", "id:5", "", "-",
        ]
    )
    func others(argument: String) {
        #expect(ChatName.marked(argument) == argument)
        #expect(ChatName.plain(argument) == argument)
    }
}

@Suite("Chats by their names")
struct ChatByNameTests {
    private typealias Candidate = ChatName.Candidate

    private let bobs = Candidate(chat: ChatID(-73_539_952_480), title: "Bob's party")
    /// A contact with whom the user has no dialog.
    private let bob = Candidate(chat: ChatID(7), title: "Bob", phone: "79990000002")
    private let digits = Candidate(chat: ChatID(-73_539_952_481), title: "79990000003 and friends")

    @Test("a whole name goes before the beginning of another")
    func whole() throws {
        #expect(try ChatName.choose("bob", among: [bobs, bob]) == bob.chat)
        #expect(try ChatName.choose("Bob's", among: [bobs, bob]) == bobs.chat)
    }

    @Test("nothing is chosen among several, and all are named")
    func several() throws {
        let group = Candidate(chat: ChatID(-73_539_952_482), title: "Bob")
        for name in ["Bob", "bo"] {
            let failure = try #require(throws: Failure.self) {
                try ChatName.choose(name, among: [bob, group])
            }
            #expect(failure.description.contains("7 Bob"))
            #expect(failure.description.contains("-73539952482 Bob"))
        }
        #expect(throws: Failure.self) { try ChatName.choose("Bo", among: [bobs, bob]) }
    }

    @Test("a contact's dialog in the list is the contact")
    func dialog() throws {
        let dialog = Candidate(chat: bob.chat, title: "Bob")
        #expect(try ChatName.choose("Bo", among: [dialog, bob]) == bob.chat)
        #expect(try ChatName.choose("7", among: [bob]) == bob.chat)
        #expect(try ChatName.choose("id:-73539952480", among: [bobs]) == bobs.chat)
    }

    @Test("a phone is nobody's but its owner's")
    func phone() throws {
        #expect(try ChatName.choose("+7 (999) 000-00-02", among: [bob, digits]) == bob.chat)
        #expect(try ChatName.choose("79990000003", among: [bob, digits]) == nil)
        #expect(try ChatName.choose("nobody", among: [bob, digits]) == nil)
        #expect(try ChatName.choose("", among: [bob]) == nil)
    }
}
