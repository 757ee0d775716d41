import TambourProtocol
import TambourTesting
import Testing

@Suite("maps keyed by ids")
struct IDMapTests {
    private typealias Marks = IDMap<UserID, Int64>

    @Test("keys are written as digits and read as digits or integers")
    func keys() throws {
        let marks = Marks([(UserID(5), 1), (UserID(-70), 2), (UserID(.max), 3), (UserID(.min), 4)])
        let bytes = encode(marks)
        #expect(
            bytes
                == encode(
                    Tree.map([
                        .init(key: .text("5"), value: .int(1)),
                        .init(key: .text("-70"), value: .int(2)),
                        .init(key: .text("9223372036854775807"), value: .int(3)),
                        .init(key: .text("-9223372036854775808"), value: .int(4)),
                    ])
                )
        )
        #expect(try decode(Marks.self, bytes) == marks)
        #expect(
            try decode(Marks.self, hex("82 05 01 d0ba 02")).pairs.map(\.0.rawValue) == [5, -70]
        )
    }

    @Test("entries keep their order and are found by key")
    func lookUp() throws {
        let marks = try decode(Marks.self, hex("83 07 01 03 02 a137 03"))
        #expect(marks.count == 3 && !marks.isEmpty)
        #expect(marks.pairs.map(\.0.rawValue) == [7, 3, 7])
        // The last value of a duplicate key counts.
        #expect(marks[UserID(7)] == 3 && marks[UserID(3)] == 2 && marks[UserID(4)] == nil)
        #expect(Marks().isEmpty && encode(Marks()) == [0x80])
        #expect(Marks([(UserID(1), 1)]) != Marks([(UserID(1), 2)]))
        #expect(Set([marks, marks]).count == 1)
    }

    @Test(
        "digits that are no 64-bit number are no id",
        arguments: [
            "", "-", "+5", "5 ", " 5", "0x5", "5.0", "1e3", "--5", "9223372036854775808",
            "-9223372036854775809", "00000000000000000001", "99999999999999999999", "٥",
        ]
    )
    func notDigits(string: String) {
        let reason = "expected an id, found a string that is not one"
        let bytes = encode(string)
        #expect(complaint { () throws(PayloadError) in try decode(UserID.self, bytes) } == reason)
    }

    @Test(
        "ids of both signs and of 64 bits are read from digits",
        arguments: [
            ("0", 0), ("-0", 0), ("7", 7), ("-7", -7), ("007", 7), ("9223372036854775807", .max),
            ("-9223372036854775808", .min), ("116766060130147953", 116_766_060_130_147_953),
        ] as [(String, Int64)]
    )
    func digits(string: String, id: Int64) throws {
        #expect(try decode(MessageID.self, encode(string)).rawValue == id)
    }
}
