"""Studies of controllers side by side, and of long writes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from study_benches import StudyBench, a_rig, judged, kinds, only, writing

from plugpull.checks import Judgement
from plugpull.history import events as ev
from plugpull.load.designs import Condition, all_at_once, all_for_long, side_by_side
from plugpull.studies import beside, recovery_cost, sustained

# --- controllers side by side ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OnController:
    """A disk as a design of controllers sees it."""

    name: str
    controller: str


def _beside(rates: list[float], repeats: int = 5, noise: float = 0.01, seed: object = 0) -> Judgement:
    rig = a_rig(rates, noise=noise, seed=seed)
    half = len(rates) // 2
    homes = ["usb1"] * half + ["usb2"] * half
    found = side_by_side([_OnController(name, home) for name, home in zip(rig.names, homes, strict=True)])
    design = tuple(Condition(tuple(disk.name for disk in one.disks), one.pattern) for one in found)
    table = {
        "controller": [{"name": "usb1"}, {"name": "usb2"}],
        "disk": [
            {"name": name, "at": f"{home}.{number}", "serial": f"S-{name}", "scratch": True}
            for number, (name, home) in enumerate(zip(rig.names, homes, strict=True), 1)
        ],
    }
    return judged(StudyBench(rig, writing(design), repeats=repeats, table=table), beside(rig.names))


def test_a_faster_controller_is_named_with_effect_interval_and_test() -> None:
    """One controller is half as fast again as the other."""
    one = only(_beside([1.0, 1.0, 1.5, 1.5]), "difference")
    assert one.subject == "usb1, usb2"
    assert one.value == pytest.approx(0.5, abs=0.05)
    assert any("p = 0.0079" in line for line in one.evidence)


def test_two_equal_controllers_are_said_to_be_alike() -> None:
    one = only(_beside([1.0, 1.0, 1.0, 1.0], noise=0.003), "no-difference")
    assert one.value == pytest.approx(0.0, abs=0.02)


def test_three_repeats_are_too_few_to_claim_a_difference() -> None:
    found = _beside([1.0, 1.0, 1.5, 1.5], repeats=3)
    assert found.conclusions == ()
    assert "3 repeats are too few to say whether usb1 and usb2 differ when they write: +49" in found.unknowns[0]
    assert found.unknowns[0].endswith("measure with --repeats 4")


def test_three_repeats_of_equal_controllers_leave_no_doubt_and_no_claim() -> None:
    found = _beside([1.0] * 4, repeats=3, noise=0.03, seed=5)
    assert (found.conclusions, found.unknowns) == ((), ())
    assert "not shown to differ" in found.worst


def test_thirty_pairs_of_equal_controllers_have_at_most_one_difference() -> None:
    false = [
        number
        for number in range(30)
        if any(one.kind == "difference" for one in _beside([1.0] * 4, noise=0.02, seed=("beside", number)).conclusions)
    ]
    assert len(false) <= 1, false


def test_a_rig_with_one_controller_has_no_design() -> None:
    assert side_by_side([_OnController("a", "usb"), _OnController("b", "usb")]) == ()


# --- a long write ----------------------------------------------------------------------------------------------


def _long(pace: Callable[[str, float], float], disks: int = 2) -> Judgement:
    rig = a_rig([2.0] * disks, noise=0.0)
    return judged(StudyBench(rig, all_for_long(rig.names), repeats=1, pace=pace), sustained(rig.names))


def test_a_steady_long_write_has_no_dips() -> None:
    found = _long(lambda disk, since: 1.0)
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())
    assert found.worst == "no dips in a long write"
    assert [(one.name, one.subject) for one in found.measurements] == [
        ("write sustained", "disk1"),
        ("write sustained", "disk2"),
    ]


@pytest.mark.parametrize(("every", "pause"), [(4 << 20, 1.0), (2 << 20, 0.6), (4 << 20, 0.4)])
def test_collections_of_garbage_are_found_where_they_are(every: int, pause: float) -> None:
    """A disk of 1 MB/s pauses each time it has written so many bytes; each sample is off by 10 %."""
    draw, state = random.Random(f"garbage {every} {pause}"), {"written": 0.0, "left": float(every), "pause": 0.0}
    begins: list[float] = []

    def pace(disk: str, since: float) -> float:
        if since < -0.01 or disk != "disk1":
            return 1.0
        if state["pause"] > 0.05:
            state["pause"] -= 0.1
            return 0.0
        share = draw.gauss(1, 0.1)
        state["written"] += share * 1e5
        state["left"] -= share * 1e5
        if state["left"] <= 0:
            state["left"] += every
            state["pause"] = pause
            begins.append(state["written"])
        return share

    rig = a_rig([1.0] * 2, noise=0.0)
    found = judged(StudyBench(rig, all_for_long(rig.names), repeats=1, pace=pace), sustained(rig.names))
    one = only(found, "dip")
    window = found.measurements[0].parameters["window"]
    assert isinstance(window, int)
    starts = [float(line.split()[1]) * (1 << 20) for line in one.evidence]
    assert starts == pytest.approx(begins[: len(starts)], abs=window)
    assert len(begins) - len(starts) in (0, 1), "the last one may begin as the measurement ends"


def test_dips_of_one_disk_are_placed_within_a_window() -> None:
    """At 2 MB/s for 15 s, a pause of 1 s at 6, 9 and 12 s: the first begins after 12 MB, and each leaves 0.04 MB."""
    found = _long(lambda disk, since: 0.02 if disk == "disk1" and any(t <= since < t + 1 for t in (6, 9, 12)) else 1.0)
    one = only(found, "dip")
    assert one.subject == "disk1"
    assert found.unknowns == ()
    starts = [float(line.split()[1]) for line in one.evidence]
    window = found.measurements[0].parameters["window"]
    assert isinstance(window, int)
    for start, truth in zip(starts, (12e6, 16.04e6, 20.08e6), strict=True):
        assert start * (1 << 20) == pytest.approx(truth, abs=window)
    assert one.value is not None
    assert one.value > 0.5


def test_a_disk_that_never_recovers_has_collapsed() -> None:
    found = _long(lambda disk, since: 0.2 if disk == "disk2" and since > 8 else 1.0)
    assert kinds(found) == [("collapse", "disk2")]
    one = only(found, "collapse")
    assert one.value == pytest.approx(-0.8, abs=0.05)


@pytest.mark.parametrize("since", [5.2, 6.3, 8.6])
@pytest.mark.parametrize("left", [0.45, 0.55, 0.68])
def test_a_disk_that_keeps_half_of_its_rate_has_collapsed_from_its_usual_rate(left: float, since: float) -> None:
    """Before, the usual rate of such a disk was taken as the mean of both, or it had a dip."""
    found = _long(lambda disk, at: left if disk == "disk2" and at > since else 1.0)
    assert kinds(found) == [("collapse", "disk2")]
    assert only(found, "collapse").value == pytest.approx(left - 1, abs=0.05)


@pytest.mark.parametrize("left", [0.55, 0.65])
def test_a_disk_that_is_slow_only_at_the_end_has_not_collapsed(left: float) -> None:
    """2 s of 15 s may be a dip that is not over yet."""
    found = _long(lambda disk, at: left if disk == "disk2" and at > 13 else 1.0)
    assert "collapse" not in [kind for kind, _ in kinds(found)]


@pytest.mark.parametrize("left", [0.0, 0.03, 0.1, 0.3])
def test_a_disk_that_keeps_little_or_nothing_has_collapsed_however_little_it_writes(left: float) -> None:
    """The last window of a disk that stops is never full."""
    found = _long(lambda disk, at: left if disk == "disk2" and at > 11 else 1.0)
    assert kinds(found) == [("collapse", "disk2")]
    one = only(found, "collapse")
    assert one.value == pytest.approx(left - 1, abs=0.08)
    numbers = re.search(r"after ([\d.]+) MiB, .* has not come back ([\d.]+) s later, at the end", one.text)
    assert numbers is not None
    assert [float(each) for each in numbers.groups()] == pytest.approx([22e6 / (1 << 20), 4.0], abs=0.5)
    stops = _long(lambda disk, at: 0.0 if disk == "disk2" and at > 14 else 1.0)
    assert kinds(stops) == [("dip", "disk2")]
    assert "not over at the end" in only(stops, "dip").evidence[0]


def test_disks_that_collapse_one_after_the_other_are_named() -> None:
    found = _long(lambda disk, at: 0.3 if at > (6 if disk == "disk1" else 8) else 1.0)
    assert (kinds(found), found.unknowns) == ([("collapse", "disk1"), ("collapse", "disk2")], ())
    at_once = _long(lambda disk, at: 0.3 if at > 6 else 1.0)
    assert at_once.conclusions == ()
    assert "all disks slowed down at once" in at_once.unknowns[0]


def test_the_rate_of_a_long_write_is_all_that_was_written_by_the_time_it_took() -> None:
    """The median of windows is that of windows with more whole requests than the others."""
    for rate in (1.0, 1.5, 2.0, 2.097):
        rig = a_rig([rate], noise=0.0)
        (steady,) = judged(StudyBench(rig, all_for_long(rig.names), repeats=1), sustained(rig.names)).measurements
        assert steady.value == pytest.approx(rate * 1e6, rel=0.01)
    slower = _long(lambda disk, at: 0.5 if at > 7.5 and disk == "disk1" else 1.0)
    assert slower.measurements[0].value == pytest.approx(1.5e6, rel=0.02)


def test_a_disk_that_becomes_a_little_slower_has_not_collapsed() -> None:
    assert kinds(_long(lambda disk, at: 0.85 if disk == "disk2" and at > 7 else 1.0)) == []
    assert kinds(_long(lambda disk, at: 1 - 0.15 * max(0.0, at) / 15)) == []


def test_disks_that_slow_down_at_the_same_time_are_not_blamed() -> None:
    found = _long(lambda disk, since: 0.02 if 6 <= since < 7 else 1.0)
    assert found.conclusions == ()
    assert "all disks slowed down at once" in found.unknowns[0]


def test_equal_disks_that_dip_at_the_same_time_after_every_so_many_bytes_are_named() -> None:
    """A pause of 0.6 s in every 3 s: such disks of one make collect their garbage in step."""
    found = _long(lambda disk, since: 0.02 if since > 0 and since % 3 > 2.4 else 1.0)
    assert kinds(found) == [("dip", "disk1"), ("dip", "disk2")]
    assert found.unknowns == ()
    assert "They begin every 4.7" in found.conclusions[0].text
    uneven = _long(lambda disk, since: 0.02 if any(t <= since < t + 0.6 for t in (2, 3.5, 8, 11)) else 1.0)
    assert uneven.conclusions == ()
    assert "all disks slowed down at once" in uneven.unknowns[0]


def test_dips_of_their_own_are_named_although_two_of_them_come_at_once() -> None:
    """disk1 pauses in every 3 s, and disk2 at 5 s and at 8.5 s, when disk1 does."""

    def pace(disk: str, since: float) -> float:
        dips = since % 3 > 2.4 if disk == "disk1" else any(t <= since < t + 0.6 for t in (5, 8.5))
        return 0.02 if since > 0 and dips else 1.0

    found = _long(pace)
    assert (kinds(found), found.unknowns) == ([("dip", "disk1"), ("dip", "disk2")], ())
    assert [len(one.evidence) for one in found.conclusions] == [4, 2]


def test_only_dips_that_all_have_at_once_are_not_those_of_a_disk() -> None:
    """All pause at 6 s, and disk2 at 10 s, too."""
    found = _long(lambda disk, since: 0.02 if 6 <= since < 7 or (disk == "disk2" and 10 <= since < 11) else 1.0)
    assert kinds(found) == [("dip", "disk2")]
    (line,) = only(found, "dip").evidence
    assert float(line.split()[1]) == pytest.approx(9.1 / 1.048576 * 2, abs=0.5), "10 s at 2 MB/s, less 1 s"
    assert "all disks slowed down at once, 5.8 s after the beginning" in found.unknowns[0]


def test_a_disk_that_writes_hardly_anything_cannot_be_judged() -> None:
    assert "disk1 wrote too little" in _long(lambda disk, since: 0.01, disks=1).unknowns[0]


# --- before and after a cut ------------------------------------------------------------------------------------


def _cut_between(slower: dict[str, float], repeats: int = 5) -> StudyBench:
    """All disks are measured twice; between the two, disk1 is cut. Then disks run at a share of their rates."""
    rig = a_rig([2.0] * 3)
    before = StudyBench(rig, all_at_once(rig.names), repeats=repeats)
    last = max(event.at or 0.0 for event in before.events)
    after = StudyBench(
        rig,
        all_at_once(rig.names),
        repeats=repeats,
        begin=last + 10.0,
        pace=lambda disk, since: slower.get(disk, 1.0),
        written=1e9,
    )
    begin = last + 3.0
    known: dict[str, Any] = {"cut": 1, "point": "disk1.cable", "switch": "cables", "port": "1"}
    known |= {"agrees": True, "error": 0.001}
    edges = [
        ev.Edge(at=begin, state="off", phase="commanded", **known),
        ev.Edge(at=begin + 0.1, state="off", phase="acknowledged", **known),
        ev.Edge(at=begin + 1.0, state="on", phase="commanded", **known),
        ev.Edge(at=begin + 1.1, state="on", phase="acknowledged", **known),
    ]
    armed = ev.CutArmed(
        at=begin - 0.1, cut=1, point="disk1.cable", mechanism="data", trigger="at once", victims=("disk1",)
    )
    idle = [event for event in after.events if (event.at or 0.0) > begin + 2.0]
    before.events += [armed, *edges, *idle]
    return before


CHECK = recovery_cost("disk1", ("disk2", "disk3"))


def test_a_disk_that_is_slower_after_its_cut_is_named() -> None:
    found = judged(_cut_between({"disk1": 0.7}), CHECK)
    one = only(found, "difference")
    assert (one.subject, found.findings, found.unknowns) == ("disk1", (), ())
    assert one.value == pytest.approx(-0.3, abs=0.03)
    assert only(found, "no-difference").subject == "disk2, disk3"


def test_disks_that_are_as_fast_as_before_are_said_to_be() -> None:
    found = judged(_cut_between({}), CHECK)
    assert "difference" not in {kind for kind, _ in kinds(found)}
    assert found.unknowns == ()
    assert {one.name for one in found.measurements} == {"write before the cut", "write after the cut"}


def test_without_a_cut_there_is_nothing_to_compare() -> None:
    rig = a_rig([2.0] * 3)
    assert judged(StudyBench(rig, all_at_once(rig.names)), CHECK).unknowns == (
        "nothing was cut between the measurements",
    )


def test_a_measurement_that_is_missing_from_the_second_design_is_missed() -> None:
    bench = _cut_between({})
    measured = [event for event in bench.events if isinstance(event, ev.Measured)]
    bench.events.remove(measured[-1])
    assert "1 of 10 measurements were not made" in CHECK.judge(bench.story()).unknowns
