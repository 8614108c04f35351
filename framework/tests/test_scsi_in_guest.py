"""A bench without USB: the stock scenarios run unchanged on a SCSI controller whose bus is hot-pluggable."""

from __future__ import annotations

from pathlib import Path

import pytest
from defects_bench import run_small
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.judging.results import Verdict

pytestmark = pytest.mark.bench

RIG = (
    a_rig("shelf")
    .switch("bays", mechanism="data")
    .controller("shelf", model="virtio-scsi-pci")
    .disk(*("victim", "shelf.1", "SHELF-1", "64 MiB"), protocol="scsi", rate="2 MiB/s", scratch=True, cable="bays.1")
    .disk("survivor", "shelf.2", "SHELF-2", "64 MiB", protocol="scsi", rate="2 MiB/s", scratch=True)
    .text
)


def test_a_disk_is_taken_off_its_bus_while_writing(tmp_path: Path) -> None:
    ended = run_small(tmp_path, "", "-k", "test_temporary_cable_cut and while_writing", rig=RIG)
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output


@only_if_asked
def test_a_disk_that_does_not_return_to_its_bus_is_found_out(tmp_path: Path) -> None:
    defect = '\n[[defect]]\nkind = "never-returns"\ndisk = "victim"\n'
    ended = run_small(tmp_path, defect, "-k", "test_temporary_cable_cut and while_idle", rig=RIG)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert any(finding.check == "returned" and finding.subject == "victim" for finding in ended.only.findings)
