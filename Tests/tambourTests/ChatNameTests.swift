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
