"""Measurements as the report shows them, and as results.json has them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from stories import SURVIVORS, VICTIM, healthy

from plugpull.checks import Check, encode_check, kept_pace, removed, returned
from plugpull.checks.collector import Collector
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import DutInfo, Measurement, Results, ScenarioResult, Survivor
from plugpull.judging.results_io import read_results, write_results
from plugpull.report.html import render_html
from plugpull.report.measurements import rows_of
from plugpull.report.text import NONE

STUDY = Measurement(
    name="sequential write",
    subject="disk1",
    value=41.5e6,
    unit="B/s",
    low=40e6,
    high=43e6,
    n=8,
    samples=tuple(40e6 + step * 5e5 for step in range(8)),
    better="up",
    parameters={"block": 131072, "depth": 4},
    check="throughput",
)


def judged(*checks: Check) -> ScenarioResult:
    bench = healthy().story()
    asked = ev.Judged(at=bench.heard_until, checks=tuple(encode_check(check) for check in checks))
    kept = tuple(event for event in bench.events if not isinstance(event, ev.Judged))
    return judge_story(Story(bench.begun, (*kept[:-1], asked, kept[-1]), before=bench.before, rig=bench.rig))


def test_what_a_study_measured_is_shown_in_its_units() -> None:
    (row,) = rows_of([STUDY])
    assert (row.value, row.interval, row.better) == ("41.5 MB/s", "40 MB/s to 43 MB/s", "higher")
    assert row.conditions == "block 131072, depth 4"
    assert row.each == "40 MB/s, 40.5 MB/s, 41 MB/s, 41.5 MB/s, 42 MB/s, 42.5 MB/s …"


def test_a_single_number_has_neither_interval_nor_repeats() -> None:
    (row,) = rows_of([Measurement(name="count", value=3.0)])
    assert (row.value, row.interval, row.each, row.better, row.subject) == ("3", NONE, NONE, NONE, NONE)


def test_a_scenario_has_the_measurements_of_its_checks() -> None:
    result = judged(removed(VICTIM), returned(VICTIM), kept_pace(SURVIVORS))
    found = {(one.check, one.name, one.subject): one for one in result.measurements}
    assert found["removed", "removed after", VICTIM].unit == "s"
    assert found["returned", "returned after", VICTIM].better == "down"
    for survivor in result.survivors:
        baseline = found["kept_pace", "baseline rate", survivor.disk]
        assert survivor.baseline_bps == baseline.value
        assert (baseline.low or 0) < baseline.value < (baseline.high or 0)
        assert survivor.final_ratio == found["kept_pace", "final rate", survivor.disk].value


def test_a_survivor_that_could_not_be_measured_keeps_its_entry() -> None:
    result = judged(kept_pace("disk9"))
    assert result.survivors == (Survivor(disk="disk9"),)
    assert not [one for one in result.measurements if one.check == "kept_pace"]


@pytest.fixture
def results() -> Results:
    scenario = msgspec.structs.replace(judged(removed(VICTIM)), measurements=(STUDY,))
    return Results(
        schema=1,
        plugpull="0",
        rig="r",
        dut=DutInfo(),
        verdict=scenario.verdict,
        sentence="",
        started="",
        seconds=1.0,
        seed=1,
        scenarios=(scenario,),
    )


def test_measurements_are_in_the_report_and_come_back_from_results_json(results: Results, tmp_path: Path) -> None:
    page = render_html(results, [])
    assert "<h3>Measurements</h3>" in page
    assert "41.5 MB/s" in page
    write_results(tmp_path, results)
    assert read_results(tmp_path).scenarios[0].measurements == (STUDY,)


def test_a_check_of_a_users_own_measures_with_a_collector() -> None:
    said = Collector("throughput", "disk1")
    said.measure(msgspec.structs.replace(STUDY, check=""))
    assert said.judgement().measurements == (STUDY,)
