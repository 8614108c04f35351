"""Edits of the survivors' throughput."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.edits.events import Event, between, both, either, of
from benchmarks.edits.registry import FAIL, LOADED, PASS, UNKNOWN, Due, add, edit
from benchmarks.edits.tape import Tape

LOADS = (*LOADED, "survivors_keep_their_pace", "a_disk_dies_in_use")
PACED = (*LOADS, "a_cable_is_gone_for_good", "a_disk_is_discovered_while_the_others_work", "a_hub_is_gone_for_a_while")
STAMPED = ("power_fails_between_flushes",)


def cut_of(tape: Tape) -> float:
    """When the survivors' pace begins to be judged: the last cut that was made while they had a load."""
    begin = tape.settled_at
    return float(next(e["at"] for e in tape.all(of("edge", state="off", phase="commanded")) if e["at"] > begin))


def gone(tape: Tape) -> float:
    """Just after the last victim of that cut was taken off the list."""
    cut = cut_of(tape)
    done = either(of("disk.detached"), of("edge", state="off"))
    gone = [float(e["at"]) for e in tape.all(done) if cut <= e["at"] < cut + 1.0]
    return max([cut + 0.05, *gone]) + 0.02


def _return(tape: Tape) -> float:
    """When the cable was put back while the loads ran, or a second after the cut where it was not."""
    cut, watch = cut_of(tape), _watch(tape)
    ons = [float(e["at"]) for e in tape.all(of("edge", state="on", phase="commanded")) if cut < e["at"] < watch]
    return ons[0] + 0.05 if ons else cut + 1.0


def during(tape: Tape, seconds: float = 12.0) -> Tape:
    """A longer watch after the cut, so that what comes later is seen by whatever limit."""
    return tape.wait(_watch(tape), seconds)


def _watch(tape: Tape) -> float:
    stops = [e["asked_at"] for e in tape.all(of("load.end", disk=tape.survivor)) if e.get("asked_at")]
    return float(stops[0]) - 0.3


# --- too slow ---------------------------------------------------------------------------------------------------------


def _stall(name: str, why: str, at: str, seconds: float, on: tuple[str, ...] = PACED) -> None:
    def apply(tape: Tape) -> Tape:
        cut = cut_of(tape)
        place = {
            "before": (tape.settled_at + cut) / 2,
            "cut": gone(tape),
            "return": _return(tape),
            "end": _watch(tape),
        }[at]
        return tape.stand_still(tape.survivor, place, seconds)

    add("stall", name, FAIL, why, apply, on, "survivor")


_stall(
    "3 s at the cut", "The survivor moved nothing for 3 s, of which 2 s are allowed.", "cut", 3.0, (*PACED, *STAMPED)
)
_stall("8 s at the return", "The survivor moved nothing for 8 s, of which 2 s are allowed.", "return", 8.0)
_stall(
    "6 s before the load was asked to end", "The survivor moved nothing for 6 s, of which 2 s are allowed.", "end", 6.0
)
_stall(
    "10 s between settled and cut",
    "The survivor moved nothing for 10 s after its load had settled.",
    "before",
    10.0,
    (*LOADS, *STAMPED),
)
_stall(
    "3 s between settled and cut",
    "The survivor moved nothing for 3 s after its load had settled.",
    "before",
    3.0,
    LOADS,
)


@edit("stall", FAIL, PACED, "survivor")
def trickle_of_512_bytes(tape: Tape) -> Tape:
    """512 bytes a sample for 6 s is a stall by any name: 0.3% of its pace."""
    cut = gone(tape)
    tape = tape.stand_still(tape.survivor, cut, 6.0)
    names = tape.names(tape.survivor)
    write = any("write" in e["mode"] for e in tape.all(of("load.begin", disk=tape.survivor)))
    count = 0

    def drip(event: Event) -> Event:
        nonlocal count
        if names.kname not in event["disks"]:
            return event
        if cut < event["at"] <= cut + 6.0:
            count += 1
        row = list(event["disks"][names.kname])
        row[2 if write else 1] += 512 * count
        return event | {"disks": event["disks"] | {names.kname: row}}

    return tape.map(both(of("sample"), between(cut, float("inf"))), drip)


@edit("stall", FAIL, LOADS, "survivor")
def one_second_stalls_again_and_again(tape: Tape) -> Tape:
    """1.5 s still, 0.5 s at pace, for 16 s: a quarter of the pace, though no single stall is longer than 2 s."""
    cut = gone(tape)
    return tape.wait(cut, 16.0).pace(
        tape.survivor, lambda at: 0.0 if cut < at < cut + 16.0 and (at - cut) % 2.0 < 1.5 else 1.0
    )


