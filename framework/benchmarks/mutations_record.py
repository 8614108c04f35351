"""Edits of the record's frame: scenarios and runs that do not end, errors, what was asked, the agent, other boots."""

from __future__ import annotations

from benchmarks.mutations_edits import CUT, FAIL, PASS, UNKNOWN, add, edit
from benchmarks.mutations_kernel import OOPS, io_error
from benchmarks.mutations_return import never_back
from benchmarks.mutations_tape import Event, Tape, between, both, either, of

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


# --- what was asked ---------------------------------------------------------------------------------------------------


def _asked(tape: Tape, name: str, **fields: object) -> Tape:
    def change(event: Event) -> Event:
        return event | {"checks": [check | fields if check["check"] == name else check for check in event["checks"]]}

    return tape.map(of("judge"), change)


for _check in ("removed", "returned", "kept_pace", "no_errors", "data_intact"):
    add(
        "judge asked",
        f"{_check} about no disk",
        UNKNOWN,
        "A claim about nothing was asked for: nothing was judged by it.",
        lambda tape, c=_check: _asked(tape, c, disks=[]),
        ("while_writing",),
    )
    add(
        "judge asked",
        f"{_check} about an unknown disk",
        UNKNOWN,
        "The rig has no such disk, so nothing can be said of it.",
        lambda tape, c=_check: _asked(tape, c, disks=["disk99"]),
        ("while_writing",),
    )
add(
    "judge asked",
    "nothing_lost about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "nothing_lost", disks=[]),
    ("power_fails_between_flushes",),
)
add(
    "judge asked",
    "nothing_lost about an unknown disk",
    UNKNOWN,
    "The rig has no such disk.",
    lambda tape: _asked(tape, "nothing_lost", disks=["disk99"]),
    ("power_fails_between_flushes",),
)
add(
    "judge asked",
    "discovered about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "discovered", disks=[]),
    ("every_disk_is_found_at_its_place",),
)
add(
    "judge asked",
    "ended_with_error about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "ended_with_error", disks=[]),
    ("a_disk_dies_in_use",),
)
add(
    "judge asked",
    "unmountable about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "unmountable", disks=[]),
    ("a_cable_is_gone_for_good",),
)
add(
    "judge asked",
    "a check that nobody knows",
    UNKNOWN,
    "What was asked for cannot be judged by this version.",
    lambda tape: _asked(tape, "kernel_clean", check="kernel_spotless"),
    LONG,
)
add(
    "judge asked",
    "a check without what it needs",
    UNKNOWN,
    "What was asked for cannot be read.",
    lambda tape: tape.map(of("judge"), lambda e: e | {"checks": [{"check": "removed"}, *e["checks"][1:]]}),
    LONG,
)
add(
    "judge asked",
    "asked twice",
    PASS,
    "The same question twice has the same answer.",
    lambda tape: tape.double(of("judge")),
    LONG,
)


# --- the agent and the DUT --------------------------------------------------------------------------------------------


@edit("agent", UNKNOWN, CUT)
def agent_lost_and_back(tape: Tape) -> Tape:
    """The agent fell silent for 1.5 s and came back: what happened meanwhile is not on record."""
    at = tape.off_at + 0.4
    tape = tape.wait(at, 3.0)
    sent = either(of("sample"), of("clock"), of("kernel"), of("uevent"))
    tape = tape.lose(both(sent, between(at, at + 1.5)))
    return tape.insert({"type": "agent.lost", "at": at + 1.5, "why": "the connection was reset", "last_heard": at})


@edit("agent", UNKNOWN, CUT)
def agent_lost_for_good(tape: Tape) -> Tape:
    """The agent fell silent after the cut and never came back."""
    at = tape.off_at + 0.4
    return tape.end_at(at).insert({"type": "agent.lost", "at": at + 1.0, "why": "no answer for 30 s", "last_heard": at})


@edit("agent", (FAIL, UNKNOWN), CUT)
def agent_lost_after_a_late_removal(tape: Tape) -> Tape:
    """The removal 9 s after its cut is on record; the agent fell silent afterwards."""
    tape = tape.removed_late(9.0)
    at = tape.gone_at(tape.victim) + 0.2
    return tape.end_at(at).insert({"type": "agent.lost", "at": at + 1.0, "why": "no answer for 30 s", "last_heard": at})


@edit("agent", FAIL, (*CUT, "every_disk_is_found_at_its_place", "many_cuts_leave_nothing_behind"), "panic")
def dut_died(tape: Tape) -> Tape:
    """The DUT's kernel died before the scenario was over."""
    return tape.insert(DIED | {"at": tape.judged_at - 0.3})


