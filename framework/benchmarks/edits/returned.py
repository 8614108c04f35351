"""Edits of the victims' return: when, where and as what."""

from __future__ import annotations

from benchmarks.edits.cuts import (
    HUB,
    MANY,
    TEMPORARY,
    about,
)
from benchmarks.edits.events import Event, between, both, either, of
from benchmarks.edits.registry import CUT, FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape
from plugpull.judging.results import Verdict

# --- the return -------------------------------------------------------------------------------------------------------


@edit("return", FAIL, (*TEMPORARY, *MANY, *HUB), "victim")
def back_after_25_seconds(tape: Tape) -> Tape:
    """Announced 25 s after its cable was put back; 15 s are allowed."""
    return tape.returned_late(25.0)


@edit("return", FAIL, (*TEMPORARY, *HUB), "victim")
def never_back_in_twenty_seconds(tape: Tape) -> Tape:
    """Not announced within 20 s of its cable being put back, with the DUT heard all the while."""
    return never_back(tape, 20.0)


@edit("return", (UNKNOWN, FAIL), TEMPORARY)
def never_back_in_a_short_record(tape: Tape) -> Tape:
    """Not announced, and the record ends a few seconds after the cable was put back: it may still have come."""
    return never_back(tape, 0.0)


def never_back(tape: Tape, seconds: float) -> Tape:
    disk = tape.victim
    names = tape.names(disk, 1)
    after = between(tape.on_at, tape.judged_at)
    gone = either(
        both(of("disk.attached", disk=disk), after),
        both(of("uevent"), after, lambda event: f"/{names.usb}" in event["devpath"]),
        both(of("kernel"), after, lambda event: about(event["text"], names.usb, names.address, names.kname)),
        of("verify", disk=disk),
    )
    place = tape.attached(disk)["place"]
    ends = tape.all(of("census", moment="end"))

    def without(event: Event) -> Event:
        things = {
            k: [n for n in v if place not in n and place.removesuffix(":0") != n.rpartition(" ")[2] and n != names.usb]
            for k, v in event["things"].items()
        }
        return event | {"things": things}

    tape = tape.drop(gone).blind(disk, tape.on_at, float("inf"))
    tape = tape.map(lambda event: any(event is one for one in ends), without)
    return tape.returned_late(seconds) if seconds else tape


def _as(
    name: str,
    why: str,
    due: tuple[Verdict, ...] = (FAIL,),
    on: tuple[str, ...] = TEMPORARY,
    said: tuple[str, str] = ("", ""),
    **fields: object,
) -> None:
    """The attach event after the return has these fields; the kernel log says ``said[1]`` instead of ``said[0]``."""

    def apply(tape: Tape) -> Tape:
        now = tape.attached(tape.victim, 1)
        tape = tape.map(lambda event: event is now, lambda event: event | fields)
        names = tape.names(tape.victim, 1)
        mine = both(
            of("kernel"),
            between(tape.on_at, tape.judged_at),
            lambda e: about(e["text"], names.usb, names.address, names.kname),
        )
        return tape.map(mine, lambda event: event | {"text": event["text"].replace(*said)}) if said[0] else tape

    add("return as another", name, due, why, apply, on, "victim" if due == (FAIL,) else "")


