"""Several benches side by side: who runs what, and what happens when one of them dies."""

from __future__ import annotations

import io
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest
from rich.console import Console

from plugpull.jobs.benches import Benches, start_process
from plugpull.jobs.display import LineDisplay, TableDisplay
from plugpull.jobs.messages import BenchRefused, Channel, Concluded, FoundTest, Happened, NoMore, Ready
from plugpull.jobs.schedule import Schedule, WaitForOthers
from plugpull.jobs.usual_times import USUAL

# --- the schedule --------------------------------------------------------------------------------------------


def collected(*seconds: float | None, alone: Sequence[int] = ()) -> list[FoundTest]:
    return [
        FoundTest(name=str(number), scenario=str(number), seconds=each, alone=number in alone)
        for number, each in enumerate(seconds)
    ]


def test_the_longest_test_comes_first() -> None:
    schedule = Schedule(collected(5, 30, None, 20))
    assert schedule.seconds == 5 + 30 + 20 + USUAL
    assert [schedule.next(1) for _ in range(5)] == [1, 3, 2, 0, None]


def test_beside_a_long_test_come_shorter_ones() -> None:
    schedule = Schedule(collected(60, 70, 20, 40, *[15] * 20))
    assert [schedule.next(bench) for bench in (1, 2, 2, 2)] == [1, 2, 4, 5], "the longest, and beside it shorter ones"
    assert [schedule.next(bench) for bench in (1, 2)] == [0, 6], "the next long one, when the first has ended"


def test_long_tests_are_not_left_to_the_end() -> None:
    schedule = Schedule(collected(60, 70, 40, 15, 15))
    assert [schedule.next(bench) for bench in (1, 2)] == [1, 0], "the short ones do not last as long as the long ones"
    assert [schedule.next(bench) for bench in (2, 2, 1)] == [2, 3, 4]


def test_tests_of_unknown_length_keep_their_order() -> None:
    schedule = Schedule(collected(None, None, None))
    assert [schedule.next(bench) for bench in (1, 2, 1, 2)] == [0, 1, 2, None]


def test_a_study_runs_alone() -> None:
    schedule = Schedule(collected(5, 30, 4, alone=[1]))
    assert (schedule.next(1), schedule.next(2)) == (0, 2)
    assert schedule.next(1) == WaitForOthers(), "the other bench is busy"
    assert schedule.next(2) == 1
    assert schedule.next(1) is None, "nothing is left"
    assert schedule.next(2) is None


def test_nothing_runs_beside_a_study() -> None:
    schedule = Schedule(collected(5, 5, alone=[0, 1]))
    assert schedule.next(1) == 0
    assert schedule.next(2) == WaitForOthers()
    schedule.lost(1)
    assert schedule.next(2) == 1


def test_a_lost_test_is_not_run_again() -> None:
    schedule = Schedule(collected(1, 1))
    assert schedule.next(1) == 0
    schedule.lost(1)
    schedule.lost(1)
    assert [schedule.next(2) for _ in range(2)] == [1, None]


# --- the channel ---------------------------------------------------------------------------------------------


def test_messages_arrive_whole_and_the_end_is_noticed() -> None:
    ours, theirs = Channel.pair()
    other = Channel(theirs)
    sent = [FoundTest(name="a", seconds=1.5), Happened(words="é\n" * 4000, at=1.0), Ready(), NoMore()]
    for message in sent:
        ours.send(message)
    assert [other.receive() for _ in sent] == sent
    ours.close()
    assert other.receive() is None
    other.send(Ready())  # nobody is there: it is lost
    other.close()


def test_progress_does_not_wait_for_a_reader() -> None:
    ours, theirs = Channel.pair()
    over = threading.Event()

    def report() -> None:
        for _ in range(2000):
            ours.offer(Happened(words="x" * 4000))
        over.set()

    threading.Thread(target=report, daemon=True).start()
    assert over.wait(30)
    theirs.close()
    ours.close()


# --- processes -----------------------------------------------------------------------------------------------

