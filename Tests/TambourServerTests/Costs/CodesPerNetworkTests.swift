import Synchronization
import TambourEvents
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

@Suite("Codes of one network")
struct CodesPerNetworkTests {
    /// Requests a code from each address in turn, and returns which requests are refused.
    private func refused(_ addresses: [String], limit: Int) throws -> [Bool] {
        let refused = Mutex<[Bool]>([])
        try withServer { server in
            let limits = try Limits(overrides: ["maxCodesPerAddressPerHour": limit])
            let handler = AuthHandler(
                limits: limits,
                environment: .live,
                fixedCode: nil,
                hasRoomForCodes: { true },
                sync: LoginSync(
                    limits: limits,
                    presence: PresenceRegistry(
                        clock: CommitClock(persistedLeaseEnd: 0, leaseMs: 0),
                        wall: 0,
                        limits: limits
                    ),
                    settings: ServiceConfig(limits: limits)
                )
            )
            for (index, address) in addresses.enumerated() {
                let origin = SessionOrigin(
                    installation: "",
                    client: "",
                    info: "",
                    address: address
                )
                let request = AuthRequestRequest(phone: "+7999000\(1000 + index)")
                try server.run { tx in
                    let requester = Requester(caller: nil, origin: origin)
                    let isRefused: Bool
                    do {
                        _ = try handler.authRequest(request, from: requester, in: tx)
                        isRefused = false
                    } catch let error as RequestError {
                        isRefused = error.code == .authBlocked
                    }
                    refused.withLock { $0.append(isRefused) }
                }
            }
        }
        return refused.withLock { $0 }
    }

    @Test("a /64 of IPv6 gets as many as one address of IPv4, however its addresses are written")
    func networks() throws {
        let network = ["2001:db8::a:b:c:d", "2001:db8::1", "2001:db8:0:0:ffff::"]
        #expect(try refused(network, limit: 2) == [false, false, true])
        let others = ["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"]
        #expect(try refused(others, limit: 2) == [false, false, false])
        let mapped = ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1", "10.0.0.2"]
        #expect(try refused(mapped, limit: 2) == [false, false, true, false])
    }
}
