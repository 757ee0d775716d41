import Foundation
import GRDB
import Synchronization
import TambourTesting
import Testing

@testable import TambourClient

@Suite("The local store")
struct LocalStoreTests {
    @Test("that is closed under its readers tells them so, and nothing worse")
    func closing() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for round in 0..<50 {
            let store = try LocalStore(path: "\(directory)/\(round).db")
            let refusals = Mutex<[String]>([])
            // Threads of their own: readers that never stop would keep a task that closes from starting.
            DispatchQueue.concurrentPerform(iterations: 4) { reader in
                do throws(ClientError) {
                    while true {
                        _ = try store.read { try Int64.fetchOne($0, sql: "SELECT 1") }
                        if reader == 0 { store.close() }
                    }
                } catch {
                    refusals.withLock { $0.append(error.description) }
                }
            }
            #expect(refusals.withLock { Set($0) } == ["the local store: it is closed"])
        }
        #expect(throws: ClientError.self) {
            let store = try LocalStore(path: "\(directory)/last.db")
            store.close()
            try store.write { try $0.execute("DELETE FROM message") }
        }
    }
}
