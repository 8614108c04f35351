"""Exports: KTAP as the kernel's parser reads it, KCIDB as its schema says, Markdown without markup of others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import report_stories as made
from driver_build import KUNIT, source_of
from msgspec.structs import replace

from plugpull.cli import main
from plugpull.errors import UsageError
from plugpull.finding import Finding
from plugpull.judging.results import CheckResult, DutInfo, Measurement, Results, Skipped, Verdict
from plugpull.judging.results_io import write_results
from plugpull.report.kcidb import path_of, render_kcidb
from plugpull.report.ktap import render_ktap
from plugpull.report.markdown import escaped, render_markdown

HOSTILE = "a # SKIP b\nok 9 - forged\x00\x1b[2J | `x` <img src=x> @all [l](http://e.example) \u202e\ud800"

# The expressions of tools/testing/kunit/kunit_parser.py (Linux 6.12), by which a line is what it is.
VERSION = re.compile(r"^\s*KTAP version ([0-9]+)$")
PLAN = re.compile(r"^\s*1\.\.([0-9]+)")
RESULT = re.compile(r"^\s*(ok|not ok) ([0-9]+) ?(- )?([^#]*)( # .*)?$")
SKIP = re.compile(r"^\s*(ok|not ok) ([0-9]+) ?(- )?(.*) # SKIP ?(.*)$")
SUBTEST = re.compile(r"^\s*# Subtest: (.*)$")
DIAGNOSTIC = re.compile(r"^\s*# .*$")


def parsed(text: str) -> list[tuple[str, str, list[Any]]]:
    """The tests as (status, name, subtests), as the parser takes them. Fails on a line of no kind."""
    return _level(text.splitlines(), "")


def _level(lines: list[str], indent: str) -> list[tuple[str, str, list[Any]]]:
    assert VERSION.match(lines.pop(0))
    header = SUBTEST.match(lines[0])
    if header is not None:
        lines.pop(0)
    assert (header is not None) == bool(indent)
    plan = PLAN.match(lines.pop(0))
    assert plan is not None
    found: list[tuple[str, str, list[Any]]] = []
    below: list[Any] = []
    while lines and lines[0].startswith(indent):
        if VERSION.match(lines[0]) and lines[0].startswith(f"{indent}  "):
            below = _level(lines, f"{indent}  ")
            continue
        line = lines.pop(0)
        result = RESULT.match(line)
        if result is None:
            assert DIAGNOSTIC.match(line), line
            assert not SUBTEST.match(line), line
            continue
        assert int(result[2]) == len(found) + 1
        status = "skip" if SKIP.match(line) else "error" if " # ERROR" in line else result[1]
        found.append((status, result[4].strip(), below))
        below = []
    assert len(found) == int(plan[1])
    return found


def hostile() -> Results:
    """A run in which every text is hostile."""
    run = made.run().results
    finding = Finding(check=HOSTILE, subject=HOSTILE, summary=HOSTILE, at=1.0, evidence=(HOSTILE,))
    check = CheckResult(check=HOSTILE, subject=HOSTILE, verdict=Verdict.FAIL, worst=HOSTILE)
    measured = Measurement(name=HOSTILE, subject=HOSTILE, value=1.5, unit=HOSTILE, parameters={HOSTILE: HOSTILE})
    scenario = replace(
        run.scenarios[0],
        id=HOSTILE,
        verdict=Verdict.FAIL,
        sentence=HOSTILE,
        kernel=HOSTILE,
        checks=(check,),
        findings=(finding,),
        unknowns=(HOSTILE,),
        measurements=(measured,),
    )
    return replace(
        run,
        rig=HOSTILE,
        sentence=HOSTILE,
        started=HOSTILE,
        plugpull=HOSTILE,
        dut=DutInfo(kernel=HOSTILE, kind=HOSTILE),
        scenarios=(scenario,),
        skipped=(Skipped(id=HOSTILE, reason=HOSTILE),),
        unknowns=(HOSTILE,),
    )


def test_ktap_has_a_test_per_scenario_and_a_subtest_per_check() -> None:
    results = made.run().results
    tests = parsed(render_ktap(results))
    meant = {Verdict.PASS: "ok", Verdict.FAIL: "not ok", Verdict.UNKNOWN: "error"}
    assert [status for status, _, _ in tests[: len(results.scenarios)]] == [meant[s.verdict] for s in results.scenarios]
    for scenario, (_, name, below) in zip(results.scenarios, tests, strict=False):
        assert name == scenario.id
        assert [status for status, _, _ in below] == [meant[check.verdict] for check in scenario.checks]


def test_a_run_that_is_unknown_as_a_whole_is_not_all_ok_in_ktap() -> None:
    results = replace(made.run().results, scenarios=(made.passing(),), unknowns=("the run was interrupted",))
    assert [status for status, _, _ in parsed(render_ktap(results))] == ["ok", "error"]
    empty = replace(results, scenarios=(), skipped=(), unknowns=())
    assert [status for status, _, _ in parsed(render_ktap(empty))] == ["error"]


def test_skipped_scenarios_are_skipped_in_ktap() -> None:
    results = replace(made.run().results, scenarios=(made.passing(),), skipped=(Skipped(id="x", reason="no hub"),))
    assert parsed(render_ktap(results))[1][:2] == ("skip", "x")


def test_hostile_text_forges_no_line_of_ktap() -> None:
    text = render_ktap(hostile())
    statuses = [status for status, _, _ in parsed(text)]
    assert statuses == ["not ok", "skip", "error"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    text.encode()


READ_BY_KUNIT = """
import inspect, json, sys
sys.path.insert(0, sys.argv[1])
out, sys.stdout = sys.stdout, sys.stderr  # which kunit_printer takes when it is imported
import kunit_parser, kunit_printer
more = [kunit_printer.stdout] if "printer" in inspect.signature(kunit_parser.parse_run_tests).parameters else []
def tree(test):
    return [test.status.name, test.name, [tree(one) for one in test.subtests]]
