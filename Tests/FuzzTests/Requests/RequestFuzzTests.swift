import Testing

/// Sends every field of every request with values that often break servers, against a well-filled
/// store.
@Suite("Request fuzzer")
struct RequestFuzzTests {
    @Test("whatever is asked, the server lives, answers and keeps its store")
    func requests() async throws {
        let server = try await FuzzServer()
        do {
            var run = try RequestFuzz(server, short: 8_000, soak: 1_000_000)
            let findings = try run.run()
            for finding in findings {
                Issue.record("TAMBOUR_SEED=\(run.seed): \(finding)")
            }
        } catch {
            await server.remove()
            throw error
        }
        await server.remove()
    }
}