BENCH = """
import os, signal, sys, time
from plugpull.jobs.messages import *
channel, number, found, behaviour = Channel.inherited(int(sys.argv[1])), sys.argv[2], sys.argv[3], sys.argv[4]
for name in found:
    channel.send(FoundTest(name=name, scenario=name, alone=name.isupper()))
channel.send(Collected(count=len(found)))
while True:
    channel.send(Ready())
    given = channel.receive()
    if not isinstance(given, RunTest):
        break
    name = found[given.index]
    exec(behaviour)
    channel.send(Concluded(index=given.index, verdict="PASS", seconds=1.5, sentence=number))
"""
"""A bench that finds tests with names of one letter, and does something for each."""


class Started:
    """Benches that run ``BENCH``: what each of them finds and does."""

    def __init__(self, count: int, behaviour: str = "", *, found: Sequence[str] = ("abc",)) -> None:
        self.output = io.StringIO()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.planned: list[str] = []
        self._behaviour = behaviour
        self._found = found
        display = LineDisplay(Console(file=self.output, width=200))
        self.benches = Benches(self._start, count, display, self._plan)

    def _plan(self, tests: list[FoundTest]) -> None:
        self.planned = [test.name for test in tests]

    def _start(self, number: int, theirs: socket.socket) -> subprocess.Popen[bytes]:
        found = self._found[min(number, len(self._found)) - 1]
        words = [str(theirs.fileno()), str(number), found, self._behaviour]
        process = start_process([sys.executable, "-c", BENCH, *words], subprocess.DEVNULL, theirs)
        self.processes.append(process)
        return process

    def verdicts(self) -> dict[str, str]:
        benches = self.benches
        return {benches.tests[index].name: result.verdict for index, result in benches.results.items()}


def test_every_test_runs_on_one_bench() -> None:
    run = Started(2, found=("abcdef",))
    run.benches.run()
    assert run.planned == list("abcdef")
    assert run.verdicts() == dict.fromkeys("abcdef", "PASS")
    assert (run.benches.faults, run.benches.died) == ([], False)
    assert [process.returncode for process in run.processes] == [0, 0]


def test_benches_run_at_the_same_time(tmp_path: Path) -> None:
    """Each of two tests waits for the other one to begin."""
    meet = f"""
open({str(tmp_path)!r} + "/" + name, "w").close()
while len(os.listdir({str(tmp_path)!r})) < 2:
    time.sleep(0.01)
"""
    run = Started(2, meet, found=("ab",))
    run.benches.run()
    assert {result.sentence for result in run.benches.results.values()} == {"1", "2"}


def test_studies_do_not_run_at_the_same_time(tmp_path: Path) -> None:
    alone = f"""
path = {str(tmp_path / "running")!r}
os.close(os.open(path, os.O_CREAT | os.O_EXCL))
time.sleep(0.1)
os.unlink(path)
"""
    run = Started(3, alone, found=("ABCD",))
    run.benches.run()
    assert run.verdicts() == dict.fromkeys("ABCD", "PASS")
    assert run.benches.faults == []


def test_a_bench_that_is_killed_loses_its_test_alone() -> None:
    run = Started(2, "if name == 'a': os.kill(os.getpid(), signal.SIGKILL)", found=("abcd",))
    run.benches.run()
    assert run.verdicts() == dict.fromkeys("bcd", "PASS")
    (fault,) = run.benches.faults
    assert fault in (f"bench {number} was killed by SIGKILL while it ran a" for number in (1, 2))
    assert run.benches.died, "what it started must be cleaned up"
    assert fault.partition(" ")[2].partition(" ")[2] in run.output.getvalue()


def test_all_benches_die() -> None:
    run = Started(2, "sys.exit(3)")
    run.benches.run()
    assert run.verdicts() == {}
    assert len(run.benches.faults) == 2
    assert all("ended with exit status 3 while it ran" in fault for fault in run.benches.faults)
    assert not run.benches.died, "they cleaned up themselves"


def test_a_bench_that_waits_for_a_study_goes_on_when_its_bench_dies() -> None:
    run = Started(2, "if name == 'A': os.kill(os.getpid(), signal.SIGKILL)", found=("AB",))
    run.benches.run()
    assert run.verdicts() == {"B": "PASS"}


