"""Edits of bystanders, and of how disks are found."""

from __future__ import annotations

from benchmarks.edits.events import Event, Which, between, both, of
from benchmarks.edits.left import change_census
from benchmarks.edits.others import with_bystander
from benchmarks.edits.registry import FAIL, PASS, Due, add, edit
from benchmarks.edits.state import FOUND
from benchmarks.edits.tape import Tape

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
    tape = change_census(
        change_census(tape, "begin", "block device", less="CACHE-000003"), "end", "block device", less="CACHE-000003"
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
