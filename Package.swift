// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "tambour",
    products: [
        .executable(name: "tambourd", targets: ["tambourd"]),
        .executable(name: "tambour", targets: ["tambour"]),
        // Includes the module that defines the ids in the client's API.
        .library(name: "TambourClient", targets: ["TambourClient", "TambourProtocol"]),
        .executable(name: "tambour-spec", targets: ["tambour-spec"]),
    ],
    traits: [
        .trait(
            name: "Jemalloc",
            description:
                "Let jemalloc allocate: what lanes make the engine frees. Needs libjemalloc-dev."
        ),
        .trait(
            name: "PostgreSQL",
            description:
                "Build the driver for PostgreSQL, on which the store's tests run as well. Needs libpq-dev."
        ),
        .trait(
            name: "TLS",
            description: "Encrypt connections with OpenSSL. Needs libssl-dev."
        ),
    ],
    dependencies: [
        // Pinned exactly: Package.resolved is not in git.
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration", exact: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", exact: "0.2.0"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", exact: "1.0.2", traits: []),
    ],
    targets: [
        // Ground: of this package's targets, these import only one another.
        .systemLibrary(name: "CEpoll"),
        .systemLibrary(name: "CWidth"),
        .systemLibrary(
            name: "CQRencode",
            pkgConfig: "libqrencode",
            providers: [.apt(["libqrencode-dev"])]
        ),
        .systemLibrary(name: "CLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"])]),
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(
            name: "COpenSSL",
            pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]
        ),
        .systemLibrary(
            name: "CSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"])]
        ),
        .target(name: "TambourProtocol"),
        .target(name: "TambourFraming", dependencies: ["CLZ4", "TambourProtocol"]),
        .target(name: "TambourEvents", dependencies: ["TambourProtocol"]),
        .target(name: "TambourQueues"),
        .target(name: "TambourNet", dependencies: ["CEpoll", "TambourQueues"]),
        .target(
            name: "TambourTLS",
            dependencies: [
                "TambourNet", .target(name: "COpenSSL", condition: .when(traits: ["TLS"])),
            ]
        ),
        .target(
            name: "TambourSQL",
            dependencies: [
                "CSQLite", .target(name: "CLibPQ", condition: .when(traits: ["PostgreSQL"])),
            ]
        ),

        // Parts.
        .target(
            name: "TambourStore",
            dependencies: [
                "TambourEvents", "TambourProtocol", "TambourSQL",
                .product(name: "Crypto", package: "swift-crypto"),
            ]
        ),
        .target(
            name: "TambourMessenger",
            dependencies: [
                "TambourEvents", "TambourProtocol", "TambourQueues", "TambourSQL", "TambourStore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),

        // Doors.
        .target(
            name: "TambourGateway",
            dependencies: [
                "TambourEvents", "TambourFraming", "TambourMessenger", "TambourNet",
                "TambourProtocol", "TambourQueues",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .target(
            name: "TambourServer",
            dependencies: [
                "TambourGateway", "TambourMessenger", "TambourNet", "TambourProtocol", "TambourSQL",
                "TambourStore", "TambourTLS",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),

        .target(
            name: "TambourClient",
            dependencies: [
                "TambourFraming", "TambourNet", "TambourProtocol", "TambourQueues", "TambourTLS",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),

        // A terminal toolkit that imports no part of the messenger.
        .target(name: "TerminalKit", dependencies: ["CQRencode", "CWidth"]),

        // Programs.
        .executableTarget(
            name: "tambour",
            dependencies: [
                "TambourClient", "TambourProtocol", "TerminalKit",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .executableTarget(
            name: "tambourd",
            dependencies: [
                "TambourEvents", "TambourGateway", "TambourMessenger", "TambourNet",
                "TambourProtocol", "TambourServer", "TambourTLS",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Subprocess", package: "swift-subprocess"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Yams", package: "Yams"),
            ],
            linkerSettings: [
                .linkedLibrary("jemalloc", .when(platforms: [.linux], traits: ["Jemalloc"]))
            ]
        ),
        .executableTarget(
            name: "tambour-spec",
            dependencies: [
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Yams", package: "Yams"),
            ]
        ),

        // Benchmarks; not shipped.
        .executableTarget(
            name: "tambour-bench",
            dependencies: [
                "TambourEvents", "TambourFraming", "TambourNet", "TambourProtocol", "TambourQueues",
                "TambourSQL", "TambourStore", "TambourTLS", "TambourTesting",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Yams", package: "Yams"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            path: "bench/tambour-bench"
        ),

        // For tests only, never linked into a product.
        .target(
            name: "TambourTesting",
            dependencies: [
                "TambourEvents", "TambourFraming", "TambourGateway", "TambourMessenger",
                "TambourNet", "TambourProtocol", "TambourSQL", "TambourServer", "TambourStore",
                "TambourTLS",
            ]
        ),

        // Tests.
        .testTarget(
            name: "TambourNetTests",
            dependencies: [
                "TambourNet", "TambourQueues", "TambourTesting",
            ]
        ),
        .testTarget(
            name: "TambourTLSTests",
            dependencies: ["TambourNet", "TambourQueues", "TambourTLS", "TambourTesting"]
        ),
        .testTarget(name: "TambourSQLTests", dependencies: ["TambourSQL"]),
        .testTarget(
            name: "TambourStoreTests",
            dependencies: [
                "TambourEvents", "TambourProtocol", "TambourSQL", "TambourStore", "TambourTesting",
            ]
        ),
        .target(name: "CAllocationCount", path: "Tests/CAllocationCount"),
        .testTarget(
            name: "TambourFramingTests",
            dependencies: [
                "TambourFraming", "TambourProtocol", "TambourTesting",
            ]
        ),
        .testTarget(
            name: "TambourProtocolTests",
            dependencies: [
                "CAllocationCount", "TambourFraming", "TambourProtocol", "TambourTesting",
            ]
        ),
        .testTarget(
            name: "TambourSpecTests",
            dependencies: [
                "TambourFraming", "TambourProtocol", "TambourTesting", "tambour-spec",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            // A Lua interpreter and Python run these files.
            exclude: ["Dissector/wireshark.lua", "Schemas/validate.py"]
        ),
        .testTarget(
            name: "TambourServerTests",
            dependencies: [
                "TambourEvents", "TambourFraming", "TambourGateway", "TambourMessenger",
                "TambourNet", "TambourProtocol", "TambourQueues", "TambourSQL", "TambourServer",
                "TambourStore", "TambourTLS", "TambourTesting",
            ]
        ),
        .testTarget(
            name: "TambourClientTests",
            dependencies: [
                "TambourClient", "TambourFraming", "TambourMessenger", "TambourProtocol",
                "TambourServer", "TambourTLS", "TambourTesting",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        .testTarget(
            name: "tambourTests",
            dependencies: [
                "TambourClient", "TambourMessenger", "TambourProtocol", "TambourServer",
                "TambourTLS", "TambourTesting", "TerminalKit", "tambour",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .testTarget(name: "TerminalKitTests", dependencies: ["TambourTesting", "TerminalKit"]),
        // Tests that run devices against the server's rules. Tests of one side alone cannot replace
        // them.
        .testTarget(
            name: "EntityTests",
            dependencies: [
                "TambourClient", "TambourMessenger", "TambourProtocol", "TambourServer",
                "TambourStore", "TambourTesting",
            ]
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "TambourClient", "TambourEvents", "TambourFraming", "TambourGateway",
                "TambourMessenger", "TambourNet", "TambourProtocol", "TambourQueues", "TambourSQL",
                "TambourServer", "TambourStore", "TambourTesting",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["Regressions/seeds.txt"]
        ),
        // Tests with random input: bytes for every decoder, and requests generated from the
        // specification.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "TambourFraming", "TambourMessenger", "TambourProtocol", "TambourSQL",
                "TambourServer", "TambourStore",
                .product(name: "Yams", package: "Yams"),
            ],
            path: "Tests/FuzzTargets"
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "FuzzTargets", "TambourFraming", "TambourMessenger", "TambourProtocol",
                "TambourServer", "TambourTesting", "tambour-spec", "tambourd",
            ],
            exclude: ["Regressions"]
        ),
        .testTarget(
            name: "SystemTests",
            dependencies: [
                "TambourFraming", "TambourMessenger", "TambourProtocol", "TambourSQL",
                "TambourServer", "TambourTesting", "tambour", "tambourd",
            ],
            // The tests themselves compile or run these files: the power-cut layer, its test
            // program, and Python programs. The Python programs drive clients and terminals, follow
            // the guide, and check output.
            exclude: [
                "Captures", "Clients", "CodeExamples", "Guide", "JSONOutput",
                "PowerCut/powercut.c", "PowerCut/writer.c", "Sessions", "StockClient", "Terminal",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// `scripts/fuzz` sets this variable to build every target with the coverage that libFuzzer needs.
let isFuzzed = Context.environment["TAMBOUR_FUZZ"] == "1"
if isFuzzed {
    package.targets.append(
        .executableTarget(name: "fuzz", dependencies: ["FuzzTargets"], path: "Tests/FuzzProgram")
    )
}

// The build settings of all targets.
for target in package.targets where target.type != .system {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("MemberImportVisibility"),
        ] + (isFuzzed ? [.unsafeFlags(["-sanitize=fuzzer"])] : [])
}
