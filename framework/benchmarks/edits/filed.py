"""Edits after which two events disagree on one thing, or lines stand in an order in which nobody can have written them.

Each of them leaves what the checks measure as it was, so that only the record itself shows that it was changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.edits.events import of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add
from benchmarks.edits.tape import Tape

ARRAY = ("an_array_loses_a_member_and_gets_it_back",)
FILES = ("power_fails_where_a_filesystem_once_lost_files",)
TREE = ("the_whole_tree_is_cut_in_operation",)
WATCHED = ("watched_while_writing",)
LOADED = ("while_writing",)


def changed(kind: str, nth: int = 0, **fields: Any) -> Callable[[Tape], Tape]:
    """One event of a kind gets other values. A function gets the old one."""

    def apply(tape: Tape) -> Tape:
        one = tape.all(of(kind))[nth]
        new = {name: value(one[name]) if callable(value) else value for name, value in fields.items()}
        return tape.map(lambda event: event is one or event == one, lambda event: event | new)

    return apply


def moved(kind: str, seconds: float, nth: int = 0) -> Callable[[Tape], Tape]:
    """One event of a kind is on record earlier or later, with all that belongs to its new place."""

    def apply(tape: Tape) -> Tape:
        one = tape.all(of(kind))[nth]
        return tape.drop(lambda event: event is one).insert(one | {"at": one["at"] + seconds})

    return apply


def _with(name: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda old: {key: one for key, one in (old | {name: value}).items() if one is not None}


for _name, _apply, _on in (
    ("load begun five seconds later", changed("load.begin", at=lambda at: at + 5.0), WATCHED),
    ("uevent of five seconds earlier", changed("uevent", -1, at=lambda at: at - 5.0), LOADED),
    ("state of the array of five seconds later", changed("array.state", 3, at=lambda at: at + 5.0), ARRAY),
    ("files checked five seconds earlier", changed("files.check", at=lambda at: at - 5.0), FILES),
):
    add("filed", _name, UNKNOWN, "It is on record between lines of another time.", _apply, _on)

for _name, _apply, _on in (
    ("session planned after it was written", moved("stamp.round", 12.0), ARRAY),
    ("fault after its cut", moved("fault", 3.0), ARRAY),
    ("round of files planned after it was written", moved("files.round", 30.0), FILES),
    ("loads begin before the first look at the DUT", moved("census", 6.0), WATCHED),
    ("looked for what is left before the read-back", moved("residue", -5.0), ARRAY),
    ("ports far apart before they acknowledged", moved("cut.switched", -0.5), TREE),
):
    add("filed", _name, UNKNOWN, "A step is on record before what it follows from.", _apply, _on)

for _name, _apply, _on in (
    ("another disk's properties", changed("disk.properties", disk="four"), ARRAY),
    ("a member's sectors as another's", changed("leg.part", disk="nobody"), ARRAY),
    ("one switched cut fewer", changed("cut.switched", cuts=lambda cuts: cuts[:-1]), TREE),
    ("another switch", changed("cut.switched", switches=["other"]), TREE),
    ("switched ten seconds apart", changed("cut.switched", skew=10.0), TREE),
    (
        "stamped one session fewer",
        changed("stamp.over", sessions={"array1": 0}),
        ARRAY,
    ),
    ("stamping over of no disk", changed("stamp.over", disks=[], sessions={}), ARRAY),
    ("a disk planned and another written", changed("stamp.round", disks=["four"]), ARRAY),
    ("stamped in other blocks than its load", changed("load.begin", block=1024), ARRAY),
    ("stamped at another depth than its load", changed("ledger.begin", depth=99), ARRAY),
    ("writer and its load end otherwise", changed("load.end", exit_status=3), ARRAY),
    ("array of another name", changed("array.state", 1, kname="md9"), ARRAY),
    ("array of fewer members", changed("array.made", members=lambda members: members[:-1]), ARRAY),
    ("load of another mode than its command", changed("load.begin", mode="randwrite"), LOADED),
    ("load on another name", changed("load.begin", kname="sdz"), LOADED),
    ("fewer interrupts than before", changed("dut.state", -1, interrupts=lambda all_: dict.fromkeys(all_, 0)), WATCHED),
    ("memory without a line", changed("dut.state", -1, memory=lambda all_: dict(list(all_.items())[1:])), WATCHED),
    ("fewer reports than when it was ready", changed("dut.ready", reports=10**6), ARRAY),
    ("announced at no place", changed("disk.attached", place=""), LOADED),
):
    add("said twice", _name, UNKNOWN, "Another event says otherwise.", _apply, _on)

for _name, _apply, _on in (
    ("edge of no phase", changed("edge", phase="hoped"), LOADED),
    ("uevent of no action", changed("uevent", action="explode"), LOADED),
    ("uevent of no disk", changed("uevent", disks=["disk9"]), LOADED),
    ("uevent of a block device as USB", changed("uevent", devpath="/devices/x/block/sda", subsystem="usb"), LOADED),
    ("checked for a million seconds", changed("files.check", seconds=1e6), FILES),
    ("thread on a hundred CPUs", changed("dut.activity", threads={"kworker/0:1 (9)": 100.0}), WATCHED),
    ("kernel message of level 99", changed("kernel", level=99), LOADED),
    ("no size in one look", changed("disk.properties", -1, values=_with("size", "")), WATCHED),
    ("no driver at the end", changed("disk.properties", -1, values=_with("driver", None)), WATCHED),
    ("writer with a traceback", changed("ledger.end", -1, status=1, why="Traceback"), ARRAY),
    ("writer of files with a traceback", changed("files.end", status=2, why="Traceback"), FILES),
    ("fewer rounds of files than there are", changed("files.over", rounds=0), FILES),
    ("array that was stopped for a minute", changed("array.acted", -1, seconds=60.0), ARRAY),
    ("array that nobody made", lambda tape: tape.drop(of("array.acted", action="make")), ARRAY),
    (
        "array of which nobody removed the member",
        lambda tape: tape.drop(of("array.acted", action="remove_gone")),
        ARRAY,
    ),
    ("member that nobody put back", lambda tape: tape.drop(of("array.acted", action="readd")), ARRAY),
    ("array that nobody stopped", lambda tape: tape.drop(of("array.acted", action="stop")), ARRAY),
    ("array that nobody erased", lambda tape: tape.drop(of("array.acted", action="erase")), ARRAY),
    ("writer ended by status 7", changed("ledger.end", -1, status=7), ARRAY),
):
    add("impossible", _name, UNKNOWN, "It cannot be as it is on record.", _apply, _on)

add(
    "impossible",
    "came back as a CD-ROM",
    FAIL,
    "A disk is no CD-ROM.",
    lambda tape: tape.map(lambda event: event == tape.attached(tape.victim, 1), lambda event: event | {"scsi_type": 5}),
    LOADED,
    "victim",
)
add(
    "impossible",
    "removed under a number of no disk",
    UNKNOWN,
    "What left is not known; what came under its name is no second disk.",
    lambda tape: tape.map(lambda event: event == tape.detached(tape.victim), lambda event: event | {"diskseq": 77}),
    LOADED,
)
add(
    "filed",
    "note between lines of another time",
    PASS,
    "Nobody judges a note.",
    lambda tape: Tape((*tape.events[:-2], {"type": "note", "at": 1.0, "text": "talk"}, *tape.events[-2:])),
    LOADED,
)
