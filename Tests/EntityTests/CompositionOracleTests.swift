import TambourClient
import TambourProtocol
import TambourTesting
import Testing

/// A device composes several steps of the user into one change before it pushes. The resulting tree
/// must equal the tree that results if the steps are applied one by one.
@Suite("Composed changes")
struct CompositionOracleTests {
    private enum Action: CaseIterable {
        case create
        case update
        case delete
        case restore
        case push
        case send
        case receive
        case drop
        case restart
    }

    private struct Step: CustomStringConvertible {
        var action: Action
        var target: Int
        var detail: Int

        var description: String { "\(action), \(target), \(detail)" }
    }

    @Test("make the user's tree, on the screen at once and on the server in the end")
    func oracle() {
        RandomRun.play(
            count: 1_400,
            soak: 14_000,
            make: { random in
                let steps = (0..<(4 + random.below(14))).map { _ in
                    Step(
                        action: Action.allCases[random.below(Action.allCases.count)],
                        target: random.below(1 << 20),
                        detail: random.below(1 << 20)
                    )
                }
                return ("one device", steps)
            },
            check: { _, steps in
                var play = Play()
                for step in steps {
                    try play.take(step)
                    try play.compareScreen()
                }
                try play.finish()
            }
        )
    }

    /// The device and the oracle. The oracle is `tree`, the expected tree. Its keys are the UI keys
    /// of the rows.
    private struct Play {
        private struct Node: Hashable {
            var type: EntityType
            var parent: Int64?
            var fields: [String: FieldValue]
        }

        private static let schema = Schemas.tree()
        private var server = EntityServer(schema: schema)
        private var device = Device(number: 1, schema: schema, skew: 0)
        private var tree: [Int64: Node] = [:]
        private var deleted: [(key: Int64, node: Node)] = []
        private var now: Int64 = 1_000

        mutating func take(_ step: Step) throws {
            now += 1
            let nodes = tree.sorted { $0.key < $1.key }
            switch step.action {
            case .create: try create(nodes, step)
            case .push:
                _ = device.send(to: &server, isLost: false, now: now)
                try device.receiveReply(now: now)
            case .send: _ = device.send(to: &server, isLost: step.detail % 2 == 0, now: now)
            case .receive: try device.receiveReply(now: now)
            case .drop: device.drop()
            case .restart: device.restart()
            case .restore: try restore(step)
            case .update:
                guard !nodes.isEmpty else { return }
                let (key, node) = nodes[step.target % nodes.count]
                let patch = fields(of: node.type, step)
                let id = id(of: key)
                try perform { [now] entities throws(LocalEntityError) in
                    try entities.update(id, fields: patch, at: now)
                }
                for (name, value) in patch {
                    tree[key]?.fields[name] = value == .null ? nil : value
                }
            case .delete:
                guard !nodes.isEmpty else { return }
                let (key, node) = nodes[step.target % nodes.count]
                let id = id(of: key)
                try perform { [now] entities throws(LocalEntityError) in
                    try entities.delete(id, at: now)
                }
                deleted.append((key, node))
                remove(key)
            }
        }

        private mutating func create(
            _ nodes: [(key: Int64, value: Node)],
            _ step: Step
        ) throws {
            let parents = nodes.filter { $0.value.type != .note }
            var type = EntityType.account
            var parent: Int64?
            if !parents.isEmpty, step.detail % 4 > 0 {
                let (key, node) = parents[step.target % parents.count]
                parent = key
                type = node.type == .account ? .profile : .note
            }
            let fields = fields(of: type, step).filter { $0.value != .null }
            var created: EntityID?
            let above = parent.map(id(of:))
            try perform { [now] entities throws(LocalEntityError) in
                let creation = try entities.create(type, below: above, fields: fields, at: now)
                created = creation.id
                return creation.rows
            }
            guard let created, let key = device.entities.entity(created)?.uiKey else {
                throw Fault("what was created is not shown")
            }
            tree[key] = Node(type: type, parent: parent, fields: fields)
        }

        /// Restores only leaves. If a parent is restored, some of its children are restored too.
        /// Which children depends on whether the server has received the deletion.
        private mutating func restore(_ step: Step) throws {
            let leaves = deleted.filter { $0.node.type == .note }
            guard !leaves.isEmpty else { return }
            let (key, node) = leaves[step.target % leaves.count]
            guard let row = device.entities.rows.entities.first(where: { $0.uiKey == key }) else {
                return
            }
            let fields = fields(of: .note, step).filter { $0.value != .null }
            let error = device.perform { [now] entities throws(LocalEntityError) in
                try entities.restore(row.id, fields: fields, at: now)
            }
            switch error {
            case nil: tree[key] = Node(type: .note, parent: node.parent, fields: fields)
            case .notFound, .notDeleted: break
            case .some(let error): throw error
            }
        }

        private mutating func remove(_ key: Int64) {
            tree[key] = nil
            for child in tree where child.value.parent == key { remove(child.key) }
        }

        private mutating func perform(
            _ action: (inout LocalEntities) throws(LocalEntityError) -> [EntityRowChange]
        ) throws {
            if let error = device.perform(action) { throw error }
        }

        private func id(of key: Int64) -> EntityID {
            device.entities.rows.entities.first { $0.uiKey == key }?.id ?? .local(0)
        }

        private func fields(of type: EntityType, _ step: Step) -> [String: FieldValue] {
            let value = FieldValue.string("t\(step.target)")
            guard type == .note else { return ["name": value] }
            return switch step.detail % 4 {
            case 0: ["title": value]
            case 1: ["body": value]
            case 2: ["title": value, "body": .null]
            default: ["title": value, "body": value]
            }
        }

        func compareScreen() throws {
            guard device.database.rows == device.entities.rows else {
                throw Fault("the database does not follow")
            }
            var shown: [Int64: Node] = [:]
            var parents: [(id: EntityID?, key: Int64?)] = [(nil, nil)]
            while let parent = parents.popLast() {
                for local in device.entities.entities(below: parent.id) {
                    shown[local.uiKey] = Node(
                        type: local.entity.type,
                        parent: parent.key,
                        fields: local.entity.fields
                    )
                    parents.append((local.entity.id, local.uiKey))
                }
            }
            guard shown == tree else { throw Fault("the screen shows \(shown), not \(tree)") }
        }

        mutating func finish() throws {
            device.drop()
            for _ in 0..<10 {
                now += 1
                guard device.send(to: &server, isLost: false, now: now) else { break }
                try device.receiveReply(now: now)
                try compareScreen()
            }
            guard device.entities.rows.updates.isEmpty else { throw Fault("something is left") }
            let shown = tree.keys.compactMap { device.entities.entity(id(of: $0))?.entity }
            guard shown.sorted(by: { $0.id < $1.id }) == server.live else {
                throw Fault("the server has \(server.live), not \(tree)")
            }
        }
    }
}
