"""Edits after which a step, a census or the end of a wait is missing as if it had never been, with all that counts it;
and a check of a mirror that counts differences which its members do not show."""

from __future__ import annotations

from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import FAIL, UNKNOWN, edit
from benchmarks.edits.tape import Tape

ARRAY = ("an_array_loses_a_member_and_gets_it_back",)
FILES = ("power_fails_where_a_filesystem_once_lost_files",)
CYCLES = ("watched_many_cuts",)


@edit("agreed", FAIL, ARRAY, "array")
def a_check_of_a_mirror_counts_differences(tape: Tape) -> Tape:
    """Its members hold the same of everything that was written, so they differ where nobody wrote."""
    begun = tape.first(of("array.acted", action="check"))["at"]
    return tape.map(
        both(of("array.state"), lambda event: event["at"] > begun and bool(event["values"])),
        lambda event: event | {"values": event["values"] | {"mismatch_cnt": "128"}},
    )


@edit("agreed", UNKNOWN, CYCLES)
def a_census_between_two_cuts_was_never_taken(tape: Tape) -> Tape:
    """One was taken after each other cut, and the number of censuses at the end fits."""
    lost = tape.all(of("census", moment="cycle"))[4]
    tape = tape.drop(lambda event: event is lost)
    return tape.map(
        both(of("scenario.end"), lambda event: event.get("censuses") is not None),
        lambda event: event | {"censuses": event["censuses"] - 1},
    )


@edit("agreed", UNKNOWN, FILES)
def a_mount_never_began_and_never_ended(tape: Tape) -> Tape:
    """What was not mounted cannot be unmounted."""
    begun, ended = tape.last(of("action.begin", action="mount")), tape.last(of("action", action="mount"))
    return tape.drop(lambda event: event is begun or event is ended)


@edit("agreed", UNKNOWN, CYCLES)
def a_blocked_thread_is_not_heard_of_again(tape: Tape) -> Tape:
    """It was blocked for 4 s early in the record. The agent reports when such a thread runs again."""
    at = tape.off_at + 4.0
    blocked = {"type": "task.blocked", "at": at, "pid": 133, "name": "kworker/1:2+usb_hub_wq", "kernel": True}
    return tape.insert(blocked | {"seconds": 4.0, "since": tape.off_at, "wchan": "usb_kill_urb"})


@edit("agreed", UNKNOWN, ARRAY)
def no_state_shows_that_the_kernel_dropped_a_member(tape: Tape) -> Tape:
    """Its log says so, and the array's states have the member in sync until it is removed."""
    removed = tape.first(of("array.acted", action="remove_gone"))["at"]
    gone = {disk: [str(slot), "in_sync"] for slot, disk in enumerate(tape.first(of("array.made"))["members"])}

    def well(event: Event) -> Event:
        return event | {"members": gone, "values": event["values"] | {"degraded": "0"}}

    return tape.map(
        both(of("array.state"), lambda event: tape.off_at < event["at"] < removed and bool(event["members"])), well
    )


@edit("agreed", UNKNOWN, ARRAY)
def states_end_when_a_member_is_put_back(tape: Tape) -> Tape:
    """Whether it got what it missed is not on record, nor what the check found."""
    back = tape.first(of("array.acted", action="readd"))["at"]
    return tape.drop(both(of("array.state"), lambda event: event["at"] > back))
