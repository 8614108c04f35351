"""Edits of the kernel log: records that are missing, or there twice."""

from __future__ import annotations

from benchmarks.edits.events import between, both, of
from benchmarks.edits.kernel import ALL, OOPS
from benchmarks.edits.registry import CUT, FAIL, PASS, UNKNOWN, edit
from benchmarks.edits.tape import Tape


@edit("log missing", UNKNOWN, CUT)
def log_ends_before_the_cut(tape: Tape) -> Tape:
    """Uevents show a disk come and go, and the kernel log has been silent since before the cut."""
    return tape.lose(both(of("kernel"), between(tape.off_at - 0.3, float("inf"))))


@edit("log missing", UNKNOWN, CUT)
def log_ends_before_the_return(tape: Tape) -> Tape:
    """Uevents show a disk come back, and the kernel log has been silent since before that."""
    return tape.lose(both(of("kernel"), between(tape.on_at, float("inf"))))


@edit("log missing", UNKNOWN, ("while_writing", "every_disk_is_found_at_its_place"))
def no_log_at_all(tape: Tape) -> Tape:
    """Disks came, and not a line of the kernel log is on record."""
    return tape.lose(of("kernel"))


@edit("log missing", UNKNOWN, ALL)
def one_record_missing(tape: Tape) -> Tape:
    """A record's number is missing: it may have been anything."""
    records = tape.all(of("kernel"))
    lost = records[len(records) // 2]
    return tape.lose(lambda event: event is lost)


@edit("log missing", UNKNOWN, ("while_writing",))
def thirty_records_missing(tape: Tape) -> Tape:
    """Thirty numbers are missing in a row."""
    lost = tape.all(of("kernel"))[20:50]
    return tape.lose(lambda event: any(event is one for one in lost))


@edit("log missing", UNKNOWN, CUT)
def records_overwritten(tape: Tape) -> Tape:
    """The DUT says that records were overwritten before they could be read."""
    return tape.insert({"type": "kernel.lost", "at": tape.off_at + 0.5, "count": 12})


@edit("log missing", FAIL, CUT, "NULL pointer|kernel")
def records_overwritten_and_an_oops(tape: Tape) -> Tape:
    """What is on record of the log holds an oops, whatever was lost of it."""
    tape = tape.insert({"type": "kernel.lost", "at": tape.off_at + 0.5, "count": 12})
    return tape.say(tape.off_at + 0.3, *OOPS, level=0)


@edit("log missing", (UNKNOWN, PASS), ("while_writing",))
def a_record_twice(tape: Tape) -> Tape:
    """A record came twice, with one number: it can never accuse the DUT."""
    records = tape.all(of("kernel"))
    return tape.double(lambda event: event is records[30])


@edit("log missing", (FAIL, UNKNOWN), CUT)
def numbers_begin_again(tape: Tape) -> Tape:
    """The numbers of the records fall back to 0 in the middle: another boot's log."""
    at, count = tape.off_at + 0.3, iter(range(10000))
    return tape.map(both(of("kernel"), between(at, float("inf"))), lambda event: event | {"seq": next(count)})
