"""Edits of what today's agents record beside the first ones: how disks are driven, the kernel's state, tasks, activity,
timeouts and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.edits.events import Event, between, both, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

WATCHED = ("watched_while_writing",)
MANY = ("watched_many_cuts",)
EITHER = (*WATCHED, *MANY)

# --- how disks are driven ---------------------------------------------------------------------------------------------


def _driven(tape: Tape, disk: str, moments: Iterable[str], **values: str) -> Tape:
    """The properties of a disk's last attachment, as they were read at these moments."""
    diskseq = tape.all(of("disk.attached", disk=disk))[-1]["diskseq"]

    def other(event: Event) -> Event:
        return event | {"values": event["values"] | values}

    mine = of("disk.properties", disk=disk, diskseq=diskseq)
    return tape.map(lambda event: mine(event) and event["moment"] in moments, other)


BACK_AS = {
    "read-only": {"ro": "1"},
    "without a write cache": {"write_cache": "write through"},
    "with larger logical blocks": {"logical_block_size": "4096"},
    "with smaller requests": {"max_sectors_kb": "32", "max_hw_sectors_kb": "32"},
    "offline": {"state": "offline"},
    "blocked": {"state": "blocked"},
    "without a size": {"size": "0"},
    "half its size": {"size": "65536"},
    "on another driver": {"driver": "uas"},
}
for _name, _values in BACK_AS.items():
    add(
        "driven",
        f"victim is back {_name}",
        FAIL,
        "The disk is driven otherwise than before its cut, from its return to the end.",
        lambda tape, values=_values: _driven(tape, tape.victim, ("attached", "end"), **values),
        EITHER,
        "victim",
    )
AT_THE_END: dict[str, dict[str, str]] = {
    "read-only": {"ro": "1"},
    "offline": {"state": "offline"},
    "blocked": {"state": "blocked"},
    "without a write cache": {"write_cache": "write through"},
    "without a size": {"size": "0"},
    "with smaller requests": {"max_sectors_kb": "64", "max_hw_sectors_kb": "64"},
}
for _name, _values in AT_THE_END.items():
    add(
        "driven",
        f"survivor ends {_name}",
        FAIL,
        "The disk never went, and is driven otherwise at the end.",
        lambda tape, values=_values: _driven(tape, tape.survivor, ("end",), **values),
        EITHER,
        "survivor",
    )
for _whose in ("victim", "survivor"):
    add(
        "driven",
        f"how the {_whose} was driven at the end is missing",
        UNKNOWN,
        "The agent was to record it, and nothing says that it is as before.",
        lambda tape, whose=_whose: tape.drop(of("disk.properties", disk=getattr(tape, whose), moment="end")),
        EITHER,
    )
add(
    "driven",
    "more commands at once",
    FAIL,
    "An emulated disk takes as many as before.",
    lambda tape: _driven(tape, tape.victim, ("attached", "end"), queue_depth="30"),
    WATCHED,
)

# --- the state of the kernel ------------------------------------------------------------------------------------------


def _ends(**fields: Any) -> Callable[[Tape], Tape]:
    return lambda tape: tape.change(of("dut.state", moment="end"), **fields)


for _name, _bits in {"warned": 1 << 9, "died": 1 << 7, "locked up": 1 << 14, "bad page": 1 << 5}.items():
    add("state", f"tainted: {_name}", FAIL, "The kernel's own flag says that it broke.", _ends(taint=_bits), EITHER)
add(
    "state",
    "tainted from the beginning",
    PASS,
    "What tainted the kernel did so before anything was cut.",
    lambda tape: tape.change(of("dut.state"), taint=1 << 12),
    EITHER,
)
add(
    "state",
    "another boot at the end",
    (FAIL, UNKNOWN),
    "The DUT restarted in between.",
    _ends(boot_id="11111111-1111-4111-8111-111111111111"),
    EITHER,
)
add("state", "another kernel at the end", (FAIL, UNKNOWN), "The DUT restarted in between.", _ends(kernel="5.4"), EITHER)
add(
    "state",
    "missing at the end",
    UNKNOWN,
    "It was to be recorded.",
    lambda t: t.drop(of("dut.state", moment="end")),
    EITHER,
)
add("state", "missing altogether", UNKNOWN, "It was to be recorded.", lambda tape: tape.drop(of("dut.state")), EITHER)


@edit("state", FAIL, EITHER, "usb_storage")
def driver_is_held(tape: Tape) -> Tape:
    """Six more references to the driver than at the beginning: it cannot be unloaded any more."""
    held = tape.first(of("dut.state", moment="end"))["modules"]
    return tape.change(of("dut.state", moment="end"), modules=held | {"usb_storage": held["usb_storage"] + 6})


# --- tasks and activity -----------------------------------------------------------------------------------------------


