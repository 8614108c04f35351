"""What emulated disks counted themselves, beside what the kernel counted for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stories import BACK, CUT, SURVIVORS, VICTIM, healthy, steady

from plugpull.checks.data.data_sound import DataSound
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.outside_counts import counted_otherwise, not_counted, read_otherwise
from plugpull.history import events as ev
from plugpull.history.story import Story

DISK = SURVIVORS[0]


def written(story: Story, disk: str) -> int:
    return story.readings(disk)[-1].written


@pytest.mark.parametrize(("share", "doubted"), [(1.0, False), (0.5, True), (2.0, True)])
def test_an_emulated_disk_is_written_what_the_kernel_counted(share: float, doubted: bool) -> None:
    bench = healthy()
    last, much = bench.story().sample_times[-1], written(bench.story(), DISK)
    bench.add(ev.CountedOutside(at=last + 0.1, disk=DISK, read_bytes=0, written_bytes=int(much * share)))
    assert much > 1 << 20
    assert bool(list(counted_otherwise(bench.story()))) is doubted


@pytest.mark.parametrize(("more", "doubted"), [(16 << 10, False), (64 << 10, True), (-(64 << 10), True)])
def test_a_repeated_transfer_and_no_more_may_reach_the_disk_twice(more: int, doubted: bool) -> None:
    bench = healthy()
    last, much = bench.story().sample_times[-1], written(bench.story(), DISK)
    bench.add(ev.CountedOutside(at=last + 0.1, disk=DISK, read_bytes=0, written_bytes=much + more))
    assert bool(list(counted_otherwise(bench.story()))) is doubted


@pytest.mark.parametrize(("wrote", "doubted"), [(0, False), (512, True)])
def test_a_disk_that_the_kernel_never_wrote_to_was_not_written(wrote: int, doubted: bool) -> None:
    bench = healthy(pace=lambda disk, at: 0.0 if disk == DISK else steady(disk, at))
    assert written(bench.story(), DISK) == 0
    last = bench.story().sample_times[-1]
    bench.add(ev.CountedOutside(at=last + 0.1, disk=DISK, read_bytes=0, written_bytes=wrote))
    assert bool(list(counted_otherwise(bench.story()))) is doubted


@pytest.mark.parametrize(("much", "doubted"), [(0, False), (2, False), (5, True)])
def test_what_is_written_just_before_an_emulated_disk_is_asked_is_in_the_next_sample(much: int, doubted: bool) -> None:
    bench = healthy()
    last = next(one for one in reversed(bench.samples()) if isinstance(one, ev.Sampled))
    at, seen = last.at or 0.0, written(bench.story(), DISK)
    kname = next(one.kname for one in bench.story().all_attachments if one.disk == DISK)
    counters = last.disks[kname]._replace(written_bytes=seen + (2 << 20))
    bench.add(ev.CountedOutside(at=at + 0.01, disk=DISK, read_bytes=0, written_bytes=seen + (much << 20)))
    bench.add(replace(last, at=at + 0.05, disks=last.disks | {kname: counters}))
    assert bool(list(counted_otherwise(bench.story()))) is doubted


@pytest.mark.parametrize(("more", "doubted"), [(0, False), (64 << 10, False), (1 << 20, True), (-(1 << 20), True)])
def test_an_emulated_disk_is_read_what_the_kernel_counted(more: int, doubted: bool) -> None:
    """What is read while a disk is probed is not in its counters."""
    bench = healthy(mode="read")
    story = bench.story()
    much = story.readings(DISK)[-1].read
    assert much > 1 << 20
    at = story.sample_times[-1] + 0.1
    bench.add(ev.CountedOutside(at=at, disk=DISK, read_bytes=much + more, written_bytes=0))
    assert bool(list(read_otherwise(bench.story()))) is doubted
    assert any(f"{DISK} was read" in doubt for doubt in bench.judge(coherent()).unknowns) is doubted


MISPLACED = 8 << 20


@pytest.mark.parametrize(
    ("lacks", "has", "found", "doubted"),
    [
        (0, 0, False, False),
        (MISPLACED, MISPLACED, True, False),
        (MISPLACED, MISPLACED // 8, False, True),
        (MISPLACED, 0, False, True),
        (8 << 10, 8 << 10, False, False),
    ],
    ids=["healthy", "to another disk", "other sums", "one alone", "repeated transfers"],
)
def test_bytes_that_one_disk_lacks_and_another_has_went_to_another_disk(
    lacks: int, has: int, found: bool, doubted: bool
) -> None:
    bench = healthy()
    story = bench.story()
    at = story.sample_times[-1] + 0.1
    for disk, change in zip(SURVIVORS, (-lacks, has), strict=False):
        bench.add(ev.CountedOutside(at=at, disk=disk, read_bytes=0, written_bytes=written(story, disk) + change))
    findings = bench.judge(DataSound()).findings
    assert bool(list(counted_otherwise(bench.story()))) is doubted
    assert [one.subject for one in findings] == [SURVIVORS[0]] * found
    if found:
        assert f"{MISPLACED} bytes that the kernel had written to {SURVIVORS[0]}" in findings[0].summary
        assert f"and {SURVIVORS[1]} had {MISPLACED} bytes too many" in findings[0].summary


def test_counts_that_were_entered_for_the_wrong_disk_accuse_nobody() -> None:
    bench = healthy(pace=lambda disk, at: steady(disk, at) / (2 if disk == SURVIVORS[0] else 1))
    story = bench.story()
    at = story.sample_times[-1] + 0.1
    one, two = SURVIVORS[:2]
    assert written(story, one) != written(story, two)
    for disk, other in ((one, two), (two, one)):
        bench.add(ev.CountedOutside(at=at, disk=disk, read_bytes=0, written_bytes=written(story, other)))
    assert bench.judge(DataSound()).findings == ()


def test_each_emulated_disk_that_is_there_is_counted() -> None:
    bench = healthy()
    assert list(not_counted(bench.story())) == []
    at = bench.story().sample_times[-1] + 0.1
    for disk in (VICTIM, *SURVIVORS):
        bench.add(ev.CountedOutside(at=at, disk=disk, read_bytes=0, written_bytes=0))
    assert list(not_counted(bench.story())) == []
    bench.drop(ev.CountedOutside, lambda event: event.disk != SURVIVORS[0])
    assert list(not_counted(bench.story())) == [f"what the emulated {SURVIVORS[0]} itself counted is not on record"]
    assert any("itself counted is not on record" in one for one in bench.judge(coherent()).unknowns)
    bench.drop(ev.CountedOutside, lambda event: event.disk != VICTIM)
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or (event.at or 0.0) < BACK)
    assert len(list(not_counted(bench.story()))) == 1


@pytest.mark.parametrize(("restored", "many"), [(True, 1), (False, 0)])
def test_a_disk_that_was_cut_for_good_is_counted_when_it_is_restored(restored: bool, many: int) -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or (event.at or 0.0) < BACK)
    at = bench.story().sample_times[-1] + 0.1
    bench.add(ev.Healed(at=at - 0.05, ports=("cables.1",), ok=restored))
    for disk in SURVIVORS:
        bench.add(ev.CountedOutside(at=at, disk=disk, read_bytes=0, written_bytes=0))
    assert len(list(not_counted(bench.story()))) == many


def test_a_disk_that_was_plugged_in_again_unnoticed_counts_again() -> None:
    bench = healthy()
    bench.drop(ev.DiskDetached)
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM and (event.at or 0.0) > CUT, disk="")
    last = bench.story().sample_times[-1]
    bench.add(ev.CountedOutside(at=last + 0.1, disk=VICTIM, read_bytes=0, written_bytes=0))
    assert list(counted_otherwise(bench.story())) == []
