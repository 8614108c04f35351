"""What a check collects, and the measurements that come of repeats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plugpull import checks
from plugpull.checks import Removed, removed
from plugpull.checks.accusation import Accusation
from plugpull.checks.collector import Collector
from plugpull.checks.repeats import median_interval, repeated
from plugpull.finding import Finding
from plugpull.judging.results import Measurement


def test_the_name_of_the_check_is_written_once() -> None:
    said = Collector(removed("disk1"), ("disk1", "disk2"))
    said.accuse("disk1", "disk1 stayed", at=3.0, evidence=["a line"])
    said.measure(Measurement(name="removed after", subject="disk2", value=0.2, unit="s"))
    judgement = said.judgement("worst case")
    assert judgement.findings == (
        Finding(check="removed", subject="disk1", summary="disk1 stayed", at=3.0, evidence=("a line",)),
    )
    assert judgement.subject == "disk1, disk2"
    assert [one.check for one in judgement.measurements] == ["removed"]
    assert Collector(Removed).check == "removed"


def test_accusations_become_findings_of_the_check_and_findings_of_others_stay() -> None:
    said = Collector(Removed)
    other = Finding(check="returned", subject="disk1", summary="disk1 came back as disk2", at=5.0)
    said.take(other, Accusation(subject="disk1", summary="disk1 stayed", at=3.0), Accusation(subject="", summary="odd"))
    said.sort()
    assert [(one.check, one.at) for one in said.findings] == [("removed", 3.0), ("returned", 5.0), ("removed", None)]


@pytest.mark.parametrize("name", ["Finding", "Judgement"])
def test_only_the_collector_makes_findings_and_judgements(name: str) -> None:
    folder = Path(checks.__file__).parent
    making = re.compile(rf"\b{name}\(")
    made = {path.name for path in folder.glob("*.py") if making.search(path.read_text(encoding="utf-8"))}
    assert made - {"accusation.py", "base.py", "collector.py"} == set()


def test_doubts_are_said_once_and_empty_ones_not_at_all() -> None:
    said = Collector("mine")
    assert said.clean
    said.take("", "not seen", "not seen")
    assert not said.clean
    assert said.judgement().unknowns == ("not seen",)


def test_a_time_has_its_limit_and_what_is_left_of_it() -> None:
    judgement = Collector("mine").timed("slow", 1.5, 2.0)
    assert (judgement.measured, judgement.limit, judgement.unit, judgement.smallest) == (1.5, 2.0, "s", 0.5)
    assert Collector("mine").timed("", None, None).measured is None


def test_a_few_repeats_have_a_median_and_no_interval() -> None:
    made = repeated("returned after", "disk1", [3.0, 1.0, 2.0], "s", better="down", parameters={"mechanism": "data"})
    assert (made.value, made.low, made.high, made.n) == (2.0, None, None, 3)
    assert made.samples == (3.0, 1.0, 2.0)


@pytest.mark.parametrize(
    ("count", "rank"),
    # Ranks of the 95 % interval of a median from the usual table of the sign test (two-sided, 5 %).
    [(5, None), (6, 1), (8, 1), (9, 2), (12, 3), (16, 4), (20, 6), (25, 8)],
)
def test_the_interval_of_a_median(count: int, rank: int | None) -> None:
    found = median_interval([float(number) for number in range(count, 0, -1)])
    assert found == (None if rank is None else (float(rank), float(count + 1 - rank)))
