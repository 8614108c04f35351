"""Edits of the switch's edges and of the clocks they are timed by."""

from __future__ import annotations

from benchmarks.edits.cuts import (
    FOREVER,
    MANY,
    TEMPORARY,
    TREE,
    load_goes_on,
    stays,
)
from benchmarks.edits.events import between, both, of
from benchmarks.edits.registry import CUT, FAIL, PASS, UNKNOWN, Apply, Due, add, edit
from benchmarks.edits.tape import Tape

# --- edges ------------------------------------------------------------------------------------------------------------


def _edge(name: str, why: str, due: Due, apply: Apply, on: tuple[str, ...] = CUT) -> None:
    add("edges", name, due, why, apply, on)


_U = (UNKNOWN,)
for _state in ("off", "on"):
    _edge(
        f"{_state} never acknowledged",
        "The switch never answered, so whether it switched is in doubt.",
        _U,
        lambda tape, s=_state: tape.drop(of("edge", state=s, phase="acknowledged")),
        (*TEMPORARY, *MANY),
    )
    _edge(
        f"{_state} read back otherwise",
        "The switch says that it did not obey the command.",
        _U,
        lambda tape, s=_state: tape.change(of("edge", state=s, phase="read-back"), agrees=False),
        (*TEMPORARY, *MANY),
    )
    _edge(
        f"{_state} never commanded",
        "The command is not on record, so times have no beginning.",
        _U,
        lambda tape, s=_state: tape.drop(of("edge", state=s, phase="commanded")),
        TEMPORARY,
    )
    _edge(
        f"{_state} without a time",
        "The command has no time, so nothing can be measured from it.",
        _U,
        lambda tape, s=_state: tape.map(of("edge", state=s), lambda e: {k: v for k, v in e.items() if k != "at"}),
        CUT,
    )
    _edge(
        f"{_state} missing altogether",
        "A cut that was armed has an edge that is not on record.",
        _U,
        lambda tape, s=_state: tape.drop(of("edge", state=s)),
        TEMPORARY,
    )
    _edge(
        f"{_state} read-back missing",
        "The switch was to be asked again and was not: it can never accuse the DUT.",
        (UNKNOWN, PASS),
        lambda tape, s=_state: tape.drop(of("edge", state=s, phase="read-back")),
        CUT,
    )
    _edge(
        f"{_state} of a port that is not the victim's",
        "The rig file says that the victim hangs on another port.",
        (UNKNOWN,),
        lambda tape, s=_state: tape.change(of("edge", state=s), port="4" if tape.edge(s)["port"] != "4" else "3"),
        CUT,
    )
    _edge(
        f"{_state} acknowledged before it was commanded",
        "An answer that precedes its question: the clocks disagree.",
        _U,
        lambda tape, s=_state: tape.map(of("edge", state=s, phase="acknowledged"), lambda e: e | {"at": e["at"] - 3.0}),
        CUT,
    )
    _edge(
        f"{_state} by another switch",
        "The rig file says that the victim hangs on another switch.",
        _U,
        lambda tape, s=_state: tape.change(of("edge", state=s), switch="mains2"),
        ("while_idle",),
    )


@edit("edges", UNKNOWN, TEMPORARY)
def cut_not_armed(tape: Tape) -> Tape:
    """Edges are on record for a cut that was never armed, so whom it was to take is not known."""
    return tape.drop(of("cut.armed"))


@edit("edges", UNKNOWN, TEMPORARY)
def armed_with_another_victim(tape: Tape) -> Tape:
    """The blast radius on record is not the one the rig file gives for that cut point."""
    return tape.change(of("cut.armed"), victims=[tape.survivor])


@edit("edges", UNKNOWN, TEMPORARY)
def armed_at_another_point(tape: Tape) -> Tape:
    """The cut was armed for one point and the switch was moved at another."""
    return tape.change(of("cut.armed"), point=f"{tape.survivor}.cable")


@edit("edges", UNKNOWN, (*TREE[:1],))
def one_of_three_ports_not_acknowledged(tape: Tape) -> Tape:
    """Three ports were to go off at once and one of them never answered."""
    return tape.drop(of("edge", state="off", phase="acknowledged", cut=2))


