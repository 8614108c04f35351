"""Every CPU has to schedule at the end of a scenario: asked of RCU by the agent, judged from the history."""

from __future__ import annotations

import threading

from stories import healthy

from plugpull.checks.dut.cpus_answer import CpusAnswer
from plugpull.dut.agent.grace import grace_period, synchronize
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def test_a_kernel_whose_cpus_schedule_answers() -> None:
    said = grace_period(30.0)
    assert said["ended"]
    assert said["asked"] == synchronize()
    assert said["seconds"] < 30


def test_a_kernel_that_cannot_be_asked() -> None:
    said = grace_period(30.0, lambda: False)
    assert not said["asked"]


def test_a_grace_period_that_does_not_end() -> None:
    ends = threading.Event()
    said = grace_period(0.05, ends.wait)
    ends.set()
    assert (said["asked"], said["ended"]) == (True, False)
    assert said["seconds"] >= 0.05


def test_every_cpu_schedules() -> None:
    bench = healthy()
    bench.add(ev.GracePeriod(at=25.6, seconds=0.06, ended=True))
    judgement = CpusAnswer().judge(bench.story())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "every CPU schedules (after 0.06 s)"
    assert judge_story(bench.story()).verdict is Verdict.PASS


def test_a_cpu_that_never_schedules_again() -> None:
    bench = healthy()
    bench.add(ev.GracePeriod(at=55.0, seconds=30.0, ended=False))
    (finding,) = CpusAnswer().judge(bench.story()).findings
    assert finding.summary == "a CPU did not schedule for 30.00 s: no RCU grace period ended"
    assert finding.at == 25.0
    assert judge_story(bench.story()).verdict is Verdict.FAIL


def test_a_wait_that_was_given_up_early_accuses_nobody() -> None:
    bench = healthy()
    bench.add(ev.GracePeriod(at=35.0, seconds=10.0, ended=False))
    judged = CpusAnswer().judge(bench.story())
    assert judged.findings == ()
    assert judged.unknowns[0].endswith("no RCU grace period ended, and nobody waited for the 15.00 s that it may take")


def test_a_history_of_an_older_agent_says_nothing_about_it() -> None:
    judgement = CpusAnswer().judge(healthy().story())
    assert (judgement.findings, judgement.unknowns, judgement.worst) == ((), (), "")


def test_a_cpu_that_schedules_late() -> None:
    bench = healthy()
    bench.add(ev.GracePeriod(at=25.0, seconds=9.0, ended=True))
    (finding,) = CpusAnswer().judge(bench.story()).findings
    assert finding.summary == "a CPU did not schedule for 9.00 s (limit 5 s): an RCU grace period ended late"
    bench.replace(ev.GracePeriod, seconds=1.5)
    assert CpusAnswer().judge(bench.story()).findings == ()
