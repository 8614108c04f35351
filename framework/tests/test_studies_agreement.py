"""fio, the kernel's counters and the emulated disk must have counted the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from study_benches import StudyBench, a_rig

from plugpull.history import events as ev
from plugpull.load.designs import each_alone
from plugpull.studies import alone
from plugpull.studies.agreement import disagreements


def _bench() -> StudyBench:
    rig = a_rig([2.0, 1.0])
    return StudyBench(rig, each_alone(rig.names), repeats=3)


def _changed(change: Callable[[Any], ev.Event]) -> StudyBench:
    bench = _bench()
    bench.events = [change(event) for event in bench.events]
    return bench


def test_three_counts_of_the_same_bytes_agree() -> None:
    bench = _bench()
    assert {type(event) for event in bench.events} >= {ev.LoadEnded, ev.CountedOutside, ev.Sampled}
    assert list(disagreements(bench.story())) == []
    assert alone(bench.rig.names).judge(bench.story()).unknowns == ()


@pytest.mark.parametrize(
    ("field", "share", "said"),
    [
        ("written_bytes", 0.98, "fio says that it wrote"),
        ("written_bytes", 1.02, "fio says that it wrote"),
        ("read_bytes", 1.02, "fio says that it read"),
        ("read_bytes", 0.80, "fio says that it read"),
    ],
)
def test_fio_that_counts_otherwise_is_seen(field: str, share: float, said: str) -> None:
    def change(event: ev.Event) -> ev.Event:
        if isinstance(event, ev.LoadEnded) and event.disk == "disk1":
            return msgspec.structs.replace(event, **{field: int(getattr(event, field) * share)})
        return event

    (doubt,) = disagreements(_changed(change).story())
    assert doubt.startswith(said)
    assert "disk1" in doubt
    assert doubt in alone(("disk1", "disk2")).judge(_changed(change).story()).unknowns


@pytest.mark.parametrize("field", ["written_bytes", "read_bytes"])
@pytest.mark.parametrize("share", [0.98, 1.02])
def test_an_emulated_disk_that_counts_otherwise_is_seen(field: str, share: float) -> None:
    def change(event: ev.Event) -> ev.Event:
        if isinstance(event, ev.CountedOutside) and event.disk == "disk2":
            return msgspec.structs.replace(event, **{field: int(getattr(event, field) * share)})
        return event

    (doubt,) = disagreements(_changed(change).story())
    assert doubt.startswith(f"the emulated disk2 was {field.removesuffix('_bytes')} ")


def test_a_disk_that_was_hardly_read_may_differ_by_what_was_read_before_the_kernel_counted() -> None:
    bench = _bench()
    bench.events = [event for event in bench.events if not isinstance(event, ev.Measured | ev.LoadBegun | ev.LoadEnded)]
    samples = [event for event in bench.events if isinstance(event, ev.Sampled)]
    first = samples[0].disks
    bench.events = [event for event in bench.events if not isinstance(event, ev.Sampled | ev.CountedOutside)]
    counters = {kname: one._replace(read_bytes=13_824, written_bytes=0) for kname, one in first.items()}
    end = samples[-1].at or 0.0
    bench.events += [
        ev.Sampled(at=end, disks=counters),
        ev.CountedOutside(at=end + 1.0, disk="disk1", read_bytes=14_848, written_bytes=0),
    ]
    assert list(disagreements(bench.story())) == []
    bench.events[-1] = ev.CountedOutside(at=end + 1.0, disk="disk1", read_bytes=140_000, written_bytes=0)
    assert len(list(disagreements(bench.story()))) == 1


def test_half_a_percent_is_no_disagreement() -> None:
    def change(event: ev.Event) -> ev.Event:
        if isinstance(event, ev.CountedOutside | ev.LoadEnded):
            return msgspec.structs.replace(event, written_bytes=int(event.written_bytes * 1.005))
        return event

    assert list(disagreements(_changed(change).story())) == []


def test_what_the_kernel_reads_of_a_partition_table_is_no_disagreement() -> None:
    def change(event: ev.Event) -> ev.Event:
        if isinstance(event, ev.LoadEnded) and event.read_bytes:
            return msgspec.structs.replace(event, read_bytes=event.read_bytes - (128 << 10))
        return event

    assert list(disagreements(_changed(change).story())) == []


def test_a_load_that_still_runs_moves_bytes_that_are_not_compared() -> None:
    bench = _bench()
    last = max(event.at or 0.0 for event in bench.events if isinstance(event, ev.LoadEnded))
    bench.events = [event for event in bench.events if not (isinstance(event, ev.LoadEnded) and event.at == last)]
    assert not [doubt for doubt in disagreements(bench.story()) if "emulated" in doubt]


def test_a_disk_that_was_plugged_in_again_is_compared_since_then() -> None:
    """Both counts begin with 0 again."""
    bench = _bench()
    outside = [event for event in bench.events if isinstance(event, ev.CountedOutside)]
    assert len(outside) == 2
    end = max(event.at or 0.0 for event in bench.events)
    again = ev.DiskAttached(
        at=end + 1.0, disk="disk1", kname="sdz", diskseq=9, devt="8:144", serial="S-disk1", place="x", size=64 << 20
    )
    counters = next(event for event in bench.events if isinstance(event, ev.Sampled)).disks["sdb"]
    sample = ev.Sampled(at=end + 1.5, disks={"sdz": counters._replace(diskseq=9, read_bytes=4096, written_bytes=0)})
    bench.events = [
        *(event for event in bench.events if not isinstance(event, ev.CountedOutside)),
        again,
        sample,
        replace_at(outside[0], end + 2.0),
    ]
    found = list(disagreements(bench.story()))
    assert [doubt for doubt in found if doubt.startswith("the emulated disk1 was read")]
    bench.events[-1] = ev.CountedOutside(at=end + 2.0, disk="disk1", read_bytes=4096, written_bytes=0)
    assert list(disagreements(bench.story())) == []


def replace_at(event: ev.CountedOutside, at: float) -> ev.CountedOutside:
    return msgspec.structs.replace(event, at=at)
