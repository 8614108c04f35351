"""Edits of the kernel log: oopses and errors at every moment, and of which disk."""

from __future__ import annotations

from benchmarks.edits.events import of
from benchmarks.edits.kernel import ONE, OOPS
from benchmarks.edits.registry import CUT, FAIL, PASS, add, edit
from benchmarks.edits.tape import Tape

# --- at every moment --------------------------------------------------------------------------------------------------

MOMENTS = (
    "at the beginning",
    "before the cut",
    "just before the cut",
    "just after the cut",
    "during the return",
    "just after the return",
    "at the end",
    "while reading back",
)


def io_error(tape: Tape, disk: str) -> str:
    kname = tape.names(disk).kname
    return f"I/O error, dev {kname}, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 16 prio class 2"


def moment(tape: Tape, name: str) -> float:
    back = tape.attached(tape.victim, 1)["at"]
    begin = max(e["at"] for e in tape.all(of("disk.attached")) if e["at"] < tape.off_at)
    return float(
        {
            "at the beginning": begin + 0.1,
            "before the cut": tape.off_at - 1.0,
            "just before the cut": tape.off_at - 0.02,
            "just after the cut": tape.off_at + 0.1,
            "during the return": (tape.on_at + back) / 2,
            "just after the return": back + 0.4,
            "at the end": tape.judged_at - 0.01,
            "while reading back": tape.judged_at - 1.5,
        }[name]
    )


for _when in MOMENTS:
    add(
        "kernel says when",
        f"oops {_when}",
        FAIL,
        "An oops is wrong at any moment of a scenario.",
        lambda tape, w=_when: tape.say(moment(tape, w), *OOPS, level=0),
        ("while_writing", "while_idle"),
        "NULL pointer|kernel",
    )
    add(
        "kernel says when",
        f"oops at info level {_when}",
        FAIL,
        "An oops is one whatever level its lines have.",
        lambda tape, w=_when: tape.say(moment(tape, w), *OOPS, level=6),
        ONE,
        "NULL pointer|kernel",
    )
    add(
        "kernel says when",
        f"survivor is reset {_when}",
        FAIL,
        "A disk outside the blast radius was reset: its users were disturbed.",
        lambda tape, w=_when: tape.say(
            moment(tape, w), f"usb {tape.names(tape.survivor).usb}: reset SuperSpeed USB device number 2 using xhci_hcd"
        ),
        ("while_writing", "while_idle"),
        "survivor",
    )
    add(
        "kernel says when",
        f"survivor's I/O error {_when}",
        FAIL,
        "A disk outside the blast radius had an I/O error.",
        lambda tape, w=_when: tape.say(
            moment(tape, w),
            io_error(tape, tape.survivor),
            level=3,
        ),
        ("while_writing", "while_idle"),
        "survivor",
    )

SURVIVOR: dict[str, tuple[str, int]] = {
    "disconnect without a removal": ("usb {usb}: USB disconnect, device number 2", 6),
    "descriptor read error": ("usb {usb}: device descriptor read/64, error -71", 3),
    "device not accepting its address": ("usb {usb}: device not accepting address 2, error -71", 3),
    "cable is bad": ("usb {port}: Cannot enable. Maybe the USB cable is bad?", 3),
    "over-current": ("usb {port}: over-current condition", 3),
    "SCSI command failed": (
        "sd {address}: [{kname}] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s",
        6,
    ),
    "medium error": ("sd {address}: [{kname}] tag#0 Sense Key : Medium Error [current] ", 6),
    "buffer I/O error": ("Buffer I/O error on dev {kname}, logical block 0, lost async page write", 3),
    "critical medium error": (
        "critical medium error, dev {kname}, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        3,
    ),
    "offlined": ("sd {address}: Device offlined - not ready after error recovery", 6),
    "rejecting I/O": ("sd {address}: [{kname}] rejecting I/O to offline device", 3),
    "uas abort": ("sd {address}: [{kname}] tag#1 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD OUT ", 6),
    "uas reset": ("scsi host{host}: uas_eh_device_reset_handler start", 6),
    "capacity drops to 0": ("{kname}: detected capacity change from 65536 to 0", 6),
    "turns read-only": ("sd {address}: [{kname}] Write Protect is on", 5),
    "write cache off": (
        "sd {address}: [{kname}] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA",
        5,
    ),
    "capacity changes": ("sd {address}: [{kname}] 32768 512-byte logical blocks: (16.8 MB/16.0 MiB)", 5),
    "power-on reset in the middle": ("sd {address}: Power-on or device reset occurred", 4),
    "timing out command": ("sd {address}: timing out command, waited 180s", 6),
    "uncatalogued warning": ("sd {address}: [{kname}] frobnication went sideways", 4),
    "uncatalogued error": ("sd {address}: [{kname}] frobnication went sideways", 3),
    "cache sync failed": (
        "sd {address}: [{kname}] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
        6,
    ),
    "device offline error": (
        "device offline error, dev {kname}, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        3,
    ),
    "unit attention: not ready": ("sd {address}: [{kname}] tag#0 Sense Key : Not Ready [current] ", 6),
    "blocks removed": ("{kname}: I/O timeout, dev {kname}, sector 0", 3),
}

