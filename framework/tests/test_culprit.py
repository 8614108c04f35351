"""The story of each device in a log, and the hints: every hint has a log that gives it and one that does not."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from stories import CUT, VICTIM, healthy

from plugpull.cli import main
from plugpull.history import events as ev
from plugpull.kernel.diagnosis.culprit import Hint, hints
from plugpull.kernel.diagnosis.error_story import ErrorStory, story_of_history, story_of_log
from plugpull.kernel.diagnosis.log_reader import read_log
from plugpull.kernel.diagnosis.show import story_text

CORPUS = Path(__file__).resolve().parents[3] / "shared/corpora/usb-storage/logs.jsonl"


def disk(
    letter: str, host: int, port: str, ids: str = "152d:0578", driver: str = "usb-storage", at: float = 1.0
) -> list[str]:
    """How a disk comes up."""
    vendor, product = ids.split(":")
    return [
        f"[{at:12.6f}] usb {port}: New USB device found, idVendor={vendor}, idProduct={product}, bcdDevice= 1.00",
        f"[{at:12.6f}] scsi host{host}: {driver}{'' if driver == 'uas' else f' {port}:1.0'}",
        f"[{at + 1:12.6f}] scsi {host}:0:0:0: Direct-Access     MAKER    MODEL {host}          2.5+ PQ: 0 ANSI: 5",
        f"[{at + 1:12.6f}] sd {host}:0:0:0: [sd{letter}] 131072 512-byte logical blocks: (67.1 MB/64.0 MiB)",
        f"[{at + 1:12.6f}] sd {host}:0:0:0: [sd{letter}] Attached SCSI disk",
    ]


def failed(letter: str, *sectors: int, at: float = 10.0) -> list[str]:
    """Reads that failed, a second apart."""
    lines = "[{:12.6f}] I/O error, dev sd{}, sector {} op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
    return [lines.format(at + number, letter, sector) for number, sector in enumerate(sectors)]


def aborts(letter: str, host: int, *blocks: int, at: float = 40.0) -> list[str]:
    """Writes of so many blocks that uas gave up, and the reset that follows."""
    lines = []
    for tag, length in enumerate(blocks):
        sd = f"[{at + tag:12.6f}] sd {host}:0:0:0: [sd{letter}] tag#{tag}"
        lines.append(f"{sd} uas_eh_abort_handler 0 uas-tag {tag + 1} inflight: CMD OUT ")
        lines.append(f"{sd} CDB: Write(10) 2a 00 00 00 {tag:02x} 00 00 {length >> 8:02x} {length & 255:02x} 00")
    return lines


def read(*lines: list[str]) -> ErrorStory:
    text = "\n".join(line for group in lines for line in group) + "\n"
    return story_of_log(read_log(io.BytesIO(text.encode()), "log"))


def accused(*lines: list[str]) -> dict[str, Hint]:
    return {hint.culprit: hint for hint in hints(read(*lines))}


SCATTERED = (8000, 120_000, 64, 77_777)
RESET = "[{at:12.6f}] usb {port}: reset high-speed USB device number 5 using xhci_hcd"

# --- medium -----------------------------------------------------------------------------------------------------


def test_the_same_place_again_and_again_is_the_medium() -> None:
    found = accused(disk("b", 2, "1-1"), failed("b", 81_920, 81_920, 81_922, 4096))
    assert set(found) == {"medium"}
    assert (found["medium"].subject, found["medium"].confidence) == ("sdb", "probably")
    assert "sector 81920 and the next 7, 3 of 4 errors" in found["medium"].evidence[0]
    said = ["[   20.000000] sd 2:0:0:0: [sdb] tag#1 Sense Key : Medium Error [current] "]
    both = accused(disk("b", 2, "1-1"), failed("b", 81_920, 81_920, 81_922), said)["medium"]
    assert both.confidence == "almost certainly"
    assert "Medium Error" in both.evidence[0]


def test_here_and_there_is_not_the_medium() -> None:
    assert accused(disk("b", 2, "1-1"), failed("b", *SCATTERED)) == {}


def test_the_first_sector_is_read_whenever_a_disk_comes_up() -> None:
    assert accused(disk("b", 2, "1-1"), failed("b", 0, 0, 0, 0)) == {}


# --- bridge and its firmware ------------------------------------------------------------------------------------


def test_scattered_on_many_disks_behind_one_kind_of_bridge_is_the_bridge() -> None:
    two = [disk("b", 2, "1-1"), disk("c", 3, "1-2"), failed("b", *SCATTERED), failed("c", 5000, 90_000, 12, 64_000)]
    found = accused(*two)
    assert set(found) == {"bridge"}
    assert (found["bridge"].subject, found["bridge"].confidence) == ("152d:0578", "possibly")
    surer = accused(*two, disk("d", 4, "1-3", ids="174c:55aa"))["bridge"]
    assert surer.confidence == "probably"
    assert surer.evidence[-1] == "disks behind another bridge had none: sdd"


def test_errors_behind_two_kinds_of_bridge_are_neithers() -> None:
    two = [disk("b", 2, "1-1"), disk("c", 3, "1-2"), failed("b", *SCATTERED), failed("c", *SCATTERED)]
    other = [disk("d", 4, "1-3", ids="174c:55aa"), failed("d", *SCATTERED)]
    assert accused(*two, *other) == {}


def test_resets_as_uas_and_none_as_usb_storage_are_the_firmware() -> None:
    as_uas = [disk("b", 2, "2-1", driver="uas"), aborts("b", 2, 8, 8)]
    found = accused(*as_uas)["bridge firmware"]
    assert (found.confidence, found.remedy) == ("possibly", "usb-storage.quirks=152d:0578:u")
    again = disk("c", 3, "2-1", at=100.0)
    surer = accused(*as_uas, again)["bridge firmware"]
    assert (surer.confidence, surer.evidence[-1]) == ("probably", "none with usb-storage")
    reset = [RESET.format(at=110.0 + second, port="2-1") for second in range(3)]
    assert accused(*as_uas, again, reset) == {}, "as usb-storage it is no better"
    assert accused(disk("b", 2, "2-1"), reset) == {}


def test_without_its_ids_the_line_says_what_is_missing() -> None:
    found = accused(aborts("b", 2, 8, 8))["bridge firmware"]
    assert found.remedy == "usb-storage.quirks=VID:PID:u (this log does not show its VID:PID; lsusb does)"


def test_long_transfers_that_time_out_and_no_short_ones() -> None:
    long = [disk("b", 2, "2-1", driver="uas"), aborts("b", 2, 240, 1024, 512, 160)]
    found = [hint for hint in hints(read(*long)) if "64 KiB" in hint.evidence[0]]
    assert [hint.confidence for hint in found] == ["probably"]
    assert found[0].remedy == "usb-storage.quirks=152d:0578:mu", "uas does not heed m"
    assert found[0].evidence == ("4 transfers timed out, all longer than 64 KiB: 80 to 512 KiB",)
    timed_out = [
        line.replace("uas_eh_abort_handler 0 uas-tag", "FAILED Result: hostbyte=DID_TIME_OUT cmd_age=33s")
        for line in long[1]
    ]
    assert accused(disk("b", 2, "2-1"), timed_out)["bridge firmware"].remedy == "usb-storage.quirks=152d:0578:m"
    short = accused(disk("b", 2, "2-1"), [line.replace("00 a0 00", "00 08 00") for line in timed_out])
    assert short == {}


# --- cable, port, hub, controller -------------------------------------------------------------------------------


def test_one_port_whichever_disk_is_in_it() -> None:
    well = disk("a", 1, "1-1")
    first = [disk("b", 2, "1-2"), [RESET.format(at=20.0, port="1-2")]]
    gone = ["[   30.000000] usb 1-2: USB disconnect, device number 5"]
    second = [disk("c", 3, "1-2", ids="174c:55aa", at=31.0), [RESET.format(at=40.0, port="1-2")]]
    found = accused(well, *first, gone, *second)
    assert set(found) == {"cable or port"}
    assert (found["cable or port"].subject, found["cable or port"].confidence) == ("usb 1-2", "probably")
    assert (
        "sdb (usb 1-2, 152d:0578, usb-storage), sdc (usb 1-2, 174c:55aa, usb-storage)"
        in (found["cable or port"].evidence[0])
    )
    assert found["cable or port"].evidence[1] == "other ports had no errors: 1-1"
    assert accused(well, *first) == {}, "a reset alone may be anyone's"
    assert accused(well, [RESET.format(at=50.0, port="1-1")], *first, gone, *second) == {}, "another port has it too"


@pytest.mark.parametrize(
    "said",
    [
        "usb 1-1-port2: disabled by hub (EMI?), re-enabling...",
        "usb 1-1.2: device descriptor read/64, error -71",
        "usb 1-1-port2: Cannot enable. Maybe the USB cable is bad?",
    ],
)
def test_bits_that_came_wrong(said: str) -> None:
    found = accused(disk("b", 2, "1-1.2"), [f"[   20.000000] {said}"])["cable or port"]
    assert (found.subject, found.confidence) == ("usb 1-1.2", "possibly")


def test_a_disk_that_falls_off_in_use_again_and_again() -> None:
    off = "[{:12.6f}] usb 1-2: USB disconnect, device number 5"
    once = [disk("b", 2, "1-2"), [off.format(20.0)], failed("b", *SCATTERED, at=20.1)]
    assert accused(*once) == {}
    twice = [disk("c", 3, "1-2", at=25.0), [off.format(40.0)], failed("c", *SCATTERED, at=40.1)]
    found = accused(*once, *twice)
    assert found["cable or port"].evidence == ("it disconnected 2 times while it was in use",)
    idle = [[off.format(20.0)], disk("b", 2, "1-2", at=25.0), [off.format(40.0)]]
    assert accused(disk("b", 2, "1-2"), *idle) == {}, "unplugging what nobody uses is no error"


def test_all_disks_behind_one_hub() -> None:
    behind = [
        disk("b", 2, "1-1.1"),
        disk("c", 3, "1-1.2"),
        [RESET.format(at=20.0 + n, port=f"1-1.{n}") for n in (1, 2)],
    ]
    found = accused(*behind)
    assert set(found) == {"hub"}
    assert (found["hub"].subject, found["hub"].confidence) == ("1-1", "possibly")
    outside = accused(*behind, disk("d", 4, "1-2"))["hub"]
    assert outside.confidence == "probably"
    assert outside.evidence[1] == "disks that are not behind it have none: sdd"
    assert accused(*behind, disk("d", 4, "1-1.3")) == {}, "one behind it is well"
    assert accused(*behind, disk("d", 4, "1-2"), [RESET.format(at=30.0, port="1-2")]) == {}


def test_the_controllers_own_errors() -> None:
    well = disk("b", 2, "1-1")
    one = ["[    5.000000] xhci_hcd 0000:00:14.0: WARN Set TR Deq Ptr cmd failed due to incorrect slot or ep state."]
    died = ["[   50.000000] xhci_hcd 0000:00:14.0: HC died; cleaning up"]
    assert accused(well, one)["controller"].confidence == "possibly"
    found = accused(well, failed("b", *SCATTERED), died)["controller"]
    assert (found.subject, found.confidence) == ("0000:00:14.0", "probably")
    assert found.evidence[-1] == "they began after the first error of a disk"
    assert "controller" not in accused(well, failed("b", *SCATTERED))


# --- kernel -----------------------------------------------------------------------------------------------------

OOPS = """\
[   60.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   60.000001] CPU: 1 PID: 321 Comm: usb-storage Not tainted 6.1.0-28-amd64 #1
[   60.000002] RIP: 0010:xhci_ring_expansion+0x1d/0x2a0 [xhci_hcd]
[   60.000003] Call Trace:
[   60.000004]  xhci_ring_expansion+0x1d/0x2a0 [xhci_hcd]
[   60.000005] ---[ end trace 0000000000000000 ]---
""".splitlines()


def test_what_no_device_can_do_to_a_kernel() -> None:
    found = accused(disk("b", 2, "1-1"), OOPS)
    assert set(found) == {"kernel"}
    assert found["kernel"].confidence == "probably"
    assert found["kernel"].evidence[1] == "in xhci_ring_expansion [xhci_hcd]"
    waits = ["[   60.000000] INFO: task usb-storage:321 blocked for more than 120 seconds."]
    assert accused(waits)["kernel"].confidence == "possibly"
    assert accused(disk("b", 2, "1-1")) == {}


# --- the story itself -------------------------------------------------------------------------------------------


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


# --- a device that leaves and returns -----------------------------------------------------------------------------

LEFT = "[{:12.6f}] usb {}: USB disconnect, device number 5"


def returns(port: str, *times: tuple[float, float], ids: str = "152d:0578") -> list[str]:
    """A disk that leaves and is found again, at these times."""
    lines = []
    for left, back in times:
        lines += [LEFT.format(left, port), *disk("b", 3, port, ids=ids, at=back)]
    return lines


def test_a_device_that_returns_at_once_was_not_pulled_by_a_hand() -> None:
    found = accused(disk("b", 2, "1-2"), returns("1-2", (30.0, 30.4)))
    hint = found["cable, port or bridge"]
    assert (hint.subject, hint.confidence) == ("sdb", "possibly")
    assert hint.evidence == ("it disconnected and came back once by itself, within 0.4 s",)
    again = accused(disk("b", 2, "1-2"), returns("1-2", (30.0, 34.0), (60.0, 63.0), (90.0, 95.0)))
    assert again["cable, port or bridge"].confidence == "probably"


def test_a_device_that_somebody_replugged_accuses_nothing() -> None:
    assert accused(disk("b", 2, "1-2"), returns("1-2", (30.0, 36.0))) == {}
    assert accused(disk("b", 2, "1-2"), returns("1-2", (30.0, 90.0), (200.0, 230.0))) == {}


def test_another_device_in_the_same_port_did_not_return() -> None:
    """usb_modeswitch does this to every modem, and people swap sticks."""
    assert accused(disk("b", 2, "1-2"), returns("1-2", (30.0, 30.4), ids="0bda:9210")) == {}


def test_a_bridge_that_had_errors_before_it_left_may_have_crashed() -> None:
    log = [disk("b", 2, "1-2", driver="uas"), aborts("b", 2, 8, at=28.0), returns("1-2", (30.0, 30.4))]
    evidence = accused(*log)["cable, port or bridge"].evidence
    assert evidence[1] == "it had errors shortly before: its bridge may have crashed and started again"


def test_what_returns_with_its_hub_is_not_to_blame() -> None:
    hub = ["[    0.500000] hub 1-1:1.0: USB hub found"]
    gone = [LEFT.format(30.0, "1-1")]
    found = accused(hub, disk("b", 2, "1-1.2"), gone, returns("1-1.2", (30.1, 30.6)))
    assert "cable, port or bridge" not in found


@pytest.mark.parametrize(("port", "accused"), [("1-1.1", set()), ("1-1.2", {"cable, port or bridge"})])
def test_a_cut_that_the_run_made_is_not_by_itself(port: str, accused: set[str]) -> None:
    """The disk in 1-1.1 is the victim of the cut, the one in 1-1.2 a survivor."""
    bench = healthy()
    bench.add(
        ev.KernelMessage(at=9.0, text=f"usb {port}: New USB device found, idVendor=152d, idProduct=0578"),
        ev.KernelMessage(at=CUT + 0.1, text=f"usb {port}: USB disconnect, device number 5"),
        ev.KernelMessage(at=CUT + 1.0, text=f"usb {port}: New USB device found, idVendor=152d, idProduct=0578"),
    )
    assert {hint.culprit for hint in hints(story_of_history(bench.story()))} == accused


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text("\n".join(disk("b", 2, "2-1", driver="uas") + aborts("b", 2, 8, 8)) + "\n")
    well = tmp_path / "well.log"
    well.write_text("\n".join(disk("b", 2, "2-1")) + "\n")
    assert main(["log", "--story", str(log)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sdb (usb 2-1, 152d:0578, uas)\n")
    assert "\npossibly: bridge firmware (152d:0578)\n" in out
    assert out.endswith("    to try: usb-storage.quirks=152d:0578:u\n")
    assert main(["log", "--story", str(log), str(well)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{log}:\n")
    assert out.endswith(f"\n{well}:\nno errors, neither of a device nor of the kernel itself\n")


def test_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, well = tmp_path / "kern.log", tmp_path / "well.log"
    banner = "[    0.000000] Linux version 6.1.0-18-amd64 (debian@host) (gcc-12)"
    log.write_text(
        "\n".join([banner, *disk("b", 2, "2-1", driver="uas"), *aborts("b", 2, 8, 8), *failed("b", 8)]) + "\n"
    )
    well.write_text("\n".join(disk("b", 2, "2-1")) + "\n")
    assert main(["log", "--summary", str(log)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 76
    assert "\n\n" not in out
    assert " ".join(out.split()) == (
        "Kernel 6.1.0-18-amd64. sdb (USB port 2-1, 152d:0578, driver uas), from 1.0 s after boot: it was detected "
        '("usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00"), then UAS commands were '
        "aborted 2 times, then SCSI commands failed 2 times, then I/O failed. Possibly to blame: the bridge firmware "
        "(152d:0578), because 2 aborts and resets with uas, the first: sd 2:0:0:0: [sdb] tag#0 uas_eh_abort_handler 0 "
        "uas-tag 1 inflight: CMD OUT. To try, on the kernel's command line: usb-storage.quirks=152d:0578:u."
    )
    assert main(["log", "--summary", str(well), str(log)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{well}:\nNo errors, neither of a device nor of the kernel itself.\n\n{log}:\nKernel 6.1")


def test_unknown_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text(
        "kern  :info  : [    1.000000] frobnicator: all is well\n"
        "kern  :warn  : [    2.000000] frobnicator: ring 1 overflows\n"
        "kern  :err   : [    3.000000] frobnicator: ring 2 overflows\n"
        "kern  :err   : [    4.000000] I/O error, dev sdb, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2\n"
        "kern  :warn  : [    5.000000]  usb_hcd_giveback_urb+0x10/0x20\n"
        "user  :warn  : [    6.000000] myapp: not the kernel\n"
        "<12>[    7.000000] systemd[1]: not the kernel either\n"
    )
    assert main(["log", "--unknown", str(log)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split(maxsplit=3) == ["2", "2x", "err", "frobnicator: ring 1 overflows"]
    plain = tmp_path / "plain.log"
    plain.write_text(
        "[    1.000000] frobnicator: failed\n"
        "[    2.000000] usb 1-1: the frobnicator failed with error -5\n"
        "[    3.000000] usb 1-1: Product: Stick\n"
        "[    4.000000] sd 1:0:0:0: [sdb] Write Protect is off\n"
    )
    assert main(["log", "--unknown", str(plain)]) == 0
    assert capsys.readouterr().out.split(maxsplit=3)[:3] == ["2", "1x", "-"]
    assert main(["log", "--unknown", str(plain), str(log)]) == 0
    assert capsys.readouterr().out.startswith(f"{plain}:2 ")
    well = tmp_path / "well.log"
    well.write_text("\n".join(disk("b", 2, "2-1")) + "\n")
    assert main(["log", "--unknown", str(well)]) == 0
    assert capsys.readouterr().out == "nothing unknown\n"


def test_json_is_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text("\n".join(failed("b", 8)) + "\n")
    with pytest.raises(SystemExit):
        main(["log", "--story", "--json", str(log)])
    capsys.readouterr()
    assert main(["log", "--json", str(log)]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["kind"] == "block.error"


# --- real logs --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not CORPUS.is_file(), reason="the logs are not at hand")
def test_real_logs_accuse_whom_their_owners_found_guilty() -> None:
    found: dict[str, set[str]] = {}
    for row in CORPUS.read_text().splitlines():
        log = json.loads(row)
        found[log["id"]] = set(accused([line["text"] for line in log["lines"]]))
    expected = {
        "silverstone-ts16-uas-offline": "bridge firmware",
        "samsung-t5-asm1142-aborts": "bridge firmware",
        "asm1051-write-aborts": "bridge firmware",
        "h3c-xhci-dies-on-unplug": "controller",
        "odroid-hc2-hc-died": "controller",
        "uf-czgirb-medium-error-split": "medium",
        "md7-emi-kicked": "cable or port",
        "uf-mpman-cannot-enable": "cable or port",
        "uf-hub-dies-device-offlined": "hub",
        "usbstor-pagefault-write": "kernel",
        "xps-mkfs-xhci-ring-oops": "kernel",
    }
    assert {name: culprit for name, culprit in expected.items() if culprit not in found[name]} == {}
    assert {name: culprits for name, culprits in found.items() if name.startswith("healthy") and culprits} == {}
