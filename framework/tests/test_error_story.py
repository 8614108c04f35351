"""The story of each device in a log: order, repeats, names, and what a cut explains."""

from __future__ import annotations

from device_logs import OOPS, RESET, aborts, disk, failed, read
from stories import CUT, VICTIM, healthy

from plugpull.history import events as ev
from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.error_story import story_of_history
from plugpull.kernel.diagnosis.show_story import story_text


def test_order_and_spacing_with_repeats_folded() -> None:
    slow = ["[    9.500000] EXT4-fs error (device sdb1): ext4_find_entry:1455: comm ls: reading directory lblock 0"]
    story = read(
        disk("b", 2, "1-1", driver="uas"), slow, aborts("b", 2, 8, 8, 8, at=10.0)[:1] * 3, failed("b", 5, 6, at=10.5)
    )
    (lines,) = story.troubled
    kinds = [(step.kind, step.count) for step in lines.steps if "attach" not in step.kind]
    assert kinds == [("usb.connect", 1), ("fs.error", 1), ("uas.error", 3), ("block.error", 2)]
    assert lines.device.title == "sdb (usb 1-1, 152d:0578, uas)"
    text = list(story_text(story))
    assert any("     +0.500 block.error" in line and line.endswith("(2 times in 1.000 s)") for line in text), text


def test_a_replugged_disk_is_one_device_under_two_names() -> None:
    gone = ["[   20.000000] usb 1-1: USB disconnect, device number 5"]
    story = read(disk("b", 2, "1-1"), gone, disk("f", 7, "1-1", at=22.0), failed("f", 5, at=30.0))
    (lines,) = story.troubled
    assert lines.device.name == "sdb, sdf"


def test_a_history_knows_whose_errors_they_are_and_what_the_cut_explains() -> None:
    bench = healthy()
    bench.add(
        ev.KernelMessage(
            at=9.0, text="usb 1-1.2: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00"
        ),
        *(ev.KernelMessage(at=13.0 + n, text=f"I/O error, dev sdc, sector 8192{n} op 0x0:(READ)") for n in range(4)),
        *(ev.KernelMessage(at=CUT + 0.1, text="I/O error, dev sdb, sector 4096 op 0x0:(READ)") for _ in range(4)),
    )
    story = story_of_history(bench.story())
    (lines,) = story.troubled
    assert lines.device.title == "disk2 (sdc) (usb 1-1.2, 152d:0578)"
    assert [hint.subject for hint in hints(story)] == ["disk2 (sdc)"]
    names = {one.device.name for one in story.devices}
    assert f"{VICTIM} (sdb)" in names


def test_a_history_in_which_the_kernel_oopsed() -> None:
    bench = healthy()
    bench.add(*(ev.KernelMessage(at=16.0, text=line.partition("] ")[2]) for line in OOPS))
    (hint,) = hints(story_of_history(bench.story()))
    assert (hint.culprit, hint.evidence[1]) == ("kernel", "in xhci_ring_expansion [xhci_hcd]")
    assert hints(story_of_history(healthy().story())) == ()


def test_a_reset_tells_which_port_a_host_is_in() -> None:
    handler = "[   {}.000000] scsi host2: uas_eh_device_reset_handler {}"
    resets = [handler.format(50, "start"), RESET.format(at=50.5, port="2-1"), handler.format(51, "success")]
    (lines,) = read(aborts("b", 2, 8, 8), resets).troubled
    assert lines.device.title == "sdb (usb 2-1, uas)"
