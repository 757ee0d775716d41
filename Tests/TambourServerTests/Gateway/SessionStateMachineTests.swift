import Testing

@testable import TambourGateway

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

    @Test("a preview waits for a login alone, and nothing waits for a preview")
    func beside() {
        var machine = SessionStateMachine(maxQueries: 8)
        let requests = [machine.arrived(.command), machine.arrived(.beside)]
        #expect(requests.map(\.starts) == [true, true])
        #expect(machine.finished(.command) == [])
        #expect(machine.arrived(.query).starts)
        #expect(machine.finished(.query) == [])
        let login = machine.arrived(.exclusive)
        #expect(login.starts)
        let behind = [machine.arrived(.beside), machine.arrived(.query)]
        #expect(behind.map(\.starts) == [false, false])
        #expect(machine.inFlight == 4 && machine.beside == 1)
        #expect(machine.finished(.exclusive) == behind.map(\.ticket))
        #expect(machine.beside == 2)
        #expect(machine.finished(.beside) == [])
        #expect(machine.inFlight == 2 && machine.beside == 1)
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

    @Test("no query or login starts while they are held, and commands go on")
    func held() {
        var machine = SessionStateMachine(maxQueries: 8)
        #expect(machine.arrived(.query).starts)
        machine.hold()
        #expect(machine.finished(.query) == [])
        #expect(machine.arrived(.command).starts)
        #expect(machine.arrived(.beside).starts)
        #expect(machine.finished(.command) == [])
        #expect(!machine.isBlocked)
        let query = machine.arrived(.query)
        #expect(machine.isBlocked)
        // A command must not overtake a query.
        let command = machine.arrived(.command)
        #expect(!query.starts && !command.starts)
        #expect(machine.finished(.beside) == [])
        #expect(machine.release() == [query.ticket])
        #expect(machine.finished(.query) == [command.ticket])
        #expect(machine.release() == [])
    }

    @Test("a login runs or waits until it is answered")
    func hasLogin() {
        var machine = SessionStateMachine(maxQueries: 8)
        _ = machine.arrived(.command)
        #expect(!machine.hasLogin)
        _ = machine.arrived(.exclusive)
        #expect(machine.hasLogin)
        _ = machine.finished(.command)
        #expect(machine.hasLogin)
        _ = machine.finished(.exclusive)
        #expect(!machine.hasLogin)
    }
}
