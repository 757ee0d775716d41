import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// The public MessagePack test suite: every type with all its encodings. This repository must not
/// contain the suite, so the tests look for it next to the repository.
@Suite(
    "the public MessagePack suite",
    .enabled(
        if: PublicSuite.path != nil,
        "msgpack-test-suite.json is neither in ../shared/data nor named by TAMBOUR_MSGPACK_SUITE"
    )
)
struct PublicSuiteTests {
    @Test("every encoding is read, and the shortest is written")
    func everyEncoding() throws {
        let examples = try PublicSuite.examples()
        #expect(examples.count >= 80)
        for example in examples { try check(example) }
    }

    private func check(_ example: PublicSuite.Example) throws {
        var shortest: [UInt8]?
        for bytes in example.encodings {
            try skip(bytes)
            #expect(try decode(AnyValue.self, bytes).bytes.array == bytes)
            // A float with an integral value decodes as a number, but not as an integer.
            if let number = example.number {
                #expect(try decode(Double.self, bytes) == number, "\(hexText(bytes))")
                if bytes[0] == 0xCA || bytes[0] == 0xCB {
                    #expect(throws: PayloadError.self) { try decode(Int64.self, bytes) }
                    continue
                }
            }
            if shortest.map({ bytes.count < $0.count }) ?? true { shortest = bytes }
            if let integer = example.integer {
                #expect(try decode(Int64.self, bytes) == integer, "\(hexText(bytes))")
            } else if let tree = example.tree {
                #expect(try decode(Tree.self, bytes) == tree, "\(hexText(bytes))")
            } else {
                #expect(throws: PayloadError.self) { try decode(Int64.self, bytes) }
            }
        }
        if let integer = example.integer {
            let written = encode(integer)
            #expect(example.encodings.contains(written) && written.count == shortest?.count)
        } else if let number = example.number, Int64(exactly: number) == nil {
            #expect(example.encodings.contains(encode(number)) || example.isUnsigned)
        } else if let tree = example.tree {
            #expect(encode(tree) == shortest)
        }
    }
}

/// The suite's file and its contents.
enum PublicSuite {
    struct Example {
        var encodings: [[UInt8]]
        /// The value of a number, as a float.
        var number: Double?
        /// The value of a number, as an integer; nil if it has a fraction or does not fit.
        var integer: Int64?
        /// Any other value; nil for numbers. An extension keeps its bytes.
        var tree: Tree?
        /// Whether the value is an integer above the largest signed integer.
        var isUnsigned = false
    }

    static let path: String? = {
        if let path = ProcessInfo.processInfo.environment["TAMBOUR_MSGPACK_SUITE"] { return path }
        var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while folder.path != "/" {
            let file = folder.appendingPathComponent("shared/data/msgpack-test-suite.json").path
            if FileManager.default.fileExists(atPath: file) { return file }
            folder.deleteLastPathComponent()
        }
        return nil
    }()

    static func examples() throws -> [Example] {
        let path = try #require(path)
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let groups = try #require(
            try JSONSerialization.jsonObject(with: data) as? [String: [[String: Any]]]
        )
        return try groups.values.joined().map(example)
    }

    private static func example(_ entry: [String: Any]) throws -> Example {
        let encodings = try #require(entry["msgpack"] as? [String])
        var example = Example(encodings: encodings.map { hex($0) })
        if let bignum = entry["bignum"] as? String {
            example.number = Double(bignum)
            example.integer = Int64(bignum)
            example.isUnsigned = example.integer == nil
        } else if let number = entry["number"] as? NSNumber {
            example.number = number.doubleValue
            example.integer = Int64(exactly: number.doubleValue)
        } else if let binary = entry["binary"] as? String {
            example.tree = .bytes(Bytes(hex(binary)))
        } else if entry["ext"] != nil || entry["timestamp"] != nil {
            example.tree = .extension(AnyValue(unchecked: Bytes(example.encodings[0])))
            // Use only the first form, because a tree keeps an extension as its bytes.
            example.encodings = Array(example.encodings.prefix(1))
            for encoding in encodings { try skip(hex(encoding)) }
        } else {
            let key = try #require(entry.keys.first { $0 != "msgpack" })
            example.tree = try tree(try #require(entry[key]))
        }
        return example
    }

    private static func tree(_ value: Any) throws -> Tree {
        switch value {
        case is NSNull: return .null
        case let string as String: return .text(Text(string))
        case let items as [Any]: return .array(try items.map(tree))
        case let entries as [String: Any]:
            return .map(
                try entries.map { Tree.Entry(key: .text(Text($0.key)), value: try tree($0.value)) }
            )
        case let bool as Bool where "\(type(of: value))".contains("Bool"): return .bool(bool)
        default: return .int(try #require(value as? NSNumber).int64Value)
        }
    }
}
