"""Whether the record of the kernel log is whole: no record is missing or there twice, and it does not end silently."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, GONE, RESTORED, Bench, healthy

from plugpull.checks import kernel_clean, no_errors
from plugpull.checks.record.number_order import numbers_fall
from plugpull.history import events as ev


def numbered(bench: Bench) -> list[ev.KernelMessage]:
    """Numbers the kernel's messages as /dev/kmsg does."""
    messages = sorted((one for one in bench.events if isinstance(one, ev.KernelMessage)), key=lambda one: one.at or 0.0)
    fixed = [msgspec.structs.replace(one, seq=400 + number) for number, one in enumerate(messages)]
    bench.drop(ev.KernelMessage)
    bench.add(*fixed)
    return fixed


def test_a_hole_in_the_sequence_numbers() -> None:
    bench = healthy()
    lines = numbered(bench)
    assert bench.unreached(kernel_clean()) == ()
    bench.events.remove(lines[2])
    doubt = "1 records of the kernel log are missing, the first is number 402"
    assert bench.unreached(kernel_clean())[0].endswith(doubt)
    assert bench.unreached(no_errors("disk2"))[0].endswith(doubt)
    bench.add(ev.LogLost(at=lines[2].at, count=1))
    assert bench.unreached(kernel_clean())[0].endswith("1 records of the kernel log were lost"), "not counted twice"


def test_numbers_that_begin_again_without_a_restart() -> None:
    bench = healthy()
    lines = numbered(bench)
    later = [one for one in lines if (one.at or 0.0) > 16.0]
    for number, line in enumerate(later):
        bench.events[bench.events.index(line)] = msgspec.structs.replace(line, seq=number)
    last = max(one.seq for one in lines if one not in later)
    doubt = f"the numbers of the kernel log fall from {last} back to 0, as in the log of another boot"
    assert bench.unreached(kernel_clean())[0].endswith(doubt)


def test_a_record_that_comes_late_is_not_another_boots() -> None:
    bench = healthy()
    lines = numbered(bench)
    for line, seq in ((lines[2], lines[3].seq), (lines[3], lines[2].seq)):
        bench.events[bench.events.index(line)] = msgspec.structs.replace(line, seq=seq)
    assert bench.unreached(kernel_clean()) == ()


def test_the_numbers_begin_somewhere_else_after_a_restart() -> None:
    bench = healthy()
    numbered(bench)
    bench.replace(ev.KernelMessage, lambda one: one.at > 16.0, seq=7)
    ready = next(one for one in bench.events if isinstance(one, ev.DutReady))
    bench.add(msgspec.structs.replace(ready, at=16.0))
    assert bench.unreached(kernel_clean()) == ()


def test_the_agents_own_marks_are_not_missed() -> None:
    bench = healthy()
    lines = numbered(bench)
    bench.replace(ev.KernelMessage, lambda one: one.at > lines[0].at, seq=-1)
    bench.add(ev.KernelMessage(at=10.05, text="a", seq=396), ev.KernelMessage(at=10.06, text="b", seq=399))
    assert bench.unreached(kernel_clean()) == ()
    bench.add(ev.KernelMessage(at=11.05, text="c", seq=403))
    assert "2 records of the kernel log are missing" in bench.unreached(kernel_clean())[0]


def test_a_record_that_is_there_twice() -> None:
    bench = healthy()
    lines = numbered(bench)
    bench.add(lines[2])
    assert bench.unreached(kernel_clean())[0].endswith("1 records of the kernel log are in the record twice")


def test_a_log_that_ends_silently_before_the_cut() -> None:
    bench = healthy()
    bench.drop(ev.KernelMessage, lambda event: event.at < CUT - 1)
    doubts = bench.unreached(kernel_clean())
    assert "disk1 was attached at 18.21 s and the kernel log does not say so" in doubts[0]
    bench.drop(ev.DiskAttached, lambda event: event.at < CUT)
    doubts = bench.unreached(kernel_clean())
    assert f"disk1 was removed at {GONE:.2f} s and the kernel log does not say that it was disconnected" in doubts[0]


def test_a_log_that_ends_silently_before_the_return() -> None:
    bench = healthy()
    back = [one for one in bench.events if isinstance(one, ev.KernelMessage) and GONE < (one.at or 0.0) <= BACK]
    assert any("new" in line.text or "Attached" in line.text for line in back)
    bench.drop(ev.KernelMessage, lambda event: event.at < RESTORED)
    bench.add(
        ev.KernelMessage(at=GONE + 0.02, text="sd 1:0:0:0: [sdb] Synchronizing SCSI cache", level=5),
        ev.KernelMessage(at=GONE + 0.03, text="usb 1-1.1: cannot submit urb (err = -19)", level=3),
    )
    doubt = f"disk1 was attached at {BACK:.2f} s and the kernel log does not say so"
    assert doubt in bench.unreached(kernel_clean())[0]


