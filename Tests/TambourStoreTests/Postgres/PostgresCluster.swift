#if PostgreSQL
    import Foundation
    import Synchronization
    import TambourSQL

    /// A PostgreSQL server for this process. It starts at the first use and stops when the process
    /// ends.
    ///
    /// The server listens on a Unix socket in a temporary directory. It does not sync, because
    /// nobody needs its data after the tests. A shell starts the server and reads from a pipe. This
    /// process holds the other end of the pipe, which closes when the process ends in any way. The
    /// shell then stops the server and removes the directory.
    final class PostgresCluster: Sendable {
        private let directory: String
        /// The end of the pipe that this process holds. The server runs as long as it is open.
        /// Nobody writes data to it.
        private let lifeline: FileHandle
        private let databaseCount = Mutex(0)

        private static let shared = Mutex<PostgresCluster?>(nil)

        struct Failure: Error, CustomStringConvertible {
            var description: String
        }

        /// Creates an empty database. Returns the cluster and the name of the database.
        static func makeDatabase() throws -> (cluster: PostgresCluster, name: String) {
            let cluster = try shared.withLock { shared in
                let cluster = try shared ?? PostgresCluster()
                shared = cluster
                return cluster
            }
            let name = try cluster.databaseCount.withLock { count in
                count += 1
                let name = "test\(count)"
                // Copying the files takes half as long as the default strategy, which also logs
                // them.
                try cluster.administer("CREATE DATABASE \(name) STRATEGY file_copy")
                return name
            }
            return (cluster, name)
        }

        func connect(to database: String) throws(SQLError) -> PostgresConnection {
            try PostgresConnection("host=\(directory) user=postgres dbname=\(database)")
        }

        func drop(_ database: String) throws {
            try administer("DROP DATABASE \(database) WITH (FORCE)")
        }

        private func administer(_ sql: String) throws {
            try connect(to: "postgres").execute(sql)
        }

        private init() throws {
            guard let programs = PostgresCluster.programs else {
                throw Failure(
                    description: "the trait PostgreSQL is on, but no PostgreSQL server is "
                        + "installed (looked in /usr/lib/postgresql and in PATH)"
                )
            }
            // Keep the path short, because the path of a Unix socket has at most 107 bytes.
            var template = Array("/tmp/tambour-pg-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else {
                throw Failure(description: "mkdtemp: errno \(errno)")
            }
            directory = String(decoding: template.dropLast().map(UInt8.init), as: UTF8.self)

            let shell = Process()
            // PostgreSQL refuses to run as root. If this process runs as root, it gives the
            // directory to the user `postgres`.
            if getuid() == 0 {
                guard let user = getpwnam("postgres")?.pointee,
                    chown(directory, user.pw_uid, user.pw_gid) == 0
                else { throw Failure(description: "running as root without a user postgres") }
                shell.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
                shell.arguments = [
                    "--reuid=postgres", "--regid=postgres", "--clear-groups", "/bin/sh", "-c",
                ]
            } else {
                shell.executableURL = URL(fileURLWithPath: "/bin/sh")
                shell.arguments = ["-c"]
            }
            shell.arguments?.append(PostgresCluster.script)
            shell.arguments?.append(contentsOf: ["tambour-postgres", programs, directory])
            shell.currentDirectoryURL = URL(fileURLWithPath: directory)

            let input = Pipe()
            let output = Pipe()
            lifeline = input.fileHandleForWriting
            // A child process of the tests must not inherit the pipe, because it would keep the
            // server running.
            _ = fcntl(lifeline.fileDescriptor, F_SETFD, FD_CLOEXEC)
            shell.standardInput = input
            shell.standardOutput = output
            try shell.run()

            let answer = output.fileHandleForReading.availableData
            guard answer == Data("ready\n".utf8) else {
                let log = try? String(contentsOfFile: directory + "/log", encoding: .utf8)
                throw Failure(description: "PostgreSQL did not start: \(log ?? "no log")")
            }
        }

        /// $1 is the folder of the PostgreSQL programs. $2 is the temporary directory. The script
        /// ignores interrupts from the terminal, and waits until the test process ends.
        private static let script = """
            trap '' INT TERM HUP
            cd "$2" || exit 1
            "$1"/initdb -D data -U postgres -A trust -E UTF8 --locale=C --no-sync >log 2>&1 &&
            "$1"/pg_ctl -D data -w -l log -o "-c listen_addresses='' \
            -c unix_socket_directories='$2' -c fsync=off -c full_page_writes=off \
            -c wal_level=minimal -c max_wal_senders=0 -c shared_buffers=32MB \
            -c max_connections=200" start >>log 2>&1 && echo ready
            exec >/dev/null
            cat >/dev/null
            "$1"/pg_ctl -D data -w -m immediate stop >>log 2>&1
            cd / && rm -rf "$2"
            """

        /// The folder that contains initdb and pg_ctl, of the newest installed version.
        private static let programs: String? = {
            let files = FileManager.default
            let versions = (try? files.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
            let newest = versions.compactMap(Int.init).sorted(by: >)
            let folders =
                newest.map { "/usr/lib/postgresql/\($0)/bin" }
                + (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
                .map(String.init)
            return folders.first { folder in
                files.isExecutableFile(atPath: folder + "/initdb")
                    && files.isExecutableFile(atPath: folder + "/pg_ctl")
            }
        }()
    }
#endif
