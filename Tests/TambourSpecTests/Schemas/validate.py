"""Validates the examples of the specification against the JSON Schemas, with an independent library.

    python validate.py PROTOCOL_JSON SCHEMA_FOLDER

Every example and every other legal encoding of it must be valid. An example that the server refuses for a type, a
missing key or an unknown value must be invalid. Refusals that JSON Schema cannot detect, such as a repeated key, are
only counted. Prints a line for each mismatch and then exits with 1.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import msgpack

#: The number of bytes of a packet before its payload.
HEADER = 10

#: A schema can detect refusals that begin, after the path, with one of these texts. JSON Schema treats a float like 1.0
#: as an integer.
TELLABLE = ("expected", "missing", "unknown value", "an integer above")


def plain(value: Any) -> Any:
    """A decoded payload as JSON holds it: bytes as `{"$bytes": hex}`, keys as strings."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case bytes():
            return {"$bytes": value.hex()}
        case _:
            return value


def decoded(packet: str) -> Any:
    payload = bytes.fromhex(packet)[HEADER:]
    if payload in (b"", b"\xc0"):
        return {}
    return plain(msgpack.unpackb(payload, raw=False, strict_map_key=False))


def is_whole_float(error: str, value: Any) -> bool:
    """Whether the refusal is about a float without a fraction, somewhere in the value."""
    if not error.endswith("found a float"):
        return False
    for step in error.split(":")[0].strip("/").split("/"):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value == int(value)


def main(protocol: Path, folder: Path) -> int:
    validators = {}
    for file in sorted(folder.glob("*.json")):
        schema = json.loads(file.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[file.stem] = jsonschema.Draft202012Validator(schema)
    counts: Counter[str] = Counter(schemas=len(validators))
    wrong: list[str] = []
    for example in json.loads(protocol.read_text())["examples"]:
        validator = validators[f"{example['opcode']}.{example['role']}"]
        name = f"{example['opcode']}.{example['role']}, {example['name']}"

        def expect(is_valid: bool, value: Any, what: str, kind: str, validator: Any = validator) -> None:
            counts[kind] += 1
            problem = jsonschema.exceptions.best_match(validator.iter_errors(value))
            if is_valid and problem:
                wrong.append(f"{what}: is not valid: {problem.json_path}: {problem.message}")
            if not is_valid and not problem:
                wrong.append(f"{what}: is valid")

        expect(True, example["value"], name, "values")
        expect(True, decoded(example["hex"]), name, "packets")
        for accept in example["accept"]:
            expect(True, decoded(accept["hex"]), f"{name}, {accept['name']}", "other encodings")
        for reject in example["reject"]:
            reason = reject["error"].split(": ", 1)[-1]
            try:
                value = decoded(reject["hex"])
            except (ValueError, msgpack.exceptions.UnpackException):
                counts["refusals of what is no MessagePack"] += 1
                continue
            if not reason.startswith(TELLABLE):
                counts["refusals that no schema can tell"] += 1
            elif is_whole_float(reject["error"], value):
                counts["refusals of floats that are integers to JSON"] += 1
            else:
                expect(False, value, f"{name}, {reject['name']}", "refusals")
    for line in wrong:
        print(f"FAILED {line}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
