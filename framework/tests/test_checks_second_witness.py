"""Fields of events that a second witness contradicts: arrays, studies, disks, the DUT, counts below zero."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from array_stories import ARRAY, CHECKED, mirror, state
from stories import BACK, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks.raid.arrays_sound import arrays_sound
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.disk_record import disk_doubts
from plugpull.checks.record.dut_record import dut_doubts
from plugpull.checks.record.study_record import study_doubts
from plugpull.checks.victims.failed_as import not_of_a_loss
from plugpull.history import events as ev
from plugpull.history.story import Story

DEPTH, BLOCK = 4, 65536


# --- arrays -----------------------------------------------------------------------------------------------------------


def array_bench() -> Bench:
    bench = healthy()
    mirror(bench)
    return bench


def test_an_array_that_lost_only_what_was_cut_is_sound() -> None:
    judgement = array_bench().judge(arrays_sound())
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_a_member_that_was_set_aside_though_nothing_took_it() -> None:
    bench = array_bench()
    bench.add(state(CHECKED + 1.0, degraded=1, **{SURVIVORS[0]: "faulty"}))
    (finding,) = bench.judge(arrays_sound()).findings
    assert finding.subject == SURVIVORS[0]
    assert "though nothing had taken it" in finding.summary


@pytest.mark.parametrize(("in_flight", "found"), [(None, 0), (0, 0), (2, 1)])
def test_an_array_whose_requests_never_end_by_the_kernels_count(in_flight: int | None, found: int) -> None:
    bench = array_bench()
    stop = next(one for one in bench.events if isinstance(one, ev.ArrayActed) and one.action == "stop")
    bench.events[bench.events.index(stop)] = msgspec.structs.replace(stop, in_flight=in_flight)
    said = [one.summary for one in bench.judge(arrays_sound()).findings]
    assert said == ["the kernel counts 2 requests of array1 as under way though nobody uses it"] * found


def test_an_array_that_takes_no_writes() -> None:
    bench = array_bench()
    bench.add(state(CHECKED + 1.0, word="readonly"))
    (finding,) = bench.judge(arrays_sound()).findings
    assert "was readonly" in finding.summary


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("md127: detected capacity change from 0 to 16384", ""),
        ("md127: detected capacity change from 16384 to 0", ""),
        ("md127: detected capacity change from 16384 to 8192", "the size of array1 changed"),
        ("md/raid1:md127: Operation continuing on 1 devices.", ""),
        ("md/raid1:md127: Operation continuing on 0 devices.", "array1 went on with 0 members"),
        ("md/raid1:md126: Operation continuing on 0 devices.", ""),
    ],
)
def test_what_md_says_of_an_array(text: str, found: str) -> None:
    bench = array_bench()
    bench.add(ev.KernelMessage(at=CHECKED + 1.0, text=text))
    said = [one.summary for one in bench.judge(arrays_sound()).findings]
    assert [one.startswith(found) for one in said] == ([True] if found else [])


def test_a_recovery_that_was_interrupted_by_nothing() -> None:
    bench = array_bench()
    bench.add(ev.KernelMessage(at=15.2, text="md: md127: recovery interrupted."))
    assert bench.judge(arrays_sound()).unknowns == (), "a member had just gone"
    bench.add(ev.KernelMessage(at=90.0, text="md: md127: recovery interrupted."))
    (doubt,) = bench.judge(arrays_sound()).unknowns
    assert "nothing did that" in doubt


def test_a_check_whose_result_is_missing() -> None:
    bench = array_bench()
    bench.drop(ev.ArrayActed, lambda act: act.action != "check")
    assert bench.judge(arrays_sound()).unknowns == (f"{ARRAY} was checked, and what came of it is not on record",)


@pytest.mark.parametrize(
    "seen",
    [
        ev.Phase(at=CHECKED - 0.1, name="array", text=f"checking {ARRAY}"),
        ev.KernelMessage(at=CHECKED, text="md: check of RAID array md127"),
        ev.KernelMessage(at=CHECKED, text="md: data-check of RAID array md127"),
    ],
    ids=["a phase", "the log", "the log of earlier kernels"],
)
def test_a_check_of_which_little_is_left(seen: ev.Event) -> None:
    bench = array_bench()
    bench.drop(ev.ArrayActed, lambda act: act.action != "check")
    bench.drop(ev.ArrayState, lambda one: one.values.get("sync_action") != "check")
    assert bench.judge(arrays_sound()).unknowns == ()
    bench.add(seen)
    assert bench.judge(arrays_sound()).unknowns == (f"{ARRAY} was checked, and what came of it is not on record",)


@pytest.mark.parametrize("word", ["recovery", "recover"])
def test_a_recovery_that_only_the_log_shows(word: str) -> None:
    bench = array_bench()
    bench.add(ev.KernelMessage(at=CHECKED - 0.1, text=f"md: md127: {word} done."))
    assert bench.judge(arrays_sound()).unknowns == ()
    states = [one for one in bench.events if isinstance(one, ev.ArrayState)]
    bench.drop(ev.ArrayState)
    bench.add(*(one for one in states if one.values.get("sync_action") != "recover"))
    (doubt,) = bench.judge(arrays_sound()).unknowns
    assert "its states do not show it" in doubt


def test_missing_members_that_no_state_counts() -> None:
    bench = array_bench()
    bench.drop(ev.ArrayState)
    bench.add(*(state(16.0 + number, degraded=number // 5, disk1="faulty") for number in range(5)))
    assert len(bench.judge(arrays_sound()).unknowns) == 1
    bench.add(state(22.0, degraded=1, disk1="faulty"))
    assert bench.judge(arrays_sound()).unknowns == ()


# --- studies ----------------------------------------------------------------------------------------------------------


def study(**changed: Any) -> Story:
    bench = healthy()
    load: Any = {"mode": "write", "block": BLOCK, "depth": DEPTH}
    bench.add(ev.LoadBegun(at=30.0, disk=VICTIM, job="load9", span=1 << 20, **load))
    for number in (1, 2, 3):
        plan: Any = {"number": number, "planned": 3, "repeat": 1, "repeats": 1} | load
        plan |= changed if number == 2 else {}
        bench.add(ev.Measured(at=31.0 + number, begin=30.5 + number, disks=(VICTIM,), **plan))
    return bench.story()


def test_measurements_that_fit_their_load_and_their_plan() -> None:
    assert list(study_doubts(study())) == []


@pytest.mark.parametrize("changed", [{"block": 4096}, {"mode": "read"}, {"depth": 1}, {"planned": 12}, {"repeat": 2}])
def test_a_measurement_of_something_else(changed: dict[str, Any]) -> None:
    assert len(list(study_doubts(study(**changed)))) == 1


GOOD: dict[str, Any] = {"bytes": BLOCK, "seconds": 1.0, "requests": 1, "percentiles": {"50.0": 0.1}, "longest": 0.1}


@pytest.mark.parametrize(
    ("changed", "doubted"),
    [
        ({}, False),
        ({"error": "it failed", "requests": 0}, False),
        ({"requests": 0}, True),
        ({"bytes": -BLOCK}, True),
        ({"longest": 0.01}, True),
        ({"percentiles": {"50.0": 0.1, "99.0": 0.05}}, True),
    ],
)
def test_figures_that_are_impossible(changed: dict[str, Any], doubted: bool) -> None:
    bench = healthy()
    figures = {VICTIM: ev.FioFigures(**(GOOD | changed))}
    fields: Any = {"mode": "write", "block": BLOCK, "depth": 1, "number": 1, "planned": 1, "repeat": 1, "repeats": 1}
    bench.add(ev.FioRan(at=32.0, begin=30.0, task="direct", disks=(VICTIM,), figures=figures, **fields))
    assert bool(list(study_doubts(bench.story()))) is doubted


def test_a_meter_that_reads_more_than_an_outlet_gives() -> None:
    bench = healthy()
    bench.add(ev.PowerSampled(at=20.0, meter="shelf", watts=40.0))
    assert list(study_doubts(bench.story())) == []
    bench.add(ev.PowerSampled(at=21.0, meter="shelf", watts=4e7))
    assert list(study_doubts(bench.story())) == ["a meter read 4e+07 W"]


# --- disks ------------------------------------------------------------------------------------------------------------


def returned(bench: Bench, **changes: Any) -> Bench:
    bench.replace(ev.DiskAttached, lambda one: one.disk == VICTIM and one.at == BACK, **changes)
    return bench


def test_a_disk_whose_announcements_fit() -> None:
    assert list(disk_doubts(healthy().story())) == []


def test_a_disk_with_the_number_of_another() -> None:
    bench = healthy()
    other = next(one.devt for one in bench.story().attachments(SURVIVORS[0]))
    assert any(one.endswith(f"with the device number of {SURVIVORS[0]}") for one in doubts(returned(bench, devt=other)))


@pytest.mark.parametrize(("controller", "doubted"), [("0000:00:05.0", False), ("0000:00:06.0", True)])
def test_a_place_behind_another_controller_than_the_path(controller: str, doubted: bool) -> None:
    bench = returned(healthy(), place=f"{controller}/1.1:0")
    assert any(one.startswith(f"{VICTIM} was announced at {controller}") for one in doubts(bench)) is doubted


def doubts(bench: Bench) -> list[str]:
    return list(disk_doubts(bench.story()))


@pytest.mark.parametrize("field", ["place", "serial", "sysfs"])
def test_a_return_that_lacks_a_field(field: str) -> None:
    (doubt,) = disk_doubts(returned(healthy(), **{field: ""}).story())
    assert doubt.endswith(f"and its {field} is not on record")


def test_properties_that_an_announcement_contradicts() -> None:
    bench = healthy()
    now = bench.story().attachments(VICTIM)[-1]
    names: Any = {"disk": VICTIM, "kname": now.kname, "diskseq": now.diskseq, "moment": "attached"}
    bench.add(ev.DiskProperties(at=BACK + 0.1, values={"size": str(now.size // 512)}, **names))
    assert list(disk_doubts(bench.story())) == []
    bench.add(ev.DiskProperties(at=BACK + 0.2, values={"size": "8"}, **names))
    (doubt,) = disk_doubts(bench.story())
    assert "its properties say 4096" in doubt


@pytest.mark.parametrize(
    ("announced", "devpath", "doubts"), [(True, "", 0), (False, "", 1), (False, "/devices/virtual", 0)]
)
def test_a_disk_that_came_and_was_not_announced(announced: bool, devpath: str, doubts: int) -> None:
    """By the uevents the victim's enclosure shows another unit as it comes back."""
    bench = healthy()
    sysfs = next(one.sysfs for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == VICTIM)
    path = f"{devpath or sysfs.removeprefix('/sys').rpartition('/block/')[0]}/block/sr0"
    bench.add(ev.Uevent(at=BACK + 0.2, action="add", subsystem="block", devtype="disk", devpath=path))
    if announced:
        bench.attach("", BACK + 0.2, kname="sr0", sysfs=f"/sys{path}", serial="")
    found = [one for one in disk_doubts(bench.story()) if "came at sr0" in one]
    assert len(found) == doubts


