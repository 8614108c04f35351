"""Edits of the record's shape: events of any kind that are missing, doubled, garbled, late on paper or about somebody
else; and changes of the writing that change nothing of what it says."""

from __future__ import annotations

import random

from benchmarks.edits.events import Event, both, either, of, time_of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

ALL = ("while_writing", "while_idle", "a_cable_is_gone_for_good", "many_cuts_leave_nothing_behind")
STAMPED = ("a_cable_comes_loose_between_flushes",)
ANY = (*ALL, *STAMPED, "a_hub_is_gone_for_a_while", "every_disk_is_found_at_its_place")
SOME = ("while_writing", "while_idle")

ONCE = (
    "census",
    "clock",
    "cut.armed",
    "disk.attached",
    "disk.detached",
    "dut.ready",
    "edge",
    "heal",
    "judge",
    "kernel",
    "ledger.begin",
    "ledger.end",
    "ledger.part",
    "load.begin",
    "load.end",
    "load.settled",
    "phase",
    "readback.begin",
    "readback.end",
    "residue",
    "sample",
    "scenario.end",
    "uevent",
    "verify",
)
"""Kinds of events of which one more, or one less, can never be the DUT's doing."""


def _one_of(tape: Tape, kind: str, share: float) -> Event | None:
    events = tape.all(of(kind))
    return events[min(int(len(events) * share), len(events) - 1)] if events else None


def _have(kind: str) -> tuple[str, ...]:
    """The bases that have such events: found as the edits are applied to the kept histories."""
    stamps = ("ledger.begin", "ledger.end", "ledger.part", "readback.begin", "readback.end")
    if kind in stamps:
        return STAMPED
    if kind == "heal":
        return ("a_cable_is_gone_for_good",)
    if kind in ("load.begin", "load.end", "load.settled"):
        return ("while_writing", "a_hub_is_gone_for_a_while")
    return ("while_writing",)


for _kind in ONCE:
    for _share, _which in ((0.0, "first"), (0.5, "middle"), (1.0, "last")):

        def _doubled(tape: Tape, kind: str = _kind, share: float = _share) -> Tape:
            event = _one_of(tape, kind, share)
            return tape.double(lambda one: one is event)

        def _dropped(tape: Tape, kind: str = _kind, share: float = _share) -> Tape:
            event = _one_of(tape, kind, share)
            return tape.lose(lambda one: one is event)

        add(
            "doubled",
            f"{_which} {_kind}",
            (PASS, UNKNOWN),
            "One event on record twice says nothing new: it can never accuse the DUT.",
            _doubled,
            _have(_kind),
        )
        add(
            "one missing",
            f"{_which} {_kind}",
            (PASS, UNKNOWN),
            "A line that is missing can never accuse the DUT.",
            _dropped,
            _have(_kind),
        )


# --- nothing changed of what it says ----------------------------------------------------------------------------------


@edit("same in other words", PASS, [name for name in ANY if name not in STAMPED])
def later_by_a_thousand_seconds(tape: Tape) -> Tape:
    """The DUT had been up for a thousand seconds longer."""

    def later(event: Event) -> Event:
        fields = ("at", "asked_at", "sent", "last_heard", "since")
        return event | {name: round(event[name] + 1000.0, 6) for name in fields if event.get(name) is not None}

    return tape.map(lambda event: True, later)


@edit("same in other words", PASS, ANY)
def written_in_order_of_time(tape: Tape) -> Tape:
    """What arrived a little out of order is put in order."""
    begin, end = tape.events.index(tape.first(of("scenario.begin"))), tape.events.index(tape.last(of("judge")))
    inside, last = list(tape.events[begin + 1 : end]), 0.0
    keyed = []
    for event in inside:
        last = max(last, 0.0) if time_of(event) is None else float(event["at"])
        keyed.append((last, event))
    keyed.sort(key=lambda pair: pair[0])
    return Tape((*tape.events[: begin + 1], *(event for _, event in keyed), *tape.events[end:]))


@edit("same in other words", PASS, ANY)
def neighbours_exchanged(tape: Tape) -> Tape:
    """Samples and uevents that are next to each other in the record change places, with their times."""
    events, i = list(tape.events), 0
    kinds = {"sample", "uevent", "clock", "kernel"}
    while i + 1 < len(events):
        one, two = events[i], events[i + 1]
        if one["type"] != two["type"] and {one["type"], two["type"]} <= kinds:
            events[i], events[i + 1] = two, one
            i += 1
        i += 1
    return Tape(tuple(events))


