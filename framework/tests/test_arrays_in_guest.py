"""Stock scenarios of arrays on the virtual bench: a mirror with healthy disks passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from arrays_bench import arrays_rig
from defects_bench import Ended, run_small
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.judging.results import Verdict

pytestmark = [pytest.mark.bench, only_if_asked]


def run_arrays(folder: Path, scenario: str, defects: str = "") -> Ended:
    return run_small(folder, defects, "-k", scenario, rig=arrays_rig("ARRG-{n}").text)


def test_a_mirror_with_healthy_disks_passes(tmp_path: Path) -> None:
    ended = run_arrays(tmp_path, "gets_it_back and raid1]")
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output
    assert "array1 lived through the loss of 1 of 2, the members hold what was written" in ended.only.sentence
    assert ended.only.integrity.sectors_checked > 0


# Only one member can lose its power, and its cache is smaller than what is written to it before.
MIRROR = (
    a_rig("mirror")
    .switch("mains", ports=1, mechanism="mains")
    .stock_controller()
    .disk("victim", "usb.1", "ARRM-1", "16 MiB", rate="2 MiB/s", cache="1 MiB", scratch=True, power="mains.1")
    .disk("survivor", "usb.2", "ARRM-2", "16 MiB", rate="2 MiB/s", cache="1 MiB", scratch=True)
    .text
)
LOSES_FLUSHES = """
[[defect]]
kind = "flush-lost"
disk = "victim"
"""
POWER = ("-k", "a_member_of_a_mirror_loses_its_power")


def test_a_member_that_loses_its_power_holds_data_at_rest(tmp_path: Path) -> None:
    ended = run_small(tmp_path, "", *POWER, rig=MIRROR)
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output
    assert "victim got " in ended.only.sentence, "it was not copied in full"


def test_a_member_that_ignores_flushes_is_found_on_its_leg(tmp_path: Path) -> None:
    ended = run_small(tmp_path, LOSES_FLUSHES, *POWER, rig=MIRROR)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    found = [one for one in ended.only.findings if one.check == "legs_hold"]
    assert [one.subject for one in found] == ["victim"], ended.output
    assert "does not hold what array1 was given" in found[0].summary
