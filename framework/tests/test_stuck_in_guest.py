"""A kernel thread that is blocked, one that spins, and a taint are found in a real guest and named; and the timers that
were shortened fire within the scenario."""

from __future__ import annotations

from collections.abc import Iterator

import module_build
import pytest
from defects_bench import RIG

from plugpull.checks import kernel_clean
from plugpull.dut.real.dut_host import DutHost
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.judging.results import ScenarioResult
from plugpull.run import Options, Run, begin_run
from plugpull.scenario import ScenarioRig

pytestmark = pytest.mark.bench

NOW = "/sys/module/plugpull_dies/parameters/now"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    module = module_build.build("plugpull_dies")
    folder = tmp_path_factory.mktemp("stuck")
    rig = folder / "rig.toml"
    # Serial numbers of its own: a rig is leased by those of its disks.
    rig.write_text(RIG.replace("SMALL-", "STUCK-"))
    begun = begin_run(Options(rig, folder / "out", seed=1, modules=(module,)), lambda text: None)
    try:
        yield begun
    finally:
        begun.finish()


def scenario(run: Run, *steps: tuple[str, float]) -> ScenarioResult:
    """Each step is what happens to the kernel, if anything, and how long it has from then on."""

    def story(rig: ScenarioRig) -> None:
        for way, seconds in steps:
            if way:
                DutHost(rig.context.bench.link).write_text(NOW, way)
            rig.wait(seconds)
        rig.judge(kernel_clean())

    with run.scenario("-".join(way for way, _ in steps) or "healthy") as opened:
        story(opened.open())
    assert opened.result is not None
    return opened.result


def found(result: ScenarioResult, check: str) -> list[str]:
    return [finding.summary for finding in result.findings if finding.check == check]


def test_a_thread_that_is_blocked_for_good(run: Run) -> None:
    result = scenario(run, ("block", 1.0))
    assert result.verdict == "FAIL", result.sentence
    (said,) = found(result, "nothing_blocked")
    assert said.startswith("kernel thread plugpull-block (")
    assert "in wait_in_vain [plugpull_dies] (limit 8 s)" in said
    story = read_history(run.recorder.path).stories[-1]
    (ended,) = story.of(ev.ScenarioEnded)
    assert ended.seconds < 60


def test_a_hung_task_is_reported_within_half_a_minute_and_a_thread_that_spins_is_named(run: Run) -> None:
    """The thread that spins lets others run, so that no detector of the kernel reports it."""
    result = scenario(run, ("block", 19.0), ("spin", 12.0))
    assert result.verdict == "FAIL", result.sentence
    assert any("blocked for more than 20 seconds" in said for said in found(result, "kernel_clean")), result.findings
    (said,) = found(result, "nothing_spins")
    assert said.startswith("kernel thread plugpull-spin (")


def test_a_taint(run: Run) -> None:
    result = scenario(run, ("taint", 0.5))
    assert found(result, "state_kept") == ["the kernel was tainted during the scenario: W, the kernel warned"]


def test_the_next_scenario_passes(run: Run) -> None:
    result = scenario(run, ("", 1.0))
    assert result.verdict == "PASS", result.sentence
    story = read_history(run.recorder.path).stories[-1]
    changed = {path: values for timers in story.of(ev.TimersSet) for path, *values in timers.changed}
    assert changed["/proc/sys/kernel/hung_task_timeout_secs"] == ["120", "20"]
    disks = [path for path in changed if path.endswith("/timeout")]
    assert len(disks) == len(story.rig["disk"])
    assert not any(timers.failed for timers in story.of(ev.TimersSet))
