"""Edits of the census: what is left on the DUT, what is missing there, and what grows with every cut."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.edits.events import Event, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.state import AGAIN, FOUND, SEVERAL
from benchmarks.edits.tape import Tape


def change_census(tape: Tape, moment: str, kind: str, more: tuple[str, ...] = (), less: str = "") -> Tape:
    def change(event: Event) -> Event:
        names = [name for name in event["things"].get(kind, []) if not less or less not in name]
        return event | {"things": event["things"] | {kind: [*names, *more]}}

    return tape.map(of("census", moment=moment), change)


LEFT = {
    "SCSI host": ("scsi host", "usb-storage at 0000:00:10.0/1"),
    "block device of the victim": ("block device", "0000:00:10.0/2:0 (serial CACHE-000002)"),
    "USB device on the bench's controller": ("usb device", "1-2.9"),
    "mount of a rig's disk": ("mount", "/dev/sdb on /tmp/plugpull-1 (ext4)"),
    "open file of a rig's disk": ("open file", "/dev/sdb by fio (512)"),
}
for _name, (_kind, _thing) in LEFT.items():
    add(
        "left over",
        _name,
        FAIL,
        "It was not there at the beginning, hangs at the rig, and is there at the end.",
        lambda tape, k=_kind, t=_thing: change_census(tape, "end", k, (t,)),
        (*SEVERAL, *FOUND) if _kind == "scsi host" else SEVERAL,
    )

LOGIN = {
    "runtime directory of a user": ("mount", "tmpfs on /run/user/1000 (tmpfs)"),
    "network file system": ("mount", "server:/home on /home (nfs4)"),
    "keyboard on another controller": ("usb device", "9-1"),
    "snap": ("mount", "/dev/loop3 on /snap/core/1 (squashfs)"),
}
for _name, (_kind, _thing) in LOGIN.items():

    def _found(tape: Tape, kind: str = _kind, thing: str = _thing) -> Tape:
        tape = change_census(tape, "end", kind, (thing,))
        if kind != "usb device":
            return tape
        path = "/devices/pci0000:00/0000:00:14.0/usb9/9-1"
        uevent = {
            "type": "uevent",
            "at": tape.off_at + 0.3,
            "action": "add",
            "subsystem": "usb",
            "devpath": path,
            "devtype": "usb_device",
        }
        return tape.say(tape.off_at + 0.3, "usb 9-1: new low-speed USB device number 2 using xhci_hcd").insert(uevent)

    add(
        "left over",
        f"harmless: {_name}",
        PASS,
        "Somebody logged in or plugged something in elsewhere: not at the rig.",
        _found,
        ("while_writing", "while_idle"),
    )

MISSING = {
    "SCSI host": ("scsi host", "usb-storage at 0000:00:10.0/1"),
    "survivor's block device": ("block device", "CACHE-000003"),
    "hub": ("usb device", "1-3"),
}
for _name, (_kind, _thing) in MISSING.items():
    add(
        "left over",
        f"missing at the end: {_name}",
        FAIL,
        "It was there at the beginning, nothing took it for good, and it is not there at the end.",
        lambda tape, k=_kind, t=_thing: change_census(tape, "end", k, less=t),
        ("while_writing", "while_idle"),
    )
add(
    "left over",
    "missing at the end: a mount elsewhere",
    PASS,
    "Somebody logged out: not at the rig.",
    lambda tape: change_census(tape, "begin", "mount", ("tmpfs on /run/user/1000 (tmpfs)",)),
    ("while_writing",),
)
add(
    "left over",
    "not counted at the beginning",
    UNKNOWN,
    "What was there at the beginning is not on record.",
    lambda tape: tape.drop(of("census", moment="begin")),
    SEVERAL,
)
add(
    "left over",
    "not counted at the end",
    UNKNOWN,
    "What was there at the end is not on record.",
    lambda tape: tape.drop(of("census", moment="end")),
    SEVERAL,
)
add(
    "left over",
    "counted in another order",
    PASS,
    "Order means nothing.",
    lambda tape: tape.map(
        of("census", moment="end"), lambda e: e | {"things": {k: v[::-1] for k, v in e["things"].items()}}
    ),
    SEVERAL,
)


def _slab(tape: Tape, grow: Callable[[int], int]) -> Tape:
    cycle = 0
    events = []
    for event in tape.events:
        if event["type"] == "census" and event["moment"] == "cycle":
            slab = dict(event["slab"])
            slab["kmalloc-1k"] = slab.get("kmalloc-1k", 0) + grow(cycle)
            event = event | {"slab": slab}
            cycle += 1
        events.append(event)
    return Tape(tuple(events))


add(
    "leak",
    "12 kB a cut",
    FAIL,
    "Eight cuts, 12 kB more after each: what a driver leaks with a disk.",
    lambda tape: _slab(tape, lambda i: 12288 * i),
    AGAIN,
)
add(
    "leak",
    "100 kB a cut",
    FAIL,
    "Eight cuts, 100 kB more after each.",
    lambda tape: _slab(tape, lambda i: 102400 * i),
    AGAIN,
)
add(
    "leak",
    "1 MB a cut",
    FAIL,
    "Eight cuts, 1 MB more after each.",
    lambda tape: _slab(tape, lambda i: 1 << 20 if not i else (1 << 20) * i),
    AGAIN,
)
add(
    "leak",
    "once, at the first cut",
    PASS,
    "A cache that fills as it is first used is not a leak.",
    lambda tape: _slab(tape, lambda i: 300000 if i else 0),
    AGAIN,
)
add(
    "leak",
    "a little up and down",
    (PASS, UNKNOWN),
    "A few kB up and down are what caches do: no leak, though they may hide one.",
    lambda tape: _slab(tape, lambda i: 4096 * (i % 2)),
    AGAIN,
)
add(
    "leak",
    "memory not known",
    UNKNOWN,
    "The kernel did not say what its caches hold.",
    lambda tape: tape.change(of("census", moment="cycle"), slab={}),
    AGAIN,
)


@edit("leak", FAIL, AGAIN)
def a_scsi_host_with_every_cut(tape: Tape) -> Tape:
    """One SCSI host more after each cut."""
    count = 0

    def more(event: Event) -> Event:
        nonlocal count
        count += 1
        hosts = [*event["things"]["scsi host"], *[f"usb-storage at 0000:00:10.0/9{i}" for i in range(count)]]
        return event | {"things": event["things"] | {"scsi host": hosts}}

    return tape.map(of("census", moment="cycle"), more)


@edit("leak", UNKNOWN, AGAIN)
def five_censuses_missing(tape: Tape) -> Tape:
    """Three censuses do not show a slope."""
    lost = tape.all(of("census", moment="cycle"))[:5]
    return tape.drop(lambda event: any(event is one for one in lost))
