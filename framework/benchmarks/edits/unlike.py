"""Edits after which a record is unlike any that a bench makes: steps that cannot follow each other, and things that are
not what the rig file says. Beside them, what healthy benches do."""

from __future__ import annotations

from typing import Any

from benchmarks.edits.events import Event, Which, between, both, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, Due, add, edit
from benchmarks.edits.tape import Tape

CUT = ("watched_while_writing", "while_idle")
WATCHED = ("watched_while_writing",)
MANY = ("watched_many_cuts",)


def _rig(name: str, why: str, due: Due, change: Any, on: tuple[str, ...] = CUT) -> None:
    def apply(tape: Tape) -> Tape:
        return tape.change(of("run.begin"), rig=change(tape))

    add("unlike", name, due, why, apply, on)


def _disks(tape: Tape, **fields: Any) -> dict[str, Any]:
    disks = [disk | fields if disk["name"] == tape.survivor else disk for disk in tape.rig["disk"]]
    return tape.rig | {"disk": disks}


_rig("another LUN by the rig file", "The disk is another unit.", UNKNOWN, lambda tape: _disks(tape, lun=1))
_rig("the LUN of the rig file", "It is that unit.", PASS, lambda tape: _disks(tape, lun=0))
_rig(
    "a switch with one port",
    "The port that was switched is not there.",
    UNKNOWN,
    lambda tape: tape.rig | {"switch": [switch | {"ports": 1} for switch in tape.rig["switch"]]},
)
add(
    "unlike",
    "planned twice and run once",
    UNKNOWN,
    "One of the two was not run.",
    lambda tape: tape.change(of("run.begin"), planned=[tape.first(of("scenario.begin"))["id"]] * 2),
    CUT,
)
add(
    "unlike",
    "a survivor that had been set aside",
    UNKNOWN,
    "It is said to be dead, and it is written.",
    lambda tape: tape.change(of("scenario.begin"), without=[tape.survivor]),
    WATCHED,
)
add(
    "unlike",
    "load on a name that nothing had",
    UNKNOWN,
    "It wrote to something else.",
    lambda tape: tape.change(of("load.begin", disk=tape.survivor), kname="sdx"),
    WATCHED,
)


def _back(tape: Tape) -> Which:
    was = tape.attached(tape.victim, 1)
    return lambda event: event == was


add(
    "unlike",
    "comes back as a CD-ROM",
    FAIL,
    "It is something else now.",
    lambda tape: tape.change(_back(tape), scsi_type=5),
    CUT,
    "victim",
)
for _share, _due in ((1.3, UNKNOWN), (0.8, UNKNOWN), (1.02, PASS)):

    def _said(tape: Tape, share: float = _share) -> Tape:
        change = lambda event: event | {"written_bytes": int(event["written_bytes"] * share)}  # noqa: E731
        return tape.map(of("load.end", disk=tape.survivor), change)

    add("unlike", f"load wrote {_share:g} of what its disk counted", _due, "The two are the same.", _said, WATCHED)


def _at_the_end(name: str, due: Due, why: str, **values: str) -> None:
    def apply(tape: Tape) -> Tape:
        change = lambda event: event | {"values": event["values"] | values}  # noqa: E731
        return tape.map(of("disk.properties", disk=tape.survivor, moment="end"), change)

    add("unlike", name, due, why, apply, WATCHED, "survivor" if due is FAIL else "")


_at_the_end("may be suspended at the end", FAIL, "Nobody changed that.", power_control="auto")
_at_the_end("smaller requests at the end", FAIL, "It is driven otherwise.", max_sectors_kb="8")
_at_the_end("another queue depth at the end", PASS, "The SCSI layer adapts it.", queue_depth="2")


@edit("unlike", UNKNOWN, CUT)
def sent_long_before_it_was_commanded(tape: Tape) -> Tape:
    """One of the two times is wrong, and nobody left early."""
    return tape.change(of("edge", state="off", phase="acknowledged"), sent=tape.off_at - 10.0)


@edit("unlike", UNKNOWN, CUT)
def the_usb_device_never_left(tape: Tape) -> Tape:
    """Its uevents add it twice, and remove it never."""
    parts = ("unbind", "remove")
    inside = between(tape.off_at, tape.on_at)
    return tape.drop(lambda e: e["type"] == "uevent" and e["subsystem"] == "usb" and e["action"] in parts and inside(e))


