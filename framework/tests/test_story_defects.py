"""Scenarios of fault stories, each with the planted misbehaviour that it must find, all in one run of one bench."""

from __future__ import annotations

import os

import pytest
from defects_bench import Ended, run_small
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL
from plugpull.judging.results import ScenarioResult, Verdict

ASKED = os.environ.get("PLUGPULL_STORY_DEFECTS", "") not in ("", "0")
pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(not ASKED, reason="takes ten minutes: PLUGPULL_STORY_DEFECTS=1 runs it"),
]

STORIES = (
    a_rig("stories")
    .switch(ports=4)
    .switch("mains", ports=2, mechanism="mains")
    .controller(ports=4)
    .hub("hub1", "usb.2", cable="cables.2")
    .hub("hub2", "usb.3", cable="cables.3")
    .disk(
        *("victim", "usb.1", "STORY-1", "16 MiB"),
        rate="2 MiB/s",
        cache="256 KiB",
        scratch=True,
        cable="cables.1",
        power="mains.1",
    )
    .disk("left", "hub1.1", "STORY-2", "16 MiB", rate="768 KiB/s", scratch=True)
    .disk("right", "hub2.1", "STORY-3", "16 MiB", rate="768 KiB/s", scratch=True)
    .table("defect", kind="needs-power-cycle", disk="victim", scenario="last_resort")
    .table("defect", kind="long-transfer-stall", disk="left", every=12, seconds=6.0, scenario="no_read_stalls")
    .table("defect", kind="bit-flip", disk="victim", scenario="before_the_kernel_notices")
    .table("defect", kind="never-returns", disk="right", scenario="two_hubs")
    .table("defect", kind="serial-changes", disk="victim", scenario="nobody_uses")
    .table("defect", kind="serial-changes", disk="left", scenario="move_to_another")
    .table("defect", kind="serial-changes", disk="right", scenario="move_to_another")
    .table("defect", kind="flush-lost", disk="victim", scenario="instant_of_a_flush")
    .table("defect", kind="kernel-panic", scenario="by_number")
    .table("defect", kind="command-timeout", disk="victim", every=60, seconds=16.0, scenario="times_out")
    .table("defect", kind="errors-at", disk="victim", sector=17000, sectors=8000, scenario="leave_the_others_alone")
    .table("defect", kind="errors-scattered", disk="left", every=30, scenario="right_part")
    .table("defect", kind="errors-scattered", disk="right", every=30, scenario="right_part")
    .table("defect", kind="bit-flips", disk="victim", every=3, scenario="copied_onto")
    .table("defect", kind="never-returns", disk="victim", scenario="target_of_a_copy")
    .table("defect", kind="never-returns", disk="victim", scenario="machine_sleeps")
    .table("defect", kind="serial-changes", disk="victim", scenario="another_disk_is_recovered")
    .text
)
CHOSEN = (
    "last_resort or no_read_stalls or (before_the_kernel and 20) or two_hubs or nobody_uses or move_to_another",
    "(instant_of_a_flush and power) or (by_number and one) or times_out or leave_the_others_alone or right_part",
    "copied_onto or target_of_a_copy or machine_sleeps or another_disk_is_recovered",
)
"""A run has ten minutes, also on a busy machine."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, ...]:
    folders = (tmp_path_factory.mktemp("stories") for _ in CHOSEN)
    runs = zip(folders, CHOSEN, strict=True)
    ended = tuple(run_small(folder, "", "-k", chosen, "--seed", "1", rig=STORIES) for folder, chosen in runs)
    assert [one.status for one in ended] == [EXIT_FAIL] * len(CHOSEN), [one.output for one in ended]
    return ended


def failed(ended: Ended | tuple[Ended, ...], story: str) -> ScenarioResult:
    """The result of the scenario with this in its name, which must be FAIL."""
    runs = (ended,) if isinstance(ended, Ended) else ended
    ((found, output),) = [(one, run.output) for run in runs for one in run.results.scenarios if story in one.id]
    assert found.verdict is Verdict.FAIL, (found.sentence, output)
    return found


def test_a_disk_that_needs_a_power_cycle_is_found_out_by_cycling_its_power(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "last_resort")
    (finding,) = [one for one in found.findings if one.check == "returned"]
    assert "did not come back within 5 s of victim.cable being restored; it needs a power cycle" in finding.summary
    assert [cut.point for cut in found.cuts] == ["victim.cable", "victim.power"]


def test_a_read_that_stalls_is_found_within_seconds(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "no_read_stalls")
    assert any(one.check == "answered" and one.subject == "left" for one in found.findings), found.findings
    assert found.seconds < 120


def test_data_that_does_not_survive_an_unnoticed_cut(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "before_the_kernel")
    assert {one.check for one in found.findings} == {"data_intact"}


def test_a_disk_that_does_not_survive_the_cut_of_two_hubs(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "two_hubs")
    assert ("returned", "right") in {(one.check, one.subject) for one in found.findings}


def test_an_exchanged_disk_that_is_another_one(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "nobody_uses")
    assert any("CHANGED-STORY-1 instead of STORY-1" in one.summary for one in found.findings), found.findings


def test_a_disk_of_a_dead_hub_that_is_another_one_elsewhere(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "dead_hub_move_to_another")
    (finding,) = [one for one in found.findings if one.check == "found_again"]
    assert "with serial CHANGED-STORY-" in finding.summary


def test_flushed_data_that_is_lost_at_the_instant_of_a_flush(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "instant_of_a_flush")
    assert "nothing_lost" in {one.check for one in found.findings}
    assert len(found.cuts) == 3


def test_a_machine_that_dies_with_one_cpu(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "by_number")
    assert "sysrq triggered crash" in found.sentence


def test_commands_that_time_out_are_counted_and_placed(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "times_out")
    finding = next(one for one in found.findings if one.check == "commands_in_time")
    assert finding.subject == "victim"
    assert "timed out" in finding.summary


def test_errors_of_one_transfer_accuse_its_disk_and_no_other(ended: tuple[Ended, ...]) -> None:
    # mkfs meets them already. Their order is tested on edited histories (``test_culprit_checks.py``).
    found = failed(ended, "leave_the_others_alone")
    errors = [one for one in found.findings if "the kernel reported an error on" in one.summary]
    assert {one.subject for one in errors} == {"victim"}, found.findings


def test_scattered_errors_of_two_disks_accuse_their_bridge(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "right_part")
    assert any("at fault: bridge of " in one.summary for one in found.findings), found.findings


def test_a_copy_that_differs_from_its_source(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "copied_onto")
    assert ("data_intact", "victim") in {(one.check, one.subject) for one in found.findings}


def test_the_target_of_a_copy_that_never_returns(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "target_of_a_copy")
    assert ("returned", "victim") in {(one.check, one.subject) for one in found.findings}


def test_a_disk_that_does_not_survive_a_cut_of_a_sleeping_machine(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "machine_sleeps")
    assert ("returned", "victim") in {(one.check, one.subject) for one in found.findings}


def test_a_disk_that_is_another_one_after_a_cut_in_another_ones_recovery(ended: tuple[Ended, ...]) -> None:
    found = failed(ended, "another_disk_is_recovered")
    assert any("CHANGED-STORY-1" in one.summary for one in found.findings), found.findings


UNITS = (
    a_rig("units")
    .switch(ports=3)
    .controller(ports=4)
    .disk("bay1", "usb.1", "UNITS-1", "16 MiB", protocol="uas", rate="1 MiB/s", scratch=True, cable="cables.1")
    .disk("bay2", "usb.1", "UNITS-1", "16 MiB", lun=1, protocol="uas", rate="1 MiB/s", scratch=True, cable="cables.1")
    .disk("stick", "usb.2", "UNITS-2", "16 MiB", cdrom=True, rate="1 MiB/s", scratch=True, cable="cables.2")
    .disk("plain", "usb.3", "UNITS-3", "16 MiB", rate="1 MiB/s", scratch=True, cable="cables.3")
    .table("defect", kind="never-returns", disk="bay2", scenario="several_disks_with_it")
    .table("defect", kind="unit-changes", disk="stick", scenario="false_cdrom")
    .table("defect", kind="never-returns", disk="stick", scenario="swapped")
    .table("defect", kind="never-returns", disk="plain", scenario="swapped")
    .text
)


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    chosen = "several_disks_with_it or false_cdrom or swapped"
    return run_small(tmp_path_factory.mktemp("units"), "", "-k", chosen, "--seed", "1", rig=UNITS)


def test_a_unit_that_stays_away_when_its_device_returns(units: Ended) -> None:
    found = failed(units, "several_disks_with_it")
    assert {one.subject for one in found.findings if one.check == "returned"} == {"bay2"}


def test_a_cdrom_that_stays_away_when_its_disk_returns(units: Ended) -> None:
    found = failed(units, "false_cdrom")
    assert any("stick came back without its other unit, sr0" in one.summary for one in found.findings), found.findings


def test_a_swapped_disk_that_does_not_come_back(units: Ended) -> None:
    found = failed(units, "swapped")
    assert {one.subject for one in found.findings if one.check == "returned"} <= {"stick", "plain"}
    assert any(one.check == "returned" for one in found.findings), found.findings