_as(
    "another serial number",
    "It came back with a serial number that is not its own.",
    said=("SerialNumber: CACHE-00000", "SerialNumber: OTHER-"),
    serial="OTHER-1",
)
_as("no serial number", "It came back without a serial number.", serial="")
_as(
    "half its size",
    "It came back with half its bytes.",
    said=("65536 512-byte logical blocks: (33.6 MB/32.0 MiB)", "32768 512-byte logical blocks: (16.8 MB/16.0 MiB)"),
    size=16777216,
)
_as(
    "one sector less", "It came back 512 bytes smaller.", said=("65536 512-byte", "65535 512-byte"), size=33554432 - 512
)
_as("no size", "It came back with 0 bytes.", said=("65536 512-byte", "0 512-byte"), size=0)
_as("another place", "Nobody moved its plug, and it came back at another port.", place="0000:00:10.0/4:0")
_as("a slower link", "It came back at 12 Mb/s.", said=("new SuperSpeed", "new full-speed"), speed="12", on=CUT)
_as(
    "a USB 2 link",
    "It came back at 480 Mb/s, after 5000.",
    said=("new SuperSpeed", "new high-speed"),
    speed="480",
    on=CUT,
)
_as("another model", "It came back as another model: a bridge in its boot ROM.", model="JMicron Generic")
add(
    "return as another",
    "another name though its own was free",
    FAIL,
    "It came back as sdq though nothing held its old name.",
    lambda tape: tape.renamed(tape.victim, 1, "sdq"),
    CUT,
    "victim",
)
_as("a faster link", "It came back at a faster link than before: nothing is lost.", (PASS,), speed="10000", on=CUT)
_as(
    "an old sequence number",
    "It came back with the diskseq it had, which the kernel never gives twice: a contradiction.",
    (UNKNOWN, FAIL),
    on=("while_idle",),
    diskseq=2,
)


@edit("return as another", FAIL, ("while_writing", "while_reading"), "victim")
def on_another_driver(tape: Tape) -> Tape:
    """It was a UAS disk and came back on usb-storage."""
    now = tape.attached(tape.victim, 1)
    tape = tape.map(lambda event: event is now, lambda event: event | {"driver": "usb-storage"})
    names = tape.names(tape.victim)
    tape = tape.hush("scsi host1: uas", tape.on_at)
    return tape.say(
        now["at"] - 0.08,
        f"usb-storage {names.usb}:1.0: USB Mass Storage device detected",
        "scsi host1: usb-storage 2-2:1.0",
    )


@edit("return as another", FAIL, ("while_writing",), "victim")
def driver_field_alone_changed(tape: Tape) -> Tape:
    """It was bound to uas and came back bound to usb-storage, by the attach event."""
    now = tape.attached(tape.victim, 1)
    return tape.map(lambda event: event is now, lambda event: event | {"driver": "usb-storage"})


@edit("return as another", FAIL, CUT, "victim")
def there_twice(tape: Tape) -> Tape:
    """It came back under two kernel names at once, both still there."""
    now = tape.attached(tape.victim, 1)
    twin = {"kname": "sdq", "diskseq": 99, "at": now["at"] + 0.3, "sysfs": now["sysfs"].rpartition("/")[0] + "/sdq"}
    return tape.insert(now | twin)


@edit("return as another", FAIL, CUT, "victim")
def announced_empty_in_between(tape: Tape) -> Tape:
    """It was announced with 0 bytes, removed and announced again with its size."""
    now = tape.attached(tape.victim, 1)
    empty = now | {"at": now["at"] - 0.2, "size": 0, "diskseq": 60}
    gone = {"type": "disk.detached", "at": now["at"] - 0.1, "disk": tape.victim, "kname": now["kname"], "diskseq": 60}
    return tape.insert(empty, gone)


@edit("return as another", FAIL, CUT, "victim")
def back_and_gone_again(tape: Tape) -> Tape:
    """It came back and went again half a second later, with nothing cut."""
    now = tape.attached(tape.victim, 1)
    names = tape.names(tape.victim, 1)
    gone = {
        "type": "disk.detached",
        "at": now["at"] + 0.5,
        "disk": tape.victim,
        "kname": now["kname"],
        "diskseq": now["diskseq"],
    }
    tape = tape.blind(tape.victim, now["at"] + 0.5, float("inf"))
    return tape.insert(gone).say(now["at"] + 0.45, f"usb {names.usb}: USB disconnect, device number 4")


