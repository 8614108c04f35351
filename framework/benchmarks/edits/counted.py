"""Edits that one counter, one step or one announcement contradicts: what a disk counted, what a switch or a process
answered, what the kernel announced long after a disk had come."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import FAIL, UNKNOWN, Apply, add, edit
from benchmarks.edits.tape import Tape

ARRAY = ("an_array_loses_a_member_and_gets_it_back",)
FILES = ("power_fails_where_a_filesystem_once_lost_files",)
WATCHED = ("watched_while_writing", "watched_many_cuts")
WRITING = ("watched_while_writing", "while_writing")
WRITES = 4
"""The place of the number of writes in a row of a sample."""


def one(tape: Tape, event: Event, **fields: object) -> Tape:
    """This event has these values."""
    return tape.map(lambda each: each == event, lambda each: each | fields)


def counted(tape: Tape, since: float, change: Callable[[list[int], float], list[int]]) -> Tape:
    """The survivor's counters are other ones from a time on."""
    keys = tape.keys(tape.survivor)

    def edited(event: Event) -> Event:
        rows = {
            kname: change(list(row), event["at"]) if (kname, row[0]) in keys else row
            for kname, row in event["disks"].items()
        }
        return event | {"disks": rows}

    return tape.map(both(of("sample"), lambda event: event["at"] >= since), edited)


# --- counters ---------------------------------------------------------------------------------------------------------


@edit("counted", (UNKNOWN, FAIL), WRITING)
def requests_without_a_sector(tape: Tape) -> Tape:
    """A million requests were completed that moved nothing."""
    return counted(tape, tape.off_at, lambda row, at: [*row[:WRITES], row[WRITES] + 1_000_000, *row[WRITES + 1 :]])


@edit("counted", (UNKNOWN, FAIL), WRITING)
def bytes_without_a_request(tape: Tape) -> Tape:
    """Fifty megabytes were written while the number of writes stood still."""
    done: list[int] = []

    def change(row: list[int], at: float) -> list[int]:
        done.append(row[WRITES])
        row[2] += int(10_000_000 * (at - tape.off_at))
        return [*row[:WRITES], done[0], *row[WRITES + 1 :]]

    return counted(tape, tape.off_at, change)


@edit("counted", (UNKNOWN, FAIL), WRITING)
def a_disk_that_was_never_announced_is_sampled(tape: Tape) -> Tape:
    """It came without a word of the kernel."""
    return tape.map(
        both(of("sample"), lambda event: event["at"] > tape.off_at),
        lambda event: event | {"disks": event["disks"] | {"sdq": [77, 4096, 0, 1, 0, 0, 0, 4]}},
    )


# --- loads, jobs and switches -----------------------------------------------------------------------------------------


@edit("counted", (UNKNOWN, FAIL), WRITING)
def a_request_took_longer_than_its_load(tape: Tape) -> Tape:
    """It was in flight before the load began."""
    end = tape.first(of("load.end", disk=tape.victim))
    return one(tape, end, longest=end["at"] - tape.first(of("load.begin", disk=tape.victim))["at"] + 5.0)


add(
    "counted",
    "the writer that fills a disk cannot be ended",
    FAIL,
    "Its process hangs.",
    lambda tape: one(tape, tape.first(of("ledger.end")), stuck=True, status=None),
    ("five_power_cuts_in_a_row", "power_fails_between_flushes"),
)
add(
    "counted",
    "a switch acknowledges and refuses",
    UNKNOWN,
    "Whether the cable was cut is not known.",
    lambda tape: one(tape, tape.edge("off", "acknowledged"), agrees=False),
    WRITING,
)


# --- announcements ----------------------------------------------------------------------------------------------------


def _announced(path: Callable[[Tape], str], subsystem: str, devtype: str, action: str = "change") -> Apply:
    def apply(tape: Tape) -> Tape:
        event = {"type": "uevent", "at": tape.judged_at - 0.5, "action": action, "subsystem": subsystem}
        return tape.insert(event | {"devpath": path(tape), "devtype": devtype, "disks": [tape.survivor]})

    return apply


