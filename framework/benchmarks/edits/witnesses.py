"""Edits after which one witness contradicts another: a load and its disk's counters, uevents and attachments, the plan
and what was done. Beside them, what a healthy bench and its neighbours do."""

from __future__ import annotations

from typing import Any

from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import CUT, FAIL, LOADED, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

WATCHED = ("watched_while_writing", "while_writing", "while_idle")
STAMPED = ("watched_while_writing", "while_writing")


def _load_ends(name: str, why: str, **fields: Any) -> None:
    def apply(tape: Tape) -> Tape:
        return tape.map(of("load.end", disk=tape.survivor), lambda event: event | fields)

    add("witnesses", name, UNKNOWN, why, apply, LOADED)


_load_ends(
    "survivor's load was killed in time",
    "It was asked to end, and a signal ended it: why is not known.",
    exit_status=-9,
)
_load_ends(
    "survivor's load ended with status 1 as asked", "A load that is asked to end ends with 0 or 128.", exit_status=1
)
_load_ends(
    "survivor's load reports an error and none",
    "Its message is of an error, and its errno is 0.",
    message="fio: io_u error on file /dev/sda: Input/output error: read offset=0, buflen=65536",
)
_load_ends(
    "survivor's load read and wrote nothing", "Its disk counted megabytes.", read_bytes=0, written_bytes=0, longest=0.1
)


@edit("witnesses", UNKNOWN, LOADED)
def survivors_load_ended_twice(tape: Tape) -> Tape:
    """Lines are doubled."""
    end = tape.first(of("load.end", disk=tape.survivor))
    place = tape.events.index(end)
    return Tape((*tape.events[:place], end, *tape.events[place:]))


@edit("witnesses", UNKNOWN, ("watched_while_writing",))
def survivors_load_begun_under_the_victims_name(tape: Tape) -> Tape:
    """What was loaded was not the disk that is judged."""
    return tape.change(of("load.begin", disk=tape.survivor), kname=tape.attached(tape.victim)["kname"])


@edit("witnesses", UNKNOWN, CUT)
def another_agent_in_the_middle(tape: Tape) -> Tape:
    """A second agent answered, and nobody says that the first was lost: what lay between was seen by neither."""
    return tape.insert(tape.first(of("dut.ready")) | {"at": tape.off_at + 0.4, "how": "connected"})


@edit("witnesses", (UNKNOWN, FAIL), CUT)
def only_an_uevent_says_that_a_survivor_left(tape: Tape) -> Tape:
    """The kernel announced its removal; the agent's list and the samples still have it."""
    was = tape.attached(tape.survivor)
    uevent = {
        "type": "uevent",
        "at": tape.off_at + 0.4,
        "action": "remove",
        "subsystem": "block",
        "devtype": "disk",
        "devpath": was["sysfs"].removeprefix("/sys"),
        "disks": [tape.survivor],
    }
    return tape.insert(uevent)


@edit("witnesses", UNKNOWN, CUT)
def victim_sampled_for_half_a_second_after_it_left(tape: Tape) -> Tape:
    """It transfers data although the kernel has no such disk any more."""
    was, gone = tape.attached(tape.victim), tape.gone_at(tape.victim)

    def haunt(event: Event) -> Event:
        row = [was["diskseq"], 0, int(9e6 + 1e6 * (event["at"] - gone)), 0, 99, 0, 1, 900]
        return event | {"disks": event["disks"] | {was["kname"]: row}}

    return tape.map(both(of("sample"), lambda event: gone < event["at"] < gone + 0.6), haunt)


@edit("witnesses", UNKNOWN, CUT)
def requests_in_flight_as_the_record_ends(tape: Tape) -> Tape:
    """Two reads of a survivor are not completed in the last second, and too little time is left to know more."""
    kname, last = tape.attached(tape.survivor)["kname"], tape.last(of("sample"))

    def pend(event: Event) -> Event:
        row = last["disks"][kname]
        return event | {"disks": event["disks"] | {kname: [*row[:5], 2, *row[6:]]}}

    return tape.map(both(of("sample"), lambda event: event["at"] > last["at"] - 1.0), pend)


@edit("witnesses", UNKNOWN, CUT)
def port_read_back_before_it_acknowledged(tape: Tape) -> Tape:
    """The answer is about the port before it was switched."""
    return tape.change(of("edge", state="on", phase="read-back"), at=tape.on_at - 0.3)


@edit("witnesses", UNKNOWN, CUT)
def fault_of_another_cut_point(tape: Tape) -> Tape:
    """The fault that was to be made is not the cut that was made."""
    fault = {"kind": "cut", "points": ["hub9.cable"], "when": {"kind": "now"}, "permanent": False}
    tape = tape.change(of("cut.armed"), fault=1)
    return tape.insert({"type": "fault", "at": tape.off_at - 0.01, "number": 1, "fault": fault})


@edit("witnesses", UNKNOWN, CUT)
def fault_of_a_cut_not_on_record(tape: Tape) -> Tape:
    """The run could not be made again from its record."""
    return tape.change(of("cut.armed"), fault=1)


for _what in ("System", "Controller"):

    def _halts(tape: Tape, what: str = _what) -> Tape:
        text = f"xhci_hcd 0000:00:10.0: WARNING: Host {what} Error"
        return tape.insert({"type": "kernel", "at": tape.off_at + 0.3, "text": text, "level": 4})

    add("witnesses", f"host {_what.lower()} error at the cut", FAIL, "The driver halts the controller.", _halts, CUT)


@edit("witnesses", PASS, CUT)
def somebody_set_the_controllers_clock(tape: Tape) -> Tape:
    """Wall clocks are for people; nothing is measured by them."""
    return tape.change(of("scenario.end"), wall="2033-01-01T00:00:00.000Z")


@edit("witnesses", PASS, CUT)
def a_keyboard_is_plugged_in_elsewhere(tape: Tape) -> Tape:
    """Another controller is none of the rig's business."""
    at = tape.off_at + 0.3
    text = "usb 7-1: new low-speed USB device number 2 using uhci_hcd"
    return tape.insert({"type": "kernel", "at": at, "text": text})


@edit("witnesses", PASS, CUT)
def a_daemon_reports_an_oops(tape: Tape) -> Tape:
    """It was written to /dev/kmsg by a process."""
    text = "BUG: kernel NULL pointer dereference, address: 0000000000000018"
    return tape.insert({"type": "kernel", "at": tape.off_at + 0.3, "text": text, "level": 1, "facility": 3})


@edit("witnesses", PASS, CUT)
def network_goes_down(tape: Tape) -> Tape:
    """Other drivers log what they like."""
    text = "e1000e 0000:00:19.0 eth0: NIC Link is Down"
    return tape.insert({"type": "kernel", "at": tape.off_at + 0.3, "text": text})