@edit("agent", FAIL, LONG, "restart|boot")
def dut_restarted_in_the_middle(tape: Tape) -> Tape:
    """The agent answers again under another boot id: the DUT was restarted in the middle of a scenario."""
    ready = tape.first(of("dut.ready"))
    again = ready | {"at": tape.judged_at - 1.0, "boot_id": "11111111-2222-3333-4444-555555555555", "how": "found"}
    return tape.insert(again)


@edit("agent", FAIL, LONG, "NULL pointer|kernel")
def oops_on_the_console_alone(tape: Tape) -> Tape:
    """The agent delivered nothing of it, the console did."""
    lines = [{"type": "console", "at": tape.judged_at - 0.3, "text": text} for text in OOPS]
    return tape.insert(*lines)


@edit("agent", UNKNOWN, LONG)
def dut_never_ready(tape: Tape) -> Tape:
    """Which kernel was judged is not on record."""
    return tape.drop(of("dut.ready"))


# --- between scenarios ------------------------------------------------------------------------------------------------


def _kernel(texts: tuple[str, ...], at: float) -> list[Event]:
    return [
        {"type": "kernel", "at": at + i / 1e4, "text": text, "level": 0, "seq": 5000 + i}
        for i, text in enumerate(texts)
    ]


@edit("between scenarios", FAIL, (*LONG, *TWO, "every_disk_is_found_at_its_place"), "NULL pointer|kernel")
def oops_after_the_last_scenario(tape: Tape) -> Tape:
    """An oops after the last scenario's end is still this run's."""
    return tape.append(*_kernel(OOPS, tape.judged_at + 0.4))


@edit("between scenarios", FAIL, (*TWO, *REAL), "NULL pointer|kernel")
def oops_between_two_scenarios(tape: Tape) -> Tape:
    """An oops between two scenarios is still this run's."""
    at = tape.first(of("scenario.end"))["at"] + 0.1
    return tape.append(*_kernel(OOPS, at), before="scenario.begin")


@edit("between scenarios", FAIL, (*LONG, *TWO), "panic")
def dut_died_after_the_last_scenario(tape: Tape) -> Tape:
    """The DUT's death just after a scenario's end is still this run's."""
    return tape.append(DIED | {"at": tape.judged_at + 0.4})


@edit("between scenarios", FAIL, (*TWO, *REAL), "panic")
def dut_died_between_two_scenarios(tape: Tape) -> Tape:
    """The DUT's death between two scenarios is still this run's."""
    at = tape.first(of("scenario.end"))["at"] + 0.1
    return tape.append(DIED | {"at": at}, before="scenario.begin")


@edit("between scenarios", UNKNOWN, (*TWO, *LONG))
def bench_fault_after_the_last_scenario(tape: Tape) -> Tape:
    """The bench failed after the last scenario's end."""
    return tape.append({"type": "rig.fault", "summary": "power could not be restored on cables.1"})


@edit("between scenarios", (FAIL, UNKNOWN), REAL)
def another_boot_in_the_next_scenario(tape: Tape) -> Tape:
    """A real DUT has another boot id in its next scenario: it was restarted in between."""
    last = tape.last(of("dut.ready"))
    return tape.map(
        lambda event: event is last, lambda event: event | {"boot_id": "11111111-2222-3333-4444-555555555555"}
    )


@edit("between scenarios", (FAIL, UNKNOWN), (*REAL, *TWO))
def another_kernel_in_the_next_scenario(tape: Tape) -> Tape:
    """The next scenario was run on another kernel: the run is not about one DUT."""
    last = tape.last(of("dut.ready"))
    return tape.map(lambda event: event is last, lambda event: event | {"kernel": "5.10.0-8-amd64"})


@edit("between scenarios", (FAIL, UNKNOWN), REAL)
def a_disk_gone_when_the_next_scenario_begins(tape: Tape) -> Tape:
    """A disk went between two scenarios of a real DUT, with nothing cut, and the next one begins without it."""
    end = tape.first(of("scenario.end"))["at"]
    disk = "behind"
    was = tape.attached(disk)
    gone = {"type": "disk.detached", "at": end + 0.2, "disk": disk, "kname": was["kname"], "diskseq": was["diskseq"]}
    return tape.append(gone, before="scenario.begin").blind(disk, end + 0.2)


@edit("between scenarios", PASS, (*TWO, *REAL))
def nothing_at_all(tape: Tape) -> Tape:
    """Two healthy scenarios."""
    return tape


@edit("between scenarios", (PASS, UNKNOWN), TWO)
def the_same_boot_restored_twice(tape: Tape) -> Tape:
    """A virtual DUT has its snapshot's boot id in each scenario."""
    return tape.change(of("dut.ready"), boot_id="one-and-the-same")