@edit("return as another", FAIL, CUT, "victim")
def flaps(tape: Tape) -> Tape:
    """It came back, went and came back again, with nothing cut in between."""
    now = tape.attached(tape.victim, 1)
    names = tape.names(tape.victim, 1)
    gone = {
        "type": "disk.detached",
        "at": now["at"] + 0.3,
        "disk": tape.victim,
        "kname": now["kname"],
        "diskseq": now["diskseq"],
    }
    again = now | {"at": now["at"] + 0.8, "diskseq": 70}
    tape = tape.blind(tape.victim, now["at"] + 0.3, float("inf"))
    return tape.insert(gone, again).say(now["at"] + 0.25, f"usb {names.usb}: USB disconnect, device number 4")


@edit("return as another", FAIL, CUT, "victim")
def write_protected(tape: Tape) -> Tape:
    """The kernel found it write-protected after the return, and was not before."""
    return _after_return(tape, "Write Protect is off", "Write Protect is on")


@edit("return as another", FAIL, CUT, "victim")
def write_cache_off(tape: Tape) -> Tape:
    """Its write cache was enabled before the cut and is disabled after it."""
    return _after_return(tape, "Write cache: enabled", "Write cache: disabled")


@edit("return as another", FAIL, CUT, "victim")
def larger_blocks(tape: Tape) -> Tape:
    """Its logical blocks had 512 bytes and have 4096 after the return."""
    return _after_return(tape, "65536 512-byte logical blocks", "8192 4096-byte logical blocks")


def _after_return(tape: Tape, old: str, new: str) -> Tape:
    names = tape.names(tape.victim, 1)
    which = both(of("kernel"), between(tape.on_at, tape.judged_at), lambda e: f"[{names.kname}] {old}" in e["text"])
    assert tape.all(which), old
    return tape.map(which, lambda event: event | {"text": event["text"].replace(old, new)})


@edit("return", UNKNOWN, CUT)
def back_before_power_was_restored(tape: Tape) -> Tape:
    """It came back while its switch was off: the switch, or its wiring, did not obey the command."""
    gone, on = tape.gone_at(tape.victim), tape.on_at
    back = tape.back_at(tape.victim)
    tape = tape.wait(tape.quiet_at, 5.0)
    return (
        tape.retime(between(back + 5.0 - 0.5, back + 5.0 + 0.001), gone + 1.0 - back - 5.0 + 0.6).change(of("none"))
        if on
        else tape
    )


@edit("return", PASS, CUT)
def back_two_seconds_later(tape: Tape) -> Tape:
    """It took 2 s longer to come back, well within its 15 s."""
    return tape.returned_late(2.0)


@edit("removal", PASS, CUT)
def gone_a_little_later(tape: Tape) -> Tape:
    """It took 0.5 s longer to go, with its cable off for 2.5 s, well within the 5 s."""
    return tape.wait(tape.on_at - 0.01, 2.0).removed_late(0.5)


@edit("return as another", PASS, ("the_whole_tree_is_cut_in_operation", "a_disk_and_then_the_tree_are_replugged"))
def names_change_places(tape: Tape) -> Tape:
    """Cut off together, two disks came back under each other's names: names are given in the order of arrival."""
    last = {disk: len(tape.all(of("disk.attached", disk=disk))) - 1 for disk in ("bot", "behind")}
    bot, behind = (tape.attached(disk, last[disk])["kname"] for disk in ("bot", "behind"))
    tape = tape.renamed("bot", last["bot"], "sdtmp").renamed("behind", last["behind"], bot)
    tape = tape.renamed("bot", last["bot"], behind)
    swap = {"bot": behind, "behind": bot}
    back = tape.attached("bot", last["bot"])["at"]
    return tape.map(
        both(of("load.begin"), between(back, float("inf"))), lambda e: e | {"kname": swap.get(e["disk"], e["kname"])}
    )


@edit("return", PASS, HUB)
def slower_hub(tape: Tape) -> Tape:
    """A hub whose disks take 2 s longer is slow and fine."""
    return tape.returned_late(2.0)
