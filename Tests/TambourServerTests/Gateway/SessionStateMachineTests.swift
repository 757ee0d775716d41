import Testing

@testable import TambourServer

@Suite("What a session runs when")
struct SessionStateMachineTests {
    @Test("commands run together, a query waits for them, a command for the queries before it")
    func order() {
        var machine = SessionStateMachine(maxQueries: 8)
        let first = machine.arrived(.command)
        let second = machine.arrived(.command)
        let query = machine.arrived(.query)
        let third = machine.arrived(.command)
        #expect([first, second, query, third].map(\.starts) == [true, true, false, false])
        #expect(machine.finished(.command) == [])
        #expect(machine.finished(.command) == [query.ticket])
        #expect(machine.finished(.query) == [third.ticket])
        #expect(machine.inFlight == 1)
    }

    @Test("a login runs alone")
    func exclusive() {
        var machine = SessionStateMachine(maxQueries: 8)
        let query = machine.arrived(.query)
        let login = machine.arrived(.exclusive)
        let behind = machine.arrived(.query)
        #expect([query, login, behind].map(\.starts) == [true, false, false])
        #expect(machine.finished(.query) == [login.ticket])
        #expect(machine.finished(.exclusive) == [behind.ticket])
    }

    @Test("few queries run beside each other, in the order they came")
    func fewQueries() {
        var machine = SessionStateMachine(maxQueries: 2)
        let queries = (0..<5).map { _ in machine.arrived(.query) }
        #expect(queries.map(\.starts) == [true, true, false, false, false])
        #expect(machine.inFlight == 5)
        #expect(machine.finished(.query) == [queries[2].ticket])
        #expect(machine.finished(.query) == [queries[3].ticket])
        var none = SessionStateMachine(maxQueries: 0)
        #expect(none.arrived(.query).starts, "or nothing would ever run")
    }
}
