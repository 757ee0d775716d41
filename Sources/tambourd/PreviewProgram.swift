import Foundation
import TambourMessenger
import TambourProtocol

extension LinkPreviewSource {
    /// Parses `exec:PROGRAM`.
    static func parse(_ text: String, limits: Limits) throws -> LinkPreviewSource {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "exec", !parts[1].isEmpty else {
            throw Failure("link previews: \"\(text)\" is not exec:PROGRAM")
        }
        let runner = PreviewProgram(
            program: try Program(path: String(parts[1]), for: "link previews"),
            timeout: .milliseconds(limits.linkPreviewTimeoutMs),
            maxBytes: limits.maxLinkPreviewBytes
        )
        return LinkPreviewSource { link, done in
            let task = Task { done(await runner.look(at: link)) }
            return { task.cancel() }
        }
    }
}

/// Runs a program for each link. The program reads the link as a line from its standard input, and
/// prints a description of the page as JSON. If the output is empty, `null`, or an object without
/// title and description, there is no preview.
struct PreviewProgram: Sendable {
    /// The output of the program. `image` is either an object or only the address of the image.
    private struct Output: Decodable {
        enum Image: Decodable {
            struct Known: Decodable {
                let url: String
                let width: Int64?
                let height: Int64?
            }

            case address(String)
            case known(Known)

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let address = try? container.decode(String.self) {
                    self = .address(address)
                } else {
                    self = .known(try container.decode(Known.self))
                }
            }
        }

        let url: String?
        let title: String?
        let description: String?
        let image: Image?

        var page: LinkPreviewSource.Page {
            let image: LinkPreviewSource.Image? =
                switch image {
                case .address(let url): .init(url: url)
                case .known(let known):
                    .init(url: known.url, width: known.width, height: known.height)
                case nil: nil
                }
            return .init(url: url, title: title, description: description, image: image)
        }
    }

    let program: Program
    let timeout: Duration
    let maxBytes: Int

    func look(at link: String) async -> LinkPreviewSource.Finding {
        let printed: [UInt8]
        do {
            printed = try await program.output(
                of: "\(link)\n",
                within: timeout,
                maxBytes: maxBytes
            )
        } catch {
            return .failure("\(error)")
        }
        guard printed.contains(where: { $0 > UInt8(ascii: " ") }) else { return .nothing }
        do {
            let output = try JSONDecoder().decode(Output?.self, from: Data(printed))
            return output.map { .page($0.page) } ?? .nothing
        } catch {
            // Omit the decoder's message, because it may quote the page.
            return .failure("it printed something else than the JSON of a preview")
        }
    }
}
