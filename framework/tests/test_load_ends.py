"""Loads whose ends contradict themselves, their disk's name or its counters."""

from __future__ import annotations

from typing import Any

import pytest
from array_stories import ARRAY, mirror
from msgspec.structs import replace
from stories import CUT, SETTLED, SURVIVORS, VICTIM, Bench, healthy, steady

from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.load_ends import load_doubts
from plugpull.history import events as ev
from plugpull.history.reader import Story

DISK, OTHER = SURVIVORS
ASKED = "fio: terminating on signal 2"


def said(bench: Bench, **ended: Any) -> list[str]:
    """What is said of the survivor's load if its end is changed like this."""
    bench.replace(ev.LoadEnded, lambda event: event.disk == DISK, **ended)
    return list(load_doubts(bench.story()))


def counted(bench: Bench) -> int:
    """Bytes that the survivor's disk counted during its load."""
    story = bench.story()
    (load,) = (load for load in story.of(ev.LoadBegun) if load.disk == DISK)
    ended = story.load_end(load)
    assert ended is not None
    moved = story.moved(DISK, load.at or 0.0, ended.at or 0.0)
    assert moved is not None
    return moved


def test_the_loads_of_a_healthy_bench_raise_no_doubt() -> None:
    assert said(healthy()) == []
    assert said(healthy(), exit_status=128, message=ASKED) == []
    assert said(healthy(), written_bytes=counted(healthy()), longest=0.1) == []


def test_a_request_of_seconds_at_depth_1_shows_in_the_counters() -> None:
    """The survivors of the bench complete requests all the time, so no request of theirs took 3 s."""
    alone = {"depth": 1, "argv": ("fio", "--direct=1")}
    for began, doubts in ((alone, 1), (alone | {"depth": 4}, 0), (alone | {"argv": ("fio",)}, 0)):
        bench = healthy()
        bench.replace(ev.LoadBegun, lambda event: event.disk == DISK, **began)
        found = [one for one in said(bench, longest=3.0) if "one at a time" in one]
        assert len(found) == doubts
        assert not [one for one in said(bench, longest=0.9) if "one at a time" in one]
    stalled = healthy(pace=lambda disk, at: 0.0 if disk == DISK and CUT < at < CUT + 3.0 else steady(disk, at))
    stalled.replace(ev.LoadBegun, lambda event: event.disk == DISK, **alone)
    assert not [one for one in said(stalled, longest=3.0) if "one at a time" in one]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"exit_status": -9}, f"the load on {DISK} was ended by signal 9, and reported no error"),
        ({"exit_status": 1}, f"the load on {DISK} ended with exit status 1, and reported no error"),
        (
            {"exit_status": 128, "message": "fio: io_u error on file sdb: Input/output"},
            f"the load on {DISK} ended without an error, and reported one: fio: io_u error on file sdb: Input/output",
        ),
    ],
)
def test_a_load_that_was_asked_to_end_and_ended_otherwise(changes: dict[str, Any], what: str) -> None:
    assert said(healthy(), **changes) == [what]
    assert said(healthy(), **changes, errno=5) == [], "the error is judged, and says more"
    assert coherent().judge(_with(healthy(), changes)).unknowns == (f"the record contradicts itself: {what}",)


def _with(bench: Bench, changes: dict[str, Any]) -> Story:
    bench.replace(ev.LoadEnded, lambda event: event.disk == DISK, **changes)
    return bench.story()


def test_a_victims_load_ends_by_itself() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, asked=False, exit_status=1, errno=19)
    assert said(bench) == []


def test_an_end_that_is_there_twice() -> None:
    bench = healthy()
    story = bench.story()
    ends = [event for event in story.of(ev.LoadEnded) if event.disk == DISK]
    twice = Story(story.begun, (*story.events, *ends), rig=story.rig)
    assert list(load_doubts(twice)) == [f"the load on {DISK} ended 2 times"]


def test_a_load_that_was_begun_under_another_disks_name() -> None:
    story = healthy().story()
    names = {disk: attached.kname for disk in (DISK, OTHER) if (attached := story.attachment_at(disk, SETTLED))}

    def begun(kname: str) -> list[str]:
        bench = healthy()
        bench.replace(ev.LoadBegun, lambda event: event.disk == DISK, kname=kname)
        return said(bench)

    assert begun(names[DISK]) == []
    assert begun(names[OTHER]) == [f"the load on {DISK} was begun on {names[OTHER]}, which was {OTHER}"]
    assert begun("sdq") == [f"the load on {DISK} was begun on sdq, which it was never called"]