@edit("same in other words", PASS, ANY)
def events_of_unknown_kinds(tape: Tape) -> Tape:
    """A later version records more than this one knows."""
    made = []
    for i, event in enumerate(tape.events):
        made.append(event)
        if i % 40 == 20 and time_of(event) is not None:
            made.append({"type": "future.event", "at": event["at"], "what": {"nested": [1, 2, 3]}})
    return Tape(tuple(made))


@edit("same in other words", PASS, ANY)
def fields_that_nobody_knows(tape: Tape) -> Tape:
    """A later version records more about each event than this one knows."""
    return tape.map(lambda event: True, lambda event: event | {"future": {"why": "not known here"}})


@edit("same in other words", PASS, ANY)
def fields_in_another_order(tape: Tape) -> Tape:
    """The order of the fields of a JSON object means nothing."""
    return tape.map(lambda event: True, lambda event: dict(reversed(event.items())))


@edit("same in other words", PASS, ANY)
def with_a_note(tape: Tape) -> Tape:
    """Somebody left a note."""
    return tape.insert({"type": "note", "at": tape.judged_at - 0.2, "text": "the table shook", "subject": "bot"})


@edit("same in other words", PASS, SOME)
def with_more_answers_about_the_clock(tape: Tape) -> Tape:
    """The clock was asked twice as often."""
    clocks = tape.all(of("clock"))
    more = [one | {"at": one["at"] + 0.1, "controller": one["controller"] + 0.1} for one in clocks]
    return tape.insert(*more)


@edit("same in other words", PASS, SOME)
def with_some_noise_in_the_times(tape: Tape) -> Tape:
    """Samples a few milliseconds earlier or later are what timers do."""
    jitter = random.Random(1)
    return tape.map(of("sample"), lambda event: event | {"at": round(event["at"] + jitter.uniform(-0.008, 0.008), 6)})


@edit("same in other words", PASS, SOME)
def a_strange_disk_elsewhere(tape: Tape) -> Tape:
    """A memory card was put into a reader on another controller: no disk of the rig's."""
    at = tape.off_at + 0.4
    sysfs = "/sys/devices/pci0000:00/0000:00:14.0/usb9/9-2/9-2:1.0/host7/target7:0:0/7:0:0:0/block/sdm"
    card = tape.attached("bot") | {"at": at, "disk": "", "kname": "sdm", "diskseq": 44, "devt": "8:192"}
    card |= {"serial": "CARD", "place": "0000:00:14.0/2:0", "size": 1 << 30, "sysfs": sysfs}
    came = {"type": "uevent", "at": at, "action": "add", "subsystem": "block", "devtype": "disk"}
    came["devpath"] = sysfs.removeprefix("/sys")
    lines = (
        "usb 9-2: new high-speed USB device number 3 using xhci_hcd",
        "scsi host7: usb-storage 9-2:1.0",
        "sd 7:0:0:0: [sdm] Attached SCSI removable disk",
    )
    tape = tape.map(
        both(of("sample"), lambda event: event["at"] > at),
        lambda event: event | {"disks": event["disks"] | {"sdm": [44, 4096, 0, 1, 0, 0, 0, 4]}},
    )
    return tape.say(at - 0.02, *lines).insert(came, card)


# --- about somebody else ----------------------------------------------------------------------------------------------


_ABOUT: tuple[tuple[str, str, str, object, str], ...] = (
    (
        "removal under the survivor's name",
        "disk.detached",
        "disk",
        "bot",
        "It names one disk and another's kernel name.",
    ),
    ("removal under an unknown name", "disk.detached", "disk", "disk99", "The rig does not have that disk."),
    ("removal under another kernel name", "disk.detached", "kname", "sdq", "Nobody had that kernel name."),
    ("edges of another cut", "edge", "cut", 7, "The edges belong to a cut that was never armed."),
    ("edges at an unknown point", "edge", "point", "hub9.cable", "The rig does not have that cut point."),
    ("armed as cut 7", "cut.armed", "cut", 7, "The cut that was armed has no edges."),
    ("armed without a victim", "cut.armed", "victims", [], "A cut that takes nobody says nothing about who went."),
    ("armed at an unknown point", "cut.armed", "point", "hub9.cable", "The rig does not have that cut point."),
    ("armed for good", "cut.armed", "permanent", True, "It was for good, and was restored before the judgement."),
)
for _name, _kind, _field, _value, _why in _ABOUT:
    add(
        "somebody else",
        _name,
        UNKNOWN,
        _why,
        lambda tape, k=_kind, f=_field, v=_value: tape.change(of(k), **{f: v}),
        ("while_writing",) if _value == "bot" else SOME,
    )


