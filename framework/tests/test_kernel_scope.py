"""Which disk a kernel message is about, and whether it is held against a disk that nobody touched."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import no_errors
from plugpull.history import events as ev
from plugpull.kernel.catalogue.device_names import names_in
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.diagnosis.error_story import story_of_history
from plugpull.kernel.diagnosis.scope import About, Level, Scope, place_of

SYSFS = (
    "/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.{port}/1-1.{port}:1.0/host{port}/target{port}:0:0/{port}:0:0:0"
)


def about_text(scope: Scope, text: str, at: float) -> About:
    return scope.about(LogLine(text).names, at)


def bench() -> Bench:
    """The healthy one, with paths as complete as they really are."""
    made = healthy()
    ports = {disk: port for port, disk in enumerate((VICTIM, *SURVIVORS), 1)}
    made.events = [
        msgspec.structs.replace(event, sysfs=SYSFS.format(port=ports[event.disk]))
        if isinstance(event, ev.DiskAttached)
        else event
        for event in made.events
    ]
    return made


def warn(text: str, at: float = 13.0, level: int = 3) -> ev.KernelMessage:
    return ev.KernelMessage(at=at, text=text, level=level)


def test_a_path_in_sysfs() -> None:
    place = place_of(
        "/sys/devices/pci0000:00/0000:00:1c.4/0000:02:00.0/usb4/4-1/4-1.2/4-1.2:1.0/host3/target3:0:0/3:0:0:1/block/sdq"
    )
    assert (place.address, place.host, place.usb) == ("3:0:0:1", "host3", "4-1.2")
    assert (place.hubs, place.controller) == (("usb4", "4-1"), "0000:02:00.0")
    assert place_of("/sys/devices/platform/soc/xhci-hcd.0/usb1/1-1/1-1:1.0/host0").controller == "xhci-hcd.0"
    assert place_of("").usb == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I/O error, dev sdb, sector 8 op 0x1:(WRITE)", {"blocks": ("sdb",)}),
        ("EXT4-fs (sdb1): I/O error while writing superblock", {"blocks": ("sdb",)}),
        ("JBD2: I/O error when updating journal superblock for sdb-8.", {"blocks": ("sdb",)}),
        ("XFS (nvme0n1p2): log I/O error -5", {"blocks": ("nvme0n1",)}),
        ("sd 2:0:0:0: [sdb] tag#4 CDB: Write(10) 2a 00", {"blocks": ("sdb",), "addresses": ("2:0:0:0",)}),
        ("sd 2:0:0:0: Device offlined - not ready after error recovery", {"addresses": ("2:0:0:0",)}),
        ("virtio_scsi: SCSI device 0 0 1 0 not found", {"addresses": ("0:0:1:0",)}),
        ("scsi host3: uas_eh_device_reset_handler start", {"hosts": ("host3",)}),
        ("usb 1-2.3: reset high-speed USB device number 5", {"usb": ("1-2.3",)}),
        ("usb 1-2-port3: cannot reset (err = -110)", {"usb": ("1-2.3",)}),
        ("usb usb2-port1: Cannot enable. Maybe the USB cable is bad?", {"usb": ("2-1",)}),
        ("hub 1-2:1.0: cannot disable port 3 (err = -110)", {"usb": ("1-2.3",)}),
        ("hub 1-0:1.0: over-current condition on port 2", {"usb": ("1-2",)}),
        ("hub 1-2:1.0: hub_ext_port_status failed (err = -71)", {"usb": ("1-2",)}),
        ("usb-storage 1-2.3:1.0: USB Mass Storage device detected", {"usb": ("1-2.3",)}),
        ("scsi host3: usb-storage 1-2.3:1.0", {"hosts": ("host3",), "usb": ("1-2.3",)}),
        ("md/raid1:md126: Disk failure on sdb1, disabling device.", {"blocks": ("sdb",), "arrays": ("md126",)}),
        ("xhci_hcd 0000:00:10.0: HC died; cleaning up", {"controllers": ("0000:00:10.0",)}),
        ("CPU: 0 PID: 12 Comm: usb-storage Not tainted 6.1.0-28-amd64 #1", {}),
        ("/dev/disk/by-id/ata-sdb.old is no device", {}),
    ],
)
def test_the_names_in_a_message(text: str, names: dict[str, tuple[str, ...]]) -> None:
    found = names_in(text)._asdict()
    assert {key: value for key, value in found.items() if value} == names


@pytest.mark.parametrize(
    ("text", "level", "disks"),
    [
        ("I/O error, dev sdc1, sector 8 op 0x1:(WRITE)", Level.DISK, ("disk2",)),
        ("sd 2:0:0:0: rejecting I/O to offline device", Level.DISK, ("disk2",)),
        ("sd 2:0:0:1: rejecting I/O to offline device", Level.DISK, ("disk2",)),
        ("scsi host3: uas_eh_device_reset_handler start", Level.DISK, ("disk3",)),
        ("usb 1-1.3: reset high-speed USB device number 5 using xhci_hcd", Level.DISK, ("disk3",)),
        ("hub 1-1:1.0: cannot reset port 2 (err = -110)", Level.DISK, ("disk2",)),
        ("usb-storage 1-1.2:1.0: Quirks match for vid 152d pid 0578: 800000", Level.DISK, ("disk2",)),
        ("hub 1-1:1.0: hub_ext_port_status failed (err = -71)", Level.HUB, ("disk1", "disk2", "disk3")),
        ("xhci_hcd 0000:00:05.0: WARNING: Host System Error", Level.CONTROLLER, ("disk1", "disk2", "disk3")),
        ("xhci_hcd 0000:00:06.0: WARNING: Host System Error", Level.NOTHING, ()),
        ("I/O error, dev sdq, sector 8 op 0x1:(WRITE)", Level.NOTHING, ()),
        ("usb 2-1: reset high-speed USB device number 5 using xhci_hcd", Level.NOTHING, ()),
    ],
)
def test_whom_a_message_means(text: str, level: Level, disks: tuple[str, ...]) -> None:
    about = about_text(Scope(bench().story()), text, 13.0)
    assert (about.level, about.disks) == (level, disks)


def test_an_array_means_the_members_that_were_named() -> None:
    made = bench()
    made.add(
        warn("md/raid1:md0: Disk failure on sdc, disabling device.", 12.5),
        warn("md/raid1:md0: redirecting sector 8 to other mirror: sdd", 14.0),
    )
    scope = Scope(made.story())
    assert about_text(scope, "md/raid1:md0: Operation continuing on 1 devices.", 13.0).disks == ("disk2",)
    assert about_text(scope, "md/raid1:md0: Operation continuing on 1 devices.", 14.5).disks == ("disk2", "disk3")
    assert about_text(scope, "md/raid1:md1: Operation continuing on 1 devices.", 14.5).disks == ()


def test_a_name_is_its_owners_at_the_time_and_a_little_after() -> None:
    made = bench()
    made.replace(ev.DiskAttached, lambda event: event.at == BACK, kname="sdz")
    made.attach("disk3", 17.5, kname="sdb")
    scope = Scope(made.story())
    said = "I/O error, dev sdb, sector 8 op 0x1:(WRITE)"
    assert about_text(scope, said, 14.0).disks == (VICTIM,)
    assert about_text(scope, said, 16.0).disks == (VICTIM,), "it has just gone"
    assert about_text(scope, said, 18.0).disks == ("disk3",), "its name was given to another"
    assert about_text(scope, "usb 1-1.1: device not accepting address 5, error -71", 16.9).disks == (VICTIM,)


# --- held against survivors ------------------------------------------------------------------------------------

COMPLAINTS = [
    "EXT4-fs (sdc): I/O error while writing superblock",
    "sd 2:0:0:0: Device offlined - not ready after error recovery",
    "sd 2:0:0:0: Power-on or device reset occurred",
    "scsi host2: uas_eh_device_reset_handler start",
    "usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd",
    "usb 1-1-port2: cannot reset (err = -110)",
    "usb 1-1.2: USB disconnect, device number 5",
]


@pytest.mark.parametrize("text", COMPLAINTS)
def test_what_is_said_of_a_survivor_under_any_name_is_a_finding(text: str) -> None:
    made = bench()
    made.add(warn(text, CUT + 0.3))
    (finding,) = made.judge(no_errors(SURVIVORS)).findings
    assert (finding.subject, finding.evidence) == ("disk2", (text,))


@pytest.mark.parametrize("text", [text.replace("sdc", "sdb").replace("2", "1", 1) for text in COMPLAINTS])
def test_it_is_expected_of_the_victim_while_it_is_cut_and_a_little_after(text: str) -> None:
    made = bench()
    made.add(warn(text, CUT + 0.3))
    assert not made.judge(no_errors((VICTIM,))).findings[1:], "its load ended with an error, and that is all"
    made = bench()
    made.add(warn("I/O error, dev sdb, sector 8 op 0x1:(WRITE)", BACK + 4), warn("I/O error, dev sdb, sector 8", 14.0))
    findings = made.judge(no_errors((VICTIM,))).findings
    assert [finding.at for finding in findings if "kernel" in finding.summary] == [14.0], "before its cut it is not"


def test_a_hub_is_disturbed_by_the_cut_of_one_of_its_disks_and_by_nothing_else() -> None:
    said = "hub 1-1:1.0: hub_ext_port_status failed (err = -71)"
    made = bench()
    made.add(warn(said, CUT + 0.3))
    assert not made.judge(no_errors(SURVIVORS)).findings
    made.add(warn(said, 13.0))
    findings = made.judge(no_errors(SURVIVORS)).findings
    assert [finding.subject for finding in findings] == list(SURVIVORS)
    assert f"disk2 (hub 1-1): {said}" in findings[0].summary


def test_coming_up_is_no_error() -> None:
    made = bench()
    made.add(
        warn("sd 2:0:0:0: Power-on or device reset occurred", 10.3, 4),
        warn("usb 1-1.2: not running at top speed; connect to a high speed hub", 10.1, 6),
        warn("sd 2:0:0:0: [sdc] Something about its optimal transfer size", 10.4, 4),
    )
    assert not made.judge(no_errors(SURVIVORS)).findings


def test_a_warning_that_is_in_no_catalogue_and_names_a_survivor() -> None:
    text = "sd 2:0:0:0: [sdc] the flux capacitor is out of phase"
    made = bench()
    made.add(warn(text, 16.0, 4), warn("the flux capacitor is out of phase", 16.0, 4), warn(text, 16.1, 5))
    (finding,) = made.judge(no_errors(SURVIVORS)).findings
    assert finding.evidence == (text,)
    assert "uncatalogued warning" in finding.summary
    assert story_of_history(made.story()).unclassified == (text,)


def test_a_warning_about_the_victim_or_about_what_the_disks_share_is_none() -> None:
    made = bench()
    made.add(
        warn("sd 1:0:0:0: [sdb] the flux capacitor is out of phase", 16.0, 4),
        warn("xhci_hcd 0000:00:05.0: bad transfer trb length 5 in event trb", 13.0, 4),
    )
    assert not made.judge(no_errors(SURVIVORS)).findings


def test_what_was_said_before_the_scenario_began_is_anothers() -> None:
    made = bench()
    made.add(warn("I/O error, dev sdc, sector 8 op 0x1:(WRITE)", 11.0))
    story = made.story()
    later = type(story)(msgspec.structs.replace(story.begun, at=11.5), story.events, before=story.before, rig=story.rig)
    assert no_errors(SURVIVORS).judge(story).findings
    assert not no_errors(SURVIVORS).judge(later).findings
