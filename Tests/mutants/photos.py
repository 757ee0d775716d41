#!/usr/bin/env python3
"""Breaks the sending of photos in one place at a time, and prints the test that notices the mutant.

    Tests/mutants/photos.py            all mutants
    Tests/mutants/photos.py 4 7        these two

The script changes the sources in place, so commit them first. It restores them at the end. It builds all
mutants into one program, and TAMBOUR_MUTANT selects one of them. So there is one build, and one short run for each mutant.
Prints the table for README.md. The exit code is 1 if a test did not notice a mutant.
"""
import subprocess
import sys

from entities import red
from switch import ROOT, Mutant, switched

CLIENT = "Sources/TambourClient/"
TASKS = CLIENT + "Photos/PhotoTasks.swift"
CORE = CLIENT + "Photos/PhotoRuns.swift"
FILE = CLIENT + "Photos/PhotoFile.swift"
FOLDER = CLIENT + "Photos/PhotoFolder.swift"
WORKER = CLIENT + "Photos/PhotoWorker.swift"
QUEUE = CLIENT + "Tasks/ClientCore+Tasks.swift"
SCHEDULER = CLIENT + "Tasks/TaskScheduler+Running.swift"
ROWS = CLIENT + "LocalStore/TaskRows.swift"
WAITING = CLIENT + "Client+Waiting.swift"
LIVE = CLIENT + "ClientCore.swift"
SIGN_IN = CLIENT + "Session/ClientCore+SignIn.swift"

TESTS = r"TambourClientTests\.(Photo(Tests|FileTests|ClientTests)|Task(Rules|Play)Tests)"

