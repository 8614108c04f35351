"""The hints at the culprit: every hint has a log that gives it and one that does not."""

from __future__ import annotations

import pytest
from device_logs import LEFT, OOPS, RESET, SCATTERED, aborts, accused, disk, failed, read, returns
from stories import CUT, healthy

from plugpull.history import events as ev
from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.error_story import story_of_history

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
    one = ["[    5.000000] xhci_hcd 0000:00:14.0: ERROR Transfer event for unknown stream ring slot 1 ep 6"]
    died = ["[   50.000000] xhci_hcd 0000:00:14.0: HC died; cleaning up"]
    assert accused(well, one)["controller"].confidence == "possibly"
    found = accused(well, failed("b", *SCATTERED), died)["controller"]
    assert (found.subject, found.confidence) == ("0000:00:14.0", "probably")
    assert found.evidence[-1] == "they began after the first error of a disk"
    assert "controller" not in accused(well, failed("b", *SCATTERED))
    left = [
        "[    5.000000] xhci_hcd 0000:00:14.0: WARN Can't disable streams for endpoint 0x81, streams are being disabled"
    ]
    assert accused(well, left) == {}, "what the driver says when the device is gone already"
    stale = "WARN Set TR Deq Ptr cmd failed due to incorrect slot or ep state."
    assert accused(well, [f"[    5.00000{n}] xhci_hcd 0000:00:14.0: {stale}" for n in range(3)]) == {}
    babble = [
        "[    5.000000] musb-hdrc musb-hdrc.1.auto: Babble",
        "[    6.000000] CAUTION: musb: Babble Interrupt Occurred",
    ]
    assert accused(well, babble) == {}, "a device talks out of turn"


def test_the_ports_of_a_controller_that_died_are_not_to_blame() -> None:
    ports = ["[   51.000000] usb 1-1: device not accepting address 6, error -71"] * 3
    died = ["[   50.000000] xhci_hcd 0000:00:14.0: HC died; cleaning up"]
    assert "cable or port" in accused(disk("b", 2, "1-1"), ports)
    assert "cable or port" in accused(disk("b", 2, "1-1"), ports, died)
    assert set(accused(disk("b", 2, "1-1"), died, ports)) == {"controller"}


def test_a_controller_that_was_gone_when_the_system_woke_up() -> None:
    away = [
        "[   50.000000] xhci_hcd 0000:b1:00.0: Controller not ready at resume -19",
        "[   50.000001] xhci_hcd 0000:b1:00.0: PCI post-resume error -19!",
    ]
    found = accused(disk("b", 2, "1-1"), away)
    assert set(found) == {"link or power of the controller"}
    assert found["link or power of the controller"].subject == "0000:b1:00.0"
    undocked = [
        "[   50.000000] xhci_hcd 0000:3a:00.0: HC died; cleaning up",
        "[   50.100000] xhci_hcd 0000:3a:00.0: Host not accessible, reset failed.",
    ]
    gone = accused(disk("b", 2, "1-1"), undocked)
    assert set(gone) == {"link or power of the controller"}
    assert gone["link or power of the controller"].evidence[0].startswith("it is gone, as if it was unplugged: ")
    before = ["[   49.000000] xhci_hcd 0000:3a:00.0: xHCI host not responding to stop endpoint command"]
    assert set(accused(disk("b", 2, "1-1"), before, undocked)) == {"controller"}
    late = [line.replace("-19", "-110") for line in away]
    assert set(accused(disk("b", 2, "1-1"), late)) == {"controller"}


def test_a_supply_voltage_that_is_too_low() -> None:
    low = ["[    9.000000] hwmon hwmon1: Undervoltage detected!", "[   11.000000] hwmon hwmon1: Voltage normalised"]
    found = accused(disk("b", 2, "1-1"), low, failed("b", *SCATTERED))["power supply"]
    assert (found.confidence, len(found.evidence)) == ("probably", 1)
    assert accused(disk("b", 2, "1-1"), low)["power supply"].confidence == "possibly"
    assert accused(disk("b", 2, "1-1"), low[1:], failed("b", *SCATTERED)) == {}


def test_an_nvme_controller_that_does_not_answer_at_all() -> None:
    down = "[   50.000000] nvme nvme0: controller is down; will reset: CSTS=0x{}, PCI_STATUS=0x10"
    found = accused([down.format("ffffffff")])["link or power saving"]
    assert (found.subject, found.confidence) == ("NVMe controller nvme0", "probably")
    assert found.remedy == "nvme_core.default_ps_max_latency_us=0 pcie_aspm=off"
    assert accused([down.format("3")]) == {}, "it answers, with a fatal status"


# --- what is not a disk, hub or controller -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ATA port ata2", "ata2.00: exception Emask 0x3 SAct 0x8001ffff SErr 0x0 action 0x6 frozen"),
        ("ATA port ata2", "sas: ata2: end_device-1:0:9: cmd error handler"),
        ("SCSI adapter mpt3sas_cm0", "mpt3sas_cm0: fault_state(0x265d)!"),
        ("SCSI adapter 0000:06:00.0", "qla2xxx 0000:06:00.0: LOOP DOWN detected (0 0 0)."),
        ("ATA controller 0000:8f:00.0", "ahci 0000:8f:00.0: controller reset failed (0x80000001)"),
        ("NVMe controller nvme0", "nvme nvme0: I/O 416 QID 1 timeout, aborting"),
        ("device mapper 253:5", "device-mapper: thin: 253:5: aborting current metadata transaction"),
        ("hardware 0000:00:02.1", "pcieport 0000:00:02.1: AER: Correctable error message received from 0000:bf:00.0"),
        ("block device mmc0", "mmc0: error -110 whilst initialising SD card"),
        ("filesystem", "JBD2: Invalid checksum recovering block 0 in log"),
    ],
)
def test_every_error_of_a_log_is_in_its_story(name: str, message: str) -> None:
    story = read(disk("b", 2, "1-1"), [f"[   60.000000] {message}"])
    assert [one.device.name for one in story.troubled] == [name]
    assert hints(story) == ()


