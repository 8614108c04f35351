"""Edits of the samples that throughput is judged by, and of a DUT that its host did not run."""

from __future__ import annotations

from benchmarks.edits.events import Event, Which, between, both, of
from benchmarks.edits.pace import LOADS, PACED, cut_of, during, gone
from benchmarks.edits.registry import CUT, FAIL, LOADED, PASS, UNKNOWN, edit
from benchmarks.edits.tape import Tape


@edit("samples", UNKNOWN, PACED)
def samples_end_just_after_the_cut(tape: Tape) -> Tape:
    """No sample later than 1.2 s after the cut, and the loads ran for 20 s more: nothing shows their pace."""
    tape = during(tape, 20.0)
    return tape.drop(both(of("sample"), between(cut_of(tape) + 1.2, float("inf"))))


@edit("samples", UNKNOWN, PACED)
def samples_of_one_survivor_end(tape: Tape) -> Tape:
    """The survivor is missing from the samples 1.2 s after the cut; its load ran for 20 s more."""
    tape = during(tape, 20.0)
    return tape.blind(tape.survivor, cut_of(tape) + 1.2)


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
    cut = tape.quiet_at
    tape = tape.wait(cut, 3.6).pace(tape.survivor, lambda at: 0.3 if cut < at <= cut + 3.6 else 1.0)
    return tape.blind(tape.survivor, cut + 0.1, cut + 3.5)


@edit("samples", UNKNOWN, LOADED)
def no_samples_before_the_cut(tape: Tape) -> Tape:
    """The samples begin as the cut is made, so nothing is known of the pace before it."""
    return tape.drop(both(of("sample"), between(0.0, cut_of(tape))))


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
    at = tape.on_at + 0.05 if tape.all(of("disk.attached", disk=tape.victim))[1:] else cut_of(tape) + 1.0
    return _starved(tape, at, 16.0)


@edit("starved", (PASS, UNKNOWN), LOADS)
def starved_for_four_seconds_after_the_cut(tape: Tape) -> Tape:
    """The host did not run the DUT for 4 s: no sample and no answer, and nothing was moved meanwhile."""
    return _starved(tape, gone(tape) + 0.1, 4.0)


@edit("starved", (PASS, UNKNOWN), CUT)
def starved_for_nine_seconds_before_the_removal(tape: Tape) -> Tape:
    """The host did not run the DUT for 9 s between the command and the removal."""
    gone = tape.gone_at(tape.victim)
    last = max(e["at"] for e in tape.all(of("sample")) if e["at"] < gone)
    return _starved(tape, max(gone - 0.003, last), 9.0, keep=of("edge", state="off"))


@edit("starved", PASS, LOADED)
def starved_for_half_a_second(tape: Tape) -> Tape:
    """Five samples are missing; the bytes went on at their pace meanwhile: no stall, and nobody to blame."""
    at = tape.quiet_at
    return tape.wait(at, 3.0).drop(both(of("sample"), between(at + 1.0, at + 1.5)))


@edit("starved", (PASS, UNKNOWN), LOADED)
def soft_lockup_inside_a_gap(tape: Tape) -> Tape:
    """The host did not run the DUT for 30 s, and its kernel says so the only way it can."""
    at = gone(tape) + 0.2
    tape = _starved(tape, at, 30.0)
    return tape.say(at + 29.9, "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [swapper/0:0]", level=0)


@edit("starved", FAIL, LOADED, "lockup|kernel")
def soft_lockup_while_sampled(tape: Tape) -> Tape:
    """The kernel reports a CPU stuck for 26 s while samples and clock answers arrived all the while."""
    at = gone(tape) + 0.2
    tape = tape.wait(at, 30.0)
    return tape.say(at + 29.0, "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:12]", level=0)


def _starved(tape: Tape, at: float, seconds: float, keep: Which | None = None) -> Tape:
    """Time passes on the DUT's clock and the controller's, and the DUT does nothing at all."""
    return tape.wait(at, seconds, keep or of("nothing"), running=False)