# The fields: name, file, original text (found once), mutated text (@ is the mutant's number)
MUTANTS = [
    ("a photo is copied only when somebody is logged in", TASKS,
     "var requires: TaskConditions { [] }",
     "var requires: TaskConditions { mutant == @ ? .loggedIn : [] }"),
    ("nothing is done offline", QUEUE,
     "        while let id = try tasks.startable(nowMs: now, conditions, tx) {",
     "        if mutant == @, !isLive { return }\n"
     "        while let id = try tasks.startable(nowMs: now, conditions, tx) {"),
    ("photos are uploaded beside each other", TASKS,
     'var lane: String? { "photos" }',
     'var lane: String? { mutant == @ ? nil : "photos" }'),
    ("an upload begins anew after a death", TASKS,
     "offset: round == record.round ? reached : 0",
     "offset: mutant != @ && round == record.round ? reached : 0"),
    ("an upload for a new token goes on where the old one was", TASKS,
     "record.round ? reached : 0",
     "record.round || mutant == @ ? reached : 0"),
    ("an upload for a new token has the key of the old one", TASKS,
     "key: record.requestKey",
     "key: mutant == @ ? record.opKey : record.requestKey"),
    ("nothing renews an upload", CORE,
     "[TaskID(upload.rawValue): .refresh]",
     "[TaskID(upload.rawValue): mutant == @ ? .needs : .refresh]"),
    ("a message does not wait for its upload", CORE,
     "queue(message, after: ",
     "queue(message, after: mutant == @ ? [:] : "),
    ("an upload does not need the copy", CORE,
     "after: [TaskID(keeper.rawValue): .needs]",
     "after: [TaskID(keeper.rawValue): mutant == @ ? .after : .needs]"),
    ("a message with a photo is in no lane", TASKS,
     "var lane: String? { chatLane(ChatID(chat)) }",
     "var lane: String? { mutant == @ ? nil : chatLane(ChatID(chat)) }"),
    ("a message names an expired token", TASKS,
     "token.map { $0.untilHereMs <= now } ?? true",
     "token.map { mutant != @ && $0.untilHereMs <= now } ?? true"),
    ("a refusal of an expired token is one of the message", QUEUE,
     "task.needsNewInput(atHereMs: environment.wallMs()):",
     "mutant != @ && task.needsNewInput(atHereMs: environment.wallMs()):"),
    ("any refusal of a photo sends it again", QUEUE,
     "case .refused where ",
     "case .refused where mutant == @ && task is SendPhotoTask || "),
    ("a message goes without its photo", TASKS,
     "request.message.attaches = [",
     "request.message.attaches = mutant == @ ? [] : ["),
    ("a waiting photo shows its words alone", TASKS,
     "replyTo: replyTo, hasPhoto: true",
     "replyTo: replyTo, hasPhoto: mutant != @"),
    ("a cancelled message leaves its steps", QUEUE,
     "let steps = next.needed(for: id)",
     "let steps = mutant == @ ? [] : next.needed(for: id)"),
    ("a dropped message leaves the step that failed", QUEUE,
     "where next[step]?.state.isFailed == true {",
     "where mutant != @ && next[step]?.state.isFailed == true {"),
    ("copies stay", ROWS,
     "case KeepPhotoTask.kind: endedPhotos.append(record.id)",
     "case KeepPhotoTask.kind: if mutant != @ { endedPhotos.append(record.id) }"),
    ("copies go with the upload", ROWS,
     "            case .insert(let record), .update(let record): try put(record)",
     "            case .insert(let record), .update(let record):\n"
     "                if mutant == @, record.state == .done, record.kind == KeepPhotoTask.kind { endedPhotos.append(record.id) }\n"
     "                try put(record)"),
    ("what a dead process left stays", CORE,
     "folder?.removeAll(but: keepers)",
     "if mutant != @ { folder?.removeAll(but: keepers) }"),
    ("every start removes the copies", CORE,
     "but: keepers)",
     "but: mutant == @ ? [] : keepers)"),
    ("copies outlive signing out", SIGN_IN,
     "        photos.forgetAll()\n",
     "        if mutant != @ { photos.forgetAll() }\n"),
    ("the upload of a cancelled message goes on", CORE,
     "record?.isCancelRequested == true else",
     "mutant != @ && record?.isCancelRequested == true else"),
    ("an upload whose lease was lost goes on", CORE,
     "guard !isCurrent ||",
     "guard mutant != @ && !isCurrent ||"),
    ("a cancelled upload keeps its lease", CORE,
     "            if isCurrent { try core.tasks.change",
     "            if mutant != @, isCurrent { try core.tasks.change"),
    ("a run that is over is listened to", CORE,
     "guard let record = held, record.run == run else",
     "guard let record = held, mutant == @ || record.run == run else"),
    ("a copy that is made behind a cancel stays", CORE,
     "if case .kept = report, held == nil {",
     "if case .kept = report, mutant != @, held == nil {"),
    ("uploads go on when the client has stopped", LIVE,
     "            try self.photos.releaseAll(tx)",
     "            if mutant != @ { try self.photos.releaseAll(tx) }"),
    ("a run that is over stores its progress", SCHEDULER,
     "        try check(run)\n        table.update(run.task) { record in\n            record.payload",
     "        if mutant != @ { try check(run) }\n        table.update(run.task) { record in\n            record.payload"),
    ("progress does not prolong the lease", SCHEDULER,
     "            record.lease?.untilMs = leaseUntilMs",
     "            if mutant != @ { record.lease?.untilMs = leaseUntilMs }"),
    ("progress is not stored", SCHEDULER,
     "            record.payload = payload\n",
     "            if mutant != @ { record.payload = payload }\n"),
    ("others can read the copy", FILE,
     "fchmod(output, 0o600)",
     "fchmod(output, mutant == @ ? 0o644 : 0o600)"),
    ("others can read the folder", FILE,
     "mkdir(String(folder), 0o700)",
     "mkdir(String(folder), mutant == @ ? 0o755 : 0o700)"),
    ("whatever is there is read", FILE,
     "status.st_mode & S_IFMT == S_IFREG else",
     "mutant == @ || status.st_mode & S_IFMT == S_IFREG else"),
    ("every file is a photo", FILE,
     "Kind(firstBytes: piece.prefix(count))",
     "mutant == @ ? .jpeg : Kind(firstBytes: piece.prefix(count))"),
    ("a half copy of a refused photo stays", FILE,
     "            unlink(part)",
     "            if mutant != @ { unlink(part) }"),
    ("an upload is not broken off", WORKER,
     "uploads.removeValue(forKey: run)?.cancel()",
     "if mutant != @ { uploads.removeValue(forKey: run)?.cancel() }"),
    ("the steps of a message are listed beside it", WAITING,
     "let steps = [KeepPhotoTask.kind, UploadPhotoTask.kind]",
     "let steps = mutant == @ ? [] : [KeepPhotoTask.kind, UploadPhotoTask.kind]"),
]


def mutants():
    return [Mutant(name, [], file, old, new) for name, file, old, new in MUTANTS]


def main():
    chosen = [int(word) for word in sys.argv[1:]] or range(1, len(MUTANTS) + 1)
    with switched(mutants(), "Sources/TambourClient"):
        build = ["swift", "build", "--build-tests", "--traits", "PostgreSQL,TLS"]
        if subprocess.run(build, cwd=ROOT).returncode:
            sys.exit("the mutants do not compile")
        if test := red(0, TESTS):
            sys.exit(f"red without a mutant: {test}")
        survivors = 0
        print("| mutant: what is broken | noticed by |\n| --- | --- |")
        for number in chosen:
            test = red(number, TESTS)
            survivors += test is None
            print(f"| {number}. {MUTANTS[number - 1][0]} | {test or 'NOTHING'} |", flush=True)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
