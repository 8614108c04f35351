"""A guest that checks its kernel's memory shows corruption that is silent otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import module_build
import pytest
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.checks import kernel_clean, removed, returned
from plugpull.dut.real.dut_host import DutHost
from plugpull.judging.results import ScenarioResult
from plugpull.run import Options, begin_run
from plugpull.scenario import ScenarioRig

pytestmark = pytest.mark.bench

NOW = "/sys/module/plugpull_dies/parameters/now"


def writes_to_freed_memory(rig: ScenarioRig) -> None:
    host = DutHost(rig.context.bench.link)
    assert host.run(["sh", "-c", f"echo freed >{NOW}"], 30.0).status == 0
    rig.judge(kernel_clean())


def replugged(rig: ScenarioRig) -> None:
    victim, _ = rig.choose_victim()
    with rig.cut(victim.cable):
        rig.wait(0.5)
    rig.judge(removed(victim), returned(victim), kernel_clean())


def results(folder: Path) -> list[ScenarioResult]:
    """Of a healthy scenario, and of one in which a driver writes to memory that it has freed."""
    bench = a_rig("memory", memory_debugging=True).switch(ports=1).stock_controller()
    disk = bench.disk("victim", "usb.1", "MEMORY-1", "16 MiB", rate="2 MiB/s", scratch=True, cable="cables.1")
    rig = disk.write(folder)
    module = module_build.build("plugpull_dies")
    run = begin_run(Options(rig, folder / "out", seed=1, modules=(module,)), lambda text: None)
    done: list[ScenarioResult] = []
    try:
        for story in (replugged, writes_to_freed_memory):
            with run.scenario(story.__name__) as opened:
                story(opened.open())
            assert opened.result is not None
            done.append(opened.result)
    finally:
        run.finish()
    return done


@only_if_asked
def test_a_write_to_freed_memory_is_seen_and_a_healthy_kernel_is_not_accused(tmp_path: Path) -> None:
    healthy, corrupted = results(tmp_path)
    assert healthy.verdict == "PASS", healthy.sentence
    assert corrupted.verdict == "FAIL", corrupted.sentence
    # By the slab's poison, or by KFENCE if it happened to give that object.
    said = corrupted.findings[0].summary
    assert re.match(r"BUG kmalloc-(rnd-\d+-)?512 |BUG: KFENCE: use-after-free write", said), said