def test_a_bench_that_finds_other_tests_runs_none() -> None:
    run = Started(2, "time.sleep(0.2)", found=("ab", "ac"))
    run.benches.run()
    assert set(run.verdicts().values()) == {"PASS"}
    assert len(run.verdicts()) == 2
    (fault,) = run.benches.faults
    assert "found other tests than bench 1" in fault


def test_a_bench_that_refuses_says_why() -> None:
    run = Started(1, "channel.send(BenchRefused(text='the cache is full', status=3)); sys.exit(3)")
    run.benches.run()
    assert run.benches.refusals == [BenchRefused(text="the cache is full", status=3)]
    assert run.benches.faults == ["bench 1 ended with exit status 3 while it ran a: the cache is full"]


def test_ending_the_run_ends_all_benches() -> None:
    wait = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); channel.send(Happened(words='runs')); time.sleep(60)"
    run = Started(2, wait)
    serving = threading.Thread(target=run.benches.run)
    serving.start()
    deadline = time.monotonic() + 30
    while run.output.getvalue().count("runs") < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in run.processes:
        process.send_signal(signal.SIGTERM)
    serving.join(30)
    assert not serving.is_alive()
    again = Started(2, wait)
    display = again.benches._display

    def interrupt(bench: int, what: Happened) -> None:
        raise KeyboardInterrupt

    display.happened = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        again.benches.run()
    display.happened = lambda bench, what: None  # type: ignore[method-assign]
    again.benches.end()
    assert [process.poll() for process in again.processes] != [None, None]
    assert again.benches.faults == [], "the run ended them"


class InterruptedAt:
    """Raises KeyboardInterrupt before the given line of a function runs, counted from its first; once."""

    def __init__(self, function: Callable[..., object], step: int) -> None:
        self.reached = False
        self._code = function.__code__
        self._left = step

    def __enter__(self) -> Self:
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._line if frame.f_code is self._code else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self._left -= 1
            if self._left < 0 and not self.reached:
                self.reached = True
                raise KeyboardInterrupt
        return self._line


def test_a_bench_that_died_is_named_though_a_signal_interrupts_at_any_step() -> None:
    """The run is interrupted before each line of what is done about a dead bench."""
    for step in count():
        run = Started(1, "os.kill(os.getpid(), signal.SIGKILL)", found=("a",))
        with InterruptedAt(Benches._gone, step) as interrupted, suppress(KeyboardInterrupt):
            run.benches.run()
        run.benches.end()
        assert run.benches.faults == ["bench 1 was killed by SIGKILL while it ran a"], step
        if not interrupted.reached:
            break
    assert step > 5


# --- what is shown -------------------------------------------------------------------------------------------

A = FoundTest(name="test_x.py::test_cable_cut", scenario="scenarios/test_x.py::test_cable_cut[write]")
DONE = Concluded(index=0, verdict="FAIL", seconds=14.24, sentence="FAIL: disk1 did not return.")


def test_each_line_names_the_scenario_and_its_time() -> None:
    output = io.StringIO()
    display = LineDisplay(Console(file=output, width=40))
    display.begun(2, A)
    display.happened(2, Happened(words="cut 1: disk1.cable off", at=12.3456))
    display.tested(2, A, DONE)
    display.said(1, "was killed by SIGKILL\x1b[2J")
    assert output.getvalue().splitlines() == [
        "bench 2: cable cut (write): [  12.346] cut 1: disk1.cable off",
        "bench 2: FAIL scenarios/test_x.py::test_cable_cut[write] (14.2 s): FAIL: disk1 did not return.",
        "bench 1: was killed by SIGKILL␛[2J",
    ]


def test_the_table_has_a_row_for_each_bench() -> None:
    console = Console(record=True, width=120, force_terminal=True, file=io.StringIO())
    display = TableDisplay(console)
    display.planned(2)
    display.happened(1, Happened(words="booting the kernel once"))
    display.begun(2, A)
    display.happened(2, Happened(words="phase settle", at=3.0))
    console.print(display.render())
    display.tested(2, A, DONE)
    display.stop()
    shown = console.export_text()
    assert "0 of 2 done after" in shown
    assert "booting the kernel once" in shown
    assert "cable cut (write)" in shown
    assert "phase settle" in shown
    assert "FAIL scenarios/test_x.py::test_cable_cut[write] (14.2 s): FAIL: disk1 did not return." in shown
