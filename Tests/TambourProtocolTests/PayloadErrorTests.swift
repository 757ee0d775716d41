import TambourProtocol
import Testing

@Suite("payload errors")
struct PayloadErrorTests {
    @Test("the path grows from the inside out")
    func path() {
        let error = PayloadError(reason: "4001 UTF-16 units, limit 4000")
        #expect(error.description == "4001 UTF-16 units, limit 4000")
        #expect(
            error.within("text").within("message").description
                == "/message/text: 4001 UTF-16 units, limit 4000"
        )
        #expect(error.within("a").within(index: 3).within("b").path == "/b/3/a")
        #expect(error.within(key: ChatID(-5)).path == "/-5")
        #expect(error.within("") == error)
    }

    @Test("the usual reasons have one wording")
    func wording() {
        #expect(PayloadError.missing("text").description == "/text: missing")
        #expect(PayloadError.duplicateKey().description == "duplicate key")
        #expect(PayloadError.unknownValue("X").description == "unknown value \"X\"")
        #expect(PayloadError.tooManyItems(17, limit: 16).description == "17 items, limit 16")
        #expect(
            PayloadError.tooManyBytes(20001, limit: 16000).description == "20001 bytes, limit 16000"
        )
    }
}
