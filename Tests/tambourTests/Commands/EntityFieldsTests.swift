import TambourProtocol
import Testing

@testable import tambour

@Suite("Fields of entities on the command line")
struct EntityFieldsTests {
    @Test(
        "an unknown field and a wrong value name the fields that the type has",
        arguments: [
            ("note", "body=x", "A note has no field “body”. Its fields are: tags (words"),
            ("account", "body=x", "An account has no field “body”. Its fields are: name"),
            ("profile", "born=May", "The fields of a profile are: born (integer), color, name"),
            ("measurement", "value=much", "value (number)"),
            ("note", "text", "not of the form NAME=VALUE"),
        ]
    )
    func mistakes(type: String, word: String, says: String) throws {
        let error = #expect(throws: Failure.self) { try EntityFields(type).values([word]) }
        #expect(error?.description.contains(says) == true, "\(error?.description ?? "")")
    }

    @Test("an unknown type names the types")
    func unknownType() {
        let error = #expect(throws: Failure.self) { try EntityFields("letter") }
        let types = "account, profile, measurement, note, preference"
        #expect(error?.description.contains(types) == true, "\(error?.description ?? "")")
    }

    @Test("values are of the kinds of their fields, and an empty one removes the field")
    func values() throws {
        let note = try EntityFields("note").values(["title=a=b", "tags=x,y", "text="])
        let tags = FieldValue.list([.string("x"), .string("y")])
        #expect(note == ["title": .string("a=b"), "tags": tags, "text": .null])
        let measurement = try EntityFields("measurement").values(["at=5", "value=1.5"])
        #expect(measurement == ["at": .int(5), "value": .double(1.5)])
    }
}
