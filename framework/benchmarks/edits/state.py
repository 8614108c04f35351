"""Edits of processes, volumes and data read back by fio."""

from __future__ import annotations

from benchmarks.edits.events import of
from benchmarks.edits.registry import FAIL, UNKNOWN, Apply, add, edit
from benchmarks.edits.tape import Tape

SEVERAL = ("while_writing", "while_idle", "a_hub_is_gone_for_a_while")
AGAIN = ("many_cuts_leave_nothing_behind",)
FOUND = ("every_disk_is_found_at_its_place",)
FOREVER = ("a_cable_is_gone_for_good",)
# --- processes --------------------------------------------------------------------------------------------------------


def _stuck(disk: str) -> Apply:
    def apply(tape: Tape) -> Tape:
        whose = {"survivor": tape.survivor, "victim": tape.victim}.get(disk, "") if disk else ""
        event = {
            "type": "process.stuck",
            "at": tape.judged_at - 0.2,
            "pid": 512,
            "command": "fio",
            "state": "D",
            "disk": whose,
            "stack": ["blk_mq_get_tag", "__blkdev_direct_IO"],
        }
        return tape.insert(event)

    return apply


for _disk in ("survivor", "victim"):
    add(
        "processes",
        f"stuck on the {_disk}",
        FAIL,
        "A process of ours is in state D and cannot be killed.",
        _stuck(_disk),
        ("while_writing", "while_idle", "many_cuts_leave_nothing_behind"),
        "fio|stuck",
    )
add(
    "processes",
    "stuck on nothing in particular",
    FAIL,
    "A process of ours is in state D and cannot be killed.",
    _stuck(""),
    ("while_writing", *FOUND),
    "fio|stuck",
)
add(
    "processes",
    "still there at the end, in state D",
    FAIL,
    "A process of ours is still there, and cannot end.",
    lambda tape: tape.change(of("residue"), processes=["fio (D)"]),
    ("while_writing", "while_idle"),
    "fio",
)
add(
    "processes",
    "residue missing",
    UNKNOWN,
    "Whether processes of ours were left is not on record, and was asked.",
    lambda tape: tape.drop(of("residue")),
    ("while_writing", "while_idle"),
)


# --- volumes ----------------------------------------------------------------------------------------------------------

add(
    "volume",
    "cannot be unmounted",
    FAIL,
    "The filesystem of the dead disk could not be unmounted.",
    lambda tape: tape.map(of("action", action="umount"), lambda e: e | {"ok": False, "detail": "target is busy"}),
    FOREVER,
    "bot",
)
add(
    "volume",
    "unmounted after 45 s",
    FAIL,
    "It took 45 s to unmount the filesystem of the dead disk; 30 s are allowed.",
    lambda tape: tape.change(of("action", action="umount"), seconds=45.0),
    FOREVER,
    "bot",
)
add(
    "volume",
    "unmounting not on record",
    UNKNOWN,
    "Whether it could be unmounted is not on record.",
    lambda tape: tape.drop(of("action", action="umount")),
    FOREVER,
)
add(
    "volume",
    "another disk unmounted",
    UNKNOWN,
    "Whether the dead disk's filesystem could be unmounted is not on record.",
    lambda tape: tape.change(of("action", action="umount"), disk="uas"),
    FOREVER,
)
add(
    "volume",
    "never mounted",
    UNKNOWN,
    "A filesystem that was not mounted cannot have been unmounted.",
    lambda tape: tape.map(of("action", action="mount"), lambda e: e | {"ok": False, "detail": "wrong fs type"}),
    FOREVER,
)
add(
    "volume",
    "unmounted before the cut",
    UNKNOWN,
    "It was unmounted while its disk was still there.",
    lambda tape: tape.change(of("action", action="umount"), at=tape.off_at - 0.5),
    FOREVER,
)


# --- data read back by fio --------------------------------------------------------------------------------------------

BAD = [[65536, 65536, "crc32c differs"]]
for _disk in ("survivor", "victim"):
    add(
        "verify",
        f"wrong data on the {_disk}",
        FAIL,
        "What was written is not what was read back.",
        lambda tape, d=_disk: tape.change(of("verify", disk=getattr(tape, d)), bad=BAD),
        ("while_writing", "while_idle"),
        _disk,
    )
    add(
        "verify",
        f"the {_disk} not read back",
        UNKNOWN,
        "What was written to it was never compared.",
        lambda tape, d=_disk: tape.drop(of("verify", disk=getattr(tape, d))),
        ("while_writing", "while_idle"),
    )
    add(
        "verify",
        f"nothing of the {_disk} compared",
        UNKNOWN,
        "Not a byte was compared.",
        lambda tape, d=_disk: tape.change(of("verify", disk=getattr(tape, d)), checked=0),
        ("while_writing",),
    )
    add(
        "verify",
        f"the {_disk} could not be read back",
        (UNKNOWN, FAIL),
        "The data could not be compared.",
        lambda tape, d=_disk: tape.change(of("verify", disk=getattr(tape, d)), checked=0, error="fio: file not found"),
        ("while_writing",),
    )


@edit("verify", FAIL, ("while_writing",), "survivor")
def wrong_data_once_and_right_data_once(tape: Tape) -> Tape:
    """Read back twice, and wrong once."""
    first = tape.first(of("verify", disk=tape.survivor))
    return tape.double(lambda event: event is first).map(
        lambda event: event is first, lambda event: event | {"bad": BAD}
    )


add(
    "verify",
    "wrong data where only the pace was asked for",
    FAIL,
    "The record holds wrong data of a survivor, asked or not.",
    lambda tape: tape.change(of("verify", disk=tape.survivor), bad=BAD),
    ("a_disk_is_discovered_while_the_others_work",),
    "survivor",
)
add(
    "verify",
    "read back before the cut",
    UNKNOWN,
    "What was compared was compared before the cut: nothing is known since.",
    lambda tape: tape.change(of("verify"), at=tape.off_at - 0.2),
    ("while_writing",),
)