def files_begun(**what: Any) -> list[str]:
    bench = healthy()
    common: dict[str, Any] = {"job": "f", "run": 1, "round": 1, "directory": "round1", "fstype": "ext4", "uuid": "u"}
    bench.add(ev.FileRoundBegun(at=SETTLED, disk=DISK, **common, **what))
    return said(bench)


def test_files_that_were_written_under_another_disks_name() -> None:
    names = {event.disk: event.kname for event in healthy().story().all_attachments}
    assert files_begun(kname=names[DISK]) == []
    assert files_begun(kname=names[OTHER]) == [f"the load on {DISK} was begun on {names[OTHER]}, which was {OTHER}"]


def test_files_that_are_said_to_be_on_another_disk() -> None:
    assert files_begun(disks=(DISK,)) == []
    assert files_begun(disks=(OTHER,)) == [f"the files on {DISK} are said to be on {OTHER}"]


@pytest.mark.parametrize(("disks", "doubted"), [(("disk1", "disk2"), False), (("disk1",), True), (("disk3",), True)])
def test_files_on_an_array_are_on_all_its_members(disks: tuple[str, ...], doubted: bool) -> None:
    bench = healthy()
    mirror(bench)
    common: dict[str, Any] = {"job": "f", "run": 1, "round": 1, "directory": "round1", "fstype": "ext4", "uuid": "u"}
    bench.add(ev.FileRoundBegun(at=SETTLED, disk=ARRAY, disks=disks, **common))
    assert any("are said to be on" in one for one in said(bench)) is doubted


