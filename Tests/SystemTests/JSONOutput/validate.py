"""Validates the JSON that commands of `tambour` print, with a library that is independent of `tambour`.

    validate.py SCHEMA OUTPUT ...

An OUTPUT is a file of JSON values with white space between them. Each value must be valid. Together the values must have
every property that the schema names; so an outdated name in the schema is a mistake. No integer may be above 2^53:
JavaScript and jq would print another number. Prints a line for each mistake, and then exits with 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

#: Properties that no command alone produces: the client fetches numbers of comments only for posts on a screen.
ELSEWHERE = {"message.json": {"comments"}}

#: A double represents every integer up to this one exactly.
SAFE = 2**53


def values(text: str) -> Iterator[Any]:
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:].strip()


def integers(value: Any) -> Iterator[int]:
    match value:
        case bool():
            return
        case int():
            yield value
        case dict():
            for item in value.values():
                yield from integers(item)
        case list():
            for item in value:
                yield from integers(item)


def main(schema_file: Path, outputs: list[Path]) -> int:
    schema = json.loads(schema_file.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    missing, wrong = set(schema["properties"]) - ELSEWHERE.get(schema_file.name, set()), []
    for output in outputs:
        found = list(values(output.read_text()))
        if not found:
            wrong.append(f"{output.name}: nothing was printed")
        for value in found:
            missing -= set(value)
            wrong += [f"{output.name}: {problem.json_path}: {problem.message}" for problem in validator.iter_errors(value)]
            wrong += [f"{output.name}: {number} is above 2^53" for number in integers(value) if abs(number) > SAFE]
    if missing:
        wrong.append(f"{schema_file.name}: no output has {sorted(missing)}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
