"""Checks of everything but the cut itself: survivors' errors, data, the kernel, leftovers, discovery."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from stories import BACK, DISKS, RATE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import (
    Check,
    check_name,
    data_intact,
    decode_check,
    discovered,
    encode_check,
    kernel_clean,
    no_errors,
    nothing_stuck,
    removed,
    untouched,
)
from plugpull.checks.base import disk_names
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story


def passes(bench: Bench, check: Check) -> bool:
    judgement = bench.judge(check)
    return not judgement.findings and not judgement.unknowns


# --- no_errors ---------------------------------------------------------------------------------------------


def test_no_errors_on_the_survivors() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=15.06, text="I/O error, dev sdb, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1"))
    assert passes(bench, no_errors(SURVIVORS)), "an error of the victim is not theirs"


@pytest.mark.parametrize(
    "text",
    [
        "I/O error, dev sdc, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1",
        "Buffer I/O error on dev sdc1, logical block 0, lost async page write",
        "sd 2:0:0:0: [sdc] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
    ],
)
def test_a_kernel_error_of_a_survivor(text: str) -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=15.06, text=text), ev.KernelMessage(at=15.07, text=text))
    (finding,) = bench.judge(no_errors(SURVIVORS)).findings
    assert finding.subject == "disk2"
    assert "(and 1 more)" in finding.summary
    assert finding.evidence == (text, text)


def test_a_name_is_its_owners_at_the_time() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, kname="sdz")
    bench.add(ev.KernelMessage(at=16.0, text="I/O error, dev sdb, sector 8 op 0x1:(WRITE)"))
    bench.attach("disk3", 17.0, kname="sdb")
    assert passes(bench, no_errors(("disk3",)))


def test_an_error_that_the_load_met() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk3", errno=5, message="Input/output error")
    (finding,) = bench.judge(no_errors(SURVIVORS)).findings
    assert finding.summary == "the load on disk3 met an I/O error: Input/output error"


def test_errors_are_not_known_without_the_log() -> None:
    bench = healthy()
    bench.add(ev.LogLost(at=16.0, count=3))
    (doubt,) = bench.unreached(no_errors(SURVIVORS))
    assert doubt.endswith("3 records of the kernel log were lost")
    bench = healthy()
    bench.drop(ev.LoadEnded)
    assert len(bench.judge(no_errors(SURVIVORS)).unknowns) == 2
    assert healthy().judge(no_errors("disk9")).unknowns
    assert healthy().judge(no_errors(())).unknowns


# --- data_intact -------------------------------------------------------------------------------------------


def test_data_intact() -> None:
    judgement = healthy().judge(data_intact())
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.integrity is not None
    assert judgement.integrity.sectors_checked == 3 * 2048
    assert passes(healthy(), data_intact(VICTIM))


def test_bad_sectors_are_a_finding_with_offset_and_count() -> None:
    bench = healthy()
    bad = ((8192, 512, "bad crc"), (4096, 1024, "torn write"), (65536, 512, "lost"), (0x20000, 512, "misdirected"))
    bench.replace(ev.Verified, lambda event: event.disk == VICTIM, bad=bad)
    judgement = bench.judge(data_intact())
    (finding,) = judgement.findings
    assert finding.summary == "5 bad sectors on disk1, the first at offset 4096: torn write"
    assert judgement.integrity is not None
    found = judgement.integrity
    assert (found.corrupt, found.torn, found.durable_lost, found.misdirected) == (1, 2, 1, 1)


def test_data_that_nobody_read_back() -> None:
    bench = healthy()
    bench.drop(ev.Verified, lambda event: event.disk != "disk3")
    expected = ("what was written to disk3 was not read back",)
    assert bench.judge(data_intact()).unknowns == expected
    assert bench.judge(data_intact("disk3")).unknowns == expected
    bench.replace(ev.Verified, lambda event: event.disk == VICTIM, checked=0, error="disk1 is not attached")
    assert "disk1 could not be read back: disk1 is not attached" in bench.judge(data_intact()).unknowns
    bench.drop(ev.Verified)
    bench.drop(ev.LoadBegun)
    assert bench.judge(data_intact()).unknowns == ("nothing was written and nothing was read back",)


def test_a_disk_cut_for_good_need_not_be_read_back() -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    bench.drop(ev.Verified, lambda event: event.disk != VICTIM)
    assert passes(bench, data_intact())
    assert bench.judge(data_intact(VICTIM)).unknowns


# --- kernel_clean ------------------------------------------------------------------------------------------


def test_a_clean_kernel() -> None:
    assert passes(healthy(), kernel_clean())


@pytest.mark.parametrize(
    "text",
    [
        "BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "INFO: task fio:123 blocked for more than 120 seconds.",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [fio:123]",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "WARNING: CPU: 1 PID: 123 at drivers/usb/host/xhci.c:1 xhci_stop+0x1/0x2",
        "Kernel panic - not syncing: sysrq triggered crash",
    ],
)
def test_a_kernel_in_trouble(text: str) -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=16.0, text=text))
    (finding,) = bench.judge(kernel_clean()).findings
    assert finding.summary == text


def test_one_oops_is_one_finding_with_its_headline() -> None:
    bench = healthy()
    lines = (
        "BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "#PF: supervisor read access in kernel mode",
        "Oops: Oops: 0000 [#1] PREEMPT SMP",
        "RIP: 0010:qh_completions+0x1a/0x2f0 [ehci_hcd]",
        "Kernel panic - not syncing: Fatal exception in interrupt",
    )
    bench.add(*(ev.KernelMessage(at=16 + n / 1000, text=text) for n, text in enumerate(lines)))
    bench.add(ev.KernelMessage(at=23.0, text="INFO: task fio:123 blocked for more than 120 seconds."))
    first, second = bench.judge(kernel_clean()).findings
    assert first.summary == f"{lines[0]} in qh_completions"
    assert first.evidence == (*lines, "in qh_completions [ehci_hcd]")
    assert "blocked for more than" in second.summary


def test_a_dead_dut_is_one_finding_even_if_the_log_has_it_too() -> None:
    bench = healthy(until=16.0)
    headline = "Kernel panic - not syncing: sysrq triggered crash"
    bench.add(ev.KernelMessage(at=16.0, text=headline), ev.ConsoleLine(text=f"[   16.000000] {headline}"))
    bench.add(ev.DutDied(at=16.1, headline=headline, evidence=(headline,)))
    judgement = bench.judge(kernel_clean())
    (finding,) = judgement.findings
    assert finding.summary == f"the DUT's kernel died: {headline}"
    assert bench.unreached(kernel_clean())


def test_a_log_with_holes_is_not_clean() -> None:
    bench = healthy()
    bench.add(ev.LogLost(at=16.0, count=2))
    assert bench.unreached(kernel_clean())[0].endswith("2 records of the kernel log were lost")
    bench = healthy()
    bench.add(ev.AgentLost(at=20.0, why="no answer", last_heard=19.9))
    bench.until = 20.0
    assert "the kernel stayed healthy: " in bench.unreached(kernel_clean())[0]
    bench = healthy()
    bench.drop(ev.KernelMessage)
    assert "no line of the kernel log" in bench.judge(kernel_clean()).unknowns[0]


def test_disks_that_were_there_before_the_agent_have_no_lines_in_its_log() -> None:
    listed = story_of_listed_disks("ssh")
    assert listed.judge(kernel_clean()).unknowns == ()
    assert "no line of the kernel log" in story_of_listed_disks("virtual").judge(kernel_clean()).unknowns[0]
    listed.add(ev.DiskDetached(at=12.0, disk="disk1", kname="sda", diskseq=1))
    assert "no line of the kernel log" in listed.judge(kernel_clean()).unknowns[0]


def story_of_listed_disks(kind: str) -> Bench:
    """Nothing is cut: the disks that are there are listed, and then the DUT is ready."""
    bench = healthy()
    for gone in (ev.KernelMessage, ev.DiskAttached, ev.DiskDetached, ev.DutReady):
        bench.drop(gone)
    attached = next(event for event in healthy().story().events if isinstance(event, ev.DiskAttached))
    bench.add(msgspec.structs.replace(attached, at=9.0))
    ready = next(event for event in healthy().story().events if isinstance(event, ev.DutReady))
    bench.add(msgspec.structs.replace(ready, at=10.0, kind=kind))
    return bench


# --- nothing_stuck -----------------------------------------------------------------------------------------


def test_nothing_stuck() -> None:
    assert passes(healthy(), nothing_stuck())


def test_something_stuck() -> None:
    bench = healthy()
    bench.add(ev.Residue(at=25.6, processes=("fio D",)))
    assert "fio D" in bench.judge(nothing_stuck()).findings[0].summary
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, stuck=True)
    (finding,) = bench.judge(nothing_stuck()).findings
    assert finding.summary == "the load on disk1 could not be ended"
    bench.add(ev.ProcessStuck(at=25.0, pid=7, command="fio", state="D", disk=VICTIM, stack=("io_schedule",)))
    (finding,) = bench.judge(nothing_stuck()).findings
    assert finding.summary == "process 7 (fio) could not be ended, state D"
    assert finding.evidence == ("io_schedule",)


def test_nobody_looked_for_what_is_stuck() -> None:
    bench = healthy()
    bench.drop(ev.Residue)
    assert bench.judge(nothing_stuck()).unknowns == ("the processes left on the DUT were not recorded",)


# --- discovered --------------------------------------------------------------------------------------------


def test_all_discovered() -> None:
    judgement = healthy().judge(discovered(DISKS))
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.worst == (
        "3 disks found, the last after 0.60 s (disk1 0.40 s, disk2 0.50 s, disk3 0.60 s; limit 6 s)"
    )


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("0000:00:05.0/2:0", "disk2 was found at ports 2 instead of 1.2"),
        ("0000:00:07.0/1.2:0", "disk2 was found on controller 0000:00:07.0 instead of 0000:00:05.0 (usb)"),
    ],
)
def test_discovered_elsewhere(place: str, said: str) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk2", place=place)
    (finding,) = bench.judge(discovered(DISKS)).findings
    assert finding.summary == said


def test_discovered_late_or_not_at_all() -> None:
    assert "only after 0.60 s" in healthy().judge(discovered("disk3", within=0.55)).findings[0].summary
    bench = healthy()
    bench.drop(ev.DiskAttached, lambda event: event.disk != "disk3")
    judgement = bench.judge(discovered(DISKS, within=10))
    assert judgement.findings[0].summary == "disk3 was not found (limit 10 s)"
    assert any("S-disk1" in line for line in judgement.findings[0].evidence)
    assert "the record ends" in bench.judge(discovered(DISKS, within=60)).unknowns[0]
    known = {"disk": "disk3", "kname": "sdd", "diskseq": 3, "values": {"ro": "0"}}
    bench.add(ev.DiskProperties(at=12.0, moment="attached", **known))  # type: ignore[arg-type]
    judgement = bench.judge(discovered(DISKS, within=10))
    said = "that disk3 was found is not on record, though it was read how it was driven"
    assert (judgement.findings, judgement.unknowns) == ((), (said,))


def test_discovered_later_than_a_healthy_bench() -> None:
    bench = healthy(until=30.0)
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk3", at=16.2)
    assert "disk3 was found only after 6.20 s (limit 6 s)" in bench.judge(discovered(DISKS)).findings[0].summary
    bench.starved = ((12.0, 14.0),)
    judgement = bench.judge(discovered(DISKS))
    assert not judgement.findings
    assert "the DUT was starved meanwhile" in judgement.unknowns[0]


def test_a_place_that_cannot_be_compared() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk2", place="")
    assert "cannot be compared" in bench.judge(discovered(DISKS)).unknowns[0]


# --- checks as data ----------------------------------------------------------------------------------------


def test_a_check_survives_being_written_and_read() -> None:
    for check in (removed(VICTIM, 3), data_intact(), kernel_clean(), discovered(DISKS)):
        assert decode_check(encode_check(check)) == check
    assert encode_check(removed(VICTIM)) == {"check": "removed", "disks": ["disk1"], "within": None, "besides": []}
    assert check_name(kernel_clean()) == "kernel_clean"
    with pytest.raises(ValueError, match="no check 'tastes_good'"):
        decode_check({"check": "tastes_good"})


def test_disks_may_be_named_in_many_ways() -> None:
    disk = SimpleNamespace(name="disk1")
    assert disk_names("disk1") == disk_names(disk) == disk_names([disk]) == ("disk1",)
    assert disk_names(iter(("disk1", SimpleNamespace(name="disk2")))) == ("disk1", "disk2")
    with pytest.raises(TypeError):
        disk_names(5)  # type: ignore[arg-type]


# --- untouched ---------------------------------------------------------------------------------------------


def with_a_bystander(*views: ev.SeenFromOutside) -> Bench:
    """The healthy bench, on which disk3 is not scratch; nothing loads it."""
    bench = healthy()
    bench.pace = lambda disk, at: 0.0 if disk == "disk3" else RATE
    bench.drop(ev.LoadBegun, lambda event: event.disk != "disk3")
    bench.add(*views)
    return bench


def seen(ok: bool) -> ev.SeenFromOutside:
    return ev.SeenFromOutside(at=25.0, disk="disk3", ok=ok, method="sha256", detail="" if ok else "8 sectors differ")


def test_a_bystander_that_was_not_written_passes() -> None:
    judgement = with_a_bystander(seen(True)).judge(untouched("disk3"))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "proved from outside" in judgement.worst


def test_a_bystander_whose_medium_changed_is_a_finding() -> None:
    (finding,) = with_a_bystander(seen(False)).judge(untouched("disk3")).findings
    assert (finding.subject, finding.evidence) == ("disk3", ("sha256",))
    assert "8 sectors differ" in finding.summary


def test_a_bystander_that_the_kernel_wrote_to_is_a_finding() -> None:
    (finding,) = healthy().judge(untouched("disk3")).findings
    assert "bytes by" in finding.summary


def test_a_bystander_that_nobody_looked_at_is_unknown() -> None:
    bench = with_a_bystander()
    judgement = bench.judge(untouched("disk9"))
    assert judgement.findings == ()
    assert "nothing shows whether disk9 was written" in judgement.unknowns[0]


def test_writing_to_what_is_not_scratch_is_wrong_whatever_was_asked_for() -> None:
    story = healthy().story()
    disks = [{**disk, "scratch": disk["name"] != "disk3"} for disk in story.rig["disk"]]
    result = judge_story(replace(story, rig={**story.rig, "disk": disks}))
    assert [finding.check for finding in result.findings] == ["untouched"]
