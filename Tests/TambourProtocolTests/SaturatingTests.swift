import TambourProtocol
import Testing

@Suite("Arithmetic on numbers from outside")
struct SaturatingTests {
    private static let numbers: [Int64] = {
        let bits: [Int64] = [16, 31, 32, 47, 62]
        var numbers: [Int64] = [0, 1, 2, 3, 10, .max - 1, .max]
        numbers += bits.map { 1 << $0 }
        numbers += numbers.map { 0 &- $0 }
        return numbers + [.min]
    }()

    /// Returns the `Int64` that is nearest to a number.
    private static func nearest(_ number: Int128) -> Int64 { Int64(clamping: number) }

    @Test("every operator gives the exact result, or the end of the type that it passes")
    func operators() {
        for left in Self.numbers {
            #expect(-left == Self.nearest(-Int128(left)))
            #expect(abs(left) == Self.nearest(Int128(left.magnitude)))
            for right in Self.numbers {
                let (a, b) = (Int128(left), Int128(right))
                #expect(left + right == Self.nearest(a + b), "\(left) + \(right)")
                #expect(left - right == Self.nearest(a - b), "\(left) - \(right)")
                #expect(left * right == Self.nearest(a * b), "\(left) * \(right)")
                guard right != 0 else { continue }
                #expect(left / right == Self.nearest(a / b), "\(left) / \(right)")
                #expect(left % right == Self.nearest(a % b), "\(left) % \(right)")
            }
            let end: Int64 = left < 0 ? .min : .max
            #expect(left / 0 == (left == 0 ? 0 : end))
            #expect(left % 0 == 0)
        }
    }

    @Test("what changes a number in place does the same")
    func assignments() {
        for left in Self.numbers {
            for right in Self.numbers {
                var number = left
                number += right
                #expect(number == left + right)
                number -= right
                #expect(number == left + right - right)
                number *= right
                #expect(number == (left + right - right) * right)
                let divided = number
                number /= right
                #expect(number == divided / right)
                number %= right
                #expect(number == divided / right % right)
            }
        }
    }

    @Test("sums over lists stop at the ends too")
    func sums() {
        #expect([Int64.max, 1].reduce(0, +) == .max)
        #expect([Int64.min, -1].reduce(0) { $0 + $1 } == .min)
    }

    @Test("an id has one next to it, but for the last; a time has an id, however far away it is")
    func ids() {
        #expect(MessageID(7).next == MessageID(8) && MessageID(7).before == MessageID(6))
        #expect(MessageID(.max).next == MessageID(.max))
        #expect(MessageID(.min).before == MessageID(.min))
        for time in Self.numbers {
            let id = MessageID(timeMs: time, counter: 5)
            let nearest = max(min(time, Int64.max >> 16), Int64.min >> 16)
            #expect(id.timeMs == nearest, "\(time)")
            #expect((id < MessageID(0)) == (time < 0), "\(time)")
        }
    }

    @Test("a duration has milliseconds, however long it is")
    func durations() {
        #expect(Duration.milliseconds(1_500).wholeMilliseconds == 1_500)
        #expect(Duration.milliseconds(-1_500).wholeMilliseconds == -1_500)
        #expect(Duration.seconds(Int64.max).wholeMilliseconds == .max)
        #expect(Duration.seconds(Int64.min).wholeMilliseconds == .min)
    }
}
