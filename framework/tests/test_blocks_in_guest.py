"""A disk with logical blocks of 4096 bytes that leaves half of some written when its power fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from defects_bench import run_small
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL
from plugpull.history import events as ev
from plugpull.history.reader import read_history

pytestmark = pytest.mark.bench

RIG = (
    a_rig("blocks")
    .switch("mains", ports=1, mechanism="mains")
    .stock_controller()
    .disks(
        "large",
        serial="BLOCKS-1",
        size="16 MiB",
        rate="2 MiB/s",
        cache="512 KiB",
        logical_block=4096,
        scratch=True,
        power="mains.1",
    )
    .table("defect", kind="torn-sector", disk="large")
    .text
)

# Nothing is flushed, so that the cache holds something whenever the power fails.
SCENARIO = """
from plugpull.checks import nothing_lost
from plugpull.integrity.patterns import unflushed_writes


def test_power_fails_under_writes(rig):
    (large,) = rig.disks
    with rig.stamp(large, unflushed_writes) as stamps, rig.cut(large.power, when=stamps.moved(large, "128 KiB")):
        rig.wait(seconds=0.2)
    rig.judge(nothing_lost())
"""


def test_a_block_that_is_half_old_and_half_new_is_torn(tmp_path: Path) -> None:
    """No sector of 512 bytes in it is damaged: only the size of a block shows that something is wrong."""
    scenario = tmp_path / "test_power.py"
    scenario.write_text(SCENARIO)
    ended = run_small(tmp_path, "", str(scenario), rig=RIG)
    assert ended.status == EXIT_FAIL, ended.output
    (finding,) = [one for one in ended.only.findings if one.check == "nothing_lost"]
    assert "torn" in finding.summary, finding.summary
    assert ended.only.integrity.torn % 8 == 0
    (story,) = read_history(ended.directory).stories
    assert {read.logical for read in story.of(ev.ReadBackBegun)} == {4096}
    assert any(read.again for read in story.of(ev.ReadBackBegun)), "what was wrong was read a second time"