@edit("unlike", UNKNOWN, CUT)
def the_usb_device_never_came_back(tape: Tape) -> Tape:
    """Its disk was announced, and it was not."""
    inside = between(tape.on_at, tape.back_at(tape.victim))
    return tape.drop(lambda e: e["type"] == "uevent" and e["subsystem"] == "usb" and e["action"] == "add" and inside(e))


@edit("unlike", UNKNOWN, CUT)
def no_uevent_of_the_removal(tape: Tape) -> Tape:
    """The disk's removal is made of a uevent, which is missing."""
    inside = between(tape.off_at, tape.on_at)
    return tape.drop(lambda e: e["type"] == "uevent" and e["subsystem"] == "block" and inside(e))


@edit("unlike", FAIL, WATCHED)
def a_storage_thread_is_gone(tape: Tape) -> Tape:
    """Every host is there, and the thread of one is not."""

    def fewer(event: Event) -> Event:
        threads = list(event["things"]["kernel thread"])
        threads.remove("usb-storage")
        return event | {"things": event["things"] | {"kernel thread": threads}}

    return tape.map(of("census", moment="end"), fewer)


@edit("unlike", UNKNOWN, WATCHED)
def an_interrupt_storm_that_no_sample_shows(tape: Tape) -> Tape:
    """The kernel counted millions of interrupts, and its samples thousands."""
    change = lambda event: event | {"interrupts": event["interrupts"] | {"28 xhci_hcd": 50_000_000}}  # noqa: E731
    return tape.map(of("dut.state", moment="end"), change)


@edit("unlike", UNKNOWN, CUT)
def a_request_never_ends(tape: Tape) -> Tape:
    """It is in flight in the last samples, when nobody uses the disk any more."""
    kname, last = tape.attached(tape.survivor)["kname"], tape.all(of("sample"))[-6]["at"]

    def hang(event: Event) -> Event:
        row = event["disks"].get(kname)
        return event | {"disks": event["disks"] | {kname: [*row[:5], 1, *row[6:]]}} if row else event

    return tape.map(both(of("sample"), between(last, float("inf"))), hang)


@edit("unlike", FAIL, WATCHED)
def a_worker_spins_until_the_end(tape: Tape) -> Tape:
    """Four seconds of a whole CPU for a worker of the hub driver, and then the record ends."""
    busy = {"threads": {"kworker/0:2+usb_hub_wq (45)": 0.97}}
    looks = tape.all(of("dut.activity"))[-3:]
    return tape.map(lambda event: event in looks, lambda event: event | busy)


@edit("unlike", (UNKNOWN, FAIL), WATCHED)
def a_writer_blocked_until_the_end(tape: Tape) -> Tape:
    """It has not run again when the record ends."""
    at = tape.judged_at
    task = {
        "pid": 345,
        "name": "python3",
        "kernel": False,
        "seconds": 3.4,
        "since": at - 3.4,
        "wchan": "folio_wait_bit",
    }
    return tape.insert({"type": "task.blocked", "at": at} | task)


@edit("unlike", UNKNOWN, CUT)
def skipped_after_its_cut(tape: Tape) -> Tape:
    """It was not finished, whatever came of it."""
    skipped = {"id": tape.first(of("scenario.begin"))["id"], "reason": "no more time"}
    return tape.insert({"type": "scenario.skipped", "at": tape.on_at + 0.1} | skipped)


add(
    "unlike",
    "a DUT without a kernel's version",
    UNKNOWN,
    "Which kernel was tested is not known.",
    lambda tape: tape.change(of("dut.ready"), kernel=""),
    WATCHED,
)


@edit("unlike", UNKNOWN, CUT)
def the_medium_of_a_survivor_is_changed(tape: Tape) -> Tape:
    """The bench looked at it from outside."""
    seen = {"disk": tape.survivor, "ok": False, "method": "image", "detail": "sector 77 differs"}
    return tape.insert({"type": "outside", "at": tape.judged_at - 0.01} | seen)


@edit("unlike", FAIL, CUT)
def a_survivor_could_not_be_reset(tape: Tape) -> Tape:
    """The kernel was asked to, and could not."""
    asked = {"disk": tape.survivor, "until": tape.off_at + 0.9, "resets": 0, "failed": 3, "detail": "EIO"}
    return tape.insert({"type": "disk.recovered", "at": tape.off_at + 0.3} | asked)


@edit("unlike", PASS, MANY)
def samples_that_are_rarer(tape: Tape) -> Tape:
    """Every other one is enough."""
    kept = {id(event) for event in tape.all(of("sample"))[::2]}
    return tape.lose(lambda event: event["type"] == "sample" and id(event) not in kept)