def _block(tape: Tape) -> str:
    return str(tape.attached(tape.survivor)["sysfs"]).removeprefix("/sys")


def _usb(tape: Tape) -> str:
    return "/" + tape.names(tape.survivor).devpath


add(
    "counted",
    "the kernel announces a change of the USB device of a survivor",
    (UNKNOWN, FAIL),
    "Nothing that was done to it changes it.",
    _announced(_usb, "usb", "usb_device"),
    WATCHED,
)
add(
    "counted",
    "a block device loses its driver",
    (UNKNOWN, FAIL),
    "It has none.",
    _announced(_block, "block", "disk", "unbind"),
    WATCHED,
)


# --- properties and the kernel's things -------------------------------------------------------------------------------


def _at_the_end(name: str, value: str) -> Apply:
    def apply(tape: Tape) -> Tape:
        read = [event for event in tape.all(of("disk.properties", disk=tape.survivor)) if event["moment"] == "end"][-1]
        return one(tape, read, values=read["values"] | {name: value})

    return apply


for _name, _value in (("tx_lanes", "2"), ("max_sectors_kb", "4")):
    add(
        "counted",
        f"a survivor has {_name} {_value} at the end",
        (UNKNOWN, FAIL),
        "Nobody set that, and an emulated disk does not improve.",
        _at_the_end(_name, _value),
        WATCHED,
    )


@edit("counted", FAIL, WATCHED, "memory")
def twenty_megabytes_by_the_censuses(tape: Tape) -> Tape:
    """The kernel holds them after one cut."""
    last = tape.all(of("census"))[-1]
    return one(tape, last, memory=last["memory"] | {"SUnreclaim": last["memory"]["SUnreclaim"] + (20 << 20)})


@edit("counted", (UNKNOWN, FAIL), WATCHED)
def a_census_counts_a_disk_of_another_serial_number(tape: Tape) -> Tape:
    """No disk was announced with it."""
    last = tape.all(of("census"))[-1]
    things = dict(last["things"])
    things["block device"] = [name.replace("(serial ", "(serial X") for name in things["block device"]]
    return one(tape, last, things=things)


# --- arrays and filesystems -------------------------------------------------------------------------------------------


@edit("counted", (UNKNOWN, FAIL), ARRAY)
def a_faulty_member_is_whole_again(tape: Tape) -> Tape:
    """In one state in the middle of its rebuild it is faulty, and nothing was done to the array."""
    states = [event for event in tape.all(of("array.state")) if event["values"].get("sync_action") == "recover"]
    state = states[len(states) // 2]
    members = {disk: ["none", "faulty"] if disk in tape.victims else says for disk, says in state["members"].items()}
    return one(tape, state, members=members)


@edit("counted", FAIL, ARRAY, "array")
def a_filesystem_on_an_array_becomes_read_only(tape: Tape) -> Tape:
    """The array was to do without the member that was cut."""
    name = tape.first(of("array.made"))["kname"]
    lines = (
        f"EXT4-fs error (device {name}): Detected aborted journal",
        f"EXT4-fs ({name}): Remounting filesystem read-only",
    )
    return tape.say(tape.off_at + 1.0, *lines, level=2)


@edit("counted", (UNKNOWN, FAIL), FILES)
def a_filesystem_cannot_be_mounted_a_second_time(tape: Tape) -> Tape:
    """It could be mounted for the scan, its checker found nothing, and then it could not be mounted."""
    removal = [event for event in tape.all(of("files.scan.begin")) if event.get("removing")][-1]
    return one(tape, removal, mount_errno=117)


@edit("counted", (UNKNOWN, FAIL), FILES)
def making_a_filesystem_takes_two_minutes(tape: Tape) -> Tape:
    """The disk is empty, and small."""
    made = tape.first(of("action", action="mkfs"))
    longer = tape.wait(made["at"] - 0.01, 120.0)
    return longer.map(of("action", action="mkfs"), lambda event: event | {"seconds": event["seconds"] + 120.0})