@edit("somebody else", (UNKNOWN, FAIL), SOME)
def returned_under_the_survivors_name(tape: Tape) -> Tape:
    """The return names one disk and has the serial number of another."""
    now = tape.attached(tape.victim, 1)
    return tape.map(lambda event: event is now, lambda event: event | {"disk": tape.survivor})


@edit("somebody else", UNKNOWN, ("while_writing",))
def end_of_an_unknown_load(tape: Tape) -> Tape:
    """The survivor's load has an end under the name of another job."""
    return tape.change(of("load.end", disk=tape.survivor), job="load99-bot")


@edit("somebody else", UNKNOWN, ("while_writing",))
def verified_an_unknown_disk(tape: Tape) -> Tape:
    """What was read back is said to be of a disk that the rig does not have."""
    return tape.change(of("verify", disk=tape.survivor), disk="disk99")


@edit("somebody else", UNKNOWN, STAMPED)
def read_back_of_another_disk(tape: Tape) -> Tape:
    """The read-back of the stamped disk is said to be another disk's."""
    return tape.change(of("readback.begin", disk=tape.victim), disk="behind")


@edit("somebody else", UNKNOWN, SOME)
def survivor_never_announced(tape: Tape) -> Tape:
    """A disk of the rig that was to be judged was never announced."""
    return tape.drop(of("disk.attached", disk=tape.survivor))


@edit("somebody else", UNKNOWN, SOME)
def victim_never_announced(tape: Tape) -> Tape:
    """The victim was never announced before its cut."""
    first = tape.attached(tape.victim)
    return tape.drop(lambda event: event is first)


@edit("somebody else", UNKNOWN, SOME)
def another_rig(tape: Tape) -> Tape:
    """The rig file on record does not have the disks that the record is about."""
    rig = dict(tape.rig)
    rig["disk"] = [disk | {"name": f"other{i}", "serial": f"X-{i}"} for i, disk in enumerate(rig["disk"])]
    return tape.change(of("run.begin"), rig=rig)


# --- garbled ----------------------------------------------------------------------------------------------------------


def _garble(which: str, **fields: object) -> None:
    add(
        "garbled",
        f"{which}: {', '.join(f'{k} {v!r}' for k, v in fields.items())}",
        UNKNOWN,
        "A line that cannot be read may have been anything.",
        lambda tape: _garbled(tape, which, fields),
        ("while_writing",),
    )


def _garbled(tape: Tape, kind: str, fields: dict[str, object]) -> Tape:
    event = _one_of(tape, kind, 0.5)
    return tape.map(lambda one: one is event, lambda one: one | fields)


_garble("edge", at="soon")
_garble("kernel", text=None)
_garble("kernel", text=["BUG"])
_garble("sample", disks=[])
_garble("sample", disks={"sda": [1]})
_garble("disk.attached", diskseq="two")
_garble("disk.detached", diskseq=None)
_garble("judge", checks="all")
_garble("load.end", asked="perhaps")
_garble("cut.armed", victims=3)
_garble("census", things=[])
_garble("verify", bad=7)


# --- evidence of one kind ---------------------------------------------------------------------------------------------

for _kind, _due, _why in (
    ("uevent", (PASS, UNKNOWN), "Attaches and removals are on record without them."),
    ("phase", (PASS, UNKNOWN), "What the scenario was doing when is not on record."),
):
    add("evidence missing", f"no {_kind}", _due, _why, lambda tape, k=_kind: tape.lose(of(k)), SOME)
add(
    "evidence missing",
    "no disk events at all",
    UNKNOWN,
    "Neither an announcement nor a removal is on record.",
    lambda tape: tape.lose(either(of("disk.attached"), of("disk.detached"))),
    SOME,
)
add(
    "evidence missing",
    "no edges at all",
    UNKNOWN,
    "A cut was armed and never made.",
    lambda tape: tape.lose(of("edge")),
    SOME,
)
for _after, _why in (
    ("off", "Nothing that the agent sent after the cut is on record."),
    ("on", "Nothing that the agent sent after the cable was put back is on record."),
):
    add(
        "evidence missing",
        f"agent silent after {_after}",
        UNKNOWN,
        _why,
        lambda tape, a=_after: tape.end_at(tape.edge(a)["at"] + 0.02),
        (*ALL[:2], "while_reading"),
    )
