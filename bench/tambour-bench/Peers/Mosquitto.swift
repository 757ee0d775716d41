import Foundation
import Glibc
import TambourNet

/// mosquitto with QoS 1 and persistent sessions: a broker, not a messenger.
final class Mosquitto: Contestant {
    private var directory = URL(fileURLWithPath: "/")
    private var port = 0
    var process: ServerProcess?
    private var started = 0

    let name = "mosquitto"
    var version: String { Installed.version(of: "mosquitto") }

    var isInstalled: Bool { Installed.program("mosquitto") != nil }

    var durability: String {
        """
        persistence on, QoS 1: messages are in memory, the whole state is dumped every 5 s and at the \
        end; a power cut takes what came since
        """
    }

    var unfair: [String] {
        [
            """
            no history, no accounts (one shared password), no contacts, no rights: once acknowledged \
            by its receiver a message is gone: for it in every row
            """,
            "W2 is 100 subscribers of a topic; W4 is what waits in a session with 200 subscriptions",
        ]
    }

    func prepare(_ cast: Cast, in directory: URL) throws {
        self.directory = directory
        port = try freePort()
        guard let passwords = Installed.program("mosquitto_passwd") else {
            throw BenchError("mosquitto is not installed")
        }
        let file = directory.appendingPathComponent("passwords").path
        _ = try Tool.text(passwords, ["-b", "-c", file, MQTT.user, MQTT.password])
        // `user` names the current user. Without this line, a mosquitto that root starts switches
        // to another user, who may not be able to read the folder.
        let configuration = """
            listener \(port) 127.0.0.1
            allow_anonymous false
            password_file \(file)
            persistence true
            persistence_location \(directory.path)/
            autosave_interval 5
            max_inflight_messages 0
            max_queued_messages 0
            set_tcp_nodelay true
            log_type error
            user \(NSUserName())

            """
        try Data(configuration.utf8).write(to: directory.appendingPathComponent("mosquitto.conf"))
    }

    func launch() throws -> ServerProcess {
        guard let program = Installed.program(name) else {
            throw BenchError("mosquitto is not installed")
        }
        started += 1
        return try ServerProcess(
            program,
            ["-c", directory.appendingPathComponent("mosquitto.conf").path],
            in: directory,
            port: port
        )
    }

    func verifiedDurability() throws -> String {
        let file = directory.appendingPathComponent("mosquitto.db").path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: file),
            let size = attributes[.size] as? Int
        else { throw BenchError("mosquitto has dumped nothing to \(file)") }
        return "a dump of \(size) bytes is there"
    }

    func person(
        _ index: Int,
        writesTo to: Int?,
        run: String,
        _ sink: any LoadSink
    ) -> LoadClient {
        MQTTClient(
            index: index,
            sink: sink,
            identity: "\(run)-\(index)",
            reads: "\(run)/\(index)",
            writes: to.map { "\(run)/\($0)" }
        )
    }

    func member(_ index: Int, of count: Int, run: String, _ sink: any LoadSink) -> LoadClient {
        MQTTClient(
            index: index,
            sink: sink,
            identity: "\(run)-\(index)",
            reads: index == 0 ? nil : run,
            writes: index == 0 ? run : nil
        )
    }

    /// The reader has one persistent session, which subscribes to a topic for each contact. While
    /// the reader is offline, the broker queues the reader's messages in this session.
    func catchUp(_ cast: Cast) throws -> (() throws -> Exchange)? {
        let (address, meter) = (try address, try meter)
        let writers = try Cast.writers.map {
            try MQTTSession(address, identity: "round-\(started)-\($0)")
        }
        let reader = "reader"
        let first = try MQTTSession(address, identity: reader)
        try first.subscribe(Cast.contacts.map { "to-\(Cast.reader)/\($0)" })
        try first.finish(acknowledging: [])
        var round = 0
        return {
            round += 1
            for (index, writer) in writers.enumerated() {
                try writer.publish(
                    cast.corpus.message(UInt32(round * writers.count + index)),
                    topic: "to-\(Cast.reader)/\(Cast.writers[index])"
                )
            }
            var session: MQTTSession?
            var waiting: [UInt16] = []
            let exchange = try Exchange.measure(meter) {
                let new = try MQTTSession(address, identity: reader)
                waiting = try new.receive(writers.count)
                session = new
                return new.connection
            }
            try session?.finish(acknowledging: waiting)
            return exchange
        }
    }

    func pages(_ cast: Cast) -> (() throws -> Exchange)? { nil }
}
