import Foundation
import TambourTesting
import Testing

/// Follows the guide for client authors word for word, and checks that following it reveals
/// mistakes in the page.
@Suite("The guide to a client of one's own")
struct GuideTests {
    @Test(
        "works as it is written, in an empty environment",
        .enabled(if: Guide.wheels != nil, "needs the wheels that `make test` fetches")
    )
    func wholePage() async throws {
        try await Guide.inFolder { folder in
            let reader = try Guide.follow(Guide.page, in: folder)
            let status = try await reader.exitStatus(within: .seconds(300))
            var printed: [String] = []
            for await line in reader.lines { printed.append(line) }
            let story = printed.joined(separator: "\n")
            #expect(status == 0, "\(story)\n\(reader.errors)")
            #expect(printed.last?.wholeMatch(of: #/  ok  [0-9]+ blocks/#) != nil, "\(story)")
        }
    }

    /// A call on a closed connection never gets a reply. If the guide's code did not refuse such a
    /// call, the caller would wait half a minute and then see a misleading error.
    @Test(
        "makes a connection that says at once that it is gone",
        .enabled(if: Guide.wheels != nil, "needs the wheels that `make test` fetches")
    )
    func callAfterTheEnd() async throws {
        let page = try String(contentsOf: Guide.page, encoding: .utf8)
        func block(_ title: String) throws -> String {
            let begin = try #require(page.range(of: "```python title=\"\(title)\"\n"))
            let end = try #require(page[begin.upperBound...].range(of: "\n```\n"))
            return String(page[begin.lowerBound..<end.upperBound])
        }
        let story = """
            ```console
            $ python3 -m venv venv
            $ venv/bin/pip install --quiet msgpack lz4
            ```
            \(try block("wire.py"))
            \(try block("connection.py"))
            ```python title="late.py"
            import socket
            from connection import Connection

            server = socket.create_server(("127.0.0.1", 0))
            connection = Connection(f"127.0.0.1:{server.getsockname()[1]}")
            server.accept()[0].close()
            print(connection.pushes.get())
            try:
                connection.call(1, {})
            except ConnectionError as error:
                print(error)
            ```
            ```console
            $ venv/bin/python late.py
            None
            the connection is gone
            ```
            """
        try await Guide.inFolder { folder in
            let file = folder.appendingPathComponent("page.md")
            try Data("\(story)\n".utf8).write(to: file)
            let reader = try Guide.follow(file, in: folder)
            let status = try await reader.exitStatus(within: .seconds(120))
            var printed = ""
            for await line in reader.lines { printed += "\(line)\n" }
            #expect(status == 0, "\(printed)\n\(reader.errors)")
        }
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let page: String
        /// The reader's expected complaint; nil when the page is correct.
        let complaint: String?
    }

    static let faults = [
        Fault(
            testDescription: "a page that is right",
            page: """
                ```python title="a.py"
                print(input("Code: "), 17)
                ```
                ```console
                $ python3 a.py
                Code: 12
                12 1…
                ```
                ```console title="There"
                $ (echo listening tcp 127.0.0.1:9; echo more; sleep 60)
                listening tcp 127.0.0.1:7770
                ```
                ```text title="There"
                more
                ```
                ```console
                $ echo 127.0.0.1:7770
                127.0.0.1:7770
                ```
                """,
            complaint: nil
        ),
        Fault(
            testDescription: "another output",
            page: "```console\n$ echo one\ntwo\n```",
            complaint: "printed 'one\\n', the page says 'two'"
        ),
        Fault(
            testDescription: "less output",
            page: "```console\n$ echo one\none\ntwo\n```",
            complaint: "ended before it printed 'two'"
        ),
        Fault(
            testDescription: "more output",
            page: "```console\n$ echo one; echo two\none\n```",
            complaint: "printed 'two\\n', which is not on the page"
        ),
        Fault(
            testDescription: "a command that fails without a word",
            page: "```console\n$ false\n```",
            complaint: "ended with 1"
        ),
        Fault(
            testDescription: "a terminal that says something else",
            page: """
                ```console title="There"
                $ (echo one; echo two; sleep 60)
                one
                ```
                ```text title="There"
                three
                ```
                """,
            complaint: "printed 'two\\n', the page says 'three'"
        ),
        Fault(
            testDescription: "a terminal that says more",
            page: """
                ```console title="There"
                $ (echo one; echo two; echo three; sleep 60)
                one
                ```
                ```text title="There"
                two
                ```
                """,
            complaint: "There printed what is not on the page"
        ),
        Fault(
            testDescription: "a block nobody runs",
            page: "```python\nprint(1)\n```",
            complaint: "nobody knows what to do with this block"
        ),
        Fault(
            testDescription: "a fence nobody reads",
            page: "```console\n$ true\n```\n``` python\n```",
            complaint: "4 fences, but 1 blocks"
        ),
    ]

