"""Edits of what is left on the DUT, of processes, volumes, bystanders, discovery and of data read back by fio."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.mutations_edits import FAIL, PASS, UNKNOWN, Apply, Due, add, edit
from benchmarks.mutations_others import with_bystander
from benchmarks.mutations_tape import Event, Tape, Which, between, both, of

SEVERAL = ("while_writing", "while_idle", "a_hub_is_gone_for_a_while")
AGAIN = ("many_cuts_leave_nothing_behind",)
FOUND = ("every_disk_is_found_at_its_place",)
FOREVER = ("a_cable_is_gone_for_good",)


def _count(tape: Tape, moment: str, kind: str, more: tuple[str, ...] = (), less: str = "") -> Tape:
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
        lambda tape, k=_kind, t=_thing: _count(tape, "end", k, (t,)),
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
        tape = _count(tape, "end", kind, (thing,))
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
        lambda tape, k=_kind, t=_thing: _count(tape, "end", k, less=t),
        ("while_writing", "while_idle"),
    )
add(
    "left over",
    "missing at the end: a mount elsewhere",
    PASS,
    "Somebody logged out: not at the rig.",
    lambda tape: _count(tape, "begin", "mount", ("tmpfs on /run/user/1000 (tmpfs)",)),
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


# --- bystanders -------------------------------------------------------------------------------------------------------


@edit("bystander", FAIL, ("while_writing", "while_idle"), "shelf")
def bystander_written(tape: Tape) -> Tape:
    """A disk that is not scratch was written, by the kernel's own count."""
    tape = with_bystander(tape)
    at = tape.off_at + 0.5
    return tape.map(
        both(of("sample"), between(at, float("inf"))),
        lambda e: e | {"disks": e["disks"] | {"sdx": [50, 36864, 4096, 6, 1, 0, 0, 12]}},
    )


@edit("bystander", FAIL, ("while_writing", "while_idle"), "shelf")
def bystander_written_seen_from_outside(tape: Tape) -> Tape:
    """A disk that is not scratch was written, by the bench's look at its medium."""
    tape = with_bystander(tape)
    return tape.insert(
        {
            "type": "outside",
            "at": tape.judged_at - 0.1,
            "disk": "shelf",
            "ok": False,
            "method": "sha256",
            "detail": "sector 8 differs",
        }
    )


@edit("bystander", FAIL, ("while_writing",), "shelf")
def bystander_reset(tape: Tape) -> Tape:
    """A disk that is not part of the test was reset as the cable was cut."""
    return with_bystander(tape).say(tape.off_at + 0.1, "usb 2-4: reset SuperSpeed USB device number 7 using xhci_hcd")


# --- discovery --------------------------------------------------------------------------------------------------------


def _found_as(name: str, why: str, due: Due = FAIL, **fields: object) -> None:
    add(
        "discovery",
        name,
        due,
        why,
        lambda tape: tape.map(of("disk.attached", disk="behind"), lambda e: e | fields),
        FOUND,
        "behind" if due is FAIL else "",
    )


_found_as("half its size", "The rig file says twice as many bytes.", size=16777216)
_found_as("no size", "It was announced with 0 bytes.", size=0)
_found_as("another place", "It hangs where the rig file has nothing.", place="0000:00:10.0/4:0")


@edit("discovery", FAIL, FOUND, "behind")
def never_found(tape: Tape) -> Tape:
    """Not announced within 25 s of being plugged in; 20 s are allowed."""
    tape = tape.drop(either_of(tape, "behind"))
    tape = _count(
        _count(tape, "begin", "block device", less="CACHE-000003"), "end", "block device", less="CACHE-000003"
    )
    return tape.blind("behind").wait(tape.judged_at - 0.05, 25.0)


@edit("discovery", FAIL, FOUND, "behind")
def found_after_25_seconds(tape: Tape) -> Tape:
    """Announced 25 s after being plugged in; 20 s are allowed."""
    return tape.wait(tape.attached("behind")["at"] - 0.4, 25.0)


@edit("discovery", FAIL, FOUND, "behind")
def found_with_another_serial(tape: Tape) -> Tape:
    """Something is at its place that has another serial number."""
    tape = tape.change(of("disk.attached", disk="behind"), serial="OTHER-1", disk="")
    return tape.wait(tape.judged_at - 0.02, 25.0)


@edit("discovery", FAIL, FOUND, "behind")
def found_twice(tape: Tape) -> Tape:
    """One disk was announced under two names, both still there."""
    now = tape.attached("behind")
    twin = {"kname": "sdq", "diskseq": 99, "at": now["at"] + 0.02, "sysfs": now["sysfs"].rpartition("/")[0] + "/sdq"}
    return tape.insert(now | twin)


@edit("discovery", FAIL, FOUND, "bot")
def flapped_as_it_was_found(tape: Tape) -> Tape:
    """It came, went and came again, with nothing cut."""
    at = tape.attached("bot")["at"]
    tape = tape.wait(tape.judged_at - 0.02, 3.0)
    return tape.leave("bot", at + 0.6, at + 2.0)


@edit("discovery", FAIL, FOUND, "behind")
def enumerated_at_the_third_try(tape: Tape) -> Tape:
    """It did not answer as it was enumerated, and was only found at the third try."""
    at, usb = tape.attached("behind")["at"] - 1.3, tape.names("behind").usb
    return tape.say(
        at,
        f"usb {usb}: device descriptor read/64, error -71",
        f"usb {usb}: device descriptor read/64, error -71",
        level=3,
    )


@edit("discovery", FAIL, FOUND, "behind")
def io_error_as_it_was_found(tape: Tape) -> Tape:
    """Its first sector could not be read."""
    now = tape.attached("behind")
    return tape.say(
        now["at"] - 0.02,
        f"I/O error, dev {now['kname']}, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        level=3,
    )


@edit("discovery", PASS, FOUND)
def found_a_second_later(tape: Tape) -> Tape:
    """A second more is nothing beside 20 s."""
    return tape.wait(tape.attached("behind")["at"] - 0.4, 1.0)


@edit("discovery", FAIL, ("a_disk_is_discovered_while_the_others_work",), "uas")
def much_slower_under_load(tape: Tape) -> Tape:
    """It took 8 s longer to come back while the others were written; three times as long and 1 s are allowed."""
    on = tape.all(of("edge", state="on", phase="commanded"))[1]["at"]
    return tape.wait(on + 0.05, 8.0)


def either_of(tape: Tape, disk: str) -> Which:
    names = tape.names(disk)
    words = (f"usb {names.usb}:", f"{names.usb}:1.0", f" {names.address}:", f"[{names.kname}]")

    def which(event: Event) -> bool:
        if event["type"] == "disk.attached":
            return bool(event["disk"] == disk)
        if event["type"] == "uevent":
            return f"/{names.usb}" in event["devpath"]
        return event["type"] == "kernel" and any(word in event["text"] for word in words)

    return which
