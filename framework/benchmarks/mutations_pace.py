"""Edits of the survivors' throughput, of the samples it is judged by, and of how loads ended."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.mutations_edits import CUT, FAIL, LOADED, PASS, UNKNOWN, Due, add, edit
from benchmarks.mutations_tape import Event, Tape, Which, between, both, either, of

LOADS = (*LOADED, "survivors_keep_their_pace", "a_disk_dies_in_use")
PACED = (*LOADS, "a_cable_is_gone_for_good", "a_disk_is_discovered_while_the_others_work", "a_hub_is_gone_for_a_while")
STAMPED = ("power_fails_between_flushes",)


def _cut_of(tape: Tape) -> float:
    """When the survivors' pace begins to be judged: the last cut that was made while they had a load."""
    begin = tape.settled_at
    return float(next(e["at"] for e in tape.all(of("edge", state="off", phase="commanded")) if e["at"] > begin))


def _gone(tape: Tape) -> float:
    """Just after the last victim of that cut was taken off the list."""
    cut = _cut_of(tape)
    done = either(of("disk.detached"), of("edge", state="off"))
    gone = [float(e["at"]) for e in tape.all(done) if cut <= e["at"] < cut + 1.0]
    return max([cut + 0.05, *gone]) + 0.02


def _return(tape: Tape) -> float:
    """When the cable was put back while the loads ran, or a second after the cut where it was not."""
    cut, watch = _cut_of(tape), _watch(tape)
    ons = [float(e["at"]) for e in tape.all(of("edge", state="on", phase="commanded")) if cut < e["at"] < watch]
    return ons[0] + 0.05 if ons else cut + 1.0


def _during(tape: Tape, seconds: float = 12.0) -> Tape:
    """A longer watch after the cut, so that what comes later is seen by whatever limit."""
    return tape.wait(_watch(tape), seconds)


def _watch(tape: Tape) -> float:
    stops = [e["asked_at"] for e in tape.all(of("load.end", disk=tape.survivor)) if e.get("asked_at")]
    return float(stops[0]) - 0.3


# --- too slow ---------------------------------------------------------------------------------------------------------