def test_a_logical_removal_disconnects_nothing() -> None:
    bench = healthy()
    bench.drop(ev.KernelMessage, lambda event: "disconnect" not in event.text)
    bench.replace(ev.CutArmed, mechanism="logical")
    assert bench.unreached(kernel_clean()) == ()


def test_the_disconnect_of_a_hub_is_that_of_its_disks() -> None:
    bench = healthy()
    bench.replace(ev.KernelMessage, lambda e: "disconnect" in e.text, text="usb 1-1: USB disconnect, device number 2")
    assert bench.unreached(kernel_clean()) == ()
    assert RESTORED > CUT


def reported(bench: Bench) -> list[ev.KernelMessage]:
    """The kernel's messages with its numbers and the agent's."""
    lines = numbered(bench)
    fixed = [msgspec.structs.replace(one, report=number) for number, one in enumerate(lines, 1)]
    bench.drop(ev.KernelMessage)
    bench.add(*fixed)
    return fixed


def test_the_agent_reads_records_in_the_order_of_their_numbers() -> None:
    bench = healthy()
    lines = reported(bench)
    assert list(numbers_fall(bench.story())) == []
    for line, seq in ((lines[2], lines[3].seq), (lines[3], lines[2].seq)):
        bench.events[bench.events.index(line)] = msgspec.structs.replace(line, seq=seq)
    said = "the records of the kernel log have the number 402 after 403, at report 4 of the agent"
    assert list(numbers_fall(bench.story())) == [said]


@pytest.mark.parametrize(("seqnum", "said"), [(8, []), (7, ["the uevents have the number 7 after 7, at report 2"])])
def test_no_two_uevents_have_one_number(seqnum: int, said: list[str]) -> None:
    bench = healthy()
    paths = "/devices/virtual/block/a", "/devices/virtual/block/b"
    for report, number, path in ((1, 7, paths[0]), (2, seqnum, paths[1])):
        bench.add(ev.Uevent(at=11.0, report=report, action="add", subsystem="block", devpath=path, seqnum=number))
    assert list(numbers_fall(bench.story())) == [f"{one} of the agent" for one in said]


NEWER = "6.12.117+deb12-amd64"
HOST = "/devices/pci0000:00/usb1/1-1/1-1:1.0/host1"
OTHER = "/devices/pci0000:00/usb2/2-1"


def late(kernel: str, early: ev.Uevent, then: ev.Uevent) -> list[str]:
    """What is said of two uevents in the order of their reports."""
    bench = healthy()
    bench.replace(ev.DutReady, kernel=kernel)
    bench.add(*(msgspec.structs.replace(one, report=report) for report, one in enumerate((early, then), 1)))
    return list(numbers_fall(bench.story()))


def uevent(number: int, action: str, path: str, at: float = 11.0) -> ev.Uevent:
    return ev.Uevent(at=at, action=action, subsystem="usb", devpath=path, seqnum=number)


@pytest.mark.parametrize(
    ("early", "then"),
    [
        (uevent(830, "add", OTHER), uevent(829, "add", HOST)),
        (uevent(860, "add", OTHER), uevent(829, "add", HOST, 11.9)),
        (uevent(830, "add", HOST), uevent(829, "bind", "/devices/pci0000:00/usb1/1-1")),
        (uevent(830, "remove", HOST), uevent(829, "change", HOST)),
    ],
)
def test_newer_kernels_may_send_uevents_in_another_order(early: ev.Uevent, then: ev.Uevent) -> None:
    assert late(NEWER, early, then) == []
    said = f"the uevents have the number 829 after {early.seqnum}, at report 2 of the agent"
    assert late("6.1.0-56-amd64", early, then) == [said]


@pytest.mark.parametrize(
    ("early", "then", "when"),
    [
        (uevent(829, "add", OTHER), uevent(829, "add", HOST), ""),
        (uevent(830, "add", OTHER), uevent(829, "add", HOST, 13.5), ", 2.5 s later"),
        (uevent(830, "add", HOST + "/target1:0:0"), uevent(829, "add", HOST), ""),
        (uevent(830, "bind", HOST), uevent(829, "add", HOST), ""),
        (uevent(830, "remove", HOST), uevent(829, "unbind", HOST), ""),
    ],
)
def test_a_device_is_announced_before_what_is_below_it(early: ev.Uevent, then: ev.Uevent, when: str) -> None:
    said = f"the uevents have the number 829 after {early.seqnum}{when}, at report 2 of the agent"
    assert late(NEWER, early, then) == [said]
