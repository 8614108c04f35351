"""Edits after which a record is there and says nothing, or its witnesses are of different clocks. Beside them, what a
healthy bench may record otherwise."""

from __future__ import annotations

from typing import Any

from benchmarks.edits.events import Event, both, either, of
from benchmarks.edits.registry import CUT, FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

WATCHED = ("watched_while_writing", "watched_many_cuts")
WROTE = ("watched_while_writing", "power_fails_between_flushes")
CYCLES = ("watched_many_cuts",)


# --- records without contents -----------------------------------------------------------------------------------------


def _empty(name: str, why: str, kind: str, moment: str, on: tuple[str, ...] = WATCHED, **fields: Any) -> None:
    def apply(tape: Tape) -> Tape:
        return tape.map(of(kind, moment=moment), lambda event: event | fields)

    add("contents", name, UNKNOWN, why, apply, on)


_empty("census counted nothing at the end", "What is left over cannot be seen.", "census", "end", things={})
_empty("census without caches at the end", "A leak cannot be seen.", "census", "end", CYCLES, slab={})
_empty("census without memory at the end", "A leak cannot be seen.", "census", "end", CYCLES, memory={})
_empty("state without a boot id at the end", "A restart cannot be seen.", "dut.state", "end", boot_id="")
_empty("state without modules at the end", "A driver that is held cannot be seen.", "dut.state", "end", modules={})
_empty("state without memory at the beginning", "Growth cannot be seen.", "dut.state", "begin", memory={})
_empty("properties empty at the end", "How the disks are driven is not known.", "disk.properties", "end", values={})


for _kind in ("kernel thread", "trace of a disk", "mount", "usb device"):
    for _moment in ("begin", "end"):

        def _uncounted(tape: Tape, kind: str = _kind, moment: str = _moment) -> Tape:
            def edit(event: Event) -> Event:
                return event | {"things": {name: found for name, found in event["things"].items() if name != kind}}

            return tape.map(of("census", moment=moment), edit)

        _why = "What is left over of it, or missing, cannot be seen."
        add("contents", f"no {_kind} counted at the {_moment}", UNKNOWN, _why, _uncounted, WATCHED)


for _field, _value in (("boot_id", "00000000-0000-0000-0000-000000000000"), ("kernel", "5.10.0-1-amd64")):

    def _another(tape: Tape, field: str = _field, value: str = _value) -> Tape:
        return tape.change(of("dut.ready"), **{field: value})

    add("contents", f"agent of another {_field}", UNKNOWN, "Its reports are of another kernel.", _another, WATCHED)


for _text, _level in (
    ("INFO: lockdep is turned off.", 4),
    ("Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings", 3),
    ("** 37 printk messages dropped **", 4),
):

    def _admitted(tape: Tape, text: str = _text, level: int = _level) -> Tape:
        return tape.say(tape.off_at + 0.3, text, level=level)

    _why = "The kernel says that its log is not complete."
    add("contents", f"the log says: {_text[:24]}", UNKNOWN, _why, _admitted, CUT)


# --- stamps of different clocks ---------------------------------------------------------------------------------------

LOG, SAMPLES = of("kernel"), of("sample")
UEVENTS = either(of("uevent"), of("disk.attached"), of("disk.detached"))

for _name, _which, _by in (
    ("kernel log 4 s early", LOG, -4.0),
    ("samples 2.5 s late", SAMPLES, 2.5),
    ("samples 3 s early", SAMPLES, -3.0),
    ("uevents 2.5 s late", UEVENTS, 2.5),
):

    def _moved(tape: Tape, which: Any = _which, by: float = _by) -> Tape:
        return tape.map(which, lambda event: event | {"at": event["at"] + by} if event.get("at") is not None else event)

    _why = "Witnesses on one DUT contradict each other, so nobody is accused."
    add("contents", _name, UNKNOWN, _why, _moved, ("while_idle", "while_reading"))


# --- what only the log says -------------------------------------------------------------------------------------------


@edit("contents", FAIL, CUT, "victim")
def victim_came_back_of_another_vendor(tape: Tape) -> Tape:
    """Another device, or one with other firmware, answers at the port."""
    lines = both(of("kernel"), lambda event: event["at"] > tape.on_at and "idVendor=46f4" in event["text"])
    return tape.map(lines, lambda event: event | {"text": event["text"].replace("idVendor=46f4", "idVendor=0bad")})


for _words in ("Stopping disk", "Synchronizing SCSI cache", "Attached SCSI disk", "Asking for cache data failed"):

    def _alone(tape: Tape, words: str = _words) -> Tape:
        names = tape.names(tape.survivor)
        return tape.say(tape.quiet_at, f"sd {names.address}: [{names.kname}] {words}", level=5)

    _why = "A disk came or went, and only the log says so."
    add("contents", f"survivor by the log alone: {_words}", (UNKNOWN, FAIL), _why, _alone, CUT)


@edit("contents", UNKNOWN, CUT)
def port_switched_off_twice(tape: Tape) -> Tape:
    """When the cut was made is not known."""
    off = tape.first(of("edge", state="off", phase="commanded"))
    return tape.insert(off | {"at": off["at"] + 0.4})


@edit("contents", UNKNOWN, WROTE)
def survivors_stamps_begun_under_the_victims_name(tape: Tape) -> Tape:
    """What was written was not the disk that is judged."""
    kname = tape.attached(tape.victim)["kname"]
    return tape.map(of("ledger.begin", disk=tape.survivor), lambda event: event | {"kname": kname})


@edit("contents", UNKNOWN, WROTE)
def victim_read_back_while_it_was_away(tape: Tape) -> Tape:
    """There was no such disk then."""
    return tape.map(of("readback.begin", disk=tape.victim), lambda event: event | {"at": tape.on_at - 0.1})


@edit("contents", FAIL, ("watched_while_writing",), "kernel")
def grace_period_of_nine_seconds(tape: Tape) -> Tape:
    """It ended, but for so long a CPU did not schedule."""
    return tape.insert({"type": "dut.grace", "at": tape.judged_at + 0.1, "seconds": 9.0, "ended": True})


@edit("contents", UNKNOWN, ("watched_while_writing",))
def a_stick_in_a_free_port_of_the_rig(tape: Tape) -> Tape:
    """It shares the bus with the disks that are judged."""
    was = tape.attached(tape.survivor)
    stick = {"disk": "", "kname": "sdx", "diskseq": 77, "devt": "65:112", "serial": "ODD", "sockets": []}
    place = was["place"].partition("/")[0] + "/4:0"
    return tape.insert(was | stick | {"at": tape.quiet_at, "place": place, "sysfs": "/sys/block/sdx", "report": 0})


# --- healthy ----------------------------------------------------------------------------------------------------------


@edit("contents", PASS, WATCHED)
def a_kernel_without_modules(tape: Tape) -> Tape:
    """All drivers are built in."""
    return tape.map(of("dut.state"), lambda event: event | {"modules": {}})


@edit("contents", PASS, CUT)
def samples_a_tenth_of_a_second_late(tape: Tape) -> Tape:
    """Threads stamp what they read at their own pace."""
    return tape.map(SAMPLES, lambda event: event | {"at": event["at"] + 0.1})


@edit("contents", PASS, CUT)
def a_program_uses_a_bridge_without_claiming_it(tape: Tape) -> Tape:
    """The program's mistake disturbs no disk."""
    names = tape.names(tape.survivor)
    text = f"usb {names.usb}: usbfs: process 345 (hdparm) did not claim interface 0 before use"
    return tape.say(tape.quiet_at, text, level=4)