found = kunit_parser.parse_run_tests(sys.stdin.read().splitlines(), *more)
print(json.dumps([found.counts.errors, tree(found)]), file=out)
"""


@pytest.fixture(scope="module")
def kunit() -> Path:
    """The directory with the parser of the guest's kernel."""
    return source_of(KUNIT) / "tools/testing/kunit"


def read_by_kunit(text: str, folder: Path) -> tuple[int, list[Any]]:
    """The number of errors, and the tests as (status, name, subtests), as the kernel's own parser reads them."""
    line = [sys.executable, "-c", READ_BY_KUNIT, str(folder)]
    done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    errors, (_, _, tests) = json.loads(done.stdout)
    return errors, tests


@pytest.mark.parametrize("results", [made.run().results, hostile()], ids=["usual", "hostile"])
def test_the_kernels_own_parser_reads_ktap(results: Results, kunit: Path) -> None:
    """It is of the source of the guest's kernel, which is fetched on request (PLUGPULL_DRIVER_BUGS=1)."""
    text = render_ktap(results)
    errors, tests = read_by_kunit(text, kunit)
    assert errors == 0
    expected = [
        (_by_kunit(one.verdict), [_by_kunit(check.verdict) for check in one.checks]) for one in results.scenarios
    ]
    expected += [("SKIPPED", []) for _ in results.skipped] + [("FAILURE", []) for _ in results.unknowns[:1]]
    assert [(status, [each[0] for each in below]) for status, _, below in tests] == expected


def test_the_kernels_own_parser_counts_what_is_missing(kunit: Path) -> None:
    lines = render_ktap(made.run().results).splitlines()
    assert read_by_kunit("\n".join(line for line in lines if not line.startswith("ok 1 ")), kunit)[0] > 0


def _by_kunit(verdict: Verdict) -> str:
    return "SUCCESS" if verdict is Verdict.PASS else "FAILURE"


@pytest.mark.parametrize("results", [made.run().results, hostile(), replace(made.run().results, scenarios=())])
def test_kcidb_io_validates_what_is_submitted(results: Results) -> None:
    schema = pytest.importorskip(
        "kcidb_io", reason="a development dependency: `plugpull test` installs it"
    ).schema.LATEST
    document = json.loads(render_kcidb(results, "my_lab"))
    assert document["version"] == {"major": schema.major, "minor": schema.minor}
    assert schema.validate(document) == document
    assert schema.count(document) == sum(len(document[kind]) for kind in ("checkouts", "builds", "tests"))


@pytest.mark.parametrize("spoil", [{"status": "UNKNOWN"}, {"path": "a b"}, {"start_time": "tonight"}, {"rig": "desk"}])
def test_kcidb_io_refuses_what_is_wrong(spoil: dict[str, str]) -> None:
    schema = pytest.importorskip(
        "kcidb_io", reason="a development dependency: `plugpull test` installs it"
    ).schema.LATEST
    document = json.loads(render_kcidb(made.run().results, "my_lab"))
    document["tests"][0] |= spoil
    assert not schema.is_valid(document)


