import Foundation
import TambourTesting
import Testing

@Suite("The admin socket")
struct AdminSocketTests {
    @Test("is its owner's alone")
    func mode() throws {
        try withServer { server in
            let attributes = try FileManager.default.attributesOfItem(
                atPath: "\(server.dataDirectory)/admin.sock"
            )
            #expect((attributes[.posixPermissions] as? Int) == 0o600)
        }
    }
}