def test_fewer_bytes_than_the_disk_counted() -> None:
    moved = counted(healthy())
    for fewer in (moved // 3, moved * 17 // 20):
        (what,) = said(healthy(), written_bytes=fewer, longest=0.1)
        assert what.startswith(f"the load on {DISK} reported {fewer} bytes, and its disk counted ")
    assert said(healthy(), written_bytes=moved * 19 // 20, longest=0.1) == []
    assert said(healthy(), written_bytes=0) == [], "an older agent's fio"
    early = replace(healthy().story().of(ev.LoadEnded)[0], longest=0.1)
    assert early.written_bytes == 0


ON_A_DISK = ("fio", "--direct=1", "--allow_file_create=0")
ON_A_FILE = ("fio", "--direct=1")


@pytest.mark.parametrize(
    ("argv", "quarters", "many"), [(ON_A_DISK, 1, 1), (ON_A_FILE, 0, 0), (ON_A_FILE, 1, 0), (ON_A_FILE, 3, 1)]
)
def test_a_filesystem_writes_its_tables_beside_a_load_on_a_file(
    argv: tuple[str, ...], quarters: int, many: int
) -> None:
    bench, moved = healthy(), counted(healthy())
    # The disk is so large that its tables can be a quarter of what was moved, and other metadata as much.
    bench.replace(ev.DiskAttached, lambda event: event.disk == DISK, size=4 * moved)
    bench.replace(ev.LoadBegun, lambda event: event.disk == DISK, argv=argv)
    whats = said(bench, written_bytes=moved - quarters * moved // 4, longest=0.1)
    assert len(whats) == many, whats


@pytest.mark.parametrize(("argv", "factor", "many"), [(("--direct=1",), 3, 1), (("--direct=1",), 1, 0), ((), 3, 0)])
def test_a_direct_load_that_moved_more_than_its_disk(argv: tuple[str, ...], factor: int, many: int) -> None:
    bench = healthy()
    bench.replace(ev.LoadBegun, lambda event: event.disk == DISK, argv=argv)
    whats = said(bench, written_bytes=factor * counted(healthy()), longest=0.1)
    assert len(whats) == many
    assert all("and its disk counted only" in what for what in whats)


@pytest.mark.parametrize(("disk", "many"), [(OTHER, 1), (DISK, 0)])
def test_stamps_written_under_the_name_of_another_disk(disk: str, many: int) -> None:
    bench = healthy()
    kname = next(event.kname for event in bench.story().all_attachments if event.disk == disk)
    bench.add(
        ev.LedgerBegun(
            at=SETTLED, disk=DISK, job="s", run=1, device=2, session=1, extents=(), block=8, depth=1,
            order="random", kname=kname,
        )
    )  # fmt: skip
    whats = said(bench)
    assert len(whats) == many
    assert all(f"was begun on {kname}, which was {disk}" in what for what in whats)


@pytest.mark.parametrize(("factor", "many"), [(3, 1), (1, 0)])
def test_stamps_that_moved_more_than_their_disk(factor: int, many: int) -> None:
    bench = healthy()
    job = next(event.job for event in bench.events if isinstance(event, ev.LoadBegun) and event.disk == DISK)
    bench.add(
        ev.LedgerBegun(
            at=10.9, disk=DISK, job=job, run=1, device=2, session=1, extents=(), block=8, depth=1, order="random"
        )
    )
    whats = said(bench, written_bytes=factor * counted(healthy()))
    assert len(whats) == many


@pytest.mark.parametrize(
    ("since", "look", "many"),
    [(99.0, None, 0), (24.0, None, 1), (24.0, 24.5, 1), (25.0, 24.98, 0), (25.0, None, 1), (25.0, 26.0, 1)],
    ids=["never", "for long", "before the last look", "in the last look", "no look", "a later look"],
)
def test_a_request_in_flight_at_the_end(since: float, look: float | None, many: int) -> None:
    """From ``since`` on the samples have one in flight. The last look begins at ``look`` and reads the disk."""
    bench = healthy()
    attached = next(one for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == SURVIVORS[0])
    kname, made = attached.kname, bench.samples
    if look is not None:
        disk, diskseq = attached.disk, attached.diskseq
        bench.add(ev.DiskProperties(at=look, moment="end", disk=disk, kname=kname, diskseq=diskseq, values={}))

    def changed() -> list[ev.Event]:
        return [
            replace(one, disks=one.disks | {kname: one.disks[kname]._replace(reads_in_flight=1)})
            if isinstance(one, ev.Sampled) and kname in one.disks and (one.at or 0.0) >= since
            else one
            for one in made()
        ]

    bench.samples = changed  # type: ignore[method-assign]
    doubts = [one for one in load_doubts(bench.story()) if "still in flight" in one]
    assert len(doubts) == many


ENDLESS = ("fio", "--rw=read", "--time_based", "--runtime=31536000")


@pytest.mark.parametrize(
    ("argv", "changes", "doubted"),
    [
        (ENDLESS, {"asked": True}, False),
        (ENDLESS, {"asked": False, "exit_status": 0}, True),
        ((), {"asked": False, "exit_status": 0}, True),
        (("fio", "--rw=read"), {"asked": False, "exit_status": 0}, False),
        (ENDLESS, {"asked": False, "exit_status": 1, "errno": 5}, False),
    ],
    ids=["asked", "by itself", "stamps by themselves", "all was read", "an error, which is judged"],
)
def test_a_load_without_an_end_of_its_own_is_asked_to_end(
    argv: tuple[str, ...], changes: dict[str, Any], doubted: bool
) -> None:
    bench = healthy()
    bench.replace(ev.LoadBegun, lambda event: event.disk == DISK, argv=argv)
    whose = f"the load on {DISK} ended by itself at 24.30 s, before it was asked to"
    assert (whose in said(bench, **changes)) is doubted


def test_the_end_of_a_load_whose_disk_was_cut_is_judged_elsewhere() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, exit_status=0, errno=0, message="")
    assert said(bench) == []


@pytest.mark.parametrize(("kname", "doubted"), [("md127", False), ("md126", True), ("", False)])
def test_a_load_on_an_array_that_was_never_called_so(kname: str, doubted: bool) -> None:
    bench = healthy()
    mirror(bench)
    load = ev.LoadBegun(at=11.0, disk=ARRAY, job="load", mode="write", block=4096, depth=1, span=4096, kname=kname)
    bench.add(load, ev.LoadEnded(at=23.0, disk=ARRAY, job="load", asked=True, asked_at=22.9, exit_status=0))
    what = f"the load on {ARRAY} was begun on md126, which it was never called"
    assert (what in list(load_doubts(bench.story()))) is doubted


def test_a_load_that_was_asked_to_end_and_was_not() -> None:
    assert any("and is said not to have been" in one for one in said(healthy(), asked=False, asked_at=23.9))