    @Test("is followed by somebody who notices", arguments: faults)
    func notices(fault: Fault) async throws {
        try await Guide.inFolder { folder in
            let page = folder.appendingPathComponent("page.md")
            try Data("\(fault.page)\n".utf8).write(to: page)
            let reader = try Guide.follow(page, in: folder)
            var printed = ""
            for await line in reader.lines { printed += "\(line)\n" }
            let status = await reader.exitStatus()
            #expect(status == (fault.complaint == nil ? 0 : 1), "\(printed)\n\(reader.errors)")
            if let complaint = fault.complaint {
                #expect(printed.contains(complaint), "\(printed)\n\(reader.errors)")
            }
        }
    }
}

/// Checks the site checker with small sites that contain one mistake each.
@Suite("The check of the reference site")
struct SiteCheckTests {
    struct Site: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let files: [String: String]
        /// The expected complaint; nil when the site is correct.
        let complaint: String?
    }

    static let sites = [
        Site(
            testDescription: "a site that is right",
            files: [
                "a.html": """
                <a href='b/c.html#there'>c</a><p id=here><a href='#here'></a>
                <a href='https://example.org'>
                """,
                "b/c.html": "<p id='there'><img src='../d.svg'><a href='../a.html'>a</a>",
                "d.svg": "<svg/>",
                "e.css": "p { background: url(d.svg) }",
            ],
            complaint: nil
        ),
        Site(
            testDescription: "a page that is not there",
            files: ["a.html": "<a href='b.html'>b</a>"],
            complaint: "a.html:1: b.html leads nowhere"
        ),
        Site(
            testDescription: "an anchor that is not there",
            files: ["a.html": "\n<a href='#b'>b</a>"],
            complaint: "a.html:2: #b has no such anchor"
        ),
        Site(
            testDescription: "an id that is there twice",
            files: ["a.html": "<p id=x><p id=x>"],
            complaint: "a.html: the id 'x' is there 2 times"
        ),
        Site(
            testDescription: "a script from elsewhere",
            files: ["a.html": "<script src='https://example.org/x.js'></script>"],
            complaint: "a.html:1: loads https://example.org/x.js"
        ),
        Site(
            testDescription: "a font from elsewhere",
            files: ["a.html": "", "b.css": "@font-face { src: url('//example.org/x.woff') }"],
            complaint: "b.css: loads //example.org/x.woff"
        ),
    ]

    @Test("finds what leads nowhere and what comes from elsewhere", arguments: sites)
    func finds(site: Site) async throws {
        try await Guide.inFolder { folder in
            for (name, text) in site.files {
                let file = folder.appendingPathComponent(name)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                try Data(text.utf8).write(to: file)
            }
            let script = Guide.root.appendingPathComponent("protocol-spec/site/check_site.py")
            let check = try ChildProcess(Guide.environment, ["python3", script.path, folder.path])
            let status = await check.exitStatus()
            #expect(status == (site.complaint == nil ? 0 : 1), "\(check.errors)")
            if let complaint = site.complaint {
                #expect(check.errors == "\(complaint)\n")
            }
        }
    }
}

/// The guide and a program that follows it.
private enum Guide {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    static let page = root.appendingPathComponent("protocol-spec/prose/guide.md")
    /// `env` finds programs in PATH.
    static let environment = URL(fileURLWithPath: "/usr/bin/env")

    /// Wheels of the libraries that the guide installs, so that a test needs no network; nil unless
    /// `make test` has fetched them.
    static let wheels: URL? = {
        let folder = root.appendingPathComponent(".build/wheels")
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }()

    /// Starts following a page in an empty folder.
    static func follow(_ page: URL, in folder: URL) throws -> ChildProcess {
        let programs = folder.appendingPathComponent("programs")
        let work = folder.appendingPathComponent("work")
        for new in [programs, work] {
            try FileManager.default.createDirectory(at: new, withIntermediateDirectories: true)
        }
        try FileManager.default.createSymbolicLink(
            at: programs.appendingPathComponent("tambourd"),
            withDestinationURL: TambourdProcess.program()
        )
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        var variables = ["PATH": "\(programs.path):\(path)", "PYTHONDONTWRITEBYTECODE": "1"]
        if let wheels {
            variables["PIP_NO_INDEX"] = "1"
            variables["PIP_FIND_LINKS"] = wheels.path
        }
        let script = root.appendingPathComponent("Tests/SystemTests/Guide/follow.py")
        return try ChildProcess(
            environment,
            ["python3", script.path, page.path, work.path],
            environment: variables
        )
    }

    /// Makes a folder for `body` and removes it afterwards.
    static func inFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-guide-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }
}