def _stall(name: str, why: str, at: str, seconds: float, on: tuple[str, ...] = PACED) -> None:
    def apply(tape: Tape) -> Tape:
        cut = _cut_of(tape)
        place = {
            "before": (tape.settled_at + cut) / 2,
            "cut": _gone(tape),
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
    cut = _gone(tape)
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
    cut = _gone(tape)
    return tape.wait(cut, 16.0).pace(
        tape.survivor, lambda at: 0.0 if cut < at < cut + 16.0 and (at - cut) % 2.0 < 1.5 else 1.0
    )


@edit("stall", FAIL, LOADED, "survivor")
def all_survivors_stall(tape: Tape) -> Tape:
    """Every survivor moved nothing for 4 s, with samples and clock answers all the while: not the host's doing."""
    cut = _gone(tape)
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
        tape = _during(tape)
        cut, stop = _cut_of(tape), _watch(tape)
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
    tape = _during(tape.stand_still(tape.survivor, begin, 20.0))
    cut = _cut_of(tape)
    return tape.pace(tape.survivor, lambda at: 1.0 if at < cut else 0.1)


@edit("pace", (FAIL, UNKNOWN), LOADED)
def baseline_measured_while_it_ramps(tape: Tape) -> Tape:
    """A tenth of its pace before the cut and after it, full pace for a second in between: its baseline says nothing."""
    tape = _during(tape)
    cut = _cut_of(tape)
    return tape.pace(tape.survivor, lambda at: 1.0 if cut - 0.3 < at < cut + 0.7 else 0.1)


# --- samples ----------------------------------------------------------------------------------------------------------


@edit("samples", UNKNOWN, PACED)
def samples_end_just_after_the_cut(tape: Tape) -> Tape:
    """No sample later than 1.2 s after the cut, and the loads ran for 20 s more: nothing shows their pace."""
    tape = _during(tape, 20.0)
    return tape.drop(both(of("sample"), between(_cut_of(tape) + 1.2, float("inf"))))


@edit("samples", UNKNOWN, PACED)
def samples_of_one_survivor_end(tape: Tape) -> Tape:
    """The survivor is missing from the samples 1.2 s after the cut; its load ran for 20 s more."""
    tape = _during(tape, 20.0)
    return tape.blind(tape.survivor, _cut_of(tape) + 1.2)


@edit("samples", UNKNOWN, PACED)
def one_survivor_never_sampled(tape: Tape) -> Tape:
    """Not one sample has the survivor in it."""
    return tape.blind(tape.survivor)


@edit("samples", UNKNOWN, PACED)
def no_sample_at_all(tape: Tape) -> Tape:
    """Nothing was sampled, so nothing shows the survivors' pace."""
    return tape.drop(of("sample"))


@edit("samples", UNKNOWN, LOADS)
def one_survivor_missing_for_three_seconds(tape: Tape) -> Tape:
    """The survivor moved 30% of its bytes in 3.6 s in which it was not sampled: slow, or still for 2.5 s of them."""
    cut = _gone(tape)
    tape = tape.wait(cut, 3.6).pace(tape.survivor, lambda at: 0.3 if cut < at <= cut + 3.6 else 1.0)
    return tape.blind(tape.survivor, cut + 0.1, cut + 3.5)


@edit("samples", UNKNOWN, LOADED)
def no_samples_before_the_cut(tape: Tape) -> Tape:
    """The samples begin as the cut is made, so nothing is known of the pace before it."""
    return tape.drop(both(of("sample"), between(0.0, _cut_of(tape))))


@edit("samples", UNKNOWN, LOADED)
def samples_of_another_attachment(tape: Tape) -> Tape:
    """The samples name an attachment (diskseq) that was never announced."""
    names = tape.names(tape.survivor)

    def edit_row(event: Event) -> Event:
        row = event["disks"].get(names.kname)
        return event if row is None else event | {"disks": event["disks"] | {names.kname: [40, *row[1:]]}}

    return tape.map(of("sample"), edit_row)


@edit("samples", (UNKNOWN, FAIL), (*LOADS, "while_idle"))
def counters_begin_again(tape: Tape) -> Tape:
    """The survivor's counters fall to 0 in the middle and count on, under one attachment: no kernel does that."""
    names, at = tape.names(tape.survivor), tape.off_at + 1.0
    low = next(e["disks"][names.kname] for e in tape.all(of("sample")) if e["at"] > at)

    def fall(event: Event) -> Event:
        row = event["disks"].get(names.kname)
        if row is None:
            return event
        new = [row[0], *(row[i] - low[i] if i in (1, 2, 3, 4, 7) else row[i] for i in range(1, 8))]
        return event | {"disks": event["disks"] | {names.kname: new}}

    return tape.map(both(of("sample"), between(at, float("inf"))), fall)


@edit("starved", (PASS, UNKNOWN), (*CUT, "survivors_keep_their_pace"))
def starved_for_sixteen_seconds_before_the_return(tape: Tape) -> Tape:
    """The host did not run the DUT for 16 s after power came back: no sample, no answer. That accuses nobody."""
    at = tape.on_at + 0.05 if tape.all(of("disk.attached", disk=tape.victim))[1:] else _cut_of(tape) + 1.0
    return _starved(tape, at, 16.0)


@edit("starved", (PASS, UNKNOWN), LOADS)
def starved_for_four_seconds_after_the_cut(tape: Tape) -> Tape:
    """The host did not run the DUT for 4 s: no sample and no answer, and nothing was moved meanwhile."""
    return _starved(tape, _gone(tape) + 0.1, 4.0)


@edit("starved", (PASS, UNKNOWN), CUT)
def starved_for_nine_seconds_before_the_removal(tape: Tape) -> Tape:
    """The host did not run the DUT for 9 s between the command and the removal."""
    gone = tape.gone_at(tape.victim)
    last = max(e["at"] for e in tape.all(of("sample")) if e["at"] < gone)
    return _starved(tape, max(gone - 0.003, last), 9.0, keep=of("edge", state="off"))


@edit("starved", PASS, LOADED)
def starved_for_half_a_second(tape: Tape) -> Tape:
    """Five samples are missing; the bytes went on at their pace meanwhile: no stall, and nobody to blame."""
    at = _cut_of(tape) + 0.4
    return tape.wait(at, 3.0).drop(both(of("sample"), between(at + 1.0, at + 1.5)))


@edit("starved", (PASS, UNKNOWN), LOADED)
def soft_lockup_inside_a_gap(tape: Tape) -> Tape:
    """The host did not run the DUT for 30 s, and its kernel says so the only way it can."""
    at = _gone(tape) + 0.2
    tape = _starved(tape, at, 30.0)
    return tape.say(at + 29.9, "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [swapper/0:0]", level=0)


@edit("starved", FAIL, LOADED, "lockup|kernel")
def soft_lockup_while_sampled(tape: Tape) -> Tape:
    """The kernel reports a CPU stuck for 26 s while samples and clock answers arrived all the while."""
    at = _gone(tape) + 0.2
    tape = tape.wait(at, 30.0)
    return tape.say(at + 29.0, "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:12]", level=0)


def _starved(tape: Tape, at: float, seconds: float, keep: Which | None = None) -> Tape:
    """Time passes on the DUT's clock and the controller's, and the DUT does nothing at all."""
    return tape.wait(at, seconds, keep or of("nothing"), running=False)


# --- how loads ended --------------------------------------------------------------------------------------------------


def _ended(
    name: str, why: str, due: Due, fields: dict[str, object], disk: str = "survivor", on: tuple[str, ...] = LOADS
) -> None:
    def apply(tape: Tape) -> Tape:
        whose = tape.survivor if disk == "survivor" else tape.victim

        def change(event: Event) -> Event:
            changed = event | fields
            return {k: v for k, v in changed.items() if v is not None}

        return tape.map(of("load.end", disk=whose), change)

    add("load end", name, due, why, apply, on, disk if due is FAIL else "")


_ended(
    "survivor's load met EIO",
    "A disk outside the blast radius gave its user an I/O error.",
    FAIL,
    {"errno": 5, "exit_status": 1, "asked": False, "asked_at": None, "message": "fio: io_u error: Input/output error"},
)
_ended(
    "survivor's load met ETIMEDOUT",
    "A disk outside the blast radius gave its user an I/O error.",
    FAIL,
    {"errno": 110, "exit_status": 1, "message": "fio: io_u error: Connection timed out"},
)
_ended(
    "survivor's load ended by itself with status 1",
    "fio gave up without an I/O error: what it would have shown is missing.",
    UNKNOWN,
    {"exit_status": 1, "asked": False, "asked_at": None, "message": ""},
)
_ended(
    "survivor's endless load ended by itself with status 0",
    "A load without an end ended: not by our doing, nor with an error.",
    UNKNOWN,
    {"exit_status": 0, "asked": False, "asked_at": None, "message": ""},
)
_ended(
    "survivor's load could not be ended",
    "The process that used a healthy disk could not be killed.",
    FAIL,
    {"stuck": True, "exit_status": None},
)
_ended(
    "victim's load could not be ended",
    "The process that used the dead disk could not be killed.",
    FAIL,
    {"stuck": True, "exit_status": None, "errno": None},
    "victim",
    LOADED,
)
_ended(
    "victim's load ended without an error",
    "Its disk was gone, its user was never given an error and ended by itself with success.",
    (FAIL, UNKNOWN),
    {"errno": None, "exit_status": 0, "message": None},
    "victim",
)


@edit("load end", FAIL, (*LOADED, "a_disk_dies_in_use", "a_hub_is_gone_for_a_while"), "victim")
def victims_load_runs_on_without_an_error(tape: Tape) -> Tape:
    """The disk was gone, and its user ran on without an error until it was asked to end: the loss was not reported."""
    other = tape.first(of("load.end", disk=tape.survivor))
    fields = {name: other[name] for name in ("at", "asked", "asked_at", "exit_status", "message")}
    return tape.map(of("load.end", disk=tape.victim), lambda e: {k: v for k, v in (e | fields).items() if k != "errno"})


@edit("load end", FAIL, ("a_disk_dies_in_use",), "victim")
def victims_load_ends_after_forty_seconds(tape: Tape) -> Tape:
    """Its user got its error 40 s after the power went; 30 s are allowed."""
    tape = tape.wait(tape.off_at + 1.0, 42.0)
    return tape.change(of("load.end", disk=tape.victim), at=tape.off_at + 40.0)


@edit("load end", FAIL, LOADED, "victim")
def victims_load_fails_before_the_cut(tape: Tape) -> Tape:
    """The victim gave its user an I/O error a second before its cut was commanded."""
    at = tape.off_at - 1.0
    names = tape.names(tape.victim)
    tape = tape.change(of("load.end", disk=tape.victim), at=at, errno=5, asked=False)
    tape = tape.pace(tape.victim, lambda t: 1.0 if t < at else 0.0)
    return tape.say(
        at - 0.01, f"I/O error, dev {names.kname}, sector 3840 op 0x1:(WRITE) flags 0x8800 phys_seg 16", level=3
    )


for _disk in ("survivor", "victim"):
    add(
        "load end",
        f"end of the {_disk}'s load missing",
        UNKNOWN,
        "How a load ended is not on record.",
        lambda tape, d=_disk: tape.drop(of("load.end", disk=getattr(tape, d))),
        PACED if _disk == "survivor" else LOADED,
    )
add(
    "load end",
    "beginning of the survivor's load missing",
    UNKNOWN,
    "That the survivor had a load is not on record.",
    lambda tape: tape.drop(of("load.begin", disk=tape.survivor)),
    LOADS,
)
add(
    "load end",
    "no load on record",
    UNKNOWN,
    "Beginning and end of the survivor's load are missing; its pace was to be judged.",
    lambda tape: tape.drop(either(of("load.begin", disk=tape.survivor), of("load.end", disk=tape.survivor))),
    LOADS,
)
add(
    "load end",
    "never settled",
    UNKNOWN,
    "That the loads had settled is not on record, so there is no baseline.",
    lambda tape: tape.drop(of("load.settled")),
    LOADS,
)
add(
    "load end",
    "settled without the survivor",
    UNKNOWN,
    "The survivor's load had not settled.",
    lambda tape: tape.change(of("load.settled"), disks=[tape.victim]),
    LOADS,
)
add(
    "load end",
    "settled after the cut",
    UNKNOWN,
    "The loads settled only after the cut, so there is no baseline.",
    lambda tape: tape.retime(of("load.settled"), 0.1 + _cut_of(tape) - tape.settled_at),
    LOADED,
)
add(
    "load end",
    "load begun after the cut",
    UNKNOWN,
    "The survivor's load was started after the cut, though it had settled before.",
    lambda tape: tape.map(of("load.begin", disk=tape.survivor), lambda e: e | {"at": _cut_of(tape) + 0.3}),
    LOADED,
)


@edit("load end", (FAIL, UNKNOWN), LOADS)
def killed_nine_seconds_after_it_was_told_to_end(tape: Tape) -> Tape:
    """fio did not end when it was asked to and had to be killed 9 s later, its disk being there and healthy."""
    ended = tape.first(of("load.end", disk=tape.survivor))
    tape = tape.wait(ended["asked_at"] + 0.05, 9.0)
    return tape.change(of("load.end", disk=tape.survivor), exit_status=-9, message="killed")


@edit("load end", FAIL, LOADS, "survivor")
def killed_with_requests_in_flight(tape: Tape) -> Tape:
    """fio was asked to end, its requests never completed in 9 s, and it had to be killed: the disk holds them."""
    ended = tape.first(of("load.end", disk=tape.survivor))
    tape = tape.wait(ended["asked_at"] + 0.05, 9.0)
    tape = tape.change(of("load.end", disk=tape.survivor), exit_status=-9, message="killed")
    return tape.freeze(tape.survivor, ended["asked_at"], ended["asked_at"] + 9.0)


@edit("load end", UNKNOWN, LOADED)
def survivors_load_ended_before_the_cut(tape: Tape) -> Tape:
    """The survivor's load was over, as asked, before the cut was made: it had nothing to keep pace with."""
    at = tape.off_at - 0.3
    return tape.change(of("load.end", disk=tape.survivor), at=at, asked_at=at - 0.1)


@edit("pace", (FAIL, UNKNOWN), LOADED)
def survivors_load_was_on_another_disk(tape: Tape) -> Tape:
    """The load's kernel name is another disk's, and the survivor moved nothing: not what was asked for."""
    tape = tape.change(of("load.begin", disk=tape.survivor), kname="sdz")
    return tape.pace(tape.survivor, lambda at: 0.0)