def _watched_for_longer(tape: Tape) -> Tape:
    """Fifteen seconds more before the judgement, in which the agent looks as often as it does."""
    since = tape.judged_at - 0.2
    looks: list[Event] = [{"type": "dut.activity", "at": since + 2.0 * n, "seconds": 2.0} for n in range(1, 8)]
    return tape.wait(since, 15.0).insert(*looks)


def _blocked(tape: Tape, **fields: Any) -> Tape:
    """A task that was blocked until shortly before the end, in a story that lasts long enough."""
    tape = _watched_for_longer(tape)
    at = tape.judged_at - 0.1
    known: Event = {"type": "task.blocked", "at": at, "pid": 133, "name": "kworker/1:2+usb_hub_wq", "kernel": True}
    known |= {"seconds": 12.0, "since": at - 12.0, "wchan": "usb_kill_urb", "stack": ["usb_kill_urb+0x5a/0x90"]}
    return tape.insert(known | fields)


add("tasks", "hub worker blocked", FAIL, "A kernel thread sleeps in state D for 12 s.", _blocked, EITHER, "usb_hub_wq")
for _name, _fields in {
    "error handler blocked": {"name": "scsi_eh_2", "wchan": "blk_mq_freeze_queue_wait"},
    "process blocked": {"name": "fio", "kernel": False, "wchan": "io_schedule"},
    "blocked and released": {"ended": True},
}.items():
    add(
        "tasks",
        _name,
        FAIL,
        "A task slept in state D for 12 s on an emulated bench.",
        lambda tape, fields=_fields: _blocked(tape, **fields),
        WATCHED,
    )
add(
    "tasks",
    "blocked before the scenario began",
    PASS,
    "What was so before is nobody's doing in this scenario.",
    lambda tape: _blocked(tape, before=True),
    WATCHED,
)
add(
    "tasks",
    "blocked for three seconds",
    PASS,
    "Healthy tasks on a busy machine sleep that long.",
    lambda tape: _blocked(tape, seconds=3.2, ended=True),
    WATCHED,
)


def _busy(tape: Tape, change: Callable[[Event], Event]) -> Tape:
    tape = _watched_for_longer(tape)
    return tape.map(both(of("dut.activity"), between(tape.off_at + 2.0, tape.judged_at)), change)


add(
    "tasks",
    "a worker spins",
    FAIL,
    "A kernel thread takes a whole CPU from the cut to the end.",
    lambda tape: _busy(tape, lambda event: event | {"threads": {"kworker/1:2+usb_hub_wq (133)": 0.97}}),
    WATCHED,
    "usb_hub_wq",
)
add(
    "tasks",
    "a storm of interrupts",
    FAIL,
    "Interrupts take a whole CPU from the cut to the end.",
    lambda tape: _busy(tape, lambda event: event | {"hard": 0.9, "soft": 0.08, "interrupts": 140_000}),
    WATCHED,
    "interrupts",
)
add(
    "tasks",
    "a worker is busy",
    PASS,
    "A fifth of a CPU is no spinning.",
    lambda tape: _busy(tape, lambda event: event | {"threads": {"kworker/0:1 (22)": 0.2}}),
    WATCHED,
)

# --- memory and numbers -----------------------------------------------------------------------------------------------


def _grows(tape: Tape, line: str, per_cut: int) -> Tape:
    counted = [event for event in tape.all(of("census")) if event["moment"] == "cycle"]
    more = {id(event): number * per_cut for number, event in enumerate(counted)}
    events = (
        event | {"memory": event["memory"] | {line: event["memory"][line] + more[id(event)]}}
        if id(event) in more
        else event
        for event in tape.events
    )
    return Tape(tuple(events))


for _line, _much in {"SUnreclaim": 524_288, "VmallocUsed": 262_144, "KernelStack": 16_384, "Percpu": 65_536}.items():
    add(
        "memory",
        f"{_line} grows",
        FAIL,
        "The kernel's own memory grows with each of sixteen cuts.",
        lambda tape, line=_line, much=_much: _grows(tape, line, much),
        MANY,
        "memory",
    )
add(
    "memory",
    "SUnreclaim grows by a page in four cuts",
    PASS,
    "Healthy kernels differ by more.",
    lambda tape: _grows(tape, "SUnreclaim", 1024),
    MANY,
)


@edit("memory", FAIL, MANY, "victim")
def host_numbers_rise(tape: Tape) -> Tape:
    """Each return gives the disk a higher SCSI host number: no host was ever released."""
    numbers = {event["diskseq"]: n for n, event in enumerate(tape.all(of("disk.attached", disk=tape.victim)))}

    def other(event: Event) -> Event:
        return event | {"sysfs": event["sysfs"].replace("/host0/", f"/host{10 + numbers[event['diskseq']]}/")}

    return tape.map(of("disk.attached", disk=tape.victim), other)
