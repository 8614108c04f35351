"""Edits of what a cut did to its victims: how and when the kernel took them off its list."""

from __future__ import annotations

from benchmarks.edits.events import Event, between, both, either, of
from benchmarks.edits.registry import CUT, FAIL, LOADED, PASS, UNKNOWN, edit
from benchmarks.edits.tape import Tape

TEMPORARY = (*CUT, "a_cable_comes_loose_between_flushes")
FOREVER = ("a_cable_is_gone_for_good", "a_disk_dies_in_use")
MANY = ("many_cuts_leave_nothing_behind", "five_power_cuts_in_a_row")
HUB = ("a_hub_is_gone_for_a_while",)
TREE = ("the_whole_tree_is_cut_in_operation", "a_disk_and_then_the_tree_are_replugged")
JUST = 0.001


def without_going(tape: Tape, disk: str) -> Tape:
    """Without anything of what the kernel recorded as a disk went for the first time and came back."""
    names = tape.names(disk)
    gone = of("disk.detached", disk=disk)
    back = both(of("disk.attached", disk=disk), between(tape.off_at, float("inf")))
    after = between(tape.off_at - JUST, tape.judged_at)
    uevents = both(of("uevent"), after, lambda event: f"/{names.usb}" in event["devpath"])
    said = both(of("kernel"), after, lambda event: about(event["text"], names.usb, names.address, names.kname))
    return tape.drop(either(gone, back, uevents, said))


def about(text: str, usb: str, address: str, kname: str) -> bool:
    host = f"host{address.partition(':')[0]}"
    return any(word in text for word in (f"{usb}:", f" {address}:", f"{kname}]", f"dev {kname},", f"scsi {host}:"))


def stays(tape: Tape, disk: str, moving: bool = True) -> Tape:
    """The disk never goes. Its samples go on, with the counters they had at the cut, or at the pace before it."""
    names = tape.names(disk)
    tape = without_going(tape, disk)
    last = [event for event in tape.all(of("sample")) if event["at"] < tape.off_at and names.kname in event["disks"]]
    row, at = last[-1]["disks"][names.kname], last[-1]["at"]
    before = next(event for event in last if event["at"] > at - 1.5)
    rate = [(two - one) / (at - before["at"]) for one, two in zip(before["disks"][names.kname], row, strict=True)]
    ended = tape.all(of("load.end", disk=disk))
    until = tape.stop_at if ended and tape.all(of("load.settled")) else tape.off_at

    def edit(event: Event) -> Event:
        span = max(0.0, min(event["at"], until) - at) if moving else 0.0
        new = [int(value + rate[i] * span) if i in (1, 2, 3, 4, 7) else value for i, value in enumerate(row)]
        rows = {kname: old for kname, old in event["disks"].items() if kname != names.kname}
        return event | {"disks": rows | {names.kname: new}}

    return tape.map(both(of("sample"), between(at + JUST, float("inf"))), edit)


def load_goes_on(tape: Tape, disk: str) -> Tape:
    """The disk's load ends without an error when it is asked to, as the others' do."""
    other = tape.first(of("load.end", disk=tape.survivor))
    fields = ("at", "asked", "asked_at", "exit_status", "message")
    return tape.map(
        of("load.end", disk=disk),
        lambda event: {k: v for k, v in event.items() if k != "errno"} | {name: other[name] for name in fields},
    )


# --- removal ----------------------------------------------------------------------------------------------------------


@edit("removal", FAIL, (*TEMPORARY, *MANY, *HUB, *TREE), "victim")
def removed_nine_seconds_late(tape: Tape) -> Tape:
    """The kernel saw the disconnect at once and took 9 s to take the disk off its list; 5 s are allowed."""
    return tape.removed_late(9.0)


@edit("removal", FAIL, FOREVER, "victim")
def removed_nine_seconds_late_for_good(tape: Tape) -> Tape:
    """The kernel saw the disconnect at once and took 9 s to take the disk off its list; 5 s are allowed."""
    return tape.removed_late(9.0)


@edit("removal", UNKNOWN, (*LOADED, "a_disk_dies_in_use"))
def stays_and_moves(tape: Tape) -> Tape:
    """The switch says off; the disk stays, with a load that goes on: nothing was cut, which is the bench's failure."""
    return load_goes_on(stays(tape.wait(tape.quiet_at, 8.0), tape.victim), tape.victim)


