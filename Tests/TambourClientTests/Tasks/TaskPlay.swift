/// Plays a list of moves, and finds the shortest list that still shows a fault.
enum TaskPlay {
    /// Returns the fault in this play; nil for none.
    static func fault(in moves: [TaskMove], seed: UInt64) -> String? {
        do {
            try TaskWorld(seed: seed).play(moves)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Removes smaller and smaller runs of moves while the rest still fails.
    static func shortest(_ moves: [TaskMove], seed: UInt64) -> [TaskMove] {
        var moves = moves
        var size = moves.count / 2
        while size > 0 {
            var start = 0
            var hasShrunk = false
            while start < moves.count {
                var fewer = moves
                fewer.removeSubrange(start..<min(start + size, moves.count))
                if fault(in: fewer, seed: seed) != nil {
                    moves = fewer
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if !hasShrunk || size > moves.count { size /= 2 }
        }
        return moves
    }
}