def test_kcidb_keeps_to_its_schema() -> None:
    for results in (made.run().results, hostile()):
        document = json.loads(render_kcidb(results, "my_lab"))
        assert set(document) == {"version", "checkouts", "builds", "tests"}
        assert document["version"] == {"major": 5, "minor": 3}
        ids = {kind: [one["id"] for one in document[kind]] for kind in ("checkouts", "builds", "tests")}
        for kind, found in ids.items():
            assert len(set(found)) == len(found), kind
            assert all(re.fullmatch(r"[a-z0-9_]+:[^\0]*", one) for one in found)
            assert all(one["origin"] == "my_lab" for one in document[kind])
        assert all(one["checkout_id"] in ids["checkouts"] for one in document["builds"])
        allowed = {"id", "origin", "build_id", "path", "status", "environment", "comment", "duration", "misc", "number"}
        for test in document["tests"]:
            assert set(test) <= allowed
            assert test["build_id"] in ids["builds"]
            assert re.fullmatch(r"([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?", test["path"])
            assert test["status"] in {"PASS", "FAIL", "ERROR", "SKIP", "DONE"}
        assert "\\u0000" not in render_kcidb(results)


def test_kcidb_says_what_happened() -> None:
    results = made.run().results
    tests = json.loads(render_kcidb(results))["tests"]
    meant = {Verdict.PASS: "PASS", Verdict.FAIL: "FAIL", Verdict.UNKNOWN: "ERROR"}
    judged = [test for test in tests if test["status"] != "DONE" and test["path"] != "plugpull.run"]
    assert [test["status"] for test in judged] == [meant[scenario.verdict] for scenario in results.scenarios]
    assert [test["duration"] for test in judged] == [scenario.seconds for scenario in results.scenarios]
    measured = [one for scenario in results.scenarios for one in scenario.measurements]
    assert [one["number"]["value"] for one in tests if one["status"] == "DONE"] == [one.value for one in measured]


def test_two_exports_of_one_run_are_the_same() -> None:
    results = made.run().results
    assert render_kcidb(results) == render_kcidb(results)


def test_a_wrong_origin_is_refused() -> None:
    with pytest.raises(UsageError, match="not a KCIDB origin"):
        render_kcidb(made.run().results, "My Lab")


def test_a_scenario_is_a_path() -> None:
    path = path_of("scenarios/test_x.py::test_a_cut[disk1-write back]")
    assert path == "plugpull.scenarios.test_x.test_a_cut_disk1-write_back"


def test_markdown_names_every_scenario_and_finding() -> None:
    results = made.run().results
    text = render_markdown(results)
    assert text.startswith(f"## {results.verdict}: ")
    for scenario in results.scenarios:
        for finding in scenario.findings:
            assert escaped(finding.summary) in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(results.scenarios) + len(results.skipped)


def test_markdown_of_hostile_text_has_no_markup_of_it() -> None:
    text = render_markdown(hostile())
    assert not re.search(r"(?<!\\)[`\[\]]", text)
    assert not re.search(r"@(?!\u200b)", text)
    assert "<" not in text
    assert "://" not in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    for row in (line for line in text.splitlines() if line.startswith("| ")):
        assert len(re.findall(r"(?<!\\)\|", row)) == 5, row
    text.encode()


def test_markdown_hints_at_a_bisection_where_two_kernels_differ() -> None:
    good = replace(made.passing(), kernel="6.6.1")
    bad = replace(made.failing(), id=good.id, kernel="6.12.1")
    differs = replace(made.run().results, scenarios=(good, bad))
    assert "plugpull bisect-step --kernel ." in render_markdown(differs)
    same = replace(
        differs, scenarios=(replace(good, kernel="6.12.1"), replace(made.passing(), id=good.id, kernel="6.6.1"))
    )
    assert "bisect" not in render_markdown(same)


@pytest.mark.parametrize("kind", ["junit", "kcidb", "ktap", "markdown"])
def test_the_command_prints_or_writes_a_run(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(tmp_path, made.run().results)
    assert main(["export", str(tmp_path), "--format", kind]) == 0
    printed = capsys.readouterr().out
    assert printed
    assert main(["export", str(tmp_path / "results.json"), "--format", kind, "--out", str(tmp_path / "x")]) == 0
    assert (tmp_path / "x").read_text() == printed


def test_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert main(["export", str(tmp_path / "none"), "--format", "ktap"]) == 2
