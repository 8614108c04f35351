"""The study of power, on made-up histories with a known truth, and with meters that fail in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dry_runs import dry_run
from rig_builder import a_rig as a_rig_file
from study_benches import MB, StudyBench, a_rig, judged, only

from plugpull.commands.run_plugin import study_times
from plugpull.draw import NO_METER
from plugpull.exit_status import EXIT_PASS
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Measurement, Verdict
from plugpull.load import power_design
from plugpull.studies import power_drawn

IDLE, STREAM = 10.2, 1.7
"""Watts of the disks behind the meter: without a load, and more for each that is busy."""
DISKS = ("disk1", "disk2", "disk3", "disk4")


@dataclass(frozen=True)
class MadeUp:
    """A meter: how often it is read, how old a value can be, and what it says of the true power."""

    rate: float = 10.0
    age: float = 0.1
    says: Callable[[float, float], float | None] = lambda at, watts: watts
    """(DUT time, true watts) to the reading; None: no usable value."""
    joules: Callable[[float, float], float] | None = None
    """(DUT time, true joules so far) to what its counter says."""
    synthetic: bool = False
    side: Any = "mains"
    disks: tuple[str, ...] = DISKS


def bench_of(meter: MadeUp | None, *, streams: int = 4, **changes: Any) -> StudyBench:
    """A study of ``streams`` disks of 2 MB/s each, with a meter."""
    rig = a_rig([2.0] * streams)
    bench = StudyBench(rig, power_design(rig.names), begin=18.0, **changes)
    if meter is not None:
        bench.events += list(readings(bench, meter))
    return bench


def spans_of(bench: StudyBench, disks: tuple[str, ...]) -> list[tuple[float, float]]:
    """When each load ran on these disks."""
    ended = {(one.disk, one.job): one.at or 0.0 for one in bench.events if isinstance(one, ev.LoadEnded)}
    loads = [one for one in bench.events if isinstance(one, ev.LoadBegun) and one.disk in disks]
    return [(load.at or 0.0, ended[load.disk, load.job]) for load in loads]


def readings(bench: StudyBench, meter: MadeUp) -> Iterator[ev.Event]:
    first = ev.MeterOpened(
        at=9.6,
        meter="plug",
        driver="shelly",
        device="Shelly at http://10.0.0.7",
        disks=meter.disks,
        side=meter.side,
        rate=meter.rate,
        age=meter.age,
        resolution=0.1,
        synthetic=meter.synthetic,
    )
    yield first
    at, joules, end = 9.6, 0.0, max(event.at or 0.0 for event in bench.events)
    spans = spans_of(bench, meter.disks)
    while at < end:
        watts = IDLE + STREAM * sum(begin <= at <= over for begin, over in spans)
        said = meter.says(at, watts)
        yield ev.PowerSampled(
            at=round(at, 6),
            meter="plug",
            uncertainty=meter.age + 0.02,
            watts=said,
            why="" if said is not None else "it did not answer in time",
            joules=None if meter.joules is None else meter.joules(at, joules),
        )
        joules += watts / meter.rate
        at += 1 / meter.rate


def figures(bench: StudyBench, disks: tuple[str, ...] = DISKS) -> dict[str, Measurement]:
    found = judged(bench, power_drawn(disks))
    assert (found.findings, found.unknowns) == ((), ())
    return {one.name: one for one in found.measurements}


def doubts(bench: StudyBench, disks: tuple[str, ...] = DISKS) -> str:
    found = judged(bench, power_drawn(disks))
    assert found.findings == ()
    assert found.unknowns
    return " ".join(found.unknowns)


# --- a known truth ----------------------------------------------------------------------------------------------


def test_watts_by_number_of_streams() -> None:
    found = figures(bench_of(MadeUp()))
    assert found["idle watts"].value == pytest.approx(IDLE)
    for mode in ("write", "read"):
        for count in (1, 2, 4):
            what = f"{mode}, {count} stream{'s' * (count > 1)}"
            watts = found[f"watts, {what}"]
            assert watts.value == pytest.approx(IDLE + STREAM * count)
            assert (watts.n, watts.unit) == (5, "W")
            assert watts.parameters["streams"] == count
            assert watts.parameters["side"] == "mains"
            assert watts.parameters["idle"] == pytest.approx(IDLE)
            assert found[f"watts at most, {what}"].value == pytest.approx(IDLE + STREAM * count)
            truth = (IDLE + STREAM * count) / (2.0 * MB * count) * 1e9
            assert found[f"energy, {what}"].value == pytest.approx(truth, rel=0.03)
    assert "watts, write, 3 streams" not in found


def test_what_it_means_in_words() -> None:
    one = only(judged(bench_of(MadeUp()), power_drawn(DISKS)), "power")
    assert one.subject == "disk1, disk2, disk3, disk4"
    assert one.text.startswith("disk1, disk2, disk3, disk4 by plug, before the power supply, with its losses: ")
    assert "idle 10.2 W" in one.text
    assert "write, 1 stream 11.9 W (" in one.text
    assert "write, 4 streams 17 W (" in one.text
    assert one.value == pytest.approx(IDLE + STREAM * 4)
    assert one.evidence == (
        "Shelly at http://10.0.0.7: 10 readings per second, values up to 0.1 s old, in steps of 0.1 W",
    )


def test_computed_watts_say_that_they_are() -> None:
    bench = bench_of(MadeUp(synthetic=True))
    assert "computed from what the disks do, not measured" in only(judged(bench, power_drawn(DISKS)), "power").text
    assert {one.parameters.get("synthetic") for one in figures(bench).values()} == {"yes"}
    assert "synthetic" not in figures(bench_of(MadeUp()))["idle watts"].parameters


def test_the_highest_reading_is_kept() -> None:
    def spike(at: float, watts: float) -> float:
        return watts + 5.0 if 20.0 < at < 20.2 else watts

    found = figures(bench_of(MadeUp(says=spike)))
    above = {name: one.value for name, one in found.items() if name.startswith("watts at most") and one.value > 17.5}
    assert len(above) <= 1
    assert max(one.value for one in found.values() if one.name.startswith("watts at most")) >= IDLE + STREAM + 5.0


def test_only_disks_behind_the_meter_count() -> None:
    """With disk1 alone behind it, the loads of the others change nothing."""
    found = figures(bench_of(MadeUp(disks=("disk1",), side="usb")))
    assert found["watts, write, 1 stream"].value == pytest.approx(IDLE + STREAM)
    assert found["watts, write, 1 stream"].n == 15, "disk1 is busy in all three conditions"
    assert not [name for name in found if "2 streams" in name]
    assert found["energy, write, 1 stream"].value == pytest.approx((IDLE + STREAM) / (2.0 * MB) * 1e9, rel=0.03)


def test_two_meters_are_reported_apart() -> None:
    bench = bench_of(MadeUp())
    other = [event for event in bench.events if isinstance(event, ev.MeterOpened | ev.PowerSampled)]
    for event in other:
        if isinstance(event, ev.MeterOpened):
            changed = {
                **{name: getattr(event, name) for name in event.__struct_fields__},
                "meter": "chip",
                "side": "usb",
            }
            bench.events.append(ev.MeterOpened(**changed))
        else:
            changed = {name: getattr(event, name) for name in event.__struct_fields__} | {"meter": "chip"}
            bench.events.append(ev.PowerSampled(**{**changed, "watts": (event.watts or 0.0) * 0.8}))
    found = judged(bench, power_drawn(DISKS))
    assert found.unknowns == ()
    idle = {one.subject: one.value for one in found.measurements if one.name == "idle watts"}
    assert idle == {"plug": pytest.approx(IDLE), "chip": pytest.approx(IDLE * 0.8)}


# --- the start of a disk ------------------------------------------------------------------------------------------


def started(bench: StudyBench, meter: MadeUp, before: float = 0.0) -> StudyBench:
    """A disk is attached at 9.5 s; power comes at 9.0 s, and its motor takes 24 W until 10.5 s."""

    def says(at: float, watts: float) -> float | None:
        said = meter.says(at, watts)
        return said if said is None or at > 10.5 else (24.0 if at >= 9.0 else before)

    made = list(readings(bench, MadeUp(meter.rate, meter.age, says)))
    early = [
        ev.PowerSampled(
            at=8.0 + step / meter.rate, meter="plug", uncertainty=meter.age, watts=says(8.0 + step / meter.rate, 0.0)
        )
        for step in range(int(1.6 * meter.rate))
    ]
    bench.events += [*early, *made]
    return bench


def test_the_peak_of_a_disk_that_starts() -> None:
    found = figures(started(bench_of(None), MadeUp()))
    assert found["start-up watts at most"].value == 24.0
    assert found["idle watts"].value == pytest.approx(IDLE), "not the start"


def test_a_slow_meter_does_not_see_a_start() -> None:
    found = figures(started(bench_of(None, streams=1), MadeUp(rate=5.0)), ("disk1",))
    assert "start-up watts at most" not in found
    assert "watts, write, 1 stream" in found


def test_a_disk_that_was_on_did_not_start() -> None:
    assert "start-up watts at most" not in figures(started(bench_of(None), MadeUp(), before=20.0))
    assert "start-up watts at most" not in figures(bench_of(MadeUp()))


# --- what is not known --------------------------------------------------------------------------------------------


def test_no_meter_at_all_is_unknown() -> None:
    assert doubts(bench_of(None)) == "no meter was read"
    bench = bench_of(None)
    bench.events.append(ev.PowerSampled(at=9.7, meter="plug", why="cannot open /dev/rfcomm0"))
    assert doubts(bench) == "no meter was read: plug: cannot open /dev/rfcomm0"
    assert judge_story(bench.story(power_drawn(DISKS))).verdict is Verdict.UNKNOWN


def test_a_meter_that_is_behind_other_disks_is_not_read() -> None:
    assert doubts(bench_of(MadeUp(disks=("disk9",)))) == "no meter was read"


def test_missing_values_are_no_zeros() -> None:
    """Every third reading is missing: the mean is that of the others."""
    count = iter(range(1_000_000))
    found = figures(bench_of(MadeUp(says=lambda at, watts: watts if next(count) % 3 else None)))
    assert found["watts, write, 4 streams"].value == pytest.approx(IDLE + 4 * STREAM)
    assert found["idle watts"].value == pytest.approx(IDLE)


def test_too_many_missing_values_are_unknown() -> None:
    said = doubts(bench_of(MadeUp(says=lambda at, watts: None if at > 18.0 else watts)))
    assert "only 0 measurements of what plug reads (write, 1 stream) count" in said
    assert "readings have a value (it did not answer in time)" in said


def test_a_meter_that_dies_during_the_idle_time() -> None:
    said = doubts(bench_of(MadeUp(says=lambda at, watts: None if 13.0 < at < 18.0 else watts)))
    assert said.startswith("what plug reads without a load is not known: ")


def test_a_meter_whose_values_are_older_than_the_measurement() -> None:
    """A measurement takes 1.5 s on a virtual bench: values that can be 2 s old say nothing about it."""
    said = doubts(bench_of(MadeUp(rate=1.0, age=2.0)))
    assert "it was not read then" in said


def test_values_from_before_the_load_do_not_count() -> None:
    """A plug whose values are half a second old: what it says in the first half second of a measurement is older."""
    history: dict[float, float] = {}

    def delayed(at: float, watts: float) -> float:
        history[at] = watts
        return next((value for then, value in sorted(history.items(), reverse=True) if then <= at - 0.4), watts)

    found = figures(bench_of(MadeUp(age=0.5, says=delayed)))
    assert found["watts, write, 1 stream"].value == pytest.approx(IDLE + STREAM, rel=0.02)


def test_a_counter_of_energy_that_contradicts_the_watts() -> None:
    """The watts stand still at 14 W; the meter's own counter goes on with the truth."""
    frozen = bench_of(MadeUp(says=lambda at, watts: 18.5, joules=lambda at, joules: joules))
    said = doubts(frozen)
    assert "plug cannot be believed: its readings are 18.5 W on average, and its own counter of energy says" in said
    back = bench_of(MadeUp(joules=lambda at, joules: joules if at < 50 else joules - 5000.0))
    assert "went back" in doubts(back)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        pytest.param(lambda at, watts: IDLE, "it reads 10.2 W for ", id="disks that are not behind it"),
        pytest.param(lambda at, watts: 0.0, "it reads 0 W for ", id="nothing"),
        pytest.param(lambda at, watts: watts if at < 50 else 13.6, "it reads 13.6 W for ", id="stuck from 50 s on"),
        pytest.param(
            lambda at, watts: -watts, "it reads -17 W, and disks give no power back", id="the wrong way round"
        ),
    ],
)
def test_nothing_is_concluded_from_a_meter_that_does_not_show_the_loads(
    says: Callable[[float, float], float], why: str
) -> None:
    found = judged(bench_of(MadeUp(says=says)), power_drawn(DISKS))
    assert (found.findings, found.conclusions, found.measurements) == ((), (), ())
    assert f"plug cannot be believed: {why}" in found.unknowns[0]


