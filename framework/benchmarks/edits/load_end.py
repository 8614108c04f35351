"""Edits of how loads begin, settle and end."""

from __future__ import annotations

from benchmarks.edits.events import Event, either, of
from benchmarks.edits.pace import LOADS, PACED, cut_of
from benchmarks.edits.registry import FAIL, LOADED, UNKNOWN, Due, add, edit
from benchmarks.edits.tape import Tape


def _ended(
    name: str, why: str, due: Due, fields: dict[str, object], disk: str = "survivor", on: tuple[str, ...] = LOADS
) -> None:
    def apply(tape: Tape) -> Tape:
        whose = tape.survivor if disk == "survivor" else tape.victim

        def change(event: Event) -> Event:
            changed = event | fields
            return {k: v for k, v in changed.items() if v is not None}

        return tape.map(of("load.end", disk=whose), change)

    add("load end", name, due, why, apply, on, disk if due is FAIL else "")


_ended(
    "survivor's load met EIO",
    "A disk outside the blast radius gave its user an I/O error.",
    FAIL,
    {"errno": 5, "exit_status": 1, "asked": False, "asked_at": None, "message": "fio: io_u error: Input/output error"},
)
_ended(
    "survivor's load met ETIMEDOUT",
    "A disk outside the blast radius gave its user an I/O error.",
    FAIL,
    {"errno": 110, "exit_status": 1, "message": "fio: io_u error: Connection timed out"},
)
_ended(
    "survivor's load ended by itself with status 1",
    "fio gave up without an I/O error: what it would have shown is missing.",
    UNKNOWN,
    {"exit_status": 1, "asked": False, "asked_at": None, "message": ""},
)
_ended(
    "survivor's endless load ended by itself with status 0",
    "A load without an end ended: not by our doing, nor with an error.",
    UNKNOWN,
    {"exit_status": 0, "asked": False, "asked_at": None, "message": ""},
)
_ended(
    "survivor's load could not be ended",
    "The process that used a healthy disk could not be killed.",
    FAIL,
    {"stuck": True, "exit_status": None},
)
_ended(
    "victim's load could not be ended",
    "The process that used the dead disk could not be killed.",
    FAIL,
    {"stuck": True, "exit_status": None, "errno": None},
    "victim",
    LOADED,
)
_ended(
    "victim's load ended without an error",
    "Its disk was gone, its user was never given an error and ended by itself with success.",
    (FAIL, UNKNOWN),
    {"errno": None, "exit_status": 0, "message": None},
    "victim",
)


@edit("load end", FAIL, (*LOADED, "a_disk_dies_in_use", "a_hub_is_gone_for_a_while"), "victim")
def victims_load_runs_on_without_an_error(tape: Tape) -> Tape:
    """The disk was gone, and its user ran on without an error until it was asked to end: the loss was not reported."""
    other = tape.first(of("load.end", disk=tape.survivor))
    fields = {name: other[name] for name in ("at", "asked", "asked_at", "exit_status", "message")}
    return tape.map(of("load.end", disk=tape.victim), lambda e: {k: v for k, v in (e | fields).items() if k != "errno"})


@edit("load end", FAIL, ("a_disk_dies_in_use",), "victim")
def victims_load_ends_after_forty_seconds(tape: Tape) -> Tape:
    """Its user got its error 40 s after the power went; 30 s are allowed."""
    tape = tape.wait(tape.off_at + 1.0, 42.0)
    return tape.change(of("load.end", disk=tape.victim), at=tape.off_at + 40.0)


@edit("load end", FAIL, LOADED, "victim")
def victims_load_fails_before_the_cut(tape: Tape) -> Tape:
    """The victim gave its user an I/O error a second before its cut was commanded."""
    at = tape.off_at - 1.0
    names = tape.names(tape.victim)
    tape = tape.change(of("load.end", disk=tape.victim), at=at, errno=5, asked=False)
    tape = tape.pace(tape.victim, lambda t: 1.0 if t < at else 0.0)
    return tape.say(
        at - 0.01, f"I/O error, dev {names.kname}, sector 3840 op 0x1:(WRITE) flags 0x8800 phys_seg 16", level=3
    )


for _disk in ("survivor", "victim"):
    add(
        "load end",
        f"end of the {_disk}'s load missing",
        UNKNOWN,
        "How a load ended is not on record.",
        lambda tape, d=_disk: tape.drop(of("load.end", disk=getattr(tape, d))),
        PACED if _disk == "survivor" else LOADED,
    )
add(
    "load end",
    "beginning of the survivor's load missing",
    UNKNOWN,
    "That the survivor had a load is not on record.",
    lambda tape: tape.drop(of("load.begin", disk=tape.survivor)),
    LOADS,
)
add(
    "load end",
    "no load on record",
    UNKNOWN,
    "Beginning and end of the survivor's load are missing; its pace was to be judged.",
    lambda tape: tape.drop(either(of("load.begin", disk=tape.survivor), of("load.end", disk=tape.survivor))),
    LOADS,
)
add(
    "load end",
    "never settled",
    UNKNOWN,
    "That the loads had settled is not on record, so there is no baseline.",
    lambda tape: tape.drop(of("load.settled")),
    LOADS,
)
add(
    "load end",
    "settled without the survivor",
    UNKNOWN,
    "The survivor's load had not settled.",
    lambda tape: tape.change(of("load.settled"), disks=[tape.victim]),
    LOADS,
)
add(
    "load end",
    "settled after the cut",
    UNKNOWN,
    "The loads settled only after the cut, so there is no baseline.",
    lambda tape: tape.retime(of("load.settled"), 0.1 + cut_of(tape) - tape.settled_at),
    LOADED,
)
add(
    "load end",
    "load begun after the cut",
    UNKNOWN,
    "The survivor's load was started after the cut, though it had settled before.",
    lambda tape: tape.map(of("load.begin", disk=tape.survivor), lambda e: e | {"at": cut_of(tape) + 0.3}),
    LOADED,
)


@edit("load end", (FAIL, UNKNOWN), LOADS)
def killed_nine_seconds_after_it_was_told_to_end(tape: Tape) -> Tape:
    """fio did not end when it was asked to and had to be killed 9 s later, its disk being there and healthy."""
    ended = tape.first(of("load.end", disk=tape.survivor))
    tape = tape.wait(ended["asked_at"] + 0.05, 9.0)
    return tape.change(of("load.end", disk=tape.survivor), exit_status=-9, message="killed")


@edit("load end", FAIL, LOADS, "survivor")
def killed_with_requests_in_flight(tape: Tape) -> Tape:
    """fio was asked to end, its requests never completed in 9 s, and it had to be killed: the disk holds them."""
    ended = tape.first(of("load.end", disk=tape.survivor))
    tape = tape.wait(ended["asked_at"] + 0.05, 9.0)
    tape = tape.change(of("load.end", disk=tape.survivor), exit_status=-9, message="killed")
    return tape.freeze(tape.survivor, ended["asked_at"], ended["asked_at"] + 9.0)


@edit("load end", UNKNOWN, LOADED)
def survivors_load_ended_before_the_cut(tape: Tape) -> Tape:
    """The survivor's load was over, as asked, before the cut was made: it had nothing to keep pace with."""
    at = tape.off_at - 0.3
    return tape.change(of("load.end", disk=tape.survivor), at=at, asked_at=at - 0.1)
