"""results.json: written whole, read back, described by the schema that the package carries."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from stories import BACK, encode, healthy, run_of

from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Results
from plugpull.judging.results_io import SCHEMA_FILE, read_results, schema_text, write_results


def made(directory: Path) -> Results:
    good, bad = healthy(), healthy()
    bad.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="X")
    file = directory / "history.jsonl"
    file.write_bytes(encode(run_of(good.scenario(), bad.scenario())))
    return judge_history(read_history(file))


def test_the_schema_in_the_package_is_up_to_date() -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "run python -m plugpull.judging.results_io"


def test_the_schema_is_one_and_describes_what_is_written(tmp_path: Path) -> None:
    described = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(described)
    written = json.loads(write_results(tmp_path, made(tmp_path)).read_text())
    jsonschema.validate(written, described)
    written["verdict"] = "MAYBE"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written, described)


def test_it_has_the_fields_that_others_rely_on(tmp_path: Path) -> None:
    written = json.loads(write_results(tmp_path, made(tmp_path)).read_text())
    assert {"schema", "rig", "dut", "verdict", "scenarios"} <= written.keys()
    scenario = written["scenarios"][1]
    assert {"id", "verdict", "seconds", "cuts", "findings", "survivors", "integrity"} <= scenario.keys()
    cut = {
        "point",
        "mechanism",
        "trigger",
        "commanded_at",
        "acknowledged_at",
        "kernel_saw_at",
        "restored_at",
        "returned_at",
    }
    assert cut <= scenario["cuts"][0].keys()
    assert {"check", "subject", "summary", "at", "evidence"} <= scenario["findings"][0].keys()
    assert {"disk", "baseline_bps", "stall_s", "recovery_s", "final_ratio"} <= scenario["survivors"][0].keys()
    columns = {"sectors_checked", "durable_lost", "corrupt", "torn", "misdirected"}
    assert columns <= scenario["integrity"].keys()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    results = made(tmp_path)
    assert read_results(write_results(tmp_path, results)) == results
    assert read_results(tmp_path) == results
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.jsonl", "results.json"]


def test_what_cannot_be_read_is_your_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_results(tmp_path)
    file = tmp_path / "results.json"
    for content in (b"", b"[]", b'{"schema": 1}', b"\xff"):
        file.write_bytes(content)
        with pytest.raises(UsageError, match="not a results file"):
            read_results(file)
    file.write_bytes(b'{"schema": 99}')
    with pytest.raises(UsageError, match="version 99"):
        read_results(file)


def test_what_cannot_be_written_is_the_benchs_fault(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot write"):
        write_results(tmp_path / "absent" / "results.json", made(tmp_path))
