"""Edits after which the record says what cannot be, or what the rig file and the plan do not say."""

from __future__ import annotations

import base64
import struct
from typing import Any

from benchmarks.edits.events import Event, between, both, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

WRITING = ("while_writing", "watched_while_writing")
CUT = ("while_writing", "while_idle", "watched_while_writing")
AT_ONCE = ("the_whole_tree_is_cut_in_operation", "a_disk_and_then_the_tree_are_replugged")
MANY = ("many_cuts_leave_nothing_behind", "five_power_cuts_in_a_row")

# --- times and counts -------------------------------------------------------------------------------------------------


@edit("untrue", (UNKNOWN, FAIL), WRITING)
def samples_of_another_time(tape: Tape) -> Tape:
    """Forty samples from the beginning stand among those after the cut: two records are mixed."""
    early = [dict(event) for event in tape.all(of("sample"))[:40]]
    place = next(i for i, event in enumerate(tape.events) if event["type"] == "sample" and event["at"] > tape.off_at)
    return Tape((*tape.events[:place], *early, *tape.events[place:]))


add(
    "untrue",
    "the log goes back in time",
    (UNKNOWN, FAIL),
    "Messages with later numbers are stamped long before those with earlier ones.",
    lambda tape: tape.map(
        lambda event: event["type"] == "kernel" and event["at"] > tape.off_at,
        lambda event: event | {"at": event["at"] - 500.0},
    ),
    CUT,
)
add(
    "untrue",
    "the log is stamped by an unknown clock",
    UNKNOWN,
    "The time decides which message a cut explains, and it is known to 30 s only.",
    lambda tape: tape.change(of("dut.ready"), log_clock_error=30.0),
    CUT,
)


def _negative(row: list[int]) -> list[int]:
    return [*row[:6], -1, *row[7:]]


add(
    "untrue",
    "requests in flight are negative",
    (UNKNOWN, FAIL),
    "There cannot be less than none.",
    lambda tape: tape.map(
        both(of("sample"), between(tape.off_at + 0.3, tape.off_at + 1.0)),
        lambda event: event | {"disks": {kname: _negative(row) for kname, row in event["disks"].items()}},
    ),
    CUT,
)


@edit("untrue", UNKNOWN, CUT)
def clocks_compared_until_the_cut_only(tape: Tape) -> Tape:
    """Ten seconds are judged in which nothing relates the two clocks."""
    tape = tape.wait(tape.judged_at - 0.2, 10.0)
    return tape.drop(both(of("clock"), between(tape.off_at, tape.judged_at + 99.0)))


@edit("untrue", (UNKNOWN, FAIL), CUT)
def booted_in_the_middle(tape: Tape) -> Tape:
    """The DUT was booted while the cable was off, and nobody says that it had been lost."""
    ready = tape.first(of("dut.ready"))
    return tape.insert(ready | {"at": tape.off_at + 0.4, "how": "booted"})


@edit("untrue", UNKNOWN, ("watched_many_cuts", "many_cuts_leave_nothing_behind"))
def a_bystander_is_written(tape: Tape) -> Tape:
    """A megabyte was written to a disk that nothing on record wrote to."""
    kname, since = tape.names(tape.survivor).kname, tape.off_at

    def more(event: Event) -> Event:
        row = event["disks"].get(kname)
        return event | {"disks": event["disks"] | {kname: [*row[:2], row[2] + (1 << 20), *row[3:]]}} if row else event

    return tape.map(lambda event: event["type"] == "sample" and event["at"] > since, more)


# --- the rig file, the plan, the switches -----------------------------------------------------------------------------


@edit("untrue", UNKNOWN, CUT)
def a_serial_number_the_rig_file_does_not_have(tape: Tape) -> Tape:
    """The disk is announced with another serial number than the rig file's, by which it is found."""
    disks = [disk | {"serial": "ELSE-1"} if disk["name"] == tape.survivor else disk for disk in tape.rig["disk"]]
    return tape.change(of("run.begin"), rig=tape.rig | {"disk": disks})


add(
    "untrue",
    "cut by another mechanism",
    UNKNOWN,
    "The record says that the data lines were cut where the rig file has an outlet of the mains, or the reverse.",
    lambda tape: tape.map(
        of("cut.armed"), lambda event: event | {"mechanism": "data" if event["mechanism"] == "mains" else "mains"}
    ),
    CUT,
)
add(
    "untrue",
    "a scenario that was not planned",
    UNKNOWN,
    "The run was to run something else.",
    lambda tape: tape.change(of("run.begin"), planned=["scenarios/test_else.py::test_else"]),
    CUT,
)


@edit("untrue", UNKNOWN, CUT)
def one_scenario_more_than_planned(tape: Tape) -> Tape:
    """A scenario that nobody planned stands in the history: it may be another run's."""
    name = tape.first(of("scenario.begin"))["id"]
    tape = tape.change(of("run.begin"), planned=[name])
    begin = next(i for i, event in enumerate(tape.events) if event["type"] == "scenario.begin")
    more = [dict(event) | {"id": f"{name}_2"} if "id" in event else dict(event) for event in tape.events[begin:-1]]
    return Tape((*tape.events[:-1], *more, tape.events[-1]))


