"""Edits in which somebody goes whom no cut was to take."""

from __future__ import annotations

from benchmarks.edits.cuts import (
    FOREVER,
    HUB,
)
from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import FAIL, PASS, add, edit
from benchmarks.edits.tape import Tape

# --- somebody else goes -----------------------------------------------------------------------------------------------


def _leaves(name: str, why: str, at: str, away: float | None, on: tuple[str, ...]) -> None:
    def apply(tape: Tape) -> Tape:
        moments = {
            "before the cut": tape.off_at - 0.8,
            "just before the cut": tape.off_at - 0.1,
            "just after the cut": tape.off_at + 0.12,
            "while the cable is off": tape.off_at + 0.3,
            "during the return": tape.on_at + 0.4 if tape.all(of("edge", state="on", cut=1)) else tape.off_at + 2.0,
            "long after": tape.judged_at - 0.5,
        }
        when = moments[at]
        return tape.leave(tape.survivor, when, None if away is None else when + away)

    add("someone else goes", name, FAIL, why, apply, on, "survivor")


for _at in (
    "before the cut",
    "just before the cut",
    "just after the cut",
    "while the cable is off",
    "during the return",
):
    _leaves(
        f"survivor goes {_at} and comes back",
        "A disk outside the blast radius was removed and announced again: nobody may disturb it.",
        _at,
        1.5,
        ("while_writing", "while_idle", *HUB, *FOREVER),
    )
for _at in ("just after the cut", "during the return"):
    _leaves(
        f"survivor goes {_at} for good",
        "A disk outside the blast radius was removed and stayed away.",
        _at,
        None,
        ("while_reading", "while_idle"),
    )
_leaves(
    "survivor goes after the loads ended",
    "A disk outside the blast radius was removed while its data was read back: still within the scenario.",
    "long after",
    None,
    ("while_writing", "while_idle"),
)


@edit("someone else goes", FAIL, ("many_cuts_leave_nothing_behind",), "survivor")
def survivor_goes_in_every_cut(tape: Tape) -> Tape:
    """A disk outside the blast radius drops off and returns in each of eight cuts."""
    offs = [event["at"] for event in tape.all(of("edge", state="off", phase="commanded"))]
    for at in offs:
        tape = tape.leave(tape.survivor, at + 0.08, at + 0.5)
    return tape


@edit("someone else goes", FAIL, ("every_disk_is_found_at_its_place",), "behind")
def disk_goes_after_its_discovery(tape: Tape) -> Tape:
    """A disk was found and went again, and nothing was cut in this scenario."""
    return tape.leave("behind", tape.judged_at - 0.02)


@edit("someone else goes", FAIL, ("while_writing", "a_cable_is_gone_for_good"), "1-3|hub1|behind")
def hub_outside_goes(tape: Tape) -> Tape:
    """The kernel logs the disconnect of a hub that no cut took, and its uevent; its disk goes with it."""
    at = tape.off_at + 0.4
    tape = tape.leave("behind", at, at + 2.0).say(at - 0.03, "usb 1-3: USB disconnect, device number 2")
    path = "/devices/pci0000:00/0000:00:10.0/usb1/1-3"
    return tape.insert(
        {"type": "uevent", "at": at, "action": "remove", "subsystem": "usb", "devpath": path, "devtype": "usb_device"}
    )


@edit("someone else goes", FAIL, ("while_writing", "while_idle"), "1-4")
def other_device_on_the_bench_goes(tape: Tape) -> Tape:
    """A device that is not a disk, on the rig's own controller, is disconnected as the cable is cut: a card reader."""
    path = "/devices/pci0000:00/0000:00:10.0/usb1/1-4"
    at = tape.off_at + 0.1
    begin = tape.settled_at if tape.all(of("load.settled")) else tape.off_at - 2.0
    add_event = {
        "type": "uevent",
        "at": begin - 1.0,
        "action": "add",
        "subsystem": "usb",
        "devpath": path,
        "devtype": "usb_device",
    }
    tape = tape.say(begin - 1.0, "usb 1-4: new full-speed USB device number 9 using xhci_hcd").insert(add_event)
    census = tape.all(of("census"))
    tape = tape.map(
        lambda event: event is census[0],
        lambda event: event | {"things": event["things"] | {"usb device": [*event["things"]["usb device"], "1-4"]}},
    )
    return tape.say(at, "usb 1-4: USB disconnect, device number 9").insert(
        add_event | {"at": at + 0.01, "action": "remove"}
    )


