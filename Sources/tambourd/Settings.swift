import Configuration
import Foundation
import Logging
import TambourGateway
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTLS
import Yams

/// The server's options. Flags take precedence over environment variables, and these take
/// precedence over the file.
struct Settings {
    var listen: [ListenEndpoint]
    var tls: TLSFiles?
    var data: String
    var loginCodes: String
    var registration: RegistrationPolicy
    var userInvitations: Int
    var linkPreviews: String?
    var lanes: Int
    var countries: [String]
    var auditDays: Int
    var limits: Limits
    var features: FeatureSource
    var logLevel: Logger.Level

    init(flags: Tambourd.Serve, environment: [String: String]) throws {
        var providers: [any ConfigProvider] = [
            EnvironmentVariablesProvider(environmentVariables: environment)
                .prefixKeys(with: "tambour")
        ]
        if let path = flags.config ?? environment["TAMBOUR_CONFIG"] {
            providers.append(
                InMemoryProvider(values: try Self.file(path).mapKeys { AbsoluteConfigKey([$0]) })
            )
        }
        let reader = ConfigReader(providers: providers)

        let listen =
            flags.listen.isEmpty
            ? reader.stringArray(forKey: "listen", default: ["127.0.0.1:7770"]) : flags.listen
        self.listen = try listen.map { text in
            do { return try ListenEndpoint(text) } catch {
                throw Failure(String(describing: error))
            }
        }
        tls = try Self.tls(flags, reader)
        data = flags.data ?? reader.string(forKey: "data", default: "./var")
        loginCodes = flags.loginCodes ?? reader.string(forKey: "loginCodes", default: "console")
        let policy =
            flags.registration
            ?? reader.string(
                forKey: "registration",
                default: RegistrationPolicy.open.rawValue
            )
        guard let registration = RegistrationPolicy(rawValue: policy) else {
            throw Failure("registration: \"\(policy)\" is none of open, invite, closed")
        }
        self.registration = registration
        let invitationsText =
            flags.userInvitations.map(String.init)
            ?? reader.string(forKey: "userInvitations", default: "0")
        let range = RegistrationPolicy.userInvitationRange
        guard let invitations = Int(invitationsText), range.contains(invitations) else {
            throw Failure(
                "user invitations: \(invitationsText) is not \(range.lowerBound) to \(range.upperBound)"
            )
        }
        userInvitations = invitations
        linkPreviews = flags.linkPreviews ?? reader.string(forKey: "linkPreviews")
        let cores = ProcessInfo.processInfo.activeProcessorCount
        let lanesText = flags.lanes.map(String.init) ?? reader.string(forKey: "lanes")
        guard let lanes = lanesText.map({ Int($0) }) ?? max(1, cores - 1) else {
            throw Failure("lanes: \(lanesText ?? "") is not a number")
        }
        self.lanes = lanes
        guard (1...256).contains(lanes) else { throw Failure("lanes: \(lanes) is not 1 to 256") }
        countries =
            flags.countries.isEmpty
            ? reader.stringArray(forKey: "countries", default: []) : flags.countries
        for country in countries where country.wholeMatch(of: /[A-Z]{2}/) == nil {
            throw Failure("country \"\(country)\" is not two capital letters, as DE")
        }
        let daysText = flags.auditDays.map(String.init) ?? reader.string(forKey: "auditDays")
        let days = daysText.map { Int($0) } ?? Messenger.Configuration.usualAuditDays
        guard let days, (1...3650).contains(days) else {
            throw Failure("auditDays: \(daysText ?? "") is not a number from 1 to 3650")
        }
        auditDays = days
        if let path = flags.limits ?? reader.string(forKey: "limits") {
            limits = try Self.limits(path)
        } else {
            limits = .standard
        }
        if let path = flags.features ?? reader.string(forKey: "features") {
            let file = FeatureFile(path: path, limits: limits)
            features = FeatureSource(rules: try file.rules(), reload: { try file.rules() })
        } else {
            features = .none
        }
        let level = flags.logLevel ?? reader.string(forKey: "logLevel", default: "info")
        guard let known = Logger.Level(rawValue: level) else {
            throw Failure("log level \"\(level)\" is none of \(Logger.Level.allCases)")
        }
        logLevel = known
    }