add(
    "untrue",
    "cut at once four seconds apart",
    UNKNOWN,
    "The ports were to be cut at once.",
    lambda tape: tape.change(of("cut.switched", state="off"), skew=4.0),
    AT_ONCE,
)


@edit("untrue", UNKNOWN, MANY)
def third_cut_never_switched(tape: Tape) -> Tape:
    """The switch is not on record as switched: that the disk went with this cut accuses nobody."""
    return tape.drop(of("edge", cut=3))


@edit("untrue", (UNKNOWN, FAIL), WRITING)
def crashed_load(tape: Tape) -> Tape:
    """The program that was to load the survivor crashed."""
    return tape.change(of("load.end", disk=tape.survivor), exit_status=-11)


# --- what comes back, and what the writers say ------------------------------------------------------------------------


@edit("untrue", FAIL, CUT, "victim")
def comes_back_with_a_unit_more(tape: Tape) -> Tape:
    """The enclosure that was cut announces a second logical unit that it did not have."""
    now = tape.attached(tape.victim, 1)
    place, seq = f"{now['place'].rpartition(':')[0]}:1", now["diskseq"] + 40
    unit = now | {"at": now["at"] + 0.02, "disk": "", "kname": "sdx", "diskseq": seq, "place": place, "serial": "LUN-1"}

    def sampled(event: Event) -> Event:
        return event | {"disks": event["disks"] | {"sdx": [seq, 12288, 0, 3, 0, 0, 0, 8]}}

    return tape.map(lambda e: e["type"] == "sample" and e["at"] > unit["at"], sampled).insert(unit)


def _fails(tape: Tape, disk: str, kind: int, share: float) -> Tape:
    """The completion ``share`` of the way through a disk's ledger says EIO; 3 is a write's, 5 a flush's."""
    job = tape.first(of("ledger.begin", disk=disk))["job"]
    parts = tape.all(of("ledger.part", job=job))
    places = [(part, at) for part in parts for at in _records(base64.b64decode(part["data"]), kind)]
    part, at = places[int(len(places) * share)]
    data = bytearray(base64.b64decode(part["data"]))
    struct.pack_into("<H", data, at + 2, 5)
    text = base64.b64encode(bytes(data)).decode()
    return tape.map(lambda event: event is part, lambda event: event | {"data": text})


_SIZES = {1: 64, 2: 24, 3: 16, 4: 16, 5: 16, 6: 32}


def _records(data: bytes, kind: int) -> list[int]:
    """Where the records of a kind begin. Pieces are of whole records."""
    found, at = [], 0
    while at < len(data):
        if data[at] == kind:
            found.append(at)
        at += _SIZES[data[at]]
    return found


_FAILED: dict[str, tuple[str, int, float]] = {
    "survivor's write": ("survivor", 3, 0.5),
    "survivor's flush": ("survivor", 5, 0.5),
    "victim's write before its cut": ("victim", 3, 0.3),
}
for _name, (_whose, _kind, _share) in _FAILED.items():
    add(
        "untrue",
        f"{_name} failed and the writer went on",
        FAIL,
        "The kernel reported an error of a write or flush on a disk that nothing had cut, whatever the load said.",
        lambda tape, whose=_whose, kind=_kind, share=_share: _fails(tape, getattr(tape, whose), kind, share),
        ("watched_while_writing",),
        _whose,
    )
add(
    "untrue",
    "survivor's writer ended with status 1",
    (UNKNOWN, FAIL),
    "It says that it failed, and the load that it ended well.",
    lambda tape: tape.change(of("ledger.end", disk=tape.survivor), status=1, why="write: Input/output error"),
    ("watched_while_writing",),
)

# --- the log ----------------------------------------------------------------------------------------------------------


def _says(name: str, due: Any, why: str, text: str, level: int, after: float, on: tuple[str, ...] = CUT) -> None:
    add("untrue", name, due, why, lambda tape: tape.say(tape.off_at + after, text, level=level), on)


_says(
    "a report of one line",
    (UNKNOWN, FAIL),
    "A BUG or a WARNING began, and nothing more of it is on record.",
    "------------[ cut here ]------------",
    4,
    0.4,
)
_says(
    "a controller lost its power",
    FAIL,
    "Only a controller that was reset says so, and no cut does that.",
    "usb usb2: root hub lost power or was reset",
    6,
    0.4,
)
_says(
    "a command to the controller timed out",
    FAIL,
    "Nothing was cut by then.",
    "xhci_hcd 0000:00:10.0: Command timeout, USBSTS: 0x00000000",
    4,
    -0.5,
    ("watched_while_writing",),
)
_says(
    "a clock is watched",
    PASS,
    "Emulated clocks are read late.",
    "clocksource: timekeeping watchdog on CPU0: hpet wd-wd read-back delay of 52000ns",
    6,
    0.4,
)
