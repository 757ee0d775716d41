/// The examples as a table for the tests of `TambourProtocol`.
struct ExampleVectorsSource {
    let specification: Specification

    func text() -> String {
        SourceText(from: "protocol-spec/examples/").text
    }
}