@edit("edges", UNKNOWN, ("while_writing",))
def outlets_swapped(tape: Tape) -> Tape:
    """The victim stayed and moved, a survivor went and came back with the edges: the bench is wired otherwise."""
    gone, back = tape.gone_at(tape.victim), tape.back_at(tape.victim)
    victim, survivor = tape.victim, tape.survivor
    tape = load_goes_on(stays(tape, victim), victim)
    ended = {"asked": False, "errno": 19, "exit_status": 1, "message": "No such device", "at": gone + 0.1}
    return tape.leave(survivor, gone, back).map(of("load.end", disk=survivor), lambda e: e | ended)


@edit("edges", UNKNOWN, ("while_idle",))
def outlets_swapped_while_idle(tape: Tape) -> Tape:
    """The victim stayed, a survivor went and came back with the edges: the bench is wired otherwise."""
    gone, back = tape.gone_at(tape.victim), tape.back_at(tape.victim)
    return stays(tape, tape.victim, moving=False).leave(tape.survivor, gone, back)


@edit("edges", UNKNOWN, ("while_writing", "while_idle"))
def another_port_switched_off_too(tape: Tape) -> Tape:
    """The record has an off edge of a survivor's port that no cut armed, and the survivor went: the bench's doing."""
    port = tape.declared(tape.survivor)["cable"].partition(".")[2]
    edge = tape.edge("off") | {"cut": 9, "point": f"{tape.survivor}.cable", "port": port, "at": tape.off_at + 0.2}
    tape = tape.insert(edge, edge | {"phase": "acknowledged", "at": edge["at"] + 0.02})
    return tape.leave(tape.survivor, edge["at"] + 0.05)


@edit("edges", UNKNOWN, FOREVER)
def power_not_restored(tape: Tape) -> Tape:
    """Power could not be restored on the way out."""
    return tape.map(of("heal"), lambda e: e | {"ok": False, "detail": "no answer from the switch"})


@edit("clock", UNKNOWN, CUT)
def removed_after_seven_seconds_with_a_clock_to_two_and_a_half(tape: Tape) -> Tape:
    """7.4 s is beyond the limit of 5 s by less than the error of the clocks: neither can be said."""
    return tape.removed_late(7.3).change(of("edge"), error=2.5).change(of("clock"), error=2.5)


@edit("clock", UNKNOWN, CUT)
def back_after_sixteen_seconds_with_a_clock_to_two_and_a_half(tape: Tape) -> Tape:
    """16 s is beyond the limit of 15 s by less than the error of the clocks: neither can be said."""
    by = 16.0 - (tape.back_at(tape.victim) - tape.on_at)
    return tape.returned_late(by).change(of("edge"), error=2.5).change(of("clock"), error=2.5)


@edit("clock", FAIL, CUT, "victim")
def removed_after_twelve_seconds_with_a_clock_to_two_and_a_half(tape: Tape) -> Tape:
    """12 s is beyond the limit of 5 s whatever the error of 2.5 s."""
    return tape.removed_late(12.0).change(of("edge"), error=2.5).change(of("clock"), error=2.5)


@edit("clock", UNKNOWN, CUT)
def clock_known_to_thirty_seconds(tape: Tape) -> Tape:
    """The bound on the clocks' error is wider than every limit."""
    return tape.change(of("edge"), error=30.0).change(of("clock"), error=30.0)


@edit("clock", (PASS, UNKNOWN), CUT)
def clock_known_to_a_tenth(tape: Tape) -> Tape:
    """0.1 s of error beside limits of seconds: it can never accuse the DUT."""
    return tape.change(of("edge"), error=0.1).change(of("clock"), error=0.1)


@edit("clock", UNKNOWN, CUT)
def clocks_disagree_from_the_cut_on(tape: Tape) -> Tape:
    """The controller's clock runs 3 s ahead of what it was from the cut on, with bounds of milliseconds."""
    return tape.map(
        both(of("clock"), between(tape.off_at, float("inf"))), lambda e: e | {"controller": e["controller"] + 3}
    )


@edit("clock", UNKNOWN, CUT)
def clock_never_answered(tape: Tape) -> Tape:
    """No exchange of clocks is on record, so edges and kernel times cannot be compared."""
    return tape.drop(of("clock"))


@edit("clock", PASS, CUT)
def clock_drifts_a_little(tape: Tape) -> Tape:
    """A drift of 50 parts per million is what crystals have."""
    return tape.map(of("clock"), lambda e: e | {"controller": round(e["controller"] * 1.00005, 6)})
