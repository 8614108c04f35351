"""Studies of fio's own figures: caches, and the tail of small synchronous writes."""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec
import pytest
from study_benches import kinds, only
from task_benches import MB, TaskBench, judged, rated

from plugpull.history import events as ev
from plugpull.load.task_designs import caching_design, latency_design
from plugpull.load.tasks import FioTask
from plugpull.studies import caching, latency
from plugpull.studies.tasks import tasks_to_repeat

DISKS = ("disk1", "disk2")
AMOUNT = 4 << 20
TRUTH: Mapping[str, float] = {"buffered": 80.0, "end_fsync": 2.0, "O_SYNC": 1.9, "direct": 2.0}
"""MB/s of a disk of 2 MB/s."""

# --- caches ----------------------------------------------------------------------------------------------------------


def _cached(
    truth: Mapping[str, float] = TRUTH, off: float = 1.0, noise: float = 0.01, seed: object = 0, **more: object
) -> TaskBench:
    """``off`` is the share of a rate that is left with the drive cache switched off."""

    def figures(task: FioTask[str], disk: str, repeat: int, draw: random.Random) -> ev.FioFigures:
        name, _, switched = task.name.partition(", ")
        rate = truth[name] * MB * (off if switched else 1.0) * draw.gauss(1.0, noise)
        return ev.FioFigures(bytes=AMOUNT, seconds=AMOUNT / rate, requests=64, longest=0.1)

    known: dict[str, object] = {"table": {"disk": rated(DISKS, 2 * MB)}, "seed": seed, **more}
    return TaskBench(DISKS, caching_design(DISKS), figures, **known)  # type: ignore[arg-type]


def test_a_buffered_rate_that_no_disk_can_have_is_called_impossible() -> None:
    found = judged(_cached(), caching(DISKS))
    assert [one for one in kinds(found) if one[0] == "impossible-rate"] == [
        ("impossible-rate", "disk1"),
        ("impossible-rate", "disk2"),
    ]
    assert (found.findings, found.unknowns) == ((), ()), "it is nobody's fault"
    one = next(one for one in found.conclusions if one.subject == "disk1")
    assert one.value == pytest.approx(80 * MB, rel=0.03)
    assert "the declared rate of disk1 can carry 2 MB/s" in one.text
    assert "The final sync then took 2." in one.text
    waits = [one for one in found.measurements if one.name == "final sync"]
    assert [one.subject for one in waits] == ["disk1", "disk2"]
    assert waits[0].value == pytest.approx(AMOUNT / (2 * MB) - AMOUNT / (80 * MB), rel=0.03)
    assert (waits[0].unit, waits[0].better) == ("s", "down")


def test_a_cache_that_was_not_switched_off_is_a_doubt() -> None:
    bench = _cached()
    refused = {"ok": False, "detail": "MODE SELECT failed"}
    bench.events = [
        msgspec.structs.replace(event, **refused)
        if isinstance(event, ev.DriveCacheSwitched) and event.disk == "disk1"
        else event
        for event in bench.events
        if not (isinstance(event, ev.DriveCacheSwitched) and event.disk == "disk2")
    ]
    said = judged(bench, caching(DISKS)).unknowns
    assert "the write cache of disk1 could not be switched off: MODE SELECT failed" in said
    assert "that the write cache of disk2 was switched off for direct, drive cache off is not on record" in said


def test_a_task_that_fio_could_not_do_is_a_doubt() -> None:
    bench = _cached()
    place, ran = next((i, one) for i, one in enumerate(bench.events) if isinstance(one, ev.FioRan))
    failed = {**ran.figures, "disk2": ev.FioFigures(error="No space left on device")}
    bench.events[place] = msgspec.structs.replace(ran, figures=failed)
    assert any("failed on disk2" in said and "No space" in said for said in judged(bench, caching(DISKS)).unknowns)


def test_figures_of_a_disk_on_which_nothing_ran_are_a_doubt() -> None:
    bench = _cached()
    place, ran = next((i, one) for i, one in enumerate(bench.events) if isinstance(one, ev.FioRan))
    bench.events[place] = msgspec.structs.replace(ran, disks=("disk1",))
    assert any(
        "has figures of disk2, on which it did not run" in said for said in judged(bench, caching("disk1")).unknowns
    )


