"""A DUT that dies, in each of the ways a kernel can, is noticed and named, and the next scenario passes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import module_build
import pytest
from defects_bench import RIG
from long_tests import only_if_asked

from plugpull.checks import kernel_clean, leak_slope, nothing_left
from plugpull.dut import listener, post_mortem
from plugpull.dut.real.dut_host import DutHost
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.judging.results import ScenarioResult
from plugpull.load import sequential_write
from plugpull.run import Options, Run, begin_run
from plugpull.scenario import ScenarioRig
from plugpull.virtual.bench import VirtualBench

pytestmark = pytest.mark.bench

NOTICED = 120.0
"""Seconds that no death may take to be noticed, on any machine."""
NOW = "/sys/module/plugpull_dies/parameters/now"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    module = module_build.build("plugpull_dies")
    folder = tmp_path_factory.mktemp("death")
    rig = folder / "rig.toml"
    # Serial numbers of its own: a rig is leased by those of its disks.
    rig.write_text(RIG.replace("SMALL-", "DEATH-"))
    begun = begin_run(Options(rig, folder / "out", seed=1, modules=(module,)), lambda text: None)
    try:
        yield begun
    finally:
        begun.finish()


@contextmanager
def impatient(answer: float) -> Iterator[None]:
    """While the DUT is dead for sure: there is no need to wait as long as for one that may just be slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listener, "SILENCE", 2.0)
        patch.setattr(post_mortem, "ANSWER", answer)
        patch.setattr(post_mortem, "ECHO", 2.0)
        yield


def result_of(run: Run, name: str, story: Callable[[ScenarioRig], None]) -> ScenarioResult:
    """As the plugin does: what a scenario raises is put on record, and the run goes on."""
    begun = time.monotonic()
    with run.scenario(name) as opened:
        try:
            story(opened.open())
        except RigError as error:
            opened.failed(error)
    assert time.monotonic() - begun < NOTICED
    assert opened.result is not None
    return opened.result


def assert_goes_on(run: Run) -> None:
    """A healthy scenario passes now. The other tests rely on it too: each begins with a guest of its own."""
    result = result_of(run, "next", lambda rig: rig.judge(kernel_clean()))
    assert result.verdict == "PASS", result.sentence


def bench_of(rig: ScenarioRig) -> VirtualBench:
    bench = rig.context.bench
    assert isinstance(bench, VirtualBench)
    return bench


def host(rig: ScenarioRig) -> DutHost:
    return DutHost(rig.context.bench.link)


def kill_agent(rig: ScenarioRig) -> None:
    pid = rig.context.bench.link.call("hello")["pid"]
    # Nobody will be there to answer.
    line = ["sh", "-c", f"kill -9 {pid}"]
    rig.context.bench.link.post("device", do="run", argv=line, timeout=10.0, environment={})


def read_in_vain(rig: ScenarioRig) -> None:
    """Have a disk read that does not answer, and wait until that is stuck: a direct read waits uninterruptibly."""
    disk = f"/dev/{rig.context.identity('victim')['kname']}"
    line = ["fio", "--name=vain", f"--filename={disk}", "--ioengine=psync", "--direct=1", "--rw=read", "--size=1m"]
    rig.context.bench.link.post("device", do="run", argv=line, timeout=NOTICED, environment={})
    deadline = time.monotonic() + NOTICED
    while "(fio) D" not in host(rig).run(["sh", "-c", "cat /proc/[0-9]*/stat"], 30.0).stdout:
        assert time.monotonic() < deadline, "nothing got stuck on a disk that does not answer"
        rig.wait(0.2)


def last_wish(rig: ScenarioRig, way: str) -> None:
    """Nobody will be there to say that it was done."""
    rig.context.bench.link.post("device", do="write_text", path=NOW, text=way)


def wait_for_the_end(rig: ScenarioRig, answer: float = 10.0) -> None:
    with impatient(answer):
        rig.wait(NOTICED / 2)


def test_a_killed_agent_is_no_death_and_a_task_stuck_on_a_stalled_disk_is_named(run: Run) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        with rig.load(rig.disks, sequential_write) as load:
            load.settle()
            bench_of(rig).firmware("victim").hang()
            read_in_vain(rig)
            kill_agent(rig)
            wait_for_the_end(rig)

    result = result_of(run, "stalled", story)
    # On a busy machine the agent lives until the disk has stood still for longer than any may: that is a finding.
    assert {finding.check for finding in result.findings} <= {"answered"}, result.sentence
    assert result.verdict == ("FAIL" if result.findings else "UNKNOWN"), result.sentence
    assert "the agent was killed by signal 9; the kernel is alive: it answers sysrq" in result.sentence
    assert re.search(r"blocked: .*fio \(pid \d+\) in D", result.sentence)
    assert_goes_on(run)


def test_stopped_processors_are_a_dut_that_hung(run: Run) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        bench_of(rig)._machine.qmp.run("stop")
        wait_for_the_end(rig)

    result = result_of(run, "stopped", story)
    assert result.verdict == "FAIL", result.sentence
    (finding,) = result.findings
    assert "the DUT hung: its processors were stopped" in finding.summary
    assert any(line.startswith("vCPU 1 at ") for line in finding.evidence)
    assert_goes_on(run)