# --- the DUT, and counts ----------------------------------------------------------------------------------------------


def test_cpu_time_does_not_fall() -> None:
    bench = healthy()
    bench.drop(ev.ClockMapped)
    bench.add(*(ev.ClockMapped(at=at, controller=at, error=0.001, ran=at) for at in (6.0, 7.0, 8.0)))
    assert list(dut_doubts(bench.story())) == []
    bench.add(ev.ClockMapped(at=9.0, controller=9.0, error=0.001, ran=1.0))
    (doubt,) = dut_doubts(bench.story())
    assert "fell from 8.00 s to 1.00 s" in doubt


@pytest.mark.parametrize(
    ("threads", "ran", "doubts"), [(1, 1.1, 0), (1, 1.5, 1), (2, 2.1, 0), (2, 2.5, 1), (0, 2.5, 0)]
)
def test_a_dut_has_no_more_cpu_time_than_its_threads(threads: int, ran: float, doubts: int) -> None:
    """Older records do not say how many threads there were."""
    bench = healthy()
    bench.replace(ev.DutReady, threads=threads)
    bench.drop(ev.ClockMapped)
    bench.add(*(ev.ClockMapped(at=at, controller=at, error=0.001, ran=at * ran) for at in (6.0, 7.0, 8.0)))
    assert len([doubt for doubt in dut_doubts(bench.story()) if "of CPU time within" in doubt]) == doubts


