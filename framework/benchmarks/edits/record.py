"""Edits of the record's frame: scenarios and runs that do not end, and errors of the bench."""

from __future__ import annotations

from benchmarks.edits.events import between, both, either, of
from benchmarks.edits.kernel import OOPS
from benchmarks.edits.kernel_when import io_error
from benchmarks.edits.registry import FAIL, UNKNOWN, add, edit
from benchmarks.edits.returned import never_back
from benchmarks.edits.tape import Tape

ANY = ("while_writing", "while_idle", "every_disk_is_found_at_its_place", "a_cable_comes_loose_between_flushes")
LONG = ("while_writing", "while_idle")
REAL = ("real_dut",)
TWO = ("two_scenarios",)
DIED = {"type": "dut.died", "headline": "Kernel panic - not syncing: Fatal exception in interrupt"}


def _stopped(tape: Tape, fault: str, summary: str, at: float | None = None) -> Tape:
    """The scenario stops with an error instead of asking for its judgement."""
    at = tape.judged_at if at is None else at
    gone = either(of("judge"), both(either(of("verify"), of("phase", name="verify")), between(at, float("inf"))))
    error = {"type": "scenario.error", "at": at, "fault": fault, "summary": summary}
    return tape.drop(gone).insert(error)


ERRORS = {
    "bench error": ("rig", "the agent did not answer 'fio' within 30 s"),
    "error of the framework": ("framework", "KeyError: 'sdb'"),
    "interrupt": ("interrupt", "interrupted: Ctrl-C"),
}
for _name, (_fault, _summary) in ERRORS.items():
    add(
        "scenario stops",
        f"{_name} alone",
        UNKNOWN,
        "Nothing was asked about it, and nothing wrong is on record.",
        lambda tape, f=_fault, s=_summary: _stopped(tape, f, s),
        ANY,
    )
    add(
        "scenario stops",
        f"{_name} and an oops",
        FAIL,
        "The record holds an oops, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(tape.say(tape.judged_at - 0.3, *OOPS, level=0), f, s),
        ANY,
        "NULL pointer|kernel",
    )
    add(
        "scenario stops",
        f"{_name} and a soft lockup",
        FAIL,
        "The record holds a soft lockup, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(
            tape.say(
                tape.judged_at - 0.3, "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/1:1:41]", level=0
            ),
            f,
            s,
        ),
        ANY,
        "lockup|kernel",
    )
    add(
        "scenario stops",
        f"{_name} and a disk that never came back",
        FAIL,
        "The record shows that the disk did not come back for 20 s, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(_never_back(tape), f, s),
        LONG,
        "victim",
    )
    add(
        "scenario stops",
        f"{_name} and a survivor's errors",
        FAIL,
        "The record holds a survivor's I/O error, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(
            tape.say(
                tape.off_at + 0.2,
                io_error(tape, tape.survivor),
                level=3,
            ),
            f,
            s,
        ),
        LONG,
        "survivor",
    )
    add(
        "scenario stops",
        f"{_name} and a survivor that went",
        FAIL,
        "The record shows a survivor go, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(tape.leave(tape.survivor, tape.off_at + 0.3), f, s),
        LONG,
        "survivor",
    )
    add(
        "scenario stops",
        f"{_name} and a late removal",
        FAIL,
        "The disk was removed 9 s after its cut, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(tape.removed_late(9.0), f, s),
        LONG,
        "victim",
    )
    add(
        "scenario stops",
        f"{_name} and a dead DUT",
        FAIL,
        "The DUT's kernel died, whatever stopped the scenario.",
        lambda tape, f=_fault, s=_summary: _stopped(tape.insert(DIED | {"at": tape.judged_at - 0.2}), f, s),
        LONG,
        "panic",
    )


def _never_back(tape: Tape) -> Tape:
    return never_back(tape, 20.0)


