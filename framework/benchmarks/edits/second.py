"""Edits of one field of one event, which a second witness contradicts: another event, the kernel log, a counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.edits.events import Event, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

ARRAY = ("an_array_loses_a_member_and_gets_it_back",)
FILES = ("power_fails_where_a_filesystem_once_lost_files",)
STUDY = ("controllers_side_by_side",)
WATCHED = ("watched_while_writing", "watched_many_cuts")
WRITING = ("watched_while_writing", "while_writing")
DIES = ("a_disk_dies_in_use",)
AT_ONCE = ("the_whole_tree_is_cut_in_operation",)


def one(tape: Tape, event: Event, **fields: Any) -> Tape:
    """This event has these values."""
    return tape.map(lambda each: each == event, lambda each: each | fields)


# --- arrays -----------------------------------------------------------------------------------------------------------


def _states(tape: Tape) -> list[Event]:
    return [event for event in tape.all(of("array.state")) if event["values"]]


@edit("second witness", FAIL, ARRAY)
def an_array_sets_a_member_aside_that_was_not_cut(tape: Tape) -> Tape:
    """In its last state the member that kept its cable is faulty."""
    last, kept = _states(tape)[-1], set(tape.first(of("array.made"))["members"]) - set(tape.victims)
    members = {disk: [slot, "faulty" if disk in kept else says] for disk, (slot, says) in last["members"].items()}
    return one(tape, last, members=members)


add(
    "second witness",
    "an array is read-only for a moment",
    FAIL,
    "It takes no write, and nobody asked for that.",
    lambda tape: one(tape, _states(tape)[-3], values=_states(tape)[-3]["values"] | {"array_state": "readonly"}),
    ARRAY,
)


def _line(name: str, due: Any, why: str, text: Callable[[Tape], str], on: tuple[str, ...], level: int = 6) -> None:
    """The kernel logs a line in the middle of the time after the return, or of the record."""

    def apply(tape: Tape) -> Tape:
        at = (tape.on_at + tape.judged_at) / 2 if tape.all(of("edge", state="on")) else tape.judged_at - 2.0
        return tape.say(at, text(tape), level=level)

    add("second witness", name, due, why, apply, on)


_line(
    "the size of an array changes",
    FAIL,
    "What is written beyond its new end is lost.",
    lambda tape: f"{tape.first(of('array.made'))['kname']}: detected capacity change from 16384 to 8192",
    ARRAY,
)
_line(
    "an array goes on without any member",
    FAIL,
    "Only one was cut.",
    lambda tape: f"md/raid1:{tape.first(of('array.made'))['kname']}: Operation continuing on 0 devices.",
    ARRAY,
    2,
)


@edit("second witness", (UNKNOWN, FAIL), ARRAY)
def a_recovery_is_interrupted_by_the_log_alone(tape: Tape) -> Tape:
    """Nothing was cut, lost or done to the array just then, and its states say that it was completed."""
    tape = tape.wait(tape.on_at + 0.6, 30.0)
    return tape.say(tape.on_at + 15.0, f"md: {tape.first(of('array.made'))['kname']}: recovery interrupted.")


add(
    "second witness",
    "the result of a check of an array is missing",
    UNKNOWN,
    "Its states show that it was checked.",
    lambda tape: tape.drop(of("array.acted", action="check")),
    ARRAY,
)
add(
    "second witness",
    "a member was read only in part",
    UNKNOWN,
    "What the other members hold there is compared with nothing.",
    lambda tape: one(
        tape,
        tape.all(of("leg.begin"))[-1],
        extents=[[first, size // 2] for first, size in tape.all(of("leg.begin"))[-1]["extents"]],
    ),
    ARRAY,
)
add(
    "second witness",
    "a member was read for another disk's stamps",
    UNKNOWN,
    "Its own stamps would count as another's.",
    lambda tape: one(tape, tape.all(of("leg.begin"))[-1], device=7),
    ARRAY,
)

add(
    "second witness",
    "an array never counts its missing member",
    (UNKNOWN, FAIL),
    "Its members' states show that one was missing.",
    lambda tape: tape.map(
        of("array.state"),
        lambda event: event | {"values": event["values"] | ({"degraded": "0"} if event["values"] else {})},
    ),
    ARRAY,
)
add(
    "second witness",
    "a recovery shows in the log alone",
    (UNKNOWN, FAIL),
    "Whether the member was rebuilt is not known.",
    lambda tape: tape.map(
        of("array.state"),
        lambda event: (
            event
            | {
                "values": event["values"]
                | ({"sync_action": "idle"} if event["values"].get("sync_action") == "recover" else {})
            }
        ),
    ),
    ARRAY,
)
add(
    "second witness",
    "no sample of any disk",
    UNKNOWN,
    "Whether anybody stood still is not known.",
    lambda tape: tape.drop(of("sample")),
    ARRAY,
)

# --- studies ----------------------------------------------------------------------------------------------------------

add(
    "second witness",
    "a measurement of another block size than its load",
    UNKNOWN,
    "What was measured is not known.",
    lambda tape: one(tape, tape.all(of("measured"))[5], block=tape.all(of("measured"))[5]["block"] * 4),
    STUDY,
)
add(
    "second witness",
    "a measurement of another plan than those beside it",
    UNKNOWN,
    "One of the two plans is another study's.",
    lambda tape: one(tape, tape.all(of("measured"))[3], planned=12),
    STUDY,
)
add(
    "second witness",
    "a meter reads forty megawatts",
    UNKNOWN,
    "No outlet gives that.",
    lambda tape: tape.insert(
        {
            "type": "meter.opened",
            "at": tape.judged_at - 5.0,
            "meter": "shelf",
            "driver": "virtual",
            "disks": list(tape.disks),
            "side": "mains",
            "rate": 10.0,
        },
        {"type": "power", "at": tape.judged_at - 4.0, "meter": "shelf", "uncertainty": 0.2, "watts": 4e7},
    ),
    STUDY,
)

# --- disks ------------------------------------------------------------------------------------------------------------


def _back(name: str, why: str, fields: Callable[[Tape, Event], Event], on: tuple[str, ...] = WRITING) -> None:
    """The victim's return was announced with other fields."""

    def apply(tape: Tape) -> Tape:
        back = tape.attached(tape.victim, 1)
        return one(tape, back, **fields(tape, back))

    add("second witness", f"returned {name}", (UNKNOWN, FAIL), why, apply, on)


