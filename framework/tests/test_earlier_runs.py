"""Runs recorded by earlier versions get the verdicts and findings that they had, and are shown."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import plugpull.checks  # noqa: F401  the histories ask for its checks by name
from plugpull.history.reader import History, read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.plan import judged_stories
from plugpull.judging.results import Results
from plugpull.judging.results_io import encode_results, read_results
from plugpull.report.html import events_of, render_html
from plugpull.report.junit import render_junit

FOLDER = Path(__file__).parent / "data" / "earlier"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_bytes())
RUNS = sorted(EXPECTED)


def unpacked(name: str, tmp_path: Path) -> Path:
    """The recorded file, as it was in its run directory."""
    file = tmp_path / name
    file.write_bytes(lzma.decompress((FOLDER / f"{name}.xz").read_bytes()))
    return file


def history_of(name: str, tmp_path: Path) -> History:
    return read_history(unpacked(f"{name}.jsonl", tmp_path), edited=EXPECTED[name]["cut_down"])


def summary_of(results: Results) -> dict[str, Any]:
    """What has to stay: verdicts, and what was held against whom. The wording may change."""
    return {
        "verdict": str(results.verdict),
        "complete": results.complete,
        "scenarios": {
            scenario.id: {
                "verdict": str(scenario.verdict),
                "findings": sorted([finding.check, finding.subject] for finding in scenario.findings),
                "checks": {check.check: str(check.verdict) for check in scenario.checks},
                "survivors": sorted(survivor.disk for survivor in scenario.survivors),
                "sectors_checked": scenario.integrity.sectors_checked,
            }
            for scenario in results.scenarios
        },
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_an_earlier_version_is_judged_as_it_was(name: str, tmp_path: Path) -> None:
    expected, now = EXPECTED[name]["summary"], summary_of(judge_history(history_of(name, tmp_path)))
    for scenario, was in expected["scenarios"].items():
        # Checks that are judged for every scenario may be added.
        checks = now["scenarios"][scenario]["checks"]
        now["scenarios"][scenario]["checks"] = {check: checks.get(check) for check in was["checks"]}
    assert now == expected


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_an_earlier_version_is_shown(name: str, tmp_path: Path) -> None:
    history = history_of(name, tmp_path)
    results = judge_history(history)
    page = render_html(results, events_of(judged_stories(history, results)), begun=history.begun)
    assert all(f'id="s{number}"' in page for number in range(1, len(results.scenarios) + 1))
    assert render_junit(results).count("<testcase ") == len(results.scenarios)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.results.json.xz")), ids=lambda file: file.name.split(".")[0])
def test_results_of_an_earlier_version_are_read(file: Path, tmp_path: Path) -> None:
    path = unpacked(file.name.removesuffix(".xz"), tmp_path)
    results = read_results(path)
    again = json.loads(encode_results(results))
    assert covers(again, json.loads(path.read_bytes())), "a field of the earlier file was lost"
    assert 'id="s1"' in render_html(results, [])


def covers(new: Any, old: Any) -> bool:
    """Whether ``new`` says all that ``old`` says; it may have more fields."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and covers(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(covers, new, old))
    return bool(new == old)


def test_the_bad_sectors_of_an_earlier_run_are_measured(tmp_path: Path) -> None:
    (scenario,) = judge_history(history_of("half_old_block", tmp_path)).scenarios
    was = read_results(unpacked("half_old_block.results.json", tmp_path)).scenarios[0].integrity.torn
    (bad,) = [one for one in scenario.measurements if one.name == "bad sectors"]
    assert (bad.check, bad.subject, bad.value, bad.unit) == ("nothing_lost", "large", float(was), "sectors")
