"""Edits after which a disk came or went without one of the uevents or messages that come with it."""

from __future__ import annotations

from benchmarks.edits.events import Event
from benchmarks.edits.registry import FAIL, UNKNOWN, add
from benchmarks.edits.tape import Tape

ON = ("watched_while_writing", "while_writing")
CACHED = ("watched_while_writing",)
HEARD = 0.2
"""Seconds by which a message may be stamped before the switch acknowledged."""


def _without_uevent(tape: Tape, action: str, subsystem: str) -> Tape:
    """The kernel numbers its uevents as if these had never been."""
    begin = tape.on_at if action in ("add", "bind") else tape.off_at

    def missing(event: Event) -> bool:
        same = event["type"] == "uevent" and (event["action"], event["subsystem"]) == (action, subsystem)
        return same and tape.victim in event.get("disks", ()) and event["at"] >= begin

    gone = sorted(event["seqnum"] for event in tape.all(missing))
    assert gone, "it has none"

    def renumbered(event: Event) -> Event:
        return event | {"seqnum": event["seqnum"] - sum(number < event["seqnum"] for number in gone)}

    return tape.drop(missing).map(lambda event: event["type"] == "uevent", renumbered)


for action, subsystem in (("add", "scsi"), ("bind", "scsi"), ("bind", "usb"), ("unbind", "scsi"), ("unbind", "usb")):
    add(
        "companions",
        f"no uevent {action} of {subsystem}",
        (UNKNOWN, FAIL),
        "Every other disk of the record has it.",
        lambda tape, action=action, subsystem=subsystem: _without_uevent(tape, action, subsystem),
        ON,
    )

for what in ("Attached SCSI", "logical blocks"):
    add(
        "companions",
        f"a return without the line '{what}'",
        (UNKNOWN, FAIL),
        "The disk driver says it of each disk that it probes.",
        lambda tape, what=what: tape.hush(what, tape.on_at - HEARD),
        ON,
    )

add(
    "companions",
    "a removal without the line 'Synchronizing SCSI cache'",
    (UNKNOWN, FAIL),
    "The disk driver says it of each disk with a write cache that it lets go of.",
    lambda tape: tape.hush("Synchronizing SCSI cache", tape.off_at - HEARD, tape.on_at),
    CACHED,
)

for when, at in (
    ("while the other is back", lambda tape: tape.judged_at - 0.5),
    ("at the end", lambda tape: tape.judged_at),
):
    for text in (
        "usb {usb}: new high-speed USB device number 29 using xhci_hcd",
        "usb-storage {usb}:1.0: USB Mass Storage device detected",
        "scsi {hctl}: Direct-Access     QEMU     QEMU HARDDISK    2.5+ PQ: 0 ANSI: 5",
    ):
        add(
            "companions",
            f"a survivor comes by the log alone: {text[:24]}, {when}",
            (UNKNOWN, FAIL),
            "It never left, and nothing announced it again.",
            lambda tape, text=text, at=at: tape.say(at(tape), _about_survivor(tape, text)),
            ON,
        )


def _about_survivor(tape: Tape, text: str) -> str:
    path = tape.attached(tape.survivor)["sysfs"].split("/")
    return text.format(usb=path[path.index("block") - 4].partition(":")[0], hctl=path[path.index("block") - 1])