@edit("someone else goes", FAIL, ("while_writing", "while_idle"), "shelf")
def bystander_goes(tape: Tape) -> Tape:
    """A disk that is attached but not part of the test drops off as the cable is cut."""
    tape = with_bystander(tape)
    return tape.leave("shelf", tape.off_at + 0.2)


@edit("someone else goes", FAIL, ("while_writing", "while_idle"), "shelf")
def bystander_goes_and_comes_back(tape: Tape) -> Tape:
    """A disk that is attached but not part of the test drops off as the cable is cut, and comes back."""
    tape = with_bystander(tape)
    return tape.leave("shelf", tape.off_at + 0.2, tape.off_at + 2.2)


@edit("someone else goes", PASS, ("while_writing", "while_idle"))
def bystander_stays(tape: Tape) -> Tape:
    """A disk that is attached but not part of the test does nothing at all."""
    return with_bystander(tape)


def with_bystander(tape: Tape) -> Tape:
    """A fourth disk, ``shelf``, that is not scratch, behind a port of its own on the rig's controller."""
    model = tape.attached("bot")
    rig = dict(tape.rig)
    port = {"name": "shelf", "at": "usb.4", "serial": "SHELF-1", "scratch": False, "cable": None, "power": None}
    rig["disk"] = [*rig["disk"], dict(tape.declared("bot")) | port]
    at = max(event["at"] for event in tape.all(of("disk.attached")) if event["at"] < tape.off_at) + 0.005
    sysfs = "/sys/devices/pci0000:00/0000:00:10.0/usb2/2-4/2-4:1.0/host9/target9:0:0/9:0:0:0/block/sdx"
    add_disk = {
        "at": at,
        "disk": "shelf",
        "kname": "sdx",
        "diskseq": 50,
        "devt": "65:112",
        "serial": "SHELF-1",
        "place": "0000:00:10.0/4:0",
        "sysfs": sysfs,
    }
    came = {"type": "uevent", "at": at, "action": "add", "subsystem": "block", "devtype": "disk"}
    came["devpath"] = sysfs.removeprefix("/sys")
    tape = tape.change(of("run.begin"), rig=rig).insert(came, model | add_disk)
    lines = (
        "usb 2-4: new SuperSpeed USB device number 8 using xhci_hcd",
        "usb 2-4: SerialNumber: SHELF-1",
        "usb-storage 2-4:1.0: USB Mass Storage device detected",
        "scsi host9: usb-storage 2-4:1.0",
        "sd 9:0:0:0: [sdx] Attached SCSI disk",
    )
    tape = tape.say(at - 0.01, *lines)
    first = tape.attached("shelf")["at"]
    tape = tape.map(
        both(of("sample"), lambda event: event["at"] > first),
        lambda event: event | {"disks": event["disks"] | {"sdx": [50, 36864, 0, 6, 0, 0, 0, 12]}},
    )
    return tape.map(of("census"), _counted)


def _counted(event: Event) -> Event:
    """A census with the parts of ``shelf``."""
    things = dict(event["things"])
    for kind, name in (
        ("scsi host", "usb-storage at 0000:00:10.0/4"),
        ("block device", "0000:00:10.0/4:0 (serial SHELF-1)"),
        ("usb device", "2-4"),
    ):
        things[kind] = [*things[kind], name]
    return event | {"things": things}
