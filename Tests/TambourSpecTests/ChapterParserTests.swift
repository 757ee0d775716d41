import Testing

@testable import tambour_spec

@Suite("Chapters of the prose")
struct ChapterParserTests {
    @Test("take a requirement from its id back to the one before it")
    func cutsRequirements() {
        let chapter = ChapterParser.parse(
            """
            # Framing

            Words about it.

            - A header MUST be read. [FRM-01] Two
              lines SHOULD be one. [FRM-02]
            - Nothing here.

            ```
            Code MUST not count.
            ```

            | a table | MUST be one, too. [FRM-03] |
            """,
            name: "framing",
            file: "prose/framing.md"
        )
        #expect(chapter.title == "Framing")
        #expect(chapter.requirements.map(\.id) == ["FRM-01", "FRM-02", "FRM-03"])
        #expect(chapter.requirements.map(\.level) == [.must, .should, .must])
        #expect(chapter.requirements[1].text == "Two lines SHOULD be one.")
        #expect(chapter.requirements.map(\.origin.line) == [5, 5, 13])
        #expect(chapter.unnumbered.isEmpty)
    }

    @Test("say which normative sentence has no id")
    func findsUnnumbered() {
        let chapter = ChapterParser.parse(
            "# More\n\nIt MUST be so. [FRM-01] And it MUST be thus.\n",
            name: "more",
            file: "prose/more.md"
        )
        #expect(
            chapter.unnumbered.map(\.description) == [
                "protocol-spec/prose/more.md:3: a normative sentence without an id: And it MUST be thus."
            ]
        )
    }
}
