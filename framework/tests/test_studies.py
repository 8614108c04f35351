"""Studies: from the history of measurements to figures, conclusions and verdicts."""

from __future__ import annotations

import random

import msgspec
import pytest
from study_benches import MB, StudyBench, a_rig, judged, only, writing

from plugpull.history import events as ev
from plugpull.load import sequential_write
from plugpull.load.designs import Condition, each_alone, more_and_more
from plugpull.measure.estimate import estimate
from plugpull.studies import alone
from plugpull.studies.figures import figure
from plugpull.studies.measured import series_of, to_repeat

# --- every disk alone ----------------------------------------------------------------------------------------


def test_each_disk_has_its_figure_with_an_interval() -> None:
    rig = a_rig([2.0, 1.5, 1.5])
    bench = StudyBench(rig, each_alone(rig.names))
    found = judged(bench, alone(rig.names))
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())
    rates = [one for one in found.measurements if one.unit == "B/s"]
    assert [(one.name, one.subject, one.n) for one in rates] == [
        (f"{mode} alone", f"disk{number}", 5) for mode in ("write", "read") for number in (1, 2, 3)
    ]
    for one, truth in zip(rates, [2.0, 1.5, 1.5] * 2, strict=True):
        assert one.value == pytest.approx(truth * MB, rel=0.03)
        assert one.low is not None
        assert one.high is not None
        assert one.low < one.value < one.high
        assert one.parameters == {"disks": 1, "block": 65536, "depth": 4}


def test_intervals_of_200_short_measurements_contain_the_truth() -> None:
    """Of the whole way from the counters on, which count whole requests."""
    covered = 0
    for number in range(50):
        rig = a_rig([2.0] * 4, seed=("cover", number))
        bench = StudyBench(rig, writing(each_alone(rig.names)))
        for one in [one for one in alone(rig.names).judge(bench.story()).measurements if one.unit == "B/s"]:
            covered += (one.low or 0.0) <= 2.0 * MB <= (one.high or 0.0)
    assert 0.90 <= covered / 200 <= 0.99


def test_intervals_of_quiet_disks_contain_the_truth() -> None:
    """With 0.1 % of noise, repeats differ mostly by where a measurement begins between two requests. Without what the
    counting leaves open, the intervals contain the truth in 87 % of cases."""
    covered = narrow = 0
    for number in range(25):
        draw = random.Random(f"quiet {number}")
        rates = [draw.uniform(0.5, 3.0) for _ in range(8)]
        rig = a_rig(rates, noise=0.001, seed=("quiet", number))
        bench = StudyBench(rig, writing(each_alone(rig.names)), repeats=3)
        found = [one for one in alone(rig.names).judge(bench.story()).measurements if one.unit == "B/s"]
        for one, truth in zip(found, rates, strict=True):
            covered += (one.low or 0.0) <= truth * MB <= (one.high or 0.0)
            plain = estimate(one.samples)
            narrow += (plain.low or 0.0) <= truth * MB <= (plain.high or 0.0)
    assert 0.90 <= covered / 200 <= 0.99
    assert narrow / 200 < 0.90


def test_processor_time_is_that_of_the_load_alone() -> None:
    """Of 2 CPUs, 0.2 are busy without a load and 0.7 with one; fio takes 0.05 of them."""
    rig = a_rig([2.0])
    bench = StudyBench(rig, writing(each_alone(rig.names)), repeats=3, begin=14.0, cpus=(0.2, 0.7), process=5.0)
    found = judged(bench, alone(rig.names))
    costs = {one.name: one for one in found.measurements if one.unit != "B/s"}
    assert costs["write cpu system"].value == pytest.approx(0.5, abs=0.03)
    assert costs["write cpu per rate"].value == pytest.approx(0.25, abs=0.02)
    assert costs["write cpu process"].value == pytest.approx(0.05)
    assert costs["write cpu system"].parameters["idle"] == pytest.approx(0.2, abs=0.02)


def test_an_interval_does_not_reach_below_nothing() -> None:
    found = figure("cpu", "disk1", [0.0, 0.05, 0.0], {}, "CPUs")
    assert found.low == 0.0
    assert (found.high or 0.0) > 0.05