def test_a_buffered_rate_that_varies_is_impossible_all_the_same() -> None:
    """Memory is 20 to 50 times as fast as these disks, on a busy host now this and now that."""
    found = judged(_cached(noise=0.6), caching("disk1"))
    assert ("impossible-rate", "disk1") in kinds(found)


def test_a_buffered_write_that_memory_does_not_take_is_possible() -> None:
    """Such as one that is as large as the memory."""
    found = judged(_cached({**TRUTH, "buffered": 2.2}), caching(DISKS))
    assert "impossible-rate" not in {kind for kind, _ in kinds(found)}


def test_a_synchronous_rate_that_no_path_can_carry_is_the_fault_of_the_disk() -> None:
    found = judged(_cached({**TRUTH, "O_SYNC": 8.0}), caching("disk1"))
    assert [one.subject for one in found.findings] == ["disk1", "disk1"], "with its cache on and off"
    assert "MB/s is impossible, the declared rate of disk1 can carry 2 MB/s" in found.findings[0].summary


def test_without_a_known_capacity_nothing_is_impossible() -> None:
    table = {"dut": {"kind": "ssh"}}
    found = judged(_cached(table=table, speed=""), caching(DISKS))
    assert "impossible-rate" not in {kind for kind, _ in kinds(found)}
    assert len([one for one in found.measurements if one.name == "write buffered"]) == 2


def test_what_a_drive_cache_is_worth_is_a_difference() -> None:
    """U02: -17% with the cache off."""
    found = judged(_cached(off=0.83), caching("disk1"))
    changes = [one for one in found.conclusions if one.kind == "difference"]
    assert [one.subject for one in changes] == ["disk1", "disk1"]
    for one in changes:
        assert one.value == pytest.approx(-0.17, abs=0.02)
    assert (found.findings, found.unknowns) == ((), ())


def test_the_drive_caches_of_many_disks_are_a_difference_each() -> None:
    disks = tuple(f"disk{number}" for number in range(1, 10))

    def figures(task: FioTask[str], disk: str, repeat: int, draw: random.Random) -> ev.FioFigures:
        rate = 2 * MB * (0.83 if "drive cache off" in task.name else 1.0) * draw.gauss(1.0, 0.01)
        return ev.FioFigures(bytes=AMOUNT, seconds=AMOUNT / rate, requests=64, longest=0.1)

    found = judged(TaskBench(disks, caching_design(disks), figures), caching(disks))
    changes = [one.subject for one in found.conclusions if one.kind == "difference"]
    assert changes == [disk for disk in disks for _ in ("O_SYNC", "direct")]
    assert found.unknowns == ()


def test_a_drive_cache_that_changes_nothing_makes_no_difference() -> None:
    found = judged(_cached(noise=0.003), caching("disk1"))
    assert [kind for kind, _ in kinds(found)] == ["impossible-rate", "no-difference", "no-difference"]


def test_a_disk_without_a_switchable_cache_has_no_such_comparison() -> None:
    bench = _cached()
    bench.events = [one for one in bench.events if not isinstance(one, ev.FioRan) or "drive cache off" not in one.task]
    numbers = [one for one in bench.events if isinstance(one, ev.FioRan)]
    again = iter(range(1, 99))
    bench.events = [
        _with(one, number=next(again), planned=len(numbers)) if isinstance(one, ev.FioRan) else one
        for one in bench.events
    ]
    found = judged(bench, caching("disk1"))
    assert kinds(found) == [("impossible-rate", "disk1")]
    assert found.unknowns == ()


def test_thirty_healthy_caching_studies_have_at_most_one_false_difference() -> None:
    false = []
    for number in range(30):
        found = caching(DISKS).judge(_cached(noise=0.02, seed=("caching", number)).story())
        if found.findings or any(one.kind == "difference" for one in found.conclusions):
            false.append(number)
    assert len(false) <= 1, false


def test_what_fio_did_not_report_does_not_count() -> None:
    bench = _cached()
    bench.events = [
        _with(one, figures={**one.figures, "disk1": ev.FioFigures(error="fio ended with errno 5")})
        if isinstance(one, ev.FioRan) and one.task == "O_SYNC"
        else one
        for one in bench.events
    ]
    found = judged(bench, caching("disk1"))
    assert "only 0 of 5 measurements of the write rate of disk1, O_SYNC count: fio ended with errno 5" in found.unknowns


