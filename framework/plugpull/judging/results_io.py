"""Reads and writes ``results.json``, and generates its JSON Schema.

The schema in ``plugpull/schema/results.schema.json`` is generated from the structs. Run ``python -m
plugpull.judging.results_io`` after a change of them.
"""

from __future__ import annotations

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

from plugpull.errors import RigError, UsageError
from plugpull.files import write_whole
from plugpull.judging.results import RESULTS_VERSION, Results
from plugpull.plain import clean_json

RESULTS_FILE = "results.json"
SCHEMA_FILE = Path(__file__).parents[1] / "schema" / "results.schema.json"


def encode_results(results: Results) -> bytes:
    """The content of ``results.json``: all fields, two spaces of indentation, one newline at the end."""
    text = msgspec.json.format(msgspec.json.encode(results), indent=2).decode()
    return clean_json(text).encode() + b"\n"


def write_results(path: Path, results: Results) -> Path:
    """Write ``results.json`` completely or not at all, given its path or its run directory. Raises ``RigError``."""
    file = _file(path)
    try:
        write_whole(file, encode_results(results))
    except OSError as error:
        raise RigError(
            f"cannot write {file}: {error.strerror or error}",
            hint="free space on that file system; `plugpull check` makes the results again from the history",
        ) from error
    return file


def read_results(path: Path) -> Results:
    """Read ``results.json``, given its path or its run directory. Raises ``UsageError`` if it is invalid or too new."""
    file = _file(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror or error}", hint="name a run directory, such as runs/latest"
        ) from error
    try:
        version = msgspec.json.decode(content).get("schema")
        if isinstance(version, int) and version > RESULTS_VERSION:
            raise UsageError(
                f"{file} has schema version {version}, but this plugpull reads {RESULTS_VERSION}",
                hint="upgrade plugpull",
            )
        return msgspec.json.decode(content, type=Results)
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError) as error:
        raise UsageError(
            f"{file} is not a results file: {error}", hint="make it again from its history with `plugpull check`"
        ) from error


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of ``results.json``."""
    made = msgspec.json.schema(Results)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"plugpull results, version {RESULTS_VERSION}",
        **made,
    }


def schema_text() -> str:
    """The schema as it is stored in the package."""
    return json.dumps(_undented(schema()), indent=2, sort_keys=True) + "\n"


def _undented(value: Any) -> Any:
    """Remove indentation from descriptions. They come from docstrings, which Python itself dedents only since 3.13."""
    if isinstance(value, dict):
        return {
            key: cleandoc(each) if key == "description" and isinstance(each, str) else _undented(each)
            for key, each in value.items()
        }
    return [_undented(each) for each in value] if isinstance(value, list) else value


def _file(path: Path) -> Path:
    return path / RESULTS_FILE if path.is_dir() else path


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
