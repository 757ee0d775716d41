import Glibc
import TambourTesting
import Testing

/// Plays random lists of steps. If a list fails, reports the shortest failing list that it finds.
///
/// Each play depends only on its seed. A check plays the seeds 1 to `plays`. With `TAMBOUR_SOAK=1`,
/// it plays the seeds 1 to `soak`. With `TAMBOUR_SEED=17`, it plays only seed 17.
struct Property<Step> {
    var plays: Int
    var soak: Int
    /// Returns the steps of one play.
    var generate: (inout SeededGenerator) -> [Step]
    /// Plays steps and returns the error, or nil after a success. All other choices depend only on
    /// the seed.
    var failure: ([Step], UInt64) -> String?

    func check(sourceLocation: SourceLocation = #_sourceLocation) {
        for seed in seeds {
            var random = SeededGenerator(seed: seed)
            let steps = generate(&random)
            guard failure(steps, seed) != nil else { continue }
            let shortest = shrunk(steps, seed)
            let message = failure(shortest, seed) ?? "nothing"
            let list = shortest.map { "  \($0)" }.joined(separator: "\n")
            Issue.record(
                "TAMBOUR_SEED=\(seed): \(message)\nafter\n\(list)",
                sourceLocation: sourceLocation
            )
            return
        }
    }

    private var seeds: [UInt64] {
        if let seed = getenv("TAMBOUR_SEED").flatMap({ UInt64(String(cString: $0)) }) {
            return [seed]
        }
        let isSoak = getenv("TAMBOUR_SOAK").map { String(cString: $0) == "1" } ?? false
        return (1...UInt64(isSoak ? soak : plays)).map { $0 }
    }

    /// Returns a shorter list that still fails. Uses delta debugging: leaves out steps as long as
    /// the rest fails.
    private func shrunk(_ steps: [Step], _ seed: UInt64) -> [Step] {
        var steps = steps
        var size = max(1, steps.count / 2)
        while true {
            var start = 0
            var hasShrunk = false
            while start < steps.count {
                var shorter = steps
                shorter.removeSubrange(start..<min(start + size, steps.count))
                if failure(shorter, seed) != nil {
                    steps = shorter
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if size == 1, !hasShrunk { return steps }
            if !hasShrunk { size = max(1, size / 2) }
        }
    }
}

/// Texts that are hard to show: wide, combining, right-to-left, invisible or hostile characters.
enum HardText {
    static let samples = [
        "hello", "a", "The quick brown fox", "  ", "x = 1;", "—", "naïve café",
        "日本語テキスト", "漢", "한국어", "全角ＡＢＣ", "ｶﾅ",
        "e\u{301}", "n\u{303}o\u{308}", "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}",
        "\u{301}lone mark", "\u{20DD}",
        "😀", "👍🏽", "👩‍👩‍👧‍👦", "👩🏽‍❤️‍💋‍👨🏽", "❤️", "☺", "1️⃣", "🇩🇪", "🇩", "🇫🇷🇩",
        "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", "⌚︎", "🏽",
        "שלום עולם", "مرحبا 123", "عَرَبِيّ", "العربية (english) 12%",
        "हिन्दी", "क्ष", "தமிழ்", "ภาษาไทยกำ", "ᄀ", "ᅡ", "한", "ꥠ",
        "\u{1B}[31mred\u{1B}[0m", "\u{1B}]0;title\u{7}", "\u{9B}2J", "a\r\nb\tc\u{0}\u{7F}",
        "\u{202E}evil\u{202C}", "\u{2066}x\u{2069}", "\u{200E}l\u{200F}r", "zero\u{200B}width",
        "soft\u{AD}hyphen", "\u{FEFF}bom", "\u{2028}\u{2029}", "\u{E000}", "\u{10FFFF}",
        "\u{378}", "\u{FFF9}a\u{FFFA}b\u{FFFB}", "\u{600}5", "\u{3164}", "\u{115F}", "\u{110BD}x",
        "a\u{200D}b", "\u{200D}", "\u{FE0F}", "q\u{FE0F}", "©️", "™", "ﷺ", "𝒳", "𠀀",
    ]
}
