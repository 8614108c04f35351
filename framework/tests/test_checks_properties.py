"""The check ``same_properties``: how disks are driven after a cut, and their names."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, DISKS, GONE, SURVIVORS, VICTIM, Bench, healthy
from watched import change, properties, real, watched

from plugpull.checks import same_properties
from plugpull.history import events as ev


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("driver", "usb-storage", "is driven by usb-storage instead of uas"),
        ("queue_depth", "1", "takes 1 commands at once instead of 28"),
        ("queue_depth", "30", "takes 30 commands at once instead of 28"),
        ("write_cache", "write through", "has its write cache as write through instead of write back"),
        ("ro", "1", "is read-only instead of writable"),
        ("size", "0", "has 0 bytes instead of 67108864 bytes"),
        ("logical_block_size", "4096", "has logical blocks of 4096 instead of 512 bytes"),
        ("rx_lanes", "1", "receives on 1 lanes instead of 2"),
    ],
)
def test_a_disk_that_is_driven_otherwise_after_its_return(name: str, value: str, said: str) -> None:
    bench = watched()
    change(bench, "attached", (VICTIM,), {name: value}, CUT)
    change(bench, "end", (VICTIM,), {name: value})
    (finding,) = bench.judge(same_properties()).findings
    assert finding.subject == VICTIM
    assert finding.summary == f"{VICTIM} {said} after its return"


@pytest.mark.parametrize("disk", SURVIVORS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("size", "0"), ("ro", "1"), ("write_cache", "write through"), ("state", "offline"), ("speed", "12")],
)
def test_a_survivor_that_is_another_at_the_end(disk: str, name: str, value: str) -> None:
    bench = watched()
    change(bench, "end", (disk,), {name: value})
    (finding,) = bench.judge(same_properties()).findings
    assert finding.subject == disk
    assert finding.summary.endswith("at the end, though it never went")


@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize(
    ("name", "value", "found"),
    [("ro", "1", True), ("nomerges", "2", True), ("write_cache", "write through", True), ("timeout", "5", False)],
)
def test_a_disk_that_is_another_soon_after_it_came(disk: str, name: str, value: str, found: bool) -> None:
    """The agent shortens the timeouts; nobody else sets a property of an emulated DUT."""
    bench = watched()
    first = next(event for event in bench.events if isinstance(event, ev.DiskProperties) and event.disk == disk)
    begin = msgspec.structs.replace(first, at=11.5, moment="begin", values={**first.values, "nomerges": "0"})
    for event in (first, begin):
        event.values.setdefault("nomerges", "0")
    bench.add(msgspec.structs.replace(begin, values={**begin.values, name: value}))
    said = [one.summary for one in bench.judge(same_properties()).findings if one.subject == disk]
    assert any(one.endswith("at the beginning, though it never went") for one in said) is found, said
    real(bench)
    said = [one.summary for one in bench.judge(same_properties()).findings]
    assert not any("at the beginning" in one for one in said), said


@pytest.mark.parametrize(("gone", "until", "found"), [(19.1, 19.04, 0), (19.1, 19.3, 0), (22.0, 19.04, 1)])
def test_a_disk_that_is_taken_apart_while_its_properties_are_read(gone: float, until: float, found: int) -> None:
    """The kernel sets the size of a disk that leaves to 0 before it announces that the disk is gone."""
    bench = watched()
    bench.add(ev.DiskDetached(at=18.0, disk=VICTIM, kname="sdb", diskseq=_last(bench).diskseq))
    bench.attach(VICTIM, 19.0)
    read = properties(_last(bench), 19.02, "attached", size="0")
    bench.add(msgspec.structs.replace(read, until=until))
    bench.add(ev.DiskDetached(at=gone, disk=VICTIM, kname=read.kname, diskseq=read.diskseq))
    findings = [one for one in bench.judge(same_properties()).findings if "0 bytes" in one.summary]
    assert len(findings) == found


def _last(bench: Bench) -> ev.DiskAttached:
    return [event for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk == VICTIM][-1]


@pytest.mark.parametrize(
    ("name", "was", "now", "said"),
    [
        ("queue_depth", "28", "1", "takes 1 commands at once instead of 28"),
        ("nomerges", "0", "2", "has its merges limited to level 2 instead of 0"),
        ("read_ahead_kb", "128", "0", "reads 0 KiB ahead instead of 128 KiB"),
        ("removable", "0", "1", "counts as removable instead of fixed"),
    ],
)
def test_an_emulated_survivor_that_is_driven_otherwise_at_the_end(name: str, was: str, now: str, said: str) -> None:
    bench = watched()
    for moment, value in (("attached", was), ("end", now)):
        change(bench, moment, ("disk2",), {name: value})
    (finding,) = bench.judge(same_properties()).findings
    assert finding.summary == f"disk2 {said} at the end, though it never went"


def test_more_commands_at_once_and_another_depth_at_the_end_of_a_real_bench_accuse_nobody() -> None:
    bench = real(watched())
    change(bench, "attached", (VICTIM,), {"queue_depth": "30"}, CUT)
    change(bench, "end", DISKS, {"queue_depth": "7"})
    assert bench.judge(same_properties()).findings == ()


def test_missing_properties_are_unknown() -> None:
    bench = watched()
    bench.drop(ev.DiskProperties, lambda event: event.at < GONE or event.moment == "end")
    assert bench.judge(same_properties()).unknowns == (f"how {VICTIM} was driven at {BACK:.2f} s is not on record",)
    bench = watched()
    bench.drop(ev.DiskProperties, lambda event: event.moment != "end" or event.disk != "disk2")
    assert bench.judge(same_properties()).unknowns == ("how disk2 was driven at the end is not on record",)


def test_missing_properties_of_a_disk_that_left_at_once_are_unknown() -> None:
    """The agent sends what it could still read. Half a second before the end of the record it may not have done so."""
    bench = watched()
    bench.attach(VICTIM, 21.0, kname="sdx", diskseq=99)
    bench.add(ev.DiskDetached(at=21.05, disk=VICTIM, kname="sdx", diskseq=99))
    assert bench.judge(same_properties()).unknowns == (f"how {VICTIM} was driven at 21.00 s is not on record",)
    bench.add(ev.DiskProperties(at=21.06, disk=VICTIM, moment="attached", values={}, kname="sdx", diskseq=99))
    assert bench.judge(same_properties()).unknowns == ()


def test_how_a_disk_was_driven_at_the_beginning_is_on_record_for_all_or_for_none() -> None:
    bench = watched()
    assert bench.judge(same_properties()).unknowns == ()
    first = [event for event in bench.events if isinstance(event, ev.DiskAttached) and (event.at or 0.0) < GONE]
    bench.add(*(properties(attached, 10.95, "begin") for attached in first))
    assert bench.judge(same_properties()).unknowns == ()
    bench.drop(ev.DiskProperties, lambda event: event.moment != "begin" or event.disk != "disk2")
    assert bench.judge(same_properties()).unknowns == ("how disk2 was driven at the beginning is not on record",)


@pytest.mark.parametrize(
    ("moments", "doubts"),
    [(("begin", "end"), ()), (("end",), ("how the disks were driven at the beginning is not on record",)), ((), ())],
)
def test_short_reads_are_timed_at_the_beginning_if_they_are_at_the_end(
    moments: tuple[str, ...], doubts: tuple[str, ...]
) -> None:
    bench = watched()
    first = [event for event in bench.events if isinstance(event, ev.DiskAttached) and (event.at or 0.0) < GONE]
    bench.add(*(properties(attached, 10.95, "begin") for attached in first if "begin" in moments))
    for event in [one for one in bench.events if isinstance(one, ev.DiskProperties) and one.moment in moments]:
        timed = msgspec.structs.replace(event, values=event.values | {"read_ms": "1.0 1.1"})
        bench.events[bench.events.index(event)] = timed
    assert bench.judge(same_properties()).unknowns == doubts


def test_a_disk_that_is_healed_on_the_way_out_comes_back_after_the_last_look() -> None:
    bench = watched()
    bench.attach("disk1", 25.65)
    assert bench.judge(same_properties()).unknowns == ()


@pytest.mark.parametrize(
    ("before", "permanent", "many"), [(0.01, True, 0), (0.4, True, 0), (1.0, True, 1), (0.4, False, 1)]
)
def test_a_disk_that_is_healed_just_before_the_last_look(before: float, permanent: bool, many: int) -> None:
    """The disks to look at are listed first: one came 0.01 s before the look at the first of them. Others are waited
    for, however short the scenario is."""
    bench = watched()
    made = next(event for event in bench.events if isinstance(event, ev.CutArmed))
    bench.add(msgspec.structs.replace(made, cut=9, victims=("disk4",), permanent=permanent))
    bench.attach("disk4", 25.6 - before)
    attached = next(one for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == "disk4")
    bench.add(properties(attached, 25.6 - before + 0.03, "attached"))
    said = bench.judge(same_properties()).unknowns
    assert said == ("how disk4 was driven at the end is not on record",) * many


def returned_as(kname: str) -> Bench:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, kname=kname)
    return bench


def test_another_name_though_nothing_held_the_old_one() -> None:
    (finding,) = returned_as("sde").judge(same_properties()).findings
    assert finding.summary == f"{VICTIM} came back as sde though nothing held sdb any more"


def test_another_name_because_a_load_held_the_old_one() -> None:
    for before, many in ((0.1, 0), (0.2, 1)):
        bench = returned_as("sde")
        bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, at=BACK - before)
        assert len(bench.judge(same_properties()).findings) == many
    bench = returned_as("sde")
    bench.add(ev.Acted(at=12.0, action="mount", disk=VICTIM, ok=True, seconds=0.1))
    assert bench.judge(same_properties()).findings == ()


def test_another_name_because_another_disk_got_the_old_one() -> None:
    bench = returned_as("sde")
    bench.attach("stranger", BACK + 0.5, kname="sdb", serial="X")
    assert bench.judge(same_properties()).findings == ()


def test_a_free_earlier_name_is_what_the_kernel_gives() -> None:
    assert returned_as("sda").judge(same_properties()).findings == ()


@pytest.mark.parametrize(("back", "many"), [(True, 1), (False, 0)])
@pytest.mark.parametrize("read", [True, False])
def test_a_disk_that_was_elsewhere_is_driven_as_before_in_its_own_socket(back: bool, many: int, read: bool) -> None:
    """In another socket its link may be another one, and it may not have been read there."""
    bench = watched()
    own, elsewhere = "0000:00:05.0/1.1:0", "0000:00:05.0/2:0"
    for begin, place in ((21.0, elsewhere), (23.0, own if back else "0000:00:05.0/3:0")):
        bench.add(ev.DiskDetached(at=begin - 0.5, disk=VICTIM, kname=_last(bench).kname, diskseq=_last(bench).diskseq))
        bench.add(ev.DiskMoved(at=begin - 0.4, disk=VICTIM, socket="usb.3", place=place, until=begin - 0.3))
        bench.attach(VICTIM, begin, place=place)
        if read or place != elsewhere:
            bench.add(properties(_last(bench), begin + 0.03, "attached", queue_depth="28" if begin < 23.0 else "1"))
    said = [one.summary for one in bench.judge(same_properties()).findings]
    assert said == [f"{VICTIM} takes 1 commands at once instead of 28 after its return"] * many


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout", "3600"),
        ("scheduler", "[none] mq-deadline"),
        ("nr_requests", "1"),
        ("power_control", "auto"),
        ("wwid", "naa.5000c500a1b2c3d5"),
        ("eh_timeout", "60"),
        ("max_retries", "0"),
        ("chunk_sectors", "8"),
        ("persist", "0"),
    ],
)
def test_what_only_the_kernel_sets_on_an_emulated_dut(name: str, value: str) -> None:
    usual = {"timeout": "30", "scheduler": "none [mq-deadline]", "nr_requests": "2", "power_control": "on"}
    usual |= {"wwid": "naa.5000c500a1b2c3d4", "eh_timeout": "10", "chunk_sectors": "0", "persist": "1"}
    usual |= {"max_retries": "5"}
    for kind, many in (("virtual", 1), ("ssh", 0)):
        bench = watched()
        change(bench, "attached", DISKS, usual)
        change(bench, "attached", (VICTIM,), usual | {name: value}, CUT)
        bench.events = [
            msgspec.structs.replace(one, kind=kind) if isinstance(one, ev.DutReady) else one for one in bench.events
        ]
        assert len(bench.judge(same_properties()).findings) == many


def test_a_scheduler_that_can_be_chosen_now_is_no_other_scheduler() -> None:
    bench = watched()
    change(bench, "attached", DISKS, {"scheduler": "none [mq-deadline]"})
    change(bench, "end", DISKS, {"scheduler": "none [mq-deadline] kyber"})
    assert bench.judge(same_properties()).findings == ()


@pytest.mark.parametrize(
    ("name", "was", "said"),
    [
        ("wwid", "t10.ATA 1", "has lost its name t10.ATA 1 in the SCSI layer after its return"),
        ("product_pages", "80 83 b0", "has lost its pages 80 83 b0 of product data after its return"),
    ],
)
@pytest.mark.parametrize(("state", "many"), [("running", 1), ("deleted", 0)])
def test_a_disk_that_the_kernel_does_not_know_any_more(name: str, was: str, said: str, state: str, many: int) -> None:
    bench = watched()
    change(bench, "attached", DISKS, {name: was, "state": "running"})
    change(bench, "attached", (VICTIM,), {name: "", "state": state}, CUT)
    found = [one.summary for one in bench.judge(same_properties()).findings if "lost" in one.summary]
    assert found == [f"{VICTIM} {said}"] * many


def test_a_disk_with_other_pages_of_product_data() -> None:
    bench = watched()
    change(bench, "attached", DISKS, {"product_pages": "80 83 b0"})
    assert bench.judge(same_properties()).findings == ()
    change(bench, "attached", (VICTIM,), {"product_pages": "80"}, CUT)
    change(bench, "end", (VICTIM,), {"product_pages": "80"})
    (finding,) = bench.judge(same_properties()).findings
    assert finding.summary == f"{VICTIM} has the pages 80 of product data instead of 80 83 b0 after its return"


@pytest.mark.parametrize(("count", "many"), [("0x1", 0), ("0x0", 0), ("0x3", 1)])
def test_commands_that_fail_while_a_disk_is_probed_again(count: str, many: int) -> None:
    bench = watched()
    change(bench, "attached", DISKS, {"failed_commands": "0x1"})
    change(bench, "attached", (VICTIM,), {"failed_commands": count}, CUT)
    found = [one.summary for one in bench.judge(same_properties()).findings]
    assert found == ["2 commands more to disk1 failed as it came back than the time before"] * many


@pytest.mark.parametrize(("asleep", "count", "many"), [(True, "0x1", 0), (True, "0x2", 1), (False, "0x1", 1)])
def test_a_disk_that_was_reset_as_the_machine_woke_says_so_once(asleep: bool, count: str, many: int) -> None:
    bench = watched()
    change(bench, "attached", DISKS, {"failed_commands": "0x0"})
    change(bench, "end", DISKS, {"failed_commands": "0x0"})
    change(bench, "end", ("disk2",), {"failed_commands": count})
    if asleep:
        bench.add(ev.DutSuspended(at=CUT - 1.0, until=CUT + 2.5, ok=True))
    found = [one.summary for one in bench.judge(same_properties()).findings]
    assert found == ["1 command of disk2 failed though it never went"] * many
