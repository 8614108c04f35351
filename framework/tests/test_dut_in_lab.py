"""A DUT behind ssh that loses its connection in the middle of a cut, and one whose clock is stepped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chains import chain, relays_cutting_power

from fixtures.lab import desk
from plugpull.checks import removed, returned
from plugpull.dut.real.dut_host import DutHost
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.reader import Story, read_history
from plugpull.judging.results import ScenarioResult
from plugpull.rig.part import Part
from plugpull.run import Options, Run, begin_run
from plugpull.scenario import ScenarioRig

pytestmark = pytest.mark.bench

BY_THE_DUT = """
[[switch]]
name = "robot"
driver = "command"
ports = 2
mechanism = "data"
via = "dut"
on = "lab-cut on disk{port}"
off = "lab-cut off disk{port}"
timeout = 30.0
"""


def scenario(run: Run, name: str, story: Callable[[ScenarioRig], None]) -> ScenarioResult:
    """As the plugin does: what a scenario raises is put on record, and the run goes on."""
    with run.scenario(name) as opened:
        try:
            story(opened.open())
        except RigError as error:
            opened.failed(error)
    assert opened.result is not None
    return opened.result


def part(rig: ScenarioRig, name: str) -> Part:
    return next(disk for disk in rig.disks if disk.name == name)


def cut_and_mend(rig: ScenarioRig, *steps: str) -> None:
    victim = part(rig, "disk1")
    with rig.cut(victim.power):
        for step in steps:
            DutHost(rig.context.bench.link).run(["date", "-s", step], 60.0)
        rig.wait(1)
    for step in steps[:1]:
        DutHost(rig.context.bench.link).run(["date", "-s", step], 60.0)
    rig.judge(removed(victim), returned(victim))


def has_its_timeouts_back(story: Story) -> None:
    """The kernel's timeouts were shortened and restored, also after agents whose connection was lost."""
    timers = [(event.moment, event.changed) for event in story.of(ev.TimersSet)]
    assert timers[0][0] == "begin"
    assert ("/proc/sys/kernel/hung_task_timeout_secs", "120", "20") in timers[0][1]
    assert timers[-1][0] == "restored"
    assert ("/proc/sys/kernel/hung_task_timeout_secs", "", "120") in timers[-1][1]
    assert not any(event.failed for event in story.of(ev.TimersSet))


def test_lost_connections_and_stepped_clocks(tmp_path: Path) -> None:
    # Serial numbers of its own: a rig is leased by those of its disks.
    with chain(desk(2, size="16 MiB").replace("LAB-", "DUT-")) as made, relays_cutting_power(made) as relay:

        def dropped_at(point: str) -> Callable[[ScenarioRig], None]:
            def story(rig: ScenarioRig) -> None:
                with rig.cut(rig.context.topology.cut_point(point)):
                    made.ssh.drop()
                    rig.wait(60)

            return story

        powers, cables = {"disk1": "relay.1", "disk2": "relay.2"}, {"disk2": "robot.2"}
        file = made.rig_file("ssh", relay + BY_THE_DUT, powers=powers, cables=cables)
        run = begin_run(Options(file, tmp_path / "out", seed=1), lambda text: None)
        try:
            result = scenario(run, "stepped", lambda rig: cut_and_mend(rig, "@2000000000", "@1000000000"))
            assert result.verdict == "PASS", result.sentence
            assert scenario(run, "dropped", dropped_at("disk1.power")).verdict == "UNKNOWN"
            assert made.cuts[-1] == ("disk1", "power", True), "power was not restored"
            assert scenario(run, "dropped-there", dropped_at("disk2.cable")).verdict == "UNKNOWN"
            assert made.cuts[-1] == ("disk2", "cable", True), "the cable was not plugged in again"
            result = scenario(run, "whole", cut_and_mend)
            assert result.verdict == "PASS", result.sentence
        finally:
            run.finish()
    stories = {story.id: story for story in read_history(run.recorder.path).stories}
    assert not any(story.of(ev.DutDied) for story in stories.values()), "a lost connection is no death"
    for name in ("dropped", "dropped-there"):
        assert [event.ok for event in stories[name].of(ev.Healed)] == [True]
    sampled = [event.at for event in stories["stepped"].of(ev.Sampled) if event.at is not None]
    assert sampled == sorted(sampled)
    assert sampled[-1] - sampled[0] < 600, "the clock of the history was stepped"
    for name in ("stepped", "whole"):
        has_its_timeouts_back(stories[name])
    # What was plugged in again after the agent had gone is in the log between two scenarios.
    assert any(one.of(ev.EarlierMessage) for one in stories.values())