_back(
    "with a survivor's device number",
    "Two disks cannot have one.",
    lambda tape, back: {"devt": tape.attached(tape.survivor)["devt"]},
)
_back("at no place", "Whether it is where it was is not known.", lambda tape, back: {"place": ""})
_back("at no speed", "Whether its link is as fast is not known.", lambda tape, back: {"speed": ""})
_back("under two kernel names", "Which of them it has is not known.", lambda tape, back: {"sysfs": back["sysfs"] + "q"})
_back(
    "with another driver than its properties say",
    "Which is true is not known.",
    lambda tape, back: {"driver": "uas" if back["driver"] != "uas" else "usb-storage"},
    WATCHED,
)


@edit("second witness", FAIL, WATCHED)
def the_timeout_of_a_survivor_is_an_hour_at_the_end(tape: Tape) -> Tape:
    """Only the kernel can have changed it: the disk had another one, and so had all that plugpull set."""
    last = [event for event in tape.all(of("disk.properties", disk=tape.survivor)) if event["moment"] == "end"][-1]
    return one(tape, last, values=last["values"] | {"timeout": "3600"})


@edit("second witness", UNKNOWN, ("while_idle",))
def an_idle_survivor_is_read(tape: Tape) -> Tape:
    """Nothing on record reads it, and its counters grow by 8 MB a second."""
    keys, since = tape.keys(tape.survivor), tape.off_at

    def more(event: Event) -> Event:
        read = int((event["at"] - since) * 8e6)
        rows = {
            kname: [row[0], row[1] + read, row[2], row[3] + read // 65536, *row[4:]] if (kname, row[0]) in keys else row
            for kname, row in event["disks"].items()
        }
        return event | {"disks": rows}

    return tape.map(lambda event: event["type"] == "sample" and event["at"] > since, more)


@edit("second witness", (UNKNOWN, FAIL), WRITING)
def a_usb_device_comes_where_the_rig_has_none(tape: Tape) -> Tape:
    """Somebody plugged something into the bench."""
    names = tape.names(tape.survivor)
    path = names.devpath.rpartition("/")[0] + "/9-9"
    return tape.insert(
        {
            "type": "uevent",
            "at": tape.off_at + 0.2,
            "action": "add",
            "subsystem": "usb",
            "devpath": path,
            "devtype": "usb_device",
        }
    )


# --- the DUT ----------------------------------------------------------------------------------------------------------


@edit("second witness", UNKNOWN, WATCHED)
def the_cpu_time_of_the_dut_falls(tape: Tape) -> Tape:
    """Whether it was starved is not known."""
    clocks = [event for event in tape.all(of("clock")) if event.get("ran") is not None]
    return one(tape, clocks[len(clocks) // 2], ran=0.01)


add(
    "second witness",
    "suspended, and its kernel did not say so",
    (UNKNOWN, FAIL),
    "A suspended DUT logs it.",
    lambda tape: tape.insert(
        {"type": "dut.suspended", "at": tape.off_at + 0.2, "until": tape.off_at + 0.4, "ok": True}
    ),
    WRITING,
)
add(
    "second witness",
    "no timeout was shortened",
    UNKNOWN,
    "What the kernel reports after them is not on record.",
    lambda tape: tape.change(of("dut.timers", moment="begin"), changed=[]),
    WATCHED,
)
add(
    "second witness",
    "the rig file is missing",
    UNKNOWN,
    "Whom the cuts take is not known.",
    lambda tape: tape.change(of("run.begin"), rig={}),
    WATCHED,
)


def _end(name: str, due: Any, why: str, field: str, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
    def apply(tape: Tape) -> Tape:
        return tape.map(
            of("dut.state", moment="end"), lambda event: event | {field: event[field] | change(event[field])}
        )

    add("second witness", name, due, why, apply, WATCHED)


_end(
    "a thousand threads more",
    FAIL,
    "They are left over.",
    "memory",
    lambda memory: {"KernelStack": memory["KernelStack"] + (16 << 20)},
)
_end("a driver is held less often", UNKNOWN, "Somebody let go of it.", "modules", lambda modules: {"usbcore": 0})
_end(
    "memory below zero",
    (UNKNOWN, FAIL),
    "There cannot be less than none.",
    "memory",
    lambda memory: {"PageTables": -4096},
)

_line(
    "the host controller has an error",
    (UNKNOWN, FAIL),
    "No cut of an emulated disk causes it.",
    lambda tape: "xhci_hcd 0000:00:10.0: ERROR unknown event type 37",
    WRITING,
    4,
)


# --- steps of the bench -----------------------------------------------------------------------------------------------

add(
    "second witness",
    "a port fewer was switched at once",
    UNKNOWN,
    "One of them acknowledged, and was not switched.",
    lambda tape: tape.map(of("cut.switched", state="off"), lambda event: event | {"ports": event["ports"] - 1}),
    AT_ONCE,
)
add(
    "second witness",
    "the victim's load was not allowed to write",
    (UNKNOWN, FAIL),
    "That is not what a program gets of a disk that is gone.",
    lambda tape: tape.change(of("load.end", disk=tape.victim), errno=13),
    DIES,
)
add(
    "second witness",
    "a load ended before it was asked to",
    (UNKNOWN, FAIL),
    "It cannot know.",
    lambda tape: tape.map(
        of("load.end", disk=tape.survivor, asked=True), lambda event: event | {"asked_at": event["at"] + 1.0}
    ),
    ("while_writing", "watched_while_writing"),
)
add(
    "second witness",
    "a load was asked to end before it could catch the signal",
    PASS,
    "It ends by the signal that it is asked with.",
    lambda tape: tape.change(of("load.end", disk=tape.survivor), exit_status=-2),
    ("while_writing",),
)
add(
    "second witness",
    "no filesystem could be made",
    (UNKNOWN, FAIL),
    "Nothing can be said of what is on it.",
    lambda tape: tape.change(of("action", action="mkfs"), ok=False, detail="Input/output error"),
    FILES,
)
add(
    "second witness",
    "another filesystem was checked",
    UNKNOWN,
    "The checker is not that of the filesystem that was written.",
    lambda tape: tape.change(of("files.begin"), fstype="vfat"),
    FILES,
)


@edit("second witness", (UNKNOWN, FAIL), FILES)
def a_mount_takes_fifty_seconds(tape: Tape) -> Tape:
    """It took less than three on every healthy bench."""
    mount = next(event for event in tape.all(of("action", action="mount")) if event["at"] > tape.on_at)
    tape = tape.wait(mount["at"] - 0.01, 50.0)
    later = next(event for event in tape.all(of("action", action="mount")) if event["at"] > tape.on_at)
    return one(tape, later, seconds=50.1)


@edit("second witness", UNKNOWN, FILES)
def a_writer_ended_before_its_last_operation(tape: Tape) -> Tape:
    """Its ledger goes on."""
    end = tape.first(of("files.end"))
    return tape.drop(lambda event: event == end).insert(end | {"at": tape.off_at - 3.0})