def test_a_dut_that_was_suspended_says_so() -> None:
    bench = healthy()
    bench.add(ev.DutSuspended(at=20.0, until=22.0, ok=True))
    assert len(list(dut_doubts(bench.story()))) == 1
    bench.add(ev.KernelMessage(at=20.1, text="PM: suspend entry (s2idle)"))
    assert list(dut_doubts(bench.story())) == []


def test_counts_below_zero() -> None:
    bench = healthy()
    assert not any("is -" in one for one in bench.judge(coherent()).unknowns)
    bench.add(ev.GracePeriod(at=29.0, seconds=-1.0, ended=True))
    assert any("seconds of a dut.grace at 29.00 s is -1" in one for one in bench.judge(coherent()).unknowns)


@pytest.mark.parametrize(
    ("errno", "doubted"), [(0, False), (5, False), (19, False), (13, True), (28, True), (84, True)]
)
def test_an_error_that_the_loss_of_a_disk_does_not_cause(errno: int, doubted: bool) -> None:
    ended = ev.LoadEnded(at=16.0, disk=VICTIM, job="load1", asked=False, errno=errno)
    assert bool(not_of_a_loss(healthy().story(), ended)) is doubted


@pytest.mark.parametrize(
    ("mode", "phase", "doubted"), [("write", "", False), ("read", "", True), ("write", "mkfs", True)]
)
def test_a_write_beyond_the_end_of_a_disk_that_has_no_size_any_more(mode: str, phase: str, doubted: bool) -> None:
    bench = healthy()
    bench.replace(ev.LoadBegun, lambda event: event.disk == VICTIM, mode=mode)
    if phase:
        bench.add(ev.Phase(at=9.0, name="mkfs"))
    ended = ev.LoadEnded(at=16.0, disk=VICTIM, job=f"load-{VICTIM}", asked=False, errno=28)
    assert bool(not_of_a_loss(bench.story(), ended)) is doubted
