import TambourTesting

@testable import tambour_spec

/// Chooses the edges of each request. Tries every edge of every site in turn, beginning with the
/// sharpest edges. About half of the requests contain random mixtures instead.
struct EdgePlan {
    private struct Trial {
        let site: FuzzSite
        let edge: Edge
    }

    private var sharp: [Trial] = []
    private var others: [Trial] = []
    private var sites: [String: [FuzzSite]] = [:]
    private var edges: [String: [Edge]] = [:]
    private var opcodes: [OpcodeEntry] = []
    private(set) var tried = 0

    var trials: Int { sharp.count + others.count }
    var sharpTrials: Int { sharp.count }

    init(
        _ specification: Specification,
        skipped: Set<String>,
        random: inout SeededGenerator
    ) {
        opcodes = specification.clientOpcodes.filter { !skipped.contains($0.name) }
        for opcode in opcodes {
            let all = FuzzSite.sites(of: opcode, in: specification)
                .filter { !skipped.contains($0.description) }
            sites[opcode.name] = all
            for site in all {
                let edges = Edge.edges(of: site, in: specification)
                self.edges[site.description] = edges
                for (index, edge) in edges.enumerated() {
                    let trial = Trial(site: site, edge: edge)
                    // Even a short run must try extreme numbers and the largest lists, so these
                    // come first.
                    if (site.isNumber && index < 6) || Self.isSharp(edge) {
                        sharp.append(trial)
                    } else {
                        others.append(trial)
                    }
                }
            }
        }
        sharp.shuffle(using: &random)
        others.shuffle(using: &random)
    }

    private static func isSharp(_ edge: Edge) -> Bool {
        switch edge.change {
        case .largest: true
        case .copies(let count): count == 400
        default: false
        }
    }

    /// Returns the next request for a connection. Returns nil if several random choices of an
    /// opcode do not suit the connection.
    mutating func request(
        for peer: FuzzPeer,
        _ generator: inout RequestGenerator
    ) -> FuzzRequest? {
        let isStranger = peer.account == nil
        let mayEnd = isStranger || (peer.account ?? 0) > FuzzWorld.speakers
        generator.mayEndSessions = mayEnd
        func fits(_ opcode: OpcodeEntry) -> Bool {
            if RequestFuzz.isFinal(opcode), !mayEnd { return false }
            return !isStranger || opcode.states != ["loggedIn"] || generator.random.oneIn(12)
        }
        // About half of the requests follow the plan, if they suit the connection.
        if generator.random.oneIn(2) {
            let isSharp = tried < sharp.count
            let trial =
                isSharp ? sharp[tried] : others[(tried - sharp.count) % max(others.count, 1)]
            if fits(trial.site.opcode) {
                tried += 1
                return generator.request(trial.site.opcode, with: [(trial.site, trial.edge)])
            }
        }
        for _ in 0..<8 {
            let opcode = generator.random.pick(opcodes)
            guard fits(opcode) else { continue }
            if generator.random.oneIn(200) { return generator.largestRequest(opcode) }
            return generator.request(opcode, with: mixture(of: opcode, &generator))
        }
        return nil
    }

    /// Returns no edge, one edge, or several edges at once.
    private func mixture(
        of opcode: OpcodeEntry,
        _ generator: inout RequestGenerator
    ) -> [(site: FuzzSite, edge: Edge)] {
        let sites = sites[opcode.name] ?? []
        guard !sites.isEmpty else { return [] }
        let count = [0, 0, 0, 1, 1, 2, 3][generator.random.below(7)]
        return (0..<count).map { _ in
            let site = generator.random.pick(sites)
            let edges = edges[site.description] ?? []
            // Use mostly edges of the right type, because the server refuses a value of a wrong
            // type before it does any work.
            let own = max(1, edges.count - 11)
            let index = generator.random.below(generator.random.oneIn(8) ? edges.count : own)
            return (site, edges[index])
        }
    }
}