    private static func tls(
        _ flags: Tambourd.Serve,
        _ reader: ConfigReader
    ) throws -> TLSFiles? {
        let certificates =
            flags.tlsCertificates.isEmpty
            ? reader.stringArray(forKey: "tlsCertificate", default: []) : flags.tlsCertificates
        let keys =
            flags.tlsKeys.isEmpty
            ? reader.stringArray(forKey: "tlsKey", default: []) : flags.tlsKeys
        let authorities = flags.tlsClientCA ?? reader.string(forKey: "tlsClientCA")
        guard certificates.count == keys.count else {
            let found = "\(certificates.count) certificates and \(keys.count) keys"
            throw Failure("TLS: \(found); each certificate needs its key")
        }
        if certificates.isEmpty {
            if authorities != nil { throw Failure("TLS: a client CA needs a certificate") }
            return nil
        }
        return TLSFiles(
            pairs: zip(certificates, keys).map { TLSPair(certificate: $0, key: $1) },
            clientAuthorities: authorities
        )
    }

    func server(logger: Logger) throws -> ServerConfiguration {
        ServerConfiguration(
            listen: listen,
            tls: tls,
            dataDirectory: data,
            loginCodes: try LoginCodeSource.parse(loginCodes, limits: limits, logger: logger),
            linkPreviews: try linkPreviews.map { try LinkPreviewSource.parse($0, limits: limits) },
            lanes: lanes,
            countries: countries,
            registration: registration,
            userInvitations: userInvitations,
            auditDays: auditDays,
            limits: limits,
            features: features,
            logger: logger
        )
    }

    /// Reads a file that contains a map without nesting. The values are strings, numbers and lists
    /// of strings.
    private static func file(_ path: String) throws -> [String: ConfigValue] {
        let keys: Set = [
            "listen", "tlsCertificate", "tlsKey", "tlsClientCA", "data", "loginCodes",
            "registration", "userInvitations", "linkPreviews", "lanes", "countries", "auditDays",
            "limits", "features", "logLevel",
        ]
        var values: [String: ConfigValue] = [:]
        for (key, value) in try map(path) {
            guard keys.contains(key) else { throw Failure("\(path): unknown key \"\(key)\"") }
            switch value {
            case let text as String:
                // For keys whose value is a list, the file may contain a single item without a
                // list.
                let isList = ["listen", "tlsCertificate", "tlsKey", "countries"].contains(key)
                let content: ConfigContent = isList ? .stringArray([text]) : .string(text)
                values[key] = ConfigValue(content, isSecret: false)
            case let list as [String]:
                values[key] = ConfigValue(.stringArray(list), isSecret: false)
            case let number as Int:
                values[key] = ConfigValue(.string(String(number)), isSecret: false)
            default: throw Failure("\(path): \"\(key)\" is neither text, number nor list")
            }
        }
        return values
    }

    private static func limits(_ path: String) throws -> Limits {
        var overrides: [String: Int] = [:]
        for (key, value) in try map(path) {
            guard let number = value as? Int else {
                throw Failure("\(path): \"\(key)\" is not a whole number")
            }
            overrides[key] = number
        }
        do {
            return try Limits(overrides: overrides)
        } catch {
            throw Failure("\(path): \(error)")
        }
    }

    /// Reads YAML. JSON is a subset of YAML, so the file may also be JSON.
    private static func map(_ path: String) throws -> [String: Any] {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw Failure("cannot read \(path)")
        }
        do {
            guard let map = try Yams.load(yaml: String(decoding: bytes, as: UTF8.self)) else {
                return [:]
            }
            guard let map = map as? [String: Any] else {
                throw Failure("\(path): not a map of names to values")
            }
            return map
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure("\(path): \(error)")
        }
    }
}

extension Dictionary {
    fileprivate func mapKeys<New: Hashable>(_ transform: (Key) -> New) -> [New: Value] {
        [New: Value](uniqueKeysWithValues: map { (transform($0.key), $0.value) })
    }
}