def test_what_is_no_error_is_in_no_story() -> None:
    well = ["[   60.000000] ata2: SATA link up 6.0 Gbps (SStatus 133 SControl 300)", "[   61.000000] nvme nvme0: 4/0/0"]
    assert read(well).devices == ()


# --- kernel -----------------------------------------------------------------------------------------------------


def test_what_no_device_can_do_to_a_kernel() -> None:
    found = accused(disk("b", 2, "1-1"), OOPS)
    assert set(found) == {"kernel"}
    assert found["kernel"].confidence == "probably"
    assert found["kernel"].evidence[1] == "in xhci_ring_expansion [xhci_hcd]"
    waits = ["[   60.000000] INFO: task usb-storage:321 blocked for more than 120 seconds."]
    assert accused(waits)["kernel"].confidence == "possibly"
    assert accused(disk("b", 2, "1-1")) == {}


@pytest.mark.parametrize(
    ("culprit", "message"),
    [
        ("memory", "stress-ng-vm invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0"),
        ("memory", "kworker/0:1: page allocation failure: order:4, mode:0xc20(GFP_ATOMIC)"),
        ("hardware", "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 4: e600000000020408"),
        ("hardware", "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0"),
        ("kernel", "WARNING: CPU: 5 PID: 327 at drivers/ufs/core/ufshcd.c:3021 ufshcd_queuecommand+0x66c/0xe34"),
    ],
)
def test_not_every_report_is_the_kernels_fault(culprit: str, message: str) -> None:
    assert set(accused([f"[   60.000000] {message}"])) == {culprit}


def test_a_crash_on_request_is_nobodys_fault() -> None:
    panic = ["[   60.000000] Kernel panic - not syncing: sysrq triggered crash"]
    assert {name: hint.confidence for name, hint in accused(panic).items()} == {"SysRq": "almost certainly"}
    assert set(accused(["[   60.000000] Kernel panic - not syncing: Fatal exception"])) == {"kernel"}


# --- a device that leaves and returns -----------------------------------------------------------------------------


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


LOST_POWER = [f"[   41.000000] usb usb{bus}: root hub lost power or was reset" for bus in (1, 2)]


def test_what_a_resume_of_the_machine_does_accuses_nothing() -> None:
    up = disk("b", 2, "1-1", driver="uas")
    again = disk("b", 3, "1-1", driver="uas", at=42.5)
    resumed = [*LOST_POWER, RESET.format(at=41.5, port="1-1"), LEFT.format(42.0, "1-1"), *failed("b", 64, 80, at=42.1)]
    story = read(up, resumed, again)
    assert (hints(story), story.troubled) == ((), ())
    twice = [line.replace("[   4", "[  14") for line in resumed]
    assert accused(up, resumed, again, twice, disk("b", 4, "1-1", driver="uas", at=142.5)) == {}


@pytest.mark.parametrize(("second", "found"), [(2, False), (50, True)])
def test_a_resume_in_a_log_without_time_stamps(second: int, found: bool) -> None:
    """The clock of syslog or the journal serves as well."""
    lost = "Apr 12 13:45:01 host kernel: usb usb1: root hub lost power or was reset"
    left = f"Apr 12 13:45:{second:02} host kernel: usb 1-1: USB disconnect, device number 2"
    story = read(disk("b", 2, "1-1"), [lost, left])
    assert any(not one.expected for one in story.happenings if one.kind == "usb.disconnect") is found


@pytest.mark.parametrize(
    ("port", "at", "lost"),
    [("1-1", 42.0, []), ("1-1", 60.0, LOST_POWER), ("3-1", 42.0, LOST_POWER)],
    ids=["no resume", "long after it", "on another bus"],
)
def test_what_no_resume_explains_accuses_the_cable(port: str, at: float, lost: list[str]) -> None:
    found = accused(disk("b", 2, port), lost, [LEFT.format(at, port)], disk("b", 3, port, at=at + 0.5))
    assert set(found) == {"cable, port or bridge"}


def test_a_controller_that_fails_to_resume_is_accused() -> None:
    said = ["[   40.900000] xhci_hcd 0000:00:14.0: xHC error in resume, USBSTS 0x401, Reinit"]
    assert set(accused(disk("b", 2, "1-1"), said, LOST_POWER)) == {"controller"}
    again = [line.replace("[   4", "[  14") for line in said]
    assert accused(disk("b", 2, "1-1"), said, again)["controller"].confidence == "possibly", "some do it each time"


def test_a_device_that_is_found_after_a_restart_did_not_return_by_itself() -> None:
    boot = ["[    0.000000] Linux version 6.1.0-28-amd64 (a@b) (gcc) #1 SMP"]
    up, left, again = disk("b", 2, "1-1"), [LEFT.format(30.0, "1-1")], disk("b", 2, "1-1", at=30.4)
    assert "cable, port or bridge" in accused(up, left, again)
    assert "cable, port or bridge" not in accused(up, left, boot, again)


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