def test_tasks_that_were_not_run_are_missed() -> None:
    bench = _cached()
    bench.events = [one for one in bench.events if not isinstance(one, ev.FioRan) or one.number < 30]
    assert "1 of 30 tasks were not run" in caching(DISKS).judge(bench.story()).unknowns
    bench.events = [one for one in bench.events if not isinstance(one, ev.FioRan)]
    assert caching(DISKS).judge(bench.story()).unknowns[0] == "nothing was measured"


def test_tasks_during_which_the_host_starved_the_dut_are_run_again_and_do_not_count() -> None:
    bench = _cached(deaf=(2, 5))
    assert [event.number for event in tasks_to_repeat(bench.story().events, 0)] == [2, 5]
    found = caching(DISKS).judge(bench.story())
    assert sorted(one.n for one in found.measurements if one.name.startswith("write "))[:4] == [4, 4, 4, 4]


def _with(event: ev.FioRan, **changes: object) -> ev.FioRan:
    return msgspec.structs.replace(event, **changes)


# --- small synchronous writes ----------------------------------------------------------------------------------------


def _small(requests: int = 1500, half: float = 0.004, **more: object) -> TaskBench:
    def figures(task: FioTask[str], disk: str, repeat: int, draw: random.Random) -> ev.FioFigures:
        times = {"50.000000": half, "99.000000": 3 * half, "99.900000": 9 * half, "99.990000": 20 * half}
        noisy = {key: value * draw.gauss(1.0, 0.02) for key, value in times.items()}
        return ev.FioFigures(bytes=requests * 4096, seconds=3.0, requests=requests, percentiles=noisy, longest=0.2)

    return TaskBench(DISKS, latency_design(DISKS), figures, **more)  # type: ignore[arg-type]


def test_only_percentiles_with_enough_requests_beyond_them_are_shown() -> None:
    found = judged(_small(1500), latency("disk1"))
    assert [one.name for one in found.measurements] == [
        "synchronous write p50",
        "synchronous write p99",
        "synchronous write slowest",
    ]
    assert found.measurements[0].value == pytest.approx(0.004, rel=0.05)
    assert found.measurements[0].samples[0] != round(found.measurements[0].samples[0], 3), "not only milliseconds"
    many = judged(_small(10_000), latency("disk1"))
    assert [one.name for one in many.measurements][2] == "synchronous write p99.9"
    assert [one.name for one in judged(_small(999), latency("disk1")).measurements][1] == "synchronous write slowest"


def test_a_disk_that_answers_steadily_has_no_pauses() -> None:
    found = judged(_small(), latency(DISKS))
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())


def test_pauses_of_one_disk_are_named_with_their_length() -> None:
    found = judged(
        _small(paused=lambda task, disk, repeat, since: disk == "disk2" and repeat in (2, 4) and 1.0 < since < 2.0),
        latency(DISKS),
    )
    one = only(found, "pause")
    assert (one.subject, found.findings) == ("disk2", ())
    assert one.value == pytest.approx(1.0, abs=0.15)
    assert one.text.startswith("disk2 pauses at small synchronous writes: 2 pauses of up to ")
    assert len(one.evidence) == 2


def test_one_pause_alone_may_be_the_benchs() -> None:
    found = judged(
        _small(paused=lambda task, disk, repeat, since: disk == "disk2" and repeat == 2 and 1.0 < since < 2.0),
        latency(DISKS),
    )
    assert found.conclusions == ()


def test_a_disk_whose_every_write_is_slow_does_not_pause() -> None:
    found = judged(
        _small(half=0.1, paused=lambda task, disk, repeat, since: disk == "disk2" and 1.0 < since < 2.0),
        latency(DISKS),
    )
    assert found.conclusions == ()


def test_all_disks_that_pause_at_once_are_not_blamed() -> None:
    found = judged(_small(paused=lambda task, disk, repeat, since: 1.0 < since < 2.0), latency(DISKS))
    assert found.conclusions == ()
    assert "all disks paused at once" in found.unknowns[0]
