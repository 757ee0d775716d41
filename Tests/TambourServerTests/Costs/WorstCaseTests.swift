import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// Checks that each request of maximum size costs at most what the specification declares. The
/// store is built to make the requests expensive.
///
/// The declared costs hold in a store of any size: `TAMBOUR_SOAK=1` checks them in a store that is
/// thirty times as large.
@Suite("What requests cost at their largest")
struct WorstCaseTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let size: WorstCaseWorld.Size =
        environment["TAMBOUR_SOAK"] == "1" ? .large : .small

    /// The permitted steps of SQLite's virtual machine for each row. A row that is visited but not
    /// returned takes some tens of steps.
    private static let stepsPerRow = 120
    private static let freeSteps = 20_000
    /// Stored bytes besides the rows: cell headers for each written row, page headers for each new
    /// page.
    private static let storedPerRow = 64
    private static let freeBytesStored = 512

    /// Requests whose declared rows are mostly counted or compared rather than returned.
    private static let counting: Set<Opcode> = [
        .chatMark, .contactInfo, .contactPresence, .msgGetStat, .msgSend,
    ]

    /// Requests that the server cannot serve yet, or whose most expensive form it refuses.
    private static let refused: Set<Opcode> = [
        .removeContactPhoto, .suspendBot, .botInfo, .authLoginCheckPassword,
        .authLoginRestorePassword,
        // Served only where registration is restricted: see RegistrationTests.
        .invitationCreate,
    ]

    @Test("every request has a case")
    func complete() {
        let missing = ExampleRequests.requests.map(\.opcode)
            .filter { WorstCases.cases(of: $0).isEmpty }
        #expect(missing.isEmpty, "no case: \(missing)")
    }

    @Test(
        "costs are as declared"
    )
    func declared() throws {
        let world = try WorstCaseWorld(Self.size)
        defer { world.remove() }
        var lines: [String] = []
        // Queries come first, because commands destroy data that the queries read.
        let infos = ExampleRequests.requests.sorted {
            ($0.kind == .command ? 1 : 0, $0.opcode.rawValue)
                < ($1.kind == .command ? 1 : 0, $1.opcode.rawValue)
        }
        for info in infos {
            for make in WorstCases.cases(of: info.opcode) {
                do {
                    let measured = try world.measure(make(world))
                    lines.append(Self.line(info, measured))
                    compare(measured, with: info)
                } catch {
                    Issue.record("\(info.name): \(error)")
                }
            }
        }
        if Self.environment["TAMBOUR_COSTS"] == "1" { print(lines.joined(separator: "\n")) }
    }

    private func compare(_ measured: WorstCaseWorld.Measured, with info: OpInfo) {
        guard let cost = info.cost else { return }
        let isRefused = measured.refusal != nil
        #expect(
            isRefused == Self.refused.contains(info.opcode),
            "\(info.name): \(measured.refusal ?? "served")"
        )
        let store = measured.store
        func expect(_ value: Int, atMost most: Int, _ what: String) {
            #expect(value <= most, "\(info.name): \(value) \(what), declared \(most)")
        }
        expect(store.rowsRead, atMost: cost.rowsRead, "rows read")
        expect(store.rowsWritten, atMost: cost.rowsWritten, "rows written")
        var rows = max(store.rowsRead + store.rowsWritten, 1)
        if Self.counting.contains(info.opcode) { rows = max(rows, cost.rowsRead) }
        expect(store.steps, atMost: Self.freeSteps + rows * Self.stepsPerRow, "steps")
        let beside =
            cost.rowsWritten == 0
            ? 0 : Self.freeBytesStored + store.rowsWritten * Self.storedPerRow
        expect(measured.bytesStored, atMost: cost.bytesStored + beside, "bytes stored")
        let told = max(measured.toldOwn, measured.toldMember)
        expect(told, atMost: cost.bytesTold, "bytes told")
    }

    private static func line(_ info: OpInfo, _ measured: WorstCaseWorld.Measured) -> String {
        let store = measured.store
        let ms = String(format: "%.2f", store.longest / .milliseconds(1))
        return "COST \(info.name) \(store.rowsRead) \(store.rowsWritten) \(measured.bytesStored) "
            + "\(measured.toldOwn) \(measured.toldMember) \(store.steps) \(store.statements) \(ms) "
            + (measured.refusal ?? "")
    }
}