for _name, (_line, _level) in SURVIVOR.items():

    def _apply(tape: Tape, text: str = _line, level: int = _level) -> Tape:
        names = tape.names(tape.survivor)
        said = text.format(
            usb=names.usb,
            port=f"usb2-port{names.usb[-1]}",
            address=names.address,
            kname=names.kname,
            host=names.address[0],
        )
        return tape.say(tape.off_at - 0.5, said, level=level)

    add(
        "survivor in the log",
        _name,
        FAIL,
        "The kernel reports trouble on a disk that nobody touched.",
        _apply,
        ("while_writing", "while_idle", "many_cuts_leave_nothing_behind"),
        "survivor",
    )


@edit("survivor in the log", FAIL, ("while_writing", "every_disk_is_found_at_its_place"), "bot")
def disk_reset_soon_after_it_was_found(tape: Tape) -> Tape:
    """A disk was reset 2.3 s after it was plugged in, with nothing cut: not what every disk does as it comes up."""
    at = tape.attached("bot")["at"] + 2.3
    tape = tape if tape.judged_at > at else tape.wait(tape.judged_at - 0.02, 3.0)
    return tape.say(at, f"usb {tape.names('bot').usb}: reset SuperSpeed USB device number 2 using xhci_hcd")


@edit("survivor in the log", FAIL, ("while_writing",), "bot")
def disk_warned_of_soon_after_it_was_found(tape: Tape) -> Tape:
    """An uncatalogued warning about a disk 2.3 s after it was plugged in."""
    names = tape.names("bot")
    return tape.say(
        tape.attached("bot")["at"] + 2.3, f"sd {names.address}: [{names.kname}] frobnication went sideways", level=4
    )


@edit("survivor in the log", FAIL, ("while_writing", "while_idle"), "1-3|behind|hub")
def hub_outside_in_trouble(tape: Tape) -> Tape:
    """A hub that no cut took cannot be reached any more."""
    return tape.say(tape.off_at + 0.3, "hub 1-3:1.0: hub_ext_port_status failed (err = -71)", level=3)


# --- the victim -------------------------------------------------------------------------------------------------------

VICTIM_EARLY = {
    "I/O error": ("I/O error, dev {kname}, sector 3840 op 0x1:(WRITE) flags 0x8800 phys_seg 16 prio class 2", 3),
    "reset": ("usb {usb}: reset SuperSpeed USB device number 3 using xhci_hcd", 6),
    "command failed": (
        "sd {address}: [{kname}] tag#2 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s",
        6,
    ),
    "capacity drops to 0": ("{kname}: detected capacity change from 65536 to 0", 6),
    "medium error": ("sd {address}: [{kname}] tag#0 Sense Key : Medium Error [current] ", 6),
}
for _name, (_line, _level) in VICTIM_EARLY.items():

    def _before(tape: Tape, text: str = _line, level: int = _level) -> Tape:
        n = tape.names(tape.victim)
        return tape.say(tape.off_at - 1.0, text.format(usb=n.usb, address=n.address, kname=n.kname), level=level)

    def _after(tape: Tape, text: str = _line, level: int = _level) -> Tape:
        at = tape.attached(tape.victim, 1)["at"]
        tape = tape.wait(at + 0.3, 14.0)
        n = tape.names(tape.victim, 1)
        return tape.say(at + 12.0, text.format(usb=n.usb, address=n.address, kname=n.kname), level=level)

    def _within(tape: Tape, text: str = _line, level: int = _level) -> Tape:
        n = tape.names(tape.victim)
        return tape.say(tape.off_at + 0.06, text.format(usb=n.usb, address=n.address, kname=n.kname), level=level)

    add(
        "victim in the log",
        f"{_name} a second before its cut",
        FAIL,
        "The disk was in trouble before anything was cut.",
        _before,
        CUT,
        "victim",
    )
    add(
        "victim in the log",
        f"{_name} 12 s after its return",
        FAIL,
        "The disk was in trouble long after it was back.",
        _after,
        CUT,
        "victim",
    )
    if _name in ("I/O error", "command failed"):
        add("victim in the log", f"{_name} as it is cut", PASS, "A disk that is cut off has I/O errors.", _within, CUT)


@edit("victim in the log", PASS, ("while_writing", "a_disk_dies_in_use", "a_cable_is_gone_for_good"))
def lost_writes_as_it_is_cut(tape: Tape) -> Tape:
    """What a kernel says of a disk that was pulled out under load."""
    n = tape.names(tape.victim)
    at = tape.gone_at(tape.victim)
    return tape.say(
        at - 0.01, f"Buffer I/O error on dev {n.kname}, logical block 512, lost async page write", level=3
    ).say(at + 0.05, f"sd {n.address}: [{n.kname}] Synchronizing SCSI cache", level=5)