def test_without_a_count_while_idle_the_net_cost_is_not_known() -> None:
    rig = a_rig([2.0])
    found = judged(StudyBench(rig, writing(each_alone(rig.names)), repeats=3, cpus=(0.2, 0.7)), alone(rig.names))
    assert "write cpu system" not in {one.name for one in found.measurements}


def test_a_slow_disk_is_an_outlier_and_no_finding() -> None:
    rig = a_rig([1.4, 2.0, 2.0, 2.0])
    found = judged(StudyBench(rig, writing(each_alone(rig.names)), repeats=3), alone(rig.names))
    one = only(found, "outlier")
    assert (one.subject, found.findings, found.unknowns) == ("disk1", (), ())
    assert one.value == pytest.approx(-0.3, abs=0.03)
    assert "30% below the usual 2 MB/s" in one.text or "below the usual" in one.text
    assert len(one.evidence) == 4


def test_a_repeat_that_stalled_is_flagged_and_nothing_is_concluded() -> None:
    rig = a_rig([2.0] * 4)
    bench = StudyBench(rig, writing(each_alone(rig.names)), stalled=(3,))
    found = judged(bench, alone(rig.names))
    assert found.conclusions == ()
    (why,) = found.unknowns
    assert "a repeat is unlike the others (0 B/s" in why
    assert sum(bool(one.odd) for one in found.measurements if one.unit == "B/s") == 1


def test_an_outlier_is_named_although_a_repeat_of_another_disk_stalled() -> None:
    rig = a_rig([1.4, 2.0, 2.0, 2.0, 2.0])
    for number in range(1, 26):
        bench = StudyBench(rig, writing(each_alone(rig.names)), stalled=(number,))
        found = judged(bench, alone(rig.names))
        assert [one.subject for one in found.conclusions] == ["disk1"], number
        assert len(found.unknowns) == 1


def test_a_rate_that_drifts_is_not_steady() -> None:
    rig = a_rig([2.0] * 2, noise=0.0)
    bench = StudyBench(rig, writing(each_alone(rig.names)))
    slower = {"disk1": iter([2.0, 1.9, 1.8, 1.7, 1.6])}
    original = rig.run
    rig.run = lambda working: (  # type: ignore[method-assign]
        {"disk1": next(slower["disk1"]) * MB} if list(working) == [0] else original(working)
    )
    bench.__post_init__()
    found = judged(bench, alone(rig.names))
    (why,) = found.unknowns
    assert why.startswith("the write rate of disk1 alone was not steady")


def test_a_starved_sampler_makes_it_unknown_and_its_measurement_does_not_count() -> None:
    rig = a_rig([2.0] * 2)
    design = writing(each_alone(rig.names))
    bench = StudyBench(rig, design, repeats=3, deaf=(1, 2))
    found = alone(rig.names).judge(bench.story())
    assert [one.n for one in found.measurements if one.unit == "B/s"] == [2, 2]
    assert len(found.unknowns) == 2
    assert all("only 2 of 3 measurements" in why and "starved" in why for why in found.unknowns)
    first, second = (why.rpartition(" from ")[2] for why in found.unknowns)
    assert first != second, "each names its own measurement"
    one_lost = alone(rig.names).judge(StudyBench(rig, design, repeats=5, deaf=(1,)).story())
    assert one_lost.unknowns == (), "four of five are enough"


def test_measurements_that_were_not_made_are_missed() -> None:
    rig = a_rig([2.0] * 2)
    bench = StudyBench(rig, each_alone(rig.names))
    bench.events = [event for event in bench.events if not isinstance(event, ev.Measured) or event.number < 20]
    assert "1 of 20 measurements were not made" in alone(rig.names).judge(bench.story()).unknowns
    bench.events = [event for event in bench.events if not isinstance(event, ev.Measured)]
    assert "nothing was measured" in alone(rig.names).judge(bench.story()).unknowns


def test_what_the_host_starved_is_measured_again() -> None:
    rig = a_rig([2.0] * 2)
    bench = StudyBench(rig, writing(each_alone(rig.names)), repeats=3, deaf=(2, 5))
    spoilt = to_repeat(bench.story().events, 0)
    assert [event.number for event in spoilt] == [2, 5]
    assert to_repeat(bench.story().events, 3) == spoilt[1:]
    last = max(event.at or 0.0 for event in bench.events)
    condition = Condition(spoilt[0].disks, sequential_write)
    again = StudyBench(rig, (condition,), repeats=1, begin=last + 1.0, written=1e9)
    for event in again.events:
        if isinstance(event, ev.Measured):
            event = msgspec.structs.replace(event, number=7, planned=6, repeat=spoilt[0].repeat, repeats=3)
        if (event.at or 0.0) > last + 0.9:
            bench.events.append(event)
    assert [event.number for event in to_repeat(bench.story().events, 0)] == [5]
    found = alone(rig.names).judge(bench.story())
    assert sorted(one.n for one in found.measurements if one.unit == "B/s") == [2, 3]
    assert not [why for why in found.unknowns if "were not made" in why]


