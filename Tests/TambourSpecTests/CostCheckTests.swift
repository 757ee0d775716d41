import Foundation
import Testing

@testable import tambour_spec

/// Tests that every request must declare a cost.
@Suite("Check of costs")
struct CostCheckTests {
    typealias Mistake = SpecificationCheckTests.Mistake

    @Test("finds a planted mistake", arguments: mistakes)
    func findsMistake(mistake: Mistake) throws {
        var specification = try Repository.specification()
        try mistake.plant(&specification)
        let problems = SpecificationCheck.problems(of: specification).map(\.description)
        #expect(
            problems.contains { $0.contains(mistake.expected) },
            "\(problems.joined(separator: "\n"))"
        )
    }

    static let mistakes: [Mistake] = [
        .opcode("a request without a cost", of: "CHAT_MARK", "CHAT_MARK: has no cost") {
            $0.cost = nil
        },
        .opcode("a bucket nobody has", of: "CHAT_MARK", "CHAT_MARK: unknown bucket pail") {
            $0.cost?.bucket = "pail"
        },
        .opcode("a bucket of strangers", of: "PING", "PING: unknown bucket address") {
            $0.cost?.bucket = "address"
        },
        .opcode("another bucket nobody has", of: "MSG_SEND", "MSG_SEND: unknown bucket pail") {
            $0.cost?.also.append("pail")
        },
        .opcode("a request that costs nothing", of: "CHAT_MARK", "CHAT_MARK: costs nothing") {
            $0.cost?.units = 0
        },
        .opcode("items that are free", of: "MSG_GET", "MSG_GET: costs nothing") {
            $0.cost?.itemUnits = 0
        },
        .opcode("items of nothing", of: "MSG_GET", "its request has no postIds to pay for") {
            $0.cost?.perItem = ["postIds"]
        },
        .opcode("items of no object", of: "CONFIG", "its request has no pushToken.chats") {
            $0.cost?.perItem = ["pushToken.chats"]
        },
        .opcode("items of a text", of: "MSG_TYPING", "type is no list, map or number") {
            $0.cost?.perItem = ["type"]
        },
        .opcode("a page without an end", of: "CHAT_HISTORY", "maxPage goes with a number") {
            $0.cost?.maxPage = nil
        },
        .opcode("an end without a page", of: "MSG_GET", "maxPage goes with a number") {
            $0.cost?.maxPage = "maxIDsPerRequest"
        },
        .opcode("a page nobody knows", of: "CHATS_LIST", "CHATS_LIST: unknown limit maxLeaf") {
            $0.cost?.pageSize = "maxLeaf"
        },
        .opcode("a push that costs", of: "NOTIF_MARK", "NOTIF_MARK: only a request has a cost") {
            $0.cost = CostEntry(
                bucket: "mark",
                also: [],
                units: 1,
                perItem: [],
                itemUnits: 1,
                pageSize: nil,
                maxPage: nil,
                rowsRead: 0,
                rowsWritten: 0,
                bytesStored: 0,
                bytesTold: 0,
                tells: .nobody,
                processor: .light,
                origin: $0.origin
            )
        },
        .opcode("a query that writes", of: "CHAT_INFO", "CHAT_INFO: a query writes nothing") {
            $0.cost?.rowsWritten = 1
        },
        .opcode("bytes for nobody", of: "CHAT_INFO", "bytesTold goes with tells") {
            $0.cost?.bytesTold = 1
        },
        .opcode("an effect on nobody", of: "CHAT_MARK", "CHAT_MARK: has effects and tells nobody") {
            $0.cost?.tells = .nobody
            $0.cost?.bytesTold = 0
        },
        .bucket("without a limit", "bucket send: unknown limit sendBurts") {
            $0[0].burst = "sendBurts"
        },
        .bucket("that is there twice", "bucket send is there twice") { $0.append($0[0]) },
        .bucket("that nothing is paid from", "bucket pail: nothing is paid from it") {
            $0[0].name = "pail"
        },
    ]
}

extension SpecificationCheckTests.Mistake {
    fileprivate static func bucket(
        _ name: String,
        _ expected: String,
        _ change: @escaping @Sendable (inout [RateBucketEntry]) -> Void
    ) -> Self {
        Self("a bucket \(name)", expected) { change(&$0.buckets) }
    }
}
