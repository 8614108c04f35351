"""Data that went wrong while a disk's cable was cut: found and named, disk by disk.

fio's own verification accepts all kinds but two, the torn write and the flipped bit: every pass and disk of a load has
the same payload there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from defects_bench import run_small
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL
from plugpull.judging.results import Verdict
from plugpull.virtual.defects import FLIPPED_AT

pytestmark = pytest.mark.bench

RIG = (
    a_rig("spoilt")
    .switch(ports=1)
    .stock_controller()
    .disk("victim", "usb.1", "SPOILT-1", "16 MiB", rate="1 MiB/s", scratch=True, cable="cables.1")
)


def found_on(folder: Path, defects: Mapping[str, dict[str, object]]) -> dict[str, str]:
    """What is said of each disk's data after a cut, on a bench with these defects. A disk is a survivor, if it is not
    the victim."""
    rig = RIG
    for number, disk in enumerate((disk for disk in defects if disk != "victim"), start=2):
        rig = rig.disk(disk, f"usb.{number}", f"SPOILT-{number}", "16 MiB", rate="1 MiB/s", scratch=True)
    for disk, keys in defects.items():
        rig = rig.table("defect", disk=disk, **keys)
    ended = run_small(folder, "", "-k", "while_writing", rig=rig.text)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert [cut.point for cut in ended.only.cuts] == ["victim.cable"]
    found = [finding for finding in ended.only.findings if finding.check == "data_intact"]
    assert sorted(finding.subject for finding in found) == sorted(defects), ended.only.findings
    for finding in found:
        assert any("read again" in line for line in finding.evidence), finding.evidence
    return {finding.subject: finding.summary for finding in found}


def test_what_went_wrong_with_each_disks_data_is_named(tmp_path: Path) -> None:
    defects: dict[str, dict[str, object]] = {
        "victim": {"kind": "bit-flip"},
        "forgetful": {"kind": "lost-write", "every": 5},  # not always the same blocks of a pass
        "mixed-up": {"kind": "crossed"},
        "torn": {"kind": "torn-write", "every": 5},
    }
    found = found_on(tmp_path, defects)
    assert f"corrupt at sector {FLIPPED_AT // 512}" in found["victim"]
    assert "1 bit flipped in write" in found["victim"]
    assert "durable lost" in found["forgetful"] or "stale" in found["forgetful"]
    assert "foreign" in found["mixed-up"]
    assert "torn" in found["torn"]


@only_if_asked
def test_a_flipped_bit_and_a_pass_that_was_never_written_are_named_on_survivors(tmp_path: Path) -> None:
    found = found_on(tmp_path, {"flipped": {"kind": "bit-flip"}, "forgetful": {"kind": "lost-pass", "every": 25}})
    assert f"corrupt at sector {FLIPPED_AT // 512}" in found["flipped"]
    assert "1 bit flipped in write" in found["flipped"]
    assert "durable lost" in found["forgetful"] or "stale" in found["forgetful"]