add(
    "scenario stops",
    "judgement never asked for",
    UNKNOWN,
    "The record does not say by what it is to be judged.",
    lambda tape: tape.drop(of("judge")),
    ANY,
)
add(
    "scenario stops",
    "judgement never asked for and an oops",
    FAIL,
    "The record holds an oops, asked or not.",
    lambda tape: tape.say(tape.judged_at - 0.3, *OOPS, level=0).drop(of("judge")),
    ANY,
    "NULL pointer|kernel",
)
add(
    "scenario stops",
    "nothing asked for",
    UNKNOWN,
    "The scenario asked for no check at all.",
    lambda tape: tape.change(of("judge"), checks=[]),
    ANY,
)
add(
    "scenario stops",
    "end missing",
    UNKNOWN,
    "The record ends before the scenario did.",
    lambda tape: tape.drop(of("scenario.end")),
    ANY,
)
add(
    "scenario stops",
    "end of another scenario",
    UNKNOWN,
    "What ended is not what began.",
    lambda tape: tape.change(of("scenario.end"), id="scenarios/test_x.py::test_x"),
    LONG,
)
add(
    "scenario stops",
    "beginning missing",
    UNKNOWN,
    "Events belong to no scenario.",
    lambda tape: tape.drop(of("scenario.begin")),
    ANY,
)
add(
    "scenario stops",
    "run end missing",
    UNKNOWN,
    "The record ends before the run did.",
    lambda tape: tape.drop(of("run.end")),
    ANY,
)
add(
    "scenario stops",
    "run interrupted",
    UNKNOWN,
    "The run says that it was interrupted.",
    lambda tape: tape.change(of("run.end"), interrupted="interrupted: Ctrl-C"),
    LONG,
)
add(
    "scenario stops",
    "run begin missing",
    UNKNOWN,
    "Neither the rig nor the version is known.",
    lambda tape: tape.drop(of("run.begin")),
    LONG,
)
add(
    "scenario stops",
    "an assertion of the scenario failed",
    FAIL,
    "The scenario's own assertion is a finding.",
    lambda tape: tape.insert(
        {"type": "scenario.error", "at": tape.judged_at - 0.1, "fault": "assertion", "summary": "assert 3 == 4"}
    ),
    LONG,
)
for _share in (0.25, 0.5, 0.75, 0.95):
    add(
        "scenario stops",
        f"record ends at {_share:.0%}",
        UNKNOWN,
        "Nothing is on record after that, not even an end.",
        lambda tape, s=_share: Tape(tape.events[: int(len(tape.events) * s)]),
        (*ANY, "a_cable_is_gone_for_good"),
    )


# --- the bench says that it failed ------------------------------------------------------------------------------------


@edit("bench fault", UNKNOWN, (*LONG, "every_disk_is_found_at_its_place"))
def bench_fault_alone(tape: Tape) -> Tape:
    """The bench says that it did not obey a command."""
    return tape.insert(
        {"type": "rig.fault", "at": tape.judged_at - 1.0, "summary": "the switch cables lost its USB connection"}
    )


@edit("bench fault", UNKNOWN, ("while_writing", "while_reading"))
def bench_fault_explains_a_survivors_stall(tape: Tape) -> Tape:
    """The bench stopped the survivor for 4 s, and says so: nothing is held against that disk."""
    at = tape.quiet_at
    fault = {
        "type": "rig.fault",
        "at": at + 4.0,
        "summary": f"the firmware of {tape.survivor} was stopped for 4 s",
        "subject": tape.survivor,
    }
    return tape.stand_still(tape.survivor, at, 4.0).insert(fault)


@edit("bench fault", UNKNOWN, ("while_writing",))
def bench_fault_explains_a_survivors_errors(tape: Tape) -> Tape:
    """The process that is the survivor's firmware died, and the bench says so: nothing is held against that disk."""
    at = tape.off_at + 0.3
    fault = {
        "type": "rig.fault",
        "at": at,
        "summary": f"the process that is {tape.survivor} ended",
        "subject": tape.survivor,
    }
    kname = tape.names(tape.survivor).kname
    return tape.insert(fault).say(
        at + 0.1, f"I/O error, dev {kname}, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 16 prio class 2", level=3
    )


@edit("bench fault", FAIL, ("while_writing",), "NULL pointer|kernel")
def bench_fault_and_an_oops(tape: Tape) -> Tape:
    """A disk of the bench that fails does not make a kernel oops."""
    at = tape.off_at + 0.3
    fault = {
        "type": "rig.fault",
        "at": at,
        "summary": f"the process that is {tape.survivor} ended",
        "subject": tape.survivor,
    }
    return tape.insert(fault).say(at + 0.1, *OOPS, level=0)


@edit("bench fault", FAIL, ("while_writing",), "behind")
def bench_fault_of_one_survivor_and_another_went(tape: Tape) -> Tape:
    """The bench failed one disk; another one, elsewhere in the tree, went too."""
    at = tape.off_at + 0.3
    fault = {"type": "rig.fault", "at": at, "summary": "the process that is bot ended", "subject": "bot"}
    return tape.insert(fault).leave("behind", at + 0.5)
