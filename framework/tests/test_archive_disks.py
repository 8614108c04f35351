"""A series belongs to a disk and not to its name: disks that are exchanged or move, archives that begin to say so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from archives import date, measurement, put, results, scenario
from test_earlier_runs import RUNS, history_of

from plugpull.archive.disks import identities_of
from plugpull.archive.page import write_page
from plugpull.archive.reading import kind_in
from plugpull.archive.trend import SeriesTrend, Trend, make_index, trend_of
from plugpull.judging.judge import judge_history
from plugpull.judging.results_io import encode_results
from plugpull.rig.load import load_rig

RIGS = Path(__file__).parents[2] / "rigs"
KEY = "test_a.py::test_b rig=desk kernel=6.1 disk="


def disks(**serials: str) -> dict[str, Any]:
    """The ``disks`` of a results file."""
    return {"disks": [{"name": name, "serial": serial, "model": "M1"} for name, serial in serials.items()]}


def night(
    directory: Path,
    number: int,
    verdict: str,
    had: Mapping[str, Any],
    *,
    victim: str = "disk1",
    rate: float | None = None,
) -> None:
    values = [measurement("write rate", rate, subject=victim)] if rate else []
    put(
        directory,
        results(number, [scenario(verdict=verdict, subject="disk9", victim=victim, measurements=values)], **had),
    )


def by_key(trend: Trend) -> dict[str, SeriesTrend]:
    return {one.key.removeprefix(KEY): one for one in trend.series}


def test_the_series_of_a_disk_that_was_exchanged_is_gone_and_a_new_one_begins(tmp_path: Path) -> None:
    for number in range(8):
        night(tmp_path, number, "P", disks(disk1="S1", disk2="S2"))
    for number in (8, 9):
        night(tmp_path, number, "F", disks(disk1="S9", disk2="S2"))
    found = by_key(trend_of(tmp_path))
    assert {key: (one.name, one.since) for key, one in found.items()} == {
        "S1": ("gone", date(8)),
        "S9": ("ongoing", date(8)),
    }
    assert (found["S9"].k, found["S9"].n) == (2, 2), "the failures of the new disk are counted alone"
    assert found["S9"].disk == "disk1 (S9)"


def test_a_healthy_disk_in_the_place_of_a_bad_one_has_fixed_nothing(tmp_path: Path) -> None:
    for number in range(6):
        night(tmp_path, number, "F", disks(disk1="BAD"))
    for number in range(6, 12):
        night(tmp_path, number, "P", disks(disk1="GOOD"))
    found = by_key(trend_of(tmp_path))
    assert {key: one.name for key, one in found.items()} == {"BAD": "gone", "GOOD": "passing"}


def test_a_disk_that_only_takes_no_turn_tonight_is_not_gone(tmp_path: Path) -> None:
    had = disks(disk1="S1", disk2="S2")
    for number in range(6):
        night(tmp_path, number, "P", had, victim=("disk1", "disk2")[number % 2])
    assert {one.name for one in trend_of(tmp_path).series} == {"passing"}


def test_a_disk_keeps_its_series_when_it_moves(tmp_path: Path) -> None:
    for number in range(4):
        night(tmp_path, number, "F", disks(disk1="S1", disk2="S2"))
    night(tmp_path, 4, "F", disks(disk1="S2", disk2="S1"), victim="disk2")
    (found,) = trend_of(tmp_path).series
    assert (found.name, found.since, found.n, found.disk) == ("ongoing", date(0), 5, "disk2 (S1)")


def test_the_values_of_another_disk_are_not_a_change(tmp_path: Path) -> None:
    rates = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2] * 2
    for number, rate in enumerate(rates):
        night(tmp_path, number, "P", disks(disk1="S1"), rate=rate)
    for number, rate in enumerate(rates, len(rates)):
        night(tmp_path, number, "P", disks(disk1="S9"), rate=rate * 0.7)
    assert trend_of(tmp_path).changes == ()


# --- archives that began without identities --------------------------------------------------------------------------


def test_results_without_identities_are_keyed_by_name(tmp_path: Path) -> None:
    for number in range(3):
        night(tmp_path, number, "P", {})
    assert set(by_key(trend_of(tmp_path))) == {"disk1"}


def test_a_failure_goes_on_when_the_archive_begins_to_say_which_disk_it_was(tmp_path: Path) -> None:
    for number in range(3):
        night(tmp_path, number, "P", {})
    for number in (3, 4):
        night(tmp_path, number, "F", {})
    before = by_key(trend_of(tmp_path))
    assert before["disk1"].name == "ongoing"
    night(tmp_path, 5, "F", disks(disk1="S1"))
    found = by_key(trend_of(tmp_path))
    assert {key: (one.name, one.since, one.n) for key, one in found.items()} == {"S1": ("ongoing", date(3), 6)}
    # An older plugpull runs once more on this rig.
    night(tmp_path, 6, "F", {})
    assert by_key(trend_of(tmp_path))["S1"].n == 7


def test_a_change_of_values_is_found_across_that_night(tmp_path: Path) -> None:
    rates = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1]
    for number, rate in enumerate(rates):
        night(tmp_path, number, "P", {}, rate=rate)
    for number, rate in enumerate(rates, len(rates)):
        night(tmp_path, number, "P", disks(disk1="S1"), rate=rate * 0.8)
    (change,) = trend_of(tmp_path).changes
    assert (change.state, change.at) == ("changed", date(len(rates)))
    assert change.key == f"{KEY}S1"
    page, _ = write_page(tmp_path)
    text = page.read_text()
    assert "<td>disk1</td>" in text, "its name is enough, as it is the only disk of that name"
    assert "(S1)" not in text
    assert text.count("<td>disk1</td>") == 1, "one curve with all its nights"


def test_an_index_made_from_nothing_says_the_same(tmp_path: Path) -> None:
    story = [("F", {}), ("P", disks(disk1="S1")), ("F", {}), ("F", disks(disk1="S1")), ("P", disks(disk1="S2"))]
    for number, (verdict, had) in enumerate(story * 3):
        night(tmp_path, number, verdict, had, rate=100.0 + number)
        step_by_step = trend_of(tmp_path)
    make_index(tmp_path)
    afresh = trend_of(tmp_path)
    assert [(one.key, one.name, one.since, one.n) for one in afresh.series] == [
        (one.key, one.name, one.since, one.n) for one in step_by_step.series
    ]
    assert afresh.changes == step_by_step.changes


# --- what is said of disks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([{"name": "a", "serial": "S"}, {"name": "b", "serial": "T", "lun": 0}], {"a": "S", "b": "T"}),
        ([{"name": "a", "serial": "S"}, {"name": "b", "serial": "S", "lun": 1}], {"a": "S", "b": "S unit 1"}),
        ([{"name": "a", "serial": "0123"}, {"name": "b", "serial": "0123"}, {"name": "c", "serial": "T"}], {"c": "T"}),
        ([{"name": "a", "serial": "b"}, {"name": "b", "serial": "T"}], {"b": "T"}),
        ([{"name": "a", "serial": ""}, {"name": "b"}, {"serial": "S"}, "a", None, {"name": 3, "serial": "S"}], {}),
        ([{"name": "a b", "serial": "S"}, {"name": "\x1b[2J", "serial": "S"}], {}),
        ([{"name": "a", "serial": "S\x1b[2J\n"}], {"a": "S␛[2J␊"}),
        ({"a": "S"}, {}),
        (None, {}),
    ],
)
def test_identities(listed: object, expected: dict[str, str]) -> None:
    assert identities_of({"disks": listed}) == expected


def test_a_run_says_which_disks_it_had(tmp_path: Path) -> None:
    """A recorded run of the stock rig, whose kernel logged the model of each disk."""
    found = judge_history(history_of("passed", tmp_path))
    declared = load_rig(RIGS / "quick.toml").disk
    assert [(one.name, one.serial, one.size) for one in found.disks] == [
        (one.name, one.serial, one.size) for one in declared
    ]
    assert {one.model for one in found.disks} == {"QEMU QEMU HARDDISK"}
    assert json.loads(encode_results(found))["disks"][0]["serial"] == declared[0].serial


def test_the_archive_infers_the_kind_that_a_finding_has(tmp_path: Path) -> None:
    """So that a failure goes on when results begin to have kinds."""
    kinds = set()
    for name in RUNS:
        for one in judge_history(history_of(name, tmp_path)).scenarios:
            found = [finding for finding in one.findings if finding.kind]
            assert all(kind_in(finding.summary) == finding.kind for finding in found)
            kinds |= {finding.kind for finding in found}
    assert {"usb.reset", "fatal.oops"} <= kinds