def test_a_load_that_ended_early_does_not_count() -> None:
    rig = a_rig([2.0])
    bench = StudyBench(rig, writing(each_alone(rig.names)), repeats=3)
    bench.events = [
        ev.LoadEnded(at=11.0, disk="disk1", job=event.job, asked=False, errno=5, message="Input/output error")
        if isinstance(event, ev.LoadEnded) and event.job == "measure1-disk1"
        else event
        for event in bench.events
    ]
    found = alone(rig.names).judge(bench.story())
    assert found.measurements[0].n == 2
    assert "the load on disk1 ended while it was measured (Input/output error)" in found.unknowns[0]


def test_of_loads_that_ended_together_the_one_with_the_error_is_named() -> None:
    rig = a_rig([2.0] * 2)
    bench = StudyBench(rig, writing(more_and_more(rig.names)), repeats=3)
    both = next(one for one in bench.events if isinstance(one, ev.Measured) and len(one.disks) == 2)
    failed = {"disk1": (0, "fio ended because of its error on disk2"), "disk2": (5, "Input/output error")}
    bench.events = [
        ev.LoadEnded(
            at=both.begin + 0.5, disk=event.disk, job=event.job, asked=False, errno=failed[event.disk][0],
            message=failed[event.disk][1],
        )
        if isinstance(event, ev.LoadEnded) and event.job.startswith(f"measure{both.number}-")
        else event
        for event in bench.events
    ]  # fmt: skip
    (spoilt,) = [one.spoilt for series in series_of(bench.story()) for one in series.readings if one.spoilt]
    assert spoilt == "the load on disk2 ended while it was measured (Input/output error)"


def test_a_rate_beyond_the_link_is_impossible() -> None:
    rig = a_rig([60.0])
    table = {"dut": {"kind": "ssh"}}
    found = judged(StudyBench(rig, writing(each_alone(rig.names)), table=table), alone(rig.names))
    one = only(found, "impossible-rate")
    assert "the 480 Mb/s link of disk1 can carry 53.2 MB/s" in one.text
    assert found.findings[0].subject == "disk1"
    fine = a_rig([45.0])
    assert judged(StudyBench(fine, writing(each_alone(fine.names)), table=table), alone(fine.names)).findings == ()


def test_on_a_virtual_bench_the_limits_of_the_rig_file_count_and_not_the_link() -> None:
    rig = a_rig([60.0])
    assert judged(StudyBench(rig, writing(each_alone(rig.names))), alone(rig.names)).findings == ()
    disk = {"name": "disk1", "at": "usb.1", "serial": "S-disk1", "scratch": True, "rate": 20_000_000}
    limited = StudyBench(rig, writing(each_alone(rig.names)), table={"disk": [disk]})
    assert only(judged(limited, alone(rig.names)), "impossible-rate").value == pytest.approx(60 * MB, rel=0.03)


@pytest.mark.parametrize(
    ("expect", "findings", "concluded"),
    [
        ({"write_at_least": 2.5 * MB}, 1, ["below-expectation"]),
        ({"write_at_least": 1.5 * MB, "write_at_most": 2.5 * MB}, 0, []),
        ({"write_at_most": 1.5 * MB}, 1, []),
        ({"write_at_least": 2.01 * MB}, 0, []),
    ],
)
def test_the_rig_file_can_say_what_to_expect(expect: dict[str, float], findings: int, concluded: list[str]) -> None:
    rig = a_rig([2.0])
    disk = {"name": "disk1", "at": "usb.1", "serial": "S-disk1", "scratch": True, "expect": expect}
    found = judged(StudyBench(rig, writing(each_alone(rig.names)), table={"disk": [disk]}), alone(rig.names))
    assert len(found.findings) == findings
    assert [one.kind for one in found.conclusions] == concluded