@edit("stall", FAIL, LOADED, "survivor")
def all_survivors_stall(tape: Tape) -> Tape:
    """Every survivor moved nothing for 4 s, with samples and clock answers all the while: not the host's doing."""
    cut = gone(tape)
    tape = tape.wait(cut, 4.0)
    for disk in tape.survivors:
        tape = tape.freeze(disk, cut, cut + 4.0)
    return tape


def _slow(
    name: str,
    why: str,
    factor: Callable[[float, float, float], float],
    on: tuple[str, ...] = PACED,
    due: Due = FAIL,
    every: bool = False,
) -> None:
    def apply(tape: Tape) -> Tape:
        tape = during(tape)
        cut, stop = cut_of(tape), _watch(tape)
        for disk in tape.survivors if every else (tape.survivor,):
            tape = tape.pace(disk, lambda at: factor(at, cut, stop))
        return tape

    add("pace", name, due, why, apply, on, ("survivors" if every else "survivor") if due is FAIL else "")


_slow(
    "half after the cut for good",
    "Half its pace from the cut to the end, 12 s later.",
    lambda at, cut, stop: 1.0 if at < cut else 0.5,
    (*PACED, *STAMPED),
)
_slow(
    "half for every survivor",
    "All survivors have half their pace from the cut on.",
    lambda at, cut, stop: 1.0 if at < cut else 0.5,
    every=True,
)
_slow(
    "declines to nothing much",
    "From its pace down to 40% at the end, a little with every second.",
    lambda at, cut, stop: 1.0 if at < cut else max(0.4, 1.0 - 0.6 * (at - cut) / (stop - cut)),
)
_slow(
    "ends at a third",
    "The last 5 s before the load was asked to end are at a third of its pace.",
    lambda at, cut, stop: 1.0 if at < stop - 5.0 else 0.33,
    LOADS,
)
_slow(
    "3% of its declared rate throughout",
    "The disk is declared with a rate, and moved 3% of it from first to last.",
    lambda at, cut, stop: 0.03,
    LOADS,
)
_slow(
    "a tenth of its declared rate throughout",
    "The disk is declared with a rate, and moved a tenth of it.",
    lambda at, cut, stop: 0.1,
    LOADED,
    every=True,
)
_slow(
    "twice as fast after the cut",
    "A survivor that gets faster has what the dead disk had.",
    lambda at, cut, stop: 1.0 if at < cut else 1.6,
    LOADED,
    PASS,
)
_slow(
    "a tenth slower throughout",
    "A disk that is a tenth slower from first to last is slower, and fine.",
    lambda at, cut, stop: 0.9,
    LOADED,
    PASS,
)
_slow(
    "uneven",
    "A pace that goes up and down by a tenth every second is what disks do.",
    lambda at, cut, stop: 1.1 if int(at) % 2 else 0.9,
    LOADS,
    PASS,
)
_slow(
    "a dip of a tenth of a second at the cut",
    "A tenth of a second is nothing beside a limit of 2 s.",
    lambda at, cut, stop: 0.0 if cut < at < cut + 0.1 else 1.0,
    LOADED,
    PASS,
)


@edit("pace", FAIL, LOADS, "survivor")
def a_tenth_for_ever_after_a_poisoned_baseline(tape: Tape) -> Tape:
    """It stood still for 20 s before the cut, which makes for a low baseline, and had a tenth of its pace after it."""
    begin = tape.settled_at + 0.2
    tape = during(tape.stand_still(tape.survivor, begin, 20.0))
    cut = cut_of(tape)
    return tape.pace(tape.survivor, lambda at: 1.0 if at < cut else 0.1)


@edit("pace", (FAIL, UNKNOWN), LOADED)
def baseline_measured_while_it_ramps(tape: Tape) -> Tape:
    """A tenth of its pace before the cut and after it, full pace for a second in between: its baseline says nothing."""
    tape = during(tape)
    cut = cut_of(tape)
    return tape.pace(tape.survivor, lambda at: 1.0 if cut - 0.3 < at < cut + 0.7 else 0.1)


@edit("pace", (FAIL, UNKNOWN), LOADED)
def survivors_load_was_on_another_disk(tape: Tape) -> Tape:
    """The load's kernel name is another disk's, and the survivor moved nothing: not what was asked for."""
    tape = tape.change(of("load.begin", disk=tape.survivor), kname="sdz")
    return tape.pace(tape.survivor, lambda at: 0.0)