@pytest.mark.parametrize(("rate", "age"), [(10.0, 0.1), (2.0, 0.5), (1.0, 0.0)])
def test_a_meter_in_steps_of_a_watt_shows_the_loads(rate: float, age: float) -> None:
    found = judged(bench_of(MadeUp(rate, age, says=lambda at, watts: float(round(watts)))), power_drawn(DISKS))
    assert not [one for one in found.unknowns if "believed" in one]


@pytest.mark.parametrize("step", [1e-3, 3.6])
def test_a_counter_that_agrees(step: float) -> None:
    """Also one that is updated once per minute, in coarse steps."""
    assert figures(bench_of(MadeUp(joules=lambda at, joules: joules // step * step)))
    assert figures(bench_of(MadeUp(joules=lambda at, joules: joules // 60 * 60))), "as a Shelly of the first generation"
    minutes: dict[int, float] = {}
    assert figures(bench_of(MadeUp(joules=lambda at, joules: minutes.setdefault(int(at // 60), joules // step * step))))


def test_a_measurement_that_does_not_count_gives_no_watts() -> None:
    bench = bench_of(MadeUp(), repeats=3, deaf=(2,))
    said = doubts(bench)
    assert "only 2 measurements of what plug reads" in said
    assert "the sampler was starved for 1.5 s" in said


# --- rigs without a meter -----------------------------------------------------------------------------------------

SCENARIO = """
import pytest
from plugpull.load import power_design

@pytest.mark.study(design=power_design, meter=True)
def test_power(rig):
    raise AssertionError("no bench is opened for it")

def test_other(rig):
    rig.play()
"""


def test_without_a_meter_it_is_skipped_before_a_bench_is_opened(tmp_path: Path) -> None:
    ran = dry_run(tmp_path, {"test_power.py": SCENARIO})
    assert ran.status == EXIT_PASS, ran.output
    assert [(one["id"], one["reason"]) for one in ran.results["skipped"]] == [("test_power.py::test_power", NO_METER)]
    assert NO_METER.startswith("no meter")


class Item:
    """A collected study."""

    nodeid = "test_power.py::test_power"
    path = Path("test_power.py")

    class config:
        rootpath = Path()

    def get_closest_marker(self, name: str) -> Any:
        return pytest.mark.study(design=power_design, meter=True).mark


def test_the_announced_time_is_that_of_the_metered_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugpull.commands.run_plugin.scenario_id", lambda item: item.nodeid)
    bare = a_rig_file("bench").controller().disk("disk1", scratch=True).disk("disk2", scratch=True)
    metered = bare.table("meter", name="m", driver="virtual", side="mains", disks=["disk2"])
    items: Any = [Item()]
    without, one = (study_times(rig.load(), items, 5)[Item.nodeid] for rig in (bare, metered))
    both = study_times(
        bare.table("meter", name="m", driver="virtual", side="usb", disks=["disk1", "disk2"]).load(), items, 5
    )
    assert without < one < both[Item.nodeid]
