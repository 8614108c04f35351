"""Edits of the agent's and the DUT's life, in a scenario and between two."""

from __future__ import annotations

from benchmarks.edits.events import Event, between, both, either, of
from benchmarks.edits.kernel import OOPS
from benchmarks.edits.record import DIED, LONG, REAL, TWO
from benchmarks.edits.registry import CUT, FAIL, PASS, UNKNOWN, edit
from benchmarks.edits.tape import Tape

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