def test_a_kernel_without_interrupts_hung_and_says_where(run: Run) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        last_wish(rig, "deaf")
        wait_for_the_end(rig, answer=1.5)

    result = result_of(run, "deaf", story)
    assert result.verdict == "FAIL", result.sentence
    assert "the DUT hung" in result.findings[0].summary
    assert "interrupts off in spin_for_ever [plugpull_dies]" in result.findings[0].summary


@only_if_asked  # the kernel without interrupts is found in the same way
def test_a_soft_lockup_of_all_processors_is_named(run: Run) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        # Twice as many seconds are a soft lockup; it is 10 otherwise.
        host(rig).run(["sh", "-c", "echo 3 >/proc/sys/kernel/watchdog_thresh"], 30.0)
        last_wish(rig, "lockup")
        wait_for_the_end(rig)

    result = result_of(run, "lockup", story)
    assert result.verdict == "FAIL", result.sentence
    said = " ".join(finding.summary for finding in result.findings)
    assert "spin_for_ever [plugpull_dies]" in said
    assert "soft lockup" in said


def test_a_wild_pointer_is_named_by_its_function(run: Run) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        mark = rig.context.recorder.mark()
        host(rig).write_text(NOW, "astray")
        oops = rig.context.wait_for(
            lambda event: isinstance(event, ev.KernelMessage) and "end trace" in event.text, NOTICED, since=mark
        )
        assert oops is not None

    result = result_of(run, "astray", story)
    assert result.verdict == "FAIL", result.sentence
    assert "write_astray" in result.sentence


@pytest.mark.parametrize(
    ("way", "said"),
    [
        pytest.param("interrupt 300", "NULL pointer dereference", marks=only_if_asked),
        ("reset 300", "the guest reset itself without a word"),
        ("reboot 300", "the guest restarted: reboot: Restarting system"),
    ],
)
def test_a_guest_that_is_gone_says_what_became_of_it(run: Run, way: str, said: str) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        host(rig).write_text(NOW, way)
        wait_for_the_end(rig)

    result = result_of(run, way.partition(" ")[0], story)
    assert result.verdict == "FAIL", result.sentence
    assert said in result.sentence
    assert_goes_on(run)


@only_if_asked
@pytest.mark.parametrize("way", ["lockup1 10 1", "stall 10 1"])
def test_a_cpu_that_is_taken_away_just_before_the_end_is_found(run: Run, way: str) -> None:
    """The kernel reports it after 15 s, and the scenario waits for that. ``benchmarks/deaths.py`` also takes the
    interrupts of one CPU away, which may be the one that the agent runs on."""

    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        host(rig).write_text(NOW, way)
        rig.wait(0.5)

    result = result_of(run, way.partition(" ")[0], story)
    assert result.verdict == "FAIL", result.sentence
    assert re.search(r"soft lockup|stall|the DUT hung", result.sentence), result.sentence
    assert_goes_on(run)


def test_a_storm_of_messages_is_named_and_loses_evidence_and_nothing_else(run: Run) -> None:
    def story(rig: ScenarioRig) -> None:
        rig.judge(kernel_clean())
        mark = rig.context.recorder.mark()
        host(rig).write_text(NOW, "storm")
        last = rig.context.wait_for(
            lambda event: isinstance(event, ev.KernelMessage) and "storm is over" in event.text, NOTICED, since=mark
        )
        assert last is not None

    result = result_of(run, "storm", story)
    assert result.verdict == "FAIL", result.sentence
    summaries = [one.summary for one in result.findings]
    assert any("lines alike" in one for one in summaries), summaries
    # On a busy host the storm takes more than 3 s, and then its thread is found to spin, which is true.
    assert not [one for one in summaries if "lines alike" not in one and "plugpull-storm" not in one], summaries
    assert "records of the kernel log were lost" in " ".join(result.unknowns)


def test_cuts_leave_nothing_and_a_leak_shows_in_its_slope(run: Run) -> None:
    def cut_again_and_again(rig: ScenarioRig) -> None:
        victim, _ = rig.choose_victim()
        for _ in range(6):
            with rig.cut(victim.cable):
                pass
            rig.take_census()
        rig.judge(nothing_left(), leak_slope())

    def leak(rig: ScenarioRig) -> None:
        # Memory is counted in pages of the allocator, so that some cycles show nothing and others twice as much.
        for _ in range(12):
            host(rig).write_text(NOW, "leak")
            rig.take_census()
        rig.judge(nothing_left(), leak_slope())

    result = result_of(run, "cuts", cut_again_and_again)
    assert result.verdict == "PASS", result.sentence
    result = result_of(run, "leak", leak)
    assert result.verdict == "FAIL", result.sentence
    (finding,) = result.findings
    told_by = re.search(r"the DUT leaks kernel memory: (\S+) bytes a cycle", finding.summary)
    assert told_by, finding.summary
    assert 50_000 < float(told_by.group(1)) < 90_000  # 64 KiB, and what else there is on a machine that lives
    assert finding.evidence[1].startswith("kmalloc-4k: +"), finding.evidence