@edit("removal", UNKNOWN, ("while_idle",))
def stays_without_a_sign(tape: Tape) -> Tape:
    """The switch says off; the disk stays and the kernel saw nothing at all: nothing shows that it was cut."""
    return stays(tape.wait(tape.quiet_at, 14.0), tape.victim, moving=False)


@edit("removal", FAIL, ("while_idle", "a_disk_dies_in_use", "while_writing"), "victim")
def kernel_keeps_a_disk_that_it_saw_go(tape: Tape) -> Tape:
    """The kernel logged the disconnect and errors, and the disk was on its list 14 s later: a zombie."""
    names = tape.names(tape.victim)
    tape = stays(tape.wait(tape.quiet_at, 14.0), tape.victim, moving=False)
    lines = (
        f"usb {names.usb}: USB disconnect, device number 3",
        f"sd {names.address}: [{names.kname}] tag#0 FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK",
    )
    path = {"devpath": names.devpath, "devtype": "usb_device", "disks": [tape.victim]}
    return tape.say(tape.off_at + 0.003, *lines).insert(
        {"type": "uevent", "at": tape.off_at + 0.02, "action": "remove", "subsystem": "usb"} | path
    )


@edit("removal", (FAIL, UNKNOWN), CUT, "victim")
def removed_only_when_power_was_back(tape: Tape) -> Tape:
    """The disk was still on the list when its cable was put back: the kernel did not see it go while it was away."""
    gone, on = tape.gone_at(tape.victim), tape.on_at
    which = either(of("disk.detached"), both(of("uevent"), between(tape.off_at, on)))
    return tape.retime(both(which, between(gone - 0.2, on)), on - gone + 0.15)


@edit("removal", UNKNOWN, TEMPORARY)
def removal_not_on_record(tape: Tape) -> Tape:
    """The disk is announced twice and the record says nowhere when it went: an event is missing."""
    block = both(of("uevent", action="remove", subsystem="block"), between(tape.off_at, tape.judged_at))
    return tape.drop(either(of("disk.detached", disk=tape.victim), block))


@edit("removal", (UNKNOWN, PASS), CUT)
def removal_recorded_twice(tape: Tape) -> Tape:
    """One removal, on record twice with everything the same: it can never accuse the DUT."""
    return tape.double(of("disk.detached", disk=tape.victim))


@edit("removal", UNKNOWN, CUT)
def removal_of_an_unknown_attachment(tape: Tape) -> Tape:
    """The removal names an attachment (diskseq) that was never announced: the record contradicts itself."""
    return tape.change(of("disk.detached", disk=tape.victim), diskseq=77)


@edit("removal", FAIL, CUT, "victim")
def went_before_its_cut(tape: Tape) -> Tape:
    """The disk went half a second before its cut was commanded, the clocks being known to 2 ms: of its own accord."""
    gone = tape.gone_at(tape.victim)
    names = tape.names(tape.victim)
    signs = either(
        of("disk.detached"),
        both(of("uevent", action="remove")),
        lambda event: event["type"] == "kernel" and about(event["text"], names.usb, names.address, names.kname),
        of("load.end", disk=tape.victim),
    )
    window = between(tape.off_at - JUST, min(tape.on_at, gone + 0.3))
    by = tape.off_at - 0.6 - gone
    return tape.blind(tape.victim, gone + by, tape.on_at).retime(both(signs, window), by)


@edit("removal", PASS, ("while_idle",))
def went_within_the_clocks_error(tape: Tape) -> Tape:
    """The removal is stamped 3 ms before the command, and the command's time is known to 10 ms: no contradiction."""
    gone, off = tape.gone_at(tape.victim), tape.off_at
    names = tape.names(tape.victim)
    first = tape.first(lambda e: e["type"] == "kernel" and f"usb {names.usb}: USB disconnect" in e["text"])
    by = off - 0.003 - gone
    moved = either(of("disk.detached", disk=tape.victim), lambda e: e is first)
    tape = tape.change(of("edge"), error=0.010)
    return tape.retime(both(moved, between(off - JUST, gone + 0.1)), by).retime(of("none"), 0.0)


@edit("removal", FAIL, HUB, "victim")
def went_late_among_its_hubs_disks(tape: Tape) -> Tape:
    """The hub's other disks went at once; one stayed on the list for 8 s, though the kernel saw the hub go."""
    return tape.removed_late(8.0)
